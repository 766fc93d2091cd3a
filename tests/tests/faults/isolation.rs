//! 74 to 81: isolation, policy, secrets and what people see.
