//! `pasta-lab instance`: a hard instance in numbers, for other implementations to compare with.

use std::io::{self, Read};
use std::path::{Path, PathBuf};

use clap::Args;
use pasta_opt::bounds::LowerBound;
use pasta_opt::hard::HardInstance;
use pasta_opt::objective::Objective;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::hard::Kind;
use pasta_report::console::flags::number;
use pasta_report::console::{self, Exit, Failure, Report};
use pasta_report::constants::{Echo, equations};
use pasta_report::number::{at_least, ceiling, real, whole};
use pasta_report::{Table, unbroken};

/// Print a hard instance of the lower bounds: its constants, and its values and gradients at given points.
///
/// The instance is F(u, y) = f0(u) + phi(u) Fs(y). A slope f0 leads from the start, the origin, to the distance
/// D; there phi switches on a chain Fs of T coordinates, of which a sample reveals the next one with
/// probability p. On it no zero-respecting method reaches |grad F| <= eps with fewer samples, in expectation,
/// than the theorem says.
///
/// Without --at the constants are printed as a table, rounded, or with --json as one JSON object. With --at the
/// answer is always JSON. JSON is never rounded: every number reads back as the same double.
#[derive(Args)]
#[command(override_usage = USAGE, after_long_help = AFTER_HELP)]
pub(crate) struct Arguments {
    /// Which theorem's instance
    theorem: Kind,
    /// Lipschitz constant of the gradient (smooth only)
    #[arg(long, value_name = "L", allow_hyphen_values = true, value_parser = number)]
    smoothness: Option<f64>,
    /// Mean-square Lipschitz constant of the stochastic gradient (mss only)
    #[arg(long, value_name = "Lbar", allow_hyphen_values = true, value_parser = number)]
    ms_smoothness: Option<f64>,
    /// F(x0) - inf F is at most this
    #[arg(long, value_name = "Delta", allow_hyphen_values = true, value_parser = number)]
    gap: f64,
    /// Growth of the noise: the variance is at most B^2 |x - x0|^2 + b^2
    #[arg(long, value_name = "B", allow_hyphen_values = true, value_parser = number)]
    growth: f64,
    /// Noise at the start: the variance is at most B^2 |x - x0|^2 + b^2
    #[arg(long, value_name = "b", allow_hyphen_values = true, value_parser = number)]
    floor: f64,
    /// The accuracy that the instance is hard for
    #[arg(long, value_name = "eps", allow_hyphen_values = true, value_parser = number)]
    target: f64,
    /// Evaluate at the points of this JSON file; - is standard input
    #[arg(long, value_name = "FILE")]
    at: Option<PathBuf>,
    /// Print one JSON object, in full precision, instead of a table
    #[arg(long)]
    json: bool,
}

const USAGE: &str = "\
pasta-lab instance smooth --smoothness <L> --gap <Delta> --growth <B> --floor <b> --target <eps> [--at <FILE>]
       pasta-lab instance mss --ms-smoothness <Lbar> --gap <Delta> --growth <B> --floor <b> --target <eps> [--at <FILE>]";

const AFTER_HELP: &str = r#"Examples:
  # The constants of the instance of Theorem 1, here a chain of T = 8.
  pasta-lab instance smooth --smoothness 1 --gap 1 --growth 1 --floor 0.5 \
    --target 0.001

  # Value, gradient and stochastic gradient beyond D = 250, two coordinates awake.
  echo '{"u": 300, "y": [0.7, -0.9, 0, 0, 0, 0, 0, 0], "z": 1}' |
    pasta-lab instance smooth --smoothness 1 --gap 1 --growth 1 --floor 0.5 \
      --target 0.001 --at -

  # The instance of Theorem 2, as JSON.
  pasta-lab instance mss --ms-smoothness 1 --gap 1 --growth 1e-4 --floor 0 \
    --target 0.00085 --json

