//! From a file to a problem.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::talk::{follow, say, say_meanwhile};
use crate::{Code, Data, Encoding, Exit, Failure, Fault, Options, ReadError, Source, Watch};
use pasta_opt::draws::{Address, Role};
use pasta_opt::table::{Dense, Design, Features, Linear, Loss, Sparse, Table, TableError, Values};

use super::{Cache, Classes, Reading, Shaping, counted};
use crate::world;

/// Reads a table, through a cache if that is asked for or the text is too large to be held.
pub fn load_table(source: &Source, reading: &Reading, loss: &str) -> Result<Data, Failure> {
    let options = reading.options(loss);
    let is_large = match source {
        Source::File(path) if reading.cache == Cache::IfLarge => {
            let most = match reading.options.memory {
                Some(most) => Some(most),
                None => free_memory()?.map(|free| free / 2),
            };
            world::decided(|| is_too_large(path, most)).map_err(Failure::system)?
        }
        _ => false,
    };
    match (source, &reading.cache) {
        (Source::File(path), cache) if *cache != Cache::IfLarge || is_large => {
            let folder = match cache {
                Cache::In(folder) => Some(folder.as_path()),
                Cache::Beside | Cache::IfLarge => None,
            };
            let data = followed(|watch| crate::cached(path, &options, folder, watch, &say_meanwhile))?;
            say_filled(&source.name(), data.data.filled);
            Ok(data.data)
        }
        (_, Cache::Beside | Cache::In(_)) => {
            Err(Failure::input("--cache: standard input has no file to put it beside"))
        }
        _ => match world::rank() {
            None => load(source, &options, None),
            Some(rank) => load_together(rank, source, &options),
        },
    }
}

/// Reads a table that several processes need: one of each machine reads it and puts it down in files, which all of that machine map. So it is in
/// memory once, and not once for each process, and what nobody uses can be dropped. The files are gone when all have picked it up.
fn load_together(rank: usize, source: &Source, options: &Options) -> Result<Data, Failure> {
    let hosts = world::gather(host()).map_err(Failure::system)?;
    let reader = hosts.iter().position(|host| *host == hosts[rank]).unwrap_or(rank);
    let source = &told(source)?;
    let mut shared = SharedTable(None);
    let mut own = None;
    let mut read = || {
        let data = load(source, options, None)?;
        if data.mapped {
            own = Some(data);
            return Ok(Vec::new());
        }
        shared.put(&data)
    };
    let places = agreed(if rank == reader { read() } else { Ok(Vec::new()) })?;
    let data = match (own, places[reader].as_slice()) {
        (Some(data), _) => Ok(data),
        // It is mapped where it is.
        (None, []) => load(source, options, None),
        (None, place) => {
            let place = String::from_utf8_lossy(place);
            crate::pick_up(Path::new(&*place)).map_err(|error| Failure::system(error).in_file(&place))
        }
    };
    // The files stay until all have mapped them.
    let (data, done) = match data {
        Ok(data) => (Some(data), Ok(Vec::new())),
        Err(failure) => (None, Err(failure)),
    };
    agreed(done)?;
    drop(shared);
    data.ok_or_else(|| Failure::system("the table was lost"))
}

/// A folder, for a while, in which a table is handed on.
struct SharedTable(Option<PathBuf>);

impl SharedTable {
    /// Writes a table, and says where.
    fn put(&mut self, data: &Data) -> Result<Vec<u8>, Failure> {
        let place = std::env::temp_dir().join(format!("pasta-table-{}", std::process::id()));
        let words = place.display().to_string();
        let failed = |error: std::io::Error| {
            let failure = Failure::system(error).in_file(&words);
            failure.hint("the processes of a machine share a table there; TMPDIR names another folder")
        };
        let mut builder = std::fs::DirBuilder::new();
        // For nobody else to look into.
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        builder.create(&place).map_err(failed)?;
        let place = self.0.insert(place);
        crate::put_down(data, place).map_err(failed)?;
        Ok(words.clone().into_bytes())
    }
}

impl Drop for SharedTable {
    fn drop(&mut self) {
        // What cannot be removed is where nothing is kept for long.
        let _ = self.0.take().map(std::fs::remove_dir_all);
    }
}

