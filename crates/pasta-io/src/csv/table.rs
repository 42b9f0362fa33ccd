//! All rows of a file, and the table they become: words as columns, missing values filled.

use std::collections::{HashMap, HashSet};

use rayon::prelude::*;

use super::layout::Layout;
use super::{Dictionary, Part, Place, note};
use crate::encoding::{Code, Encoding, products};
use crate::fault::{Fault, Located};
use crate::memory::Memory;
use crate::names::Names;
use crate::number::Number;
use crate::store::{DENSE, Storage, reserve};
use crate::{Data, Meaning, Missing, Options, Unseen};
use pasta_opt::table::{Dense, Features, Sparse, shared};

/// More different numbers than this beside words, and the column is not taken for one of categories.
const MOST_NUMBERS: usize = 20;

/// All rows, as they came.
pub(super) struct Raw<T> {
    pub(super) cells: Vec<T>,
    pub(super) labels: Vec<f64>,
    pub(super) weights: Vec<f64>,
    offsets: Vec<f64>,
    pub(super) words: Vec<Dictionary>,
    pub(super) first_words: Vec<Option<Place>>,
    first_codes: Vec<Option<String>>,
    unseen: Vec<(u64, Vec<String>)>,
    pub(super) names: Names,
    memory: Memory,
}

impl<T: Number> Raw<T> {
    pub(super) fn new(layout: &Layout<'_>, memory: Memory) -> Self {
        let known = |code: &Code| code.categories.as_deref().map_or_else(Dictionary::default, Dictionary::of);
        let worded = layout.worded();
        let words = match &layout.codes {
            Some(codes) => codes.iter().take(worded).map(known).collect(),
            None => vec![Dictionary::default(); worded],
        };
        Self {
            cells: Vec::new(),
            labels: Vec::new(),
            weights: Vec::new(),
            offsets: Vec::new(),
            words,
            first_words: vec![None; worded],
            first_codes: vec![None; layout.names.len()],
            unseen: vec![Default::default(); if layout.unseen { layout.names.len() } else { 0 }],
            names: Names::default(),
            memory,
        }
    }

    /// Takes the rows of a chunk that has so many lines before it.
    pub(super) fn take(&mut self, part: Part<T>, lines: u64, layout: &Layout<'_>) -> Result<(), Located> {
        let Part { mut cells, mut labels, weights, offsets, words, first_words, first_codes, unseen, names } =
            part;
        for ((cells, words), (here, new)) in self.unseen.iter_mut().zip(unseen) {
            *cells += here;
            new.iter().for_each(|word| note(words, word));
        }
        for (first, here) in self.first_codes.iter_mut().zip(first_codes) {
            *first = first.take().or(here);
        }
        for (first, here) in self.first_words.iter_mut().zip(first_words) {
            let here = here.map(|place| Place { line: lines + place.line, ..place });
            *first = first.take().or(here);
        }
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
        self.names.join(&names, lines, &mut labels);
        self.memory.grow(&mut self.cells, cells.len())?;
        self.memory.grow(&mut self.labels, labels.len())?;
        self.memory.grow(&mut self.weights, weights.len())?;
        self.memory.grow(&mut self.offsets, offsets.len())?;
        self.cells.extend_from_slice(&cells);
        self.labels.extend_from_slice(&labels);
        self.weights.extend_from_slice(&weights);
        self.offsets.extend_from_slice(&offsets);
        Ok(())
    }

