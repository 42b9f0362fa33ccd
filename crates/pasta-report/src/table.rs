//! One table for the terminal and for the page, with two looks: labelled rows, or columns under a header.

use minijinja::{Value, context};
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use crate::console::width;

/// A table of texts.
#[derive(Debug, Clone)]
pub struct Table {
    /// What it shows; nothing for none.
    pub caption: String,
    /// The header; one whose names are all empty is not shown.
    pub columns: Vec<Column>,
    /// Each as long as `columns`.
    pub rows: Vec<Vec<String>>,
}

/// The head of a column.
#[derive(Debug, Clone, Copy)]
pub struct Column {
    /// Its name.
    pub name: &'static str,
    /// Where its texts meet.
    pub align: Align,
}

/// On which side the texts of a column meet. Words left, numbers right.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Align {
    /// For words.
    Left,
    /// For numbers.
    Right,
}

impl Column {
    /// Columns with a letter each, l for left and r for right: `Column::all(b"lr", ["method", "samples"])`.
    pub fn all<const N: usize>(letters: &[u8; N], names: [&'static str; N]) -> Vec<Self> {
        let column =
            |(name, letter): (_, &u8)| if *letter == b'r' { Self::right(name) } else { Self::left(name) };
        names.into_iter().zip(letters).map(column).collect()
    }

    /// A column of words.
    pub const fn left(name: &'static str) -> Self {
        Self { name, align: Align::Left }
    }

    /// A column of numbers.
    pub const fn right(name: &'static str) -> Self {
        Self { name, align: Align::Right }
    }
}

const NO_BREAK: char = '\u{a0}';

/// Text that a table does not break; its spaces are plain again when it is printed.
pub fn unbroken(text: &str) -> String {
    text.replace(' ', "\u{a0}")
}

/// Blanks between columns.
const GAP: usize = 2;
/// In columns narrower than this nothing can be read.
const LEAST: usize = 4;

impl Table {
    /// Rows of a label and a value.
    pub fn labelled<L: Into<String>>(rows: impl IntoIterator<Item = (L, String)>) -> Self {
        let rows = rows.into_iter().map(|(label, value)| vec![label.into(), value]).collect();
        Self { caption: String::new(), columns: vec![Column::left(""); 2], rows }
    }

    /// The table in characters, no line wider than the console, with its caption above.
    pub fn text(&self) -> String {
        self.text_within(width())
    }

    /// The table in characters, no line wider than this.
    pub fn text_within(&self, width: usize) -> String {
        let headed = self.columns.iter().any(|column| !column.name.is_empty());
        let mut lines = if self.caption.is_empty() { Vec::new() } else { wrapped(&self.caption, width) };
        match self.widths(width) {
            Some(widths) => {
                if headed {
                    let names: Vec<_> = self.columns.iter().map(|column| column.name.to_owned()).collect();
                    self.push_row(&mut lines, &names, &widths);
                    lines.push("-".repeat(widths.iter().sum::<usize>() + GAP * (widths.len() - 1)));
                }
                self.rows.iter().for_each(|row| self.push_row(&mut lines, row, &widths));
            }
            // No room to stand side by side: one below the other.
            None => self.push_records(&mut lines, width),
        }
        lines
            .iter()
            .map(|line| line.replace(NO_BREAK, " ").trim_end().to_owned())
            .collect::<Vec<_>>()
            .join("\n")
    }

    /// How wide the columns are: as wide as their texts, if these leave room for the others; the rest share what is
    /// left, and none is narrower than its longest word if that can be.
    fn widths(&self, width: usize) -> Option<Vec<usize>> {
        let count = self.columns.len();
        let mut room = width.checked_sub(GAP * count.saturating_sub(1))?;
        let most = |measure: fn(&str) -> usize| -> Vec<usize> {
            let of = |i: usize| {
                let cells = self.rows.iter().filter_map(move |row| row.get(i)).map(String::as_str);
                cells.chain([self.columns[i].name]).map(measure).max().unwrap_or(0)
            };
            (0..count).map(of).collect()
        };
        let full = most(|text| text.lines().map(UnicodeWidthStr::width).max().unwrap_or(0));
        let words = most(|text| text.split([' ', '\n']).map(UnicodeWidthStr::width).max().unwrap_or(0));
        let words = if words.iter().sum::<usize>() <= room { words } else { vec![0; count] };
        let mut widths = vec![None; count];
        loop {
            let open: Vec<usize> = (0..count).filter(|&i| widths[i].is_none()).collect();
            let Some(share) = room.checked_div(open.len()) else { return widths.into_iter().collect() };
            let needed: usize = open.iter().map(|&i| words[i]).sum();
            let fits = |i: usize| full[i] <= share && needed - words[i] + full[i] <= room;
            let narrow = open.iter().find(|&&i| fits(i)).map(|&i| (i, full[i]));
            let wordy = || open.iter().find(|&&i| words[i] > share).map(|&i| (i, words[i]));
            let (i, settled) = narrow.or_else(wordy).unwrap_or((open[0], share));
            if settled < full[i].min(LEAST) {
                return None;
            }
            widths[i] = Some(settled);
            room -= settled;
        }
    }

