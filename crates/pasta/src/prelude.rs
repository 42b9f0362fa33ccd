//! Everything a program that runs something needs.

pub use crate::algorithm::Pasta;
pub use crate::baseline::{Baseline, Rule};
pub use crate::certificate::{Certificate, Certifier, Grade, Guess, Request, Verdict};
pub use crate::checkpoint::Checkpoint;
pub use crate::draws::Stream;
pub use crate::estimator::Estimator;
pub use crate::objective::{Measure, Objective};
pub use crate::oracle::{Batched, Noise, Noisy, Oracle, OracleError, Sampled, Tail};
pub use crate::problems::{
    Absolute, Clover, Flat, Huber, KinkedWell, Quadratic, Ramp, SineBowl, SoftAbsolute, Wells,
};
pub use crate::recipe::{
    Formulas, HorizonSgd, LipschitzConvex, MeanSquareSmooth, Pl, Plan, Recipe, Smooth, SmoothAnchored,
    SmoothConvex, StarConvex, WeaklyConvex,
};
pub use crate::schedule::{BatchRule, Output, Schedule, Sequence};
pub use crate::walk::{Advance, Finished, Stop, StopRule, Walk};
