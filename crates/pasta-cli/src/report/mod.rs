//! What the program shows: charts, tables, pages, and numbers in words.
//!
//! All text is written in the paper's letters as they stand in the code (`eps^2`, `|grad f|`). The terminal
//! shows it so; a page sets it (ε², |∇f|), see [`typeset`].

mod chart;
mod number;
mod page;
mod spread;
mod table;
mod typeset;
mod write;

pub(crate) use chart::{Axis, Chart, Reference, Scale, Series, Shape, Tone, Where};
pub(crate) use number::{given, grouped, significant};
pub(crate) use page::{Page, Part, Section};
pub(crate) use spread::Spread;
pub(crate) use table::{Align, Column, Table};
pub(crate) use write::{folder_for_page, write};
