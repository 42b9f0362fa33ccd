//! `pasta demo`: one small problem on which noise that grows with the distance breaks plain SGD.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use clap::Args;
use indicatif::ProgressBar;
use pasta_opt::prelude::*;
use pasta_opt::walk::Divergence;
use rayon::prelude::*;
use serde::Serialize;

use crate::error::{Exit, Failure};
use crate::report::{
    self, Align, Axis, Chart, Column, Page, Part, Reference, Scale, Section, Series, Shape, Spread, Table,
    Tone, Where, given, grouped, significant,
};

/// Show in seconds what the rest of the program is for
///
/// Minimises f(x) = x^2/2 + sin^2 x from samples whose noise grows with the distance from the start, many
/// times over: with PASTA, and with SGD at the two step sizes that theory without such noise gives. Says what
/// PASTA was predicted to cost and to reach, what happened, and writes a page with the curves. The same seed
/// gives the same numbers and the same page, byte for byte.
#[derive(Args)]
pub(crate) struct Arguments {
    /// Folder for the page, index.html; made if it is not there
    #[arg(long, short, value_name = "DIR", default_value = "pasta-demo")]
    output: PathBuf,

    /// Which random numbers: another seed gives other runs, independent of these
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,

    /// Print all numbers as one JSON object instead of the tables
    #[arg(long)]
    json: bool,
}

/// x0.
const START: f64 = 1.2;
/// A sample at x has variance B^2 |x - x0|^2 + b^2.
const NOISE: Noise = Noise { growth: 9.0, floor: 1.0, tail: Tail::Gaussian };
/// eps. Large enough that SGD can be given every sample that PASTA had, in seconds.
const TARGET: f64 = 0.25;
/// Runs of each method.
const RUNS: u64 = 64;
/// Runs of each method whose curves are drawn.
const DRAWN: usize = 3;

pub(crate) fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    // A folder that cannot be had is told before the work, not after.
    report::folder(&arguments.output)?;
    let forecast = Forecast::new().map_err(broken)?;
    let rounds = forecast.play(arguments.seed)?;
    let findings = Findings::new(&forecast, arguments.seed, &rounds)?;
    let page = page(&forecast, &findings, &rounds).html()?;
    let path = report::write(&arguments.output, "index.html", &page)?;
    say(&if arguments.json { findings.json(&path)? } else { findings.text(&path) })?;
    Ok(Exit::Done)
}

/// The problem is fixed, so nothing of it can be refused unless the program itself is wrong.
fn broken(cause: impl std::fmt::Display) -> Failure {
    Failure::system(format!("the demonstration cannot run: {cause}"))
}

fn say(text: &str) -> Result<(), Failure> {
    match writeln!(io::stdout().lock(), "{text}") {
        // Whoever reads has read enough.
        Err(cause) if cause.kind() != io::ErrorKind::BrokenPipe => {
            Err(Failure::system(format!("cannot write to the standard output: {cause}")))
        }
        _ => Ok(()),
    }
}

/// What is known before the first sample.
struct Forecast {
    oracle: Noisy,
    smoothness: f64,
    gap: f64,
    /// Theorem 3.
    pasta: Plan,
    /// What the same theorem says to someone who believes that the noise is b everywhere: one sample a step,
    /// eta = eps^2/(2 L b^2).
    bounded: Plan,
    /// SGD with one sample a step that knows how far it may go in its own time.
    horizon: Plan,
}

impl Forecast {
    fn new() -> Result<Self, Box<dyn std::error::Error>> {
        let bowl = SineBowl { dimension: 1 };
        let smoothness = bowl.facts().smoothness.ok_or("the objective is not smooth")?;
        let gap = bowl.gap(&[START]);
        let Noise { growth, floor, .. } = NOISE;
        let honest = Smooth { smoothness, gap, growth, floor, variance: None, target: TARGET };
        let naive = Smooth { growth: 0.0, variance: Some(floor * floor), ..honest };
        Ok(Self {
            oracle: Noisy::new(Box::new(bowl), NOISE, vec![START])?,
            smoothness,
            gap,
            pasta: honest.plan()?,
            bounded: naive.plan()?,
            horizon: HorizonSgd { smoothness, gap, growth, floor, target: TARGET }.plan()?,
        })
    }