    fn push_row(&self, lines: &mut Vec<String>, row: &[String], widths: &[usize]) {
        let cells: Vec<Vec<String>> =
            row.iter().zip(widths).map(|(cell, &width)| wrapped(cell, width)).collect();
        for i in 0..cells.iter().map(Vec::len).max().unwrap_or(0) {
            let mut line = String::new();
            for ((cell, column), &width) in cells.iter().zip(&self.columns).zip(widths) {
                let text = cell.get(i).map_or("", String::as_str);
                let fill = " ".repeat(width.saturating_sub(text.width()));
                match column.align {
                    Align::Left => line.extend([text, &fill]),
                    Align::Right => line.extend([&fill, text]),
                }
                line.push_str(&" ".repeat(GAP));
            }
            lines.push(line);
        }
    }

    fn push_records(&self, lines: &mut Vec<String>, width: usize) {
        for row in &self.rows {
            for (cell, column) in row.iter().zip(&self.columns) {
                lines.extend(wrapped(&format!("{}: {cell}", column.name), width));
            }
            lines.push(String::new());
        }
    }

    /// What the template of the page needs. The rows link to these sections, as far as there are any.
    pub(crate) fn value(&self, anchors: &[String]) -> Value {
        let side = |align| if align == Align::Right { "right" } else { "left" };
        let cells = |row: &[String]| -> Vec<Value> {
            row.iter()
                .zip(&self.columns)
                .map(|(text, column)| context! { text => text, side => side(column.align) })
                .collect()
        };
        let row = |(place, row): (usize, &Vec<String>)| {
            context! { cells => cells(row), anchor => anchors.get(place) }
        };
        context! {
            caption => self.caption.as_str(),
            columns => self
                .columns
                .iter()
                .map(|column| context! { name => column.name, side => side(column.align) })
                .collect::<Vec<_>>(),
            rows => self.rows.iter().enumerate().map(row).collect::<Vec<_>>(),
        }
    }
}

/// The text with its long lines broken: none is wider than the console.
pub fn fitted(text: &str) -> String {
    wrapped(text, width()).join("\n")
}

/// The text in lines of at most this width, broken between words, or within a word that is longer.
fn wrapped(text: &str, width: usize) -> Vec<String> {
    let width = width.max(2);
    let mut lines = Vec::new();
    for paragraph in text.split('\n') {
        if paragraph.width() <= width {
            lines.push(paragraph.to_owned());
            continue;
        }
        let mut line = String::new();
        for word in paragraph.split(' ') {
            if !line.is_empty() && line.width() + 1 + word.width() > width {
                lines.push(std::mem::take(&mut line));
            } else if !line.is_empty() {
                line.push(' ');
            }
            for c in word.chars() {
                if line.width() + c.width().unwrap_or(1) > width {
                    lines.push(std::mem::take(&mut line));
                }
                line.push(c);
            }
        }
        lines.push(line);
    }
    lines
}

#[cfg(test)]
mod tests {
    use unicode_width::UnicodeWidthStr;

    use super::{Column, Table};

    #[test]
    fn numbers_meet_on_the_right_and_no_line_trails_blanks() {
        let table = Table {
            caption: "Counts".into(),
            columns: vec![Column::left("what"), Column::right("n")],
            rows: vec![vec!["a".into(), "1,000".into()], vec!["b".into(), "7".into()]],
        };
        let lines = "Counts\nwhat      n\n-----------\na     1,000\nb         7";
        assert_eq!(table.text_within(80), lines);
    }

    #[test]
    fn no_table_is_wider_than_it_may_be_whatever_is_in_it() {
        let nasty = [
            "x".repeat(500),
            "a sentence of many words ".repeat(40),
            "全角の文字".repeat(30),
            "two\nlines".into(),
            super::unbroken(&"no break here ".repeat(20)),
            String::new(),
        ];
        for columns in 1..=30 {
            for width in [40, 80, 133] {
                let row = |i: usize| (0..columns).map(|j| nasty[(i + j) % nasty.len()].clone()).collect();
                let table = Table {
                    caption: nasty[1].clone(),
                    columns: vec![Column::right("a name of a column"); columns],
                    rows: (0..nasty.len()).map(row).collect(),
                };
                let text = table.text_within(width);
                let widest = text.lines().map(UnicodeWidthStr::width).max();
                assert!(widest <= Some(width), "{columns} columns, {widest:?} of {width}");
            }
        }
    }

    #[test]
    fn words_are_broken_only_where_they_must_be() {
        let table =
            Table::labelled([("label", "one two three four five six seven eight nine ten".to_owned())]);
        let lines = "label  one two three four five six seven\n       eight nine ten";
        assert_eq!(table.text_within(40), lines);
    }
}
