//! Evidence bundles put together by hand, from docs/evidence.md and the POSIX manual alone, so that a
//! test can alter one and make everything around the alteration right again.

use std::fmt::Write as _;

use tollgate::digest::Digest;

/// The members of a bundle, to be altered and written again.
#[derive(Debug, Clone)]
pub struct Members(pub Vec<(String, Vec<u8>)>);

impl Members {
    /// Takes an archive apart.
    ///
    /// # Panics
    ///
    /// When it is none.
    pub fn of(archive: &[u8]) -> Self {
        let mut members = Vec::new();
        let mut rest = archive;
        while rest[0] != 0 {
            let (header, behind) = rest.split_at(512);
            let text = |field: &[u8]| {
                let end = field.iter().position(|byte| *byte == 0).unwrap_or(field.len());
                String::from_utf8(field[..end].to_vec()).expect("ASCII")
            };
            let size = usize::from_str_radix(text(&header[124..136]).trim(), 8).expect("octal");
            members.push((text(&header[..100]), behind[..size].to_vec()));
            rest = &behind[size.next_multiple_of(512)..];
        }
        Self(members)
    }

    /// The content of a member.
    ///
    /// # Panics
    ///
    /// When there is none.
    pub fn content(&mut self, name: &str) -> &mut Vec<u8> {
        let member = self.0.iter_mut().find(|(member, _)| member == name);
        &mut member.unwrap_or_else(|| panic!("there is no `{name}`")).1
    }

    /// Replaces text in a member.
    ///
    /// # Panics
    ///
    /// When it is not there.
    pub fn replace(&mut self, name: &str, from: &str, to: &str) {
        let content = self.content(name);
        let text = String::from_utf8(content.clone()).expect("UTF-8");
        assert!(text.contains(from), "`{from}` is not in {name}");
        *content = text.replacen(from, to, 1).into_bytes();
    }

    /// Makes SHA256SUMS right again.
    pub fn sum(&mut self) {
        let mut sums = String::new();
        for (name, content) in self.0.iter().filter(|(name, _)| name != "SHA256SUMS") {
            let digest = Digest::of(content).to_string();
            writeln!(sums, "{}  {name}", &digest["sha256:".len()..]).expect("a string");
        }
        *self.content("SHA256SUMS") = sums.into_bytes();
    }

    /// The archive in its canonical form.
    pub fn archive(&self) -> Vec<u8> {
        let mut archive = Vec::new();
        for (name, content) in &self.0 {
            archive.extend(header(name, content.len()));
            archive.extend(content);
            archive.resize(archive.len().next_multiple_of(512), 0);
        }
        archive.resize(archive.len() + 1024, 0);
        archive
    }
}

/// A header (POSIX.1-2017, pax, "ustar Interchange Format").
fn header(name: &str, size: usize) -> [u8; 512] {
    let mut header = [0; 512];
    let mut put =
        |at: usize, text: &str| header[at..at + text.len()].copy_from_slice(text.as_bytes());
    put(0, name);
    put(100, "0000644\0");
    put(108, "0000000\0");
    put(116, "0000000\0");
    put(124, &format!("{size:011o}\0"));
    put(136, "00000000000\0");
    put(148, "        ");
    put(156, "0");
    put(257, "ustar\x0000");
    let sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
    header[148..156].copy_from_slice(format!("{sum:07o}\0").as_bytes());
    header
}
