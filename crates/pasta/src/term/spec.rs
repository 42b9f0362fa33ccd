//! Terms as plain data, for problem files, flags and other languages.

use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::{
    Block, Blocks, Coordinates, Piece, Separable, Term, TermError, ball, elastic_net, group, interval, l1,
    log_barrier, polyhedron, simplex, total_variation,
};

/// A kind of term: one row of [`KINDS`].
#[derive(Debug, Clone, Copy)]
pub struct Kind {
    /// Its name in files.
    pub name: &'static str,
    /// What h is.
    pub formula: &'static str,
    /// The keys that it takes besides `kind` and `coordinates`.
    pub keys: &'static [Key],
    /// A spec of 6 coordinates, as JSON.
    pub example: &'static str,
    /// The term, for a number of coordinates; [`Term::check`] comes after.
    pub(super) build: fn(&TermSpec, usize) -> Result<Arc<dyn Term>, TermError>,
}

/// A key of a kind.
#[derive(Debug, Clone, Copy)]
pub struct Key {
    /// Its name.
    pub name: &'static str,
    /// True if it must be given.
    pub is_required: bool,
    /// What it takes.
    pub words: &'static str,
}

impl Key {
    pub(super) const fn required(name: &'static str, words: &'static str) -> Self {
        Self { name, is_required: true, words }
    }

    pub(super) const fn optional(name: &'static str, words: &'static str) -> Self {
        Self { name, is_required: false, words }
    }
}

/// All kinds of terms.
///
/// | kind | h(x) | keys | can be added to others |
/// |---|---|---|---|
/// | `box` | 0 on lower <= x <= upper | `lower`, `upper` | yes |
/// | `non-negative` | 0 on x >= 0 | | yes |
/// | `l1` | sum of weight \|x_i\| | `weight` | yes |
/// | `elastic-net` | sum of l1 \|x_i\| + l2 x_i^2/2 | `l1`, `l2` | yes |
/// | `log` | -sum of weight log x_i | `weight` | yes |
/// | `ball` | 0 on \|x - centre\| <= radius | `radius`, `centre` | no |
/// | `simplex` | 0 on x >= 0, sum of x = total | `total` | no |
/// | `group-l2` | sum over groups of weight \|x_group\| | `weight`, `groups` or `size` | no |
/// | `total-variation` | sum of weight \|x_{i+1} - x_i\| | `weight` | no |
/// | `polyhedron` | 0 on a x <= b, a_equal x = b_equal | `a`, `b`, `a_equal`, `b_equal` | no |
///
/// Terms that can be added may share coordinates with each other; the others must have theirs to themselves.
pub const KINDS: &[Kind] = &[
    interval::KIND,
    interval::NON_NEGATIVE,
    l1::KIND,
    elastic_net::KIND,
    log_barrier::KIND,
    ball::KIND,
    simplex::KIND,
    group::KIND,
    total_variation::KIND,
    polyhedron::KIND,
];

/// Numbers, one for all coordinates or one for each. In files: a number or a list; an infinite one is `inf` (TOML) or `"inf"` (JSON).
#[derive(Debug, Clone, PartialEq)]
pub struct Numbers(pub Vec<f64>);

impl From<f64> for Numbers {
    fn from(number: f64) -> Self {
        Self(vec![number])
    }
}

impl From<Vec<f64>> for Numbers {
    fn from(numbers: Vec<f64>) -> Self {
        Self(numbers)
    }
}

/// A number, or the words "inf" and "-inf" where a format has no infinity.
#[derive(Serialize, Deserialize)]
#[serde(untagged, expecting = "a number, \"inf\" or \"-inf\"")]
enum Number {
    Finite(f64),
    Infinite(String),
}

impl Number {
    fn read<E: serde::de::Error>(self) -> Result<f64, E> {
        match self {
            Self::Finite(number) => Ok(number),
            Self::Infinite(word) => match word.as_str() {
                "inf" | "+inf" => Ok(f64::INFINITY),
                "-inf" => Ok(f64::NEG_INFINITY),
                _ => Err(E::custom(format!("{word:?} is no number; the words are \"inf\" and \"-inf\""))),
            },
        }
    }

    fn of(number: f64) -> Self {
        if number.is_infinite() { Self::Infinite(number.to_string()) } else { Self::Finite(number) }
    }
}

