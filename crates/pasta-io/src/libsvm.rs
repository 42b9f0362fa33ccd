//! LIBSVM and SVMlight text: `label index:value index:value ..` on each line, `#` before a comment.

use crate::encoding::Encoding;
use crate::fault::{Fault, Located, Misfit, shown};
use crate::memory::Memory;
use crate::names::Names;
use crate::number::{Number, leading, whole};
use crate::source::{Chunks, Parsed, Watch};
use crate::store::{Rows, Store};
use crate::{Data, Meaning, Options};

pub(crate) fn read<T: Number>(
    chunks: Chunks,
    options: &Options,
    encoding: Option<&Encoding>,
    watch: Watch<'_>,
) -> Result<Data, Located> {
    check_choices(options)?;
    let of_encoding = match encoding.map(Encoding::numbers) {
        Some(None) => {
            let message = "the columns are matched by name, and a LIBSVM file has no names";
            return Err(Fault::Choice(message.into()).into());
        }
        numbers => numbers.flatten(),
    };
    let known = of_encoding.filter(|_| !options.grow).or(options.columns);
    if known == Some(0) {
        return Err(Fault::NoFeatures.into());
    }
    let first = match encoding {
        Some(Encoding::Numbered { first_index, .. }) => *first_index,
        _ => None,
    };
    let base = first.or(options.first_index);
    let limits = Limits {
        least: u64::from(base.unwrap_or(0)),
        most: known.map_or(MOST, |columns| columns as u64 + u64::from(base.unwrap_or(1)) - 1),
    };
    let (mut labels, mut names) = (Vec::new(), Names::default());
    let mut store = Store::<T>::Empty;
    let (mut least, mut most, mut bytes) = (None::<u32>, None::<u32>, 0);
    let memory = Memory(options.memory);
    chunks.parse(
        watch,
        |chunk| parse::<T>(chunk, limits, options.meaning),
        |mut rows, lines| {
            names.join(&rows.names, lines, &mut rows.labels);
            memory.grow(&mut labels, rows.labels.len())?;
            labels.extend_from_slice(&rows.labels);
            bytes += rows.bytes as u64;
            least = least.into_iter().chain(rows.least).min();
            most = most.into_iter().chain(rows.most).max();
            Ok(store.take(rows, options.storage, known, base, memory)?)
        },
    )?;
    if labels.is_empty() {
        return Err(Fault::Empty.into());
    }
    if encoding.is_none() {
        names.check()?;
    }
    let base = base.unwrap_or_else(|| least.map_or(1, |least| least.min(1)));
    let appear = most.map(|most| (most - base) as usize + 1).max(of_encoding);
    let columns = known.or(appear).ok_or(Fault::NoFeatures)?;
    let widest = known.is_none().then(|| WIDE.max(bytes).max(of_encoding.unwrap_or(0) as u64));
    check_width(most, u64::from(base), columns as u64, widest, bytes)?;
    let features = store.finish(columns, base, options.storage, memory)?;
    let encoding = match encoding {
        Some(encoding) if of_encoding == Some(columns) => encoding.clone(),
        _ => Encoding::Numbered { columns, first_index: Some(base) },
    };
    labels.shrink_to_fit();
    let classes = names.settle(&mut labels);
    Ok(Data {
        features,
        labels: Some(labels),
        weights: None,
        offsets: None,
        encoding,
        label: String::new(),
        classes,
        left_out: Vec::new(),
        filled: 0,
        missing: Vec::new(),
        unseen: Vec::new(),
        written_as_codes: Vec::new(),
        mapped: false,
    })
}

/// Refuses an index beyond the columns. Where they are not known, what follows takes memory for each: a slip in one index would take all there is.
fn check_width(
    most: Option<u32>,
    base: u64,
    columns: u64,
    widest: Option<u64>,
    bytes: u64,
) -> Result<(), Located> {
    let Some(index) = most.map(u64::from) else { return Ok(()) };
    if widest.is_some_and(|widest| columns > widest) {
        return Err(Fault::Width { index, bytes }.into());
    }
    if index >= base + columns {
        return Err(Fault::Beyond { index, most: base + columns - 1 }.into());
    }
    Ok(())
}

/// Refuses what is asked of columns that a LIBSVM file does not have.
fn check_choices(options: &Options) -> Result<(), Located> {
    let other = [
        (
            matches!(options.label, crate::Label::Column(_)),
            "a LIBSVM file has its labels first in each line, not in a column",
        ),
        (options.weight.is_some(), "a LIBSVM file has no column of weights"),
        (options.offset.is_some(), "a LIBSVM file has no column of offsets"),
        (!options.interact.is_empty(), "interactions are for columns of CSV files"),
        (!options.ignore.is_empty(), "columns of a LIBSVM file cannot be ignored"),
        (!options.categories.is_empty(), "columns of a LIBSVM file hold numbers, not categories"),
    ];
    if let Some((_, message)) = other.iter().find(|(is_asked, _)| *is_asked) {
        return Err(Fault::Choice((*message).into()).into());
    }
    Ok(())
}

/// A file may be this wide whatever its size.
const WIDE: u64 = 1 << 20;

/// The largest index of any file: columns are counted with 32 bits.
const MOST: u64 = u32::MAX as u64 - 1;

/// Which indices there may be.
#[derive(Debug, Clone, Copy)]
struct Limits {
    least: u64,
    most: u64,
}

