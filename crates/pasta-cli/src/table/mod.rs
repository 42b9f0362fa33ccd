//! Tables of data: how they are read, which loss they get, and the model that comes of it.

mod flags;
mod score;

pub(crate) use flags::{Filling, Penalty, Reading, Shaping, losses};
pub(crate) use pasta_io::table::{
    Certificate, Chosen, Classes, FORMAT, LeftOutFeature, Loaded, ModelFile, Provenance, Rows, TailBound,
    check_classes, check_folder, check_output, check_products, check_width, coded_columns, counted, kept,
    load, load_and_choose, memory_limit, mixed_columns, naming, refused, unreadable,
};
pub(crate) use pasta_opt::fit::Verdict;
pub(crate) use score::score_words;
