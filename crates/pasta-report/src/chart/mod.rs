//! Line charts in SVG.
//!
//! Not a plotting crate: none that we know leaves its colours to the page's style sheet, which light, dark and
//! printed pages need, in so few lines.

mod paths;
mod ruler;

use minijinja::{Value, context};

use paths::{Dot, band_path, cross, line_path, marks_path, round, spot};
use ruler::Ruler;

/// A chart before it is drawn.
#[derive(Debug, Clone)]
pub struct Chart {
    /// Its name on the page: letters and hyphens, used once.
    pub id: &'static str,
    /// Its headline.
    pub title: String,
    /// What to see in it.
    pub caption: String,
    /// The horizontal axis.
    pub x: Axis,
    /// The vertical axis.
    pub y: Axis,
    /// Drawn in this order, the last on top. Those of one name share one entry of the legend.
    pub series: Vec<Series>,
    /// Straight lines across it.
    pub references: Vec<Reference>,
}

/// An axis.
#[derive(Debug, Clone)]
pub struct Axis {
    /// What is measured along it.
    pub label: String,
    /// How values lie along it.
    pub scale: Scale,
    /// What it shows; `None` is all there is. Drawings that leave the range are cut off at its edge.
    pub range: Option<(f64, f64)>,
}

impl Axis {
    /// All there is, evenly.
    pub fn linear(label: impl Into<String>) -> Self {
        Self { label: label.into(), scale: Scale::Linear, range: None }
    }

    /// All there is, on a logarithmic scale.
    pub fn log(label: impl Into<String>) -> Self {
        Self { label: label.into(), scale: Scale::Log, range: None }
    }

    /// Only this range.
    #[must_use]
    pub fn within(self, low: f64, high: f64) -> Self {
        Self { range: Some((low, high)), ..self }
    }
}

/// How values lie along an axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scale {
    /// Evenly.
    Linear,
    /// Base 10. Values that are not positive have no place on it.
    Log,
}

/// Data under one name.
#[derive(Debug, Clone)]
pub struct Series {
    /// Its entry in the legend.
    pub name: String,
    /// Its colour and dashes.
    pub tone: Tone,
    /// Its data, and how they are drawn.
    pub shape: Shape,
}

/// Data and how it is drawn. A value without a place on its axis (not finite, or not positive on a logarithmic
/// one) is left out, and a line or band is broken there.
#[derive(Debug, Clone)]
pub enum Shape {
    /// (x, y), joined.
    Line(Vec<(f64, f64)>),
    /// (x, y), each on its own.
    Points(Vec<(f64, f64)>),
    /// (x, y), each on its own, told from points without their colour.
    Crosses(Vec<(f64, f64)>),
    /// (x, low, high), filled between.
    Band(Vec<(f64, f64, f64)>),
}

/// A colour with a dash pattern of its own, so that a series is known without its colour. See `chart.css`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tone {
    /// Blue, solid.
    Blue,
    /// Red, dashed.
    Red,
    /// Green, dotted.
    Green,
    /// Pink, dashes and dots.
    Pink,
    /// Grey, short dashes.
    Grey,
}

/// A straight line across the chart, labelled.
#[derive(Debug, Clone)]
pub struct Reference {
    /// What it means.
    pub label: String,
    /// Where it crosses.
    pub at: Where,
}

impl Reference {
    /// A vertical line at this x.
    pub fn x(label: impl Into<String>, at: f64) -> Self {
        Self { label: label.into(), at: Where::X(at) }
    }

    /// A horizontal line at this y.
    pub fn y(label: impl Into<String>, at: f64) -> Self {
        Self { label: label.into(), at: Where::Y(at) }
    }
}

/// Where a reference line crosses.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Where {
    /// A vertical line at this x.
    X(f64),
    /// A horizontal line at this y.
    Y(f64),
}

impl Where {
    fn x(self) -> Option<f64> {
        if let Self::X(x) = self { Some(x) } else { None }
    }

    fn y(self) -> Option<f64> {
        if let Self::Y(y) = self { Some(y) } else { None }
    }
}