    pub(super) fn finish(mut self, layout: Layout<'_>, options: &Options) -> Result<Data, Located> {
        let width = layout.names.len();
        if self.cells.is_empty() {
            return Err(Fault::Empty.into());
        }
        self.stray_words(&layout)?;
        self.words_for_numbers(width);
        let missing = self.missing(&layout);
        let left_out = if layout.missing == Missing::DropRow {
            self.drop_rows(width, layout.spare_labels)
        } else {
            Vec::new()
        };
        if self.cells.is_empty() {
            return Err(Fault::Dropped(left_out.len() as u64).into());
        }
        let filled = self.cells.par_iter().filter(|cell| cell.code() == Some(0)).count() as u64;
        let unseen: Vec<Unseen> = layout
            .names
            .iter()
            .zip(std::mem::take(&mut self.unseen))
            .filter(|(_, (cells, _))| *cells > 0)
            .map(|(column, (cells, words))| Unseen { column: column.clone(), cells, words })
            .collect();
        // Nothing stands for a word that is not known.
        let filled = filled.saturating_sub(unseen.iter().map(|one| one.cells).sum());
        let codes = match layout.codes.clone() {
            Some(codes) if layout.grows() => self.grown(codes),
            Some(codes) => codes,
            None => self.learn(&layout)?,
        };
        let encoding = match layout.encoding {
            Some(encoding) if !layout.grows() => encoding.clone(),
            Some(encoding) => Encoding::Cells {
                columns: codes.clone(),
                named: encoding.is_named(),
                interactions: layout.interactions.clone(),
            },
            None => Encoding::Cells {
                columns: codes.clone(),
                named: layout.named,
                interactions: layout.interactions.clone(),
            },
        };
        encoding.check_names()?;
        let classes = self.classes(&layout)?;
        let Self { cells, mut labels, weights, offsets, words, first_codes, memory, .. } = self;
        let numbers = layout.names.iter().zip(&codes).zip(first_codes);
        let written_as_codes = numbers
            .filter(|((_, code), _)| code.categories.is_none())
            .filter_map(|((name, _), first)| Some((name.clone(), first?)))
            .collect();
        if layout.spare_labels && labels.iter().any(|label| label.code() == Some(0)) {
            labels.clear();
        }
        // Where the words of the file stand among the sorted categories.
        let places: Vec<Option<Vec<usize>>> = codes
            .iter()
            .enumerate()
            .map(|(place, code)| {
                let (categories, words) = (code.categories.as_ref()?, words.get(place)?);
                let places: HashMap<&String, usize> =
                    categories.iter().enumerate().map(|(k, word)| (word, k)).collect();
                Some(words.words.iter().map(|word| places[word]).collect())
            })
            .collect();
        let products = products(&codes, &layout.interactions);
        let features = expand(cells, &codes, &places, &products, options.storage, memory)?;
        Ok(Data {
            features,
            labels: (!labels.is_empty()).then_some(labels),
            weights: (!weights.is_empty()).then_some(weights),
            offsets: (!offsets.is_empty()).then_some(offsets),
            encoding,
            label: layout.label,
            classes,
            left_out,
            filled,
            missing,
            unseen,
            written_as_codes,
            mapped: false,
        })
    }

    /// Refuses a column of numbers in which a word went astray: it would become a column for each of its numbers.
    fn stray_words(&self, layout: &Layout<'_>) -> Result<(), Located> {
        for (place, first) in self.first_words.iter().enumerate() {
            let Some(Place { line, column, word }) = first else { continue };
            let cells = self.cells.iter().skip(place).step_by(layout.names.len());
            let mut numbers = HashSet::new();
            // 0 and -0 are one number.
            numbers
                .extend(cells.filter(|cell| cell.code().is_none()).map(|cell| (cell.wide() + 0.0).to_bits()));
            if numbers.len() > MOST_NUMBERS {
                let name = layout.names[place].clone();
                let fault = Fault::Stray { column: name, found: word.clone(), numbers: numbers.len() };
                return Err(fault.at(*column).in_line(*line));
            }
        }
        Ok(())
    }

    /// The columns in which cells are missing, and how many are.
    fn missing(&self, layout: &Layout<'_>) -> Vec<(String, u64)> {
        if layout.missing == Missing::Refuse {
            return Vec::new();
        }
        let width = layout.names.len();
        let count = |place: usize| {
            let cells = self.cells.iter().skip(place).step_by(width);
            cells.filter(|cell| cell.code() == Some(0)).count() as u64
        };
        let counts = layout.names.par_iter().enumerate().map(|(place, name)| (name.clone(), count(place)));
        counts.filter(|(_, count)| *count > 0).collect()
    }

    /// In a column with words, numbers are words too.
    pub(super) fn words_for_numbers(&mut self, width: usize) {
        for (place, words) in self.words.iter_mut().enumerate().filter(|(_, words)| !words.words.is_empty()) {
            for cell in self.cells.iter_mut().skip(place).step_by(width).filter(|cell| cell.code().is_none())
            {
                *cell = T::marked(words.number(&cell.wide().to_string()) + 1);
            }
        }
    }

