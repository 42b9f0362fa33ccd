//! The names that most programs need: `use pasta_opt::prelude::*;`.

pub use crate::algorithm::Pasta;
pub use crate::auto::Auto;
pub use crate::baseline::{Baseline, Rule, Settings};
pub use crate::calibrate::Calibration;
pub use crate::certificate::{Basis, Certificate, Certifier, Claim, Guess, Verdict};
pub use crate::checkpoint::{Checkpoint, Saver};
pub use crate::draws::Stream;
pub use crate::forecast::{Forecast, Pilot};
pub use crate::gate::{Gate, Halt};
pub use crate::ledger::Ledger;
pub use crate::objective::{Measure, Objective};
pub use crate::oracle::{Batch, Batched, Noise, Noisy, Oracle, OracleError, Sampled, Tail};
pub use crate::recipe::{
    Formulas, HorizonSgd, LipschitzConvex, MeanSquareSmooth, Pl, Plan, Recipe, Smooth, SmoothAnchored,
    SmoothConvex, StarConvex, WeaklyConvex,
};
pub use crate::run::{Event, Run};
pub use crate::schedule::{BatchRule, Estimator, Output, Schedule, Sequence};
pub use crate::stop::Stop;
pub use crate::walk::{Advance, Finished, StopRule, Walk};
