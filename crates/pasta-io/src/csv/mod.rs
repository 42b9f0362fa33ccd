//! CSV: columns with a delimiter between them, quoted as RFC 4180 has it, or with blanks between them.
//!
//! A quotation mark is allowed only around a whole cell. So a line end is the end of a record exactly if an even number of marks
//! comes before it, and the text can be cut for several threads.

mod layout;
mod record;
mod table;

use std::collections::HashMap;

use layout::{Layout, Role};
use record::{Cells, is_blank, record};
use table::Raw;

use crate::encoding::Encoding;
use crate::fault::{Fault, Located, Misfit, shown};
use crate::memory::Memory;
use crate::names::Names;
use crate::number::{Number, whole};
use crate::source::{Chunks, Ends, Parsed, Watch};
use crate::{Data, Meaning, Missing, Options};

pub(crate) fn read<T: Number>(
    mut chunks: Chunks,
    options: &Options,
    encoding: Option<&Encoding>,
    watch: Watch<'_>,
) -> Result<Data, Located> {
    chunks.ends = Ends::Record;
    let layout = Layout::of(chunks.peek()?, options, encoding)?;
    chunks.consume(layout.header.0, layout.header.1);
    let mut raw = Raw::<T>::new(&layout, Memory(options.memory));
    chunks.parse(watch, |chunk| parse::<T>(chunk, &layout), |part, lines| raw.take(part, lines, &layout))?;
    raw.finish(layout, options)
}

/// The bytes and lines of the header, if there is one.
pub(crate) fn header(chunks: &mut Chunks, options: &Options) -> Result<(usize, u64), Located> {
    chunks.ends = Ends::Record;
    Ok(Layout::of(chunks.peek()?, options, None)?.header)
}

/// Words, numbered as they appear.
#[derive(Debug, Clone, Default)]
struct Dictionary {
    words: Vec<String>,
    numbers: HashMap<String, u32>,
}

impl Dictionary {
    fn of(words: &[String]) -> Self {
        let mut dictionary = Self::default();
        for word in words {
            dictionary.number(word);
        }
        dictionary
    }

    fn number(&mut self, word: &str) -> u32 {
        if let Some(number) = self.numbers.get(word) {
            return *number;
        }
        let number = self.words.len() as u32;
        self.words.push(word.to_owned());
        self.numbers.insert(word.to_owned(), number);
        number
    }
}

/// Letters of a word that a message shows.
const LONGEST: usize = 40;

/// What a cell holds.
enum Cell<'c> {
    Number(f64),
    Word(&'c str),
    /// No value. What stands there may be a category, where the column has some.
    Missing(&'c str),
}

impl Cell<'_> {
    fn of(cell: &[u8]) -> Result<Cell<'_>, Fault> {
        if let Some((value, length)) = crate::number::leading(cell)
            && length == cell.len()
        {
            return if value.is_finite() { Ok(Cell::Number(value)) } else { Err(too_large::<f64>(cell)) };
        }
        match cell {
            b"None" => Ok(Cell::Missing("None")),
            b"N/A" => Ok(Cell::Missing("N/A")),
            b"n/a" => Ok(Cell::Missing("n/a")),
            b"." => Ok(Cell::Missing(".")),
            b"" | b"NA" | b"NaN" | b"nan" | b"NAN" | b"null" | b"NULL" | b"?" | b"<null>" => {
                Ok(Cell::Missing(""))
            }
            _ if whole(cell).is_some() => Err(Fault::NotFinite(shown(cell)?)),
            _ => match std::str::from_utf8(cell) {
                Ok(word) => Ok(Cell::Word(word)),
                Err(error) => Err(Fault::NotText(cell[error.valid_up_to()])),
            },
        }
    }
}

fn too_large<T: Number>(cell: &[u8]) -> Fault {
    Fault::TooLarge { found: String::from_utf8_lossy(cell).into_owned(), kept: T::NAME }
}

