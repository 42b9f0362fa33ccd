//! CSV: columns with a delimiter between them, quoted as RFC 4180 has it, or with blanks between them.
//!
//! A quotation mark is allowed only around a whole cell. So a line end is the end of a record exactly if an even number of marks
//! comes before it, and the text can be cut for several threads.

use std::borrow::Cow;
use std::collections::HashMap;

use rayon::prelude::*;

use crate::encoding::{Code, Encoding};
use crate::fault::{Fault, Located, Misfit, listed, shown};
use crate::number::{Number, whole};
use crate::source::{Chunks, Ends, Parsed, Watch};
use crate::store::{DENSE, Storage, grow, reserve};
use crate::{Data, Label, Missing, Options};
use pasta_opt::table::{Dense, Features, Sparse, shared};

pub(crate) fn read<T: Number>(
    mut chunks: Chunks,
    options: &Options,
    encoding: Option<&Encoding>,
    watch: Watch<'_>,
) -> Result<Data, Located> {
    chunks.ends = Ends::Record;
    let layout = Layout::of(chunks.peek()?, options, encoding)?;
    chunks.consume(layout.header.0, layout.header.1);
    let mut raw = Raw::<T>::new(&layout);
    chunks.parse(watch, |chunk| parse::<T>(chunk, &layout), |part| raw.take(part, &layout))?;
    raw.finish(layout, options)
}

/// The bytes and lines of the header, if there is one.
pub(crate) fn header(chunks: &mut Chunks, options: &Options) -> Result<(usize, u64), Located> {
    chunks.ends = Ends::Record;
    Ok(Layout::of(chunks.peek()?, options, None)?.header)
}

/// What stands between columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Delimiter {
    Byte(u8),
    Blanks,
}

/// What a column of the file is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    /// A feature, and its place.
    Feature(usize),
    Label,
    Weight,
    Ignored,
}

/// What is known of a file before its rows are read.
struct Layout<'e> {
    delimiter: Delimiter,
    roles: Vec<Role>,
    /// The names of the features.
    names: Vec<String>,
    named: bool,
    label: String,
    /// The bytes and lines of the header.
    header: (usize, u64),
    missing: Missing,
    one_hot: bool,
    encoding: Option<&'e Encoding>,
    /// What becomes of each feature, by the encoding.
    codes: Option<Vec<Code>>,
    /// The categories of each feature, by the encoding.
    known: Vec<Option<Dictionary>>,
}

/// Cells of a record.
type Cells<'c> = Vec<Cow<'c, [u8]>>;

impl<'e> Layout<'e> {
    fn of(text: &[u8], options: &Options, encoding: Option<&'e Encoding>) -> Result<Self, Located> {
        let delimiter = match options.delimiter {
            Some(b' ') => Delimiter::Blanks,
            Some(byte) => Delimiter::Byte(byte),
            None => delimiter(text),
        };
        let mut cells = Cells::new();
        let (mut at, mut lines) = (0, 0);
        // Blank lines before the first record are not its.
        while at < text.len() && (cells.is_empty() || is_blank(&cells)) {
            let (length, there) =
                record(&text[at..], delimiter, &mut cells).map_err(|misfit| misfit.in_line(lines + 1))?;
            at += length;
            lines += there;
        }
        if cells.is_empty() || is_blank(&cells) {
            return Err(Fault::Empty.into());
        }
        let header = match (options.header, encoding) {
            (Some(header), _) => header,
            (None, Some(encoding)) if encoding.is_named() => true,
            _ => cells.iter().all(|cell| !cell.is_empty() && whole(cell).is_none()),
        };
        let count = cells.len();
        let columns: Vec<String> = if header {
            let name = |(k, cell): (usize, &Cow<'_, [u8]>)| {
                let text = std::str::from_utf8(cell);
                text.map(str::to_owned)
                    .map_err(|error| Fault::NotText(cell[error.valid_up_to()]).at(k).in_line(lines))
            };
            cells.iter().enumerate().map(name).collect::<Result<_, _>>()?
        } else {
            (1..=count).map(|k| k.to_string()).collect()
        };
        if header {
            let mut sorted: Vec<&String> = columns.iter().collect();
            sorted.sort();
            if let Some(twice) = sorted.windows(2).find(|pair| pair[0] == pair[1]) {
                return Err(Fault::TwoColumns(twice[0].clone()).into());
            }
        }
        let mut layout = Self {
            delimiter,
            roles: vec![Role::Ignored; count],
            names: Vec::new(),
            named: header,
            label: String::new(),
            header: if header { (at, lines) } else { (0, 0) },
            missing: options.missing,
            one_hot: options.one_hot,
            encoding,
            codes: encoding.map(Encoding::codes),
            known: Vec::new(),
        };
        layout.assign(&columns, options)?;
        Ok(layout)
    }

