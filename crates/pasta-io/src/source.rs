//! Where bytes come from: files, standard input, compressed or not, cut into chunks of whole lines.

use std::fs::File;
use std::io::{self, Cursor, Read};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use flate2::read::MultiGzDecoder;
use rayon::prelude::*;
use ruzstd::decoding::StreamingDecoder;

use crate::fault::{Fault, Located, Misfit};
use crate::memory::Memory;

/// Where a table comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// Standard input.
    Standard,
    /// A file.
    File(PathBuf),
    /// Bytes, under a name for messages.
    Bytes(String, Arc<[u8]>),
}

impl Source {
    /// A path, or `-` for standard input.
    pub fn named(name: impl Into<PathBuf>) -> Self {
        let path: PathBuf = name.into();
        if path.as_os_str() == "-" { Self::Standard } else { Self::File(path) }
    }

    /// What messages call it.
    pub fn name(&self) -> String {
        match self {
            Self::Standard => "standard input".into(),
            Self::File(path) => path.display().to_string(),
            Self::Bytes(name, _) => name.clone(),
        }
    }

    /// Its name in small letters, without the ending of a compressed file.
    pub(crate) fn stem(&self) -> String {
        let name = match self {
            Self::Standard => String::new(),
            _ => self.name().to_ascii_lowercase(),
        };
        let stem = [".gz", ".zst"].iter().find_map(|ending| name.strip_suffix(ending));
        stem.unwrap_or(&name).to_owned()
    }

    pub(crate) fn open(&self) -> Result<Opened, Fault> {
        let failed = |error: io::Error| Fault::System(error.to_string());
        let (reader, size): (Box<dyn Read + Send>, _) = match self {
            Self::Standard => (Box::new(io::stdin()), None),
            Self::File(path) => {
                let file = File::open(path).map_err(failed)?;
                let about = file.metadata().map_err(failed)?;
                if about.is_dir() {
                    return Err(Fault::System("it is a folder".into()));
                }
                (Box::new(file), about.is_file().then_some(about.len()))
            }
            Self::Bytes(_, bytes) => (Box::new(Cursor::new(Arc::clone(bytes))), Some(bytes.len() as u64)),
        };
        Opened::new(reader, size).map_err(failed)
    }
}

/// An open source, not yet unpacked.
pub(crate) struct Opened {
    reader: Box<dyn Read + Send>,
    /// What was read to see what it is.
    pub(crate) head: Vec<u8>,
    pub(crate) size: Option<u64>,
    read: Arc<AtomicU64>,
}

/// Bytes that decide what a file is.
const HEAD: usize = 6;

impl Opened {
    fn new(reader: Box<dyn Read + Send>, size: Option<u64>) -> io::Result<Self> {
        let read = Arc::new(AtomicU64::new(0));
        let mut reader = Counted { reader, read: Arc::clone(&read) };
        let mut head = vec![0; HEAD];
        let length = fill(&mut reader, &mut head)?;
        head.truncate(length);
        Ok(Self { reader: Box::new(reader), head, size, read })
    }

    /// All of it, as it is.
    pub(crate) fn plain(self) -> impl Read {
        Cursor::new(self.head).chain(self.reader)
    }

    /// All of it, in one piece.
    pub(crate) fn plain_bytes(self, memory: Memory) -> Result<Vec<u8>, Fault> {
        let mut all = Vec::new();
        let mut from = self.plain();
        loop {
            let begin = all.len();
            memory.grow(&mut all, CHUNK)?;
            all.resize(begin + CHUNK, 0);
            let n = fill(&mut from, &mut all[begin..]).map_err(|error| Fault::System(error.to_string()))?;
            all.truncate(begin + n);
            if n < CHUNK {
                return Ok(all);
            }
        }
    }

    /// All that is left of it, unpacked.
    pub(crate) fn unpacked(self) -> Unpacked {
        let whole = Cursor::new(self.head.clone()).chain(self.reader);
        let (reader, packed): (Box<dyn Read + Send>, _) = if self.head.starts_with(&[0x1f, 0x8b]) {
            (Box::new(MultiGzDecoder::new(whole)), Some("gzip"))
        } else if self.head.starts_with(&[0x28, 0xb5, 0x2f, 0xfd]) {
            (Box::new(Zstd::Between(Some(Box::new(whole)))), Some("zstd"))
        } else {
            (Box::new(whole), None)
        };
        Unpacked { reader, packed, size: self.size, read: self.read }
    }
}

