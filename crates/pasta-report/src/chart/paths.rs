//! Lines, marks and bands as paths, thinned to what can be seen.

use super::ruler::Ruler;

/// A point on paper.
pub(super) type Dot = (f64, f64);

pub(super) fn line_path(data: &[(f64, f64)], x: &Ruler, y: &Ruler) -> String {
    let mut path = String::new();
    for piece in pieces(data, |&(a, b)| Some((x.place(a)?, y.place(b)?))) {
        match thinned(&piece, |dot| dot.0, |dot| [dot.1, dot.1])[..] {
            [dot] => path.push_str(&spot(dot)),
            ref dots => push_line(&mut path, 'M', dots),
        }
    }
    path
}

pub(super) fn marks_path(data: &[(f64, f64)], x: &Ruler, y: &Ruler, mark: fn(Dot) -> String) -> String {
    let mut path = String::new();
    let mut taken = std::collections::BTreeSet::new();
    for dot in data.iter().filter_map(|&(a, b)| Some((x.place(a)?, y.place(b)?))) {
        // Two points in one place are one.
        if taken.insert((dot.0.round() as i64, dot.1.round() as i64)) {
            path.push_str(&mark(dot));
        }
    }
    path
}

pub(super) fn band_path(data: &[(f64, f64, f64)], x: &Ruler, y: &Ruler) -> String {
    let mut path = String::new();
    for piece in pieces(data, |&(a, low, high)| Some((x.place(a)?, y.place(low)?, y.place(high)?))) {
        let kept = thinned(&piece, |edge| edge.0, |edge| [edge.1, edge.2]);
        let along: Vec<Dot> = kept.iter().map(|edge| (edge.0, edge.2)).collect();
        let back: Vec<Dot> = kept.iter().rev().map(|edge| (edge.0, edge.1)).collect();
        push_line(&mut path, 'M', &along);
        push_line(&mut path, 'L', &back);
        path.push('Z');
    }
    path
}

pub(super) fn push_line(path: &mut String, first: char, dots: &[Dot]) {
    for (place, &dot) in dots.iter().enumerate() {
        path.push_str(&vertex(if place == 0 { first } else { 'L' }, dot));
    }
}

pub(super) fn vertex(command: char, (a, b): Dot) -> String {
    format!("{command}{} {}", round(a), round(b))
}

/// A line of no length, which round ends make a spot.
pub(super) fn spot(dot: Dot) -> String {
    vertex('M', dot) + "h0"
}

/// Two short lines across each other.
pub(super) fn cross((a, b): Dot) -> String {
    vertex('M', (a - 4.0, b - 4.0)) + "l8 8m-8 0l8-8"
}

/// The runs of data that all have a place.
pub(super) fn pieces<D, P>(data: &[D], place: impl Fn(&D) -> Option<P>) -> Vec<Vec<P>> {
    let mut pieces = vec![Vec::new()];
    for item in data {
        match (place(item), pieces.last_mut()) {
            (Some(placed), Some(piece)) => piece.push(placed),
            _ => pieces.push(Vec::new()),
        }
    }
    pieces.retain(|piece| !piece.is_empty());
    pieces
}

/// At most the first, the last, the lowest and the highest of the items that share a column one unit wide: on
/// paper the drawing is the same.
pub(super) fn thinned<P: Copy>(
    items: &[P],
    across: impl Fn(&P) -> f64,
    up: impl Fn(&P) -> [f64; 2],
) -> Vec<P> {
    let mut kept = Vec::new();
    let (low, high) = (|item: &P| up(item)[0], |item: &P| up(item)[1]);
    for column in items.chunk_by(|a, b| across(a).floor() == across(b).floor()) {
        let best = |key: &dyn Fn(&P) -> f64| {
            (1..column.len()).fold(0, |best, i| if key(&column[i]) > key(&column[best]) { i } else { best })
        };
        let [lowest, lowest_high] = [best(&|item| -low(item)), best(&|item| -high(item))];
        let mut chosen = vec![0, lowest, best(&low), lowest_high, best(&high), column.len() - 1];
        chosen.sort_unstable();
        chosen.dedup();
        kept.extend(chosen.into_iter().map(|i| column[i]));
    }
    kept
}

/// A tenth of a unit is finer than any screen.
pub(super) fn round(coordinate: f64) -> f64 {
    (coordinate * 10.0).round() / 10.0 + 0.0
}
