//! Files with something changed at random: each is read or refused, none ends the program.
//!
//! `MUTATIONS=1000000 cargo test -p pasta-io --test mutations` tries a million of each kind; by default it is a few thousand.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::io::Write;

use common::bytes;
use pasta_io::{Label, Meaning, Missing, Options, Storage, read};
use pasta_opt::draws::{Address, Role, Stream};
use pasta_opt::table::Table;

fn trials() -> u64 {
    std::env::var("MUTATIONS").map_or(3000, |n| n.parse().unwrap())
}

fn below(stream: &mut Stream, n: usize) -> usize {
    ((stream.uniform() * n as f64) as usize).min(n - 1)
}

/// What breaks parsers: signs, separators, quotation marks, words that are numbers, and bytes that are no text.
const PIECES: &[&[u8]] = &[
    b"\"",
    b"\n",
    b"\r\n",
    b",",
    b";",
    b":",
    b" ",
    b"\t",
    b"#",
    b"-",
    b"+",
    b".",
    b"e",
    b"E9",
    b"nan",
    b"inf",
    b"NA",
    b"?",
    b"0",
    b"1e999",
    b"99999999999999999999",
    b"4294967295",
    b"\xff",
    b"\x00",
    b"\xef\xbb\xbf",
    b"qid:1",
    b"a",
    b"\"\"",
];

fn mutate(file: &[u8], stream: &mut Stream) -> Vec<u8> {
    let mut file = file.to_vec();
    for _ in 0..=below(stream, 4) {
        let at = below(stream, file.len() + 1);
        let until = (at + below(stream, 9)).min(file.len());
        match below(stream, 6) {
            0 if at < file.len() => file[at] ^= 1 << below(stream, 8),
            1 if at < file.len() => file[at] = (256.0 * stream.uniform()) as u8,
            2 => drop(file.drain(at..until)),
            3 => file.truncate(at),
            4 => {
                let copy = file[at..until].to_vec();
                let to = below(stream, file.len() + 1);
                file.splice(to..to, copy);
            }
            _ => drop(file.splice(at..at, PIECES[below(stream, PIECES.len())].iter().copied())),
        }
    }
    file
}

/// Reads mutated files. What is read must fit together; at least some must be refused and some read.
fn survive(role: u64, file: &[u8], choices: &[Options]) {
    let (mut read_, mut refused) = (0, 0);
    for trial in 0..trials() {
        let mut stream = Address { seed: role, role: Role::Setup, step: 0, sample: trial }.stream();
        let mutated = mutate(file, &mut stream);
        let options = &choices[below(&mut stream, choices.len())];
        match read(&bytes(&mutated), options, None, &|_, _| {}) {
            Ok(data) => {
                let (rows, columns) = (data.features.rows(), data.features.columns());
                assert_eq!(columns, data.encoding.width());
                let labels = data.labels.unwrap_or_else(|| vec![0.0; rows]);
                // Arrays may hold NaN: only then a table refuses what was read.
                let finite = file.starts_with(b"\x93NUMPY") || file.starts_with(b"PK");
                let weights = data.weights.map(|weights| std::sync::Arc::new(weights) as _);
                let whole = weights.is_none();
                let names = if columns < 1000 { data.encoding.names() } else { Vec::new() };
                let table = Table::new(data.features, std::sync::Arc::new(labels), weights, names);
                assert!(
                    table.is_ok() || finite || !whole,
                    "{:?} {:?}",
                    table.err(),
                    String::from_utf8_lossy(&mutated)
                );
                read_ += 1;
            }
            Err(error) => {
                assert!(!error.to_string().is_empty());
                refused += 1;
            }
        }
    }
    assert!(read_ > 0 && refused > 0, "{read_} read, {refused} refused");
}

#[test]
fn mutated_pairs() {
    let file = b"# pairs\n+1 1:0.5 3:-2e1 # more\n-1 2:7 4:1e-3\n0 1:1 2:2 3:3 4:4\n2\n";
    let dense = Options { storage: Storage::Dense, ..Options::default() };
    let classes = Options { meaning: Meaning::Classes, ..Options::default() };
    let first = Options { first_index: Some(1), ..Options::default() };
    let zero = |columns, storage| Options {
        first_index: Some(0),
        columns: Some(columns),
        storage,
        ..Options::default()
    };
    let limited = Options { memory: Some(200), ..Options::default() };
    let declared =
        [0, 1, 5].map(|columns| [Storage::Dense, Storage::Sparse].map(|storage| zero(columns, storage)));
    let mut choices = vec![Options::default(), dense, first, classes, limited];
    choices.extend(declared.into_iter().flatten());
    survive(1, file, &choices);
}

