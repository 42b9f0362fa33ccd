//! Protocol version 1: what is written to a worker, and what its replies mean. `docs/pipe.md` is its text.

use std::borrow::Cow;
use std::ops::Range;

use serde::{Deserialize, Serialize};

/// The version of the protocol.
pub(crate) const VERSION: u64 = 1;

/// How requests and replies are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Framing {
    /// A line of JSON each.
    #[default]
    Json,
    /// Little-endian numbers.
    Binary,
}

/// What a worker says of itself in its greeting.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[expect(clippy::struct_excessive_bools, reason = "the keys of the protocol, each on its own")]
pub struct Hello {
    /// The version of the protocol that it speaks.
    #[serde(rename = "pasta")]
    pub version: u64,
    /// The number of coordinates.
    pub dimension: usize,
    /// Whether it gives losses.
    #[serde(default)]
    pub losses: bool,
    /// Whether seed and number decide a sample, in any worker and at any point.
    #[serde(default)]
    pub reproducible: bool,
    /// Whether a sum over samples is the sum of the samples asked for one by one; not so where one draw stands for several.
    #[serde(default = "yes")]
    pub additive: bool,
    /// True if the gradient of a sample is that of its loss; not so of likelihood ratios.
    #[serde(default = "yes")]
    pub pathwise: bool,
    /// Whether it gives sums of squared norms.
    #[serde(default)]
    pub squares: bool,
    /// How it wants to be written to.
    #[serde(default)]
    pub framing: Framing,
    /// What it simulates.
    #[serde(default)]
    pub name: String,
}

fn yes() -> bool {
    true
}

/// The line that greets a worker.
pub(crate) fn greeting(dimension: usize) -> Vec<u8> {
    format!("{{\"pasta\": {VERSION}, \"dimension\": {dimension}}}\n").into_bytes()
}

/// Reads the answer to a greeting.
pub(crate) fn read_hello(line: &[u8], dimension: usize) -> Result<Hello, Wrong> {
    #[derive(Deserialize)]
    struct Refusal {
        error: String,
    }
    let hello: Hello = match serde_json::from_slice(line) {
        Ok(hello) => hello,
        Err(error) => {
            return Err(match serde_json::from_slice(line) {
                Ok(Refusal { error }) => Wrong::Refused { sentence: error, retry: false },
                Err(_) => Wrong::Greeting(error.to_string()),
            });
        }
    };
    if hello.version != VERSION {
        return Err(Wrong::Greeting(format!("it speaks version {}, not {VERSION}", hello.version)));
    }
    if hello.dimension != dimension {
        let got = hello.dimension;
        return Err(Wrong::Greeting(format!("it has dimension {got}, but {dimension} was asked for")));
    }
    Ok(hello)
}

/// What is wanted beside the gradients.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Wanted {
    pub(crate) losses: bool,
    pub(crate) squares: bool,
}

/// The part of a request that is the same for all blocks of a batch: the points, written once.
#[derive(Debug)]
pub(crate) struct Points<'a> {
    pub(crate) count: usize,
    pub(crate) dim: usize,
    pub(crate) wanted: Wanted,
    pub(crate) framing: Framing,
    /// As they end a request.
    pub(crate) bytes: Cow<'a, [u8]>,
}