    /// Leaves out the rows in which something is missing; which they were. A label that is not needed may be missing.
    pub(super) fn drop_rows(&mut self, width: usize, spare_labels: bool) -> Vec<u64> {
        let rows = self.cells.len() / width;
        let (mut kept, mut left_out) = (0, Vec::new());
        for row in 0..rows {
            let cells = row * width..(row + 1) * width;
            let misses = self.cells[cells.clone()].iter().any(|cell| cell.code() == Some(0))
                || self.offsets.get(row).is_some_and(|offset| offset.code() == Some(0))
                || !spare_labels && self.labels.get(row).is_some_and(|label| label.code() == Some(0));
            if misses {
                left_out.push(row as u64);
            } else {
                self.cells.copy_within(cells, kept * width);
                for vector in [&mut self.labels, &mut self.weights, &mut self.offsets] {
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
        self.offsets.truncate(kept);
        left_out
    }

    /// The columns of the encoding, with the words behind theirs that this file has and they had not.
    fn grown(&self, mut codes: Vec<Code>) -> Vec<Code> {
        for (code, words) in codes.iter_mut().zip(&self.words) {
            if let Some(categories) = &mut code.categories {
                categories.extend_from_slice(&words.words[categories.len()..]);
            }
        }
        codes
    }

    /// What the columns are, and what stands for missing values.
    pub(super) fn learn(&self, layout: &Layout<'_>) -> Result<Vec<Code>, Fault> {
        let width = layout.names.len();
        let code = |(place, name): (usize, &String)| {
            if let Some(Dictionary { words, .. }) =
                self.words.get(place).filter(|known| !known.words.is_empty())
            {
                let mut sorted = words.clone();
                sorted.sort();
                let fill = matches!(layout.missing, Missing::Mean | Missing::Median | Missing::Zero);
                return Ok(Code { name: name.clone(), fill: fill.then_some(0.0), categories: Some(sorted) });
            }
            let present = || {
                let cells = self.cells.iter().skip(place).step_by(width);
                cells.filter(|cell| cell.code().is_none()).map(|cell| cell.wide())
            };
            if matches!(layout.missing, Missing::Mean | Missing::Median) && present().next().is_none() {
                return Err(Fault::NoValues(name.clone()));
            }
            let fill = match layout.missing {
                Missing::Refuse | Missing::DropRow => None,
                Missing::Zero => Some(0.0),
                Missing::Mean => Some(mean(present())),
                Missing::Median => Some(median(present().collect())),
            };
            Ok(Code { name: name.clone(), fill, categories: None })
        };
        layout.names.par_iter().enumerate().map(code).collect()
    }

    /// What the labels stand for, if they are words or names of classes.
    pub(super) fn classes(&mut self, layout: &Layout<'_>) -> Result<Vec<String>, Located> {
        if self.names.is_empty() {
            return Ok(Vec::new());
        }
        if layout.meaning == Meaning::Classes && layout.encoding.is_none() {
            self.names.check()?;
        }
        for label in self.labels.iter_mut().filter(|label| label.code().is_none()) {
            *label = self.names.mark(&label.to_string(), 0);
        }
        Ok(self.names.settle(&mut self.labels))
    }
}

pub(super) fn mean(values: impl Iterator<Item = f64>) -> f64 {
    // Step by step, so that the sum of large numbers does not overflow.
    let (mut mean, mut n) = (0.0, 0.0);
    for value in values {
        n += 1.0;
        mean += value / n - mean / n;
    }
    mean
}

pub(super) fn median(mut values: Vec<f64>) -> f64 {
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
pub(super) enum Spot<T> {
    Value(T),
    One(usize),
    Nothing,
}

pub(super) fn spot<T: Number>(cell: T, code: &Code, places: Option<&Vec<usize>>) -> Spot<T> {
    match (cell.code(), places) {
        (None, _) => Spot::Value(cell),
        (Some(0), None) => Spot::Value(T::of(code.fill.unwrap_or(0.0))),
        (Some(number), Some(places)) if number > 0 => Spot::One(places[number as usize - 1]),
        _ => Spot::Nothing,
    }
}

/// The columns of numbers: in place where they are dense.
pub(super) fn expand<T: Number>(
    mut cells: Vec<T>,
    codes: &[Code],
    places: &[Option<Vec<usize>>],
    products: &[[usize; 2]],
    storage: Storage,
    memory: Memory,
) -> Result<Features, Fault> {
    let raw = codes.len();
    let plain: usize = codes.iter().map(|code| code.categories.as_ref().map_or(1, Vec::len)).sum();
    let columns = plain + products.len();
    let product = |row: &[T], [a, b]: [usize; 2]| T::of(row[a].wide() * row[b].wide());
    let rows = cells.len() / raw;
    let sparse = match storage {
        Storage::Dense => false,
        Storage::Sparse => true,
        Storage::ByDensity => columns > raw && (raw as f64) < DENSE * plain as f64,
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
        let mut whole = vec![T::default(); if products.is_empty() { 0 } else { plain }];
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
            if !products.is_empty() {
                whole.fill(T::default());
                let first = starts.last().map_or(0, |start| *start as usize);
                for at in first..indices.len() {
                    whole[indices[at] as usize] = values[at];
                }
                for (k, pair) in products.iter().enumerate() {
                    let value = product(&whole, *pair);
                    if value != T::default() {
                        indices.push((plain + k) as u32);
                        values.push(value);
                    }
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
    reserve(&mut cells, rows, columns, full, memory)?;
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
        for (k, pair) in products.iter().enumerate() {
            to[plain + k] = product(to, *pair);
        }
    }
    Ok(Features::Dense(Dense { rows, columns, values: T::values(cells) }))
}
