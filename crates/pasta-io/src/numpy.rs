//! NPY and NPZ: arrays of numpy, mapped where that is possible.

use std::fs::File;
use std::io::{Cursor, Read, Seek};
use std::marker::PhantomData;
use std::sync::Arc;

use bytemuck::Pod;
use memmap2::Mmap;
use zip::ZipArchive;

use crate::encoding::Encoding;
use crate::fault::{Fault, Located};
use crate::memory::Memory;
use crate::names::{Names, name_of};
use crate::number::Number;
use crate::source::{Opened, Source};
use crate::store::Storage;
use crate::{Data, Label, Meaning, Options, Precision};
use pasta_opt::table::{Dense, Features, Sparse, Values, shared};

/// A vector as the bytes of an NPY file (version 1.0, little-endian doubles).
///
/// ```
/// let vector = [1.5, -0.0, f64::MIN_POSITIVE];
/// let bytes = pasta_io::vector_to_npy(&vector);
/// assert_eq!(pasta_io::vector_from_npy(&bytes)?, vector);
/// // The numbers begin where numpy wants them.
/// assert_eq!((bytes.len() - 8 * vector.len()) % 64, 0);
/// # Ok::<(), pasta_io::Fault>(())
/// ```
pub fn vector_to_npy(vector: &[f64]) -> Vec<u8> {
    const BEGIN: &[u8] = b"\x93NUMPY\x01\x00";
    let mut header = format!("{{'descr': '<f8', 'fortran_order': False, 'shape': ({},), }}", vector.len());
    // The data begins at a multiple of 64 bytes, after a line end.
    let unpadded = BEGIN.len() + 2 + header.len() + 1;
    header.push_str(&" ".repeat(unpadded.next_multiple_of(64) - unpadded));
    header.push('\n');
    let mut bytes = BEGIN.to_vec();
    bytes.extend((header.len() as u16).to_le_bytes());
    bytes.extend(header.as_bytes());
    vector.iter().for_each(|x| bytes.extend(x.to_le_bytes()));
    bytes
}

/// The vector of an NPY file: an array of one dimension, or of one column.
pub fn vector_from_npy(mut bytes: &[u8]) -> Result<Vec<f64>, Fault> {
    let shape = Shape::read(&mut bytes)?;
    // No more room than there are numbers.
    if shape.count().is_none_or(|count| count > bytes.len()) {
        return Err(Fault::Numpy("the array is cut short".into()));
    }
    shape.vector(&mut bytes, "the array", Memory(None))
}

/// What a file says of its array.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Shape {
    kind: Kind,
    swapped: bool,
    fortran: bool,
    lengths: Vec<usize>,
    /// Where the numbers begin.
    begin: usize,
}

/// A number of an array.
#[derive(Debug, Clone, Copy)]
enum Element {
    Float(f64),
    Signed(i64),
    Unsigned(u64),
}

impl Element {
    fn number(self) -> f64 {
        match self {
            Self::Float(value) => value,
            Self::Signed(value) => value as f64,
            Self::Unsigned(value) => value as f64,
        }
    }

    /// What it is called where it stands for a class: all digits of a whole number, which a double may not have room for.
    fn name(self) -> String {
        match self {
            Self::Float(value) => name_of(value),
            Self::Signed(value) => value.to_string(),
            Self::Unsigned(value) => value.to_string(),
        }
    }
}

/// The labels of an array.
#[derive(Debug, Default)]
struct Labels {
    meaning: Meaning,
    values: Vec<f64>,
    names: Names,
    /// The row, from 1, of a class that is no finite number.
    wrong: Option<(usize, f64)>,
}

impl Labels {
    fn push(&mut self, element: Element) {
        let value = element.number();
        let is_class = self.meaning == Meaning::Classes;
        self.values.push(if is_class { self.names.mark(&element.name(), 0) } else { value });
        if is_class && !value.is_finite() {
            self.wrong = self.wrong.or(Some((self.values.len(), value)));
        }
    }