/// The rows of a chunk. A cell without a value has code 0, a word its number and 1.
struct Part<T> {
    cells: Vec<T>,
    labels: Vec<f64>,
    weights: Vec<f64>,
    offsets: Vec<f64>,
    /// The words of each feature; nothing where there can be none.
    words: Vec<Dictionary>,
    /// The first word of each feature that stands for itself, and not for a category that was asked for; nothing where there can be none.
    first_words: Vec<Option<Place>>,
    /// The first number of each feature that is written like a code.
    first_codes: Vec<Option<String>>,
    /// Words of each feature that the encoding has not seen: how many, and the first of them; nothing where they are refused.
    unseen: Vec<(u64, Vec<String>)>,
    names: Names,
}

/// True if a whole number is written like a code, which loses something as a number: zeros in front, or more digits than a double keeps.
fn is_code(cell: &[u8]) -> bool {
    const KEPT: usize = 15;
    let zeros = cell.len() > 1 && cell[0] == b'0';
    (zeros || cell.len() > KEPT) && cell.iter().all(u8::is_ascii_digit)
}

/// Words that a message names, at most.
const NAMED: usize = 3;

/// Takes a word that a message may name.
fn note(words: &mut Vec<String>, word: &str) {
    let word: String = word.chars().take(LONGEST).collect();
    if words.len() < NAMED && !words.contains(&word) {
        words.push(word);
    }
}

/// Where a word stands.
#[derive(Debug, Clone)]
struct Place {
    line: u64,
    /// The number of the column, from 0.
    column: usize,
    word: String,
}

fn parse<T: Number>(chunk: &[u8], layout: &Layout<'_>) -> Parsed<Part<T>> {
    let width = layout.worded();
    let mut part = Part {
        cells: Vec::new(),
        labels: Vec::new(),
        weights: Vec::new(),
        offsets: Vec::new(),
        words: vec![Dictionary::default(); width],
        first_words: vec![None; width],
        first_codes: vec![None; layout.names.len()],
        unseen: vec![Default::default(); if layout.unseen { layout.names.len() } else { 0 }],
        names: Names::default(),
    };
    let mut cells = Cells::new();
    let (mut rest, mut lines) = (chunk, 0);
    while !rest.is_empty() {
        let begin = lines + 1;
        let row = match record(rest, layout.delimiter, &mut cells) {
            Ok((length, there)) => {
                rest = &rest[length..];
                lines += there;
                if is_blank(&cells) { Ok(()) } else { part.row(&cells, begin, layout) }
            }
            Err(misfit) => Err(misfit),
        };
        if let Err(misfit) = row {
            return Parsed { lines, result: Err((begin, misfit)) };
        }
    }
    Parsed { lines, result: Ok(part) }
}

impl<T: Number> Part<T> {
    fn row(&mut self, cells: &Cells<'_>, line: u64, layout: &Layout<'_>) -> Result<(), Misfit> {
        let expected = layout.roles.len();
        if cells.len() != expected {
            return Err(Fault::Ragged { expected, found: cells.len() }.into());
        }
        let width = layout.names.len();
        let begin = self.cells.len();
        self.cells.resize(begin + width, T::default());
        for (k, (cell, role)) in cells.iter().zip(&layout.roles).enumerate() {
            let done = match *role {
                Role::Ignored => Ok(()),
                Role::Feature(place) => {
                    let value = self.feature(cell, layout, place, (line, k));
                    value.map(|value| self.cells[begin + place] = value)
                }
                Role::Label => self.label(cell, layout, line).map(|label| self.labels.push(label)),
                Role::Weight => weight(cell).map(|weight| self.weights.push(weight)),
                Role::Offset => offset(cell, layout).map(|offset| self.offsets.push(offset)),
            };
            done.map_err(|fault| fault.at(k))?;
        }
        Ok(())
    }

