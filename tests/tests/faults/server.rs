//! 40 to 67: sessions and servers.
