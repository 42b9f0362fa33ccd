//! One record: cells between delimiters, quoted or not.

use std::borrow::Cow;

use super::layout::Delimiter;
use crate::fault::{Fault, Misfit};

/// Cells of a record.
pub(super) type Cells<'c> = Vec<Cow<'c, [u8]>>;

pub(super) fn is_blank(cells: &Cells<'_>) -> bool {
    matches!(cells.as_slice(), [] | [Cow::Borrowed([])])
}

/// The next record: its cells, its length and its lines.
pub(super) fn record<'c>(
    text: &'c [u8],
    delimiter: Delimiter,
    cells: &mut Cells<'c>,
) -> Result<(usize, u64), Misfit> {
    cells.clear();
    let Delimiter::Byte(delimiter) = delimiter else {
        let end = memchr::memchr(b'\n', text).unwrap_or(text.len());
        let words = text[..end].split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
        cells.extend(words.map(Cow::Borrowed));
        if let Some(k) = cells.iter().position(|cell| cell.contains(&b'"')) {
            return Err(Fault::Quote("a quotation mark in a file with blanks between its columns").at(k));
        }
        return Ok(((end + 1).min(text.len()), 1));
    };
    let (mut at, mut lines) = (0, 1);
    loop {
        while text.get(at) == Some(&b' ') {
            at += 1;
        }
        if text.get(at) == Some(&b'"') {
            let (cell, end) = quoted(text, at + 1).map_err(|fault| fault.at(cells.len()))?;
            lines += memchr::memchr_iter(b'\n', &text[at..end]).count() as u64;
            at = end;
            while matches!(text.get(at), Some(b' ' | b'\r')) {
                at += 1;
            }
            if !matches!(text.get(at), None | Some(b'\n')) && text.get(at) != Some(&delimiter) {
                return Err(Fault::Quote("text behind the quotation mark that ends a cell").at(cells.len()));
            }
            cells.push(cell);
        } else {
            let (end, marked) = plain(text, at, delimiter);
            let cell = text[at..end].trim_ascii_end();
            if marked {
                let fault = Fault::Quote("a quotation mark in a cell that does not begin with one");
                return Err(fault.at(cells.len()));
            }
            cells.push(Cow::Borrowed(cell));
            at = end;
        }
        match text.get(at) {
            Some(byte) if *byte == delimiter => at += 1,
            Some(_) => return Ok((at + 1, lines)),
            None => return Ok((at, lines)),
        }
    }
}

/// Where a cell without quotation marks around it ends, and whether there is such a mark in it.
#[inline]
fn plain(text: &[u8], at: usize, delimiter: u8) -> (usize, bool) {
    // Most cells are numbers: shorter than what a search in whole vectors is made for.
    const SHORT: usize = 32;
    let mut marked = false;
    for (k, byte) in text[at..].iter().take(SHORT).enumerate() {
        if *byte == delimiter || *byte == b'\n' {
            return (at + k, marked);
        }
        marked |= *byte == b'"';
    }
    let end = memchr::memchr2(delimiter, b'\n', &text[at..]).map_or(text.len(), |end| at + end);
    (end, memchr::memchr(b'"', &text[at..end]).is_some())
}

/// A cell behind its first quotation mark, and where it ends.
pub(super) fn quoted(text: &[u8], begin: usize) -> Result<(Cow<'_, [u8]>, usize), Fault> {
    let mut at = begin;
    let mut parts: Option<Vec<u8>> = None;
    loop {
        let mark = memchr::memchr(b'"', &text[at..]).map(|k| at + k);
        let mark = mark.ok_or(Fault::Quote("a quotation mark without its partner"))?;
        if text.get(mark + 1) != Some(&b'"') {
            let cell = match parts {
                None => Cow::Borrowed(&text[begin..mark]),
                Some(mut parts) => {
                    parts.extend_from_slice(&text[at..mark]);
                    Cow::Owned(parts)
                }
            };
            return Ok((cell, mark + 1));
        }
        // Two marks stand for one.
        parts.get_or_insert_default().extend_from_slice(&text[at..=mark]);
        at = mark + 2;
    }
}
