//! A text read block by block, for what must not hold all of it.

use crate::fault::{Fault, Located};
use crate::names::Names;
use crate::source::Chunks;
use crate::{
    Data, Encoding, Format, Meaning, Options, ReadError, Source, Storage, Watch, binary, csv, kind_of_text,
    parse,
};
use pasta_opt::table::Features;

/// A text whose rows come in blocks. What the first block shows holds for all: its columns, their words, what
/// stands for missing values, and whether rows are dense. With [`Options::grow`] later blocks may add words, and columns of LIBSVM.
///
/// ```
/// use std::sync::Arc;
/// use pasta_io::{Blocks, Options, Source};
///
/// let text = "y,a\n1,2\n3,4\n".to_owned() + &"5,6\n".repeat(400_000);
/// let source = Source::Bytes("rows".into(), Arc::from(text.as_bytes()));
/// let mut blocks = Blocks::open(&source, &Options::default(), 1 << 18)?;
/// let (mut rows, mut count) = (0, 0);
/// while let Some(data) = blocks.next_block(&|_, _| {})? {
///     (rows, count) = (rows + data.features.rows(), count + 1);
/// }
/// assert!(rows == 400_002 && count > 1);
/// # Ok::<(), pasta_io::ReadError>(())
/// ```
pub struct Blocks {
    name: String,
    chunks: Chunks,
    format: Format,
    options: Options,
    encoding: Option<Encoding>,
    /// The classes of the blocks so far.
    names: Names,
    /// The header, which each block is given again.
    header: Vec<u8>,
    header_lines: u64,
    lines: u64,
    bytes: usize,
}

impl std::fmt::Debug for Blocks {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "blocks of {} bytes of {}", self.bytes, self.name)
    }
}

impl Blocks {
    /// Opens a text, to be read in blocks of about so many bytes (those of its lines, unpacked).
    pub fn open(source: &Source, options: &Options, bytes: usize) -> Result<Self, ReadError> {
        let open = || -> Result<Self, Located> {
            let opened = source.open()?;
            if opened.head.is_empty() {
                return Err(Fault::Empty.into());
            }
            if binary(&opened).is_some() || opened.head.starts_with(b"PAR1") {
                let message = "only text (LIBSVM or CSV, also compressed) can be read in blocks";
                return Err(Fault::Choice(message.into()).into());
            }
            let mut chunks = Chunks::of(opened.unpacked());
            let format = kind_of_text(source, &mut chunks, options.format)?;
            let mut options = options.clone();
            let (length, lines) = match format {
                Format::Csv => csv::header(&mut chunks, &options)?,
                _ => (0, 0),
            };
            if format == Format::Csv {
                options.header = Some(length > 0);
            }
            let header = chunks.peek()?[..length].to_vec();
            chunks.consume(length, lines);
            let name = source.name();
            Ok(Self {
                name,
                chunks,
                format,
                options,
                encoding: None,
                names: Names::default(),
                header,
                header_lines: lines,
                lines,
                bytes,
            })
        };
        open().map_err(|located| located.in_file(&source.name()))
    }

    /// The kind of the text.
    pub fn format(&self) -> Format {
        self.format
    }

    /// The next block; `None` at the end.
    pub fn next_block(&mut self, watch: Watch<'_>) -> Result<Option<Data>, ReadError> {
        loop {
            // Room for a last chunk that is a little longer, so that no vector is copied to a larger one.
            let mut text = Vec::with_capacity(self.header.len() + self.bytes + self.bytes / 8 + (1 << 19));
            text.extend_from_slice(&self.header);
            let lines = self.chunks.gather(self.bytes, &mut text);
            let lines = lines.map_err(|fault| Located::from(fault).in_file(&self.name))?;
            let (read, size) = self.chunks.progress();
            watch(read, size);
            if lines == 0 {
                return Ok(None);
            }
            let chunks = Chunks::of_text(text, self.lines - self.header_lines);
            self.lines += lines;
            match parse(self.format, chunks, &self.options, self.encoding.as_ref(), &|_, _| {}) {
                Ok(data) => {
                    self.add_names(&data).map_err(|located| located.in_file(&self.name))?;
                    if self.encoding.is_none() {
                        self.options.storage = match data.features {
                            Features::Dense(_) => Storage::Dense,
                            Features::Sparse(_) => Storage::Sparse,
                        };
                    }
                    if self.encoding.is_none() || self.options.grow {
                        self.encoding = Some(data.encoding.clone());
                    }
                    return Ok(Some(data));
                }
                // Blank lines and comments.
                Err(Located { fault: Fault::Empty, .. }) => {}
                Err(located) => return Err(located.in_file(&self.name)),
            }
        }
    }

    /// Adds the classes of a block to those before it; two that are the same number are refused, wherever they stand.
    fn add_names(&mut self, data: &Data) -> Result<(), Located> {
        if self.options.meaning == Meaning::Numbers {
            return Ok(());
        }
        let before = self.names.len();
        for class in &data.classes {
            self.names.number(class, 0);
        }
        if self.names.len() > before { self.names.check() } else { Ok(()) }
    }

    /// Reads later blocks with other settings, and without what earlier ones showed.
    pub(crate) fn settle(&mut self, options: Options) {
        self.options = Options { header: self.options.header, ..options };
        self.encoding = None;
    }
}