    /// eps^2: what |grad f|^2 shall come down to.
    fn goal(&self) -> f64 {
        self.pasta.guarantee.bound
    }

    /// All runs. Each has a seed of its own, so the threads that share them out leave no trace.
    fn play(&self, seed: u64) -> Result<Vec<Round>, Failure> {
        // Draws nothing where stderr is not a terminal.
        let progress = ProgressBar::new(RUNS);
        let rounds: Result<Vec<Round>, _> = (0..RUNS)
            .into_par_iter()
            .map(|run| {
                // No two seeds below 2^58 share a run.
                let round = self.round(seed.wrapping_mul(RUNS).wrapping_add(run));
                progress.inc(1);
                round.map_err(|cause| cause.to_string())
            })
            .collect();
        progress.finish_and_clear();
        rounds.map_err(broken)
    }

    fn round(&self, seed: u64) -> Result<Round, Box<dyn std::error::Error>> {
        let sgd = |eta, steps: u128| {
            let rule = Rule::Sgd { eta };
            Baseline::start(&self.oracle, rule, u64::try_from(steps)?, 1, &[START], seed)
                .map_err(Box::<dyn std::error::Error>::from)
                .and_then(|walk| Ok(self.follow(walk)?))
        };
        let mut batches = Vec::new();
        let walk = Pasta::start(&self.oracle, self.pasta.schedule.clone(), &[START], seed)?;
        let pasta = self.follow(walk.tee(|record, _| batches.push(record.n)))?;
        let eta = self.bounded.schedule.eta;
        Ok(Round {
            classical: sgd(Sequence::Constant(1.0 / self.smoothness), pasta.samples)?,
            bounded: sgd(eta, self.bounded.schedule.total_steps())?,
            patient: sgd(eta, pasta.samples)?,
            pasta,
            batches,
        })
    }

    /// Walks to the end and keeps the mean of |grad f|^2 over x_0 .. x_{K-1}, which is what Theorem 3 bounds.
    fn follow(&self, mut walk: impl Walk) -> Result<Run, OracleError> {
        let objective = self.oracle.objective();
        let mut gradient = vec![0.0; objective.dim()];
        let (mut sum, mut mark) = (0.0, 1);
        let mut trail = Vec::new();
        loop {
            objective.gradient(&walk.state().x, &mut gradient);
            let here: f64 = gradient.iter().map(|g| g * g).sum();
            let advance = walk.advance()?;
            let (steps, samples) = (walk.state().step, walk.state().ledger.samples);
            match advance {
                Advance::Step(_) => {
                    sum += here;
                    if steps == mark {
                        trail.push((samples as f64, sum / steps as f64));
                        // Even on a logarithmic axis.
                        mark = (mark + 1).max((mark as f64 * 1.02) as u64);
                    }
                }
                Advance::Stop(stop) => {
                    let measure = sum / steps as f64;
                    trail.push((samples as f64, measure));
                    let diverged = match stop {
                        Stop::Diverged(divergence) => Some(step_of(divergence)),
                        _ => None,
                    };
                    return Ok(Run { steps, samples, measure, diverged, trail });
                }
            }
        }
    }
}

fn step_of(divergence: Divergence) -> u64 {
    match divergence {
        Divergence::Gradient { step }
        | Divergence::NotFinite { step }
        | Divergence::Runaway { step }
        | Divergence::Batch { step, .. } => step,
    }
}

/// One run of every method, all with the same seed.
struct Round {
    pasta: Run,
    /// N_t.
    batches: Vec<u64>,
    /// eta = 1/L.
    classical: Run,
    /// eta = eps^2/(2 L b^2), for as long as its theory says.
    bounded: Run,
    /// The same for as many samples as PASTA had.
    patient: Run,
}

