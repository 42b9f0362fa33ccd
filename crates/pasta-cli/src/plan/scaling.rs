//! `pasta plan .. --ranks N`: how long a run takes on many machines, and how wide its steps should be there.
//!
//! The target variance sigma^2 is a dial: a small one makes few steps of large batches, which many ranks share well; a large
//! one makes many steps, each of which costs an exchange of messages. The model is documented in `docs/scaling.md`.

use std::path::{Path, PathBuf};

use clap::Args;
use pasta_opt::recipe::{Constant, Constants, Plan, RecipeError, RecipeRow, TABLE};
use pasta_opt::schedule::BatchRule;
use pasta_report::console::flags::{count, number};
use pasta_report::console::{self, Exit, Failure, Report};
use pasta_report::number::{digits, real, short, significant};
use pasta_report::{Axis, Chart, Column, Reference, Series, Shape, Table, Tone};
use serde::{Deserialize, Serialize};

use crate::world;

const HEADING: &str = "Many machines (docs/scaling.md has the model)";

/// The machines that a run is planned for.
#[derive(Debug, Args)]
pub(super) struct MachineFlags {
    /// Processes of MPI: how long the run takes on them, and which sigma^2 makes it shortest
    #[arg(long, value_name = "N", help_heading = HEADING, allow_hyphen_values = true, value_parser = count)]
    pub(super) ranks: Option<u64>,
    /// Seconds that one rank takes for one sample
    #[arg(long, value_name = "SECONDS", help_heading = HEADING, requires = "ranks")]
    #[arg(allow_hyphen_values = true, value_parser = number)]
    seconds_per_sample: Option<f64>,
    /// Seconds that a message takes, however short
    #[arg(long, value_name = "SECONDS", help_heading = HEADING, requires = "ranks", default_value = "2e-6")]
    #[arg(allow_hyphen_values = true, value_parser = number)]
    latency: f64,
    /// Bytes a second that one rank sends or receives
    #[arg(long, value_name = "BYTES", help_heading = HEADING, requires = "ranks", default_value = "1e10")]
    #[arg(allow_hyphen_values = true, value_parser = number)]
    bandwidth: f64,
    /// Coordinates of x
    #[arg(long, value_name = "D", help_heading = HEADING, requires = "ranks", default_value = "100")]
    #[arg(allow_hyphen_values = true, value_parser = count)]
    dimension: u64,
    /// Instead of a regime: the batches of a run that was made, from its trace.jsonl
    #[arg(long, value_name = "TRACE", help_heading = HEADING, requires = "ranks", conflicts_with_all = ["regime", "all"])]
    pub(super) replay: Option<PathBuf>,
    /// Draw the time over sigma^2 into this SVG file
    #[arg(long, value_name = "FILE", help_heading = HEADING, requires = "ranks", conflicts_with = "replay")]
    figure: Option<PathBuf>,
}

/// What the model knows of a machine.
#[derive(Debug, Clone, Copy, Serialize)]
struct Machine {
    seconds_per_sample: f64,
    latency: f64,
    bandwidth: f64,
    dimension: u64,
}

/// Samples that are added one after another, and never divided between ranks.
const BLOCK: f64 = 8.0;
/// Words of a report and a verdict besides their sums, and partial sums in a report in the mean.
const WORDS: f64 = 24.0;
const PIECES: f64 = 4.0;
/// A share may be so much larger than the mean: cuts are where nodes of the tree are large.
const UNEVEN: f64 = 1.0 / 16.0;

impl Machine {
    /// Seconds of an exchange: up a binomial tree and down again, one message after another.
    fn exchange(&self, ranks: f64) -> f64 {
        let levels = ranks.log2().ceil();
        let words = WORDS + (PIECES + 1.0) * self.dimension as f64;
        levels * (2.0 * self.latency + 8.0 * words / self.bandwidth)
    }

    /// Seconds of a step: shared, or done by every rank where that is shorter.
    fn step(&self, ranks: f64, batch: f64) -> f64 {
        let alone = batch * self.seconds_per_sample;
        if ranks <= 1.0 {
            return alone;
        }
        let leaves = (batch / BLOCK).ceil();
        // Beyond a leaf for each rank, more ranks have nothing to do.
        let fair = (leaves / ranks).max(1.0);
        let most = if fair > 1.0 { (fair * (1.0 + UNEVEN)).min(fair.ceil()).max(fair) } else { fair };
        let share = (most * BLOCK).min(batch);
        (share * self.seconds_per_sample + self.exchange(ranks)).min(alone)
    }
}