/// Which machine this is, as far as files in memory and in the folder for a while are concerned.
fn host() -> Vec<u8> {
    let mut words = std::fs::read("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    #[cfg(unix)]
    if let Ok(about) = std::fs::metadata(std::env::temp_dir()) {
        use std::os::unix::fs::MetadataExt;
        words.extend([about.dev(), about.ino()].map(u64::to_le_bytes).concat());
    }
    words
}

/// What each of several processes has to say, or the failure of one of them, which is then everybody's.
fn agreed(here: Result<Vec<u8>, Failure>) -> Result<Vec<Vec<u8>>, Failure> {
    const WORKED: u8 = 0;
    const FAILED: u8 = 1;
    let (kind, words) = match &here {
        Ok(words) => (WORKED, words.clone()),
        Err(failure) => (FAILED, failure.to_string().into_bytes()),
    };
    let all = world::gather([vec![kind], words].concat()).map_err(Failure::system)?;
    here?;
    if let Some((rank, words)) = all.iter().enumerate().find(|(_, words)| words[0] == FAILED) {
        let words = String::from_utf8_lossy(&words[1..]);
        return Err(Failure::input(format!(
            "rank {rank}: {}",
            words.strip_prefix("error: ").unwrap_or(&words)
        )));
    }
    Ok(all.into_iter().map(|mut words| words.split_off(1)).collect())
}

/// Standard input as bytes, which can be read twice; no more of them than the memory that is given, or half of what is free.
pub fn kept(source: &Source, memory: Option<u64>) -> Result<Source, Failure> {
    match told(source)? {
        Source::Standard => {
            let (name, mut bytes) = (source.name(), Vec::new());
            let most = memory_limit(memory)?.unwrap_or(u64::MAX - 1);
            let mut some = std::io::Read::take(std::io::stdin(), most + 1);
            std::io::Read::read_to_end(&mut some, &mut bytes)
                .map_err(|error| Failure::system(error).in_file(&name))?;
            if bytes.len() as u64 > most {
                let fault = Fault::Limit { needed: bytes.len() as u64, limit: most };
                return Err(unreadable(ReadError { file: name, line: None, column: None, fault }));
            }
            Ok(Source::Bytes(name, bytes.into()))
        }
        source => Ok(source),
    }
}

/// The standard input is that of the first of several processes.
fn told(source: &Source) -> Result<Source, Failure> {
    match source {
        Source::Standard if world::rank().is_some() => {
            let name = source.name();
            let bytes = world::read_standard().map_err(|error| Failure::system(error).in_file(&name))?;
            Ok(Source::Bytes(name, bytes.into()))
        }
        source => Ok(source.clone()),
    }
}

/// The variable with the bytes that count as free, for machines whose system says something else.
const FREE: &str = "PASTA_FREE_MEMORY";

/// The bytes of memory that are free: what [`FREE`] says, or the system, if one of them does.
fn free_memory() -> Result<Option<u64>, Failure> {
    if let Ok(said) = std::env::var(FREE) {
        let wrong = || Failure::input(format!("{FREE}: expected a number of bytes, got {said:?}"));
        return said.trim().parse().map(Some).map_err(|_| wrong());
    }
    let memory = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let free = memory.lines().find_map(|line| line.strip_prefix("MemAvailable:"));
    let kilobytes = free.and_then(|rest| rest.trim().trim_end_matches("kB").trim().parse::<u64>().ok());
    Ok(kilobytes.map(|kilobytes| kilobytes.saturating_mul(1024)))
}

/// The most memory that a table may take: what was given, or half of what is free, and no more than the system lets this process have.
pub fn memory_limit(given: Option<u64>) -> Result<Option<u64>, Failure> {
    if given.is_some() {
        return Ok(given);
    }
    let half = free_memory()?.map(|free| free / 2);
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let limits = read("/proc/self/limits");
    let soft = |name: &str| {
        let line = limits.lines().find_map(|line| line.strip_prefix(name));
        line.and_then(|rest| rest.split_whitespace().next()?.parse::<u64>().ok())
    };
    let group = read("/sys/fs/cgroup/memory.max").trim().parse::<u64>().ok();
    Ok([half, soft("Max address space"), soft("Max data size"), group].into_iter().flatten().min())
}

/// Refuses a table with more columns than a fit can hold dozens of vectors of.
pub fn check_width(file: &str, encoding: &Encoding, memory: Option<u64>) -> Result<(), Failure> {
    const VECTORS: u64 = 40;
    const MOST: u64 = 1 << 28;
    let width = encoding.width() as u64;
    if width > MOST {
        return Err(
            Failure::input(format!("{width} columns, but at most {MOST} can be fitted")).in_file(file)
        );
    }
    let needed = width * VECTORS * size_of::<f64>() as u64;
    // What every machine has.
    const LITTLE: u64 = 1 << 26;
    match memory_limit(memory)?.filter(|limit| needed > LITTLE.max(*limit)) {
        Some(limit) => {
            let message = format!(
                "a fit of {width} columns takes about {needed} bytes of memory, and the limit is {limit}"
            );
            Err(Failure::system(message).in_file(file).hint("--memory SIZE allows more"))
        }
        None => Ok(()),
    }
}

/// Whether a text has more bytes than this.
fn is_too_large(path: &Path, most: Option<u64>) -> bool {
    let Ok(about) = std::fs::metadata(path) else { return false };
    let mut head = [0; 4];
    let mut is_binary = || {
        let read =
            std::fs::File::open(path).and_then(|mut file| std::io::Read::read_exact(&mut file, &mut head));
        read.is_err() || [&b"\x93NUM"[..], b"PK\x03\x04", b"PAR1", b"\x1f\x8b\x08\x00"].contains(&&head[..])
    };
    about.is_file() && most.is_some_and(|most| about.len() > most) && !is_binary()
}

/// Reads a table as it is.
pub fn load(source: &Source, options: &Options, encoding: Option<&Encoding>) -> Result<Data, Failure> {
    let source = &told(source)?;
    let options = Options { memory: memory_limit(options.memory)?, ..options.clone() };
    let data = followed(|watch| crate::read(source, &options, encoding, watch))?;
    say_filled(&source.name(), data.filled);
    Ok(data)
}

/// Says how many cells were filled in, if any were.
fn say_filled(file: &str, filled: u64) {
    if filled > 0 {
        say(&format!("{file}: {} filled in", counted(filled, "missing cell")));
    }
}

/// Calls `read`, and tells the listener about its progress.
fn followed<T>(read: impl FnOnce(Watch<'_>) -> Result<T, ReadError>) -> Result<T, Failure> {
    follow(read).map_err(unreadable)
}

/// Refuses a file in a folder that is not there: a slip in a path would make folders. To be called before the work.
pub fn check_folder(flag: &str, path: &Path) -> Result<(), Failure> {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() && !folder.is_dir() => {
            let folder = folder.display();
            let failure = Failure::input(format!("{flag}: there is no folder {folder} to write into"));
            Err(failure.hint(format!("mkdir -p {folder} makes it")))
        }
        _ => Ok(()),
    }
}

/// Refuses an output that would write over what is read, or cannot be a file. To be called before the work.
pub fn check_output(output: Option<&Path>, inputs: &[&Path]) -> Result<(), Failure> {
    let Some(path) = output else { return Ok(()) };
    let words = path.display();
    if path.as_os_str() == "-" {
        let failure = Failure::input("--output: - is not a file");
        return Err(failure.hint("/dev/stdout is standard output, and --json prints there too"));
    }
    if path.is_dir() {
        return Err(Failure::input(format!("--output: {words} is a folder")));
    }
    check_folder("--output", path)?;
    let is_same = |input: &&&Path| match (path.canonicalize(), input.canonicalize()) {
        (Ok(path), Ok(input)) => path == input && path.is_file(),
        _ => false,
    };
    match inputs.iter().find(is_same) {
        Some(input) => Err(Failure::input(format!("--output: {words} would write over {}", input.display()))),
        None => Ok(()),
    }
}

/// A fault of a file as a failure with its place.
pub fn unreadable(error: ReadError) -> Failure {
    let column = error.column.map_or(String::new(), |column| format!("column {column}: "));
    let failure = Failure::input(format!("{column}{}", error.fault)).in_file(&error.file);
    let mut failure = error.line.map_or_else(
        || Failure::input(format!("{column}{}", error.fault)).in_file(&error.file),
        |line| failure.at_line(line as usize),
    );
    if matches!(
        error.fault,
        Fault::Limit { .. } | Fault::OutOfMemory(_) | Fault::Damaged(..) | Fault::Cache(..)
    ) {
        failure.exit = Exit::System;
    }
    let near = match &error.fault {
        Fault::NoColumn { name, columns } | Fault::UnknownColumn { name, expected: columns } => {
            crate::nearest(name, columns.iter().map(String::as_str))
        }
        _ => None,
    };
    match (near, error.fault.hint()) {
        (Some(near), _) => failure.hint(format!("did you mean {near}?")),
        (None, Some(hint)) => failure.hint(hint),
        (None, None) => failure,
    }
}

/// Columns whose numbers became categories because of words beside them, a line for each: only the user knows whether they are.
pub fn mixed_columns(encoding: &Encoding) -> Vec<String> {
    let Encoding::Cells { columns, .. } = encoding else { return Vec::new() };
    let line = |code: &Code| {
        let categories = code.categories.as_ref()?;
        let numbers = categories.iter().filter(|category| category.parse::<f64>().is_ok()).count();
        let words = categories.len() - numbers;
        let mixed = numbers > 0 && words > 0;
        mixed.then(|| {
            let [words, numbers] =
                [(words, "word"), (numbers, "number")].map(|(n, what)| counted(n as u64, what));
            format!("note: column {:?} has {words} and {numbers}, and each of them is a category", code.name)
        })
    };
    columns.iter().filter_map(line).collect()
}

/// Columns whose numbers look like codes, a line for each.
pub fn coded_columns(data: &Data) -> Vec<String> {
    let line = |(column, text): &(String, String)| {
        let number = text.parse::<f64>().unwrap_or(f64::NAN);
        let name = if column.contains([' ', ',']) { format!("{column:?}") } else { column.clone() };
        format!(
            "column {column:?} holds {text:?}, read as the number {number}; if these are codes, --categories {name} keeps them apart, --ignore {name} leaves them out"
        )
    };
    data.written_as_codes.iter().map(line).collect()
}

/// Refuses classes of which no row counts: nothing can be learnt about them.
pub fn check_classes(
    file: &str,
    classes: &Classes,
    labels: &[f64],
    weights: Option<&[f64]>,
) -> Result<(), Failure> {
    let mut sums = vec![0.0; classes.0.len()];
    for (row, label) in labels.iter().enumerate() {
        if let Some(sum) = sums.get_mut(*label as usize) {
            *sum += weights.map_or(1.0, |weights| weights[row]);
        }
    }
    match sums.iter().position(|sum| *sum == 0.0) {
        Some(class) => {
            let message = format!(
                "no row of the class {:?} is left to fit, or all have the weight 0",
                classes.0[class]
            );
            Err(Failure::input(message).in_file(file))
        }
        None => Ok(()),
    }
}

/// What is wrong with a table, in the words of its file.
pub fn refused(file: &str, names: &[String], error: &TableError) -> Failure {
    let name = |column: usize| names.get(column).cloned().unwrap_or_else(|| (column + 1).to_string());
    let message = match error {
        TableError::NotFinite { row, column, value } => {
            let column = name(*column);
            format!("row {}, column {column}: expected a finite number, found {value}", row + 1)
        }
        TableError::TooLarge { column } => {
            let name = name(*column);
            format!("column {name}: its values are too large to be squared and added up; scale it down")
        }
        TableError::TooSmall { column } => {
            let name = name(*column);
            format!("column {name}: its values differ by too little to be squared and added up; scale it up")
        }
        TableError::Label { row, value, needs } => {
            format!("row {}: the label {value} does not fit, {needs}", row + 1)
        }
        TableError::Weight { row, value } => {
            format!("row {}: expected a weight of at least 0, found {value}", row + 1)
        }
        other => other.to_string(),
    };
    Failure::input(message).in_file(file)
}

/// Where the names of columns are from, if that may be a surprise: a first line that could be a row, or one that is.
pub fn naming(encoding: &Encoding) -> &'static str {
    match encoding {
        Encoding::Cells { named: false, .. } => ", no header",
        Encoding::Cells { columns, .. } if columns.iter().any(|code| code.name.parse::<f64>().is_ok()) => {
            ", the first line is a header"
        }
        _ => "",
    }
}