struct Run {
    steps: u64,
    samples: u128,
    /// The mean of |grad f|^2 over the iterates.
    measure: f64,
    /// The step at which it diverged, if it did.
    diverged: Option<u64>,
    /// Samples so far and the measure so far.
    trail: Vec<(f64, f64)>,
}

/// What came out: all that is said anywhere is said from here.
#[derive(Serialize)]
struct Findings {
    seed: u64,
    runs: u64,
    problem: Problem,
    target: f64,
    /// eps^2.
    goal: f64,
    methods: Vec<Outcome>,
    predicted: Predicted,
    happened: Happened,
}

#[derive(Serialize)]
struct Problem {
    objective: &'static str,
    start: f64,
    smoothness: f64,
    gap: f64,
    growth: f64,
    floor: f64,
}

/// A method, as it is named and what it says of itself.
#[derive(Serialize)]
struct Method {
    id: &'static str,
    /// In a table.
    name: &'static str,
    /// In a sentence.
    #[serde(skip)]
    subject: &'static str,
    step_size: f64,
    /// In a table, in units of eps^2.
    #[serde(skip)]
    promise: &'static str,
}

/// What a method came to.
#[derive(Serialize)]
struct Outcome {
    #[serde(flatten)]
    method: Method,
    /// Of one run. A forecast where there was none.
    samples: f64,
    /// The mean of |grad f|^2 over the iterates of a run; none if a run diverged or there was none.
    measure: Option<Spread>,
    diverged_runs: usize,
    /// Over the runs that diverged.
    diverged_at_step: Option<Spread>,
    verdict: Verdict,
}

/// What the runs of a method say about the goal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
enum Verdict {
    /// The mean is at most eps^2, with 95 % confidence.
    Met,
    /// It is more.
    Missed,
    /// The runs do not say.
    Open,
    /// Some runs left every bound behind.
    Diverged,
    NotRun,
}

/// PASTA before the run. Upper bounds, in expectation.
#[derive(Serialize)]
struct Predicted {
    steps: u64,
    samples: f64,
    measure: f64,
}

/// PASTA after the run.
#[derive(Serialize)]
struct Happened {
    steps: Spread,
    samples: Spread,
    measure: Spread,
    /// 95 % confidence.
    measure_interval: (f64, f64),
}

impl Findings {
    fn new(forecast: &Forecast, seed: u64, rounds: &[Round]) -> Result<Self, Failure> {
        let over = |what: fn(&Round) -> f64| {
            Spread::of(rounds.iter().map(what)).ok_or_else(|| broken("there were no runs"))
        };
        let measure = over(|round| round.pasta.measure)?;
        let Plan { schedule, guarantee, cost, .. } = &forecast.pasta;
        Ok(Self {
            seed,
            runs: RUNS,
            problem: Problem {
                objective: "x^2/2 + sin^2 x",
                start: START,
                smoothness: forecast.smoothness,
                gap: forecast.gap,
                growth: NOISE.growth,
                floor: NOISE.floor,
            },
            target: TARGET,
            goal: forecast.goal(),
            methods: outcomes(forecast, rounds),
            predicted: Predicted { steps: schedule.steps, samples: cost.samples, measure: guarantee.bound },
            happened: Happened {
                steps: over(|round| round.pasta.steps as f64)?,
                samples: over(|round| round.pasta.samples as f64)?,
                measure,
                measure_interval: measure.interval(),
            },
        })
    }

    fn json(&self, path: &Path) -> Result<String, Failure> {
        let mut value = serde_json::to_value(self).map_err(broken)?;
        value["page"] = path.display().to_string().into();
        serde_json::to_string_pretty(&value).map_err(broken)
    }

    fn text(&self, path: &Path) -> String {
        format!(
            "{}\n\n{}\n{FOOTNOTE}\n\n{}\n{}\n\nPage with the curves: {}",
            self.setting(),
            self.comparison().text(),
            self.forecast_check().text(),
            self.envelope(),
            path.display()
        )
    }