    /// Labels, and the classes that they stand for.
    fn settle(mut self) -> Result<(Vec<f64>, Vec<String>), Fault> {
        if let Some((row, value)) = self.wrong {
            return Err(Fault::Numpy(format!("label {row}: expected a finite number, found {value}")));
        }
        let classes = self.names.settle(&mut self.values);
        Ok((self.values, classes))
    }
}

/// The numbers of an array.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    F64,
    F32,
    Signed(usize),
    Unsigned(usize),
}

impl Kind {
    fn size(self) -> usize {
        match self {
            Self::F64 => 8,
            Self::F32 => 4,
            Self::Signed(size) | Self::Unsigned(size) => size,
        }
    }
}

impl Shape {
    fn count(&self) -> Option<usize> {
        self.lengths.iter().try_fold(1_usize, |count, length| count.checked_mul(*length))
    }

    /// Rows and columns; one dimension is one column.
    fn matrix(&self) -> Result<(usize, usize), Fault> {
        match self.lengths[..] {
            [rows] => Ok((rows, 1)),
            [rows, columns] => Ok((rows, columns)),
            _ => {
                let shape = &self.lengths;
                Err(Fault::Numpy(format!(
                    "expected an array of one or two dimensions, found the shape {shape:?}"
                )))
            }
        }
    }

    /// The header, from the beginning of a file.
    fn read(from: &mut dyn Read) -> Result<Self, Fault> {
        let cut = |error: std::io::Error| Fault::Numpy(format!("the header is cut short: {error}"));
        let mut magic = [0; 8];
        from.read_exact(&mut magic).map_err(cut)?;
        if &magic[..6] != b"\x93NUMPY" {
            return Err(Fault::Numpy("expected an array of numpy, found something else".into()));
        }
        let wide = magic[6] > 1;
        let mut length = [0; 4];
        from.read_exact(&mut length[..if wide { 4 } else { 2 }]).map_err(cut)?;
        let length = u32::from_le_bytes(length) as usize;
        if length > 1 << 20 {
            return Err(Fault::Numpy(format!("a header of {length} bytes is too long")));
        }
        let mut header = vec![0; length];
        from.read_exact(&mut header).map_err(cut)?;
        let begin = 8 + if wide { 4 } else { 2 } + length;
        let text = String::from_utf8_lossy(&header).into_owned();
        Self::parse(&text, begin).ok_or_else(|| {
            let kinds = "floats of 32 or 64 bits, integers and booleans";
            Fault::Numpy(format!("arrays of {kinds} are read, but the header says {:?}", text.trim()))
        })
    }

    fn parse(text: &str, begin: usize) -> Option<Self> {
        let after = |key: &str| Some(text.split_once(&format!("'{key}':"))?.1.trim_start());
        let descr = after("descr")?.strip_prefix('\'')?.split_once('\'')?.0;
        let (order, kind) = descr.split_at_checked(1)?;
        let (letter, size) = kind.split_at_checked(1)?;
        let kind = match (letter, size.parse::<usize>().ok()?) {
            ("f", 8) => Kind::F64,
            ("f", 4) => Kind::F32,
            ("i", size @ (1 | 2 | 4 | 8)) => Kind::Signed(size),
            ("u" | "b", size @ (1 | 2 | 4 | 8)) => Kind::Unsigned(size),
            _ => return None,
        };
        let swapped = match order {
            "<" | "|" | "=" => false,
            ">" => true,
            _ => return None,
        };
        let fortran = after("fortran_order")?.starts_with("True");
        let shape = after("shape")?.strip_prefix('(')?.split_once(')')?.0;
        let numbers = shape.split(',').map(str::trim).filter(|number| !number.is_empty());
        let lengths = numbers.map(|number| number.parse().ok()).collect::<Option<Vec<usize>>>()?;
        Some(Self { kind, swapped, fortran, lengths, begin })
    }