/// Counts what is read.
struct Counted {
    reader: Box<dyn Read + Send>,
    read: Arc<AtomicU64>,
}

impl Read for Counted {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let n = self.reader.read(into)?;
        self.read.fetch_add(n as u64, Ordering::Relaxed);
        Ok(n)
    }
}

type Boxed = Box<dyn Read + Send>;

/// Frames of zstd, one after another.
enum Zstd {
    Between(Option<Boxed>),
    Frame(Box<StreamingDecoder<Boxed, ruzstd::decoding::FrameDecoder>>),
}

impl Read for Zstd {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        loop {
            match self {
                Self::Between(rest) => {
                    let Some(mut reader) = rest.take() else { return Ok(0) };
                    let mut magic = [0; 4];
                    let n = fill(&mut reader, &mut magic)?;
                    if n == 0 {
                        return Ok(0);
                    }
                    let whole: Boxed = Box::new(Cursor::new(magic[..n].to_vec()).chain(reader));
                    let frame = StreamingDecoder::new(whole)
                        .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error.to_string()))?;
                    *self = Self::Frame(Box::new(frame));
                }
                Self::Frame(frame) => {
                    // The decoder holds what it is asked for, and panics where it has no memory.
                    let most = into.len().min(PIECE);
                    let read = || frame.read(&mut into[..most]);
                    let read = std::panic::catch_unwind(std::panic::AssertUnwindSafe(read));
                    let n = read.unwrap_or_else(|_| Err(io::ErrorKind::OutOfMemory.into()))?;
                    if n > 0 || into.is_empty() {
                        return Ok(n);
                    }
                    let Self::Frame(frame) = std::mem::replace(self, Self::Between(None)) else { continue };
                    *self = Self::Between(Some(frame.into_inner()));
                }
            }
        }
    }
}