    fn setting(&self) -> String {
        let Problem { objective, start, smoothness, growth, floor, .. } = self.problem;
        format!(
            "Minimise f(x) = {objective} (L = {smoothness}) from x_0 = {start}, when a sample of the gradient at \
             x has variance\nB^2 |x - x_0|^2 + b^2 with B = {growth}, b = {floor}, until |grad f|^2 is at most \
             eps^2 on average, eps = {}.",
            self.target
        )
    }

    fn comparison(&self) -> Table {
        let column = |name, align| Column { name, align };
        Table {
            caption: format!(
                "{} runs of each method; the measure is the mean of |grad f|^2 over the iterates of a run",
                self.runs
            ),
            columns: vec![
                column("method", Align::Left),
                column("samples", Align::Right),
                column("measure/eps^2", Align::Right),
                column("range", Align::Right),
                column("promise", Align::Left),
                column("verdict", Align::Left),
            ],
            rows: self.methods.iter().map(|outcome| outcome.row(self.goal)).collect(),
        }
    }

    fn forecast_check(&self) -> Table {
        let Self { predicted, happened, .. } = self;
        let row = |what: &str, predicted: String, happened: String| vec![what.into(), predicted, happened];
        let (low, high) = happened.measure_interval;
        let range = |spread: &Spread| {
            let [least, greatest] = [spread.least, spread.greatest].map(|n| grouped(n.round() as u128));
            if least == greatest {
                least
            } else {
                format!("{} ({least} to {greatest})", grouped(spread.mean.round() as u128))
            }
        };
        Table {
            caption: "PASTA, predicted and happened".into(),
            columns: vec![
                Column { name: "", align: Align::Left },
                Column { name: "predicted", align: Align::Left },
                Column { name: "happened", align: Align::Left },
            ],
            rows: vec![
                row("steps", grouped(predicted.steps.into()), range(&happened.steps)),
                row(
                    "samples",
                    format!("at most {}", significant(predicted.samples, 3)),
                    range(&happened.samples),
                ),
                row(
                    "mean |grad f|^2",
                    format!("at most eps^2 = {}", given(predicted.measure)),
                    format!(
                        "{} (95 % confidence: {} to {})",
                        significant(happened.measure.mean, 3),
                        significant(low, 3),
                        significant(high, 3)
                    ),
                ),
            ],
        }
    }

    /// How far the forecast of the samples was from what was needed.
    fn envelope(&self) -> String {
        format!(
            "The forecast of the samples bounds every problem with these constants; this one took 1/{} of it.",
            significant(self.predicted.samples / self.happened.samples.mean, 2)
        )
    }

    /// What came out, in a sentence for each method that was run.
    fn sentences(&self) -> String {
        let sentences: Vec<String> =
            self.methods.iter().filter_map(|outcome| outcome.sentence(self.goal)).collect();
        sentences.join(" ")
    }
}

const PASTA: &str = "PASTA";
const CLASSICAL: &str = "SGD, eta = 1/L";
const BOUNDED: &str = "SGD, eta = eps^2/(2 L b^2)";