/// A table with a loss.
#[derive(Debug)]
pub struct Loaded {
    /// The table, its loss and its design.
    pub linear: Arc<Linear>,
    /// How the columns became numbers.
    pub encoding: Encoding,
    /// The name of the column of labels.
    pub label: String,
    /// The classes that labels stand for.
    pub classes: Classes,
    /// How many rows were left out because something was missing.
    pub dropped: u64,
}

/// Rows with labels that are numbers or numbers of classes.
#[derive(Debug, Clone)]
pub struct Rows {
    /// The columns.
    pub features: Features,
    /// A label for each row.
    pub labels: Vec<f64>,
    /// A weight for each row, if they have any.
    pub weights: Option<Vec<f64>>,
    /// Those that labels and weights have absorbed.
    pub offsets: Option<Vec<f64>>,
}

impl Loaded {
    /// A table with the loss of this name.
    pub fn new(file: &str, data: Data, loss: &str, shaping: &Shaping) -> Result<Self, Failure> {
        // The name and its parameter are checked first: they do not depend on the labels.
        shaping.loss(loss, 2)?;
        let in_file = |failure: Failure| failure.in_file(file);
        let classes = Classes::learn(&data, loss).map_err(in_file)?;
        let loss = shaping.loss(loss, classes.0.len().max(2))?;
        let labels = classes.code(&data).map_err(in_file)?;
        let Data { features, weights, offsets, encoding, label, left_out, .. } = data;
        check_classes(file, &classes, &labels, weights.as_deref())?;
        let dropped = left_out.len() as u64;
        let rows = Rows::new(file, features, labels, weights, offsets, loss)?;
        let linear = rows.linear(file, &encoding, loss, shaping.design)?;
        Ok(Self { linear, encoding, label, classes, dropped })
    }
}

