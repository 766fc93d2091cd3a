//! Who may ask what a command answers over HTTP.

use std::net::SocketAddr;

use tollgate::web::Exposure;

use super::Failure;

/// Something that is answered over HTTP to whoever reaches it.
pub(super) struct Answered {
    /// The flag that lets other machines ask.
    pub(super) flag: &'static str,
    /// What to do instead.
    pub(super) instead: &'static str,
}

impl Answered {
    /// This machine alone on a loopback address; other machines when they are let.
    pub(super) fn exposure(
        &self,
        listen: SocketAddr,
        is_allowed: bool,
    ) -> Result<Exposure, Failure> {
        if listen.ip().to_canonical().is_loopback() {
            return Ok(Exposure::Loopback);
        }
        if is_allowed {
            return Ok(Exposure::Remote);
        }
        let Self { flag, instead } = self;
        let message = format!("{} can be reached from other machines", listen.ip());
        Err(Failure::usage(message).with_help(format!("{instead}, or add {flag}")))
    }
}