    fn element(&self, bytes: &[u8]) -> Element {
        let mut padded = [0; 8];
        let size = bytes.len();
        padded[..size].copy_from_slice(bytes);
        if self.swapped {
            padded[..size].reverse();
        }
        let whole = u64::from_le_bytes(padded);
        match self.kind {
            Kind::F64 => Element::Float(f64::from_bits(whole)),
            Kind::F32 => Element::Float(f64::from(f32::from_bits(whole as u32))),
            Kind::Unsigned(_) => Element::Unsigned(whole),
            // The sign is moved to the top and back.
            Kind::Signed(size) => {
                let shift = 64 - 8 * size as u32;
                Element::Signed(((whole << shift) as i64) >> shift)
            }
        }
    }

    /// Reads the numbers in the order of rows, and hands each over with its row and column.
    fn each(&self, from: &mut dyn Read, mut take: impl FnMut(usize, usize, Element)) -> Result<(), Fault> {
        let (rows, columns) = self.matrix()?;
        let size = self.kind.size();
        let count = self.count().ok_or_else(|| Fault::Numpy("the shape is too large".into()))?;
        let mut buffer = vec![0; size << 16];
        let mut k = 0;
        while k < count {
            let wanted = (count - k).min(1 << 16) * size;
            from.read_exact(&mut buffer[..wanted]).map_err(|error| {
                Fault::Numpy(format!("the array should have {count} numbers, but is cut short: {error}"))
            })?;
            for bytes in buffer[..wanted].chunks_exact(size) {
                let (row, column) =
                    if self.fortran { (k % rows, k / rows) } else { (k / columns, k % columns) };
                take(row, column, self.element(bytes));
                k += 1;
            }
        }
        let mut one = [0];
        match from.read(&mut one) {
            Ok(0) => Ok(()),
            _ => Err(Fault::Numpy(format!("the array should have {count} numbers, but the file goes on"))),
        }
    }

    /// Room for so many numbers, if there can be.
    fn room<T: Number>(rows: usize, columns: usize, memory: Memory) -> Result<Vec<T>, Fault> {
        let too_large = || Fault::Memory { rows, columns };
        let count = rows.checked_mul(columns).ok_or_else(too_large)?;
        memory.allow(count, size_of::<T>())?;
        Vec::<T>::new().try_reserve_exact(count).map_err(|_| too_large())?;
        // Zeroed by the system, page by page, as numbers arrive: a header may promise more than comes.
        Ok(vec![T::default(); count])
    }

    /// An array of one dimension, or of one column.
    fn vector(&self, from: &mut dyn Read, what: &str, memory: Memory) -> Result<Vec<f64>, Fault> {
        let (rows, columns) = self.matrix()?;
        if columns != 1 && rows != 1 {
            return Err(Fault::Numpy(format!(
                "{what} has {rows} x {columns} numbers, expected one for each row"
            )));
        }
        let mut vector = Self::room(rows.max(columns).min(rows.saturating_mul(columns)), 1, memory)?;
        self.each(from, |row, column, value| vector[row.max(column)] = value.number())?;
        Ok(vector)
    }

    /// The labels, as an array of one dimension, or of one column.
    fn labels(&self, from: &mut dyn Read, options: &Options) -> Result<Labels, Fault> {
        let (rows, columns) = self.matrix()?;
        if columns != 1 && rows != 1 {
            return Err(Fault::Numpy(format!(
                "the array of labels has {rows} x {columns} numbers, expected one for each row"
            )));
        }
        Memory(options.memory).allow(rows.max(columns), size_of::<f64>())?;
        let mut labels = Labels { meaning: options.meaning, ..Labels::default() };
        self.each(from, |_, _, value| labels.push(value))?;
        Ok(labels)
    }

    /// The features, and the labels that stand in the column `label`.
    fn table(&self, from: &mut dyn Read, label: Option<usize>, options: &Options) -> Result<Parts, Fault> {
        let narrow = match options.precision {
            Some(precision) => precision == Precision::F32,
            None => self.kind == Kind::F32,
        };
        if narrow {
            self.table_of::<f32>(from, label, options)
        } else {
            self.table_of::<f64>(from, label, options)
        }
    }