impl Serialize for Numbers {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self.0.as_slice() {
            [one] => Number::of(*one).serialize(to),
            all => to.collect_seq(all.iter().map(|&number| Number::of(number))),
        }
    }
}

impl<'de> Deserialize<'de> for Numbers {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(
            untagged,
            expecting = "expected a number or a list of numbers (infinite: \"inf\" or \"-inf\")"
        )]
        enum Form {
            One(Number),
            Each(Vec<Number>),
        }
        match Form::deserialize(from)? {
            Form::One(number) => Ok(Self(vec![number.read()?])),
            Form::Each(all) => Ok(Self(all.into_iter().map(Number::read).collect::<Result<_, _>>()?)),
        }
    }
}

/// A term as plain data: a kind, the coordinates that it is about, and the keys of its kind. Unknown keys are refused, and so are keys
/// of other kinds.
///
/// ```
/// use pasta_opt::term::{Steps, Term, TermSpec, of_specs};
///
/// // A lasso with bounds: the two share their coordinates.
/// let specs: Vec<TermSpec> = serde_json::from_str(
///     r#"[{"kind": "l1", "weight": 0.5}, {"kind": "box", "lower": 0, "upper": [1, 2, "inf"]}]"#,
/// )?;
/// let term = of_specs(&specs, 3)?.ok_or("no term")?;
/// let mut x = [9.0, -1.0, 0.75];
/// term.prox(Steps::One(1.0), &mut x);
/// assert_eq!(x, [1.0, 0.0, 0.25]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TermSpec {
    /// The name of a kind in [`KINDS`].
    pub kind: String,
    /// The coordinates; all by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub coordinates: Option<Coordinates>,
    /// Lower ends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lower: Option<Numbers>,
    /// Upper ends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub upper: Option<Numbers>,
    /// Weights.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weight: Option<Numbers>,
    /// Weights of absolute values.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub l1: Option<Numbers>,
    /// Weights of halved squares.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub l2: Option<Numbers>,
    /// The centre of a ball.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub centre: Option<Numbers>,
    /// The radius of a ball.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub radius: Option<f64>,
    /// The sum of a simplex.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total: Option<f64>,
    /// Groups of coordinates, counted from the first of `coordinates`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub groups: Option<Vec<Vec<usize>>>,
    /// The size of consecutive groups.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<usize>,
    /// Rows of inequalities a x <= b.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub a: Option<Vec<Vec<f64>>>,
    /// Right-hand sides of inequalities.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub b: Option<Vec<f64>>,
    /// Rows of equalities a_equal x = b_equal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub a_equal: Option<Vec<Vec<f64>>>,
    /// Right-hand sides of equalities.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub b_equal: Option<Vec<f64>>,
}

impl TermSpec {
    /// The term over all of `dim` coordinates.
    pub fn term(&self, dim: usize) -> Result<Arc<dyn Term>, TermError> {
        let block = self.block(dim)?;
        let is_whole = self.coordinates.is_none();
        Ok(if is_whole { block.term } else { Arc::new(Blocks { blocks: vec![block] }) })
    }

    /// The term and the coordinates that it is about, checked.
    fn block(&self, dim: usize) -> Result<Block, TermError> {
        let kind = self.known()?;
        let coordinates = self.coordinates.clone().unwrap_or(Coordinates::Range(0..dim));
        if coordinates.is_empty() {
            return Err(TermError("coordinates are empty".into()));
        }
        let term = (kind.build)(self, coordinates.len())?;
        let block = Block { coordinates, term };
        Blocks { blocks: vec![block.clone()] }.check(dim)?;
        Ok(block)
    }

