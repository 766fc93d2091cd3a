//! Fixtures and private servers for the suites.
