//! The evidence for certificates: how often they are false, and what they cost, on noise of every kind.
//!
//! A row is a noise, a dimension and a basis. Over many seeds it counts the false certificates at a point with
//! |grad f| = 1.02 eps, and the certificates and their samples at one with |grad f| = eps/2. Where the basis's
//! assumption holds, more false certificates than delta refute the method, and the program fails. Where it does not
//! hold, nothing is promised, and the table shows what comes of it. A section of its own does so for gradient mappings.

mod case;
mod oracles;
mod terms;

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

use case::{ALLOWED, Assumption, Case, DELTA, Declaration, KURTOSIS, Tally, Trial, cases};
use clap::Args;
use pasta_report::clopper_pearson;
use rayon::{ThreadPool, ThreadPoolBuilder};
use serde::Serialize;
use serde_json::Value;
use terms::TermRow;

use pasta_report::console::{self, Bar, Exit, Failure, Report, flags, say};
use pasta_report::{self as report, Column, Table, fitted, grouped, significant};

/// Runs of each row, unless told otherwise.
const SEEDS: u64 = 10_000;
const DIMENSIONS: [usize; 3] = [1, 10, 1000];
/// From this dimension on a tenth of the seeds has to do. Hours would buy more digits of a rate that is all but zero.
const FEWER_SEEDS_FROM: usize = 1000;
/// With terms, a hundredth of the seeds: each is tried on 12 laws and 10 kinds of terms.
const FEWER_WITH_TERMS: u64 = 100;

/// Samples in units of V/eps^2 that a certificate at |grad f| = eps/2 should need at most.
const GOAL_DECLARED: f64 = 72.0;
const GOAL_KURTOSIS: f64 = 155.0;

/// Anything that keeps a row from being measured.
type Broken = Box<dyn std::error::Error + Send + Sync>;

/// Measure how often certificates are false and what they cost: every basis on every noise, over many seeds
///
/// Exits with 1 if a certificate is false more often than promised although its assumption holds.
#[derive(Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    setting: Setting,
    /// Folder for self-test.json and self-test.csv; made if it is not there
    #[arg(long, short, value_name = "DIR")]
    output: Option<PathBuf>,
    /// Print one JSON object, in full precision, instead of a table
    #[arg(long)]
    json: bool,
}

/// How much is measured.
#[derive(Debug, Clone, Args)]
struct Setting {
    /// Runs of each row; in the highest dimension a tenth, with terms a hundredth
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    #[arg(default_value_t = SEEDS)]
    seeds: u64,
    /// Seed of the samples
    #[arg(long, value_name = "N", default_value_t = 1)]
    #[arg(allow_negative_numbers = true, value_parser = flags::seed())]
    seed: u64,
    /// Only this dimension; may be repeated
    #[arg(long = "dimension", value_name = "D", value_parser = dimension)]
    dimensions: Vec<usize>,
    /// Only certificates of gradient mappings
    #[arg(long)]
    only_terms: bool,
}

impl Setting {
    fn seeds_at(&self, dimension: usize) -> u64 {
        if dimension >= FEWER_SEEDS_FROM { (self.seeds / 10).max(1) } else { self.seeds }
    }

    fn wants(&self, dimension: usize) -> bool {
        self.dimensions.is_empty() || self.dimensions.contains(&dimension)
    }
}

/// Reads one of the dimensions that the test knows.
fn dimension(text: &str) -> Result<usize, String> {
    let known = text.parse().ok().filter(|d| DIMENSIONS.contains(d));
    known.ok_or_else(|| format!("expected one of {}", DIMENSIONS.map(|d| d.to_string()).join(", ")))
}

/// Runs the self-test. The exit code is 1 if a certificate is false too often although its assumption holds.
pub(crate) fn run(Arguments { setting, output, json }: &Arguments) -> Result<Exit, Failure> {
    let cannot = |cause: Broken| Failure::system(format!("the self-test cannot be run: {cause}"));
    let rows = if setting.only_terms { Vec::new() } else { measure(setting).map_err(cannot)? };
    let terms = measure_terms(setting).map_err(cannot)?;
    let evidence = Evidence::new(setting, rows, terms);
    if let Some(folder) = output {
        report::write(folder, "self-test.json", console::json(&evidence)? + "\n")?;
        report::write(folder, "self-test.csv", evidence.csv())?;
    }
    console::print(&evidence, *json)?;
    // The answer is printed already: what is wrong with it is said besides.
    Ok(evidence.refutation().map_or(Exit::Done, |message| {
        say(&format!("error: {message}"));
        Exit::System
    }))
}

