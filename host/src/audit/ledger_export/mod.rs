//! Reading what `tollgate receipts export` wrote: receipts of a ledger with the payloads they are
//! about, so that every decision can be made again without a server.
//!
//! One object a line, docs/schema/ledger-export.schema.json. The last line closes the export: it says
//! how many lines stand before it and has their digest, so that an export that was cut off does not
//! pass for a whole one. Nothing signs it. A line that cannot be read does not end the reading.
//!
//! What editors do to a text changes nothing: a byte order mark, blank lines and carriage returns at
//! the ends of lines do not count.

mod error;
mod line;

use std::collections::HashMap;
use std::fs::File;
use std::io::{BufRead, BufReader, Read as _};
use std::path::{Path, PathBuf};

pub use error::{LedgerExportError, LineFault};
use line::{Closing, Line, LineError, WITHOUT_CLOSING, without_break};
pub use line::{DamagedRow, ExportSum, ExportedLine, ExportedReceipt, LEDGER_EXPORT_VERSION};

use crate::digest::Digest;
use crate::ids::StepKey;

/// Bytes of a line, at most: a payload of the largest release file, every byte of it escaped.
pub const LINE_BYTES_MAX: u64 = 64 << 20;

/// What a file in UTF-8 may begin with, and what one in UTF-16 does (Unicode 16.0, 2.13).
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";
const UTF16_MARKS: [&[u8]; 2] = [b"\xff\xfe", b"\xfe\xff"];

/// Reads an export, a line at a time.
///
/// Of every key that was read 24 bytes are kept, to find the one that is there twice.
#[derive(Debug)]
pub struct LedgerExport<R = BufReader<File>> {
    path: PathBuf,
    from: R,
    /// Lines that were read, from 1.
    line: u64,
    /// The lines before the closing one.
    sum: ExportSum,
    /// The version of the last line that could be read.
    version: u32,
    /// A line was refused for its version.
    is_of_another_version: bool,
    closed: Option<Closed>,
    keys: HashMap<[u8; 16], u64>,
    ended: bool,
}

/// The closing line was read.
#[derive(Debug)]
struct Closed {
    says: Closing,
    /// The first line behind it.
    behind: Option<u64>,
}

impl LedgerExport {
    /// Opens an export.
    ///
    /// # Errors
    ///
    /// [`LedgerExportError::Read`].
    pub fn open(path: &Path) -> Result<Self, LedgerExportError> {
        let file = File::open(path)
            .map_err(|source| LedgerExportError::Read { path: path.to_owned(), source })?;
        Ok(Self::new(path, BufReader::new(file)))
    }
}

impl<R: BufRead> LedgerExport<R> {
    /// Reads an export from elsewhere; `path` is what errors call it.
    pub fn new(path: &Path, from: R) -> Self {
        Self {
            path: path.to_owned(),
            from,
            line: 0,
            sum: ExportSum::default(),
            version: LEDGER_EXPORT_VERSION,
            is_of_another_version: false,
            closed: None,
            keys: HashMap::new(),
            ended: false,
        }
    }

    /// The next line that is not blank, without what ends it.
    fn read_line(&mut self) -> Result<Option<Vec<u8>>, LedgerExportError> {
        loop {
            let mut bytes = Vec::new();
            let mut bounded = self.from.by_ref().take(LINE_BYTES_MAX + 1);
            let read = bounded
                .read_until(b'\n', &mut bytes)
                .map_err(|source| LedgerExportError::Read { path: self.path.clone(), source })?;
            if read == 0 {
                return Ok(None);
            }
            self.line += 1;
            if read as u64 > LINE_BYTES_MAX {
                return Err(LedgerExportError::LineSize {
                    path: self.path.clone(),
                    line: self.line,
                });
            }
            let mut line = bytes.as_slice();
            if self.line == 1 {
                if UTF16_MARKS.iter().any(|mark| line.starts_with(mark)) {
                    return Err(LedgerExportError::Utf16 { path: self.path.clone() });
                }
                line = line.strip_prefix(BYTE_ORDER_MARK).unwrap_or(line);
                if line.trim_ascii().first().is_some_and(|&first| first != b'{') {
                    return Err(LedgerExportError::NotAnExport { path: self.path.clone() });
                }
            }
            let line = without_break(line);
            if !line.trim_ascii().is_empty() {
                return Ok(Some(line.to_vec()));
            }
        }
    }

