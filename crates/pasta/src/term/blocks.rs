//! Terms over blocks of coordinates.

use std::ops::Range;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::{Outside, Piece, Steps, Term, TermError};

/// Some of the coordinates, counted from 0. In files: "0..10", without the 10, or a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Coordinates {
    /// From the first to before the last.
    Range(Range<usize>),
    /// These, in this order.
    List(Vec<usize>),
}

impl Coordinates {
    /// How many they are.
    pub fn len(&self) -> usize {
        match self {
            Self::Range(range) => range.len(),
            Self::List(list) => list.len(),
        }
    }

    /// True if there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The coordinate of the whole point that is number i of these.
    pub fn at(&self, i: usize) -> usize {
        match self {
            Self::Range(range) => range.start + i,
            Self::List(list) => list[i],
        }
    }

    /// Each of them.
    pub fn iter(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.len()).map(|i| self.at(i))
    }
}

impl Serialize for Coordinates {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Range(range) => to.serialize_str(&format!("{}..{}", range.start, range.end)),
            Self::List(list) => list.serialize(to),
        }
    }
}

impl<'de> Deserialize<'de> for Coordinates {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(
            untagged,
            expecting = "coordinates are a range such as \"0..10\" or a list of numbers from 0"
        )]
        enum Form {
            Range(String),
            List(Vec<usize>),
        }
        match Form::deserialize(from)? {
            Form::List(list) => Ok(Self::List(list)),
            Form::Range(text) => {
                let ends = text
                    .split_once("..")
                    .and_then(|(start, end)| Some(start.trim().parse().ok()?..end.trim().parse().ok()?));
                ends.map(Self::Range).ok_or_else(|| {
                    serde::de::Error::custom(format!(
                        "coordinates {text:?}: give a range such as \"0..10\" (without the 10) or a list"
                    ))
                })
            }
        }
    }
}

/// A term over some coordinates.
#[derive(Debug, Clone)]
pub struct Block {
    /// The coordinates, each once.
    pub coordinates: Coordinates,
    /// The term, of as many numbers.
    pub term: Arc<dyn Term>,
}

/// A sum of terms over blocks that share no coordinate; coordinates in none are free.
#[derive(Debug, Clone)]
pub struct Blocks {
    /// The blocks.
    pub blocks: Vec<Block>,
}

impl Block {
    /// The block's own coordinates of x.
    fn of(&self, x: &[f64]) -> Vec<f64> {
        match &self.coordinates {
            Coordinates::Range(range) => x[range.clone()].to_vec(),
            Coordinates::List(list) => list.iter().map(|&i| x[i]).collect(),
        }
    }

    /// A message about number `local` of the block that begins with its name gets the name in the whole point.
    fn renamed(&self, words: String, name: &str, local: usize) -> String {
        match words.strip_prefix(&format!("{name}{local} ")) {
            Some(rest) => format!("{name}{} {rest}", self.coordinates.at(local)),
            None => words,
        }
    }

    fn prox(&self, steps: Steps<'_>, v: &mut [f64]) {
        match (&self.coordinates, steps) {
            (Coordinates::Range(range), Steps::One(_)) => self.term.prox(steps, &mut v[range.clone()]),
            (Coordinates::Range(range), Steps::Each(gammas)) => {
                self.term.prox(Steps::Each(&gammas[range.clone()]), &mut v[range.clone()]);
            }
            (Coordinates::List(list), _) => {
                let mut own = self.of(v);
                match steps {
                    Steps::One(_) => self.term.prox(steps, &mut own),
                    Steps::Each(gammas) => self.term.prox(Steps::Each(&self.of(gammas)), &mut own),
                }
                list.iter().zip(own).for_each(|(&i, own)| v[i] = own);
            }
        }
    }
}

impl Term for Blocks {
    fn identity(&self) -> String {
        let each =
            self.blocks.iter().map(|block| format!("{} on {:?}", block.term.identity(), block.coordinates));
        each.collect::<Vec<_>>().join(" + ")
    }

    fn check(&self, dim: usize) -> Result<(), TermError> {
        let mut seen = vec![false; dim];
        for block in &self.blocks {
            for i in block.coordinates.iter() {
                match seen.get_mut(i) {
                    None => {
                        return Err(TermError(format!(
                            "there is no coordinate {i}: there are {dim}, and the first is 0"
                        )));
                    }
                    Some(true) => {
                        return Err(TermError(format!("coordinate {i} is in two blocks, or twice in one")));
                    }
                    Some(seen) => *seen = true,
                }
            }
            let n = block.coordinates.len();
            block.term.check(n).map_err(|TermError(words)| {
                let named = (0..n).find(|i| words.starts_with(&format!("coordinate {i} ")));
                TermError(match named {
                    Some(local) => block.renamed(words, "coordinate ", local),
                    None => words,
                })
            })?;
        }
        Ok(())
    }

    fn value(&self, x: &[f64]) -> f64 {
        self.blocks.iter().map(|block| block.term.value(&block.of(x))).sum()
    }

    fn prox(&self, steps: Steps<'_>, v: &mut [f64]) {
        self.blocks.iter().for_each(|block| block.prox(steps, v));
    }

    fn outside(&self, x: &[f64]) -> Option<Outside> {
        self.blocks.iter().find_map(|block| {
            let Outside { coordinate, words } = block.term.outside(&block.of(x))?;
            Some(match coordinate {
                Some(local) => {
                    let words = block.renamed(words, "x", local);
                    Outside { coordinate: Some(block.coordinates.at(local)), words }
                }
                None => Outside { coordinate, words },
            })
        })
    }

    fn piece(&self, i: usize) -> Option<Piece> {
        for block in &self.blocks {
            if let Some(local) = block.coordinates.iter().position(|own| own == i) {
                return block.term.piece(local);
            }
        }
        Some(Piece::default())
    }
}
