//! Checkpoints: named sections of plain data and vectors, one for each part that has something to remember.
//!
//! Randomness has addresses, so there is no generator to save, and a resumed run is the run that was never stopped, bit
//! for bit.
//!
//! File format 3: the line `pasta checkpoint 3`; a line of JSON, `{"sections": [{"name", "data", "lengths"}]}`; the
//! vectors of all sections as little-endian doubles; a CRC-32 of all that.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, BufWriter, Cursor, Read, Seek, SeekFrom, Write};
use std::path::Path;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

const MAGIC: &str = "pasta checkpoint ";
const FORMAT: u32 = 3;
/// The oldest format that is read: certificates had other keys in it, which their reader knows.
const OLDEST: u32 = 2;

/// Why a checkpoint was refused.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CheckpointError {
    /// The file could not be read or written.
    #[error("{path}: {source}")]
    Io {
        /// The file.
        path: String,
        /// What the system said.
        source: io::Error,
    },
    /// The file is something else.
    #[error("not a pasta checkpoint")]
    NotACheckpoint,
    /// The file was written by another version.
    #[error(
        "checkpoint format {found} is not understood by this version, which reads formats {OLDEST} to {FORMAT}"
    )]
    Format {
        /// The format of the file.
        found: String,
    },
    /// The file is cut short or altered.
    #[error("damaged checkpoint: {what}")]
    Damaged {
        /// What does not fit.
        what: String,
    },
    /// The checkpoint belongs to another problem.
    #[error("the checkpoint is of another problem: it was taken on {found:?}, but this is {here:?}")]
    Problem {
        /// Identity in the checkpoint.
        found: String,
        /// Identity of the oracle at hand.
        here: String,
    },
    /// The run is to go on with other settings than it was started with.
    #[error("{what}")]
    Settings {
        /// Which.
        what: String,
    },
    /// The checkpoint belongs to another kind of method.
    #[error("the checkpoint has no section {wanted:?}; it has {found}")]
    Section {
        /// What was asked for.
        wanted: String,
        /// The names of its sections.
        found: String,
    },
}

impl CheckpointError {
    /// The file is not what it should be, in a few words.
    pub fn damaged(what: impl Into<String>) -> Self {
        Self::Damaged { what: what.into() }
    }
}

/// A checkpoint in the making: sections that borrow their vectors, so that a large run is not copied to be saved.
#[derive(Debug, Default)]
pub struct Saver<'a> {
    entries: Vec<Entry>,
    vectors: Vec<&'a [f64]>,
}

/// A section in the JSON line.
#[derive(Debug, Serialize, Deserialize)]
struct Entry {
    name: String,
    data: Box<RawValue>,
    lengths: Vec<u64>,
}

#[derive(Serialize)]
struct Header<'e> {
    sections: &'e [Entry],
}

impl<'a> Saver<'a> {
    /// Adds a section. A part takes its own name, which no other part of the run has.
    pub fn put(&mut self, name: &str, data: &impl Serialize, vectors: impl IntoIterator<Item = &'a [f64]>) {
        let from = self.vectors.len();
        self.vectors.extend(vectors);
        let lengths = self.vectors[from..].iter().map(|v| v.len() as u64).collect();
        let data = serde_json::value::to_raw_value(data).expect("plain data always serialises");
        self.entries.push(Entry { name: name.to_owned(), data, lengths });
    }

    /// Adds the sections of a part that is itself made of parts, under the name of the part, a slash and their own.
    pub fn put_part(&mut self, name: &str, save: impl FnOnce(&mut Self)) {
        let mut part = Self::default();
        save(&mut part);
        let named = |entry: Entry| Entry { name: format!("{name}/{}", entry.name), ..entry };
        self.entries.extend(part.entries.into_iter().map(named));
        self.vectors.extend(part.vectors);
    }

