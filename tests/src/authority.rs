//! A certificate authority of a test's own.

use std::path::PathBuf;
use std::process::Command;

use tempfile::TempDir;

/// A certificate authority and a certificate it signed.
#[derive(Debug)]
pub struct Authority {
    folder: TempDir,
}

impl Authority {
    /// Makes both, for names such as `DNS:localhost,IP:127.0.0.1`: `ca.pem`, and `server.pem` with its
    /// `server.key`.
    ///
    /// # Panics
    ///
    /// When `openssl` is not installed.
    pub fn new(names: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name).display().to_string();
        std::fs::write(folder.path().join("names"), format!("subjectAltName={names}\n")).unwrap();
        openssl(&[
            "req",
            "-x509",
            "-newkey",
            "rsa:2048",
            "-nodes",
            "-days",
            "2",
            "-subj",
            "/CN=Test authority",
            "-keyout",
            &at("ca.key"),
            "-out",
            &at("ca.pem"),
        ]);
        openssl(&[
            "req",
            "-newkey",
            "rsa:2048",
            "-nodes",
            "-subj",
            "/CN=db.test",
            "-keyout",
            &at("server.key"),
            "-out",
            &at("server.csr"),
        ]);
        openssl(&[
            "x509",
            "-req",
            "-days",
            "2",
            "-in",
            &at("server.csr"),
            "-CA",
            &at("ca.pem"),
            "-CAkey",
            &at("ca.key"),
            "-CAcreateserial",
            "-extfile",
            &at("names"),
            "-out",
            &at("server.pem"),
        ]);
        Self { folder }
    }

    /// One of its files.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }
}

fn openssl(args: &[&str]) {
    let output = Command::new("openssl").args(args).output().expect("openssl is installed");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}