/// Every row, in the order of the dimensions.
fn measure(setting: &Setting) -> Result<Vec<TrialRow>, Broken> {
    // Numbered before any is left out: a row does not depend on what else is asked for.
    let mut numbered = Vec::new();
    for dimension in DIMENSIONS {
        let wanted = setting.wants(dimension);
        numbered.extend(cases(dimension)?.into_iter().map(|case| (wanted, case)));
    }
    let cases: Vec<(u64, Case)> =
        (0..).zip(numbered).filter(|(_, (wanted, _))| *wanted).map(|(i, (_, case))| (i, case)).collect();
    let pools = pools()?;
    let progress =
        Bar::of(cases.iter().map(|(_, case)| work(case.dimension) * setting.seeds_at(case.dimension)).sum());
    let mut rows = Vec::new();
    for (number, case) in &cases {
        progress.say(format!("{}, d = {}", case.law.name(), case.dimension));
        let runs = setting.seeds_at(case.dimension);
        // No two cases, and no two seeds of the program, share a run.
        let stream = setting.seed.wrapping_mul(1 << 8).wrapping_add(*number);
        let run = |index: u64| {
            let tallies = case.run(stream.wrapping_mul(1 << 24).wrapping_add(index));
            progress.done(work(case.dimension));
            tallies
        };
        let tallies = sum_over(runs, &pools, case.trials.len(), &run)?;
        rows.extend(
            case.trials.iter().zip(&tallies).map(|(trial, tally)| TrialRow::new(case, trial, tally, runs)),
        );
    }
    drop(progress);
    Ok(rows)
}

/// Every kind of term, in the order of the dimensions.
fn measure_terms(setting: &Setting) -> Result<Vec<TermRow>, Broken> {
    let pools = pools()?;
    let runs = |dimension: usize| (setting.seeds_at(dimension) / FEWER_WITH_TERMS).max(1);
    let wanted: Vec<usize> = DIMENSIONS.into_iter().filter(|d| setting.wants(*d)).collect();
    let progress = Bar::of(wanted.iter().map(|&d| work(d) * runs(d)).sum());
    let mut rows = Vec::new();
    for dimension in wanted {
        progress.say(format!("terms, d = {dimension}"));
        let mut laws = Vec::new();
        for (number, case) in (200..).zip(terms::cases(dimension)?) {
            // Numbers that no row without a term has, and indices that no other dimension has.
            let stream = setting.seed.wrapping_mul(1 << 8).wrapping_add(number);
            let run = |index: u64| {
                let index = index + ((dimension as u64) << 14);
                case.run(stream.wrapping_mul(1 << 24).wrapping_add(index))
            };
            laws.push((case.tail, sum_over(runs(dimension), &pools, terms::TALLIES, &run)?));
        }
        rows.extend(TermRow::of(dimension, &laws, runs(dimension)));
        progress.done(work(dimension) * runs(dimension));
    }
    drop(progress);
    Ok(rows)
}

/// A certificate draws in parallel. In a pool that all seeds share, a thread that waits for such a draw would take up
/// another seed, and another after that, all of them in memory. So every seed stays on one thread.
fn pools() -> Result<Vec<ThreadPool>, Broken> {
    let pools = (0..rayon::current_num_threads()).map(|_| ThreadPoolBuilder::new().num_threads(1).build());
    Ok(pools.collect::<Result<Vec<_>, _>>()?)
}

/// About what a seed costs, for the bar only.
fn work(dimension: usize) -> u64 {
    1 + dimension as u64 / 25
}

/// The sums of the tallies of runs 0 .. `runs`. They are whole numbers: who takes which run leaves no trace.
fn sum_over(
    runs: u64,
    pools: &[ThreadPool],
    trials: usize,
    run: &(impl Fn(u64) -> Result<Vec<Tally>, Broken> + Sync),
) -> Result<Vec<Tally>, Broken> {
    let (next, total) = (AtomicU64::new(0), Mutex::new(vec![Tally::default(); trials]));
    let share = || -> Result<(), Broken> {
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            if index >= runs {
                return Ok(());
            }
            let more = run(index)?;
            let mut total = total.lock().unwrap_or_else(PoisonError::into_inner);
            total.iter_mut().zip(&more).for_each(|(total, more)| total.add(more));
        }
    };
    thread::scope(|scope| {
        let workers: Vec<_> = pools.iter().map(|pool| scope.spawn(|| pool.install(share))).collect();
        workers.into_iter().try_for_each(|worker| worker.join().expect("a run does not panic"))
    })?;
    Ok(total.into_inner().unwrap_or_else(PoisonError::into_inner))
}