impl MachineFlags {
    fn machine(&self) -> Result<(u64, Machine), Failure> {
        let positive = |name: &str, value: f64| {
            if value > 0.0 && value.is_finite() {
                return Ok(value);
            }
            Err(Failure::input(format!("--{name} must be positive and finite, but is {value}")))
        };
        let ranks = self.ranks.unwrap_or(1);
        if !(1..=MOST_RANKS).contains(&ranks) {
            return Err(Failure::input(format!("--ranks must be from 1 to {MOST_RANKS}, but is {ranks}")));
        }
        let Some(seconds) = self.seconds_per_sample else {
            let hint = "measure it: the seconds that `pasta calibrate` takes, divided by its samples";
            return Err(Failure::input("how long does a sample take? give --seconds-per-sample").hint(hint));
        };
        if !(self.latency >= 0.0 && self.latency.is_finite()) {
            let message = format!("--latency must be finite and not negative, but is {}", self.latency);
            return Err(Failure::input(message));
        }
        let machine = Machine {
            seconds_per_sample: positive("seconds-per-sample", seconds)?,
            latency: self.latency,
            bandwidth: positive("bandwidth", self.bandwidth)?,
            dimension: self.dimension.max(1),
        };
        Ok((ranks, machine))
    }
}

/// Beyond that the model knows nothing.
const MOST_RANKS: u64 = 1_000_000;

/// Powers of ten below the number of ranks, and it.
fn ladder(ranks: u64) -> Vec<u64> {
    let below = std::iter::successors(Some(1), |n: &u64| Some(n * 10)).take_while(|n| *n < ranks);
    below.chain([ranks]).collect()
}

/// A regime on many machines.
#[derive(Serialize)]
struct Scaling {
    recipe: &'static str,
    machine: Machine,
    /// sigma^2 where nothing is said about it.
    usual_variance: f64,
    on: Vec<OnRanks>,
}

/// The shortest run on so many ranks.
#[derive(Serialize)]
struct OnRanks {
    ranks: u64,
    variance: f64,
    steps: f64,
    samples: f64,
    batch: f64,
    seconds: f64,
    /// With the usual sigma^2.
    usual_seconds: f64,
    /// Over one rank, each with its best sigma^2.
    speedup: f64,
}

/// A plan for one sigma^2.
struct Setting {
    variance: f64,
    steps: f64,
    samples: f64,
}

impl Setting {
    fn of(variance: f64, plan: &Plan) -> Self {
        Self { variance, steps: plan.schedule.total_steps() as f64, samples: plan.cost.samples }
    }

    fn batch(&self) -> f64 {
        (self.samples / self.steps).max(1.0)
    }

    fn seconds(&self, machine: &Machine, ranks: f64) -> f64 {
        self.steps * machine.step(ranks, self.batch())
    }
}

/// Settings of sigma^2 tried: so many for each factor of ten, as far as there are plans.
const PER_DECADE: i32 = 24;
const DECADES: i32 = 8;

/// Plans a regime for many machines.
pub(super) fn run(
    row: &RecipeRow,
    constants: &Constants,
    flags: &MachineFlags,
    as_json: bool,
) -> Result<Exit, Failure> {
    let (ranks, machine) = flags.machine()?;
    if !row.takes.contains(&Constant::Variance) {
        let able = TABLE.iter().filter(|row| row.takes.contains(&Constant::Variance)).map(|row| row.name);
        let message =
            format!("{}: has no sigma^2 to choose, so more ranks change only the time of a step", row.name);
        let hint = format!(
            "the regimes with one are {}; any run can be replayed with --replay TRACE",
            able.collect::<Vec<_>>().join(", ")
        );
        return Err(Failure::input(message).hint(hint));
    }
    if constants.get(Constant::Variance).is_some() {
        return Err(Failure::input("--variance cannot be used with --ranks, which looks for the best one"));
    }
    let constants = row.relevant(constants);
    let usual = row.plan(&constants).map_err(Failure::input)?;
    let BatchRule::Drift { target_variance, .. } = usual.schedule.large else {
        return Err(Failure::input(format!("{}: its batches do not follow sigma^2", row.name)));
    };
    let settings = settings(row, &constants, target_variance);
    let usual = Setting::of(target_variance, &usual);
    let best = |ranks: u64| {
        let time = |setting: &Setting| setting.seconds(&machine, ranks as f64);
        // Where the time is the same, the fewer samples.
        let order = |one: &&Setting, other: &&Setting| {
            time(one).total_cmp(&time(other)).then(one.samples.total_cmp(&other.samples))
        };
        settings.iter().min_by(order).unwrap_or(&usual)
    };
    let alone = best(1).seconds(&machine, 1.0);
    let on = |ranks: u64| {
        let setting = best(ranks);
        let seconds = setting.seconds(&machine, ranks as f64);
        OnRanks {
            ranks,
            variance: setting.variance,
            steps: setting.steps,
            samples: setting.samples,
            batch: setting.batch(),
            seconds,
            usual_seconds: usual.seconds(&machine, ranks as f64),
            speedup: alone / seconds,
        }
    };
    let on: Vec<OnRanks> = ladder(ranks).into_iter().map(on).collect();
    let scaling = Scaling { recipe: row.name, machine, usual_variance: target_variance, on };
    if let Some(file) = &flags.figure {
        crate::table::check_folder("--figure", file)?;
        draw(file, &scaling, &settings)?;
    }
    console::print(&scaling, as_json)
}

