//! Linear inequalities and equalities.

use std::sync::Arc;

use clarabel::algebra::CscMatrix;
use clarabel::solver::{
    DefaultSettings, DefaultSolver, IPSolver, SolverStatus,
    SupportedConeT::{NonnegativeConeT, ZeroConeT},
};

use super::{Key, Kind, Outside, Steps, Term, TermError, norm, not_a_number};

/// a x <= b and a_equal x = b_equal, for a few rows: each prox solves a quadratic program.
///
/// Doubles cannot meet general rows exactly, so each row may be off by 1e-9 (|a| + |b| + sum |a_j x_j|): in length, by 1e-9 of the
/// point's and the row's own scale. Where the domain must hold exactly, use a box, a simplex or a ball.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Polyhedron {
    /// Rows of inequalities.
    pub a: Vec<Vec<f64>>,
    /// Their right-hand sides.
    pub b: Vec<f64>,
    /// Rows of equalities.
    pub a_equal: Vec<Vec<f64>>,
    /// Their right-hand sides.
    pub b_equal: Vec<f64>,
}

pub(super) const KIND: Kind = Kind {
    name: "polyhedron",
    formula: "a x <= b, a_equal x = b_equal (to 1e-9)",
    keys: &[
        Key::optional("a", "a list of rows"),
        Key::optional("b", "a list of numbers"),
        Key::optional("a_equal", "a list of rows"),
        Key::optional("b_equal", "a list of numbers"),
    ],
    example: r#"{"kind": "polyhedron", "a": [[1, 1, 0, 0, 0, 0], [0, -1, 1, 0.5, 0, 0], [-1, 0, 0, 0, 2, 0]], "b": [1, 0, 2],
                 "a_equal": [[1, 1, 1, 1, 1, 1]], "b_equal": [1]}"#,
    build: |spec, _| {
        let rows = |rows: &Option<Vec<Vec<f64>>>| rows.clone().unwrap_or_default();
        let sides = |sides: &Option<Vec<f64>>| sides.clone().unwrap_or_default();
        Ok(Arc::new(Polyhedron {
            a: rows(&spec.a),
            b: sides(&spec.b),
            a_equal: rows(&spec.a_equal),
            b_equal: sides(&spec.b_equal),
        }))
    },
};

/// The relative error that a row may have.
const TOLERANCE: f64 = 1e-9;

/// A row a x <= b or a x = b.
#[derive(Clone, Copy)]
struct Row<'a> {
    a: &'a [f64],
    b: f64,
    is_equality: bool,
}

impl Row<'_> {
    /// a x - b.
    fn excess(&self, x: &[f64]) -> f64 {
        self.a.iter().zip(x).map(|(a, x)| a * x).sum::<f64>() - self.b
    }

    /// The excess that counts as none at x.
    fn tolerance(&self, x: &[f64]) -> f64 {
        let sizes: f64 = self.a.iter().zip(x).map(|(a, x)| (a * x).abs()).sum();
        TOLERANCE * (norm(self.a.iter().copied()) + self.b.abs() + sizes)
    }

    fn is_broken(&self, x: &[f64], share: f64) -> bool {
        let excess = self.excess(x);
        let wrong = if self.is_equality { excess.abs() } else { excess };
        wrong > share * self.tolerance(x)
    }
}

impl Polyhedron {
    /// Equalities first.
    fn rows(&self) -> impl Iterator<Item = Row<'_>> {
        let equal = self.a_equal.iter().zip(&self.b_equal);
        let below = self.a.iter().zip(&self.b);
        let equal = equal.map(|(a, &b)| Row { a, b, is_equality: true });
        equal.chain(below.map(|(a, &b)| Row { a, b, is_equality: false }))
    }
}

impl Term for Polyhedron {
    fn identity(&self) -> String {
        let Self { a, b, a_equal, b_equal } = self;
        format!("polyhedron, a {a:?}, b {b:?}, a_equal {a_equal:?}, b_equal {b_equal:?}")
    }