    /// What a line says; `None` of the closing one.
    fn parse(&mut self, bytes: &[u8]) -> Result<Option<ExportedLine>, LedgerExportError> {
        let parsed = Line::parse(bytes);
        if let (Ok((Line::Closing(says), _)), None) = (&parsed, &self.closed) {
            self.closed = Some(Closed { says: *says, behind: None });
            return Ok(None);
        }
        match &mut self.closed {
            Some(closed) => closed.behind = closed.behind.or(Some(self.line)),
            None => self.sum.add(bytes),
        }
        let (path, line) = (self.path.clone(), self.line);
        let (parsed, version) = parsed.map_err(|error| match error {
            LineError::Version(version) => {
                // Its last line may close it in words that this program does not know.
                self.is_of_another_version = true;
                LedgerExportError::Version { path, line, version }
            }
            LineError::Json(source) => LedgerExportError::Line { path, line, source },
        })?;
        self.version = version;
        Ok(match parsed {
            Line::Receipt(receipt) => {
                let earlier = self.earlier(&receipt.key);
                Some(ExportedLine::Receipt { receipt, earlier })
            }
            Line::Damaged(row) => Some(ExportedLine::Damaged(row)),
            // A second one is told as what stands behind the first.
            Line::Closing(_) => None,
        })
    }

    /// The line that had this key first, if this one had it before.
    fn earlier(&mut self, key: &StepKey) -> Option<u64> {
        // Half of a digest: nobody makes two keys that share it, and no key takes more room.
        let digest = Digest::of(key.as_str());
        let (half, _) = digest.as_bytes().split_first_chunk()?;
        let first = *self.keys.entry(*half).or_insert(self.line);
        (first != self.line).then_some(first)
    }

    /// What is wrong with the export as a whole.
    fn verdict(&self) -> Result<(), LedgerExportError> {
        let path = self.path.clone();
        match &self.closed {
            None if self.is_of_another_version => Ok(()),
            None if self.sum.lines() == 0 => Err(LedgerExportError::Empty { path }),
            None => {
                let is_earlier = self.version == WITHOUT_CLOSING;
                Err(LedgerExportError::NotClosed { path, is_earlier })
            }
            Some(Closed { says, .. }) if *says != self.sum.closing() => {
                let (closed, found) = (says.lines, self.sum.lines());
                Err(LedgerExportError::OtherLines { path, closed, found })
            }
            Some(Closed { behind: Some(line), .. }) => {
                Err(LedgerExportError::Behind { path, line: *line })
            }
            Some(_) => Ok(()),
        }
    }
}

impl<R: BufRead> Iterator for LedgerExport<R> {
    type Item = Result<ExportedLine, LedgerExportError>;