fn outcomes(forecast: &Forecast, rounds: &[Round]) -> Vec<Outcome> {
    let eta = |plan: &Plan| plan.schedule.eta.at(0);
    let all = |run: fn(&Round) -> &Run| -> Vec<&Run> { rounds.iter().map(run).collect() };
    let outcome = |method, runs: &[&Run]| Outcome::new(method, runs, forecast.goal());
    let pasta =
        Method { id: "pasta", name: PASTA, subject: PASTA, step_size: eta(&forecast.pasta), promise: "<= 1" };
    let classical = Method {
        id: "sgd-classical",
        name: CLASSICAL,
        subject: "SGD with eta = 1/L",
        step_size: 1.0 / forecast.smoothness,
        promise: "none",
    };
    let bounded = Method {
        id: "sgd-bounded",
        name: BOUNDED,
        subject: "SGD with eta = eps^2/(2 L b^2)",
        step_size: eta(&forecast.bounded),
        promise: "<= 1 (*)",
    };
    let patient = Method {
        id: "sgd-bounded-same-samples",
        name: "same, with PASTA's samples",
        subject: "The same with as many samples as PASTA",
        ..bounded
    };
    let horizon = Method {
        id: "sgd-horizon",
        name: "SGD, tuned to its horizon",
        subject: "SGD tuned to its horizon",
        step_size: eta(&forecast.horizon),
        promise: "<= 1",
    };
    vec![
        outcome(pasta, &all(|round| &round.pasta)),
        outcome(classical, &all(|round| &round.classical)),
        outcome(bounded, &all(|round| &round.bounded)),
        outcome(patient, &all(|round| &round.patient)),
        Outcome { samples: forecast.horizon.cost.samples, ..outcome(horizon, &[]) },
    ]
}

const FOOTNOTE: &str = "(*) if no sample were noisier than at the start.";

impl Verdict {
    fn new(measure: Option<Spread>, diverged: usize, goal: f64) -> Self {
        match measure.map(|spread| spread.interval()) {
            _ if diverged > 0 => Self::Diverged,
            Some((_, high)) if high <= goal => Self::Met,
            Some((low, _)) if low > goal => Self::Missed,
            Some(_) => Self::Open,
            None => Self::NotRun,
        }
    }
}

impl Outcome {
    fn new(method: Method, runs: &[&Run], goal: f64) -> Self {
        let diverged: Vec<f64> = runs.iter().filter_map(|run| run.diverged).map(|step| step as f64).collect();
        let measure = Spread::of(runs.iter().map(|run| run.measure)).filter(|_| diverged.is_empty());
        Self {
            method,
            samples: Spread::of(runs.iter().map(|run| run.samples as f64)).map_or(0.0, |spread| spread.mean),
            measure,
            diverged_runs: diverged.len(),
            verdict: Verdict::new(measure, diverged.len(), goal),
            diverged_at_step: Spread::of(diverged),
        }
    }

    fn row(&self, goal: f64) -> Vec<String> {
        let ratio = |value: f64| significant(value / goal, 3);
        let samples = if self.samples < 1e9 {
            grouped(self.samples.round() as u128)
        } else {
            significant(self.samples, 3)
        };
        let (mean, range) = match self.measure {
            Some(spread) => {
                (ratio(spread.mean), format!("{} to {}", ratio(spread.least), ratio(spread.greatest)))
            }
            None => ("-".into(), "-".into()),
        };
        vec![self.method.name.into(), samples, mean, range, self.method.promise.into(), self.verdict()]
    }

    fn verdict(&self) -> String {
        match (self.verdict, self.diverged_at_step) {
            (Verdict::Met, _) => "target met".into(),
            (Verdict::Missed, _) => "target missed".into(),
            (Verdict::Open, _) => "too close to call".into(),
            (Verdict::NotRun, _) => "forecast, not run".into(),
            (Verdict::Diverged, at) => match at {
                Some(at) => format!(
                    "diverged in {} of {RUNS} (step {} to {})",
                    self.diverged_runs, at.least, at.greatest
                ),
                None => "diverged".into(),
            },
        }
    }

    fn sentence(&self, goal: f64) -> Option<String> {
        let (subject, runs) = (self.method.subject, RUNS);
        let ratio = significant(self.measure.map_or(f64::NAN, |spread| spread.mean / goal), 2);
        match self.verdict {
            Verdict::Met => Some(format!("{subject} met the target, at {ratio} eps^2.")),
            Verdict::Missed => Some(format!("{subject} missed the target, at {ratio} eps^2.")),
            Verdict::Open => {
                Some(format!("{subject} came too close to the target to call, at {ratio} eps^2."))
            }
            Verdict::Diverged => {
                Some(format!("{subject} diverged in {} of {runs} runs.", self.diverged_runs))
            }
            Verdict::NotRun => None,
        }
    }
}

