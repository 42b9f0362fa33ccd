//! What files say, and what is said about files that are wrong.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]
#![expect(clippy::format_collect, reason = "files of tests are made line by line")]

mod common;

use std::fs;
use std::io::Write;

use common::{bytes, dense, entries, failure, of, source};
use pasta_io::{Blocks, Fault, Format, Label, Meaning, Missing, Options, Precision, Source, Storage, read};

fn options() -> Options {
    Options::default()
}

fn csv(label: &str) -> Options {
    Options { label: Label::Column(label.into()), ..options() }
}

#[test]
fn pairs_are_read_with_comments_blank_lines_and_any_blanks() {
    let text = "# a comment\n+1 1:0.5 3:-2e1 # another\n\n-1\t2:7 \r\n3.5\n";
    let data = of(text, &options());
    assert_eq!(data.labels.as_deref(), Some(&[1.0, -1.0, 3.5][..]));
    assert_eq!(entries(&data), [(0, 0, 0.5), (0, 2, -20.0), (1, 1, 7.0)]);
    assert_eq!(data.encoding.names(), ["1", "2", "3"]);
}

#[test]
fn the_first_column_is_0_if_that_appears_and_1_otherwise() {
    let shape = |text: &str, options: &Options| {
        let data = of(text, options);
        match data.encoding {
            pasta_io::Encoding::Numbered { columns, first_index } => (columns, first_index),
            cells @ pasta_io::Encoding::Cells { .. } => panic!("{cells:?}"),
        }
    };
    assert_eq!(shape("1 1:5 2:6\n", &options()), (2, Some(1)));
    assert_eq!(shape("1 1:5 2:6\n1 0:1\n", &options()), (3, Some(0)));
    assert_eq!(shape("1 1:5\n", &Options { first_index: Some(0), ..options() }), (2, Some(0)));
    // Also where it appears only after the dense layout was chosen, chunks later.
    let mut text = "1 1:1 2:2 3:3\n".repeat(200_000);
    text.push_str("2 0:9 3:4\n");
    let data = of(&text, &options());
    let values = dense(&data);
    assert_eq!(&values[..8], [0.0, 1.0, 2.0, 3.0, 0.0, 1.0, 2.0, 3.0]);
    assert_eq!(&values[values.len() - 4..], [9.0, 0.0, 0.0, 4.0]);
}

#[test]
fn the_layout_follows_the_density_unless_told() {
    let full = "1 1:1 2:2\n2 1:3 2:4\n";
    let thin = "1 1:1\n2 9:4\n";
    let is_dense = |text: &str, storage| {
        let data = of(text, &Options { storage, format: Some(Format::Libsvm), ..options() });
        matches!(data.features, pasta_opt::table::Features::Dense(_))
    };
    assert!(is_dense(full, Storage::ByDensity) && !is_dense(thin, Storage::ByDensity));
    assert!(is_dense(thin, Storage::Dense) && !is_dense(full, Storage::Sparse));
    // One wide row at the end makes a dense table thin.
    let text = full.repeat(100_000) + "1 5000:1\n";
    let data = of(&text, &options());
    assert!(matches!(data.features, pasta_opt::table::Features::Sparse(_)));
    assert_eq!((data.features.columns(), data.features.entries()), (5000, 400_001));
    let same = of(&text, &Options { storage: Storage::Sparse, ..options() });
    assert_eq!(entries(&data), entries(&same));
}

#[test]
fn what_is_wrong_with_pairs_is_said_with_its_place() {
    let says = |text: &str, what: &str| {
        let message = failure(text, &Options { format: Some(Format::Libsvm), ..options() });
        assert_eq!(message, what, "{text:?}");
    };
    says("1 1:1\n1 3:1 2:1\n", "table:2:7: index 2 comes after 3; the indices of a row must increase");
    says("1 2:1 2:1\n", "table:1:7: index 2 appears twice in this row");
    says("1 1:nan\n", "table:1:5: expected a finite number, found nan");
    says("inf 1:1\n", "table:1:1: expected a finite number, found inf");
    says("1 1:1e999\n", "table:1:5: 1e999 is too large for a double");
    says("1 1:1\nx 1:1\n", "table:2:1: expected a label, which is a number, found \"x\"");
    says("1 1:\n", "table:1:5: expected a value, which is a number, found \"\"");
    says("1 1:2,3\n", "table:1:5: expected a value, which is a number, found \"2,3\"");
    says("1,2 1:2\n", "table:1:1: expected a label, which is a number, found \"1,2\"");
    says("1 1:1 7\n", "table:1:7: expected index:value, found \"7\"");
    says("1 -1:1\n", "table:1:3: expected index:value, found \"-1:1\"");
    says("1 99999999999:1\n", "table:1:3: index 99999999999 is beyond 4294967294, the largest there can be");
    says(
        "1 qid:3 1:1\n",
        "table:1:3: query groups (qid) have no meaning for a loss that looks at one row at a time",
    );
    says("", "table: it has no rows");
    says("# nothing\n\n", "table: it has no rows");
    says("1\n2\n", "table: its rows have no features");
    let message = common::failure_of(b"1 1:\xff\xfe\n", &options());
    assert_eq!(message, "table:1:5: expected text, found the byte 0xff, which is not UTF-8");
    let narrow = Options { precision: Some(Precision::F32), format: Some(Format::Libsvm), ..options() };
    assert_eq!(failure("1 1:1e39\n", &narrow), "table:1:5: 1e39 is too large for a float of 32 bits");
    let first = Options { first_index: Some(1), ..options() };
    assert_eq!(failure("1 0:1\n", &first), "table:1:3: index 0 in a file whose first column is 1");
}

#[test]
fn lines_are_counted_over_many_chunks() {
    let mut text = "1 1:0.125 2:3.25 # some comment to make it long\n".repeat(300_000);
    text.push_str("1 1:x\n");
    let message = failure(&text, &options());
    assert!(message.starts_with("table:300001:5: expected a value"), "{message}");
    let mut table = "a,b,\"c\nd\"\n".to_owned() + &"1,2,3\n\"4\",5,6\n".repeat(300_000);
    table.push_str("1,2\n");
    let message = failure(&table, &csv("a"));
    assert_eq!(message, "table:600003: 2 columns, but the first line has 3");
}