Constants in the JSON:
  T, p, D, lambda, scale, shift (the supremum of Fbar), infimum (of F),
  effective_smoothness (the Lipschitz constant of grad F), eps_max (the largest
  admissible eps), bound and sharp_bound (samples, from below), terms (those of
  bound: from B, from b).

Points:
  A file holds one point, an array of points, or {"points": [..]}. A point is
    {"u": number, "y": [T numbers], "z": number}
  with z, which may be left out, from 0 to 1: what a sample drew, or the mean
  over a batch. Each comes back with
    value, gradient          of F; the gradient's first entry is that of u
    stochastic_gradient      for z, where it was given
    mask                     which share of each entry z decides about, 0 to 1
    prog_quarter, prog_half, prog_one
                             the last i with |y_i| above 1/4, 1/2, 1 times lambda
    Fbar                     the chain before scaling and shift, at y/lambda"#;

/// Runs `pasta-lab instance`.
pub(crate) fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    let values = arguments.values()?;
    let instance = arguments.theorem.build(values)?;
    let points = arguments.at.as_ref().map(|path| evaluate_all(&instance, path)).transpose()?;
    let as_json = arguments.json || points.is_some();
    let described = Described {
        instance: arguments.theorem,
        reference: arguments.theorem.theorem(),
        constants: Echo(arguments.theorem.named(values)),
        bound: *instance.bound(),
        shift: instance.shift(),
        infimum: instance.infimum(),
        points,
    };
    console::print(&described, as_json)
}

impl Arguments {
    /// The constants, in the order of [`Kind::constants`].
    fn values(&self) -> Result<[f64; 5], Failure> {
        let own = match (self.theorem, self.smoothness, self.ms_smoothness) {
            (Kind::Smooth, Some(own), None) | (Kind::Mss, None, Some(own)) => own,
            (Kind::Smooth, ..) => {
                return Err(Failure::input("smooth: needs smoothness, and does not use ms-smoothness"));
            }
            (Kind::Mss, ..) => {
                return Err(Failure::input("mss: needs ms-smoothness, and does not use smoothness"));
            }
        };
        Ok([own, self.gap, self.growth, self.floor, self.target])
    }
}

/// An instance, and what it is at the points that were asked for.
#[derive(Serialize)]
struct Described {
    instance: Kind,
    reference: &'static str,
    constants: Echo,
    #[serde(flatten)]
    bound: LowerBound,
    /// sup Fbar.
    shift: f64,
    infimum: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    points: Option<Vec<Evaluated>>,
}

impl Report for Described {
    fn text(&self) -> String {
        let LowerBound { chain, p, distance, lambda, scale, effective_smoothness, eps_max, .. } = self.bound;
        let (scale, shift) = (format!("scale = {}", real(scale)), format!("shift = {}", real(self.shift)));
        let [scale, shift] = [scale, shift].map(|text| unbroken(&text));
        let mut rows = vec![
            ("instance", format!("{}: F(u, y) = f0(u) + phi(u) Fs(y)", self.instance.name())),
            ("reference", self.reference.to_owned()),
            ("given", equations(self.constants.0.known())),
            ("chain", format!("T = {} coordinates of scale lambda = {}", whole(chain), real(lambda))),
            ("reveals", format!("the next coordinate with probability p = {}", real(p))),
            ("distance", format!("phi switches the chain on from D/2 to D = {}", real(distance))),
            ("value", format!("Fs(y) = scale (Fbar(y/lambda) - shift), {scale}, {shift}")),
            ("infimum", format!("{}, not attained", real(self.infimum))),
            ("smoothness", format!("grad F has the Lipschitz constant {}", real(effective_smoothness))),
            ("admits", format!("eps <= {}", ceiling(eps_max))),
        ];
        if let (Some(closed), Some(sharp)) = (self.bound.bound, self.bound.sharp_bound) {
            let (closed, sharp) = (at_least(closed), at_least(sharp));
            rows.push(("samples", format!("at least {closed} for zero-respecting methods")));
            rows.push(("sharp form", format!("(T - 1)/(2p) = {sharp} samples")));
        }
        Table::labelled(rows).text()
    }
}

