//! Tables larger than memory: a text is written once as arrays, and those are mapped.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, BufReader, BufWriter, Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::UNIX_EPOCH;

use bytemuck::Pod;
use pasta_opt::table::{Dense, Features, Shared, Sparse, Values};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use crate::fault::{Fault, ReadError};
use crate::names::Names;
use crate::number::Number;
use crate::numpy::Mapped;
use crate::{Blocks, Data, Encoding, Format, Meaning, Missing, Options, Precision, Source, Storage, Watch};

/// A table that was mapped from a cache.
#[derive(Debug, Clone)]
pub struct Cached {
    /// The table. Its features are mapped, not read.
    pub data: Data,
    /// The folder of the cache.
    pub folder: PathBuf,
    /// Whether it was written just now.
    pub written: bool,
}

/// What is called with a line that is to be said aloud.
pub type Notify<'t> = &'t dyn Fn(&str);

/// The format of a cache.
const FORMAT: u32 = 3;
/// Bytes of text that are parsed at a time.
const BLOCK: usize = 4 << 20;
/// Bytes of an array that have one checksum.
const SUMMED: usize = 4 << 20;

/// What the file `about.json` of a cache says; it is written last, so that a cache without it is none.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(clippy::struct_excessive_bools, reason = "each is a key of the description")]
struct Contents {
    format: u32,
    /// What the text was: its bytes, when it was changed, and the settings that it was read with.
    text: Origin,
    rows: usize,
    columns: usize,
    entries: usize,
    sparse: bool,
    single: bool,
    weighted: bool,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    offset: bool,
    encoding: Encoding,
    label: String,
    classes: Vec<String>,
    /// Cells that were missing and are 0.
    filled: u64,
    /// Of each array, CRC-32 of each 4 MiB. Nothing for a table that is handed on at once.
    checksums: BTreeMap<String, Vec<u32>>,
    /// CRC-32 of all of this with 0 in its place.
    seal: u32,
}

impl Contents {
    fn sealed(self) -> serde_json::Result<Self> {
        let open = Self { seal: 0, ..self };
        let seal = crc32fast::hash(&serde_json::to_vec(&open)?);
        Ok(Self { seal, ..open })
    }

