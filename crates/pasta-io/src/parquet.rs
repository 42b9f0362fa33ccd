//! Parquet: rows become the text of a CSV file while they are read, on a thread of their own, so that missing values, words, labels and weights mean what
//! they mean there. Line k of a message is row k - 1.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, Read};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use bytes::Bytes;
use parquet::file::reader::{ChunkReader, FileReader, SerializedFileReader};
use parquet::record::Field;

use crate::fault::{Fault, Located};
use crate::memory::Memory;
use crate::source::{Chunks, Opened};
use crate::{Data, Encoding, Format, Options, Source, Watch, parse};

pub(crate) fn read(
    source: &Source,
    opened: Opened,
    options: &Options,
    encoding: Option<&Encoding>,
    watch: Watch<'_>,
) -> Result<Data, Located> {
    let (send, receive) = sync_channel(4);
    match source {
        Source::File(path) => {
            let file = File::open(path).map_err(|error| Fault::System(error.to_string()))?;
            std::thread::spawn(move || write(file, &send));
        }
        _ => {
            let bytes = Bytes::from(opened.plain_bytes(Memory(options.memory))?);
            std::thread::spawn(move || write(bytes, &send));
        }
    }
    let chunks = Chunks::of_rows(Box::new(Text { receive, chunk: Vec::new(), at: 0 }), "Parquet");
    let options = Options { header: Some(true), delimiter: Some(b','), ..options.clone() };
    parse(Format::Csv, chunks, &options, encoding, watch)
}

type Piece = Result<Vec<u8>, String>;

/// Bytes of text that are handed over at a time.
const PIECE: usize = 1 << 18;

/// Text that another thread writes.
struct Text {
    receive: Receiver<Piece>,
    chunk: Vec<u8>,
    at: usize,
}

impl Read for Text {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        while self.at == self.chunk.len() {
            match self.receive.recv() {
                Ok(Ok(chunk)) => (self.chunk, self.at) = (chunk, 0),
                Ok(Err(message)) => return Err(io::Error::new(io::ErrorKind::InvalidData, message)),
                Err(_) => return Ok(0),
            }
        }
        let count = into.len().min(self.chunk.len() - self.at);
        into[..count].copy_from_slice(&self.chunk[self.at..self.at + count]);
        self.at += count;
        Ok(count)
    }
}

/// Sends all rows as text, or what is wrong. A reader that is gone wants no more.
fn write(from: impl ChunkReader + 'static, send: &SyncSender<Piece>) {
    // The decoder has its own checks; whatever slips through them ends as a fault of the file, not of the program.
    let rows = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| write_rows(from, send)));
    let message = match rows {
        Ok(Ok(())) => return,
        Ok(Err(message)) => message,
        Err(_) => "the data is damaged".into(),
    };
    let _ = send.send(Err(message));
}

fn write_rows(from: impl ChunkReader + 'static, send: &SyncSender<Piece>) -> Result<(), String> {
    let wrong = |error: parquet::errors::ParquetError| error.to_string();
    let reader = SerializedFileReader::new(from).map_err(wrong)?;
    let fields = reader.metadata().file_metadata().schema().get_fields().to_vec();
    let mut text = String::new();
    for (k, field) in fields.iter().enumerate() {
        text.push_str(if k > 0 { "," } else { "" });
        quote(field.name(), &mut text);
    }
    text.push('\n');
    for row in reader.get_row_iter(None).map_err(wrong)? {
        for (k, (name, field)) in row.map_err(wrong)?.get_column_iter().enumerate() {
            text.push_str(if k > 0 { "," } else { "" });
            write_field(field, &mut text).ok_or_else(|| {
                format!("column {name:?} holds neither numbers nor words: leave it out when writing the file")
            })?;
        }
        text.push('\n');
        if text.len() > PIECE && send.send(Ok(std::mem::take(&mut text).into_bytes())).is_err() {
            return Ok(());
        }
    }
    let _ = send.send(Ok(text.into_bytes()));
    Ok(())
}

fn quote(word: &str, text: &mut String) {
    text.push('"');
    text.push_str(&word.replace('"', "\"\""));
    text.push('"');
}

fn write_field(field: &Field, text: &mut String) -> Option<()> {
    let number = match field {
        Field::Null => return Some(()),
        Field::Str(word) => {
            quote(word, text);
            return Some(());
        }
        Field::Long(value) => return write!(text, "{value}").ok(),
        Field::ULong(value) => return write!(text, "{value}").ok(),
        Field::Decimal(_) => return write!(text, "{field}").ok(),
        Field::Bool(value) => return write!(text, "{}", u8::from(*value)).ok(),
        Field::Byte(value) => return write!(text, "{value}").ok(),
        Field::Short(value) => return write!(text, "{value}").ok(),
        Field::Int(value) => return write!(text, "{value}").ok(),
        Field::UByte(value) => return write!(text, "{value}").ok(),
        Field::UShort(value) => return write!(text, "{value}").ok(),
        Field::UInt(value) => return write!(text, "{value}").ok(),
        Field::Float16(value) => value.to_f64(),
        Field::Float(value) => f64::from(*value),
        Field::Double(value) => *value,
        _ => return None,
    };
    // 1 and not 1.0, which may be the name of a class; very large and very small ones with an exponent.
    if (1e-5..1e15).contains(&number.abs()) || number == 0.0 {
        write!(text, "{number}").ok()
    } else {
        write!(text, "{number:?}").ok()
    }
}
