//! Tables with a loss: how they are read, which loss they get, and the model that comes of it.

mod labels;
mod load;
mod model;
mod shape;

pub use labels::{Chosen, Classes, load_and_choose};
pub use load::{
    Loaded, Rows, check_classes, check_folder, check_output, check_products, check_width, coded_columns,
    kept, load, load_table, memory_limit, mixed_columns, naming, refused, unreadable,
};
pub use model::{Certificate, FORMAT, LeftOutFeature, ModelFile, Provenance, TailBound};
pub use shape::{Cache, Reading, Shaping, delimiter, memory_size};

/// A number of things: 1 column, 2,000 columns.
pub fn counted(count: u64, thing: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{} {thing}{plural}", crate::words::grouped(count))
}