    /// The checkpoint as the bytes of a file.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        self.write(&mut bytes).expect("memory takes every byte");
        bytes
    }

    /// Writes the file so that it is at every moment either the old one or the new one, whole.
    pub fn save(&self, path: &Path) -> Result<(), CheckpointError> {
        let draft = path.with_extension("draft");
        let written = File::create(&draft).and_then(|file| {
            let mut out = BufWriter::new(file);
            self.write(&mut out)?;
            out.flush()?;
            out.get_ref().sync_all()?;
            fs::rename(&draft, path)
        });
        if written.is_err() {
            // A full disk must not leave a torn draft behind; if even that fails, the first error says why.
            let _ = fs::remove_file(&draft);
        }
        written.map_err(|source| CheckpointError::Io { path: path.display().to_string(), source })
    }

    fn write(&self, out: &mut impl Write) -> io::Result<()> {
        let mut out = Checked { inner: out, checksum: crc32fast::Hasher::new() };
        writeln!(out, "{MAGIC}{FORMAT}")?;
        serde_json::to_writer(&mut out, &Header { sections: &self.entries })?;
        out.write_all(b"\n")?;
        let mut bytes = Vec::with_capacity(8 * CHUNK);
        for values in self.vectors.iter().flat_map(|vector| vector.chunks(CHUNK)) {
            bytes.clear();
            values.iter().for_each(|value| bytes.extend(value.to_le_bytes()));
            out.write_all(&bytes)?;
        }
        let checksum = out.checksum.clone().finalize();
        out.write_all(&checksum.to_le_bytes())
    }
}

/// Doubles that are written or read at a time.
const CHUNK: usize = 8192;

/// Counts what is written into a checksum.
struct Checked<W> {
    inner: W,
    checksum: crc32fast::Hasher,
}

impl<W: Write> Write for Checked<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.inner.write(bytes)?;
        self.checksum.update(&bytes[..written]);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

/// A checkpoint that was read: each part takes its section.
#[derive(Debug)]
pub struct Checkpoint {
    sections: BTreeMap<String, (Box<RawValue>, Vec<Vec<f64>>)>,
}

impl Checkpoint {
    /// Reads a checkpoint file.
    pub fn load(path: &Path) -> Result<Self, CheckpointError> {
        let io = |source| CheckpointError::Io { path: path.display().to_string(), source };
        let file = File::open(path).map_err(io)?;
        Self::read(BufReader::new(file)).map_err(|error| match error {
            CheckpointError::Io { source, .. } => io(source),
            other => other,
        })
    }