#[test]
fn a_table_with_a_header_is_read_by_names() {
    let text = "price;rooms;\"old; very\"\n3.5;2;1\n\n4;3;0\n";
    let data = of(text, &csv("price"));
    assert_eq!(
        (data.encoding.names(), data.label.as_str()),
        (vec!["rooms".into(), "old; very".into()], "price")
    );
    assert_eq!(dense(&data), [2.0, 1.0, 3.0, 0.0]);
    assert_eq!(data.labels.unwrap(), [3.5, 4.0]);
    let weighted = Options { weight: Some("rooms".into()), ..csv("1") };
    let data = of(text, &weighted);
    assert_eq!((dense(&data), data.weights), (vec![1.0, 0.0], Some(vec![2.0, 3.0])));
    // A byte order mark, tabs, and the name that labels have.
    let data = of("\u{feff}x\ty\n1\t2\n", &options());
    assert_eq!((data.encoding.names(), data.labels), (vec!["x".into()], Some(vec![2.0])));
}

#[test]
fn a_table_without_a_header_is_read_by_numbers() {
    let data = of("1,2,3\n4,5,6\n", &csv("3"));
    assert_eq!((dense(&data), data.labels), (vec![1.0, 2.0, 4.0, 5.0], Some(vec![3.0, 6.0])));
    assert_eq!(data.encoding.names(), ["1", "2"]);
    let data = of("  1   2  3\n4 5 6  \n", &csv("1"));
    assert_eq!(dense(&data), [2.0, 3.0, 5.0, 6.0]);
    let data = of("1 2\n3 4\n", &Options { header: Some(true), ..csv("1") });
    assert_eq!((dense(&data), data.encoding.names()), (vec![4.0], vec!["2".to_owned()]));
}

#[test]
fn missing_values_are_refused_unless_it_is_said_what_stands_for_them() {
    let text = "y,a,b\n1,2,NA\n2,,5\n3,4,8\n4,9,6\n";
    let message = failure(text, &csv("y"));
    assert_eq!(message, "table:2:3: column \"b\" has no value here (\"NA\")");
    let with = |missing| of(text, &Options { missing, ..csv("y") });
    assert_eq!(dense(&with(Missing::Zero)), [2.0, 0.0, 0.0, 5.0, 4.0, 8.0, 9.0, 6.0]);
    // Means are taken step by step, so the last digit may differ.
    assert!((dense(&with(Missing::Mean))[1] - 19.0 / 3.0).abs() < 1e-14);
    assert_eq!(dense(&with(Missing::Median))[1..3], [6.0, 4.0]);
    let dropped = with(Missing::DropRow);
    assert_eq!((dense(&dropped), dropped.left_out.len()), (vec![4.0, 8.0, 9.0, 6.0], 2));
    assert_eq!(dropped.labels.unwrap(), [3.0, 4.0]);
    let message = failure("y,a\n?,1\n", &Options { missing: Missing::Mean, ..csv("y") });
    assert_eq!(message, "table:2:1: the label \"y\" has no value here (\"?\")");
    // Of a column without any value there is no mean, and where every row lacks one there is no row.
    let none = "y,a,b\n1,2,\n3,4,NA\n";
    let message = |missing| failure(none, &Options { missing, ..csv("y") });
    for missing in [Missing::Mean, Missing::Median] {
        assert_eq!(
            message(missing),
            "table: column \"b\" has no value in any row, so nothing can be filled in"
        );
    }
    assert_eq!(message(Missing::DropRow), "table: each of its 2 rows lacks a value, so none is left");
    assert_eq!(dense(&of(none, &Options { missing: Missing::Zero, ..csv("y") })), [2.0, 0.0, 4.0, 0.0]);
    // What was learnt stands for what is missing elsewhere.
    let mean = with(Missing::Mean);
    let other = read(
        &source("b,a\n1,?\n"),
        &Options { label: Label::IfThere("y".into()), ..options() },
        Some(&mean.encoding),
        &|_, _| {},
    );
    assert_eq!((dense(&other.unwrap())), [5.0, 1.0]);
}

#[test]
fn words_are_refused_unless_columns_are_made_of_them() {
    let text = "y,colour,n\nyes,red,1\nno,blue,2\nyes,red,3\nno,7,4\n";
    assert_eq!(failure(text, &csv("y")), "table:2:2: column \"colour\": expected a number, found \"red\"");
    let hot = Options { one_hot: true, storage: Storage::Dense, ..csv("y") };
    let data = of(text, &hot);
    assert_eq!(data.encoding.names(), ["colour=7", "colour=blue", "colour=red", "n"]);
    let rows = [[0.0, 0.0, 1.0, 1.0], [0.0, 1.0, 0.0, 2.0], [0.0, 0.0, 1.0, 3.0], [1.0, 0.0, 0.0, 4.0]];
    assert_eq!(dense(&data), rows.concat());
    assert_eq!(
        (data.classes.clone(), data.labels.clone().unwrap()),
        (vec!["no".into(), "yes".into()], vec![1.0, 0.0, 1.0, 0.0])
    );
    let sparse = of(text, &Options { storage: Storage::Sparse, ..hot.clone() });
    assert_eq!(
        entries(&sparse),
        entries(&data).into_iter().filter(|entry| entry.2 != 0.0).collect::<Vec<_>>()
    );
    let ignored = of(text, &Options { ignore: vec!["colour".into()], ..csv("y") });
    assert_eq!(dense(&ignored), [1.0, 2.0, 3.0, 4.0]);
    let predict = Options { label: Label::IfThere("y".into()), ..options() };
    let again = |text: &str| read(&source(text), &predict, Some(&data.encoding), &|_, _| {});
    assert_eq!(dense(&again("n,colour\n5,blue\n6,7.0\n").unwrap()), [0.0, 1.0, 0.0, 5.0, 1.0, 0.0, 0.0, 6.0]);
    let message = |text: &str| again(text).unwrap_err().to_string();
    assert_eq!(
        message("n,colour\n5,green\n"),
        "table:2:2: column \"colour\": \"green\" is not one of its 3 categories"
    );
    assert_eq!(message("n,size\n5,1\n"), "table: column \"size\" is unknown; expected colour, n");
    assert_eq!(message("n\n5\n"), "table: there is no column \"colour\"; the file has n");
    assert_eq!(message("1 1:1\n"), "table: the columns are matched by name, and a LIBSVM file has no names");
}

