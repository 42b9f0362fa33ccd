//! What is known of a file before its rows are read: delimiter, header, and what each column is.

use std::borrow::Cow;
use std::collections::HashMap;

use super::record::{Cells, is_blank, record};
use super::{Cell, Dictionary};
use crate::encoding::{Code, Encoding};
use crate::fault::{Fault, Located, listed};
use crate::memory::Memory;
use crate::number::whole;
use crate::{Label, Meaning, Missing, Options};

/// Bytes that a column takes until it is fitted, whatever it holds: measured on a line of five million.
const OF_A_COLUMN: usize = 600;

/// What stands between columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Delimiter {
    Byte(u8),
    Blanks,
}

/// What a column of the file is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    /// A feature, and its place.
    Feature(usize),
    Label,
    Weight,
    Offset,
    Ignored,
}

/// What is known of a file before its rows are read.
#[expect(clippy::struct_excessive_bools, reason = "each answers a question of its own")]
pub(super) struct Layout<'e> {
    pub(super) delimiter: Delimiter,
    pub(super) roles: Vec<Role>,
    /// The names of the features.
    pub(super) names: Vec<String>,
    pub(super) named: bool,
    pub(super) label: String,
    /// Whether labels are welcome, but not needed.
    pub(super) spare_labels: bool,
    /// The bytes and lines of the header.
    pub(super) header: (usize, u64),
    pub(super) meaning: Meaning,
    pub(super) missing: Missing,
    pub(super) one_hot: bool,
    /// Of each feature, whether all that it holds are categories, known or not.
    pub(super) categories: Vec<bool>,
    /// Of each feature, whether it was said to hold categories: then `None` is one, too.
    pub(super) asked: Vec<bool>,
    /// Whether a word that the encoding has not counts as missing.
    pub(super) unseen: bool,
    /// Pairs of features whose products are features, too.
    pub(super) interactions: Vec<[String; 2]>,
    pub(super) encoding: Option<&'e Encoding>,
    /// What becomes of each feature, by the encoding.
    pub(super) codes: Option<Vec<Code>>,
    /// The categories of each feature, by the encoding.
    pub(super) known: Vec<Option<Dictionary>>,
}