    /// Reads what [`Saver::to_bytes`] wrote, and refuses everything else.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, CheckpointError> {
        Self::read(Cursor::new(bytes))
    }

    fn read(mut file: impl BufRead + Seek) -> Result<Self, CheckpointError> {
        let io = |source| CheckpointError::Io { path: "checkpoint".into(), source };
        let length = file.seek(SeekFrom::End(0)).map_err(io)?;
        file.rewind().map_err(io)?;
        let mut first = Vec::new();
        file.by_ref().take(64).read_until(b'\n', &mut first).map_err(io)?;
        let format = first.strip_prefix(MAGIC.as_bytes()).ok_or(CheckpointError::NotACheckpoint)?;
        let format = format
            .strip_suffix(b"\n")
            .ok_or_else(|| CheckpointError::damaged("the first line does not end"))?;
        if !(OLDEST..=FORMAT).any(|known| format == known.to_string().as_bytes()) {
            return Err(CheckpointError::Format { found: String::from_utf8_lossy(format).into_owned() });
        }
        check_sum(&mut file, length)?;
        file.seek(SeekFrom::Start(first.len() as u64)).map_err(io)?;
        let mut header = Vec::new();
        file.read_until(b'\n', &mut header).map_err(io)?;
        if header.pop() != Some(b'\n') {
            return Err(CheckpointError::damaged("the second line does not end"));
        }
        #[derive(Deserialize)]
        struct Header {
            sections: Vec<Entry>,
        }
        let Header { sections } =
            serde_json::from_slice(&header).map_err(|error| CheckpointError::damaged(error.to_string()))?;
        let stated: u128 = sections.iter().flat_map(|entry| &entry.lengths).map(|&n| u128::from(n)).sum();
        let there = length - file.stream_position().map_err(io)? - CHECKSUM;
        if 8 * stated != u128::from(there) {
            return Err(CheckpointError::damaged("the vectors do not have the stated lengths"));
        }
        let mut read = |length: u64| read_vector(&mut file, length as usize).map_err(io);
        let mut all = BTreeMap::new();
        for Entry { name, data, lengths } in sections {
            let vectors = lengths.into_iter().map(&mut read).collect::<Result<_, _>>()?;
            all.insert(name, (data, vectors));
        }
        Ok(Self { sections: all })
    }

    /// Whether there is a section of this name.
    pub fn has(&self, name: &str) -> bool {
        self.sections.contains_key(name)
    }

    /// The data of a section, which stays.
    pub fn peek<T: DeserializeOwned>(&self, name: &str) -> Result<T, CheckpointError> {
        let (data, _) = self.sections.get(name).ok_or_else(|| self.lacks(name))?;
        parse(name, data)
    }

    /// The data and the vectors of a section, which is then gone.
    pub fn take<T: DeserializeOwned>(&mut self, name: &str) -> Result<(T, Vec<Vec<f64>>), CheckpointError> {
        let (data, vectors) = self.sections.remove(name).ok_or_else(|| self.lacks(name))?;
        Ok((parse(name, &data)?, vectors))
    }

    /// What [`Saver::put_part`] wrote under this name, which is then gone: nothing, if it wrote nothing.
    #[must_use]
    pub fn take_part(&mut self, name: &str) -> Self {
        let mut part = BTreeMap::new();
        for (full, section) in std::mem::take(&mut self.sections) {
            match full.strip_prefix(name).and_then(|rest| rest.strip_prefix('/')) {
                Some(own) => part.insert(own.to_owned(), section),
                None => self.sections.insert(full, section),
            };
        }
        Self { sections: part }
    }

    fn lacks(&self, name: &str) -> CheckpointError {
        let found: Vec<_> = self.sections.keys().map(String::as_str).collect();
        CheckpointError::Section { wanted: name.to_owned(), found: found.join(", ") }
    }
}

fn parse<T: DeserializeOwned>(name: &str, data: &RawValue) -> Result<T, CheckpointError> {
    serde_json::from_str(data.get())
        .map_err(|error| CheckpointError::damaged(format!("section {name}: {error}")))
}

/// Bytes of the checksum.
const CHECKSUM: u64 = 4;

/// Compares the checksum at the end with what stands before it.
fn check_sum(file: &mut (impl BufRead + Seek), length: u64) -> Result<(), CheckpointError> {
    let io = |source| CheckpointError::Io { path: "checkpoint".into(), source };
    let body = length.checked_sub(CHECKSUM).ok_or_else(|| CheckpointError::damaged("it is cut short"))?;
    file.rewind().map_err(io)?;
    let mut checksum = crc32fast::Hasher::new();
    let mut left = body;
    while left > 0 {
        let bytes = file.fill_buf().map_err(io)?;
        let count = bytes.len().min(usize::try_from(left).unwrap_or(usize::MAX));
        if count == 0 {
            return Err(CheckpointError::damaged("it is cut short"));
        }
        checksum.update(&bytes[..count]);
        file.consume(count);
        left -= count as u64;
    }
    let mut stated = [0; CHECKSUM as usize];
    file.read_exact(&mut stated).map_err(io)?;
    if checksum.finalize() == u32::from_le_bytes(stated) {
        Ok(())
    } else {
        Err(CheckpointError::damaged("the checksum does not match the contents"))
    }
}

fn read_vector(file: &mut impl Read, length: usize) -> io::Result<Vec<f64>> {
    let mut vector = Vec::with_capacity(length);
    let mut bytes = vec![0; 8 * CHUNK];
    while vector.len() < length {
        let bytes = &mut bytes[..8 * (length - vector.len()).min(CHUNK)];
        file.read_exact(bytes)?;
        let (values, _) = bytes.as_chunks::<8>();
        vector.extend(values.iter().map(|value| f64::from_le_bytes(*value)));
    }
    Ok(vector)
}