    fn check(&self, dim: usize) -> Result<(), TermError> {
        for (name, a, b) in [("", &self.a, &self.b), ("_equal", &self.a_equal, &self.b_equal)] {
            if a.len() != b.len() {
                let (rows, sides) = (a.len(), b.len());
                return Err(TermError(format!("a{name} has {rows} rows and b{name} {sides} numbers")));
            }
            if let Some((i, row)) = a.iter().enumerate().find(|(_, row)| row.len() != dim) {
                let n = row.len();
                return Err(TermError(format!("row {i} of a{name} has {n} numbers for {dim} coordinates")));
            }
            if !a.iter().flatten().chain(b).all(|number| number.is_finite()) {
                return Err(TermError(format!("a{name} and b{name} must be finite")));
            }
        }
        if self.rows().next().is_none() {
            return Err(TermError("give a and b, a_equal and b_equal, or all four".into()));
        }
        let mut x = vec![0.0; dim];
        self.prox(Steps::One(1.0), &mut x);
        match self.outside(&x) {
            Some(outside) => Err(TermError(format!(
                "no point satisfies all rows; the nearest that was found: {}",
                outside.words
            ))),
            None => Ok(()),
        }
    }

    fn value(&self, x: &[f64]) -> f64 {
        if self.outside(x).is_none() { 0.0 } else { f64::INFINITY }
    }

    /// z = v + sqrt(gamma) y with the shortest y for which the rows hold.
    fn prox(&self, steps: Steps<'_>, v: &mut [f64]) {
        // From 1e8 diameters away the quadratic program cannot tell which rows are active: its answer is a nearer start.
        for _ in 0..5 {
            if !self.rows().any(|row| row.is_broken(v, 1.0)) {
                return;
            }
            self.move_in(steps, v);
        }
    }

    fn outside(&self, x: &[f64]) -> Option<Outside> {
        if let Some(outside) = not_a_number(x) {
            return Some(outside);
        }
        let equalities = self.a_equal.len();
        self.rows().enumerate().find_map(|(i, row)| {
            let words = if i < equalities {
                format!("row {i} of a_equal: a x = {}, not {}", row.excess(x) + row.b, row.b)
            } else {
                format!("row {} of a: a x = {} is above {}", i - equalities, row.excess(x) + row.b, row.b)
            };
            row.is_broken(x, 1.0).then_some(Outside { coordinate: None, words })
        })
    }
}

impl Polyhedron {
    /// One round of the prox.
    fn move_in(&self, steps: Steps<'_>, v: &mut [f64]) {
        let most = (0..v.len()).map(|i| steps.at(i)).fold(0.0, f64::max);
        let scales: Vec<f64> = (0..v.len()).map(|i| (steps.at(i) / most).sqrt()).collect();
        let seen =
            |from: &[f64]| Shortest::new(self.rows().map(|row| row.seen_from(from, &scales)), from.len());
        let moved = |from: &[f64], unit: f64, y: &[f64]| -> Vec<f64> {
            from.iter().zip(&scales).zip(y).map(|((from, scale), y)| from + scale * unit * y).collect()
        };
        let broken = |x: &[f64]| -> Vec<bool> { self.rows().map(|row| row.is_broken(x, 0.25)).collect() };
        let shortest = seen(v);
        let (y, active) = shortest.interior_point();
        let broken_at = |y: &[f64]| broken(&moved(v, shortest.unit, y));
        // The active rows give the digits that an interior point leaves open; were they misjudged, it is the better start.
        let (mut end, mut set) = shortest.settled(vec![0.0; v.len()], active.clone(), &broken_at);
        if norm(end.iter().zip(&y).map(|(a, b)| a - b)) > 1e-5 * (1.0 + norm(y.iter().copied())) {
            (end, set) = shortest.settled(y, active, &broken_at);
        }
        let mut x = moved(v, shortest.unit, &end);
        // From far away the last digits are lost on the way: the rest is a short one.
        for _ in 0..3 {
            if !broken(&x).contains(&true) {
                break;
            }
            let rest = seen(&x);
            let way;
            (way, set) = rest.settled(vec![0.0; x.len()], set, &|y| broken(&moved(&x, rest.unit, y)));
            x = moved(&x, rest.unit, &way);
        }
        v.copy_from_slice(&x);
    }
}

/// The shortest y with rows y <= sides, the first of them equalities.
struct Shortest {
    /// Of length 1.
    rows: Vec<Vec<f64>>,
    sides: Vec<f64>,
    equalities: usize,
    /// The size of the largest side, by which all are divided.
    unit: f64,
    dim: usize,
}

/// A row in the units of y: its direction, its side, whether it is an equality.
type Seen = (Vec<f64>, f64, bool);