impl<'a> Points<'a> {
    /// The bytes are written into a vector that may have been used before.
    pub(crate) fn new(points: &[&'a [f64]], wanted: Wanted, framing: Framing, mut bytes: Vec<u8>) -> Self {
        let (count, dim) = (points.len(), points.first().map_or(0, |x| x.len()));
        bytes.clear();
        if let (Framing::Binary, [x], true) = (framing, points, cfg!(target_endian = "little")) {
            // As it lies in memory.
            return Self { count, dim, wanted, framing, bytes: Cow::Borrowed(bytemuck::cast_slice(x)) };
        }
        match framing {
            Framing::Json => {
                // Writing to memory cannot fail, and a list of numbers can be written.
                let _ = serde_json::to_writer(&mut bytes, points);
                bytes.extend_from_slice(b"}\n");
            }
            Framing::Binary => {
                bytes.resize(8 * count * dim, 0);
                let places = bytes.chunks_exact_mut(8).zip(points.iter().copied().flatten());
                places.for_each(|(place, x)| place.copy_from_slice(&x.to_le_bytes()));
            }
        }
        Self { count, dim, wanted, framing, bytes: Cow::Owned(bytes) }
    }

    /// How many numbers a reply has.
    pub(crate) fn numbers(&self) -> usize {
        let beside = usize::from(self.wanted.losses) + usize::from(self.wanted.squares);
        self.count * (self.dim + beside)
    }

    /// The beginning of a request, which these points end.
    pub(crate) fn write_header(&self, id: u64, seed: u64, samples: &Range<u64>, to: &mut Vec<u8>) {
        let (first, count) = (samples.start, samples.end - samples.start);
        let Wanted { losses, squares } = self.wanted;
        match self.framing {
            Framing::Json => to.extend_from_slice(
                format!(
                    "{{\"id\": {id}, \"seed\": \"{seed:016x}\", \"first\": {first}, \"count\": {count}, \"losses\": {losses}, \
                     \"squares\": {squares}, \"points\": "
                )
                .as_bytes(),
            ),
            Framing::Binary => {
                [id, seed, first, count].iter().for_each(|n| to.extend_from_slice(&n.to_le_bytes()));
                to.extend_from_slice(&(self.count as u32).to_le_bytes());
                to.extend_from_slice(&(u32::from(losses) + 2 * u32::from(squares)).to_le_bytes());
            }
        }
    }

    /// How many bytes a reply has, as far as its beginning tells; `None` while it does not. More than that are no reply.
    pub(crate) fn reply_length(&self, begun: &[u8]) -> Result<Option<usize>, Wrong> {
        match self.framing {
            Framing::Json => match begun.iter().rposition(|byte| *byte == b'\n') {
                Some(end) => Ok(Some(end + 1)),
                None if begun.len() > LONGEST_TEXT + 64 * self.numbers() => {
                    Err(Wrong::Garbage("its line does not end".into()))
                }
                None => Ok(None),
            },
            Framing::Binary => {
                let Some(head) = begun.get(..HEAD) else { return Ok(None) };
                let (status, length) = (word(head, 8), word(head, 12) as usize);
                match status {
                    0 if length == 0 => Ok(Some(HEAD + 8 * self.numbers())),
                    1..=3 if length <= LONGEST_TEXT => Ok(Some(HEAD + length)),
                    0..=3 => Err(Wrong::Garbage(format!("status {status} with a text of {length} bytes"))),
                    _ => Err(Wrong::Garbage(format!("status {status}, which is none"))),
                }
            }
        }
    }

    /// Reads a whole reply: gradients point after point, then losses, then squares.
    pub(crate) fn read_reply(&self, id: u64, bytes: &[u8], into: &mut Vec<f64>) -> Result<(), Wrong> {
        into.clear();
        match self.framing {
            Framing::Json => self.read_line(id, bytes, into)?,
            Framing::Binary => read_bytes(id, bytes, into)?,
        }
        // Zero times what is not finite is NaN, and nothing else is: one pass without a branch.
        let sum: f64 = into.iter().map(|x| x * 0.0).sum();
        if sum == 0.0 { Ok(()) } else { Err(Wrong::NotFinite) }
    }

    fn read_line(&self, id: u64, line: &[u8], into: &mut Vec<f64>) -> Result<(), Wrong> {
        let reply: Reply = serde_json::from_slice(line).or_else(|error| {
            // Some languages write what is not finite as words that JSON does not have.
            let text = String::from_utf8_lossy(line);
            let text = text.replace("-Infinity", "null").replace("Infinity", "null").replace("NaN", "null");
            serde_json::from_str(&text).map_err(|_| Wrong::Garbage(error.to_string()))
        })?;
        let Reply { id: found, gradients, losses, squares, error, retry, ended } = reply;
        if ended {
            return Err(Wrong::Exhausted);
        }
        if let Some(sentence) = error {
            return Err(Wrong::Refused { sentence, retry });
        }
        expect_id(found, id)?;
        let rows = gradients.ok_or_else(|| Wrong::Garbage("it has no gradients".into()))?;
        expect_count("gradients", rows.len(), self.count)?;
        for row in rows {
            expect_count("numbers in a gradient", row.len(), self.dim)?;
            into.extend(row.into_iter().map(finite));
        }
        for (name, values, wanted) in
            [("losses", losses, self.wanted.losses), ("squares", squares, self.wanted.squares)]
        {
            if wanted {
                let values = values.ok_or_else(|| Wrong::Garbage(format!("it has no {name}")))?;
                expect_count(name, values.len(), self.count)?;
                into.extend(values.into_iter().map(finite));
            }
        }
        Ok(())
    }
}

fn read_bytes(id: u64, bytes: &[u8], into: &mut Vec<f64>) -> Result<(), Wrong> {
    let (head, rest) = bytes.split_at(HEAD);
    let mut found = [0; 8];
    found.copy_from_slice(&head[..8]);
    expect_id(Some(u64::from_le_bytes(found)), id)?;
    match word(head, 8) {
        0 => {
            let double = |bytes: &[u8]| unsigned(f64::from_le_bytes(bytes.try_into().unwrap_or_default()));
            into.extend(rest.chunks_exact(8).map(double));
            Ok(())
        }
        3 => Err(Wrong::Exhausted),
        status => {
            Err(Wrong::Refused { sentence: String::from_utf8_lossy(rest).into_owned(), retry: status == 2 })
        }
    }
}

/// Bytes before the numbers of a binary reply.
const HEAD: usize = 16;
/// No sentence is longer, nor a line than this and what its numbers take.
const LONGEST_TEXT: usize = 1 << 20;

#[derive(Deserialize)]
struct Reply {
    id: Option<u64>,
    gradients: Option<Vec<Vec<Option<f64>>>>,
    losses: Option<Vec<Option<f64>>>,
    squares: Option<Vec<Option<f64>>>,
    error: Option<String>,
    #[serde(default)]
    retry: bool,
    #[serde(default)]
    ended: bool,
}

fn finite(number: Option<f64>) -> f64 {
    unsigned(number.unwrap_or(f64::NAN))
}

/// A number as if it were added to zero, which takes the sign from -0.
fn unsigned(number: f64) -> f64 {
    number + 0.0
}

fn word(bytes: &[u8], at: usize) -> u32 {
    let mut word = [0; 4];
    word.copy_from_slice(&bytes[at..at + 4]);
    u32::from_le_bytes(word)
}

fn expect_id(found: Option<u64>, id: u64) -> Result<(), Wrong> {
    if found == Some(id) { Ok(()) } else { Err(Wrong::Id { found, id }) }
}

fn expect_count(what: &'static str, found: usize, wanted: usize) -> Result<(), Wrong> {
    if found == wanted { Ok(()) } else { Err(Wrong::Length { what, found, wanted }) }
}

/// What is wrong with what a worker said, or with the worker.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Wrong {
    /// It could not be started.
    #[error("could not be started: {0}")]
    Start(String),
    /// Its answer to the greeting is none.
    #[error("did not answer the greeting as it should: {0}")]
    Greeting(String),
    /// It is gone.
    #[error("ended without an answer ({0})")]
    Ended(String),
    /// It took too long.
    #[error("did not answer within {0} seconds")]
    TimedOut(String),
    /// Its reply is none.
    #[error("wrote what is no reply: {0}")]
    Garbage(String),
    /// Its reply is to another request.
    #[error("answered request {}, not request {id}", found.map_or("null".into(), |id| id.to_string()))]
    Id {
        /// That of the reply.
        found: Option<u64>,
        /// That of the request.
        id: u64,
    },
    /// Its reply has too few or too many numbers.
    #[error("wrote {found} {what}, where {wanted} belong")]
    Length {
        /// What there are too few or too many of.
        what: &'static str,
        /// How many there are.
        found: usize,
        /// How many there should be.
        wanted: usize,
    },
    /// Its reply has NaN or infinity.
    #[error("wrote numbers that are not finite")]
    NotFinite,
    /// It said that it cannot.
    #[error("says: {sentence}")]
    Refused {
        /// What it said.
        sentence: String,
        /// Whether it wants to be asked again.
        retry: bool,
    },
    /// It has no more samples.
    #[error("has no more samples")]
    Exhausted,
}