#[test]
fn mutated_tables() {
    let file = b"y,\"a b\",colour,w\n1,2.5,red,1\n2,-3e2,\"blue, or \"\"so\"\"\",.5\nNA,?,red,2\n4,1,,1\n";
    let label = Label::Column("y".into());
    let refuse = Options { label: label.clone(), ignore: vec!["colour".into()], ..Options::default() };
    let hot = |missing, storage| Options {
        label: label.clone(),
        weight: Some("w".into()),
        one_hot: true,
        missing,
        storage,
        ..Options::default()
    };
    let choices = [
        refuse,
        hot(Missing::DropRow, Storage::Dense),
        hot(Missing::Mean, Storage::Sparse),
        hot(Missing::DropRow, Storage::ByDensity),
        Options {
            label: Label::Column("1".into()),
            header: Some(false),
            one_hot: true,
            missing: Missing::DropRow,
            ..Options::default()
        },
        Options { meaning: Meaning::Classes, ..hot(Missing::DropRow, Storage::Dense) },
    ];
    survive(2, file, &choices);
    let asked = Options { categories: vec!["colour".into()], ..hot(Missing::Zero, Storage::ByDensity) };
    let limited = Options { memory: Some(2000), ..asked.clone() };
    survive(7, file, &[asked, limited]);
}

/// A block of a stream after another: the second is read as the first was, and may have more words and columns.
#[test]
fn mutated_streams() {
    let csv = b"y,c,a\n1,red,2\n2,blue,3\n3,green,4\n4,,5\n";
    let pairs = b"1 1:0.5 3:2\n-1 2:7\n1 1:1 9:1\n2 4:4\n";
    let hot = Options {
        label: Label::Column("y".into()),
        one_hot: true,
        grow: true,
        missing: Missing::Zero,
        ..Options::default()
    };
    let pairs_of = Options { grow: true, ..Options::default() };
    for (role, file, options) in [(8, &csv[..], hot), (9, &pairs[..], pairs_of)] {
        let (mut read_, mut refused) = (0, 0);
        for trial in 0..trials() {
            let mut stream = Address { seed: role, role: Role::Setup, step: 0, sample: trial }.stream();
            let Ok(first) = read(&bytes(&mutate(file, &mut stream)), &options, None, &|_, _| {}) else {
                continue;
            };
            let again = mutate(file, &mut stream);
            match read(&bytes(&again), &options, Some(&first.encoding), &|_, _| {}) {
                Ok(data) => {
                    assert_eq!(data.features.columns(), data.encoding.width());
                    let places = first.encoding.places_in(&data.encoding);
                    assert_eq!(places.len(), first.encoding.width());
                    assert!(places.windows(2).all(|pair| pair[0] < pair[1]));
                    assert!(places.last().is_none_or(|last| *last < data.encoding.width()));
                    read_ += 1;
                }
                Err(_) => refused += 1,
            }
        }
        assert!(read_ > 0 && refused > 0, "{read_} read, {refused} refused");
    }
}

#[test]
fn mutated_arrays_and_archives() {
    let mut file =
        b"\x93NUMPY\x01\x00\x76\x00{'descr': '<f8', 'fortran_order': False, 'shape': (4, 3), }".to_vec();
    file.resize(127, b' ');
    file.push(b'\n');
    // One label is R's NA, a NaN that carries a number.
    let number = |k: u64| if k == 5 { f64::from_bits(0x7ff0_0000_0000_07a2) } else { k as f64 };
    (0..12).for_each(|k| file.extend(number(k).to_le_bytes()));
    let numbers = Options { label: Label::Column("3".into()), ..Options::default() };
    survive(3, &file, &[Options { meaning: Meaning::Classes, ..numbers.clone() }, numbers]);
    let mut archive = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    let choice =
        zip::write::SimpleFileOptions::default().compression_method(zip::CompressionMethod::Deflated);
    for name in ["X.npy", "other.npy"] {
        archive.start_file(name, choice).unwrap();
        archive.write_all(&file).unwrap();
    }
    survive(
        4,
        &archive.finish().unwrap().into_inner(),
        &[Options { label: Label::IfThere(String::new()), ..Options::default() }],
    );
}

#[test]
fn mutated_compressed_text() {
    let text = "1 1:0.5 2:7\n-1 2:7\n".repeat(20);
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(text.as_bytes()).unwrap();
    survive(5, &gzip.finish().unwrap(), &[Options::default()]);
    let zstd =
        ruzstd::encoding::compress_to_vec(text.as_bytes(), ruzstd::encoding::CompressionLevel::Fastest);
    survive(6, &zstd, &[Options::default()]);
}