#[test]
fn a_word_in_a_column_of_numbers_makes_no_categories_of_the_numbers() {
    let hot = Options { one_hot: true, ..csv("y") };
    let numbers = |n: usize| (0..n).map(|k| format!("{k},{k}.5,red\n")).collect::<String>();
    let stray = |n: usize| format!("y,a,c\n{}0,unknown,blue\n1,0.5,red\n", numbers(n));
    // Twenty different numbers may be categories, and twenty-one are not.
    assert_eq!(of(&stray(20), &hot).encoding.width(), 21 + 2);
    let what = "column \"a\" holds 21 different numbers, but \"unknown\" here";
    assert_eq!(failure(&stray(21), &hot), format!("table:23:2: {what}"));
    // The line is that of the file, chunks later, too.
    let late = format!("y,a,c\n{}0,unknown,blue\n", numbers(200_000));
    assert!(failure(&late, &hot).starts_with("table:200002:2: "), "{}", failure(&late, &hot));
    let said = Options { categories: vec!["a".into()], ..hot };
    assert_eq!(of(&stray(21), &said).encoding.width(), 22 + 2);
}

#[test]
fn categories_are_made_of_numbers_where_that_is_asked_for() {
    let text = "y,a,zip\n1,2,7\n2,3,80\n3,4,7.0\n";
    let asked = Options { categories: vec!["zip".into()], storage: Storage::Dense, ..csv("y") };
    let data = of(text, &asked);
    assert_eq!(data.encoding.names(), ["a", "zip=7", "zip=80"]);
    assert_eq!(dense(&data), [2.0, 1.0, 0.0, 3.0, 0.0, 1.0, 4.0, 1.0, 0.0]);
    let predict = Options { label: Label::IfThere("y".into()), ..options() };
    let again = read(&source("a,zip\n5,80\n"), &predict, Some(&data.encoding), &|_, _| {});
    assert_eq!(dense(&again.unwrap()), [5.0, 0.0, 1.0]);
    // Words are still refused elsewhere.
    let message = failure("y,a,zip\n1,red,7\n", &asked);
    assert_eq!(message, "table:2:2: column \"a\": expected a number, found \"red\"");
    let label = Options { categories: vec!["y".into()], ..csv("y") };
    assert_eq!(failure(text, &label), "table: column \"y\" is no feature, so it has no categories");
}

#[test]
fn what_is_wrong_with_a_table_is_said_with_its_place() {
    let says = |text: &str, what: &str| assert_eq!(failure(text, &csv("y")), what, "{text:?}");
    says("y,a\n1,2\n3\n", "table:3: 1 column, but the first line has 2");
    says("y,a\n1,inf\n", "table:2:2: expected a finite number, found inf");
    says("y,a\n1,1e999\n", "table:2:2: 1e999 is too large for a double");
    says("y,a\n1,\"2\n", "table:2:2: a quotation mark without its partner");
    says("y,a\n1,\"2\"x\n", "table:2:2: text behind the quotation mark that ends a cell");
    says("y,a\n1,5\" pipe\n", "table:2:2: a quotation mark in a cell that does not begin with one");
    says("y,a,a\n1,2,3\n", "table: two columns are called \"a\"");
    says("y,a\n", "table: it has no rows");
    says("y\n1\n", "table: its rows have no features");
    says("a,b\n1,2\n", "table: there is no column \"y\"; the file has a, b");
    assert_eq!(failure("a,b\n1,2\n", &options()), "table: which column is the label? The file has a, b");
    let message = common::failure_of(b"y,a\n1,\xe9t\xe9\n", &csv("y"));
    assert_eq!(message, "table:2:2: expected text, found the byte 0xe9, which is not UTF-8");
    let twice = Options { weight: Some("y".into()), ..csv("y") };
    assert!(failure("y,a\n1,2\n", &twice).contains("cannot be the label and something else"));
    if cfg!(not(feature = "parquet")) {
        says(
            "PAR1....",
            "table: this is a Parquet file, and the program was built without the feature parquet; write it as CSV or NPY",
        );
    }
}

#[test]
fn what_is_no_table_is_called_by_its_name() {
    let says = |content: &[u8], what: &str| {
        assert_eq!(common::failure_of(content, &csv("y")), format!("table: {what}"), "{content:?}");
    };
    let wide = |order: fn(u16) -> [u8; 2]| "y,a\n1,2\n".encode_utf16().flat_map(order).collect::<Vec<u8>>();
    says(&[&b"\xff\xfe"[..], &wide(u16::to_le_bytes)].concat(), "this is text in UTF-16; write it in UTF-8");
    says(&[&b"\xfe\xff"[..], &wide(u16::to_be_bytes)].concat(), "this is text in UTF-16; write it in UTF-8");
    let nul = "NUL bytes near its beginning: this is no text, or text in UTF-16";
    says(&wide(u16::to_le_bytes), nul);
    says(&[0; 5000], nul);
    says(
        b"y,a\r1,2\r3,4\r",
        "its lines end with a carriage return alone; tr '\\r' '\\n' makes lines of them",
    );
    for text in ["{\"y\": 1}\n", " [{\"y\": 1}]", "[[1, 2]]\n"] {
        says(text.as_bytes(), "this looks like JSON; write it as CSV");
    }
    says(b"BZh91AY&SY rest", "this is compressed by bzip2; gzip and zstd are read");
    says(b"\xfd7zXZ\0 rest", "this is compressed by xz; gzip and zstd are read");
    let packed = |bytes: &[u8]| {
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        gzip.write_all(bytes).unwrap();
        gzip.finish().unwrap()
    };
    says(&packed(&packed(b"y,a\n1,2\n")), "this is compressed twice; unpack it once");
    // One line that Windows has ended, or nobody, is a line.
    assert_eq!(dense(&of("1,2\r\n", &csv("1"))), [2.0]);
    assert_eq!(dense(&of("1,2", &csv("1"))), [2.0]);
}

#[test]
fn a_column_without_a_name_is_left_out_by_its_number_or_refused() {
    // As pandas writes a frame with its index, and as others end each line with a delimiter.
    for (text, number) in [(",y,a\n0,5,2\n1,6,3\n", 1), ("y,a,\n5,2,\n6,3,\n", 3)] {
        assert_eq!(failure(text, &csv("y")), format!("table: column {number} has no name"));
        let data = of(text, &Options { ignore: vec![number.to_string()], ..csv("y") });
        assert_eq!((dense(&data), data.encoding.names()), (vec![2.0, 3.0], vec!["a".to_owned()]));
    }
    // Elsewhere an empty cell is a missing value of a first row.
    let row = "red,,blue\n";
    assert_eq!(failure(row, &options()), "table: which column is the label? The file has 1, 2, 3");
    let hint = |text: &str| read(&source(text), &csv("2019"), None, &|_, _| {}).unwrap_err().fault.hint();
    assert!(hint("2019,2020\n1,2\n").is_some_and(|hint| hint.contains("--header yes")));
    assert_eq!(hint("y,a\n1,2\n"), None);
}