    fn table_of<T: Number>(
        &self,
        from: &mut dyn Read,
        label: Option<usize>,
        options: &Options,
    ) -> Result<Parts, Fault> {
        let (rows, columns) = self.matrix()?;
        let kept = columns - usize::from(label.is_some());
        if rows == 0 {
            return Err(Fault::Empty);
        }
        if kept == 0 {
            return Err(Fault::NoFeatures);
        }
        let mut values = Self::room::<T>(rows, kept, Memory(options.memory))?;
        let mut labels = Labels { meaning: options.meaning, ..Labels::default() };
        self.each(from, |row, column, value| match label {
            // A column comes from top to bottom in either order.
            Some(label) if column == label => labels.push(value),
            _ => {
                let before = usize::from(label.is_some_and(|label| label < column));
                values[row * kept + column - before] = T::of(value.number());
            }
        })?;
        let dense = Dense { rows, columns: kept, values: T::values(values) };
        Ok((Features::Dense(dense), label.is_some().then_some(labels)))
    }
}

/// Features, and labels if they are among them.
type Parts = (Features, Option<Labels>);

/// A part of a file that is mapped into memory.
pub(crate) struct Mapped<T> {
    map: Mmap,
    begin: usize,
    end: usize,
    kind: PhantomData<fn() -> T>,
}

impl<T: Pod> Mapped<T> {
    /// The numbers from `begin` to the end of the file, if they are aligned and as many as they should be.
    pub(crate) fn open(file: &File, begin: usize, count: usize) -> Option<Self> {
        // SAFETY: The map is only read. Every pattern of bytes is a number of this kind, so whatever the file holds is valid. What is left is
        // that another program may write to the file or cut it short while it is mapped: then numbers change under the run, or
        // reading fails with a signal. Nobody can rule that out on a shared file system; the documentation says not to.
        #[expect(unsafe_code, reason = "there is no safe way to map a file")]
        let map = unsafe { Mmap::map(file) }.ok()?;
        let end = begin.checked_add(count.checked_mul(size_of::<T>())?)?;
        let fits = map.len() == end && bytemuck::try_cast_slice::<u8, T>(&map[begin..end]).is_ok();
        fits.then_some(Self { map, begin, end, kind: PhantomData })
    }
}

impl<T: Pod> AsRef<[T]> for Mapped<T> {
    fn as_ref(&self) -> &[T] {
        bytemuck::cast_slice(&self.map[self.begin..self.end])
    }
}

/// Maps the array, if it is a plain file of numbers that need no change.
fn mapped(source: &Source, shape: &Shape, precision: Option<Precision>) -> Option<Features> {
    let Source::File(path) = source else { return None };
    let (rows, columns) = shape.matrix().ok()?;
    let plain = !shape.swapped && (!shape.fortran || columns == 1) && rows > 0 && columns > 0;
    if !plain || cfg!(target_endian = "big") {
        return None;
    }
    let file = File::open(path).ok()?;
    let count = shape.count()?;
    let values = match (shape.kind, precision) {
        (Kind::F64, None | Some(Precision::F64)) => {
            Values::F64(Arc::new(Mapped::open(&file, shape.begin, count)?))
        }
        (Kind::F32, None | Some(Precision::F32)) => {
            Values::F32(Arc::new(Mapped::open(&file, shape.begin, count)?))
        }
        _ => return None,
    };
    Some(Features::Dense(Dense { rows, columns, values }))
}

