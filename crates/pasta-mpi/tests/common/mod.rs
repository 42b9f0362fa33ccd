//! What members of a world do in tests: the same whether they are threads or processes of MPI.
#![allow(dead_code, reason = "each test uses its part")]

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};

use pasta_mpi::{Spread, World};
use pasta_opt::Auto;
use pasta_opt::calibrate::Calibration;
use pasta_opt::oracle::{About, Answer, Charge, ErrorKind, Request};
use pasta_opt::prelude::*;
use pasta_opt::problems::Quadratic;
use pasta_opt::table::{Dense, Design, Features, Linear, Loss, Table, Values};

/// Least squares on a stream: a ~ N(0, I), y = <a, truth> + noise. Gives losses.
pub(crate) struct Regression;

const TRUTH: [f64; 3] = [1.0, -2.0, 0.5];

impl Regression {
    fn residual(x: &[f64], xi: &mut Stream) -> ([f64; 3], f64) {
        let a = [xi.normal(), xi.normal(), xi.normal()];
        let error: f64 = a.iter().zip(x).zip(&TRUTH).map(|((a, x), t)| a * (x - t)).sum();
        (a, error - 0.1 * xi.normal())
    }
}

impl Sampled for Regression {
    fn dim(&self) -> usize {
        3
    }

    fn identity(&self) -> String {
        "regression on a stream".into()
    }

    fn add_gradient(
        &self,
        weight: f64,
        x: &[f64],
        xi: &mut Stream,
        out: &mut [f64],
    ) -> Result<(), OracleError> {
        let (a, residual) = Self::residual(x, xi);
        out.iter_mut().zip(a).for_each(|(out, a)| *out += weight * residual * a);
        Ok(())
    }

    fn loss(&self, x: &[f64], xi: &mut Stream) -> Result<f64, OracleError> {
        let (_, residual) = Self::residual(x, xi);
        Ok(0.5 * residual * residual)
    }

    fn gives_losses(&self) -> bool {
        true
    }
}

pub(crate) fn student() -> Noisy {
    let noise = Noise { growth: 0.5, floor: 1.0, tail: Tail::StudentT { dof: 3.0 } };
    let start = vec![1.0, 1.0];
    Noisy::new(Box::new(Quadratic { spectrum: vec![2.0, 0.5] }), noise, start).unwrap()
}

/// So many rows of two features and a label, of which `spoil` makes what it wants. A block has 65,536 of them.
pub(crate) fn logistic(rows: usize, design: Design, spoil: impl Fn(usize, f64) -> f64) -> Linear {
    let mut values = Vec::with_capacity(2 * rows);
    let mut labels = Vec::with_capacity(rows);
    for row in 0..rows {
        let (a, b) = ((0.7 * row as f64).sin(), (0.3 + 1.9 * row as f64).cos());
        values.extend([spoil(row, a), spoil(row, b)]);
        labels.push(if a + 0.5 * b + 0.4 * (5.1 * row as f64).sin() > 0.0 { 1.0 } else { -1.0 });
    }
    let features = Features::Dense(Dense { rows, columns: 2, values: Values::F64(Arc::new(values)) });
    let table = Table::new(features, Arc::new(labels), None, Vec::new()).unwrap();
    Linear::new(Arc::new(table), Loss::Logistic, design).unwrap()
}

/// The names of all that [`work`] does.
pub(crate) const WORKS: [&str; 9] = [
    "stream",
    "page",
    "noisy",
    "certificate",
    "auto",
    "calibrate",
    "table",
    "table by page",
    "table by auto",
];