impl Rows {
    /// Rows for a loss, with labels and weights that have absorbed the offsets.
    pub fn new(
        file: &str,
        features: Features,
        mut labels: Vec<f64>,
        mut weights: Option<Vec<f64>>,
        offsets: Option<Vec<f64>>,
        loss: Loss,
    ) -> Result<Self, Failure> {
        if let Some(offsets) = &offsets {
            let absorbed = loss.absorb(offsets, &mut labels, &mut weights);
            absorbed.map_err(|error| refused(file, &[], &error))?;
        }
        Ok(Self { features, labels, weights, offsets })
    }

    /// The rows with a loss and a design. `file` and `encoding` name what is wrong with them.
    pub fn linear(
        self,
        file: &str,
        encoding: &Encoding,
        loss: Loss,
        design: Design,
    ) -> Result<Arc<Linear>, Failure> {
        let names = encoding.names();
        let wrong = |error: TableError| refused(file, &names, &error);
        let weights = self.weights.map(|weights| Arc::new(weights) as _);
        let mut table =
            Table::new(self.features, Arc::new(self.labels), weights, names.clone()).map_err(wrong)?;
        table.offsets = self.offsets.map(|offsets| Arc::new(offsets) as _);
        let linear = Linear::new(Arc::new(table), loss, design).map_err(wrong)?;
        check_products(file, &linear)?;
        Ok(Arc::new(linear))
    }