const WIDTH: f64 = 720.0;
const HEIGHT: f64 = 430.0;
const TOP: f64 = 36.0;
const RIGHT: f64 = WIDTH - 28.0;
const BOTTOM: f64 = HEIGHT - 66.0;
/// The width of a letter at the size that small screens use.
const LETTER: f64 = 13.0;
/// No coordinate is farther out: a value of 1e300 is cut off anyway, and need not be spelt out.
const FAR: f64 = 1e4;

impl Tone {
    fn class(self) -> &'static str {
        match self {
            Self::Blue => "tone-blue",
            Self::Red => "tone-red",
            Self::Green => "tone-green",
            Self::Pink => "tone-pink",
            Self::Grey => "tone-grey",
        }
    }
}

impl Chart {
    /// What the template needs: every place computed, every text as it was given.
    pub(crate) fn value(&self) -> Value {
        let data: Vec<(f64, f64)> = self.series.iter().flat_map(|series| series.shape.corners()).collect();
        let lines =
            |along: fn(Where) -> Option<f64>| self.references.iter().filter_map(move |line| along(line.at));
        let ups = data.iter().map(|p| p.1).chain(lines(Where::y));
        let y = Ruler::new(&self.y, self.y.scale.extent(ups), BOTTOM, TOP);
        let y_ticks = y.ticks();
        let longest = y_ticks.iter().map(|tick| tick.label.chars().count()).max().unwrap_or(0);
        let left = LETTER.mul_add(longest as f64, 14.0).round();
        let acrosses = data.iter().map(|p| p.0).chain(lines(Where::x));
        let x = Ruler::new(&self.x, self.x.scale.extent(acrosses), left, RIGHT);
        let dots: Vec<Dot> = data.iter().filter_map(|&(a, b)| Some((x.place(a)?, y.place(b)?))).collect();
        context! {
            id => self.id,
            title => self.title.as_str(),
            caption => self.caption.as_str(),
            description => self.description(),
            width => WIDTH, height => HEIGHT, left => left, right => RIGHT, top => TOP, bottom => BOTTOM,
            x => context! { label => self.x.label.as_str(), ticks => marks(&x.ticks(), |tick| tick.mark(&x)) },
            y => context! { label => self.y.label.as_str(), ticks => marks(&y_ticks, |tick| tick.mark(&y)) },
            marks => marks(&self.series, |series| series.mark(&x, &y)),
            references => marks(&self.references, |line| line.mark(&x, &y, &dots)),
            legend => self.legend(),
        }
    }

    /// The chart in a sentence, for those who do not see it.
    fn description(&self) -> String {
        let series = self.series.iter().map(|series| series.name.as_str());
        let lines = self.references.iter().map(|line| line.label.as_str());
        let names = distinct(series.chain(lines), |name| name);
        format!("{} against {}: {}.", self.y.label, self.x.label, names.join("; "))
    }

    fn legend(&self) -> Vec<Value> {
        marks(&distinct(&self.series, |series| &series.name), |Series { name, tone, shape }| {
            Some(context! { name, tone => tone.class(), kind => shape.kind() })
        })
    }
}

/// The first of each name.
fn distinct<'n, T: Copy>(items: impl IntoIterator<Item = T>, name: impl Fn(T) -> &'n str) -> Vec<T> {
    let mut kept: Vec<T> = Vec::new();
    for item in items {
        if !kept.iter().any(|&earlier| name(earlier) == name(item)) {
            kept.push(item);
        }
    }
    kept
}

/// What the template needs of each item that has a place.
fn marks<T>(items: &[T], mark: impl Fn(&T) -> Option<Value>) -> Vec<Value> {
    items.iter().filter_map(mark).collect()
}

impl Shape {
    fn kind(&self) -> &'static str {
        match self {
            Self::Line(_) => "line",
            Self::Points(_) => "points",
            Self::Crosses(_) => "crosses",
            Self::Band(_) => "band",
        }
    }

    /// All points of it, both edges of a band.
    fn corners(&self) -> Vec<(f64, f64)> {
        match self {
            Self::Line(data) | Self::Points(data) | Self::Crosses(data) => data.clone(),
            Self::Band(data) => data.iter().flat_map(|&(x, low, high)| [(x, low), (x, high)]).collect(),
        }
    }
}

