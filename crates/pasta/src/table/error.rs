//! Why a table, a loss or a design was refused.

/// Why a table, or a loss on it, was refused. Rows and columns are counted from 0.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum TableError {
    /// No rows, or no columns.
    #[error("the table has {rows} rows and {columns} columns, but needs at least one of each")]
    Empty {
        /// Its rows.
        rows: usize,
        /// Its columns.
        columns: usize,
    },
    /// Parts that do not fit together.
    #[error("the table needs {needs} {what}, but has {got}")]
    Shape {
        /// Which part.
        what: &'static str,
        /// How many there should be.
        needs: usize,
        /// How many there are.
        got: usize,
    },
    /// The row starts of a sparse table go backwards, or do not begin with 0.
    #[error("row {row} of the sparse table starts at entry {start}, before entry {least}")]
    Starts {
        /// The row.
        row: usize,
        /// Where it starts.
        start: u64,
        /// Where the row before it starts.
        least: u64,
    },
    /// A value that is NaN or infinite.
    #[error("row {row}, column {column}: the value {value} is not a finite number")]
    NotFinite {
        /// The row.
        row: usize,
        /// The column.
        column: usize,
        /// The value.
        value: f64,
    },
    /// A column index beyond the last column.
    #[error("row {row}: there is no column {column} in a table of {columns} columns")]
    Column {
        /// The row.
        row: usize,
        /// The index.
        column: usize,
        /// How many columns there are.
        columns: usize,
    },
    /// Column indices of a sparse row that do not increase.
    #[error("row {row}: column {column} follows column {previous}, but indices must increase within a row")]
    Order {
        /// The row.
        row: usize,
        /// The index.
        column: usize,
        /// The index before it.
        previous: usize,
    },
    /// A label that is not finite, or does not fit the loss.
    #[error("row {row}: the label {value} does not fit, {needs}")]
    Label {
        /// The row.
        row: usize,
        /// The label.
        value: f64,
        /// What labels should be.
        needs: String,
    },
    /// A weight that is negative or not finite.
    #[error("row {row}: the weight {value} is not a finite number of at least 0")]
    Weight {
        /// The row.
        row: usize,
        /// The weight.
        value: f64,
    },
    /// Weights that are all zero, or whose sum overflows.
    #[error("the weights add up to {sum}, but the sum must be positive and finite")]
    Weights {
        /// Their sum.
        sum: f64,
    },
    /// A column whose squares overflow.
    #[error("column {column}: its values are too large to be squared and added up; scale it down")]
    TooLarge {
        /// The column.
        column: usize,
    },
    /// A column that varies by so little that its squares vanish.
    #[error("column {column}: its values differ by too little to be squared and added up; scale it up")]
    TooSmall {
        /// The column.
        column: usize,
    },
    /// Labels whose squares vanish.
    #[error(
        "the labels are at most {largest:.3e} in size, too small to be squared and added up; scale them up"
    )]
    SmallLabels {
        /// The size of the largest.
        largest: f64,
    },
    /// Labels whose squares overflow.
    #[error("some labels are {largest:.3e} in size, too large to be squared and added up; scale them down")]
    LargeLabels {
        /// The size of the largest.
        largest: f64,
    },
    /// A setting out of its range.
    #[error("{name} must be {needs}, but is {got}")]
    Setting {
        /// The setting.
        name: &'static str,
        /// Its range.
        needs: &'static str,
        /// What it is.
        got: f64,
    },
    /// A loss that takes no offset.
    #[error("the {loss} loss takes no offset; poisson does, and every loss of labels that are numbers")]
    NoOffset {
        /// Its name.
        loss: &'static str,
    },
    /// A loss that a second-order method cannot use.
    #[error("the {loss} loss is not smooth and convex, which a second-order method needs")]
    NotSmoothConvex {
        /// Its name.
        loss: &'static str,
    },
    /// Polynomial features beyond what an index can count.
    #[error("degree {degree} makes more than {most} features of {columns} columns")]
    Features {
        /// The degree.
        degree: u32,
        /// The columns.
        columns: usize,
        /// The most features there may be.
        most: usize,
    },
}