impl<'e> Layout<'e> {
    pub(super) fn of(
        text: &[u8],
        options: &Options,
        encoding: Option<&'e Encoding>,
    ) -> Result<Self, Located> {
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
            _ => are_names(&cells) || has_names_above_numbers(&cells, &text[at..], delimiter),
        };
        let count = cells.len();
        Memory(options.memory).allow(count, OF_A_COLUMN)?;
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
            if let Some(twice) = sorted.windows(2).find(|pair| pair[0] == pair[1] && !pair[0].is_empty()) {
                return Err(Fault::TwoColumns(twice[0].clone()).into());
            }
        }
        let mut layout = Self {
            delimiter,
            roles: vec![Role::Ignored; count],
            names: Vec::new(),
            named: header,
            label: String::new(),
            spare_labels: matches!(options.label, Label::IfThere(_)),
            header: if header { (at, lines) } else { (0, 0) },
            meaning: options.meaning,
            missing: options.missing,
            one_hot: options.one_hot,
            categories: Vec::new(),
            asked: Vec::new(),
            unseen: options.unseen,
            interactions: Vec::new(),
            encoding,
            codes: encoding.map(Encoding::codes),
            known: Vec::new(),
        };
        layout.assign(&columns, options)?;
        Ok(layout)
    }

    /// Gives every column its role.
    pub(super) fn assign(&mut self, columns: &[String], options: &Options) -> Result<(), Fault> {
        let named = self.named;
        let find = |name: &str| position(columns, name, named);
        let must = |name: &str| {
            find(name).ok_or_else(|| Fault::NoColumn { name: name.to_owned(), columns: columns.to_vec() })
        };
        let mut taken = vec![false; columns.len()];
        let expected = self.codes.as_ref().map(Vec::len);
        for name in &options.ignore {
            taken[must(name)?] = true;
        }
        for (name, role) in [(&options.weight, Role::Weight), (&options.offset, Role::Offset)] {
            let Some(name) = name else { continue };
            let k = must(name)?;
            if role == Role::Offset && taken[k] {
                let message = format!("column {:?} cannot be the offset and something else", columns[k]);
                return Err(Fault::Choice(message));
            }
            (self.roles[k], taken[k]) = (role, true);
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
            // What is a category, the encoding says.
            let fixed =
                |code: &Code| code.categories.as_deref().filter(|_| !options.grow).map(Dictionary::of);
            self.known = codes.iter().map(fixed).collect();
            self.categories = codes.iter().map(|code| options.grow && code.categories.is_some()).collect();
            self.asked = vec![false; codes.len()];
            for name in &options.categories {
                if let Some(Role::Feature(place)) = find(name).map(|k| self.roles[k]) {
                    self.asked[place] = true;
                }
            }
            self.codes = Some(codes);
        } else {
            if let Some(k) = features.iter().find(|&&k| columns[k].is_empty()) {
                return Err(Fault::Unnamed(k + 1));
            }
            for (place, &k) in features.iter().enumerate() {
                self.roles[k] = Role::Feature(place);
            }
            self.names = features.iter().map(|&k| columns[k].clone()).collect();
            self.categories = vec![false; features.len()];
            for name in &options.categories {
                let k = must(name)?;
                let place = features.iter().position(|&feature| feature == k).ok_or_else(|| {
                    Fault::Choice(format!("column {:?} is no feature, so it has no categories", columns[k]))
                })?;
                self.categories[place] = true;
            }
            self.asked.clone_from(&self.categories);
        }
        self.interactions = match self.encoding {
            Some(Encoding::Cells { interactions, .. }) => interactions.clone(),
            Some(Encoding::Numbered { .. }) => Vec::new(),
            None => options.interact.iter().map(|pair| self.pair(pair)).collect::<Result<_, _>>()?,
        };
        if self.names.is_empty() { Err(Fault::NoFeatures) } else { Ok(()) }
    }

    /// The two features of a pair `a:b`. Names may have colons in them.
    fn pair(&self, text: &str) -> Result<[String; 2], Fault> {
        let is_feature = |name: &&str| self.names.iter().any(|own| own == name);
        let cuts = text.match_indices(':').map(|(at, _)| [&text[..at], &text[at + 1..]]);
        if let Some(pair) = cuts.clone().find(|pair| pair.iter().all(&is_feature)) {
            return Ok(pair.map(str::to_owned));
        }
        let Some(pair) = cuts.clone().next() else {
            return Err(Fault::Choice(format!("an interaction joins two columns, as a:b, but is {text:?}")));
        };
        let unknown = pair.into_iter().find(|name| !is_feature(name)).unwrap_or(text);
        Err(Fault::NoColumn { name: unknown.to_owned(), columns: self.names.clone() })
    }

    /// Matches columns with those of the encoding: by name where both have names, in their order otherwise.
    pub(super) fn match_features(
        &mut self,
        columns: &[String],
        features: &[usize],
        codes: &[Code],
    ) -> Result<(), Fault> {
        let expected = || codes.iter().map(|code| code.name.clone()).collect();
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
                return Err(Fault::NoColumn { name: code.name.clone(), columns: columns.to_vec() });
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

    /// True if a text that elsewhere means a missing value is a category of this feature: it was said to hold categories, or the text is one that the encoding knows.
    pub(super) fn is_category(&self, place: usize, text: &str) -> bool {
        let known = self.codes.as_ref().and_then(|codes| codes[place].categories.as_ref());
        match known {
            Some(known) => self.asked[place] || known.iter().any(|word| word == text),
            None => self.asked[place] && self.codes.is_none(),
        }
    }

    /// True if categories may be added to those of the encoding.
    pub(super) fn grows(&self) -> bool {
        self.codes.is_some() && self.categories.iter().any(|is| *is)
    }

    /// How many features can have words: none, or all of them. What is kept for words is much for a line of millions of columns.
    pub(super) fn worded(&self) -> usize {
        let some = self.one_hot
            || self.categories.iter().any(|is| *is)
            || self.codes.iter().flatten().any(|code| code.categories.is_some());
        if some { self.names.len() } else { 0 }
    }

    /// Whether a feature may have no value.
    pub(super) fn may_miss(&self, place: usize) -> bool {
        let filled = self.codes.as_ref().map(|codes| codes[place].fill.is_some());
        self.missing == Missing::DropRow || filled.unwrap_or(self.missing != Missing::Refuse)
    }
}

