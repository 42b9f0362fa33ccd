//! Tables of data: how they are read, which loss they get, and the model that comes of it.

mod flags;
mod labels;
mod load;
mod model;
mod score;

pub(crate) use flags::{Reading, Shaping, delimiter, has_classes, losses};
pub(crate) use labels::Classes;
pub(crate) use load::{Loaded, Rows, check_output, kept, load, load_table, naming, refused, unreadable};
pub(crate) use model::{Certificate, FORMAT, ModelFile, Provenance, TailBound};
pub(crate) use pasta_opt::fit::Verdict;
pub(crate) use score::{Score, class, score};
