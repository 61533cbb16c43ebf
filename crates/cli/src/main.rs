//! lasthop
fn main() {}