#[test]
fn numbers_of_other_customs_are_told_from_words() {
    let hint = |cell: &str| {
        let text = format!("y;a\n1;{cell}\n");
        read(&source(&text), &csv("y"), None, &|_, _| {}).unwrap_err().fault.hint().unwrap()
    };
    for cell in ["0,5", "1,234.5", "1'000", "5%", "$5", "5 €", "-1 000,5"] {
        assert_eq!(
            hint(cell),
            "numbers have a decimal point, no separators of thousands and no unit",
            "{cell}"
        );
    }
    for cell in ["red", "2020-01-01", "0x10", "-", "%"] {
        assert!(hint(cell).starts_with("--one-hot"), "{cell}");
    }
    // Only where another width would hold it.
    let large = |text: &str, precision| {
        let options = Options { precision, ..csv("y") };
        read(&source(text), &options, None, &|_, _| {}).unwrap_err().fault.hint()
    };
    assert!(large("y,a\n1,1e39\n", Some(Precision::F32)).is_some());
    assert_eq!(large("y,a\n1,1e400\n", None), None);
}

#[test]
fn a_choice_that_a_kind_of_file_does_not_have_is_refused() {
    let says = |options: &Options, what: &str| assert!(failure("1 1:2\n", options).contains(what));
    says(&csv("y"), "a LIBSVM file has its labels first in each line");
    says(&Options { weight: Some("w".into()), ..options() }, "a LIBSVM file has no column of weights");
    says(&Options { ignore: vec!["1".into()], ..options() }, "columns of a LIBSVM file cannot be ignored");
    says(
        &Options { labels: Some(bytes(b"")), ..options() },
        "labels in a file of their own are for NPY and NPZ",
    );
}

#[test]
fn compressed_text_is_read_and_a_cut_file_is_noticed() {
    let text = "1 1:0.5 2:1\n".repeat(1000);
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(text.as_bytes()).unwrap();
    let gzip = gzip.finish().unwrap();
    let zstd =
        ruzstd::encoding::compress_to_vec(text.as_bytes(), ruzstd::encoding::CompressionLevel::Fastest);
    for packed in [gzip, zstd] {
        // Two members, one after another, are one file.
        let twice = [packed.clone(), packed.clone()].concat();
        let rows = |content: &[u8]| {
            read(&bytes(content), &options(), None, &|_, _| {}).map(|data| data.features.rows())
        };
        assert_eq!((rows(&packed), rows(&twice)), (Ok(1000), Ok(2000)));
        let message = rows(&packed[..packed.len() / 2]).unwrap_err().to_string();
        assert!(message.contains("data is cut short or damaged"), "{message}");
    }
}

/// An array of numpy, version 1.0.
fn npy(descr: &str, fortran: bool, shape: &str, data: &[u8]) -> Vec<u8> {
    let order = if fortran { "True" } else { "False" };
    let mut header = format!("{{'descr': '{descr}', 'fortran_order': {order}, 'shape': {shape}, }}");
    header.push_str(&" ".repeat((64 - (11 + header.len()) % 64) % 64));
    header.push('\n');
    let mut file = b"\x93NUMPY\x01\x00".to_vec();
    file.extend((header.len() as u16).to_le_bytes());
    file.extend(header.as_bytes());
    file.extend(data);
    file
}

fn le(values: &[f64]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

#[test]
fn arrays_are_read_in_every_order_and_kind() {
    let six = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0];
    let file = |content: &[u8], label: &str| read(&bytes(content), &csv(label), None, &|_, _| {}).unwrap();
    let c = file(&npy("<f8", false, "(2, 3)", &le(&six)), "3");
    assert_eq!((dense(&c), c.labels), (vec![1.0, 2.0, 4.0, 5.0], Some(vec![3.0, 6.0])));
    let f = file(&npy("<f8", true, "(2, 3)", &le(&six)), "1");
    assert_eq!((dense(&f), f.labels), (vec![3.0, 5.0, 4.0, 6.0], Some(vec![1.0, 2.0])));
    let big: Vec<u8> = six.iter().flat_map(|v| v.to_be_bytes()).collect();
    assert_eq!(dense(&file(&npy(">f8", false, "(2, 3)", &big), "3")), [1.0, 2.0, 4.0, 5.0]);
    let small: Vec<u8> = [-1_i8, 2, 3, -128].iter().map(|v| *v as u8).collect();
    let i = file(&npy("|i1", false, "(2, 2)", &small), "2");
    assert_eq!((dense(&i), i.labels), (vec![-1.0, 3.0], Some(vec![2.0, -128.0])));
    let single: Vec<u8> = [0.5_f32, 1.5].iter().flat_map(|v| v.to_le_bytes()).collect();
    let s = file(&npy("<f4", false, "(1, 2)", &single), "2");
    assert_eq!((common::width(&s), dense(&s)), (4, vec![0.5]));
}

#[test]
fn an_array_in_a_file_is_mapped_and_its_labels_may_be_another_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    fs::write(path("X.npy"), npy("<f8", false, "(3, 2)", &le(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]))).unwrap();
    fs::write(path("y.npy"), npy("<f8", false, "(3,)", &le(&[7.0, 8.0, 9.0]))).unwrap();
    fs::write(path("short.npy"), npy("<f8", false, "(2,)", &le(&[7.0, 8.0]))).unwrap();
    let with = |labels: &str| Options { labels: Some(Source::File(path(labels))), ..options() };
    let data = read(&Source::File(path("X.npy")), &with("y.npy"), None, &|_, _| {}).unwrap();
    assert_eq!((dense(&data), data.labels), (vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0], Some(vec![7.0, 8.0, 9.0])));
    let error = read(&Source::File(path("X.npy")), &with("short.npy"), None, &|_, _| {}).unwrap_err();
    assert!(error.to_string().ends_with("2 labels for 3 rows"), "{error}");
    let error = read(&Source::File(path("X.npy")), &options(), None, &|_, _| {}).unwrap_err();
    assert!(error.to_string().contains("which column is the label?"), "{error}");
    let error = read(&Source::File(path("none.npy")), &options(), None, &|_, _| {}).unwrap_err();
    assert!(error.to_string().contains("No such file"), "{error}");
}

#[test]
fn arrays_that_are_wrong_are_refused() {
    let says = |file: &[u8], what: &str| {
        let message = common::failure_of(file, &csv("1"));
        assert!(message.contains(what), "{message}");
    };
    let good = npy("<f8", false, "(2, 3)", &le(&[0.0; 6]));
    says(&good[..good.len() - 1], "should have 6 numbers, but is cut short");
    says(&[&good[..], &[0]].concat(), "should have 6 numbers, but the file goes on");
    says(&good[..20], "the header is cut short");
    says(&npy("<c16", false, "(2, 3)", &[]), "but the header says");
    says(&npy("<f8", false, "(2, 3, 4)", &[]), "found the shape [2, 3, 4]");
    says(&npy("<f8", false, "(99999999999999, 99999999999)", &[]), "does not fit into memory");
    says(&npy("<f8", false, "(0, 3)", &[]), "it has no rows");
    says(&npy("<f8", false, "(3,)", &le(&[0.0; 3])), "its rows have no features");
}

