//! The archive: POSIX ustar in the one form that a bundle has.
//!
//! Regular files of mode 0644, of user and group 0 without names, of time 0, each padded to 512 bytes
//! with zeros, then two blocks of zeros. Nothing depends on who made it, when or where.

use std::io;
use std::ops::Range;

use tar::{Archive, Builder, EntryType, Header};

use crate::text::visible_line;

/// A member and where its content stands in the archive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Member {
    pub(super) name: String,
    /// Whether it is a plain file, and no folder, link or device.
    pub(super) is_file: bool,
    pub(super) content: Range<usize>,
}

/// Members of an archive, at most: more than any bundle has, and few enough to hold.
const MEMBER_COUNT_MAX: usize = 10_100;

/// Bytes of a block (POSIX.1-2017, pax, "ustar Interchange Format").
const BLOCK_BYTES: usize = 512;

/// Writes the archive of these members.
pub(super) fn write<'a>(
    members: impl IntoIterator<Item = (&'a str, &'a [u8])>,
) -> io::Result<Vec<u8>> {
    let mut builder = Builder::new(Vec::new());
    for (name, content) in members {
        let mut header = Header::new_ustar();
        header.set_path(name)?;
        header.set_entry_type(EntryType::Regular);
        header.set_mode(0o644);
        header.set_uid(0);
        header.set_gid(0);
        header.set_mtime(0);
        header.set_size(content.len() as u64);
        header.set_cksum();
        builder.append(&header, content)?;
    }
    builder.into_inner()
}

/// Whether the bytes begin as any tar archive of the last decades does (POSIX.1-2017, pax, "ustar
/// Interchange Format"; GNU tar writes the same five letters).
pub(super) fn is_archive(bytes: &[u8]) -> bool {
    bytes.get(257..262) == Some(b"ustar".as_slice())
}

/// Finds the members of an archive. Nothing is copied, and no extension of the format is followed: a
/// header that announces more than is there leads out of the archive, and is refused.
pub(super) fn read(archive: &[u8]) -> io::Result<Vec<Member>> {
    let mut reader = Archive::new(archive);
    let mut members = Vec::new();
    for entry in reader.entries()?.raw(true) {
        // Not what the reader says: it quotes the bytes that it cannot read.
        let entry = entry.map_err(|error| {
            let behind = members.last().map_or("the beginning", |it: &Member| it.name.as_str());
            let told = format!("what stands behind {} is no intact header", visible_line(behind));
            io::Error::new(error.kind(), told)
        })?;
        let outside = || io::Error::new(io::ErrorKind::UnexpectedEof, "a member is cut off");
        let start = usize::try_from(entry.raw_file_position()).map_err(io::Error::other)?;
        let size = usize::try_from(entry.header().entry_size()?).map_err(io::Error::other)?;
        let end = start.checked_add(size).filter(|end| *end <= archive.len());
        let content = start..end.ok_or_else(outside)?;
        let name = String::from_utf8_lossy(&entry.header().path_bytes()).into_owned();
        let is_file = entry.header().entry_type() == EntryType::Regular;
        if members.len() == MEMBER_COUNT_MAX {
            return Err(io::Error::other(format!("it has more than {MEMBER_COUNT_MAX} members")));
        }
        members.push(Member { name, is_file, content });
    }
    Ok(members)
}

/// Where an archive first leaves the canonical form of its own members, in words; `None` when it does
/// not.
pub(super) fn departure(archive: &[u8], members: &[Member]) -> Option<String> {
    let contents = members
        .iter()
        .map(|member| (member.name.as_str(), archive.get(member.content.clone()).unwrap_or(&[])));
    let canonical = match write(contents) {
        Ok(canonical) => canonical,
        Err(error) => return Some(format!("it cannot be written again: {error}")),
    };
    let offset = super::difference::first_difference(archive, &canonical)?;
    let holder = members.iter().find(|member| offset < padded(member.content.end));
    let place = match holder {
        Some(Member { name, content, .. }) if offset < content.start => {
            format!("the header of `{name}`")
        }
        Some(Member { name, .. }) => format!("the padding behind `{name}`"),
        None => "what follows the last member".to_owned(),
    };
    Some(format!("byte {offset}, in {place}"))
}

const fn padded(end: usize) -> usize {
    end.div_ceil(BLOCK_BYTES) * BLOCK_BYTES
}

#[cfg(test)]
mod tests {
    use super::*;

    fn archive() -> Vec<u8> {
        write([("a.json", &b"{}\n"[..]), ("b/c.sql", b"x"), ("empty", b"")]).unwrap()
    }

    #[test]
    fn what_is_written_is_read_again_where_it_stands() {
        let archive = archive();
        let members = read(&archive).unwrap();
        let found: Vec<(&str, &[u8])> = members
            .iter()
            .map(|member| (member.name.as_str(), &archive[member.content.clone()]))
            .collect();
        assert_eq!(found, [("a.json", &b"{}\n"[..]), ("b/c.sql", b"x"), ("empty", b"")]);
        assert_eq!(departure(&archive, &members), None);
    }

    #[test]
    fn every_byte_outside_a_content_counts() {
        let canonical = archive();
        let contents: Vec<Range<usize>> =
            read(&canonical).unwrap().into_iter().map(|member| member.content).collect();
        for at in (0..canonical.len()).filter(|at| !contents.iter().any(|it| it.contains(at))) {
            for flip in [0x01, 0x20, 0x80] {
                let mut altered = canonical.clone();
                altered[at] ^= flip;
                let unnoticed =
                    read(&altered).is_ok_and(|members| departure(&altered, &members).is_none());
                assert!(!unnoticed, "byte {at} ^ {flip:#x}");
            }
        }
    }

    #[test]
    fn what_was_added_behind_or_cut_off_counts() {
        let canonical = archive();
        for length in (0..canonical.len()).step_by(7) {
            let cut = &canonical[..length];
            assert!(
                read(cut).is_err() || departure(cut, &read(cut).unwrap()).is_some(),
                "{length}"
            );
        }
        let longer = [&canonical[..], b"\0"].concat();
        assert!(read(&longer).is_err() || departure(&longer, &read(&longer).unwrap()).is_some());
    }

    #[test]
    fn a_member_that_announces_more_than_is_there_is_refused() {
        let mut header = Header::new_ustar();
        header.set_path("a").unwrap();
        header.set_size(1 << 40);
        header.set_cksum();
        let hostile = [header.as_bytes().as_slice(), &[0; 1024]].concat();
        assert!(read(&hostile).is_err());
        let mut link = Header::new_ustar();
        link.set_path("a").unwrap();
        link.set_entry_type(EntryType::Symlink);
        link.set_size(0);
        link.set_cksum();
        let hostile = [link.as_bytes().as_slice(), &[0; 1024]].concat();
        assert!(!read(&hostile).unwrap()[0].is_file);
    }
}