/// What a row says about the method.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
enum Outcome {
    /// The assumption holds, and so does the certificate.
    Holds,
    /// The assumption holds, and the certificate is false more often than delta: the method is refuted.
    Failed,
    /// Nothing was promised, and it is false more often than delta.
    FalseTooOften,
    /// Nothing was promised, and nothing was seen to go wrong.
    NotSeenToFail,
}

impl Outcome {
    /// `low` is the lowest rate that the count allows.
    fn of(assumption: Assumption, low: f64) -> Self {
        match (assumption, low > DELTA) {
            (Assumption::Holds, false) => Self::Holds,
            (Assumption::Holds, true) => Self::Failed,
            (Assumption::Broken | Assumption::None, true) => Self::FalseTooOften,
            (Assumption::Broken | Assumption::None, false) => Self::NotSeenToFail,
        }
    }

    fn words(self) -> &'static str {
        match self {
            Self::Holds => "holds",
            Self::Failed => "FAILED",
            Self::FalseTooOften => "false too often",
            Self::NotSeenToFail => "not seen to fail",
        }
    }
}

/// One noise, dimension and basis.
#[derive(Debug, Clone, PartialEq, Serialize)]
struct TrialRow {
    noise: String,
    dimension: usize,
    basis: Declaration,
    /// Of the noise; null in JSON if it is not finite.
    kurtosis: f64,
    assumption: Assumption,
    /// Runs in each direction.
    seeds: u64,
    /// V/eps^2 at |grad f| = 1.02 eps.
    unit_above: f64,
    /// In the worse direction.
    false_certificates: u64,
    false_rate: f64,
    /// The exact 95 % interval.
    false_low: f64,
    false_high: f64,
    /// V/eps^2 at |grad f| = eps/2.
    unit_half: f64,
    /// The share certified at |grad f| = eps/2.
    certified: f64,
    /// The share there of answers that the gradient looks larger than the target.
    looks_above: f64,
    /// Samples for each certificate there, in units of V/eps^2: what was drawn in vain is paid for by those that came of
    /// it. Null in JSON if none came.
    cost: f64,
    outcome: Outcome,
}

impl TrialRow {
    fn new(case: &Case, trial: &Trial, tally: &Tally, seeds: u64) -> Self {
        let [unit_above, unit_half] = trial.units();
        let false_certificates = tally.false_ones[0].max(tally.false_ones[1]);
        let (false_low, false_high) = clopper_pearson(false_certificates, seeds);
        let n = seeds as f64;
        Self {
            noise: case.law.name(),
            dimension: case.dimension,
            basis: trial.declaration,
            kurtosis: case.kurtosis,
            assumption: trial.assumption,
            seeds,
            unit_above,
            false_certificates,
            false_rate: false_certificates as f64 / n,
            false_low,
            false_high,
            unit_half,
            certified: tally.certified as f64 / n,
            looks_above: tally.above as f64 / n,
            cost: tally.samples as f64 / tally.certified as f64 / unit_half,
            outcome: Outcome::of(trial.assumption, false_low),
        }
    }

    fn promised(&self) -> bool {
        self.assumption == Assumption::Holds
    }

    /// How often certificates are false, and between what, in percent.
    fn percents(&self) -> [String; 3] {
        [self.false_rate, self.false_low, self.false_high].map(|part| format!("{:.2}", 100.0 * part))
    }

    /// Which row it is.
    fn place(&self) -> String {
        format!("{}, d = {}, {}", self.noise, self.dimension, basis_name(self.basis))
    }

    fn cells(&self) -> Vec<String> {
        let assumption = match self.assumption {
            Assumption::Holds => "holds",
            Assumption::Broken => "broken",
            Assumption::None => "none",
        };
        let noise = if self.basis == Declaration::Understated {
            format!("{}, V/4 declared", self.noise)
        } else {
            self.noise.clone()
        };
        let [rate, low, high] = self.percents();
        vec![
            noise,
            self.dimension.to_string(),
            significant(self.kurtosis, 3),
            assumption.into(),
            grouped(self.seeds),
            rate,
            format!("{low} - {high}"),
            significant(self.unit_half, 3),
            format!("{:.1}", 100.0 * self.certified),
            format!("{:.1}", self.cost),
            self.outcome.words().into(),
        ]
    }
}