impl Series {
    /// Data under a name.
    pub fn new(name: impl Into<String>, tone: Tone, shape: Shape) -> Self {
        Self { name: name.into(), tone, shape }
    }

    fn mark(&self, x: &Ruler, y: &Ruler) -> Option<Value> {
        let path = match &self.shape {
            Shape::Line(data) => line_path(data, x, y),
            Shape::Points(data) => marks_path(data, x, y, spot),
            Shape::Crosses(data) => marks_path(data, x, y, cross),
            Shape::Band(data) => band_path(data, x, y),
        };
        (!path.is_empty()).then(|| context! { kind => self.shape.kind(), tone => self.tone.class(), path })
    }
}

impl Reference {
    fn mark(&self, x: &Ruler, y: &Ruler, dots: &[Dot]) -> Option<Value> {
        let width = LETTER * self.label.chars().count() as f64;
        let crowd = |across: (f64, f64), up: (f64, f64)| {
            let inside = |dot: &&Dot| (across.0..across.1).contains(&dot.0) && (up.0..up.1).contains(&dot.1);
            dots.iter().filter(inside).count()
        };
        // The label stands where it covers less: at either end of a horizontal line, on either side of a
        // vertical one.
        let (kind, at, before, after) = match self.at {
            Where::X(value) => {
                let at = x.place_within(value)?;
                let up = (y.to, y.to + 2.0 * LETTER);
                ("vertical", at, crowd((at - width, at), up), crowd((at, at + width), up))
            }
            Where::Y(value) => {
                let at = y.place_within(value)?;
                let up = (at - 2.0 * LETTER, at + 1.0);
                ("horizontal", at, crowd((x.to - width, x.to), up), crowd((x.from, x.from + width), up))
            }
        };
        let fits = kind == "horizontal" || at + width < x.to;
        let anchor = if before <= after || !fits { "end" } else { "start" };
        Some(context! { kind => kind, at => round(at), label => self.label.as_str(), anchor => anchor })
    }
}

#[cfg(test)]
mod tests {
    use super::paths::thinned;
    use super::ruler::{Tick, linear_ticks, log_ticks};
    use super::*;

    const LINEAR: Ruler = Ruler { scale: Scale::Linear, low: 0.0, high: 100.0, from: 0.0, to: 100.0 };
    const LOG: Ruler = Ruler { scale: Scale::Log, low: 0.0, high: 2.0, from: 0.0, to: 100.0 };

    fn labels(ticks: &[Tick]) -> Vec<&str> {
        ticks.iter().map(|tick| tick.label.as_str()).collect()
    }

    fn axis(scale: Scale) -> Axis {
        Axis { label: String::new(), scale, range: None }
    }

    #[test]
    fn linear_ticks_are_round_and_inside() {
        assert_eq!(labels(&linear_ticks(0.0, 1.0)), ["0", "0.2", "0.4", "0.6", "0.8", "1.0"]);
        assert_eq!(
            labels(&linear_ticks(-30.0, 6900.0)),
            ["0", "1,000", "2,000", "3,000", "4,000", "5,000", "6,000"]
        );
        assert_eq!(labels(&linear_ticks(0.0, 3e7)), ["0", "5e6", "10e6", "15e6", "20e6", "25e6", "30e6"]);
    }

    #[test]
    fn ticks_of_any_range_are_few_and_inside() {
        for exponent in -300..300 {
            for mantissa in [1.0, 1.7, 2.5, 9.99] {
                let high = mantissa * 10f64.powi(exponent);
                let ticks = linear_ticks(-high / 3.0, high);
                assert!((3..=9).contains(&ticks.len()), "{high}: {ticks:?}");
                assert!(ticks.iter().all(|t| t.value >= -high / 3.0 && t.value <= high), "{high}: {ticks:?}");
            }
        }
        for width in 1..600 {
            let (low, high) = (-300.0, -300.0 + f64::from(width));
            let ticks = log_ticks(low, high);
            assert!((2..=9).contains(&ticks.len()), "{width}: {ticks:?}");
        }
        assert_eq!(linear_ticks(1.0, 1.0), []);
    }