/// Whether a first line is nothing but names: no cell is a number, and none is empty where it may not be.
fn are_names(cells: &Cells<'_>) -> bool {
    no_gap(cells) && cells.iter().all(|cell| whole(cell).is_none())
}

/// Whether no cell is empty but for the first, above the numbers of rows that some programs write, and the last, behind a delimiter too many.
fn no_gap(cells: &Cells<'_>) -> bool {
    let end = cells.len() - 1;
    let is_gap = |(k, cell): (usize, &Cow<'_, [u8]>)| cell.is_empty() && (end == 0 || (k != 0 && k != end));
    !cells.iter().enumerate().any(is_gap)
}

/// Rows that are looked at to tell a header with numbers in it from a row.
const LOOKED_AT: usize = 100;

/// Whether a first line with numbers in it, such as wavelengths or years, holds names all the same. Its cells must differ, and one must be a name by what the
/// rows below show: a word above nothing but numbers, or a name that labels have and that is no label.
fn has_names_above_numbers(cells: &Cells<'_>, rest: &[u8], delimiter: Delimiter) -> bool {
    let mut sorted: Vec<&[u8]> = cells.iter().map(|cell| &cell[..]).filter(|cell| !cell.is_empty()).collect();
    sorted.sort_unstable();
    if !no_gap(cells) || sorted.windows(2).any(|pair| pair[0] == pair[1]) {
        return false;
    }
    let is_word = |cell: &[u8]| {
        cell.first().is_some_and(|byte| byte.is_ascii_alphabetic() || *byte >= 0x80 || *byte == b'_')
    };
    let mut above_numbers: Vec<bool> =
        cells.iter().map(|cell| is_word(cell) && matches!(Cell::of(cell), Ok(Cell::Word(_)))).collect();
    let mut above_labels: Vec<bool> =
        cells.iter().map(|cell| std::str::from_utf8(cell).is_ok_and(is_label)).collect();
    let mut numbers = vec![false; cells.len()];
    let mut rows = 0;
    let mut row = Cells::new();
    let mut rest = whole_lines(rest);
    while rows < LOOKED_AT && !rest.is_empty() {
        // What is wrong with a row is said when it is read.
        let Ok((length, _)) = record(rest, delimiter, &mut row) else { break };
        rest = &rest[length..];
        if is_blank(&row) {
            continue;
        }
        if row.len() != cells.len() {
            break;
        }
        rows += 1;
        for (k, cell) in row.iter().enumerate() {
            above_labels[k] &= *cell != cells[k];
            match Cell::of(cell) {
                Ok(Cell::Number(_)) => numbers[k] = true,
                Ok(Cell::Missing(_)) => {}
                _ => above_numbers[k] = false,
            }
        }
    }
    rows > 0 && (0..cells.len()).any(|k| above_labels[k] || (above_numbers[k] && numbers[k]))
}

/// The beginning of a text without a last line that may be cut: all of it if it is short, and so has ended.
fn whole_lines(text: &[u8]) -> &[u8] {
    const SHORT: usize = 1 << 17;
    let end = if text.len() < SHORT { None } else { memchr::memrchr(b'\n', text) };
    &text[..end.map_or(text.len(), |end| end + 1)]
}

/// The column of this name, or of this number, from 1.
pub(super) fn position(columns: &[String], name: &str, named: bool) -> Option<usize> {
    let by_name = columns.iter().position(|column| named && column == name);
    by_name.or_else(|| name.parse::<usize>().ok()?.checked_sub(1).filter(|k| *k < columns.len()))
}

/// Whether a name is one that labels have.
fn is_label(name: &str) -> bool {
    ["label", "target", "class", "y"].contains(&name.to_ascii_lowercase().as_str())
}

/// The one column with a name that labels have.
pub(super) fn usual(columns: &[String], named: bool) -> Option<usize> {
    let mut found = (0..columns.len()).filter(|&k| named && is_label(&columns[k]));
    found.next().filter(|_| found.next().is_none())
}

/// What the first line that is not blank has most of, outside of quotation marks.
pub(super) fn delimiter(text: &[u8]) -> Delimiter {
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