pub(crate) fn read_npy(
    source: &Source,
    opened: Opened,
    options: &Options,
    encoding: Option<&Encoding>,
) -> Result<Data, Located> {
    plain(options)?;
    let mut from = opened.plain();
    let shape = Shape::read(&mut from)?;
    let (_, columns) = shape.matrix()?;
    let own = read_labels(options)?;
    let number =
        |name: &str| name.parse::<usize>().ok().and_then(|k| k.checked_sub(1)).filter(|k| *k < columns);
    let label = match (&options.label, &own) {
        (Label::Usual | Label::IfThere(_), Some(_)) => None,
        (Label::Column(_), Some(_)) => {
            return Err(Fault::Choice("the labels are given twice: by a column and by a file".into()).into());
        }
        (Label::Column(name), None) => Some(number(name).ok_or_else(|| Fault::NoColumn {
            name: name.clone(),
            columns: vec![format!("{columns} columns, numbered from 1")],
        })?),
        (Label::IfThere(name), None) => {
            number(name).filter(|_| encoding.is_some_and(|encoding| columns > encoding.width()))
        }
        (Label::Usual, None) => {
            let fault =
                format!("{columns} columns without names (or give the labels as a file of their own)");
            return Err(Fault::WhichLabel(fault).into());
        }
    };
    let found = mapped(source, &shape, options.precision).filter(|_| label.is_none());
    let is_mapped = found.is_some();
    let (features, labels) = match found {
        Some(features) => (features, None),
        None => shape.table(&mut from, label, options)?,
    };
    let name = label.map_or(String::new(), |label| (label + 1).to_string());
    let data = finish(features, own.or(labels), None, name, encoding)?;
    Ok(Data { mapped: is_mapped, ..data })
}

/// Refuses what only text has.
fn plain(options: &Options) -> Result<(), Fault> {
    let named = options.weight.as_ref().or(options.offset.as_ref());
    let columns = [&options.ignore, &options.categories, &options.interact];
    if named.is_some() || columns.iter().any(|names| !names.is_empty()) {
        return Err(Fault::Choice(
            "columns of arrays cannot be weights or offsets, be ignored, hold categories or interact".into(),
        ));
    }
    if options.storage == Storage::Sparse {
        return Err(Fault::Choice(
            "an array of numpy is dense; scipy.sparse.save_npz writes a sparse one".into(),
        ));
    }
    Ok(())
}

/// The labels of another file, if there is one.
fn read_labels(options: &Options) -> Result<Option<Labels>, Fault> {
    let Some(source) = &options.labels else { return Ok(None) };
    let named = |fault: Fault| Fault::Numpy(format!("{}: {fault}", source.name()));
    let mut from = source.open().map_err(named)?.plain();
    let shape = Shape::read(&mut from).map_err(named)?;
    shape.labels(&mut from, options).map(Some).map_err(named)
}

fn finish(
    features: Features,
    labels: Option<Labels>,
    weights: Option<Vec<f64>>,
    label: String,
    encoding: Option<&Encoding>,
) -> Result<Data, Located> {
    let (rows, columns) = match &features {
        Features::Dense(dense) => (dense.rows, dense.columns),
        Features::Sparse(sparse) => ((*sparse.starts).as_ref().len() - 1, sparse.columns),
    };
    let (labels, classes) = match labels.map(Labels::settle).transpose()? {
        Some((labels, classes)) => (Some(labels), classes),
        None => (None, Vec::new()),
    };
    for (vector, what) in [(&labels, "labels"), (&weights, "weights")] {
        if let Some(vector) = vector.as_ref().filter(|vector| vector.len() != rows) {
            let found = vector.len();
            return Err(Fault::Numpy(format!("{found} {what} for {rows} rows")).into());
        }
    }
    let encoding = match encoding {
        None => Encoding::Numbered { columns, first_index: None },
        Some(encoding) => match encoding.numbers() {
            None => {
                let message = "the columns are matched by name, and an array has no names";
                return Err(Fault::Choice(message.into()).into());
            }
            Some(expected) if expected != columns => {
                return Err(Fault::Columns { expected, found: columns }.into());
            }
            Some(_) => encoding.clone(),
        },
    };
    Ok(Data {
        features,
        labels,
        weights,
        offsets: None,
        encoding,
        label,
        classes,
        left_out: Vec::new(),
        filled: 0,
        missing: Vec::new(),
        unseen: Vec::new(),
        written_as_codes: Vec::new(),
        mapped: false,
    })
}