    #[test]
    fn log_ticks_are_decades_and_finer_where_the_axis_is_short() {
        assert_eq!(labels(&log_ticks(-2.5, 1.2)), ["0.01", "0.1", "1", "10"]);
        assert_eq!(labels(&log_ticks(0.0, 6.0)), ["10^0", "10^1", "10^2", "10^3", "10^4", "10^5", "10^6"]);
        assert_eq!(labels(&log_ticks(-0.1, 1.1)), ["1", "2", "5", "10"]);
        assert_eq!(labels(&log_ticks(0.1, 0.4)), ["1.4", "1.6", "1.8", "2.0", "2.2", "2.4"]);
    }

    #[test]
    fn what_is_not_positive_has_no_place_on_a_log_axis_and_breaks_the_line() {
        let data = [(0.0, 1.0), (1.0, 10.0), (2.0, 0.0), (3.0, -1.0), (4.0, f64::NAN), (5.0, 100.0)];
        assert_eq!(line_path(&data, &LINEAR, &LOG), "M0 0L1 50M5 100h0");
        assert_eq!(Scale::Log.extent(data.iter().map(|p| p.1)), Some((1.0, 100.0)));
    }

    #[test]
    fn thinning_keeps_the_ends_and_the_extremes() {
        // 100,000 points, one spike up and one down.
        let mut data: Vec<(f64, f64)> =
            (0..100_000).map(|i| (f64::from(i) / 1000.0, 50.0 + f64::from(i % 7))).collect();
        data[31_415].1 = 99.0;
        data[92_653].1 = 1.0;
        let kept = thinned(&data, |p| p.0, |p| [p.1, p.1]);
        assert!(kept.len() <= 400, "{}", kept.len());
        for essential in [data[0], data[31_415], data[92_653], data[99_999]] {
            assert!(kept.contains(&essential), "{essential:?}");
        }
        assert!(kept.is_sorted_by(|a, b| a.0 <= b.0));
    }

    #[test]
    fn a_thinned_band_keeps_its_widest_place() {
        let mut band: Vec<(f64, f64, f64)> = (0..1000).map(|i| (f64::from(i) / 1e4, 4.0, 6.0)).collect();
        band[500] = (0.05, 3.0, 9.0);
        let kept = thinned(&band, |edge| edge.0, |edge| [edge.1, edge.2]);
        assert!(kept.contains(&band[500]) && kept.len() <= 6);
    }

    #[test]
    fn points_in_one_place_are_drawn_once() {
        let data = vec![(10.0, 10.0); 1000];
        assert_eq!(marks_path(&data, &LINEAR, &LINEAR, spot), "M10 10h0");
    }

    #[test]
    fn a_band_is_closed() {
        let data = [(0.0, 1.0, 2.0), (10.0, 3.0, 4.0)];
        assert_eq!(band_path(&data, &LINEAR, &LINEAR), "M0 2L10 4L10 3L0 1Z");
    }

    #[test]
    fn far_values_do_not_spell_out_three_hundred_digits() {
        assert!(line_path(&[(0.0, 0.0), (1.0, 1e300)], &LINEAR, &LINEAR).len() < 30);
    }

    #[test]
    fn a_reference_off_the_axis_is_not_drawn() {
        let off = Reference { label: "far".into(), at: Where::Y(101.0) };
        assert!(off.mark(&LINEAR, &LINEAR, &[]).is_none());
        let on = Reference { label: "near".into(), at: Where::X(100.0) };
        assert!(on.mark(&LINEAR, &LINEAR, &[]).is_some());
    }

    #[test]
    fn an_impossible_range_is_replaced_by_the_datas() {
        let asked = Axis { range: Some((-1.0, 10.0)), ..axis(Scale::Log) };
        let ruler = Ruler::new(&asked, Some((1.0, 100.0)), 0.0, 1.0);
        assert!(ruler.low < 0.0 && ruler.low > -0.1 && ruler.high > 2.0 && ruler.high < 2.1);
        assert_eq!(Ruler::new(&axis(Scale::Log), None, 0.0, 1.0).high, 1.0);
    }
}