    /// Gives every column its role.
    fn assign(&mut self, columns: &[String], options: &Options) -> Result<(), Fault> {
        let find = |name: &str| position(columns, name, self.named);
        let must = |name: &str| {
            find(name).ok_or_else(|| Fault::NoColumn { name: name.to_owned(), columns: listed(columns) })
        };
        let mut taken = vec![false; columns.len()];
        let expected = self.codes.as_ref().map(Vec::len);
        for name in &options.ignore {
            taken[must(name)?] = true;
        }
        if let Some(name) = &options.weight {
            let k = must(name)?;
            (self.roles[k], taken[k]) = (Role::Weight, true);
        }
        let free = || taken.iter().filter(|taken| !**taken).count();
        let label = match &options.label {
            Label::Column(name) => Some(must(name)?),
            Label::Usual => {
                Some(usual(columns, self.named).ok_or_else(|| Fault::WhichLabel(listed(columns)))?)
            }
            // Without names, a file with one column more than the features has the labels too.
            Label::IfThere(name) if !self.named => find(name).filter(|_| Some(free()) > expected),
            Label::IfThere(name) => find(name),
        };
        if let Some(k) = label {
            if taken[k] {
                return Err(Fault::Choice(format!(
                    "column {:?} cannot be the label and something else",
                    columns[k]
                )));
            }
            (self.roles[k], taken[k]) = (Role::Label, true);
            self.label.clone_from(&columns[k]);
        }
        let features: Vec<usize> = (0..columns.len()).filter(|&k| !taken[k]).collect();
        if let Some(codes) = self.codes.take() {
            self.match_features(columns, &features, &codes)?;
            self.names = codes.iter().map(|code| code.name.clone()).collect();
            self.known = codes.iter().map(|code| code.categories.as_deref().map(Dictionary::of)).collect();
            self.codes = Some(codes);
        } else {
            for (place, &k) in features.iter().enumerate() {
                self.roles[k] = Role::Feature(place);
            }
            self.names = features.iter().map(|&k| columns[k].clone()).collect();
        }
        if self.names.is_empty() { Err(Fault::NoFeatures) } else { Ok(()) }
    }

    /// Matches columns with those of the encoding: by name where both have names, in their order otherwise.
    fn match_features(
        &mut self,
        columns: &[String],
        features: &[usize],
        codes: &[Code],
    ) -> Result<(), Fault> {
        let expected = || listed(&codes.iter().map(|code| code.name.clone()).collect::<Vec<_>>());
        let by_name = self.named && self.encoding.is_some_and(Encoding::is_named);
        if by_name {
            let places: HashMap<&str, usize> =
                codes.iter().enumerate().map(|(place, code)| (code.name.as_str(), place)).collect();
            for &k in features {
                let place = places.get(columns[k].as_str());
                let unknown = || Fault::UnknownColumn { name: columns[k].clone(), expected: expected() };
                self.roles[k] = Role::Feature(*place.ok_or_else(unknown)?);
            }
            if let Some(code) = codes.iter().find(|code| !columns.contains(&code.name)) {
                return Err(Fault::NoColumn { name: code.name.clone(), columns: listed(columns) });
            }
        }
        if features.len() != codes.len() {
            return Err(Fault::Columns { expected: codes.len(), found: features.len() });
        }
        if !by_name {
            for (place, &k) in features.iter().enumerate() {
                self.roles[k] = Role::Feature(place);
            }
        }
        Ok(())
    }