impl Row<'_> {
    fn seen_from(&self, v: &[f64], scales: &[f64]) -> Seen {
        let mut row: Vec<f64> = self.a.iter().zip(scales).map(|(a, scale)| a * scale).collect();
        let length = norm(row.iter().copied());
        // A row of zeros is a claim about b alone.
        let length = if length > 0.0 { length } else { 1.0 };
        row.iter_mut().for_each(|a| *a /= length);
        (row, -self.excess(v) / length, self.is_equality)
    }
}

impl Shortest {
    fn new(seen: impl Iterator<Item = Seen>, dim: usize) -> Self {
        let (mut rows, mut sides, mut equalities) = (Vec::new(), Vec::new(), 0);
        for (row, side, is_equality) in seen {
            rows.push(row);
            sides.push(side.clamp(f64::MIN, f64::MAX));
            equalities += usize::from(is_equality);
        }
        // Rows that hold with room to spare may have sides of any size: only broken ones set the unit.
        let broken = sides.iter().enumerate().filter(|&(i, &side)| i < equalities || side < 0.0);
        let unit = broken.fold(0.0, |most: f64, (_, side)| most.max(side.abs()));
        let unit = if unit > 0.0 { unit } else { 1.0 };
        sides.iter_mut().for_each(|side| *side = (*side / unit).clamp(-1e15, 1e15));
        Self { rows, sides, equalities, unit, dim }
    }

    /// What an interior point method gives, and which rows it thinks active.
    fn interior_point(&self) -> (Vec<f64>, Vec<bool>) {
        let (m, n) = (self.rows.len(), self.dim);
        let (mut starts, mut at, mut values) = (vec![0], Vec::new(), Vec::new());
        for j in 0..n {
            for (i, row) in self.rows.iter().enumerate() {
                if row[j] != 0.0 {
                    at.push(i);
                    values.push(row[j]);
                }
            }
            starts.push(at.len());
        }
        let a = CscMatrix::new(m, n, starts, at, values);
        let cones = [ZeroConeT(self.equalities), NonnegativeConeT(m - self.equalities)];
        let zeros = vec![0.0; n];
        for equilibrate_enable in [true, false] {
            // Tighter tolerances than the default make it fail; `settled` gives the other digits.
            let settings =
                DefaultSettings { verbose: false, equilibrate_enable, ..DefaultSettings::default() };
            let identity = CscMatrix::identity(n);
            let Ok(mut solver) = DefaultSolver::new(&identity, &zeros, &a, &self.sides, &cones, settings)
            else {
                continue;
            };
            solver.solve();
            let solution = &solver.solution;
            if matches!(solution.status, SolverStatus::Solved | SolverStatus::AlmostSolved) {
                let active = |i: usize| i < self.equalities || solution.z[i] > solution.s[i];
                return (solution.x.clone(), (0..m).map(active).collect());
            }
        }
        (zeros, (0..m).map(|i| i < self.equalities).collect())
    }

    /// Moves y by the shortest way to where the active rows hold with equality, and again with those that are broken then. Returns it
    /// with all rows that were active.
    fn settled(
        &self,
        mut y: Vec<f64>,
        mut active: Vec<bool>,
        broken_at: &dyn Fn(&[f64]) -> Vec<bool>,
    ) -> (Vec<f64>, Vec<bool>) {
        for round in 0..20 {
            if round > 0 {
                let broken = broken_at(&y);
                // Round 1 is a refinement of round 0.
                if !broken.contains(&true) && round > 1 {
                    break;
                }
                active.iter_mut().zip(broken).for_each(|(active, broken)| *active |= broken);
            }
            // Gram-Schmidt on the active rows; those that depend on others follow from them.
            let mut basis: Vec<(Vec<f64>, f64)> = Vec::new();
            for i in (0..self.rows.len()).filter(|&i| active[i]) {
                let mut row = self.rows[i].clone();
                let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
                let mut side = self.sides[i] - dot(&row, &y);
                for _ in 0..2 {
                    for (other, other_side) in &basis {
                        let shared = dot(&row, other);
                        row.iter_mut().zip(other).for_each(|(row, other)| *row -= shared * other);
                        side -= shared * other_side;
                    }
                }
                let length = norm(row.iter().copied());
                if length > 1e-9 {
                    row.iter_mut().for_each(|row| *row /= length);
                    basis.push((row, side / length));
                }
            }
            for (row, side) in &basis {
                y.iter_mut().zip(row).for_each(|(y, row)| *y += side * row);
            }
        }
        (y, active)
    }
}
