//! A checkpoint is the state, the settings and the identity of the problem. Randomness has addresses, so
//! there is no generator to save, and a resumed run is the run that was never stopped, bit for bit.
//!
//! File format 1: the line `pasta checkpoint 1`, a line of JSON, the vectors as little-endian doubles, and a
//! CRC-32 of all that.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::baseline::Settings;
use crate::oracle::Oracle;
use crate::schedule::Schedule;
use crate::state::{State, VECTORS};
use crate::walk::Progress;

const MAGIC: &str = "pasta checkpoint ";
const VERSION: u32 = 1;

/// All that is needed to go on.
#[derive(Debug, Clone, PartialEq)]
pub struct Checkpoint {
    /// [`Oracle::identity`] of the problem it belongs to.
    pub identity: String,
    /// The seed of the run.
    pub seed: u64,
    /// What was running.
    pub method: Method,
    /// Where it stood.
    pub state: State,
    /// How far its certificates had come, if it has any.
    pub certification: Option<Progress>,
}

/// The method of a run, with its settings.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Method {
    /// Algorithm 1.
    Pasta(Schedule),
    /// A baseline.
    Baseline(Settings),
}

/// Why a checkpoint was refused.
#[derive(Debug, thiserror::Error)]
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
    #[error("checkpoint format {found} is not understood by this version, which reads format {VERSION}")]
    Version {
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
    /// The checkpoint belongs to another kind of method.
    #[error("the checkpoint is of {found}, not of {wanted}")]
    Method {
        /// What it is of.
        found: &'static str,
        /// What was asked for.
        wanted: &'static str,
    },
}

/// The JSON line.
#[derive(Serialize, Deserialize)]
struct Header {
    identity: String,
    seed: u64,
    method: Method,
    state: State,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    certification: Option<Progress>,
    lengths: Vec<u64>,
}

impl Checkpoint {
    /// The checkpoint as the bytes of a file.
    pub fn to_bytes(&self) -> Vec<u8> {
        let tail = self.certification.as_ref().map(|progress| &progress.tail);
        let vectors = || self.state.vectors().into_iter().chain(tail);
        let header = Header {
            identity: self.identity.clone(),
            seed: self.seed,
            method: self.method.clone(),
            state: without_vectors(&self.state),
            certification: self.certification.as_ref().map(Progress::without_vectors),
            lengths: vectors().map(|v| v.len() as u64).collect(),
        };
        let mut bytes = format!("{MAGIC}{VERSION}\n").into_bytes();
        bytes.extend(serde_json::to_vec(&header).expect("plain data always serialises"));
        bytes.push(b'\n');
        for value in vectors().flatten() {
            bytes.extend(value.to_le_bytes());
        }
        bytes.extend(crc32fast::hash(&bytes).to_le_bytes());
        bytes
    }

    /// Reads what [`to_bytes`](Self::to_bytes) wrote, and refuses everything else.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, CheckpointError> {
        let damaged = |what: &str| CheckpointError::Damaged { what: what.into() };
        let rest = bytes.strip_prefix(MAGIC.as_bytes()).ok_or(CheckpointError::NotACheckpoint)?;
        let (version, rest) = split_line(rest).ok_or_else(|| damaged("the first line does not end"))?;
        if version != VERSION.to_string().as_bytes() {
            return Err(CheckpointError::Version { found: String::from_utf8_lossy(version).into_owned() });
        }
        let (body, checksum) = bytes.split_last_chunk::<4>().ok_or_else(|| damaged("it is cut short"))?;
        if crc32fast::hash(body) != u32::from_le_bytes(*checksum) {
            return Err(damaged("the checksum does not match the contents"));
        }
        let (header, rest) = split_line(rest).ok_or_else(|| damaged("the second line does not end"))?;
        let Header { identity, seed, method, mut state, mut certification, lengths } =
            serde_json::from_slice(header).map_err(|error| damaged(&error.to_string()))?;
        let mut values = rest[..rest.len() - checksum.len()].chunks_exact(8);
        if lengths.iter().map(|&n| u128::from(n)).sum::<u128>() != values.len() as u128 {
            return Err(damaged("the vectors do not have the stated lengths"));
        }
        if lengths.len() != VECTORS + usize::from(certification.is_some()) {
            return Err(damaged("it has too many vectors, or too few"));
        }
        let tail = certification.as_mut().map(|progress| &mut progress.tail);
        for (vector, length) in state.vectors_mut().into_iter().chain(tail).zip(lengths) {
            let bytes = values.by_ref().take(length as usize);
            vector
                .extend(bytes.map(|b| f64::from_le_bytes(b.try_into().expect("chunks are of eight bytes"))));
        }
        state.wake();
        Ok(Self { identity, seed, method, state, certification })
    }

    /// Writes the checkpoint so that the file is at every moment either the old one or the new one, whole.
    pub fn save(&self, path: &Path) -> Result<(), CheckpointError> {
        let error = |source| CheckpointError::Io { path: path.display().to_string(), source };
        let draft = path.with_extension("draft");
        let written = File::create(&draft).and_then(|mut file| {
            file.write_all(&self.to_bytes())?;
            file.sync_all()?;
            fs::rename(&draft, path)
        });
        if written.is_err() {
            // A full disk must not leave a torn draft behind; if even that fails, the first error says why.
            let _ = fs::remove_file(&draft);
        }
        written.map_err(error)
    }

    /// Reads a checkpoint file.
    pub fn load(path: &Path) -> Result<Self, CheckpointError> {
        let bytes = fs::read(path)
            .map_err(|source| CheckpointError::Io { path: path.display().to_string(), source })?;
        Self::from_bytes(&bytes)
    }

    /// Refuses an oracle that is not the one the checkpoint was taken on.
    pub(crate) fn matches(&self, oracle: &dyn Oracle) -> Result<(), CheckpointError> {
        let here = oracle.identity();
        if self.identity != here {
            return Err(CheckpointError::Problem { found: self.identity.clone(), here });
        }
        let dim = oracle.dim();
        let lengths = self.state.vectors().map(Vec::len);
        let tail = self.certification.as_ref().map_or(0, |progress| progress.tail.len());
        if lengths[..5].iter().any(|&n| n != dim) || [lengths[5], tail].iter().any(|&n| n != 0 && n != dim) {
            let what = format!("its vectors have {lengths:?} coordinates, the problem has {dim}");
            return Err(CheckpointError::Damaged { what });
        }
        Ok(())
    }
}

fn split_line(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = bytes.iter().position(|&b| b == b'\n')?;
    Some((&bytes[..end], &bytes[end + 1..]))
}

/// The counters of a state.
fn without_vectors(state: &State) -> State {
    State {
        x: Vec::new(),
        x_prev: Vec::new(),
        anchor: Vec::new(),
        start: Vec::new(),
        g: Vec::new(),
        carried: Vec::new(),
        memory: Vec::new(),
        ..*state
    }
}
