//! Where values stand on an axis, and its ticks.

use minijinja::{Value, context};

use super::paths::round;
use super::{Axis, FAR, Scale};
use crate::number::{fixed, significant};

/// Where the values of an axis are on paper.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ruler {
    pub(super) scale: Scale,
    /// The ends of the axis, in units of the scale.
    pub(super) low: f64,
    pub(super) high: f64,
    /// The ends of the axis, on paper.
    pub(super) from: f64,
    pub(super) to: f64,
}

impl Scale {
    /// The value in units in which the axis is even, if it has a place there.
    pub(super) fn unit(self, value: f64) -> Option<f64> {
        match self {
            Self::Linear => value.is_finite().then_some(value),
            Self::Log => (value > 0.0 && value.is_finite()).then(|| value.log10()),
        }
    }

    /// The smallest and the largest of the values that have a place.
    pub(super) fn extent(self, values: impl Iterator<Item = f64>) -> Option<(f64, f64)> {
        values.filter(|&value| self.unit(value).is_some()).fold(None, |extent, value| {
            let (low, high) = extent.unwrap_or((value, value));
            Some((value.min(low), value.max(high)))
        })
    }
}

impl Tick {
    pub(super) fn mark(&self, ruler: &Ruler) -> Option<Value> {
        Some(context! { at => round(ruler.place(self.value)?), label => self.label.as_str() })
    }
}

impl Ruler {
    pub(super) fn new(axis: &Axis, extent: Option<(f64, f64)>, from: f64, to: f64) -> Self {
        let scale = axis.scale;
        let units = |(low, high)| Some((scale.unit(low)?, scale.unit(high)?));
        let asked = axis.range.and_then(units).filter(|(low, high)| low < high);
        let (low, high) = asked.or_else(|| extent.and_then(units).map(with_room)).unwrap_or((0.0, 1.0));
        Self { scale, low, high, from, to }
    }

    pub(super) fn place(&self, value: f64) -> Option<f64> {
        let part = (self.scale.unit(value)? - self.low) / (self.high - self.low);
        let place = (self.to - self.from).mul_add(part, self.from);
        place.is_finite().then(|| place.clamp(-FAR, FAR))
    }

    /// The place of a value that is on the axis.
    pub(super) fn place_within(&self, value: f64) -> Option<f64> {
        let (low, high) = (self.from.min(self.to), self.from.max(self.to));
        self.place(value).filter(|place| (low..=high).contains(place))
    }

    pub(super) fn ticks(&self) -> Vec<Tick> {
        match self.scale {
            Scale::Linear => linear_ticks(self.low, self.high),
            Scale::Log => log_ticks(self.low, self.high),
        }
    }
}

/// A little air at both ends; a single value gets an axis around it.
pub(super) fn with_room((low, high): (f64, f64)) -> (f64, f64) {
    let room = if high > low { 0.03 * (high - low) } else { 0.5f64.max(0.5 * low.abs()) };
    (low - room, high + room)
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Tick {
    pub(super) value: f64,
    pub(super) label: String,
}

/// The most ticks that an axis has.
pub(super) const MANY: f64 = 8.0;

/// Multiples of 1, 2 or 5 times a power of ten.
pub(super) fn linear_ticks(low: f64, high: f64) -> Vec<Tick> {
    let rough = (high - low) / (MANY - 1.0);
    if !rough.is_normal() || rough <= 0.0 {
        return Vec::new();
    }
    let exponent = rough.log10().floor() as i32;
    let decade = 10f64.powi(exponent);
    let (factor, carry) =
        [(1.0, 0), (2.0, 0), (5.0, 0)].into_iter().find(|(f, _)| f * decade >= rough).unwrap_or((1.0, 1));
    let exponent = exponent + carry;
    // Dividing by a power of ten that is whole keeps 0.3 from becoming 0.30000000000000004.
    let multiple = |i: f64| {
        if exponent >= 0 { i * factor * 10f64.powi(exponent) } else { i * factor / 10f64.powi(-exponent) }
    };
    let first = (low / multiple(1.0)).ceil();
    let count = ((high / multiple(1.0)).floor() - first).clamp(0.0, 2.0 * MANY) as u32;
    (0..=count)
        .map(|i| first + f64::from(i))
        .map(|i| {
            // Adding zero turns -0 into 0.
            let value = multiple(i) + 0.0;
            Tick { value, label: linear_label(value, exponent) }
        })
        .filter(|tick| (low..=high).contains(&tick.value))
        .collect()
}

/// The label of a multiple of 10^exponent.
pub(super) fn linear_label(value: f64, exponent: i32) -> String {
    if value == 0.0 {
        "0".into()
    } else if (-4..=5).contains(&exponent) {
        fixed(value, usize::try_from(-exponent).unwrap_or(0))
    } else {
        format!("{}e{exponent}", fixed(value / 10f64.powi(exponent), 0))
    }
}

/// Powers of ten; 2 and 5 times them too where there is room; where the axis is less than that, even steps.
pub(super) fn log_ticks(low: f64, high: f64) -> Vec<Tick> {
    let (first, last) = (low.ceil() as i32, high.floor() as i32);
    let decades = last - first + 1;
    if high - low < 0.7 {
        return linear_ticks(10f64.powf(low), 10f64.powf(high));
    }
    if decades <= 2 {
        return (first - 1..=last)
            .flat_map(|exponent| [(1.0, exponent), (2.0, exponent), (5.0, exponent)])
            .map(|(factor, exponent)| factor * 10f64.powi(exponent))
            .filter(|value| (low..=high).contains(&value.log10()))
            .map(|value| Tick { value, label: significant(value, 1) })
            .collect();
    }
    let every = (f64::from(decades) / MANY).ceil() as i32;
    let exponents: Vec<i32> = (first..=last).filter(|e| e.rem_euclid(every) == 0).collect();
    let plain = exponents.iter().all(|e| (-2..=3).contains(e));
    exponents
        .into_iter()
        .map(|exponent| {
            let value = 10f64.powi(exponent);
            let label = if plain { significant(value, 1) } else { format!("10^{exponent}") };
            Tick { value, label }
        })
        .collect()
}