/// Fills a buffer as far as there is something to fill it with.
fn fill(reader: &mut dyn Read, mut into: &mut [u8]) -> io::Result<usize> {
    let wanted = into.len();
    while !into.is_empty() {
        match reader.read(into) {
            Ok(0) => break,
            Ok(n) => into = &mut into[n..],
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(wanted - into.len())
}

/// A source of plain bytes.
pub(crate) struct Unpacked {
    reader: Box<dyn Read + Send>,
    packed: Option<&'static str>,
    size: Option<u64>,
    read: Arc<AtomicU64>,
}

impl Unpacked {
    fn fill(&mut self, into: &mut [u8]) -> Result<usize, Fault> {
        fill(&mut self.reader, into).map_err(|error| match self.packed {
            Some(name) => Fault::Compressed(name, error.to_string()),
            None => Fault::System(error.to_string()),
        })
    }
}

/// What is called with the bytes read so far, and how many there are if that is known.
pub type Watch<'w> = &'w (dyn Fn(u64, Option<u64>) + Sync);

/// Bytes of a chunk, of what a thread parses at a time, and of the longest line.
const CHUNK: usize = 1 << 18;
const PIECE: usize = 1 << 16;
const LONGEST: usize = 1 << 26;

/// Where a chunk may end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ends {
    /// After every line.
    Line,
    /// After every line that does not end within quotation marks.
    Record,
}

/// Text in chunks of whole lines.
pub(crate) struct Chunks {
    from: Unpacked,
    rest: Vec<u8>,
    done: bool,
    pub(crate) ends: Ends,
    /// Lines that were taken away.
    lines: u64,
}

impl Chunks {
    pub(crate) fn of(from: Unpacked) -> Self {
        Self { from, rest: Vec::new(), done: false, ends: Ends::Line, lines: 0 }
    }

    /// Text that is in memory, so many lines into a file.
    pub(crate) fn of_text(text: Vec<u8>, lines: u64) -> Self {
        let size = Some(text.len() as u64);
        let reader = Box::new(Cursor::new(text));
        Self { lines, ..Self::of(Unpacked { reader, packed: None, size, read: Arc::default() }) }
    }

    /// Text that is made of the rows of another kind of file.
    #[cfg(feature = "parquet")]
    pub(crate) fn of_rows(reader: Box<dyn Read + Send>, kind: &'static str) -> Self {
        Self::of(Unpacked { reader, packed: Some(kind), size: None, read: Arc::default() })
    }

    /// Appends whole lines, so many bytes or a little more, to `text`; how many lines. None is left if that is none.
    pub(crate) fn gather(&mut self, bytes: usize, text: &mut Vec<u8>) -> Result<u64, Fault> {
        let (begin, mut lines) = (text.len(), 0);
        while text.len() - begin < bytes {
            let chunk = self.next()?;
            if chunk.is_empty() {
                break;
            }
            lines += memchr::memchr_iter(b'\n', &chunk).count() as u64 + u64::from(!chunk.ends_with(b"\n"));
            text.extend_from_slice(&chunk);
        }
        Ok(lines)
    }

    /// Bytes read so far, and how many there are if that is known.
    pub(crate) fn progress(&self) -> (u64, Option<u64>) {
        (self.from.read.load(Ordering::Relaxed), self.from.size)
    }

    /// The beginning, whole lines or records, without taking it away, and without the mark that some programs put before text.
    pub(crate) fn peek(&mut self) -> Result<&[u8], Fault> {
        while !self.done && last_end(&self.rest, self.ends).is_none() {
            let is_first = self.rest.is_empty();
            self.more()?;
            if is_first && self.rest.starts_with(b"\xef\xbb\xbf") {
                self.rest.drain(..3);
            }
        }
        Ok(&self.rest)
    }

    /// Takes away a part of what was peeked at.
    pub(crate) fn consume(&mut self, bytes: usize, lines: u64) {
        self.rest.drain(..bytes);
        self.lines += lines;
    }

    /// Reads more; twice as much each time, since a line that fills a chunk may be very long.
    fn more(&mut self) -> Result<(), Fault> {
        let begin = self.rest.len();
        if begin >= LONGEST {
            return Err(Fault::Long(LONGEST));
        }
        let wanted = CHUNK.max(begin);
        let needed = (begin + wanted) as u64;
        self.rest.try_reserve_exact(wanted).map_err(|_| Fault::OutOfMemory(needed))?;
        self.rest.resize(begin + wanted, 0);
        let n = self.from.fill(&mut self.rest[begin..])?;
        self.rest.truncate(begin + n);
        self.done = n < wanted;
        Ok(())
    }

    /// The next chunk; empty at the end.
    fn next(&mut self) -> Result<Vec<u8>, Fault> {
        self.peek()?;
        loop {
            let end = if self.done { Some(self.rest.len()) } else { last_end(&self.rest, self.ends) };
            if let Some(end) = end.filter(|_| self.done || self.rest.len() >= CHUNK) {
                let rest = self.rest.split_off(end);
                return Ok(std::mem::replace(&mut self.rest, rest));
            }
            self.more()?;
        }
    }

    fn batch(&mut self) -> Result<Vec<Vec<u8>>, Fault> {
        let mut batch = Vec::new();
        for _ in 0..rayon::current_num_threads() {
            let chunk = self.next()?;
            if chunk.is_empty() {
                break;
            }
            batch.push(chunk);
        }
        Ok(batch)
    }

    /// Parses all chunks on all threads and hands over what came of them in their order, each with the number of lines before it. While a batch is
    /// parsed, one thread hands over what the batch before came to, and reads the next.
    pub(crate) fn parse<P: Send>(
        mut self,
        watch: Watch<'_>,
        parse: impl Fn(&[u8]) -> Parsed<P> + Sync,
        mut take: impl FnMut(P, u64) -> Result<(), Located> + Send,
    ) -> Result<(), Located> {
        let (mut lines, ends) = (self.lines, self.ends);
        let (mut batch, mut parsed) = (self.batch()?, Vec::new());
        let mut failed: Option<Fault> = None;
        // The first chunk is in one piece: how rows are kept is decided by it.
        let mut piece = CHUNK;
        while !(batch.is_empty() && parsed.is_empty()) {
            let pieces: Vec<&[u8]> = batch.iter().flat_map(|chunk| Pieces { chunk, piece, ends }).collect();
            let (taken, now) = rayon::join(
                || -> Result<_, Located> {
                    for Parsed { lines: there, result } in parsed {
                        let part =
                            result.map_err(|(line, misfit): (u64, Misfit)| misfit.in_line(lines + line))?;
                        take(part, lines)?;
                        lines += there;
                    }
                    watch(self.from.read.load(Ordering::Relaxed), self.from.size);
                    // What is wrong with the rows before a failure is said first.
                    Ok(if failed.is_some() { Ok(Vec::new()) } else { self.batch() })
                },
                || pieces.par_iter().map(|piece| parse(piece)).collect(),
            );
            (parsed, piece) = (now, PIECE);
            batch = taken?.unwrap_or_else(|fault| {
                failed = Some(fault);
                Vec::new()
            });
        }
        failed.map_or(Ok(()), |fault| Err(fault.into()))
    }
}

/// A chunk in pieces of about so many bytes, each of whole lines or records: enough for all threads to end at the same time.
struct Pieces<'c> {
    chunk: &'c [u8],
    piece: usize,
    ends: Ends,
}

