//! What several tests need.
#![allow(dead_code, reason = "each test uses its part")]

use std::sync::Arc;

use pasta_io::{Data, Options, Source, read};
use pasta_opt::table::Features;

pub(crate) fn bytes(content: &[u8]) -> Source {
    Source::Bytes("table".into(), Arc::from(content))
}

pub(crate) fn source(text: &str) -> Source {
    bytes(text.as_bytes())
}

pub(crate) fn of(text: &str, options: &Options) -> Data {
    read(&source(text), options, None, &|_, _| {}).unwrap()
}

pub(crate) fn failure_of(content: &[u8], options: &Options) -> String {
    read(&bytes(content), options, None, &|_, _| {}).unwrap_err().to_string()
}

pub(crate) fn failure(text: &str, options: &Options) -> String {
    failure_of(text.as_bytes(), options)
}

/// Row, column and value of all that is stored.
pub(crate) fn entries(data: &Data) -> Vec<(usize, usize, f64)> {
    let mut entries = Vec::new();
    for row in 0..data.features.rows() {
        data.features.visit_row(row, |column, value| entries.push((row, column, value)));
    }
    entries
}

/// All values of a dense table.
pub(crate) fn dense(data: &Data) -> Vec<f64> {
    assert!(matches!(data.features, Features::Dense(_)));
    entries(data).into_iter().map(|(_, _, value)| value).collect()
}

/// Bytes of a value.
pub(crate) fn width(data: &Data) -> usize {
    match &data.features {
        Features::Dense(dense) => dense.values.width(),
        Features::Sparse(sparse) => sparse.values.width(),
    }
}
