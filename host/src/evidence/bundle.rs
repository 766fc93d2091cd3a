//! A bundle: the archive's bytes, and where its members stand in them.

use std::io::{self, Read as _};

use super::archive::{self, Member};
use super::error::EvidenceError;
use super::facts::{self, Manifest};
use super::layout::{
    self, BUNDLE_BYTES_MAX, EVIDENCE_FORMAT, EVIDENCE_VERSION, MANIFEST, Misplaced,
};
use crate::digest::Digest;

/// Evidence of one decision, as a single file.
///
/// That its members are there and in order is known; whether they are true is for
/// [`EvidenceBundle::verify`] to find.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EvidenceBundle {
    bytes: Vec<u8>,
    members: Vec<Member>,
}

impl EvidenceBundle {
    /// Reads a bundle, within [`BUNDLE_BYTES_MAX`].
    ///
    /// # Errors
    ///
    /// [`EvidenceError`], naming the first thing that makes it no bundle of this version.
    pub fn read(from: impl io::Read) -> Result<Self, EvidenceError> {
        let mut bytes = Vec::new();
        from.take(BUNDLE_BYTES_MAX + 1).read_to_end(&mut bytes).map_err(EvidenceError::Read)?;
        if bytes.len() as u64 > BUNDLE_BYTES_MAX {
            return Err(EvidenceError::Size);
        }
        Self::parse(bytes)
    }

    /// Reads the bytes of a bundle.
    ///
    /// # Errors
    ///
    /// As [`EvidenceBundle::read`].
    pub fn parse(bytes: Vec<u8>) -> Result<Self, EvidenceError> {
        if !archive::is_archive(&bytes) {
            return Err(EvidenceError::NoArchive);
        }
        let members = archive::read(&bytes).map_err(EvidenceError::Archive)?;
        let bundle = Self { bytes, members };
        // The version first: another one may have other members.
        bundle.check_version()?;
        if let Some(member) = bundle.members.iter().find(|member| !member.is_file) {
            let error = Misplaced::NoFile(member.name.clone());
            return Err(EvidenceError::Members(error.into()));
        }
        let names: Vec<&str> = bundle.members.iter().map(|member| member.name.as_str()).collect();
        layout::check_order(&names).map_err(|error| EvidenceError::Members(error.into()))?;
        for Member { name, content, .. } in &bundle.members {
            let (bytes, bytes_max) = (content.len() as u64, layout::bytes_max(name));
            if bytes > bytes_max {
                return Err(EvidenceError::MemberSize { name: name.clone(), bytes, bytes_max });
            }
        }
        Ok(bundle)
    }

    fn check_version(&self) -> Result<(), EvidenceError> {
        // Wherever it stands, and as `tar` names what it packs by a folder: that it is out of its place
        // is told as that.
        let is_manifest = |name: &str| name.strip_prefix("./").unwrap_or(name) == MANIFEST;
        let manifest = self.members.iter().find(|member| is_manifest(&member.name));
        let manifest = manifest.ok_or(EvidenceError::NoManifest)?;
        let content = Some(manifest.content.clone()).filter(|it| it.len() < 4096);
        let Some(manifest) = content.and_then(|content| self.bytes.get(content)) else {
            return Err(EvidenceError::Manifest(None));
        };
        let Manifest { format, version } =
            facts::from_json(manifest).map_err(|error| EvidenceError::Manifest(Some(error)))?;
        if format != EVIDENCE_FORMAT {
            return Err(EvidenceError::Manifest(None));
        }
        if version == EVIDENCE_VERSION { Ok(()) } else { Err(EvidenceError::Version(version)) }
    }

    /// The bytes of the file.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The digest of the file: what to note when a bundle is made, and to compare years later.
    pub fn digest(&self) -> Digest {
        Digest::of(&self.bytes)
    }

    /// Every member with its content, in their order.
    pub fn members(&self) -> impl Iterator<Item = (&str, &[u8])> {
        self.members.iter().map(|member| (member.name.as_str(), self.content(member)))
    }

    /// The content of a member.
    pub fn member(&self, name: &str) -> Option<&[u8]> {
        self.members.iter().find(|member| member.name == name).map(|member| self.content(member))
    }

    /// The same of a member that every bundle has.
    pub(super) fn required(&self, name: &str) -> &[u8] {
        self.member(name).unwrap_or_default()
    }

    /// Where the archive leaves the canonical form; `None` when it does not.
    pub(super) fn departure(&self) -> Option<String> {
        archive::departure(&self.bytes, &self.members)
    }

    fn content(&self, member: &Member) -> &[u8] {
        self.bytes.get(member.content.clone()).unwrap_or_default()
    }
}