pub(crate) fn read_npz(
    source: &Source,
    opened: Opened,
    options: &Options,
    encoding: Option<&Encoding>,
) -> Result<Data, Located> {
    match source {
        Source::File(path) => {
            let file = File::open(path).map_err(|error| Fault::System(error.to_string()))?;
            archive(file, options, encoding)
        }
        _ => archive(Cursor::new(opened.plain_bytes(Memory(options.memory))?), options, encoding),
    }
}

const FEATURES: &[&str] = &["X", "x", "features", "data"];
const LABELS: &[&str] = &["y", "Y", "target", "labels", "label"];
const WEIGHTS: &[&str] = &["sample_weight", "weights", "w"];

fn archive<R: Read + Seek>(from: R, options: &Options, encoding: Option<&Encoding>) -> Result<Data, Located> {
    let named = options.weight.as_ref().or(options.offset.as_ref());
    let columns = [&options.ignore, &options.categories, &options.interact];
    if named.is_some() || columns.iter().any(|names| !names.is_empty()) {
        return Err(Fault::Choice(
            "columns of arrays cannot be weights or offsets, be ignored, hold categories or interact".into(),
        )
        .into());
    }
    let broken = |error: zip::result::ZipError| Fault::Numpy(format!("the archive cannot be read: {error}"));
    let mut archive = ZipArchive::new(from).map_err(broken)?;
    let names = archive.file_names().map(|name| name.map(std::borrow::Cow::into_owned));
    let names: Vec<String> = names.collect::<Result<_, _>>().map_err(broken)?;
    if arrays(&names).is_empty() {
        return Err(Fault::Kind("an archive without arrays of numpy (.npy) in it; unpack it first").into());
    }
    if names.iter().any(|name| name == "format.npy") {
        is_of_rows(&mut archive.by_name("format.npy").map_err(broken)?)?;
    }
    let named = |wanted: &[&str]| {
        let found = wanted.iter().find(|name| names.iter().any(|file| *file == format!("{name}.npy")));
        found.map(|name| format!("{name}.npy"))
    };
    let own = read_labels(options)?;
    let asked: &[&str] = match &options.label {
        Label::Column(name) => &[name],
        Label::Usual | Label::IfThere(_) => LABELS,
    };
    let labels = match own {
        Some(own) => Some(own),
        None => match named(asked) {
            Some(name) => {
                let mut file = archive.by_name(&name).map_err(broken)?;
                Some(Shape::read(&mut file)?.labels(&mut file, options)?)
            }
            None => match &options.label {
                Label::Column(name) => {
                    return Err(Fault::NoColumn { name: name.clone(), columns: arrays(&names) }.into());
                }
                Label::Usual => {
                    let there = crate::fault::listed(&arrays(&names));
                    return Err(Fault::WhichLabel(format!("the arrays {there}")).into());
                }
                Label::IfThere(_) => None,
            },
        },
    };
    let mut vector = |wanted: &[&str], what: &str| -> Result<Option<Vec<f64>>, Fault> {
        let Some(name) = named(wanted) else { return Ok(None) };
        let mut file = archive.by_name(&name).map_err(broken)?;
        let shape = Shape::read(&mut file)?;
        shape.vector(&mut file, what, Memory(options.memory)).map(Some)
    };
    let weights = vector(WEIGHTS, "the array of weights")?;
    let features = if names.iter().any(|name| name == "indptr.npy") {
        let mut part = |name: &str| {
            let missing =
                || Fault::Numpy(format!("a sparse matrix of scipy has an array {name}, but this has not"));
            vector(&[name], name)?.ok_or_else(missing)
        };
        let (shape, starts, indices, values) =
            (part("shape")?, part("indptr")?, part("indices")?, part("data")?);
        sparse(&shape, starts, indices, values, options)?
    } else {
        let missing = || {
            Fault::Numpy(format!("there is no array X; there are {}", crate::fault::listed(&arrays(&names))))
        };
        let name = named(FEATURES).ok_or_else(missing)?;
        let mut file = archive.by_name(&name).map_err(broken)?;
        let shape = Shape::read(&mut file)?;
        if options.storage == Storage::Sparse {
            let message = "an array of numpy is dense; scipy.sparse.save_npz writes a sparse one";
            return Err(Fault::Choice(message.into()).into());
        }
        shape.table(&mut file, None, options)?.0
    };
    finish(features, labels, weights, String::new(), encoding)
}