    /// Puts a share of the rows aside, each by a coin that its own address tosses.
    pub fn split(self, share: f64, seed: u64) -> (Self, Self) {
        // A step that no batch of a run has.
        let address = |row: usize| Address { seed, role: Role::Setup, step: u64::MAX, sample: row as u64 };
        let aside = |row: &usize| address(*row).stream().uniform() < share;
        let (held, kept): (Vec<usize>, Vec<usize>) = (0..self.features.rows()).partition(aside);
        (self.pick(&kept), self.pick(&held))
    }

    /// These rows, in this order.
    #[must_use]
    pub fn pick(&self, rows: &[usize]) -> Self {
        let of = |vector: &[f64]| rows.iter().map(|&row| vector[row]).collect::<Vec<f64>>();
        Self {
            features: picked(&self.features, rows),
            labels: of(&self.labels),
            weights: self.weights.as_deref().map(of),
            offsets: self.offsets.as_deref().map(of),
        }
    }
}

/// Refuses a column that is called as a product of others is: the model has one weight for each name.
pub fn check_products(file: &str, linear: &Linear) -> Result<(), Failure> {
    let degree = linear.design().degree;
    if degree == 1 || !linear.table().names.iter().any(|name| name.contains(['*', '^'])) {
        return Ok(());
    }
    let mut seen = HashSet::new();
    match linear.feature_names().into_iter().find(|name| !seen.insert(name.clone())) {
        Some(twice) => {
            let message = format!(
                "two features would be called {twice:?}: a column, and a product of columns by --degree {degree}"
            );
            Err(Failure::input(message)
                .in_file(file)
                .hint("rename the column, or leave it out with --ignore"))
        }
        None => Ok(()),
    }
}