fn parse<T: Number>(chunk: &[u8], limits: Limits, meaning: Meaning) -> Parsed<Rows<T>> {
    let mut rows = Rows { bytes: chunk.len(), ..Rows::default() };
    let mut lines = 0;
    let mut rest = chunk;
    while !rest.is_empty() {
        let end = memchr::memchr(b'\n', rest).unwrap_or(rest.len());
        lines += 1;
        rows.lines = lines;
        if let Err(misfit) = line(&rest[..end], limits, meaning, &mut rows) {
            return Parsed { lines, result: Err((lines, misfit)) };
        }
        rest = &rest[(end + 1).min(rest.len())..];
    }
    Parsed { lines, result: Ok(rows) }
}

/// Reads a line; one without a label is a comment, or blank.
#[inline]
fn line<T: Number>(line: &[u8], limits: Limits, meaning: Meaning, rows: &mut Rows<T>) -> Result<(), Misfit> {
    let mut at = blanks(line, 0);
    if at == line.len() || line[at] == b'#' {
        return Ok(());
    }
    let (mut label, length) = number::<f64>(line, at, "a label, which is a number")?;
    if meaning == Meaning::Classes {
        label = rows.names.mark(&String::from_utf8_lossy(&line[at..at + length]), rows.lines);
    }
    at += length;
    let begin = rows.indices.len();
    let mut before = None;
    loop {
        at = blanks(line, at);
        if at == line.len() || line[at] == b'#' {
            break;
        }
        let (index, digits) = index(line, at)?;
        if before.is_some_and(|before| index <= before) || !(limits.least..=limits.most).contains(&index) {
            return Err(misplaced(index, before, limits).at(at));
        }
        before = Some(index);
        at += digits + 1;
        let (value, length) = number::<T>(line, at, "a value, which is a number")?;
        at += length;
        // Zeros need no room.
        if value != T::default() {
            rows.indices.push(index as u32);
            rows.values.push(value);
        }
        let index = index as u32;
        rows.least = Some(rows.least.map_or(index, |least| least.min(index)));
    }
    rows.most = rows.most.max(before.map(|index| index as u32));
    rows.labels.push(label);
    rows.counts.push((rows.indices.len() - begin) as u32);
    Ok(())
}

#[inline]
fn blanks(line: &[u8], mut at: usize) -> usize {
    while matches!(line.get(at), Some(b' ' | b'\t' | b'\r')) {
        at += 1;
    }
    at
}

/// A number that ends where a word ends, and its length.
#[inline]
fn number<T: Number>(line: &[u8], at: usize, expected: &'static str) -> Result<(T, usize), Misfit> {
    if let Some((value, length)) = leading(&line[at..])
        && matches!(line.get(at + length), None | Some(b' ' | b'\t' | b'\r' | b'#'))
    {
        let kept = T::of(value);
        if kept.wide().is_finite() {
            return Ok((kept, length));
        }
    }
    Err(no_number::<T>(line, at, expected))
}

#[cold]
fn no_number<T: Number>(line: &[u8], at: usize, expected: &'static str) -> Misfit {
    let word = word(line, at);
    let found = match shown(word) {
        Ok(found) => found,
        Err(fault) => return fault.at(at),
    };
    let fault = match whole(word) {
        Some(_) if word.iter().any(u8::is_ascii_digit) => Fault::TooLarge { found, kept: T::NAME },
        Some(_) => Fault::NotFinite(found),
        None => Fault::Expected { expected, found },
    };
    fault.at(at)
}

/// The word that begins there.
fn word(line: &[u8], at: usize) -> &[u8] {
    let rest = &line[at.min(line.len())..];
    let end = rest.iter().position(|byte| matches!(byte, b' ' | b'\t' | b'\r')).unwrap_or(rest.len());
    &rest[..end]
}

/// An index before a colon, and its digits.
#[inline]
fn index(line: &[u8], at: usize) -> Result<(u64, usize), Misfit> {
    let (mut index, mut digits) = (0_u64, 0);
    while let Some(byte) = line.get(at + digits).filter(|byte| byte.is_ascii_digit()) {
        index = index.saturating_mul(10).saturating_add(u64::from(byte - b'0'));
        digits += 1;
    }
    if digits > 0 && line.get(at + digits) == Some(&b':') {
        return Ok((index, digits));
    }
    Err(no_index(line, at))
}

#[cold]
fn no_index(line: &[u8], at: usize) -> Misfit {
    let word = word(line, at);
    if word.starts_with(b"qid:") {
        return Fault::Query.at(at);
    }
    match shown(word) {
        Ok(found) => Fault::Expected { expected: "index:value", found }.at(at),
        Err(fault) => fault.at(at),
    }
}

#[cold]
fn misplaced(index: u64, before: Option<u64>, limits: Limits) -> Fault {
    match before {
        _ if index < limits.least => Fault::ZeroIndex,
        _ if index > limits.most => Fault::Beyond { index, most: limits.most },
        Some(before) if before == index => Fault::Duplicate(index),
        Some(before) => Fault::Order { before, index },
        None => Fault::Beyond { index, most: limits.most },
    }
}

/// Whether text looks like this: behind the first word of the first line with more than one come pairs.
pub(crate) fn looks_so(text: &[u8]) -> bool {
    let lines = text.split(|byte| *byte == b'\n').take(100);
    let first = lines
        .map(|line| line.split(|byte| *byte == b'#').next().unwrap_or(line))
        .find(|line| !line.iter().all(u8::is_ascii_whitespace));
    let Some(first) = first else { return false };
    let mut words = first.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
    let label = words.next().and_then(whole);
    let pair = |word: &[u8]| {
        let colon = word.iter().position(|byte| *byte == b':');
        colon.is_some_and(|at| at > 0 && (word[..at].iter().all(u8::is_ascii_digit) || &word[..at] == b"qid"))
    };
    let mut pairs = words.map(pair).peekable();
    label.is_some() && pairs.peek().is_some() && pairs.all(|is| is)
}