    fn is_whole(&self) -> bool {
        self.clone().sealed().is_ok_and(|sealed| sealed.seal == self.seal)
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Origin {
    bytes: u64,
    changed: u128,
    /// CRC-32 of its beginning, middle and end: a file that is copied with its times may be another.
    glimpse: u32,
    settings: String,
}

/// Reads a text through a cache: a folder of arrays beside it, or in `folder`, which is written if it is not there or the text has changed since.
/// The arrays are mapped, so that a table may be larger than memory; their checksums are compared first. `notify` is told what is written where. Of several processes that want the same cache
/// one writes it, and the others wait for it.
///
/// For LIBSVM, and for CSV files of numbers without missing values: what a column holds must not depend on all rows. Names of classes may be words.
pub fn cached(
    path: &Path,
    options: &Options,
    folder: Option<&Path>,
    watch: Watch<'_>,
    notify: Notify<'_>,
) -> Result<Cached, ReadError> {
    let name = path.display().to_string();
    let fail = |fault: Fault| ReadError { file: name.clone(), line: None, column: None, fault };
    let system = |error: io::Error| fail(Fault::System(error.to_string()));
    let refuse = |what: &str| Err(fail(Fault::Choice(format!("{what} cannot be read through a cache"))));
    if options.one_hot
        || !options.categories.is_empty()
        || !options.interact.is_empty()
        || !matches!(options.missing, Missing::Refuse | Missing::Zero)
    {
        return refuse("columns of words, missing values and interactions");
    }
    let about = fs::metadata(path).map_err(system)?;
    if !about.is_file() {
        return refuse("what is no plain file");
    }
    let changed = about.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
    let text = Origin {
        bytes: about.len(),
        changed: changed.map_or(0, |since| since.as_nanos()),
        glimpse: glimpse(path, about.len()).map_err(system)?,
        settings: settings(options),
    };
    let mut own = path.file_name().map_or_else(Default::default, ToOwned::to_owned);
    own.push(".cache");
    let place = folder.or(path.parent()).unwrap_or(Path::new("")).join(own);
    let found = || {
        let is_ours =
            |contents: &Contents| contents.format == FORMAT && contents.text == text && contents.is_whole();
        read_contents(&place).filter(is_ours)
    };
    let hint = |error: ReadError| match error.fault {
        Fault::System(message) => fail(Fault::Cache(place.display().to_string(), message)),
        _ => error,
    };
    let mut there = found();
    // Held until the cache is written. Whoever had to wait for it finds one.
    let mut lock = None;
    if there.is_none() {
        lock = Some(locked(&place).map_err(|error| hint(system(error)))?);
        there = found();
    }
    let written = there.is_none();
    let contents = if let Some(contents) = there {
        notify(&format!("{name}: mapped from the cache {}", place.display()));
        contents
    } else {
        notify(&format!(
            "{name}: writing the cache {} (delete it when you no longer need it)",
            place.display()
        ));
        write(path, options, &place, text.clone(), watch).map_err(hint)?
    };
    drop(lock);
    let mapped = map(&place, contents, true, !written);
    let data = mapped.map_err(|what| fail(Fault::Damaged(place.display().to_string(), what)))?;
    Ok(Cached { data, folder: place, written })
}

/// A checksum of the first, the middle and the last bytes of a file.
fn glimpse(path: &Path, bytes: u64) -> io::Result<u32> {
    const EACH: u64 = 1 << 16;
    let mut file = File::open(path)?;
    let mut checksum = crc32fast::Hasher::new();
    let mut part = Vec::new();
    for begin in [0, (bytes / 2).saturating_sub(EACH / 2), bytes.saturating_sub(EACH)] {
        part.clear();
        file.seek(io::SeekFrom::Start(begin))?;
        (&mut file).take(EACH).read_to_end(&mut part)?;
        checksum.update(&part);
    }
    Ok(checksum.finalize())
}

/// Everything that changes what is written, in words.
fn settings(options: &Options) -> String {
    let Options { format, label, meaning, weight, ignore, header, delimiter, missing, .. } = options;
    let Options { first_index, columns, storage, precision, .. } = options;
    let offset = options.offset.as_ref().map_or_else(String::new, |column| format!(" offset {column:?}"));
    format!(
        "{format:?} {label:?} {meaning:?} {weight:?} {ignore:?} {header:?} {delimiter:?} {missing:?} {first_index:?} {columns:?} {storage:?} {precision:?}{offset}"
    )
}

/// Waits until no other process writes this cache.
fn locked(place: &Path) -> io::Result<File> {
    fs::create_dir_all(place)?;
    let file = File::create(place.join("lock"))?;
    file.lock()?;
    Ok(file)
}

/// A table in files that several processes of a machine map. A folder with a description and the arrays of a cache.
#[derive(Debug, Serialize, Deserialize)]
struct SharedTable {
    contents: Contents,
    labelled: bool,
    left_out: Vec<u64>,
}

/// Writes a table into a folder of its own, so that other processes of this machine can [pick it up](pick_up) without a copy in memory.
pub fn put_down(data: &Data, place: &Path) -> io::Result<()> {
    let mut arrays = Arrays::create(place)?;
    put(&mut arrays.starts, &[0_u64])?;
    let entries = append(&mut arrays, data, 0)?;
    arrays.finish()?;
    let values = match &data.features {
        Features::Dense(Dense { values, .. }) | Features::Sparse(Sparse { values, .. }) => values,
    };
    let contents = Contents {
        format: FORMAT,
        text: Origin { bytes: 0, changed: 0, glimpse: 0, settings: String::new() },
        rows: data.features.rows(),
        columns: data.features.columns(),
        entries,
        sparse: matches!(data.features, Features::Sparse(_)),
        single: matches!(values, Values::F32(_)),
        weighted: data.weights.is_some(),
        offset: data.offsets.is_some(),
        encoding: data.encoding.clone(),
        label: data.label.clone(),
        classes: data.classes.clone(),
        filled: data.filled,
        checksums: BTreeMap::new(),
        seal: 0,
    };
    let (labelled, left_out) = (data.labels.is_some(), data.left_out.clone());
    let shelf = SharedTable { contents, labelled, left_out };
    fs::write(place.join("about.json"), serde_json::to_vec(&shelf)?)
}

/// The table that was [put down](put_down) in a folder. Its columns are mapped; once it is picked up, the folder may be removed.
pub fn pick_up(place: &Path) -> io::Result<Data> {
    let shelf: SharedTable = serde_json::from_slice(&fs::read(place.join("about.json"))?)?;
    let SharedTable { contents, labelled, left_out } = shelf;
    let data = map(place, contents, labelled, false).map_err(io::Error::other)?;
    Ok(Data { left_out, ..data })
}

fn read_contents(place: &Path) -> Option<Contents> {
    let file = File::open(place.join("about.json")).ok()?;
    serde_json::from_reader(BufReader::new(file)).ok()
}

/// The arrays of a cache while they are written.
struct Arrays {
    values: Array,
    indices: Array,
    starts: Array,
    labels: Array,
    weights: Array,
    offsets: Array,
}

impl Arrays {
    fn create(place: &Path) -> io::Result<Self> {
        let create = |name: &str| Array::create(&place.join(name));
        Ok(Self {
            values: create("values")?,
            indices: create("indices")?,
            starts: create("starts")?,
            labels: create("labels")?,
            weights: create("weights")?,
            offsets: create("offsets")?,
        })
    }

    /// Closes all of them; the checksums of each.
    fn finish(self) -> io::Result<BTreeMap<String, Vec<u32>>> {
        let Self { values, indices, starts, labels, weights, offsets } = self;
        [
            ("values", values),
            ("indices", indices),
            ("starts", starts),
            ("labels", labels),
            ("weights", weights),
            ("offsets", offsets),
        ]
        .into_iter()
        .map(|(name, array)| Ok((name.to_owned(), array.finish()?)))
        .collect()
    }
}

/// An array while it is written, with the checksums of what is there.
struct Array {
    file: BufWriter<File>,
    sums: Vec<u32>,
    last: crc32fast::Hasher,
    /// Bytes in the last sum.
    there: usize,
}

impl Array {
    fn create(path: &Path) -> io::Result<Self> {
        let file = BufWriter::with_capacity(1 << 18, File::create(path)?);
        Ok(Self { file, sums: Vec::new(), last: crc32fast::Hasher::new(), there: 0 })
    }

    fn write(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        self.file.write_all(bytes)?;
        while !bytes.is_empty() {
            let (now, rest) = bytes.split_at(bytes.len().min(SUMMED - self.there));
            self.last.update(now);
            self.there += now.len();
            bytes = rest;
            if self.there == SUMMED {
                self.sums.push(std::mem::take(&mut self.last).finalize());
                self.there = 0;
            }
        }
        Ok(())
    }

    fn finish(mut self) -> io::Result<Vec<u32>> {
        self.file.into_inner().map_err(io::IntoInnerError::into_error)?;
        if self.there > 0 {
            self.sums.push(self.last.finalize());
        }
        Ok(self.sums)
    }
}

fn put<T: Pod>(into: &mut Array, numbers: &[T]) -> io::Result<()> {
    into.write(bytemuck::cast_slice(numbers))
}

/// How a text is to be kept, as far as its first block says.
#[derive(Debug, Clone, Copy)]
struct Plan {
    storage: Storage,
    first_index: Option<u32>,
    columns: Option<usize>,
}

/// Why a text must be read again in another way.
enum Again {
    /// The first index is 0 after all.
    Zero,
    /// It has so many columns, more than the first block, so that rows cannot be dense as they come.
    Wider(usize),
    Failed(ReadError),
}

fn write(
    path: &Path,
    options: &Options,
    place: &Path,
    text: Origin,
    watch: Watch<'_>,
) -> Result<Contents, ReadError> {
    let source = Source::File(path.to_owned());
    let mut plan =
        Plan { storage: options.storage, first_index: options.first_index, columns: options.columns };
    loop {
        match write_as(&source, options, plan, place, &text, watch) {
            Ok(contents) => return Ok(contents),
            Err(Again::Zero) => plan.first_index = Some(0),
            Err(Again::Wider(columns)) if options.storage == Storage::Dense => plan.columns = Some(columns),
            Err(Again::Wider(_)) => plan.storage = Storage::Sparse,
            Err(Again::Failed(error)) => return Err(error),
        }
    }
}

impl Contents {
    /// Seals and writes what a cache holds: last, so that a cache without it is none.
    fn write(self, place: &Path) -> io::Result<Self> {
        let contents = self.sealed()?;
        fs::write(place.join("about.json"), serde_json::to_string_pretty(&contents)?)?;
        Ok(contents)
    }
}

/// Numbers the classes of a block in the order of their appearance, until all are known.
fn name_classes(data: &mut Data, meaning: Meaning, names: &mut Names) -> Result<(), Fault> {
    if meaning == Meaning::Classes {
        let numbers: Vec<u32> = data.classes.iter().map(|class| names.number(class, 0)).collect();
        for label in data.labels.iter_mut().flatten() {
            *label = f64::marked(numbers[*label as usize] + 1);
        }
    } else if !data.classes.is_empty() {
        return Err(Fault::Choice("labels that are words cannot be read through a cache".into()));
    }
    Ok(())
}

/// Empty arrays in a folder that is no cache until its contents are written.
fn begin(place: &Path) -> io::Result<Arrays> {
    fs::create_dir_all(place)?;
    match fs::remove_file(place.join("about.json")) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut arrays = Arrays::create(place)?;
    put(&mut arrays.starts, &[0_u64])?;
    Ok(arrays)
}

/// What a block that cannot be read says about the plan.
fn again(error: ReadError, options: &Options, plan: Plan) -> Again {
    match error.fault {
        Fault::ZeroIndex if options.first_index.is_none() => Again::Zero,
        Fault::Beyond { index, .. } if options.columns.is_none() && plan.storage == Storage::Dense => {
            let first = u64::from(plan.first_index.unwrap_or(0));
            Again::Wider(usize::try_from(index + 1 - first).unwrap_or(usize::MAX))
        }
        _ => Again::Failed(error),
    }
}

fn write_as(
    source: &Source,
    options: &Options,
    mut plan: Plan,
    place: &Path,
    text: &Origin,
    watch: Watch<'_>,
) -> Result<Contents, Again> {
    let wrong = |fault: Fault| ReadError { file: source.name(), line: None, column: None, fault };
    let system = |error: io::Error| Again::Failed(wrong(Fault::System(error.to_string())));
    let mut arrays = begin(place).map_err(system)?;
    let (mut rows, mut entries, mut columns, mut filled) = (0, 0, 0, 0);
    let mut last: Option<Data> = None;
    let mut names = Names::default();
    let chosen = |plan: Plan| Options {
        storage: plan.storage,
        first_index: plan.first_index,
        columns: plan.columns,
        // It holds one block at a time.
        memory: None,
        ..options.clone()
    };
    let mut blocks = Blocks::open(source, &chosen(plan), BLOCK).map_err(Again::Failed)?;
    loop {
        let Some(mut data) = blocks.next_block(watch).map_err(|error| again(error, options, plan))? else {
            break;
        };
        name_classes(&mut data, options.meaning, &mut names).map_err(|fault| Again::Failed(wrong(fault)))?;
        let here = data.features.columns();
        if last.is_none() {
            let dense = matches!(data.features, Features::Dense(_));
            plan.storage = if dense { Storage::Dense } else { Storage::Sparse };
            columns = here;
        }
        if blocks.format() == Format::Libsvm {
            // The next block is read with what is settled, and with as many columns as it has.
            if let Encoding::Numbered { first_index, .. } = data.encoding {
                plan.first_index = first_index;
            }
            if plan.storage == Storage::Dense {
                plan.columns = Some(columns);
            }
            blocks.settle(chosen(plan));
        }
        columns = columns.max(here);
        rows += data.features.rows();
        filled += data.filled;
        entries += append(&mut arrays, &data, entries).map_err(system)?;
        last = Some(data);
    }
    let Some(last) = last else { return Err(Again::Failed(wrong(Fault::Empty))) };
    let mut checksums = arrays.finish().map_err(system)?;
    let classes = settle(place, &names, &mut checksums).map_err(system)?;
    let encoding = match last.encoding {
        Encoding::Numbered { first_index, .. } => Encoding::Numbered { columns, first_index },
        cells @ Encoding::Cells { .. } => cells,
    };
    let contents = Contents {
        format: FORMAT,
        text: text.clone(),
        rows,
        columns,
        entries,
        sparse: matches!(last.features, Features::Sparse(_)),
        single: options.precision == Some(Precision::F32),
        weighted: last.weights.is_some(),
        offset: last.offsets.is_some(),
        encoding,
        label: last.label,
        classes,
        filled,
        checksums,
        seal: 0,
    };
    contents.write(place).map_err(system)
}

/// Writes the labels once more, as numbers of classes in their order, if they are names.
fn settle(
    place: &Path,
    names: &Names,
    checksums: &mut BTreeMap<String, Vec<u32>>,
) -> io::Result<Vec<String>> {
    if names.is_empty() {
        return Ok(Vec::new());
    }
    let bytes = fs::read(place.join("labels"))?;
    let (numbers, _) = bytes.as_chunks();
    let mut labels: Vec<f64> = numbers.iter().map(|number| f64::from_ne_bytes(*number)).collect();
    let classes = names.settle(&mut labels);
    let mut file = Array::create(&place.join("labels"))?;
    put(&mut file, &labels)?;
    checksums.insert("labels".into(), file.finish()?);
    Ok(classes)
}

/// Writes the rows of a block behind the entries that are there; how many it has.
fn append(arrays: &mut Arrays, data: &Data, before: usize) -> io::Result<usize> {
    let (values, entries) = match &data.features {
        Features::Dense(dense) => (&dense.values, dense.values.len()),
        Features::Sparse(sparse) => {
            put(&mut arrays.indices, (*sparse.indices).as_ref())?;
            let ends = (*sparse.starts).as_ref()[1..].iter().map(|end| end + before as u64);
            put(&mut arrays.starts, &ends.collect::<Vec<u64>>())?;
            (&sparse.values, sparse.values.len())
        }
    };
    match values {
        Values::F64(values) => put(&mut arrays.values, (**values).as_ref())?,
        Values::F32(values) => put(&mut arrays.values, (**values).as_ref())?,
    }
    put(&mut arrays.labels, data.labels.as_deref().unwrap_or_default())?;
    put(&mut arrays.weights, data.weights.as_deref().unwrap_or_default())?;
    put(&mut arrays.offsets, data.offsets.as_deref().unwrap_or_default())?;
    Ok(entries)
}

/// Maps the arrays, once their checksums are compared if that is asked for; what is wrong with them.
fn map(place: &Path, contents: Contents, labelled: bool, compared: bool) -> Result<Data, String> {
    let Contents { rows, columns, entries, sparse, single, weighted, offset, .. } = contents;
    let Contents { encoding, label, classes, filled, checksums, .. } = contents;
    let folder = Folder { place, checksums: compared.then_some(checksums) };
    let values = match (entries, single) {
        // An empty file cannot be mapped.
        (0, _) => Values::F64(Arc::new(Vec::new())),
        (_, false) => Values::F64(folder.array("values", entries)?),
        (_, true) => Values::F32(folder.array("values", entries)?),
    };
    let features = if sparse {
        let indices: Shared<u32> =
            if entries == 0 { Arc::new(Vec::new()) } else { folder.array("indices", entries)? };
        Features::Sparse(Sparse { columns, starts: folder.array("starts", rows + 1)?, indices, values })
    } else {
        Features::Dense(Dense { rows, columns, values })
    };
    let vector = |name: &str| folder.array::<f64>(name, rows).map(|vector| (*vector).as_ref().to_vec());
    let weights = if weighted { Some(vector("weights")?) } else { None };
    let offsets = if offset { Some(vector("offsets")?) } else { None };
    let labels = if labelled { Some(vector("labels")?) } else { None };
    let left_out = Vec::new();
    Ok(Data {
        features,
        labels,
        weights,
        offsets,
        encoding,
        label,
        classes,
        left_out,
        filled,
        missing: Vec::new(),
        unseen: Vec::new(),
        written_as_codes: Vec::new(),
        mapped: true,
    })
}

/// The arrays of a folder, with their checksums where these are to be compared.
struct Folder<'p> {
    place: &'p Path,
    checksums: Option<BTreeMap<String, Vec<u32>>>,
}

impl Folder<'_> {
    fn array<T: Pod + Send + Sync>(&self, name: &str, count: usize) -> Result<Shared<T>, String> {
        let unfit = || format!("its file {name} does not hold {count} numbers");
        let file = File::open(self.place.join(name)).map_err(|error| format!("its file {name}: {error}"))?;
        let array = Mapped::<T>::open(&file, 0, count).ok_or_else(unfit)?;
        if let Some(checksums) = &self.checksums {
            let sums = checksums.get(name).ok_or_else(unfit)?;
            let bytes: &[u8] = bytemuck::cast_slice(array.as_ref());
            if sums.len() != bytes.len().div_ceil(SUMMED) {
                return Err(unfit());
            }
            let blocks = bytes.par_chunks(SUMMED).zip(sums);
            if let Some(block) = blocks.position_first(|(block, sum)| crc32fast::hash(block) != *sum) {
                let (begin, end) = (block * SUMMED, ((block + 1) * SUMMED).min(bytes.len()));
                return Err(format!(
                    "bytes {begin} to {end} of its file {name} are not those that were written"
                ));
            }
        }
        Ok(Arc::new(array))
    }
}