fn page(forecast: &Forecast, findings: &Findings, rounds: &[Round]) -> Page {
    let text = |text: String| Part::Text(text);
    let section = |heading: &str, parts| Section { heading: heading.into(), parts };
    Page {
        title: "When the noise grows with the distance".into(),
        lead: findings.sentences(),
        sections: vec![
            section("Why", vec![text(why_sgd_breaks(forecast)), text(what_batches_do(forecast))]),
            section(
                "What happened",
                vec![
                    text(findings.setting()),
                    Part::Figure(progress_chart(forecast, rounds)),
                    Part::Table(findings.comparison()),
                    text(FOOTNOTE.into()),
                    Part::Figure(batch_chart(forecast, rounds)),
                ],
            ),
            section(
                "What was predicted",
                vec![
                    Part::Table(findings.forecast_check()),
                    text(findings.envelope()),
                    text(honesty(forecast)),
                ],
            ),
            section(
                "Do it again",
                vec![
                    text("The same seed gives these numbers and this page again, byte for byte.".into()),
                    Part::Command(format!("pasta demo --seed {}", findings.seed)),
                ],
            ),
        ],
    }
}

/// N(x*)/N(x0) without its rounding: how much noisier a sample is at the minimum than at the start.
fn noise_ratio(forecast: &Forecast) -> Option<f64> {
    let distance = forecast.oracle.objective().distance_to_minimiser(&[START])?;
    Some((NOISE.growth * distance / NOISE.floor).powi(2) + 1.0)
}

fn why_sgd_breaks(forecast: &Forecast) -> String {
    let ratio = noise_ratio(forecast).map_or_else(|| "many".into(), |ratio| significant(ratio, 3));
    format!(
        "Stochastic gradient descent is mostly studied as if all samples were equally noisy. Here they are not: \
         the farther from the start, the noisier, so that a sample at the minimum has {ratio} times the variance \
         of a sample at the start. A noisy sample throws the iterate out; where it lands, the next sample is \
         noisier still. With a long step this feedback wins over the pull of the minimum. With a step that is \
         short enough for the noise at the start there is no explosion, but the iterate keeps shaking with the \
         noise that it meets on its way, and going on for longer does not calm it."
    )
}

fn what_batches_do(forecast: &Forecast) -> String {
    let sigma2 = match forecast.pasta.schedule.large {
        BatchRule::Drift { target_variance, .. } => format!("sigma^2 = {}", given(target_variance)),
        BatchRule::Fixed(_) => "sigma^2".into(),
    };
    format!(
        "PASTA keeps the long step and lets the number of samples answer the distance. Before each step it \
         looks how far it has come and averages as many samples as bring the variance down to the same \
         {sigma2}: few near the start, many far away. To the descent it is as if the noise were bounded. \
         That is enough to promise something before the first sample is drawn: in expectation, the mean of \
         |grad f|^2 over all iterates is at most eps^2 = {} (Theorem 3), and the samples it takes have a bound too.",
        given(forecast.goal()),
    )
}

fn honesty(forecast: &Forecast) -> String {
    format!(
        "None of this makes one sample a step hopeless. SGD whose step is tuned to how far it may stray in its \
         own time, eta = {}, comes with the same promise. It pays for the worst case in advance: {} steps, one \
         after the other, which is why it was not run here. PASTA pays for the distance that it goes.",
        significant(forecast.horizon.schedule.eta.at(0), 2),
        significant(forecast.horizon.cost.samples, 2),
    )
}