    fn feature(
        &mut self,
        cell: &[u8],
        layout: &Layout<'_>,
        place: usize,
        at: (u64, usize),
    ) -> Result<T, Fault> {
        let name = || layout.names[place].clone();
        let known = layout.known.get(place).and_then(Option::as_ref);
        let is_category = known.is_some() || layout.categories[place];
        let mut word = |word: &str| -> Result<T, Fault> {
            let number = match known {
                Some(known) => match known.numbers.get(word) {
                    Some(number) => *number,
                    None if layout.unseen => {
                        let (cells, words) = &mut self.unseen[place];
                        *cells += 1;
                        note(words, word);
                        return Ok(T::marked(0));
                    }
                    None => {
                        return Err(Fault::Category {
                            column: name(),
                            found: word.chars().take(LONGEST).collect(),
                            known: known.words.len(),
                        });
                    }
                },
                None if layout.categories[place] || layout.one_hot && layout.encoding.is_none() => {
                    self.words[place].number(word)
                }
                None => {
                    return Err(Fault::Text { column: name(), found: word.chars().take(LONGEST).collect() });
                }
            };
            if number >= T::CODES - 1 {
                return Err(Fault::Categories { column: name(), most: T::CODES - 1 });
            }
            Ok(T::marked(number + 1))
        };
        match Cell::of(cell)? {
            Cell::Number(value) if is_category => {
                let text = std::str::from_utf8(cell).unwrap_or_default();
                let number = value.to_string();
                // Models of other files may know a code as the number that it is.
                let knows_number = known.is_some_and(|known| {
                    !known.numbers.contains_key(text) && known.numbers.contains_key(&number)
                });
                if is_code(cell) && !knows_number { word(text) } else { word(&number) }
            }
            Cell::Number(value) => {
                if is_code(cell) {
                    let text = || String::from_utf8_lossy(cell).chars().take(LONGEST).collect();
                    self.first_codes[place].get_or_insert_with(text);
                }
                let kept = T::of(value);
                if kept.wide().is_finite() { Ok(kept) } else { Err(too_large::<T>(cell)) }
            }
            Cell::Word(text) => {
                let value = word(text)?;
                if !is_category {
                    let (line, column) = at;
                    let word = || text.chars().take(LONGEST).collect();
                    self.first_words[place].get_or_insert_with(|| Place { line, column, word: word() });
                }
                Ok(value)
            }
            Cell::Missing(text) if !text.is_empty() && layout.is_category(place, text) => word(text),
            Cell::Missing(_) if layout.may_miss(place) => Ok(T::marked(0)),
            Cell::Missing(_) if layout.encoding.is_some() => {
                Err(Fault::NoFill { column: name(), found: shown(cell)? })
            }
            Cell::Missing(_) => Err(Fault::Missing { column: name(), found: shown(cell)? }),
        }
    }

    fn label(&mut self, cell: &[u8], layout: &Layout<'_>, line: u64) -> Result<f64, Fault> {
        match Cell::of(cell)? {
            Cell::Number(_) if layout.meaning == Meaning::Classes => {
                Ok(self.names.mark(&String::from_utf8_lossy(cell), line))
            }
            Cell::Number(value) => Ok(value),
            Cell::Word(word) => Ok(self.names.mark(word, line)),
            Cell::Missing(_) if layout.missing == Missing::DropRow || layout.spare_labels => {
                Ok(f64::marked(0))
            }
            Cell::Missing(_) => Err(Fault::NoLabel { column: layout.label.clone(), found: shown(cell)? }),
        }
    }
}

fn offset(cell: &[u8], layout: &Layout<'_>) -> Result<f64, Fault> {
    match Cell::of(cell)? {
        Cell::Number(value) => Ok(value),
        Cell::Missing(_) if layout.missing == Missing::DropRow => Ok(f64::marked(0)),
        _ => Err(Fault::Expected { expected: "an offset, a number", found: shown(cell)? }),
    }
}

fn weight(cell: &[u8]) -> Result<f64, Fault> {
    match Cell::of(cell)? {
        Cell::Number(value) if value >= 0.0 => Ok(value),
        _ => Err(Fault::Expected { expected: "a weight, not below 0", found: shown(cell)? }),
    }
}
