//! One table for the terminal and for the page.

use comfy_table::{CellAlignment, ContentArrangement, LineStyle, TableStyle};
use minijinja::{Value, context};

/// A table of short texts.
#[derive(Debug, Clone)]
pub(crate) struct Table {
    pub(crate) caption: String,
    pub(crate) columns: Vec<Column>,
    /// Each as long as `columns`.
    pub(crate) rows: Vec<Vec<String>>,
}

/// The head of a column.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Column {
    pub(crate) name: &'static str,
    pub(crate) align: Align,
}

/// On which side the texts of a column meet. Words left, numbers right.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Align {
    Left,
    Right,
}

/// A rule below the head, and none elsewhere.
const ONE_RULE: TableStyle = TableStyle::new().header_separator(LineStyle::none().fill('─').junction('─'));

impl Table {
    /// The table in characters, as wide as the terminal at most, with its caption above.
    pub(crate) fn text(&self) -> String {
        let mut table = comfy_table::Table::new();
        table
            .load_style(ONE_RULE)
            .set_content_arrangement(ContentArrangement::Dynamic)
            .set_header(self.columns.iter().map(|column| column.name))
            .add_rows(&self.rows);
        for (column, head) in table.column_iter_mut().zip(&self.columns) {
            column.set_cell_alignment(match head.align {
                Align::Left => CellAlignment::Left,
                Align::Right => CellAlignment::Right,
            });
        }
        format!("{}\n{}", self.caption, table.trim_fmt())
    }

    /// What the template of the page needs. The rows link to these sections, as far as there are any.
    pub(super) fn value(&self, anchors: &[String]) -> Value {
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

#[cfg(test)]
mod tests {
    use super::{Align, Column, Table};

    #[test]
    fn numbers_meet_on_the_right_and_no_line_trails_blanks() {
        let table = Table {
            caption: "Counts".into(),
            columns: vec![
                Column { name: "what", align: Align::Left },
                Column { name: "n", align: Align::Right },
            ],
            rows: vec![vec!["a".into(), "1,000".into()], vec!["b".into(), "7".into()]],
        };
        let text = table.text();
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(lines[0], "Counts");
        assert!(lines.iter().any(|line| line.ends_with("1,000")), "{text}");
        assert!(lines.iter().any(|line| line.ends_with("    7")), "{text}");
        assert!(lines.iter().all(|line| *line == line.trim_end()), "{text}");
    }
}