/// What the certificates on a basis cost, where its assumption holds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
struct Cost {
    basis: Declaration,
    least: f64,
    greatest: f64,
    goal: f64,
    met: bool,
}

impl Cost {
    /// None if there is no row to tell. Where V/eps^2 is small, a least number of samples makes up the cost, and
    /// units of V/eps^2 do not measure it.
    fn of(basis: Declaration, rows: &[TrialRow], goal: f64) -> Option<Self> {
        let fair =
            |row: &&TrialRow| row.basis == basis && row.promised() && row.unit_half >= basis.fair_unit();
        let costs = || rows.iter().filter(fair).map(|row| row.cost);
        let (least, greatest) = (costs().min_by(f64::total_cmp)?, costs().max_by(f64::total_cmp)?);
        Some(Self { basis, least, greatest, goal, met: greatest <= goal })
    }
}

/// All that was measured.
#[derive(Debug, Clone, Serialize)]
struct Evidence {
    delta: f64,
    seed: u64,
    seeds: u64,
    rows: Vec<TrialRow>,
    /// The row with the highest rate of false certificates among those whose assumption holds.
    worst: Option<TrialRow>,
    costs: Vec<Cost>,
    /// Certificates of gradient mappings.
    terms: Vec<TermRow>,
    /// Whether no certificate was false too often whose assumption holds.
    holds: bool,
}

impl Evidence {
    fn new(setting: &Setting, rows: Vec<TrialRow>, terms: Vec<TermRow>) -> Self {
        let promised = || rows.iter().filter(|row| row.promised());
        let worst = promised().max_by(|a, b| a.false_rate.total_cmp(&b.false_rate)).cloned();
        let holds = promised().all(|row| row.outcome == Outcome::Holds)
            && terms.iter().all(|row| row.outcome == Outcome::Holds);
        let goals = [(Declaration::Declared, GOAL_DECLARED), (Declaration::Kurtosis, GOAL_KURTOSIS)];
        let costs = goals.iter().filter_map(|&(basis, goal)| Cost::of(basis, &rows, goal)).collect();
        Self { delta: DELTA, seed: setting.seed, seeds: setting.seeds, rows, worst, costs, terms, holds }
    }

    fn table(&self, caption: String, bases: &[Declaration]) -> String {
        let columns = Column::all(
            b"lrrlrrrrrrl",
            [
                "noise",
                "d",
                "kurtosis",
                "assumption",
                "seeds",
                "false %",
                "95 % interval",
                "V/eps^2",
                "certified %",
                "cost",
                "verdict",
            ],
        );
        let rows = self.rows.iter().filter(|row| bases.contains(&row.basis)).map(TrialRow::cells).collect();
        Table { caption, columns, rows }.text()
    }

    fn csv(&self) -> String {
        let fields = |row: &TrialRow| match serde_json::to_value(row) {
            Ok(Value::Object(fields)) => fields,
            _ => unreachable!("a row has named fields"),
        };
        let cell = |(name, value): (&String, &Value)| match value {
            // Some have commas.
            Value::String(noise) if name == "noise" => format!("\"{noise}\""),
            Value::String(word) => word.clone(),
            // A number that JSON has no word for.
            Value::Null => "inf".into(),
            number => number.as_f64().map_or_else(String::new, |number| number.to_string()),
        };
        let head = self.rows.first().map(|row| fields(row).keys().cloned().collect());
        let lines = self.rows.iter().map(|row| fields(row).iter().map(cell).collect());
        head.into_iter().chain(lines).map(|cells: Vec<String>| cells.join(",") + "\n").collect()
    }

    /// The last lines: the worst row, and the costs.
    fn footer(&self) -> String {
        let mut lines = Vec::new();
        if let Some(worst) = &self.worst {
            let ([rate, low, high], seeds, place) = (worst.percents(), grouped(worst.seeds), worst.place());
            lines.push(format!(
                "Where the assumption holds, at most {rate} % are false ({low} - {high} by {seeds} seeds: {place}); \
                 promised: at most {} %.",
                100.0 * DELTA
            ));
        }
        for Cost { basis, least, greatest, goal, met } in &self.costs {
            let (basis, met) = (basis_name(*basis), if *met { "met" } else { "missed" });
            lines.push(format!(
                "Cost at |grad f| = eps/2, {basis}: {least:.1} to {greatest:.1} V/eps^2; the goal of {goal} is {met}."
            ));
        }
        lines.push(format!(
            "The goals are about rows with V/eps^2 of at least {} (declared) and {} (kurtosis): where it is smaller, a \
             least number of samples makes up the cost.",
            Declaration::Declared.fair_unit(),
            Declaration::Kurtosis.fair_unit(),
        ));
        lines.join("\n")
    }