impl<'c> Iterator for Pieces<'c> {
    type Item = &'c [u8];

    fn next(&mut self) -> Option<&'c [u8]> {
        let mut wanted = self.piece;
        let end = loop {
            if wanted >= self.chunk.len() {
                break self.chunk.len();
            }
            match last_end(&self.chunk[..wanted], self.ends) {
                Some(end) => break end,
                None => wanted *= 2,
            }
        };
        let (piece, rest) = self.chunk.split_at(end);
        self.chunk = rest;
        (!piece.is_empty()).then_some(piece)
    }
}

/// Behind the last line or record that ends here.
fn last_end(text: &[u8], ends: Ends) -> Option<usize> {
    let mut end = memchr::memrchr(b'\n', text)?;
    if ends == Ends::Record {
        let all = memchr::memchr_iter(b'"', text).count();
        let mut after = memchr::memchr_iter(b'"', &text[end..]).count();
        while (all - after) % 2 == 1 {
            let before = memchr::memrchr(b'\n', &text[..end])?;
            after += memchr::memchr_iter(b'"', &text[before..end]).count();
            end = before;
        }
    }
    Some(end + 1)
}

/// What came of a chunk: how many lines it had, and the parts or the first line (from 1) that is wrong.
pub(crate) struct Parsed<P> {
    pub(crate) lines: u64,
    pub(crate) result: Result<P, (u64, Misfit)>,
}

#[cfg(test)]
mod tests {
    use super::{Chunks, Ends, Parsed, Pieces, last_end};
    use crate::fault::Fault;

    #[test]
    fn pieces_are_whole_records_and_together_the_chunk() {
        let line = "1,\"a\nb \"\"c\"\"\n\",2\n".to_owned();
        let text = line.repeat(50) + "\"long\n" + &"x\n".repeat(200) + "\",3\n" + &line.repeat(50);
        for (ends, piece) in [(Ends::Record, 7), (Ends::Record, 64), (Ends::Line, 64), (Ends::Line, 10_000)] {
            let pieces: Vec<&[u8]> = Pieces { chunk: text.as_bytes(), piece, ends }.collect();
            assert_eq!(pieces.concat(), text.as_bytes());
            assert!(piece > text.len() || pieces.len() > 10);
            assert!(pieces.iter().all(|piece| last_end(piece, ends) == Some(piece.len())));
        }
    }

    #[test]
    fn what_is_wrong_with_a_row_is_said_with_its_line_wherever_it_is_parsed() {
        // Three megabytes of lines of eight bytes, and one line, in this chunk or that, which is no number.
        let parse = |wrong: usize| {
            let mut text = b"1234567\n".repeat(400_000);
            text[8 * wrong] = b'x';
            let taken = std::sync::atomic::AtomicU64::new(0);
            let result = Chunks::of_text(text, 10).parse(
                &|_, _| {},
                |piece| {
                    let lines = piece.len() as u64 / 8;
                    let bad = piece.iter().position(|byte| *byte == b'x');
                    let result = bad.map_or(Ok(lines), |at| Err((at as u64 / 8 + 1, Fault::Empty.into())));
                    Parsed { lines, result }
                },
                |lines, _| {
                    taken.fetch_add(lines, std::sync::atomic::Ordering::Relaxed);
                    Ok(())
                },
            );
            (result.err().and_then(|located| located.line), taken.into_inner())
        };
        for wrong in [0, 40_000, 123_456, 399_999] {
            let (line, taken) = parse(wrong);
            assert_eq!(line, Some(wrong as u64 + 11));
            // All pieces before it were handed over.
            assert!(taken <= wrong as u64 && wrong as u64 - taken < 1 << 15, "{taken} of {wrong}");
        }
    }
}