impl Wrong {
    /// Whether another worker may do better.
    pub(crate) fn is_worth_a_retry(&self) -> bool {
        !matches!(self, Self::Refused { retry: false, .. } | Self::Exhausted)
    }
}

#[cfg(test)]
mod tests {
    use pasta_opt::draws::{Address, Role, Stream};

    use super::{Framing, Points, Wanted, Wrong, read_hello};

    #[test]
    fn a_worker_is_additive_unless_it_says_otherwise() {
        let additive = |more: &str| {
            let line = format!("{{\"pasta\": 1, \"dimension\": 2{more}}}\n");
            read_hello(line.as_bytes(), 2).map(|hello| hello.additive).ok()
        };
        assert_eq!(additive(""), Some(true));
        assert_eq!(additive(", \"additive\": false"), Some(false));
        assert_eq!(additive(", \"additive\": 3"), None);
    }

    /// A reply with something changed at random.
    fn damaged(reply: &[u8], xi: &mut Stream) -> Vec<u8> {
        const PIECES: [&str; 12] = [
            "NaN",
            "-Infinity",
            "null",
            "[",
            "]",
            "{",
            "\"",
            ",",
            "1e999",
            "\n",
            "\\u0000",
            "\"retry\": true,",
        ];
        let mut reply = reply.to_vec();
        for _ in 0..=xi.below(4) {
            let at = xi.below(reply.len() as u64 + 1) as usize;
            let until = (at + xi.below(9) as usize).min(reply.len());
            match xi.below(6) {
                0 if at < reply.len() => reply[at] ^= 1 << xi.below(8),
                1 if at < reply.len() => reply[at] = xi.below(256) as u8,
                2 => drop(reply.drain(at..until)),
                3 => reply.truncate(at),
                4 => {
                    let copy = reply[at..until].to_vec();
                    reply.splice(at..at, copy);
                }
                _ => drop(reply.splice(at..at, PIECES[xi.below(12) as usize].bytes())),
            }
        }
        reply
    }

