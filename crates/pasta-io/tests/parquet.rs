//! Parquet files mean what the same CSV files mean.
#![cfg(feature = "parquet")]
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::sync::Arc;

use common::bytes;
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DoubleType, Int64Type};
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;
use pasta_io::{Data, Label, Missing, Options, ReadError, read};
use pasta_opt::draws::{Address, Role};

/// y, a (some missing), colour, ok.
fn file() -> Vec<u8> {
    let schema = "message table { required double y; optional int64 a; required binary colour (UTF8); required boolean ok; }";
    let schema = Arc::new(parse_message_type(schema).unwrap());
    let mut file = Vec::new();
    let mut writer =
        SerializedFileWriter::new(&mut file, schema, Arc::new(WriterProperties::builder().build())).unwrap();
    let mut group = writer.next_row_group().unwrap();
    let mut column = group.next_column().unwrap().unwrap();
    column.typed::<DoubleType>().write_batch(&[0.1, -2.5e300, 3.0], None, None).unwrap();
    column.close().unwrap();
    let mut column = group.next_column().unwrap().unwrap();
    column.typed::<Int64Type>().write_batch(&[7, 9], Some(&[1, 0, 1]), None).unwrap();
    column.close().unwrap();
    let words = ["red", "say \"so\", or not", "red"].map(ByteArray::from);
    let mut column = group.next_column().unwrap().unwrap();
    column.typed::<ByteArrayType>().write_batch(&words, None, None).unwrap();
    column.close().unwrap();
    let mut column = group.next_column().unwrap().unwrap();
    column.typed::<BoolType>().write_batch(&[true, false, true], None, None).unwrap();
    column.close().unwrap();
    group.close().unwrap();
    writer.close().unwrap();
    file
}

fn open(file: &[u8], missing: Missing, one_hot: bool) -> Result<Data, ReadError> {
    let options = Options { label: Label::Column("y".into()), missing, one_hot, ..Options::default() };
    read(&bytes(file), &options, None, &|_, _| {})
}

#[test]
fn nulls_words_and_numbers_are_read_as_those_of_a_csv_file() {
    let file = file();
    let data = open(&file, Missing::Mean, true).unwrap();
    assert_eq!(data.encoding.names(), ["a", "colour=red", "colour=say \"so\", or not", "ok"]);
    assert_eq!(data.labels, Some(vec![0.1, -2.5e300, 3.0]));
    let mut rows = Vec::new();
    (0..3).for_each(|row| {
        let mut cells = vec![0.0; 4];
        data.features.visit_row(row, |j, value| cells[j] = value);
        rows.push(cells);
    });
    assert_eq!(rows, [[7.0, 1.0, 0.0, 1.0], [8.0, 0.0, 1.0, 0.0], [9.0, 1.0, 0.0, 1.0]]);
    let missing = open(&file, Missing::Refuse, true).unwrap_err().to_string();
    assert!(missing.contains(":3:2: column \"a\" has no value here"), "{missing}");
    let words = open(&file, Missing::Zero, false).unwrap_err().to_string();
    assert!(words.contains("column \"colour\": expected a number, found \"red\""), "{words}");
}

#[test]
fn damaged_files_are_refused_and_nothing_panics() {
    let whole = file();
    let mut refused = 0;
    for trial in 0..3000_u64 {
        let mut xi = Address { seed: 7, role: Role::Setup, step: 0, sample: trial }.stream();
        let mut file = whole.clone();
        let at = (xi.uniform() * file.len() as f64) as usize;
        if xi.bernoulli(0.2) {
            file.truncate(at.max(4));
        } else {
            file[at.max(4)] ^= 1 << ((8.0 * xi.uniform()) as u32);
        }
        refused += u32::from(open(&file, Missing::Zero, true).is_err());
    }
    assert!(refused > 300, "{refused}");
}