    /// What speaks against certificates, if anything does.
    fn refutation(&self) -> Option<String> {
        let failed = self.rows.iter().filter(|row| row.outcome == Outcome::Failed).map(TrialRow::place);
        let with_terms = self.terms.iter().filter(|row| row.outcome == Outcome::Failed).map(TermRow::place);
        let failed = failed.chain(with_terms).collect::<Vec<_>>().join("; ");
        let message = "certificates are false more often than promised although their assumption holds";
        (!self.holds).then(|| format!("{message}: {failed}"))
    }
}

fn basis_name(basis: Declaration) -> String {
    match basis {
        Declaration::Declared => "declared variance".into(),
        Declaration::Understated => "understated variance".into(),
        Declaration::Kurtosis => format!("kurtosis {KURTOSIS}"),
        Declaration::Approximate => "approximate".into(),
    }
}

impl Report for Evidence {
    fn text(&self) -> String {
        let terms = terms::section(&self.terms);
        if self.rows.is_empty() {
            return fitted(&terms);
        }
        let percent = 100.0 * DELTA;
        let introduction = format!(
            "False certificates of |grad f| <= eps at |grad f| = 1.02 eps, with {ALLOWED} V/eps^2 samples allowed and \
             delta = {percent} %; where the noise is skewed, in the worse direction.\nAt |grad f| = eps/2: the share certified, and the \
             samples for each certificate in units of V/eps^2.\nA row FAILS if its assumption holds and its interval lies above {percent} %. The \
             shortest chain behind a mask has 3 coordinates."
        );
        let declared = self.table(
            "Declared variance: proved for any tails. The row with V/4 declares a quarter of it, falsely."
                .into(),
            &[Declaration::Declared, Declaration::Understated],
        );
        let kurtosis = self.table(
            format!("Kurtosis at most {KURTOSIS}: proved where that is so."),
            &[Declaration::Kurtosis],
        );
        let approximate =
            self.table("Normal approximation: not a certificate.".into(), &[Declaration::Approximate]);
        fitted(&[introduction, declared, kurtosis, approximate, self.footer(), terms].join("\n\n"))
    }
}

#[cfg(test)]
mod tests {
    use super::{Assumption, Cost, Declaration, Evidence, Outcome, Setting, TrialRow};

    fn row(assumption: Assumption, false_low: f64) -> TrialRow {
        TrialRow {
            noise: "normal".into(),
            dimension: 1,
            basis: Declaration::Declared,
            kurtosis: 3.0,
            assumption,
            seeds: 100,
            unit_above: 1e4,
            false_certificates: 10,
            false_rate: 0.1,
            false_low,
            false_high: 0.2,
            unit_half: 1e4,
            certified: 1.0,
            looks_above: 0.0,
            cost: 80.0,
            outcome: Outcome::of(assumption, false_low),
        }
    }

    fn evidence(rows: Vec<TrialRow>) -> Evidence {
        let setting = Setting { seeds: 100, seed: 1, dimensions: Vec::new(), only_terms: false };
        Evidence::new(&setting, rows, Vec::new())
    }

    #[test]
    fn a_proved_basis_that_is_false_too_often_fails_the_program_and_nothing_else_does() {
        let message = evidence(vec![row(Assumption::Holds, 0.051)]).refutation().unwrap();
        assert!(message.contains("normal, d = 1, declared variance"), "{message}");
        // The interval still contains delta, or nothing was promised.
        let kept =
            vec![row(Assumption::Holds, 0.049), row(Assumption::Broken, 0.5), row(Assumption::None, 0.5)];
        assert_eq!(evidence(kept).refutation(), None);
    }

    #[test]
    fn a_cost_above_its_goal_misses_it_and_small_units_do_not_count() {
        let mut rows = vec![row(Assumption::Holds, 0.0); 2];
        (rows[1].cost, rows[1].unit_half) = (1000.0, 1.0);
        let cost = Cost::of(Declaration::Declared, &rows, 72.0).unwrap();
        assert_eq!((cost.greatest, cost.met), (80.0, false));
        assert_eq!(Cost::of(Declaration::Kurtosis, &rows, 155.0), None);
    }
}