    /// Whether a feature may have no value.
    fn may_miss(&self, place: usize) -> bool {
        let filled = self.codes.as_ref().map(|codes| codes[place].fill.is_some());
        self.missing == Missing::DropRow || filled.unwrap_or(self.missing != Missing::Refuse)
    }
}

/// The column of this name, or of this number, from 1.
fn position(columns: &[String], name: &str, named: bool) -> Option<usize> {
    let by_name = columns.iter().position(|column| named && column == name);
    by_name.or_else(|| name.parse::<usize>().ok()?.checked_sub(1).filter(|k| *k < columns.len()))
}

/// The one column with a name that labels have.
fn usual(columns: &[String], named: bool) -> Option<usize> {
    let is_label =
        |name: &String| ["label", "target", "class", "y"].contains(&name.to_ascii_lowercase().as_str());
    let mut found = (0..columns.len()).filter(|&k| named && is_label(&columns[k]));
    found.next().filter(|_| found.next().is_none())
}

/// What the first line that is not blank has most of, outside of quotation marks.
fn delimiter(text: &[u8]) -> Delimiter {
    let mut lines = text.split(|byte| *byte == b'\n');
    let line = lines.find(|line| !line.iter().all(u8::is_ascii_whitespace)).unwrap_or_default();
    let mut within = false;
    let candidates = *b",;\t|";
    let mut counts = [0; 4];
    for byte in line {
        within ^= *byte == b'"';
        if let Some(k) = candidates.iter().position(|candidate| candidate == byte && !within) {
            counts[k] += 1;
        }
    }
    let most = (0..4).rev().max_by_key(|&k| counts[k]).unwrap_or(0);
    let trimmed = line.trim_ascii();
    match counts[most] {
        0 if trimmed.contains(&b' ') && !trimmed.contains(&b'"') => Delimiter::Blanks,
        0 => Delimiter::Byte(b','),
        _ => Delimiter::Byte(candidates[most]),
    }
}

fn is_blank(cells: &Cells<'_>) -> bool {
    matches!(cells.as_slice(), [] | [Cow::Borrowed([])])
}

/// The next record: its cells, its length and its lines.
fn record<'c>(text: &'c [u8], delimiter: Delimiter, cells: &mut Cells<'c>) -> Result<(usize, u64), Misfit> {
    cells.clear();
    let Delimiter::Byte(delimiter) = delimiter else {
        let end = memchr::memchr(b'\n', text).unwrap_or(text.len());
        let words = text[..end].split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
        cells.extend(words.map(Cow::Borrowed));
        if let Some(k) = cells.iter().position(|cell| cell.contains(&b'"')) {
            return Err(Fault::Quote("a quotation mark in a file with blanks between its columns").at(k));
        }
        return Ok(((end + 1).min(text.len()), 1));
    };
    let (mut at, mut lines) = (0, 1);
    loop {
        while text.get(at) == Some(&b' ') {
            at += 1;
        }
        if text.get(at) == Some(&b'"') {
            let (cell, end) = quoted(text, at + 1).map_err(|fault| fault.at(cells.len()))?;
            lines += memchr::memchr_iter(b'\n', &text[at..end]).count() as u64;
            at = end;
            while matches!(text.get(at), Some(b' ' | b'\r')) {
                at += 1;
            }
            if !matches!(text.get(at), None | Some(b'\n')) && text.get(at) != Some(&delimiter) {
                return Err(Fault::Quote("text behind the quotation mark that ends a cell").at(cells.len()));
            }
            cells.push(cell);
        } else {
            let end = memchr::memchr2(delimiter, b'\n', &text[at..]).map_or(text.len(), |end| at + end);
            let cell = text[at..end].trim_ascii_end();
            if memchr::memchr(b'"', cell).is_some() {
                let fault = Fault::Quote("a quotation mark in a cell that does not begin with one");
                return Err(fault.at(cells.len()));
            }
            cells.push(Cow::Borrowed(cell));
            at = end;
        }
        match text.get(at) {
            Some(byte) if *byte == delimiter => at += 1,
            Some(_) => return Ok((at + 1, lines)),
            None => return Ok((at, lines)),
        }
    }
}