/// A ZIP archive without compression.
fn npz(arrays: &[(&str, Vec<u8>)]) -> Vec<u8> {
    let mut archive = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    for (k, (name, bytes)) in arrays.iter().enumerate() {
        let method =
            if k % 2 == 0 { zip::CompressionMethod::Stored } else { zip::CompressionMethod::Deflated };
        let options = zip::write::SimpleFileOptions::default().compression_method(method);
        archive.start_file(format!("{name}.npy"), options).unwrap();
        archive.write_all(bytes).unwrap();
    }
    archive.finish().unwrap().into_inner()
}

#[test]
fn archives_hold_x_y_and_weights_or_a_sparse_matrix() {
    let whole = |values: &[i32]| values.iter().flat_map(|v| v.to_le_bytes()).collect::<Vec<u8>>();
    let x = npy("<f8", false, "(2, 2)", &le(&[1.0, 2.0, 3.0, 4.0]));
    let y = npy("<i4", false, "(2,)", &whole(&[5, -6]));
    let w = npy("<f8", false, "(2,)", &le(&[1.0, 0.5]));
    let data =
        read(&bytes(&npz(&[("X", x.clone()), ("y", y.clone()), ("w", w)])), &options(), None, &|_, _| {})
            .unwrap();
    assert_eq!(
        (dense(&data), data.labels, data.weights),
        (vec![1.0, 2.0, 3.0, 4.0], Some(vec![5.0, -6.0]), Some(vec![1.0, 0.5]))
    );
    let csr = |indices: &[i32]| {
        npz(&[
            ("indices", npy("<i4", false, "(3,)", &whole(indices))),
            ("indptr", npy("<i4", false, "(3,)", &whole(&[0, 2, 3]))),
            ("data", npy("<f8", false, "(3,)", &le(&[1.0, 2.0, 3.0]))),
            ("shape", npy("<i4", false, "(2,)", &whole(&[2, 5]))),
            ("y", y.clone()),
        ])
    };
    let data = read(&bytes(&csr(&[1, 4, 0])), &options(), None, &|_, _| {}).unwrap();
    assert_eq!(entries(&data), [(0, 1, 1.0), (0, 4, 2.0), (1, 0, 3.0)]);
    let error = |file: &[u8]| common::failure_of(file, &options());
    // A square matrix of compressed columns has as many starts as one of rows, and is its transpose.
    let square = |format: &[u8]| {
        npz(&[
            ("indices", npy("<i4", false, "(2,)", &whole(&[0, 0]))),
            ("indptr", npy("<i4", false, "(3,)", &whole(&[0, 1, 2]))),
            ("format", npy("|S3", false, "()", format)),
            ("data", npy("<f8", false, "(2,)", &le(&[1.0, 2.0]))),
            ("shape", npy("<i4", false, "(2,)", &whole(&[2, 2]))),
            ("y", y.clone()),
        ])
    };
    let data = read(&bytes(&square(b"csr")), &options(), None, &|_, _| {}).unwrap();
    assert_eq!(entries(&data), [(0, 0, 1.0), (1, 0, 2.0)]);
    for format in ["csc", "coo"] {
        let message = error(&square(format.as_bytes()));
        assert!(
            message.contains(&format!("in the format \"{format}\"; save_npz(file, matrix.tocsr())")),
            "{message}"
        );
    }
    let mut plain = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    plain.start_file("a.csv", zip::write::SimpleFileOptions::default()).unwrap();
    plain.write_all(b"y,a\n1,2\n").unwrap();
    assert!(error(&plain.finish().unwrap().into_inner()).contains("an archive without arrays of numpy"));
    assert!(error(&csr(&[1, 9, 0])).contains("an index is no column"));
    assert!(error(&csr(&[4, 1, 0])).contains("index 1 comes after 4"));
    assert!(error(&npz(&[("y", y.clone())])).contains("there is no array X"));
    assert!(error(&npz(&[("X", x)])).contains("which column is the label?"));
    assert!(error(b"PK\x03\x04 and nothing else").contains("the archive cannot be read"));
}

#[test]
fn the_rows_are_the_same_on_any_number_of_threads() {
    let text: String = (0..200_000).map(|k| format!("{} {}:{}.5 900:1\n", k % 7, 1 + k % 800, k)).collect();
    let table: String = "y,a,w\n".to_owned()
        + &(0..150_000)
            .map(|k| format!("{},\"{}.25\",{}\n", k % 5, k, ["red", "blue", "\"a\nb\""][k % 3]))
            .collect::<String>();
    let hot = Options { one_hot: true, ..csv("y") };
    let on = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| (entries(&of(&text, &options())), entries(&of(&table, &hot))))
    };
    let (one, two, five) = (on(1), on(2), on(5));
    assert!(one == two && one == five);
    assert_eq!((one.0.len(), one.1.len()), (400_000, 600_000));
}

#[test]
fn a_dense_table_with_hardly_a_value_in_it_is_refused() {
    let options = Options { storage: Storage::Dense, ..options() };
    let message = failure("1 1:1\n2 3000000000:1\n", &options);
    assert_eq!(message, "table: a dense table of 2 x 3000000000 values does not fit into memory");
}

fn classes(label: &str) -> Options {
    Options { meaning: Meaning::Classes, ..csv(label) }
}