/// The names of the arrays in an archive.
fn arrays(names: &[String]) -> Vec<String> {
    names.iter().filter_map(|name| name.strip_suffix(".npy").map(str::to_owned)).collect()
}

/// Refuses a sparse matrix of scipy that is stored in another way than by rows: a square one of columns would be read, and be its transpose.
fn is_of_rows(format: &mut dyn Read) -> Result<(), Fault> {
    let cut = |error: std::io::Error| Fault::Numpy(format!("the array format is cut short: {error}"));
    let mut bytes = Vec::new();
    format.take(1 << 16).read_to_end(&mut bytes).map_err(cut)?;
    // The name is the end of the file, in letters of one byte or of four.
    let letters: Vec<u8> = bytes.into_iter().filter(|byte| *byte != 0).collect();
    if letters.ends_with(b"csr") {
        return Ok(());
    }
    let name = letters.iter().rev().take(3).rev().copied().collect();
    let name = String::from_utf8(name).unwrap_or_default();
    Err(Fault::Numpy(format!(
        "a sparse matrix of scipy in the format {name:?}; save_npz(file, matrix.tocsr()) writes it by rows, as they are read"
    )))
}

/// A matrix as `scipy.sparse.save_npz` writes it, of compressed rows.
fn sparse(
    shape: &[f64],
    starts: Vec<f64>,
    indices: Vec<f64>,
    values: Vec<f64>,
    options: &Options,
) -> Result<Features, Fault> {
    let wrong = |what: &str| Fault::Numpy(format!("not a matrix of compressed rows (CSR): {what}"));
    let [rows, columns] = shape[..] else { return Err(wrong("its shape is not of two numbers")) };
    let is_count = |x: f64, most: f64| x.fract() == 0.0 && (0.0..=most).contains(&x);
    if starts.len() as f64 != rows + 1.0 || !is_count(columns, f64::from(u32::MAX - 1)) || columns == 0.0 {
        return Err(wrong(&format!("{} row starts for a shape of {rows} x {columns}", starts.len())));
    }
    let count = values.len() as f64;
    let in_order = starts.windows(2).all(|pair| pair[0] <= pair[1]) && starts[0] == 0.0;
    let end = starts[starts.len() - 1];
    if !in_order
        || end != count
        || values.len() != indices.len()
        || !starts.iter().all(|s| is_count(*s, count))
    {
        return Err(wrong("its row starts do not fit its values"));
    }
    if !indices.iter().all(|index| is_count(*index, columns - 1.0)) {
        return Err(wrong("an index is no column"));
    }
    if rows == 0.0 {
        return Err(Fault::Empty);
    }
    let starts: Vec<u64> = starts.into_iter().map(|start| start as u64).collect();
    let indices: Vec<u32> = indices.into_iter().map(|index| index as u32).collect();
    for window in starts.windows(2) {
        let row = &indices[window[0] as usize..window[1] as usize];
        if let Some(pair) = row.windows(2).find(|pair| pair[0] >= pair[1]) {
            let (before, index) = (u64::from(pair[0]), u64::from(pair[1]));
            return Err(if before == index {
                Fault::Duplicate(index)
            } else {
                Fault::Order { before, index }
            });
        }
    }
    let values = match options.precision {
        Some(Precision::F32) => values.iter().map(|v| *v as f32).collect::<Vec<f32>>().into(),
        _ => values.into(),
    };
    Ok(Features::Sparse(Sparse {
        columns: columns as usize,
        starts: shared(starts),
        indices: shared(indices),
        values,
    }))
}