    /// The row of its kind, if its keys are those of the kind.
    fn known(&self) -> Result<&'static Kind, TermError> {
        let Some(kind) = KINDS.iter().find(|kind| kind.name == self.kind) else {
            let names: Vec<_> = KINDS.iter().map(|kind| kind.name).collect();
            return Err(TermError(format!(
                "there is no kind {:?}; the kinds are {}",
                self.kind,
                names.join(", ")
            )));
        };
        let given = self.given();
        if let Some(wrong) = given.iter().find(|&&name| kind.keys.iter().all(|key| key.name != name)) {
            let names: Vec<_> = kind.keys.iter().map(|key| key.name).collect();
            let keys = if names.is_empty() { "none".into() } else { names.join(", ") };
            return Err(TermError(format!("{} has no key {wrong}; its keys: {keys}", kind.name)));
        }
        if let Some(missing) = kind.keys.iter().find(|key| key.is_required && !given.contains(&key.name)) {
            return Err(TermError(format!("{} needs {}: {}", kind.name, missing.name, missing.words)));
        }
        Ok(kind)
    }

    /// The names of the keys that are given, `kind` and `coordinates` apart.
    fn given(&self) -> Vec<&'static str> {
        let all = [
            ("lower", self.lower.is_some()),
            ("upper", self.upper.is_some()),
            ("weight", self.weight.is_some()),
            ("l1", self.l1.is_some()),
            ("l2", self.l2.is_some()),
            ("centre", self.centre.is_some()),
            ("radius", self.radius.is_some()),
            ("total", self.total.is_some()),
            ("groups", self.groups.is_some()),
            ("size", self.size.is_some()),
            ("a", self.a.is_some()),
            ("b", self.b.is_some()),
            ("a_equal", self.a_equal.is_some()),
            ("b_equal", self.b_equal.is_some()),
        ];
        all.into_iter().filter_map(|(name, is_given)| is_given.then_some(name)).collect()
    }
}

/// The sum of all specs over `dim` coordinates; `None` if there is no spec. Terms that share coordinates are refused, with the
/// coordinate, unless each is a sum over coordinates of its own (box, non-negative, l1, elastic-net, log), whose sum has an exact prox.
pub fn of_specs(specs: &[TermSpec], dim: usize) -> Result<Option<Arc<dyn Term>>, TermError> {
    if let [one] = specs {
        return one.term(dim).map(Some).map_err(|error| named(0, one, error));
    }
    // Which specs each coordinate has.
    let mut owners = vec![Vec::new(); dim];
    let mut blocks = Vec::new();
    for (n, spec) in specs.iter().enumerate() {
        let block = spec.block(dim).map_err(|error| named(n, spec, error))?;
        block.coordinates.iter().for_each(|i| owners[i].push(n));
        blocks.push(block);
    }
    let is_shared = |n: usize| blocks[n].coordinates.iter().any(|i| owners[i].len() > 1);
    let shared: Vec<bool> = (0..specs.len()).map(is_shared).collect();
    for (i, owners) in owners.iter().enumerate().filter(|(_, owners)| owners.len() > 1) {
        if let Some(&n) = owners.iter().find(|&&n| blocks[n].term.piece(0).is_none()) {
            let other = owners.iter().find(|&&m| m != n).map_or(n, |&m| m);
            return Err(TermError(format!(
                "coordinate {i} is in term {} ({}) and in term {} ({}): {} must have its coordinates to itself",
                n + 1,
                specs[n].kind,
                other + 1,
                specs[other].kind,
                specs[n].kind,
            )));
        }
    }
    let sum =
        sum_of(blocks.iter().zip(&shared).filter_map(|(block, &is_shared)| is_shared.then_some(block)))?;
    let alone =
        blocks.iter().zip(&shared).filter_map(|(block, &is_shared)| (!is_shared).then_some(block.clone()));
    let blocks: Vec<Block> = sum.into_iter().chain(alone).collect();
    Ok((!blocks.is_empty()).then(|| Arc::new(Blocks { blocks }) as Arc<dyn Term>))
}

/// One block with the sum of separable ones.
fn sum_of<'a>(blocks: impl Iterator<Item = &'a Block>) -> Result<Option<Block>, TermError> {
    let mut pieces = std::collections::BTreeMap::<usize, Piece>::new();
    for block in blocks {
        for (local, i) in block.coordinates.iter().enumerate() {
            let so_far = pieces.entry(i).or_default();
            *so_far = so_far.plus(&block.term.piece(local).unwrap_or_default());
        }
    }
    if pieces.is_empty() {
        return Ok(None);
    }
    pieces.iter().try_for_each(|(&i, piece)| piece.check(i))?;
    let (coordinates, pieces) = pieces.into_iter().unzip();
    Ok(Some(Block { coordinates: Coordinates::List(coordinates), term: Arc::new(Separable { pieces }) }))
}

/// An error with the number and the kind of its term.
fn named(n: usize, spec: &TermSpec, TermError(words): TermError) -> TermError {
    TermError(format!("term {} ({}): {words}", n + 1, spec.kind))
}