impl Rows {
    /// The same rows in a table of `columns` columns, in which column k stands at `places[k]` and the others are 0.
    #[must_use]
    pub fn widened(self, places: &[usize], columns: usize) -> Self {
        let features = match self.features {
            Features::Dense(Dense { rows, columns: had, values }) => {
                let values = match values {
                    Values::F64(values) => spread_out((*values).as_ref(), had, places, columns).into(),
                    Values::F32(values) => spread_out((*values).as_ref(), had, places, columns).into(),
                };
                Features::Dense(Dense { rows, columns, values })
            }
            Features::Sparse(Sparse { starts, indices, values, .. }) => {
                let moved: Vec<u32> =
                    (*indices).as_ref().iter().map(|index| places[*index as usize] as u32).collect();
                Features::Sparse(Sparse { columns, starts, indices: Arc::new(moved), values })
            }
        };
        Self { features, ..self }
    }

    /// These rows, then others of the same table.
    #[must_use]
    pub fn join(&self, later: &Self) -> Self {
        let features = match (&self.features, &later.features) {
            (Features::Dense(a), Features::Dense(b)) => Features::Dense(Dense {
                rows: a.rows + b.rows,
                columns: a.columns,
                values: joined(&a.values, &b.values),
            }),
            (Features::Sparse(a), Features::Sparse(b)) => {
                let (starts, more) = ((*a.starts).as_ref(), (*b.starts).as_ref());
                let end = starts.last().copied().unwrap_or(0);
                let starts: Vec<u64> =
                    starts.iter().copied().chain(more.iter().skip(1).map(|s| s + end)).collect();
                let indices = [(*a.indices).as_ref(), (*b.indices).as_ref()].concat();
                Features::Sparse(Sparse {
                    columns: a.columns,
                    starts: Arc::new(starts),
                    indices: Arc::new(indices),
                    values: joined(&a.values, &b.values),
                })
            }
            _ => unreachable!("the blocks of a stream have one layout"),
        };
        Self { features, labels: [&self.labels[..], &later.labels].concat(), weights: None, offsets: None }
    }
}

fn spread_out<T: Copy + Default>(values: &[T], had: usize, places: &[usize], columns: usize) -> Vec<T> {
    let mut wider = vec![T::default(); values.len() / had * columns];
    for (from, to) in values.chunks_exact(had).zip(wider.chunks_exact_mut(columns)) {
        from.iter().zip(places).for_each(|(value, place)| to[*place] = *value);
    }
    wider
}

fn joined(a: &Values, b: &Values) -> Values {
    match (a, b) {
        (Values::F64(a), Values::F64(b)) => [(**a).as_ref(), (**b).as_ref()].concat().into(),
        (Values::F32(a), Values::F32(b)) => [(**a).as_ref(), (**b).as_ref()].concat().into(),
        _ => unreachable!("the blocks of a stream have one precision"),
    }
}

fn picked(features: &Features, rows: &[usize]) -> Features {
    match features {
        Features::Dense(Dense { columns, values, .. }) => {
            let ranges = rows.iter().map(|row| row * columns..(row + 1) * columns);
            Features::Dense(Dense { rows: rows.len(), columns: *columns, values: gathered(values, ranges) })
        }
        Features::Sparse(Sparse { columns, starts, indices, values }) => {
            let (starts, indices) = ((**starts).as_ref(), (**indices).as_ref());
            let ranges = || rows.iter().map(|&row| starts[row] as usize..starts[row + 1] as usize);
            let mut ends = vec![0];
            let mut end = 0;
            ranges().for_each(|range| {
                end += range.len() as u64;
                ends.push(end);
            });
            let indices: Vec<u32> = ranges().flat_map(|range| indices[range].iter().copied()).collect();
            let values = gathered(values, ranges());
            Features::Sparse(Sparse {
                columns: *columns,
                starts: Arc::new(ends),
                indices: Arc::new(indices),
                values,
            })
        }
    }
}

fn gathered(values: &Values, ranges: impl Iterator<Item = std::ops::Range<usize>>) -> Values {
    match values {
        Values::F64(values) => Values::F64(Arc::new(
            ranges.flat_map(|range| (**values).as_ref()[range].iter().copied()).collect::<Vec<f64>>(),
        )),
        Values::F32(values) => Values::F32(Arc::new(
            ranges.flat_map(|range| (**values).as_ref()[range].iter().copied()).collect::<Vec<f32>>(),
        )),
    }
}