/// A cell behind its first quotation mark, and where it ends.
fn quoted(text: &[u8], begin: usize) -> Result<(Cow<'_, [u8]>, usize), Fault> {
    let mut at = begin;
    let mut parts: Option<Vec<u8>> = None;
    loop {
        let mark = memchr::memchr(b'"', &text[at..]).map(|k| at + k);
        let mark = mark.ok_or(Fault::Quote("a quotation mark without its partner"))?;
        if text.get(mark + 1) != Some(&b'"') {
            let cell = match parts {
                None => Cow::Borrowed(&text[begin..mark]),
                Some(mut parts) => {
                    parts.extend_from_slice(&text[at..mark]);
                    Cow::Owned(parts)
                }
            };
            return Ok((cell, mark + 1));
        }
        // Two marks stand for one.
        parts.get_or_insert_default().extend_from_slice(&text[at..=mark]);
        at = mark + 2;
    }
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

/// What a cell holds.
enum Cell<'c> {
    Number(f64),
    Word(&'c str),
    Missing,
}

impl Cell<'_> {
    fn of(cell: &[u8]) -> Result<Cell<'_>, Fault> {
        if let Some((value, length)) = crate::number::leading(cell)
            && length == cell.len()
        {
            return if value.is_finite() { Ok(Cell::Number(value)) } else { Err(too_large::<f64>(cell)) };
        }
        match cell {
            b"" | b"NA" | b"N/A" | b"n/a" | b"NaN" | b"nan" | b"NAN" | b"null" | b"NULL" | b"None" | b"?"
            | b"." | b"<null>" => Ok(Cell::Missing),
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
    words: Vec<Dictionary>,
    label_words: Dictionary,
}

fn parse<T: Number>(chunk: &[u8], layout: &Layout<'_>) -> Parsed<Part<T>> {
    let width = layout.names.len();
    let mut part = Part {
        cells: Vec::new(),
        labels: Vec::new(),
        weights: Vec::new(),
        words: vec![Dictionary::default(); width],
        label_words: Dictionary::default(),
    };
    let mut cells = Cells::new();
    let (mut rest, mut lines) = (chunk, 0);
    while !rest.is_empty() {
        let begin = lines + 1;
        let row = match record(rest, layout.delimiter, &mut cells) {
            Ok((length, there)) => {
                rest = &rest[length..];
                lines += there;
                if is_blank(&cells) { Ok(()) } else { part.row(&cells, layout) }
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
    fn row(&mut self, cells: &Cells<'_>, layout: &Layout<'_>) -> Result<(), Misfit> {
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
                    self.feature(cell, layout, place).map(|value| self.cells[begin + place] = value)
                }
                Role::Label => self.label(cell, layout).map(|label| self.labels.push(label)),
                Role::Weight => weight(cell).map(|weight| self.weights.push(weight)),
            };
            done.map_err(|fault| fault.at(k))?;
        }
        Ok(())
    }

    fn feature(&mut self, cell: &[u8], layout: &Layout<'_>, place: usize) -> Result<T, Fault> {
        let name = || layout.names[place].clone();
        let known = layout.known.get(place).and_then(Option::as_ref);
        let mut word = |word: &str| -> Result<T, Fault> {
            let number = match known {
                Some(known) => *known.numbers.get(word).ok_or_else(|| Fault::Category {
                    column: name(),
                    found: word.chars().take(40).collect(),
                    known: known.words.len(),
                })?,
                None if layout.one_hot && layout.encoding.is_none() => self.words[place].number(word),
                None => {
                    return Err(Fault::Text { column: name(), found: word.chars().take(40).collect() });
                }
            };
            if number >= T::CODES - 1 {
                return Err(Fault::Categories { column: name(), most: T::CODES - 1 });
            }
            Ok(T::marked(number + 1))
        };
        match Cell::of(cell)? {
            Cell::Number(value) if known.is_some() => word(&value.to_string()),
            Cell::Number(value) => {
                let kept = T::of(value);
                if kept.wide().is_finite() { Ok(kept) } else { Err(too_large::<T>(cell)) }
            }
            Cell::Word(text) => word(text),
            Cell::Missing if layout.may_miss(place) => Ok(T::marked(0)),
            Cell::Missing => Err(Fault::Missing { column: name(), found: shown(cell)? }),
        }
    }

    fn label(&mut self, cell: &[u8], layout: &Layout<'_>) -> Result<f64, Fault> {
        match Cell::of(cell)? {
            Cell::Number(value) => Ok(value),
            Cell::Word(word) => Ok(f64::marked(self.label_words.number(word) + 1)),
            Cell::Missing if layout.missing == Missing::DropRow => Ok(f64::marked(0)),
            Cell::Missing => Err(Fault::Missing { column: layout.label.clone(), found: shown(cell)? }),
        }
    }
}

fn weight(cell: &[u8]) -> Result<f64, Fault> {
    match Cell::of(cell)? {
        Cell::Number(value) if value >= 0.0 => Ok(value),
        _ => Err(Fault::Expected { expected: "a weight, not below 0", found: shown(cell)? }),
    }
}

/// All rows, as they came.
struct Raw<T> {
    cells: Vec<T>,
    labels: Vec<f64>,
    weights: Vec<f64>,
    words: Vec<Dictionary>,
    label_words: Dictionary,
}

impl<T: Number> Raw<T> {
    fn new(layout: &Layout<'_>) -> Self {
        let words = match layout.encoding {
            Some(_) => layout.known.iter().map(|known| known.clone().unwrap_or_default()).collect(),
            None => vec![Dictionary::default(); layout.names.len()],
        };
        Self {
            cells: Vec::new(),
            labels: Vec::new(),
            weights: Vec::new(),
            words,
            label_words: Dictionary::default(),
        }
    }

    fn take(&mut self, part: Part<T>, layout: &Layout<'_>) -> Result<(), Located> {
        let Part { mut cells, mut labels, weights, words, label_words } = part;
        // The numbers that words have in this chunk become those that they have in the file.
        for (place, local) in words.iter().enumerate().filter(|(_, local)| !local.words.is_empty()) {
            let numbers: Vec<u32> = local.words.iter().map(|word| self.words[place].number(word)).collect();
            if self.words[place].words.len() >= T::CODES as usize {
                let column = layout.names[place].clone();
                return Err(Fault::Categories { column, most: T::CODES - 1 }.into());
            }
            for cell in cells.iter_mut().skip(place).step_by(layout.names.len()) {
                if let Some(code) = cell.code().filter(|code| *code > 0) {
                    *cell = T::marked(numbers[code as usize - 1] + 1);
                }
            }
        }
        if !label_words.words.is_empty() {
            let numbers: Vec<u32> =
                label_words.words.iter().map(|word| self.label_words.number(word)).collect();
            for label in &mut labels {
                if let Some(code) = label.code().filter(|code| *code > 0) {
                    *label = f64::marked(numbers[code as usize - 1] + 1);
                }
            }
        }
        grow(&mut self.cells, cells.len());
        self.cells.extend_from_slice(&cells);
        self.labels.extend_from_slice(&labels);
        self.weights.extend_from_slice(&weights);
        Ok(())
    }

    fn finish(mut self, layout: Layout<'_>, options: &Options) -> Result<Data, Located> {
        let width = layout.names.len();
        if self.cells.is_empty() {
            return Err(Fault::Empty.into());
        }
        self.words_for_numbers(width);
        let dropped = if layout.missing == Missing::DropRow { self.drop_rows(width) } else { 0 };
        if self.cells.is_empty() {
            return Err(Fault::Empty.into());
        }
        let codes = layout.codes.clone().unwrap_or_else(|| self.learn(&layout));
        let classes = self.classes();
        let Self { cells, labels, weights, words, .. } = self;
        // Where the words of the file stand among the sorted categories.
        let places: Vec<Option<Vec<usize>>> = codes
            .iter()
            .zip(&words)
            .map(|(code, words)| {
                let categories = code.categories.as_ref()?;
                let places: HashMap<&String, usize> =
                    categories.iter().enumerate().map(|(k, word)| (word, k)).collect();
                Some(words.words.iter().map(|word| places[word]).collect())
            })
            .collect();
        let features = expand(cells, &codes, &places, options.storage)?;
        let encoding = match layout.encoding {
            Some(encoding) => encoding.clone(),
            None => Encoding::Cells { columns: codes, named: layout.named },
        };
        Ok(Data {
            features,
            labels: (!labels.is_empty()).then_some(labels),
            weights: (!weights.is_empty()).then_some(weights),
            encoding,
            label: layout.label,
            classes,
            dropped,
            mapped: false,
        })
    }

    /// In a column with words, numbers are words too.
    fn words_for_numbers(&mut self, width: usize) {
        for (place, words) in self.words.iter_mut().enumerate().filter(|(_, words)| !words.words.is_empty()) {
            for cell in self.cells.iter_mut().skip(place).step_by(width).filter(|cell| cell.code().is_none())
            {
                *cell = T::marked(words.number(&cell.wide().to_string()) + 1);
            }
        }
    }

    /// Leaves out the rows in which something is missing; how many.
    fn drop_rows(&mut self, width: usize) -> u64 {
        let rows = self.cells.len() / width;
        let mut kept = 0;
        for row in 0..rows {
            let cells = row * width..(row + 1) * width;
            let misses = self.cells[cells.clone()].iter().any(|cell| cell.code() == Some(0))
                || self.labels.get(row).is_some_and(|label| label.code() == Some(0));
            if !misses {
                self.cells.copy_within(cells, kept * width);
                for vector in [&mut self.labels, &mut self.weights] {
                    if !vector.is_empty() {
                        vector[kept] = vector[row];
                    }
                }
                kept += 1;
            }
        }
        self.cells.truncate(kept * width);
        self.labels.truncate(kept);
        self.weights.truncate(kept);
        (rows - kept) as u64
    }

    /// What the columns are, and what stands for missing values.
    fn learn(&self, layout: &Layout<'_>) -> Vec<Code> {
        let width = layout.names.len();
        let code = |(place, name): (usize, &String)| {
            let words = &self.words[place].words;
            if !words.is_empty() {
                let mut sorted = words.clone();
                sorted.sort();
                let fill = matches!(layout.missing, Missing::Mean | Missing::Median | Missing::Zero);
                return Code { name: name.clone(), fill: fill.then_some(0.0), categories: Some(sorted) };
            }
            let present = || {
                let cells = self.cells.iter().skip(place).step_by(width);
                cells.filter(|cell| cell.code().is_none()).map(|cell| cell.wide())
            };
            let fill = match layout.missing {
                Missing::Refuse | Missing::DropRow => None,
                Missing::Zero => Some(0.0),
                Missing::Mean => Some(mean(present())),
                Missing::Median => Some(median(present().collect())),
            };
            Code { name: name.clone(), fill, categories: None }
        };
        layout.names.par_iter().enumerate().map(code).collect()
    }

    /// Puts the numbers of labels that are words in the order of the alphabet.
    fn classes(&mut self) -> Vec<String> {
        if self.label_words.words.is_empty() {
            return Vec::new();
        }
        for label in &mut self.labels {
            if label.code().is_none() {
                *label = f64::marked(self.label_words.number(&label.to_string()) + 1);
            }
        }
        let words = &self.label_words.words;
        let mut order: Vec<usize> = (0..words.len()).collect();
        order.sort_by_key(|&k| &words[k]);
        let mut rank = vec![0.0; words.len()];
        order.iter().enumerate().for_each(|(place, &k)| rank[k] = place as f64);
        for label in &mut self.labels {
            if let Some(code) = label.code().filter(|code| *code > 0) {
                *label = rank[code as usize - 1];
            }
        }
        order.into_iter().map(|k| words[k].clone()).collect()
    }
}

fn mean(values: impl Iterator<Item = f64>) -> f64 {
    // Step by step, so that the sum of large numbers does not overflow.
    let (mut mean, mut n) = (0.0, 0.0);
    for value in values {
        n += 1.0;
        mean += value / n - mean / n;
    }
    mean
}

fn median(mut values: Vec<f64>) -> f64 {
    if values.is_empty() {
        return 0.0;
    }
    let middle = values.len() / 2;
    let even = values.len().is_multiple_of(2);
    let (below, at, _) = values.select_nth_unstable_by(middle, f64::total_cmp);
    let at = *at;
    match below.iter().copied().max_by(f64::total_cmp) {
        Some(before) if even => before / 2.0 + at / 2.0,
        _ => at,
    }
}

/// What a code or a missing value becomes: the value of a column of numbers, or the place of a 1 among the columns of a word.
enum Spot<T> {
    Value(T),
    One(usize),
    Nothing,
}

fn spot<T: Number>(cell: T, code: &Code, places: Option<&Vec<usize>>) -> Spot<T> {
    match (cell.code(), places) {
        (None, _) => Spot::Value(cell),
        (Some(0), None) => Spot::Value(T::of(code.fill.unwrap_or(0.0))),
        (Some(number), Some(places)) if number > 0 => Spot::One(places[number as usize - 1]),
        _ => Spot::Nothing,
    }
}

/// The columns of numbers: in place where they are dense.
fn expand<T: Number>(
    mut cells: Vec<T>,
    codes: &[Code],
    places: &[Option<Vec<usize>>],
    storage: Storage,
) -> Result<Features, Fault> {
    let raw = codes.len();
    let columns: usize = codes.iter().map(|code| code.categories.as_ref().map_or(1, Vec::len)).sum();
    let rows = cells.len() / raw;
    let sparse = match storage {
        Storage::Dense => false,
        Storage::Sparse => true,
        Storage::ByDensity => columns > raw && (raw as f64) < DENSE * columns as f64,
    };
    let mut first = 0;
    let begins: Vec<usize> = codes
        .iter()
        .map(|code| {
            let begin = first;
            first += code.categories.as_ref().map_or(1, Vec::len);
            begin
        })
        .collect();
    if sparse {
        let (mut starts, mut indices, mut values) = (vec![0], Vec::new(), Vec::new());
        for row in cells.chunks_exact(raw) {
            for (place, cell) in row.iter().enumerate() {
                let (index, value) = match spot(*cell, &codes[place], places[place].as_ref()) {
                    Spot::Value(value) => (begins[place], value),
                    Spot::One(k) => (begins[place] + k, T::of(1.0)),
                    Spot::Nothing => continue,
                };
                if value != T::default() {
                    indices.push(index as u32);
                    values.push(value);
                }
            }
            starts.push(indices.len() as u64);
        }
        return Ok(Features::Sparse(Sparse {
            columns,
            starts: shared(starts),
            indices: shared(indices),
            values: T::values(values),
        }));
    }
    let full = cells.len();
    reserve(&mut cells, rows, columns, full)?;
    let mut row = vec![T::default(); raw];
    // A category never has fewer columns than its one cell, so from the last row on nothing is written over too early.
    for r in (0..rows).rev() {
        row.copy_from_slice(&cells[r * raw..(r + 1) * raw]);
        let to = &mut cells[r * columns..(r + 1) * columns];
        to.fill(T::default());
        for (place, cell) in row.iter().enumerate() {
            match spot(*cell, &codes[place], places[place].as_ref()) {
                Spot::Value(value) => to[begins[place]] = value,
                Spot::One(k) => to[begins[place] + k] = T::of(1.0),
                Spot::Nothing => {}
            }
        }
    }
    Ok(Features::Dense(Dense { rows, columns, values: T::values(cells) }))
}
