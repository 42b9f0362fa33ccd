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
mod interval;
mod nearest;
pub mod number;
mod page;
mod spread;
mod table;
mod typeset;
mod write;

pub use chart::{Axis, Chart, Reference, Scale, Series, Shape, Tone, Where};
pub use interval::clopper_pearson;
pub use nearest::nearest;
pub use number::{given, grouped, significant};
pub use page::{Page, Part, Section};
pub use spread::Spread;
pub use table::{Align, Column, Table, fitted, unbroken};
pub use write::{folder_for_page, write, write_file};
