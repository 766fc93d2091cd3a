//! What is answered over HTTP. Reads only: no route writes to a server or to a file.

mod probes;

pub use probes::probes;
