//! Problems with known constants: every number in [`Facts`](crate::objective::Facts) is derived in the
//! problem's documentation, and is the best one unless it says otherwise.
//!
//! | problem | L | G | rho | mu (PL) | mu (star) | minimisers |
//! |---|---|---|---|---|---|---|
//! | [`Quadratic`] | max lambda_i | | 0 | min lambda_i | min lambda_i | 0, or a subspace |
//! | [`SineBowl`] | 3 | | 1 | .2525 | | 0 |
//! | [`SoftAbsolute`] | 1 | 1 | 0 | | | 0 |
//! | [`Ramp`] | curvature | slope | 0 | | | a half-line |
//! | [`Huber`] | h | G | 0 | | | 0 |
//! | [`KinkedWell`] | | 1 | 1 | | | a sphere |
//! | [`Wells`] | | 1/sqrt(d) | 1/d | | | 2^d points |
//! | [`Absolute`] | | 1 | 0 | | | 0 |
//! | [`Clover`] | 1 + 7a | | max(0, 7a - 1) | 1 - a | 1 - a | 0 |
//! | [`Flat`] | 0 | 0 | 0 | | | everywhere |
//!
//! Each has a proximal map for every lambda > rho. Sines are those of `libm`: the same bits on every machine.
//!
//! A new problem is a file here and a row in [`TABLE`]; the tests run over the table.

mod absolute;
mod clover;
mod flat;
mod huber;
mod kinked_well;
mod proximal;
mod quadratic;
mod radial;
mod ramp;
mod sine_bowl;
mod soft_absolute;
mod table;
mod wells;

pub use absolute::Absolute;
pub use clover::Clover;
pub use flat::Flat;
pub use huber::Huber;
pub use kinked_well::KinkedWell;
pub use quadratic::Quadratic;
pub use ramp::Ramp;
pub use sine_bowl::SineBowl;
pub use soft_absolute::SoftAbsolute;
pub use table::{Kind, Parameter, Parameters, ProblemError, ProblemRow, Value, build};
pub use wells::Wells;

/// Every problem that can be asked for by name.
///
/// ```
/// use pasta_opt::problems::TABLE;
///
/// let ramp = TABLE.iter().find(|row| row.name == "ramp").expect("it is there");
/// let names: Vec<_> = ramp.parameters.iter().map(|parameter| parameter.name).collect();
/// assert_eq!(names, ["slope", "reach", "curvature"]);
/// ```
pub const TABLE: &[ProblemRow] = &[
    ProblemRow {
        name: "quadratic",
        formula: "sum_i lambda_i x_i^2/2",
        parameters: &[Parameter {
            name: "spectrum",
            meaning: "the curvatures lambda_i, one for each coordinate",
            kind: Kind::List,
            needs: "a list of finite numbers, none below 0 and at least one above 0",
            default: None,
            admits: |spectrum| {
                spectrum.iter().all(|c| c.is_finite() && *c >= 0.0) && spectrum.iter().any(|c| *c > 0.0)
            },
        }],
        make: |given| Box::new(Quadratic { spectrum: given.list("spectrum") }),
    },
    ProblemRow {
        name: "sine-bowl",
        formula: "sum_i (x_i^2/2 + sin^2 x_i)",
        parameters: &[Parameter::DIMENSION],
        make: |given| Box::new(SineBowl { dimension: given.dimension() }),
    },
    ProblemRow {
        name: "soft-absolute",
        formula: "sqrt(1 + |x|^2)",
        parameters: &[Parameter::DIMENSION],
        make: |given| Box::new(SoftAbsolute { dimension: given.dimension() }),
    },
    ProblemRow {
        name: "ramp",
        formula: "f(0) = 0; f' = -slope up to reach, then rises at the rate curvature to 0",
        parameters: &[
            Parameter::positive("slope", "how fast f falls at first"),
            Parameter {
                name: "reach",
                meaning: "how far the even descent goes",
                kind: Kind::Number,
                needs: "a finite number, at least 0",
                default: None,
                admits: |reach| reach[0].is_finite() && reach[0] >= 0.0,
            },
            Parameter::positive("curvature", "how fast the descent flattens out"),
        ],
        make: |given| {
            Box::new(Ramp {
                slope: given.number("slope"),
                reach: given.number("reach"),
                curvature: given.number("curvature"),
            })
        },
    },
    ProblemRow {
        name: "huber",
        formula: "h |x|^2/2 for |x| <= G/h, then G |x| - G^2/(2h)",
        parameters: &[
            Parameter::DIMENSION,
            Parameter::positive("curvature", "h, the curvature of the quadratic part"),
            Parameter::positive("lipschitz", "G, the slope of the conical part"),
        ],
        make: |given| {
            Box::new(Huber {
                dimension: given.dimension(),
                curvature: given.number("curvature"),
                lipschitz: given.number("lipschitz"),
            })
        },
    },
    ProblemRow {
        name: "kinked-well",
        formula: "||x|^2 - 1/4|/2 for |x| <= 1, then |x| - 5/8",
        parameters: &[Parameter::DIMENSION],
        make: |given| Box::new(KinkedWell { dimension: given.dimension() }),
    },
    ProblemRow {
        name: "wells",
        formula: "(1/d) sum_i w(x_i), w the one-dimensional kinked well",
        parameters: &[Parameter::DIMENSION],
        make: |given| Box::new(Wells { dimension: given.dimension() }),
    },
    ProblemRow {
        name: "absolute",
        formula: "sum_i |x_i|/sqrt(d)",
        parameters: &[Parameter::DIMENSION],
        make: |given| Box::new(Absolute { dimension: given.dimension() }),
    },
    ProblemRow {
        name: "clover",
        formula: "r^2 (1 + a cos 4theta)/2 in the plane",
        parameters: &[Parameter {
            name: "depth",
            meaning: "a, how deep the leaves are cut; not convex above 1/7",
            kind: Kind::Number,
            needs: "a number strictly between 0 and 1",
            default: None,
            admits: |depth| depth[0] > 0.0 && depth[0] < 1.0,
        }],
        make: |given| Box::new(Clover { depth: given.number("depth") }),
    },
    ProblemRow {
        name: "flat",
        formula: "0",
        parameters: &[Parameter::DIMENSION],
        make: |given| Box::new(Flat { dimension: given.dimension() }),
    },
];