#[test]
fn names_of_classes_are_texts_also_where_they_look_like_numbers() {
    let names = |text: &str| {
        let data = of(text, &classes("y"));
        (data.classes, data.labels.unwrap())
    };
    // Whole numbers that are one double, codes with zeros before them, versions.
    let ids = "y,a\n900719925474099301,1\n900719925474099300,2\n900719925474109302,3\n900719925474099301,4\n";
    let expected = ["900719925474099300", "900719925474099301", "900719925474109302"];
    assert_eq!(names(ids), (expected.map(str::to_owned).to_vec(), vec![1.0, 0.0, 2.0, 1.0]));
    assert_eq!(names("y,a\n10001,1\n02139,2\n").0, ["02139", "10001"]);
    assert_eq!(names("y,a\n1.10,1\n1.9,2\n1.2,3\n").0, ["1.10", "1.2", "1.9"]);
    // In the order of their size; with a word among them, of the alphabet.
    assert_eq!(names("y,a\n10,1\n9,2\n-1,3\n").0, ["-1", "9", "10"]);
    assert_eq!(names("y,a\n10,1\n9,2\n007x,3\n").0, ["007x", "10", "9"]);
    // A plus is no other class, and a class without a row is none.
    assert_eq!(names("y,a\n+1,1\n-1,2\n1,3\n"), (vec!["-1".into(), "1".into()], vec![1.0, 0.0, 1.0]));
    assert_eq!(names("y,a\n+1,1\n-1,2\n").0, ["-1", "+1"]);
    let dropped = Options { missing: Missing::DropRow, ..classes("y") };
    assert_eq!(of("y,a\nu,1\nv,2\nw,\n", &dropped).classes, ["u", "v"]);
    // Numbers stay numbers where they are meant.
    assert_eq!(of("y,a\n007,1\n1.10,2\n", &csv("y")).labels.unwrap(), [7.0, 1.1]);
}

#[test]
fn two_texts_that_are_one_number_are_refused_as_classes() {
    for (a, b) in [("1", "1.0"), ("7", "007"), ("1.1", "1.10"), ("1e5", "100000"), ("0", "-0")] {
        let says = format!("the labels {a:?} and {b:?} are the same number: one class or two?");
        let text = format!("y,a\n{a},1\nx,2\n\n{b},3\n");
        assert_eq!(failure(&text, &classes("y")), format!("table:5: {says}"));
        let pairs = format!("{a} 1:1\n-3 1:2\n{b} 1:3\n");
        let libsvm = Options { meaning: Meaning::Classes, format: Some(Format::Libsvm), ..options() };
        assert_eq!(failure(&pairs, &libsvm), format!("table:3: {says}"));
        // A file that is read in the way of another is not where classes come from.
        let first = of("y,a\n1,1\n2,2\n", &classes("y"));
        let again = read(&source(&text), &classes("y"), Some(&first.encoding), &|_, _| {});
        assert_eq!(again.unwrap().classes.len(), 3);
    }
    // Far into a file, whose parts are read by several threads, the line is that of the text.
    let text = "y,a\n".to_owned() + &"1,2\n2,3\n".repeat(100_000) + "2.0,1\n";
    assert!(failure(&text, &classes("y")).starts_with("table:200002: the labels \"2\" and \"2.0\""));
    // In a stream, wherever they stand.
    let mut blocks = Blocks::open(&source(&text), &classes("y"), 1 << 18).unwrap();
    let error = std::iter::repeat_with(|| blocks.next_block(&|_, _| {})).find_map(Result::err).unwrap();
    assert_eq!(error.fault, Fault::Alike { first: "2".into(), second: "2.0".into() });
}

#[test]
fn classes_of_pairs_and_arrays_are_exact() {
    let libsvm = Options { meaning: Meaning::Classes, ..options() };
    let data = of("+1 1:1\n-1 1:2\n1 1:3\n", &libsvm);
    assert_eq!((data.classes, data.labels.unwrap()), (vec!["-1".into(), "1".into()], vec![1.0, 0.0, 1.0]));
    let ids = of("900719925474099301 1:1\n900719925474099300 1:2\n", &libsvm);
    assert_eq!(ids.classes, ["900719925474099300", "900719925474099301"]);

    let x = npy("<f8", false, "(3, 1)", &le(&[1.0, 2.0, 3.0]));
    let labelled = |y: Vec<u8>| {
        let file = npz(&[("X", x.clone()), ("y", y)]);
        let source = Source::Bytes("table".into(), std::sync::Arc::from(&file[..]));
        read(&source, &libsvm, None, &|_, _| {})
    };
    let whole = |values: [i64; 3]| npy("<i8", false, "(3,)", &values.map(i64::to_le_bytes).concat());
    let data = labelled(whole([900_719_925_474_099_301, 900_719_925_474_099_300, -1])).unwrap();
    assert_eq!(data.classes, ["-1", "900719925474099300", "900719925474099301"]);
    assert_eq!(data.labels.unwrap(), [2.0, 1.0, 0.0]);
    let data = labelled(npy("<f8", false, "(3,)", &le(&[1.0, -0.0, 0.0]))).unwrap();
    assert_eq!((data.classes, data.labels.unwrap()), (vec!["0".into(), "1".into()], vec![1.0, 0.0, 0.0]));
    let error = labelled(npy("<f8", false, "(3,)", &le(&[1.0, f64::NAN, 0.0]))).unwrap_err();
    assert_eq!(error.to_string(), "table: label 2: expected a finite number, found NaN");
}

#[test]
fn classes_are_kept_in_a_cache() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.csv");
    // Several blocks; the class that is first in order comes last.
    fs::write(&path, "y,a\n".to_owned() + &"07,2\ndog,3\n".repeat(600_000) + "02139,1\n").unwrap();
    for written in [true, false] {
        let cached = pasta_io::cached(&path, &classes("y"), None, &|_, _| {}, &|_| {}).unwrap();
        let labels = cached.data.labels.unwrap();
        assert_eq!(
            (cached.written, cached.data.classes),
            (written, ["02139", "07", "dog"].map(str::to_owned).to_vec())
        );
        assert_eq!((labels[0], labels[1], labels[1_200_000]), (1.0, 2.0, 0.0));
    }
}

#[test]
fn a_first_line_with_numbers_is_a_header_if_a_word_in_it_stands_above_numbers() {
    let names = |text: &str, label: &str| {
        let data = of(text, &csv(label));
        (data.encoding.is_named(), data.encoding.names().join(" "), data.features.rows())
    };
    // Wavelengths, years, what pandas calls columns without names; with row numbers, gaps and a missing value.
    assert_eq!(names("400,410,y\n.1,.2,1\n.3,.4,2\n", "3"), (true, "400 410".into(), 2));
    assert_eq!(names("id,2019,2020\n1,.2,1\n2,.4,2\n", "2020"), (true, "id 2019".into(), 2));
    assert_eq!(names("y 1 2\n\n3 4 5", "y"), (true, "1 2".into(), 1));
    let drop = Options { missing: Missing::DropRow, ..csv("price") };
    assert_eq!(of("1,price\n1,NA\n2,5\n", &drop).encoding.names(), ["1"]);
    // The name of labels, above words; not where it is one of them.
    assert_eq!(names("0,1,target\n.1,.2,c\n.3,.4,a\n", "3"), (true, "0 1".into(), 2));
    assert_eq!(names("0,1,Y\n.1,.2,N\n.3,.4,Y\n", "3"), (false, "1 2".into(), 3));
    // Rows: numbers alone, words above words, what no name begins with, and cells that are not different.
    assert_eq!(names("400,410,5\n.1,.2,1\n", "3"), (false, "1 2".into(), 2));
    assert_eq!(names("5.1,3.5,setosa\n4.9,3,virginica\n", "3"), (false, "1 2".into(), 2));
    for (row, found) in [("1,-", "-"), ("1,<1", "<1"), ("1,$5", "$5")] {
        let message = failure(&format!("{row}\n1,2\n3,4\n"), &csv("1"));
        assert_eq!(message, format!("table:1:2: column \"2\": expected a number, found {found:?}"));
    }
    let message = failure("0.5,0.5,low\n1,2,3\n4,5,6\n", &csv("1"));
    assert_eq!(message, "table:1:3: column \"3\": expected a number, found \"low\"");
    // A flag decides otherwise.
    let told = |header, text: &str| of(text, &Options { header: Some(header), ..csv("3") }).features.rows();
    assert_eq!((told(true, "400,410,5\n.1,.2,1\n"), told(false, "0,1,y\n2,3,4\n")), (1, 2));
}

