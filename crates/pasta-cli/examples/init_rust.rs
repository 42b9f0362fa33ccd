//! What `pasta init rust` writes, so that it compiles.
#![expect(clippy::print_stdout, reason = "a program prints")]

include!("../templates/rust/src/main.rs");