    /// Read as a worker's pipe is: what its beginning says of its length comes first. `FUZZ_CASES=1000000` tries more.
    #[test]
    fn damaged_replies_are_read_or_refused_in_both_framings() {
        let trials = std::env::var("FUZZ_CASES").map_or(3000, |n| n.parse().expect("a number"));
        let (x, wanted) = ([1.0, -2.5], Wanted { losses: true, squares: true });
        let line =
            b"{\"id\": 7, \"gradients\": [[1.5, -2.0]], \"losses\": [0.25], \"squares\": [4]}\n".to_vec();
        let mut bytes = [7_u64.to_le_bytes(), [0; 8]].concat();
        [1.5, -2.0, 0.25, 4.0_f64].iter().for_each(|number| bytes.extend(number.to_le_bytes()));
        let refusal = [&7_u64.to_le_bytes()[..], &[2, 0, 0, 0, 3, 0, 0, 0], b"bad"].concat();
        let hello =
            b"{\"pasta\": 1, \"dimension\": 2, \"losses\": true, \"framing\": \"binary\", \"name\": \"a\"}\n";
        for (framing, replies) in [(Framing::Json, vec![line]), (Framing::Binary, vec![bytes, refusal])] {
            let points = [&x[..]];
            let points = Points::new(&points, wanted, framing, Vec::new());
            let mut counts = [0; 3];
            for trial in 0..trials {
                let mut xi =
                    Address { seed: 5, role: Role::Setup, step: framing as u64, sample: trial }.stream();
                let reply = damaged(&replies[trial as usize % replies.len()], &mut xi);
                let mut into = Vec::new();
                let outcome = match points.reply_length(&reply) {
                    Ok(Some(length)) if length == reply.len() => points.read_reply(7, &reply, &mut into),
                    Ok(None) => continue,
                    Ok(Some(_)) => Err(Wrong::NotFinite),
                    Err(wrong) => Err(wrong),
                };
                if outcome.is_ok() {
                    assert!(into.len() == points.numbers() && into.iter().all(|x| x.is_finite()), "{into:?}");
                }
                counts[usize::from(outcome.is_ok())] += 1;
                counts[2] += usize::from(read_hello(&damaged(hello, &mut xi), 2).is_ok());
            }
            assert!(counts.iter().all(|count| *count > 0), "{counts:?}");
        }
    }
}