fn progress_chart(forecast: &Forecast, rounds: &[Round]) -> Chart {
    type Choose = fn(&Round) -> &Run;
    let methods: [(&str, Tone, Choose); 3] = [
        (CLASSICAL, Tone::Red, |round| &round.classical),
        (BOUNDED, Tone::Green, |round| &round.patient),
        (PASTA, Tone::Blue, |round| &round.pasta),
    ];
    let goal = forecast.goal();
    let mut series = Vec::new();
    for (name, tone, choose) in methods {
        let ratios =
            |run: &Run| run.trail.iter().map(|&(samples, measure)| (samples, measure / goal)).collect();
        let one = |shape| Series { name: name.into(), tone, shape };
        series.extend(rounds.iter().take(DRAWN).map(|round| one(Shape::Line(ratios(choose(round))))));
        let ends = rounds.iter().map(choose).filter(|run| run.diverged.is_none());
        let ends = ends.map(|run| (run.samples as f64, run.measure / goal)).collect();
        series.push(one(Shape::Points(ends)));
    }
    let calm = rounds.iter().flat_map(|round| [&round.pasta, &round.patient]);
    let measures = Spread::of(
        calm.filter(|run| run.diverged.is_none())
            .flat_map(|run| run.trail.iter().map(|&(_, measure)| measure / goal)),
    );
    Chart {
        id: "progress",
        title: "How the mean of |grad f|^2 develops".into(),
        caption: format!(
            "The mean of |grad f|^2 over the iterates so far, in units of eps^2, for {DRAWN} runs of each method; \
             the dots are the ends of all {} runs{}. The vertical line is as far as SGD with the \
             shorter step would have to go if no sample were noisier than at the start. PASTA starts further right \
             because its first step already takes a batch.",
            rounds.len(),
            if rounds.iter().any(|round| round.classical.diverged.is_some()) {
                ", but for those that diverged, which leave at the top"
            } else {
                ""
            },
        ),
        x: Axis { label: "samples".into(), scale: Scale::Log, range: None },
        y: Axis {
            label: "mean of |grad f|^2 so far, in units of eps^2".into(),
            scale: Scale::Log,
            // Room for the curves that stay, and some for the others to leave.
            range: measures.map(|spread| (0.3 * spread.least.min(1.0), 300.0 * spread.greatest)),
        },
        series,
        references: vec![
            Reference { label: "promise".into(), at: Where::Y(1.0) },
            Reference {
                label: "planned end of SGD".into(),
                at: Where::X(forecast.bounded.schedule.total_steps() as f64),
            },
        ],
    }
}

fn batch_chart(forecast: &Forecast, rounds: &[Round]) -> Chart {
    let sizes = |t: usize| rounds.iter().filter_map(move |round| round.batches.get(t)).map(|&n| n as f64);
    let steps = rounds.iter().map(|round| round.batches.len()).max().unwrap_or(0);
    // Steps are counted from 1, for the logarithm.
    let band = (0..steps)
        .filter_map(|t| Spread::of(sizes(t)).map(|n| ((t + 1) as f64, n.least, n.greatest)))
        .collect();
    let first = rounds.first().map_or(&[][..], |round| &round.batches);
    let line = first.iter().enumerate().map(|(t, &n)| ((t + 1) as f64, n as f64)).collect();
    let distance = forecast.oracle.objective().distance_to_minimiser(&[START]);
    let at_minimum = distance.and_then(|d| forecast.pasta.schedule.large.size(d * d).ok());
    Chart {
        id: "batches",
        title: "How the batches of PASTA follow the distance".into(),
        caption:
            "N_t, the number of samples averaged in a step. It grows as the iterate leaves the start and \
                  settles where the iterate does."
                .into(),
        x: Axis { label: "step".into(), scale: Scale::Log, range: None },
        y: Axis { label: "samples in the step".into(), scale: Scale::Linear, range: None },
        series: vec![
            Series {
                name: format!("least to greatest of {} runs", rounds.len()),
                tone: Tone::Blue,
                shape: Shape::Band(band),
            },
            Series { name: "one run".into(), tone: Tone::Blue, shape: Shape::Line(line) },
        ],
        references: at_minimum
            .map(|n| Reference {
                label: format!("batch at the minimum: {}", grouped(n.into())),
                at: Where::Y(n as f64),
            })
            .into_iter()
            .collect(),
    }
}