/// A point as a file gives it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "a point {\"u\": number, \"y\": [numbers]}")]
struct Point {
    u: f64,
    y: Vec<f64>,
    z: Option<f64>,
}

/// Points under a name.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Named {
    points: Vec<Point>,
}

/// The instance at a point.
#[derive(Serialize)]
struct Evaluated {
    u: f64,
    y: Vec<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    z: Option<f64>,
    value: f64,
    gradient: Vec<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stochastic_gradient: Option<Vec<f64>>,
    mask: Vec<f64>,
    prog_quarter: usize,
    prog_half: usize,
    prog_one: usize,
    #[serde(rename = "Fbar")]
    base_value: f64,
}

fn evaluate_all(instance: &HardInstance, path: &Path) -> Result<Vec<Evaluated>, Failure> {
    let name = if path == Path::new("-") { "standard input".into() } else { path.display().to_string() };
    let complain = |what: &dyn std::fmt::Display| Failure::input(format!("{name}: {what}"));
    let points = parse(&read(path).map_err(|error| complain(&error))?).map_err(|error| complain(&error))?;
    let count = points.len();
    let evaluated = points.into_iter().enumerate().map(|(index, point)| {
        let place = |what| complain(&format!("point {} of {count}: {what}", index + 1));
        evaluate(instance, point).map_err(place)
    });
    evaluated.collect()
}

fn read(path: &Path) -> io::Result<String> {
    if path == Path::new("-") {
        let mut text = String::new();
        io::stdin().lock().read_to_string(&mut text).map(|_| text)
    } else {
        std::fs::read_to_string(path)
    }
}

/// One point, an array, or an array under "points". The shape is looked at first, so that a complaint is about it.
fn parse(text: &str) -> serde_json::Result<Vec<Point>> {
    match serde_json::from_str(text)? {
        Value::Array(_) => serde_json::from_str(text),
        Value::Object(object) if object.contains_key("points") => {
            serde_json::from_str(text).map(|Named { points }| points)
        }
        _ => serde_json::from_str(text).map(|point| vec![point]),
    }
}

fn evaluate(instance: &HardInstance, Point { u, y, z }: Point) -> Result<Evaluated, String> {
    let chain = instance.bound().chain;
    if y.len() as u64 != chain {
        return Err(format!("y has {} entries, but the chain has T = {chain}", y.len()));
    }
    if let Some(z) = z.filter(|z| !(0.0..=1.0).contains(z)) {
        return Err(format!("z must be from 0 to 1, a draw or the mean of a batch, but is {z:?}"));
    }
    let x: Vec<f64> = [u].iter().chain(&y).copied().collect();
    let mut gradient = vec![0.0; x.len()];
    instance.gradient(&x, &mut gradient);
    let stochastic_gradient = z.map(|z| {
        let mut out = vec![0.0; x.len()];
        instance.stochastic_gradient(&x, z, &mut out);
        out.iter().copied().map(without_sign).collect::<Vec<_>>()
    });
    let value = instance.value(&x);
    let numbers =
        [value].into_iter().chain(gradient.iter().chain(stochastic_gradient.iter().flatten()).copied());
    if !numbers.into_iter().all(f64::is_finite) {
        return Err("the value or the gradient is beyond doubles".to_owned());
    }
    Ok(Evaluated {
        value,
        gradient: gradient.iter().copied().map(without_sign).collect(),
        stochastic_gradient,
        mask: instance.mask_at(&y),
        prog_quarter: instance.progress(&y, 0.25),
        prog_half: instance.progress(&y, 0.5),
        prog_one: instance.progress(&y, 1.0),
        base_value: instance.base_value(&y),
        u,
        y,
        z,
    })
}

/// A zero without its sign, which means nothing here.
fn without_sign(x: f64) -> f64 {
    x + 0.0
}
