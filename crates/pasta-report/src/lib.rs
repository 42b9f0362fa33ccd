//! What the programs show: charts, tables, pages, and numbers in words.
//!
//! All text is written in the paper's letters as they stand in the code (`eps^2`, `|grad f|`). The terminal
//! shows it so; a page sets it (ε², |∇f|).
//!
//! [`console`] has what a program needs besides: failures and exit codes, flags, signals, threads.

pub mod answer;
pub mod calibration;
mod chart;
pub mod console;
pub mod constants;
mod folder;
mod interval;
mod page;
mod spread;
mod table;
mod typeset;

pub use chart::{Axis, Chart, Reference, Scale, Series, Shape, Tone, Where};
pub use folder::folder_for_page;
pub use interval::clopper_pearson;
pub use number::{given, grouped, significant};
pub use page::{Page, Part, Section};
pub use pasta_io::words as number;
pub use pasta_io::{nearest, write, write_file};
pub use spread::Spread;
pub use table::{Align, Column, Table, fitted, unbroken};
