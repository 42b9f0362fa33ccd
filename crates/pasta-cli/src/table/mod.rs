//! Tables of data: how they are read, which loss they get, and the model that comes of it.

mod flags;
mod labels;
mod load;
mod model;
mod score;

pub(crate) use flags::{Filling, Penalty, Reading, Shaping, delimiter, losses, memory_size};
pub(crate) use labels::{Chosen, Classes, load_and_choose};
pub(crate) use load::{
    Loaded, Rows, check_folder, check_output, check_products, check_width, kept, load, load_table,
    memory_limit, mixed_columns, naming, refused, unreadable,
};
pub(crate) use model::{Certificate, FORMAT, LeftOutFeature, ModelFile, Provenance, TailBound};
pub(crate) use pasta_opt::fit::Verdict;
pub(crate) use score::score_words;

/// So many things: 1 column, 2,000 columns.
pub(crate) fn counted(count: u64, thing: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{} {thing}{plural}", pasta_report::grouped(count))
}