#[test]
fn a_header_is_known_by_a_hundred_rows_and_in_a_stream() {
    let rows = |words: usize| "1,2\n".repeat(words) + "red,2\n" + &"1,2\n".repeat(100_000);
    // The word above row 100 makes the first line a row, one further down comes too late.
    assert_eq!(
        of(&format!("low,5\n{}", rows(99)), &Options { one_hot: true, ..csv("2") }).features.rows(),
        100_101
    );
    let message = failure(&format!("low,5\n{}", rows(100)), &csv("2"));
    assert_eq!(message, "table:102:1: column \"low\": expected a number, found \"red\"");
    let text = "400,410,y\n".to_owned() + &"1,2,3\n".repeat(100_000);
    let mut blocks = Blocks::open(&source(&text), &csv("y"), 1 << 18).unwrap();
    let mut count = 0;
    while let Some(data) = blocks.next_block(&|_, _| {}).unwrap() {
        count += data.features.rows();
        assert_eq!(data.encoding.names(), ["400", "410"]);
    }
    assert_eq!(count, 100_000);
}

#[test]
fn rows_that_are_left_out_and_cells_that_are_filled_are_counted() {
    let text = "y,a,c\n1,2,red\n2,,blue\n3,4,\n4,NA,\n5,6,red\n";
    let hot = |missing| Options { missing, one_hot: true, ..csv("y") };
    let dropped = of(text, &hot(Missing::DropRow));
    assert_eq!((dropped.left_out, dropped.filled), (vec![1, 2, 3], 0));
    let filled = of(text, &hot(Missing::Mean));
    assert_eq!((filled.left_out.len(), filled.filled), (0, 4));
    // A label that is not needed may be missing where rows are left out.
    let learnt = of("y,a\n1,2\n3,4\n", &csv("y"));
    let if_there = Options { label: Label::IfThere("y".into()), missing: Missing::DropRow, ..options() };
    let more = read(&source("y,a\n,2\n1,\n7,8\n"), &if_there, Some(&learnt.encoding), &|_, _| {}).unwrap();
    assert_eq!((more.left_out, more.labels, more.features.rows()), (vec![1], None, 2));
}

#[test]
fn what_means_a_missing_value_elsewhere_can_be_a_category() {
    let text = "y,c\n1,None\n2,N/A\n3,.\n4,n/a\n5,red\n";
    let asked = Options { categories: vec!["c".into()], ..csv("y") };
    let learnt = of(text, &asked);
    assert_eq!(learnt.encoding.names(), ["c=.", "c=N/A", "c=None", "c=n/a", "c=red"]);
    // The encoding knows them in every command.
    let again = read(
        &source("y,c\n0,None\n"),
        &Options { storage: Storage::Dense, ..csv("y") },
        Some(&learnt.encoding),
        &|_, _| {},
    )
    .unwrap();
    assert_eq!(dense(&again), [0.0, 0.0, 1.0, 0.0, 0.0]);
    assert!(failure(text, &Options { one_hot: true, ..csv("y") }).contains("has no value here (\"None\")"));
    assert!(failure("y,c\n1,NA\n2,red\n", &asked).contains("has no value here (\"NA\")"));
}

#[test]
fn a_column_that_is_called_as_a_word_of_another_is_refused() {
    let hot = Options { one_hot: true, ..csv("y") };
    let said = failure("y,c,c=r\n1,r,2\n2,b,3\n", &hot);
    assert!(said.contains("two features would be called \"c=r\""), "{said}");
    let said = failure("y,a,a=b\n1,b=c,c\n2,x,z\n", &hot);
    assert!(said.contains("two features would be called \"a=b=c\""), "{said}");
    assert_eq!(
        of("y,c,c=r\n1,r,2\n2,b,3\n", &Options { ignore: vec!["c".into()], ..hot }).encoding.width(),
        1
    );
}

#[test]
fn an_encoding_grows_by_words_and_columns_that_come_later() {
    let storage = Storage::Dense;
    let grow = Options { grow: true, one_hot: true, missing: Missing::Zero, storage, ..csv("y") };
    let first = of("y,c,a\n1,red,2\n2,blue,3\n", &grow).encoding;
    let second =
        read(&source("y,c,a\n1,green,5\n2,red,6\n3,7,7\n4,,8\n"), &grow, Some(&first), &|_, _| {}).unwrap();
    assert_eq!(second.encoding.names(), ["c=blue", "c=red", "c=green", "c=7", "a"]);
    assert_eq!(first.places_in(&second.encoding), [0, 1, 4]);
    let rows = [[0., 0., 1., 0., 5.], [0., 1., 0., 0., 6.], [0., 0., 0., 1., 7.], [0., 0., 0., 0., 8.]];
    assert_eq!(dense(&second), rows.concat());
    let fixed = Options { grow: false, ..grow };
    let refused = read(&source("y,c,a\n1,green,5\n"), &fixed, Some(&first), &|_, _| {}).unwrap_err();
    assert!(matches!(refused.fault, Fault::Category { .. }));
    let grow = Options { grow: true, format: Some(Format::Libsvm), ..options() };
    let first = of("1 1:1 2:1\n", &grow).encoding;
    for (text, columns) in [("1 5:2\n", 5), ("1 1:2\n", 2), ("1\n", 2)] {
        let data = read(&source(text), &grow, Some(&first), &|_, _| {}).unwrap();
        assert_eq!((data.encoding.width(), data.features.columns()), (columns, columns));
        assert_eq!(first.places_in(&data.encoding), [0, 1]);
    }
    let declared = Options { columns: Some(2), ..grow };
    let refused = read(&source("1 5:2\n"), &declared, Some(&first), &|_, _| {}).unwrap_err();
    assert!(matches!(refused.fault, Fault::Beyond { index: 5, most: 2 }));
}

