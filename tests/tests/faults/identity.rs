//! 20 to 28: identity, direction and plan versions.