/// The plans for sigma^2 around the usual one, as far as there are any.
fn settings(row: &RecipeRow, constants: &Constants, usual: f64) -> Vec<Setting> {
    let plan = |i: i32| -> Result<Setting, RecipeError> {
        let variance = usual * 10f64.powf(f64::from(i) / f64::from(PER_DECADE));
        let mut constants = *constants;
        constants.set(Constant::Variance, variance);
        row.plan(&constants).map(|plan| Setting::of(variance, &plan))
    };
    (-DECADES * PER_DECADE..=DECADES * PER_DECADE).filter_map(|i| plan(i).ok()).collect()
}

impl Report for Scaling {
    fn text(&self) -> String {
        let names = ["ranks", "sigma^2", "steps", "batch", "time", "speed-up", "time at usual sigma^2"];
        let columns = Column::all(b"rrrrrrr", names);
        let rows = self.on.iter().map(|on| {
            vec![
                short(on.ranks as f64),
                digits(on.variance, 3),
                short(on.steps),
                short(on.batch),
                time(on.seconds),
                significant(on.speedup, 3),
                time(on.usual_seconds),
            ]
        });
        let table = Table { caption: String::new(), columns, rows: rows.collect() };
        let Machine { seconds_per_sample, latency, bandwidth, dimension } = self.machine;
        let last = self.on.last().map_or_else(String::new, |on| {
            format!("On {} ranks the run is shortest with --variance {}.", on.ranks, digits(on.variance, 3))
        });
        format!(
            "{}: the sigma^2 that makes the worst case shortest (usual: {})\n\n{}\n{} a sample, {} a message, {} bytes/s, {dimension} coordinates\n{last}",
            self.recipe,
            digits(self.usual_variance, 3),
            table.text(),
            time(seconds_per_sample),
            time(latency),
            real(bandwidth),
        )
    }
}

/// Seconds in a unit that makes them readable.
fn time(seconds: f64) -> String {
    const UNITS: [(f64, &str); 7] = [
        (86400.0 * 365.25, "years"),
        (86400.0, "days"),
        (3600.0, "h"),
        (60.0, "min"),
        (1.0, "s"),
        (1e-3, "ms"),
        (1e-6, "us"),
    ];
    let (unit, name) = UNITS.into_iter().find(|(unit, _)| seconds >= *unit).unwrap_or((1e-9, "ns"));
    format!("{} {name}", significant(seconds / unit, 3))
}

fn draw(file: &Path, scaling: &Scaling, settings: &[Setting]) -> Result<(), Failure> {
    const TONES: [Tone; 5] = [Tone::Grey, Tone::Blue, Tone::Green, Tone::Pink, Tone::Red];
    let Scaling { recipe, machine, usual_variance, on } = scaling;
    let shown = &on[on.len().saturating_sub(TONES.len())..];
    let mut series = Vec::new();
    for (on, tone) in shown.iter().zip(TONES) {
        let curve = settings.iter().map(|s| (s.variance, s.seconds(machine, on.ranks as f64))).collect();
        let name = format!("{} ranks", short(on.ranks as f64));
        series.push(Series::new(name.clone(), tone, Shape::Line(curve)));
        series.push(Series::new(name, tone, Shape::Points(vec![(on.variance, on.seconds)])));
    }
    let (low, high) = shown.iter().fold((f64::INFINITY, 0.0f64), |(low, high), on| {
        (low.min(on.variance.min(*usual_variance)), high.max(on.variance.max(*usual_variance)))
    });
    let times = shown.iter().flat_map(|on| [on.seconds, on.usual_seconds]);
    let (short, long) = times.fold((f64::INFINITY, 0.0f64), |(low, high), t| (low.min(t), high.max(t)));
    let chart = Chart {
        id: "scaling",
        title: format!("{recipe}: time of the worst case over sigma^2"),
        caption: "Dots are the best sigma^2 for each number of ranks.".into(),
        x: Axis::log("target variance sigma^2").within(low / 100.0, high * 100.0),
        y: Axis::log("seconds").within(short / 3.0, long * 100.0),
        series,
        references: vec![Reference::x("usual", *usual_variance)],
    };
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let Some(name) = file.file_name().and_then(|name| name.to_str()) else {
        return Err(Failure::input(format!("--figure: {} is not the name of a file", file.display())));
    };
    pasta_report::write(folder, name, chart.svg()?).map(drop)
}

