//! 40 to 67: sessions and servers.

mod durability;
mod limits;
mod locks;
mod sessions;
mod shapes;
mod writers;
