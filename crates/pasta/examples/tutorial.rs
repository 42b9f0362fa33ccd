//! A problem of your own, without a known constant: calibrate, plan, solve, certify. docs/tutorial.md walks through it.

use std::error::Error;
use std::io::Write;

use pasta_opt::prelude::*;

/// Rents out bicycles. How many go out on a day, given how warm it is and whether it rains?
struct Rentals;

/// One day: (1, warmth, rain), and the rentals in hundreds. In real life this is your data or your simulation.
fn day(xi: &mut Stream) -> ([f64; 3], f64) {
    let warmth = xi.normal();
    let rain = if xi.bernoulli(0.3) { 1.0 } else { 0.0 };
    let rentals = 5.0 + 2.0 * warmth - 3.0 * rain + 0.5 * xi.normal();
    ([1.0, warmth, rain], rentals)
}

/// By how much the forecast <features, x> of a day is too high.
fn error(x: &[f64], (features, rentals): &([f64; 3], f64)) -> f64 {
    features.iter().zip(x).map(|(a, x)| a * x).sum::<f64>() - rentals
}

impl Sampled for Rentals {
    fn dim(&self) -> usize {
        3
    }
    fn identity(&self) -> String {
        "bicycle rentals by warmth and rain".into()
    }
    /// The gradient of error^2/2, with a weight.
    fn add_gradient(
        &self,
        weight: f64,
        x: &[f64],
        xi: &mut Stream,
        out: &mut [f64],
    ) -> Result<(), OracleError> {
        let day = day(xi);
        let error = error(x, &day);
        for (out, a) in out.iter_mut().zip(day.0) {
            *out += weight * error * a;
        }
        Ok(())
    }
    /// Optional, and worth it: `auto` compares points far more sharply by their losses.
    fn loss(&self, x: &[f64], xi: &mut Stream) -> Result<f64, OracleError> {
        Ok(error(x, &day(xi)).powi(2) / 2.0)
    }
    fn gives_losses(&self) -> bool {
        true
    }
}

/// The whole way, from an oracle to a certified point.
pub(crate) fn tutorial(out: &mut impl Write) -> Result<(), Box<dyn Error>> {
    let start = [0.0; 3];
    let target = 0.1;

    // 1. Calibrate: what do 32,000 samples say about the constants?
    let mut gate = Gate::new(Batched::new(Rentals), 1);
    let found = Calibration::measure(&mut gate, &start, 32_000, &mut |_| ())?;
    let growth = found.growth.ok_or("the noise grows, but it cannot be told how fast")?;
    writeln!(out, "L at least {:.2}", found.smoothness.value)?;
    writeln!(out, "B at least {:.2}", growth.value)?;
    writeln!(out, "b about    {:.2}", found.floor.value)?;
    writeln!(out, "BG-0       {}", if found.breaks_bg0() { "fails" } else { "holds as far as was seen" })?;

    // 2. Plan: the worst case of a theorem with these constants, and what `auto` will probably take.
    let (smoothness, floor) = (found.smoothness.high, found.floor.high);
    let recipe = Smooth { smoothness, gap: 15.0, growth: growth.high, floor, variance: None, target };
    writeln!(out, "worst case {:.0e} samples", recipe.plan()?.cost.samples)?;
    let rule = StopRule { target, delta: 0.05, basis: Basis::Kurtosis(100.0), share: 0.5 };
    let pilot =
        Pilot::run(&mut gate, &start, rule, 20_000, |gate, target| Auto::start(gate, &start, Some(target)))?;
    let words = pilot
        .forecast(target)
        .map_or("none".to_owned(), |f| format!("{:.0e} to {:.0e} samples", f.low, f.high));
    writeln!(out, "forecast   {words}")?;

    // 3. Solve: run until |grad f| <= 0.1 is certified, or a million samples are drawn.
    let mut gate = Gate::new(Batched::new(Rentals), 1).with_budget(1_000_000);
    let end = Auto::start(&gate, &start, Some(target))?.certified(&gate, rule)?.finish(&mut gate)?;
    writeln!(out, "stopped    {}", end.stop.meaning())?;
    writeln!(out, "samples    {}", end.ledger.samples())?;
    writeln!(out, "point      {:.3?}", end.point)?;
    if let Some(certificate) = end.certification.and_then(|log| log.last) {
        writeln!(out, "{}", certificate.statement())?;
    }

    // 4. Certify any point, for instance a rounded one. Its samples are fresh: another seed.
    let mut gate = Gate::new(Batched::new(Rentals), 2);
    let claim = Claim { target, delta: 0.05, basis: Basis::Kurtosis(100.0), budget: None, guess: None };
    let rounded = [5.0, 2.0, -3.0];
    let certificate = Certifier::start(&mut gate, &rounded, claim, 0)?.finish(&mut gate)?;
    writeln!(out, "rounded    {} with {} samples", certificate.verdict.words(), certificate.samples)?;
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    tutorial(&mut std::io::stdout())
}