/// What is read of a line of a trace.
#[derive(Deserialize)]
struct Line {
    event: String,
    step: Option<u64>,
    samples: Option<u128>,
}

/// A run that was made, on many machines.
#[derive(Serialize)]
struct Replay {
    trace: String,
    machine: Machine,
    steps: u64,
    samples: f64,
    on: Vec<Replayed>,
}

#[derive(Serialize)]
struct Replayed {
    ranks: u64,
    seconds: f64,
    speedup: f64,
    /// Over the speed-up of machines without messages and blocks.
    efficiency: f64,
}

/// Replays the batches of a run that was made.
pub(super) fn replay(trace: &Path, flags: &MachineFlags, as_json: bool) -> Result<Exit, Failure> {
    let (ranks, machine) = flags.machine()?;
    let name = trace.display().to_string();
    let text = world::read_to_string(trace).map_err(|error| Failure::input(error).in_file(&name))?;
    let mut stretches = Vec::new();
    let mut before = (0, 0);
    for (i, line) in text.lines().enumerate() {
        let line: Line = serde_json::from_str(line).map_err(|error| {
            Failure::input(format!("not a line of a trace: {error}")).in_file(&name).at_line(i + 1)
        })?;
        if let (true, Some(step), Some(samples)) = (line.event == "step", line.step, line.samples) {
            if step <= before.0 || samples < before.1 {
                let message = "steps and samples of a trace only grow";
                return Err(Failure::input(message).in_file(&name).at_line(i + 1));
            }
            // Between two lines batches change little: a trace has 64 for every doubling.
            let steps = (step - before.0) as f64;
            stretches.push((steps, (samples - before.1) as f64 / steps));
            before = (step, samples);
        }
    }
    if stretches.is_empty() {
        return Err(Failure::input("a trace without steps").in_file(&name));
    }
    let seconds = |ranks: u64| {
        stretches.iter().map(|(steps, batch)| steps * machine.step(ranks as f64, *batch)).sum::<f64>()
    };
    let alone = seconds(1);
    let on = ladder(ranks).into_iter().map(|ranks| {
        let seconds = seconds(ranks);
        Replayed { ranks, seconds, speedup: alone / seconds, efficiency: alone / seconds / ranks as f64 }
    });
    let replay = Replay { trace: name, machine, steps: before.0, samples: before.1 as f64, on: on.collect() };
    console::print(&replay, as_json)
}

impl Report for Replay {
    fn text(&self) -> String {
        let columns = Column::all(b"rrrr", ["ranks", "time", "speed-up", "efficiency"]);
        let rows = self.on.iter().map(|on| {
            let numbers = [significant(on.speedup, 3), significant(on.efficiency, 2)];
            [vec![short(on.ranks as f64), time(on.seconds)], numbers.to_vec()].concat()
        });
        let table = Table { caption: String::new(), columns, rows: rows.collect() };
        let (steps, batch) = (self.steps, self.samples / self.steps as f64);
        format!(
            "{}: {} steps of {} samples in the mean\n\n{}",
            self.trace,
            short(steps as f64),
            short(batch),
            table.text()
        )
    }
}

#[cfg(test)]
mod tests {
    use super::{Machine, ladder, time};

    const MACHINE: Machine =
        Machine { seconds_per_sample: 1e-6, latency: 2e-6, bandwidth: 1e10, dimension: 10 };

    #[test]
    fn a_step_is_shared_only_where_that_is_shorter_and_never_beyond_a_block() {
        // One sample a step: nothing can be shared, and no message is sent.
        assert_eq!(MACHINE.step(1000.0, 1.0), 1e-6);
        // Ten thousand on two ranks: half of them, up to 1/16 more, and one message each way.
        let two = MACHINE.step(2.0, 1e4);
        assert!((5e-3..5.32e-3).contains(&two), "{two}");
        // On so many ranks that each has a block: eight samples and the messages.
        let many = MACHINE.step(1e6, 1e4);
        assert!((many - (8e-6 + MACHINE.exchange(1e6))).abs() < 1e-12, "{many}");
        // More ranks never make a step longer than one rank alone.
        for ranks in [2.0, 10.0, 1e3, 1e5] {
            assert!(MACHINE.step(ranks, 50.0) <= MACHINE.step(1.0, 50.0));
        }
    }

    #[test]
    fn ladders_end_where_they_should_and_times_have_units() {
        assert_eq!(ladder(1), [1]);
        assert_eq!(ladder(2500), [1, 10, 100, 1000, 2500]);
        assert_eq!(
            (time(7200.0), time(3.5e-6), time(1e9)),
            ("2.00 h".into(), "3.50 us".into(), "31.7 years".into())
        );
    }
}