/// Text that is compressed to a thousandth of its size.
fn bomb(line: &str, bytes: usize) -> [Vec<u8>; 2] {
    let text = line.repeat(bytes / line.len());
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(text.as_bytes()).unwrap();
    let zstd =
        ruzstd::encoding::compress_to_vec(text.as_bytes(), ruzstd::encoding::CompressionLevel::Fastest);
    [gzip.finish().unwrap(), zstd]
}

#[test]
fn a_table_takes_no_more_memory_than_it_may() {
    let limit = |options: Options| Options { memory: Some(1 << 20), ..options };
    let is_refused = |content: &[u8], options: Options| {
        let refused = read(&bytes(content), &limit(options), None, &|_, _| {}).unwrap_err();
        assert!(
            matches!(refused.fault, Fault::Limit { needed, limit: 1_048_576 } if needed < 8 << 20),
            "{refused}"
        );
    };
    // 24 MB of values each, 8 MB of text; short of the limit there is nothing to say.
    for packed in bomb("1,2,3,4\n", 8 << 20) {
        is_refused(&packed, csv("1"));
    }
    for packed in bomb("1 1:2 3:4\n", 8 << 20) {
        is_refused(&packed, options());
    }
    assert!(read(&source("1,2,3,4\n"), &limit(csv("1")), None, &|_, _| {}).is_ok());
    // A line of many columns takes memory for each, a header of an array for what it promises.
    is_refused(&[b"1,".repeat(10_000), b"1\n".to_vec()].concat(), csv("1"));
    let array = npy("<f8", false, "(200000, 2)", &[]);
    is_refused(&array, csv("1"));
    let mut archive = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    archive.start_file("X.npy", zip::write::SimpleFileOptions::default()).unwrap();
    archive.write_all(&array).unwrap();
    let if_there = Options { label: Label::IfThere(String::new()), ..options() };
    is_refused(&archive.finish().unwrap().into_inner(), if_there);
}

#[test]
fn a_line_that_is_too_long_is_refused_with_the_limit() {
    for packed in bomb("0", 80 << 20) {
        let refused = read(&bytes(&packed), &csv("1"), None, &|_, _| {}).unwrap_err();
        assert_eq!(refused.fault, Fault::Long(1 << 26));
    }
}

#[test]
fn an_index_does_not_make_a_table_wider_than_its_text_is_long() {
    let text = "1 1:1\n0 400000000:1\n";
    let refused = read(&source(text), &options(), None, &|_, _| {}).unwrap_err();
    assert_eq!(refused.fault, Fault::Width { index: 400_000_000, bytes: 20 });
    assert!(refused.fault.hint().unwrap().contains("--columns N"));
    let declared = Options { columns: Some(400_000_000), ..options() };
    assert_eq!(of(text, &declared).features.columns(), 400_000_000);
    assert_eq!(of("1 1:1\n0 1000000:1\n", &options()).features.columns(), 1_000_000);
    for first_index in [None, Some(0), Some(1)] {
        let none = Options { columns: Some(0), first_index, ..options() };
        assert_eq!(failure("1 1:1\n0 0:1\n", &none), "table: its rows have no features");
    }
}

/// R writes NA as a NaN with the number 1954 in it.
#[test]
fn a_label_that_is_no_number_is_handed_on_whatever_it_carries() {
    let missing = f64::from_bits(0x7ff0_0000_0000_07a2);
    let array = npy("<f8", false, "(2, 2)", &le(&[1.0, 2.0, missing, 3.0]));
    let data = read(&bytes(&array), &csv("1"), None, &|_, _| {}).unwrap();
    let labels = data.labels.unwrap();
    assert!(labels[0] == 1.0 && labels[1].is_nan() && data.classes.is_empty());
    let classes = Options { meaning: Meaning::Classes, ..csv("1") };
    assert!(read(&bytes(&array), &classes, None, &|_, _| {}).unwrap_err().to_string().contains("label 2"));
}

#[test]
fn a_bit_that_flips_in_a_cache_is_found() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.svm");
    fs::write(&path, (0..3000).map(|k| format!("{} {}:{k}.5\n", k % 3, 1 + k % 7)).collect::<String>())
        .unwrap();
    let options = Options { meaning: Meaning::Classes, ..options() };
    let cached = || pasta_io::cached(&path, &options, None, &|_, _| {}, &|_| {});
    let first = cached().unwrap();
    assert!(first.written && !cached().unwrap().written);
    for name in ["values", "indices", "starts", "labels"] {
        let file = first.folder.join(name);
        let whole = fs::read(&file).unwrap();
        let mut flipped = whole.clone();
        let middle = flipped.len() / 2;
        flipped[middle] ^= 1;
        fs::write(&file, &flipped).unwrap();
        let refused = cached().unwrap_err().to_string();
        assert!(refused.contains("t.svm.cache is damaged") && refused.contains(name), "{refused}");
        assert!(refused.contains("delete the folder"), "{refused}");
        fs::write(&file, &whole[..whole.len() - 8]).unwrap();
        assert!(cached().unwrap_err().to_string().contains("does not hold"));
        fs::write(&file, &whole).unwrap();
        assert!(!cached().unwrap().written);
    }
    // What says what the arrays are has a checksum, too: then all is written again.
    let about = first.folder.join("about.json");
    let text = fs::read_to_string(&about).unwrap();
    assert!(text.contains("\"first_index\": 1"));
    fs::write(&about, text.replace("\"first_index\": 1", "\"first_index\": 0")).unwrap();
    assert!(cached().unwrap().written && !cached().unwrap().written);
}

#[test]
fn a_vector_is_read_back_from_its_file_and_not_if_something_is_missing() {
    for vector in [vec![], vec![1.5, -0.0, f64::MIN_POSITIVE], (0..1000).map(f64::from).collect()] {
        let file = pasta_io::vector_to_npy(&vector);
        assert_eq!((file.len() - 8 * vector.len()) % 64, 0);
        assert_eq!(pasta_io::vector_from_npy(&file).unwrap(), vector);
        assert!(pasta_io::vector_from_npy(&file[..file.len() - 1]).is_err());
    }
    assert!(pasta_io::vector_from_npy(b"something else").is_err());
    assert!(pasta_io::vector_from_npy(&npy("<f8", false, "(900000000000,)", &[])).is_err());
}
