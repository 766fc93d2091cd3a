//! 68 to 73: the ledger's integrity.