/// Does something with the help of all members, or alone, and gives every bit of what came out.
pub(crate) fn work(name: &str, world: Option<&World>) -> String {
    let gate = |oracle: Arc<dyn Oracle>| {
        let oracle = match world {
            Some(world) => Arc::new(Spread::new(oracle, world)),
            None => oracle,
        };
        Gate::over(oracle, 5)
    };
    let regression = || gate(Arc::new(Batched::new(Regression)));
    let bits = |point: &[f64]| format!("{:016x?}", point.iter().map(|x| x.to_bits()).collect::<Vec<_>>());
    let sgd = |mut gate: Gate, start: &[f64], batch| {
        let rule = Rule::Sgd { eta: Sequence::Constant(0.05) };
        let walk = Baseline::start(&gate, Settings { rule, steps: 40, batch }, start).unwrap();
        let end = walk.finish(&mut gate).unwrap();
        format!("{}{:?}", bits(&end.point), end.ledger)
    };
    let page = |mut gate: Gate, large, steps| {
        let schedule = Schedule {
            epochs: 1,
            steps,
            eta: Sequence::Constant(0.05),
            beta: Sequence::Constant(0.01),
            estimator: Estimator::Page { refresh: Sequence::Constant(0.2), small: 40 },
            first: BatchRule::Fixed(large),
            large: BatchRule::Fixed(large),
            output: Output::Last,
        };
        let walk = Pasta::start(&gate, schedule, &[0.0; 3]).unwrap();
        let end = walk.finish(&mut gate).unwrap();
        format!("{}{:?}", bits(&end.point), end.ledger)
    };
    // Three blocks and a rest, of which a batch draws from all.
    static TABLE: LazyLock<Arc<Linear>> =
        LazyLock::new(|| Arc::new(logistic(200_001, Design::default(), |_, value| value)));
    let table = || gate(TABLE.clone());
    match name {
        "stream" => sgd(regression(), &[0.0; 3], 777),
        "table" => sgd(table(), &[0.0; 3], 3000),
        "table by page" => page(table(), 250_000, 20),
        "table by auto" => {
            let mut gate = table().with_budget(250_000);
            let end = Auto::start(&gate, &[0.0; 3], Some(1e-3)).unwrap().finish(&mut gate).unwrap();
            format!("{}{:?}", bits(&end.point), end.ledger)
        }
        "noisy" => sgd(gate(Arc::new(student())), &[1.0, 1.0], 1000),
        "page" => page(regression(), 900, 60),
        "certificate" => {
            let mut gate = regression();
            let basis = Basis::Kurtosis(200.0);
            let claim = Claim { target: 0.2, delta: 0.05, basis, budget: Some(100_000), guess: None };
            let certifier = Certifier::start(&mut gate, &[1.01, -2.0, 0.5], claim, 7).unwrap();
            let certificate = certifier.finish(&mut gate).unwrap();
            format!("{certificate:?} {:?}", gate.ledger())
        }
        "auto" => {
            let mut gate = regression().with_budget(30_000);
            let end = Auto::start(&gate, &[0.0; 3], None).unwrap().finish(&mut gate).unwrap();
            format!("{}{:?}", bits(&end.point), end.ledger)
        }
        "calibrate" => {
            let mut gate = gate(Arc::new(student()));
            let calibration = Calibration::measure(&mut gate, &[1.0, 1.0], 6_400, &mut |_| {}).unwrap();
            format!("{calibration:?} {:?}", gate.ledger())
        }
        other => panic!("no work is called {other}"),
    }
}

/// What goes wrong in [`Faulty`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    /// One sample fails, on whichever member draws it.
    Sample(ErrorKind),
    /// One member fails before it has drawn a sample.
    Member(usize),
    /// One sample is not a number.
    NotANumber,
    /// One member, working alone, gets another answer than the others.
    Differs(usize),
}

/// An oracle that goes wrong from its 12th question on.
pub(crate) struct Faulty {
    pub(crate) fault: Fault,
    pub(crate) rank: usize,
    pub(crate) inner: Batched<Regression>,
    pub(crate) about: About,
    pub(crate) asked: AtomicU64,
}

impl Faulty {
    pub(crate) fn new(fault: Fault, rank: usize) -> Self {
        let inner = Batched::new(Regression);
        // Its fault is to come later than a check would.
        let about = About { trusted: true, ..inner.about().clone() };
        Self { fault, rank, inner, about, asked: AtomicU64::new(0) }
    }
}

impl Oracle for Faulty {
    fn about(&self) -> &About {
        &self.about
    }

    fn answer(&self, request: &Request<'_>, answer: &mut Answer<'_>) -> Result<Charge, OracleError> {
        if self.asked.fetch_add(1, Ordering::Relaxed) < 12 {
            return self.inner.answer(request, answer);
        }
        let pasta_opt::oracle::Draw::Batch(batch) = &request.draw else { panic!("no batch") };
        let last = batch.samples.end - 1;
        match self.fault {
            Fault::Member(rank) if rank == self.rank => Err(OracleError::new("this member is broken")),
            Fault::Differs(rank) => {
                let charge = self.inner.answer(&Request { team: None, ..request.clone() }, answer)?;
                if rank == self.rank {
                    answer.gradients[0] += 1e-9;
                }
                Ok(charge)
            }
            Fault::Sample(kind) => {
                request.sum_over(batch, 8, answer.gradients, &|samples, _| {
                    if samples.contains(&last) {
                        Err(OracleError::of_kind(kind, "a bad sample"))
                    } else {
                        Ok(())
                    }
                })?;
                Ok(request.usual_price(self.about()))
            }
            Fault::NotANumber => {
                request.sum_over(batch, 8, answer.gradients, &|samples, out| {
                    out[0] += if samples.contains(&last) { f64::NAN } else { 1.0 };
                    Ok(())
                })?;
                Ok(request.usual_price(self.about()))
            }
            Fault::Member(_) => self.inner.answer(request, answer),
        }
    }
}

/// How a run on a faulty oracle ends: at which step, and why.
pub(crate) fn fail(fault: Fault, world: &World) -> (u64, String) {
    let mut gate = Gate::new(Spread::new(Faulty::new(fault, world.rank()), world), 5);
    let rule = Rule::Sgd { eta: Sequence::Constant(0.05) };
    let settings = Settings { rule, steps: 100_000, batch: 500 };
    let mut walk = Baseline::start(&gate, settings, &[0.0; 3]).unwrap();
    loop {
        match walk.advance(&mut gate) {
            Ok(Advance::Stop(stop)) => return (walk.view().step, format!("{stop:?}")),
            Ok(_) => {}
            Err(halt) => return (walk.view().step, halt.to_string()),
        }
    }
}
