//! 29 to 39: leases, races and clocks.