    /// The next line, or what is wrong with it. The last item tells what is wrong with the whole, if
    /// anything is.
    fn next(&mut self) -> Option<Self::Item> {
        while !self.ended {
            match self.read_line() {
                Ok(Some(bytes)) => {
                    if let Some(line) = self.parse(&bytes).transpose() {
                        return Some(line);
                    }
                }
                Ok(None) => {
                    self.ended = true;
                    return self.verdict().err().map(Err);
                }
                // What follows cannot be told from what it is about.
                Err(error) => {
                    self.ended = true;
                    return Some(Err(error));
                }
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    fn line(version: u32, key: &str) -> String {
        let digest = Digest::of("x");
        format!(
            "{{\"version\":{version},\"id\":1,\"key\":\"{key}\",\"environment\":\"preview\",\
             \"release\":{{\"code\":\"shop\",\"version\":\"1.0.0\"}},\"direction\":\"FORWARD\",\
             \"executor\":\"sql-jdbc:v1\",\"catalog\":\"plugin_preview\",\"contentHash\":\"{digest}\",\
             \"policyDigest\":null,\"decisionDigest\":\"{digest}\",\"status\":\"FAILED\",\
             \"statementCount\":1,\"payload\":\"a\\nb\"}}\n"
        )
    }

    fn closed(lines: &[String]) -> String {
        let mut sum = ExportSum::default();
        for line in lines {
            sum.add(line);
        }
        lines.concat() + &sum.to_line()
    }

    fn read(text: impl AsRef<[u8]>) -> Vec<Result<ExportedLine, LedgerExportError>> {
        LedgerExport::new(Path::new("x.jsonl"), text.as_ref()).collect()
    }

    /// What is told of an export: of a line that reads nothing.
    fn told(text: impl AsRef<[u8]>) -> Vec<String> {
        let lines = read(text).into_iter();
        lines.map(|it| it.err().map(|error| error.to_string()).unwrap_or_default()).collect()
    }

    #[test]
    fn lines_are_read_one_after_the_other_and_unknown_keys_are_passed_over() {
        let damaged = DamagedRow { id: 7, key: Some("k:7".into()), column: "status".into() };
        let lines = read(closed(&[line(2, "k:1"), damaged.to_line(), line(2, "k:2")]));
        let [Ok(ExportedLine::Receipt { receipt, earlier }), Ok(row), Ok(_)] = &lines[..] else {
            panic!("{lines:?}")
        };
        assert_eq!((receipt.payload.as_deref(), *earlier), (Some("a\nb"), None));
        assert_eq!((receipt.policy_digest, receipt.missing.as_ref()), (None, None));
        assert_eq!(*row, ExportedLine::Damaged(damaged));
        assert!(read(closed(&[])).is_empty(), "no receipts, and that is certain");
    }

    #[test]
    fn a_bad_line_is_told_by_number_and_ends_nothing() {
        let lines = [line(2, "k:1"), line(2, "k:2")[..40].to_owned() + "\n", line(2, "k:3")];
        let told = told(closed(&lines));
        assert_eq!(told, ["", "`x.jsonl` line 2 is no exported receipt", ""]);
        let newer = read(closed(&[line(3, "k:1")]));
        let [Err(error)] = &newer[..] else { panic!("a newer line was read") };
        assert!(error.to_string().contains("line 1 has version 3"), "{error}");
        assert!(error.is_of_a_line());
    }

    #[test]
    fn an_export_that_is_not_whole_says_so() {
        let lines = [line(2, "k:1"), line(2, "k:2"), line(2, "k:3")];
        let whole = closed(&lines);
        let last = |text: &str| told(text).pop().unwrap();
        assert_eq!(last(&whole), "");
        assert!(last("").contains("is empty"));
        assert!(last("\n \n").contains("is empty"));
        assert!(last(&lines.concat()).contains("was cut off"), "{}", last(&lines.concat()));
        assert!(last(&line(1, "k:1")).contains("an earlier Tollgate wrote it"));
        let dropped = whole.replace(&lines[1], "");
        assert!(last(&dropped).contains("closes 3 line(s), and there are 2"), "{}", last(&dropped));
        let edited = whole.replace("a\\nb", "a\\nc");
        assert!(last(&edited).contains("another digest"), "{}", last(&edited));
        let swapped =
            closed(&lines).replace(&lines.concat(), &(lines[1].clone() + &lines[0] + &lines[2]));
        assert!(last(&swapped).contains("another digest"), "{}", last(&swapped));
        assert!(last(&(whole.clone() + &lines[0])).contains("line 5 stands behind"));
        assert!(last(&(whole.clone() + &whole)).contains("line 5 stands behind"));
        for length in 0..whole.len() - 1 {
            assert_ne!(last(&whole[..length]), "", "cut off after {length} bytes");
        }
    }

    #[test]
    fn what_editors_add_does_not_count() {
        let whole = closed(&[line(2, "k:1"), line(2, "k:2")]);
        let edited = format!("\u{feff}\n{}\n\n", whole.replace('\n', "\r\n\r\n"));
        assert_eq!(told(&edited), ["", ""]);
        let utf16: Vec<u8> =
            format!("\u{feff}{whole}").encode_utf16().flat_map(u16::to_le_bytes).collect();
        let told = told(utf16);
        assert!(told[0].contains("is in UTF-16"), "{told:?}");
    }

    #[test]
    fn a_key_that_is_there_twice_names_the_line_that_had_it() {
        let lines = read(closed(&[line(2, "k:1"), line(2, "k:2"), line(2, "k:1")]));
        let earlier: Vec<Option<u64>> = lines
            .iter()
            .filter_map(|line| match line {
                Ok(ExportedLine::Receipt { earlier, .. }) => Some(*earlier),
                _ => None,
            })
            .collect();
        assert_eq!(earlier, [None, None, Some(1)]);
    }

    #[test]
    fn an_endless_line_is_not_read_to_its_end() {
        let endless = BufReader::new(io::repeat(b' '));
        let mut export = LedgerExport::new(Path::new("x"), endless);
        assert!(matches!(export.next(), Some(Err(LedgerExportError::LineSize { .. }))));
        assert!(export.next().is_none());
    }
}
