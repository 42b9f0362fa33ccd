//! `pasta-lab forecast`: how often the range of a forecast holds, setting by setting and for each family of methods.

mod settings;

use std::fs;
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use pasta_opt::forecast::{Family, Forecast, Pilot};
use pasta_opt::gate::Gate;
use pasta_opt::prelude::{Stop, StopRule, Walk};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use self::settings::{SETTINGS, Set, Setting};
use pasta_report::console::{self, Bar, Exit, Failure, Report};
use pasta_report::{Column, Table, significant};

/// Forecast certified runs, make them, and count how often the range held
///
/// A setting is a function with its noise, a method and a target. For every seed a pilot of 100,000 samples makes a forecast or stays
/// silent, and the run is made, to its certificate. The model was chosen on the settings `dev`; those that were kept back were fixed before any of
/// them was run.
#[derive(Args)]
pub(crate) struct Arguments {
    /// Which settings: those that the model was chosen on, those that were kept back, or all
    #[arg(long, value_name = "SET", default_value = "dev")]
    settings: Chosen,
    /// Only settings whose names contain this
    #[arg(long, value_name = "TEXT")]
    only: Option<String>,
    /// Runs of each setting
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u64).range(1..=1000))]
    seeds: u64,
    /// Seed of the first run; the others count up from it
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// File with pilots and runs, which is read if it is there, and written: they do not change while the model does
    #[arg(long, value_name = "FILE")]
    runs: Option<PathBuf>,
    /// Print one JSON object, in full precision, instead of the tables
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Chosen {
    Dev,
    KeptBack,
    All,
}

/// Samples of a pilot, and the most of a run.
const PILOT: u128 = 100_000;
const MOST: u128 = 300_000_000;
const DELTA: f64 = 0.05;
const SHARE: f64 = 0.5;

/// A pilot, and what the run took.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct PilotedRun {
    setting: String,
    seed: u64,
    pilot: Pilot,
    /// Null if it was not certified within 300 million samples.
    samples: Option<u64>,
    /// The run as its own pilot, at the moments at which it is forecast.
    own: Vec<Pilot>,
}

/// Runs `pasta-lab forecast`.
pub(crate) fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    let Arguments { settings, only, seeds, seed, runs, json } = arguments;
    let chosen: Vec<&Setting> = SETTINGS
        .iter()
        .filter(|setting| match settings {
            Chosen::Dev => setting.set == Set::Development,
            Chosen::KeptBack => setting.set == Set::KeptBack,
            Chosen::All => true,
        })
        .filter(|setting| only.as_ref().is_none_or(|only| setting.name.contains(only.as_str())))
        .collect();
    if chosen.is_empty() {
        return Err(Failure::input("--only: no name of a setting contains that"));
    }
    let known = match runs {
        Some(file) if file.exists() => {
            let text = fs::read_to_string(file).map_err(Failure::system)?;
            serde_json::from_str(&text)
                .map_err(|error| Failure::input(error).in_file(file.display().to_string()))?
        }
        _ => Vec::new(),
    };
    let done = run_all(&chosen, *seed..*seed + *seeds, known)?;
    if let Some(file) = runs {
        let text = serde_json::to_string(&done).map_err(Failure::system)?;
        pasta_report::write_file(file, text)?;
    }
    console::print(&Judged::new(&chosen, &done)?, *json)
}

/// What is not known yet.
fn run_all(
    chosen: &[&Setting],
    seeds: std::ops::Range<u64>,
    known: Vec<PilotedRun>,
) -> Result<Vec<PilotedRun>, Failure> {
    let is_known = |setting: &Setting, seed: u64| {
        known.iter().any(|done| done.setting == setting.name && done.seed == seed)
    };
    let missing: Vec<(&Setting, u64)> = chosen
        .iter()
        .flat_map(|setting| seeds.clone().map(move |seed| (*setting, seed)))
        .filter(|(setting, seed)| !is_known(setting, *seed))
        .collect();
    let progress = Bar::of(missing.len() as u64);
    let new: Result<Vec<PilotedRun>, Failure> = missing
        .par_iter()
        .map(|(setting, seed)| {
            let done = one(setting, *seed);
            progress.done(1);
            done
        })
        .collect();
    drop(progress);
    Ok(known.into_iter().chain(new?).collect())
}

fn one(setting: &Setting, seed: u64) -> Result<PilotedRun, Failure> {
    let ready = setting.ready()?;
    let rule = StopRule { target: setting.target, delta: DELTA, basis: ready.basis, share: SHARE };
    let mut gate = Gate::over(ready.oracle.clone(), seed);
    let walk = |gate: &Gate, target| setting.walk(&ready, gate, target);
    let pilot = Pilot::run(&mut gate, &ready.start, rule, PILOT, walk).map_err(Failure::system)?;
    let mut gate = Gate::over(ready.oracle.clone(), seed).with_budget(MOST);
    let certified = walk(&gate, setting.target)?.certified(&gate, rule).map_err(Failure::system)?;
    let (mut own, mut next) = (Vec::new(), 1000);
    let certified = certified.tee(|_, view, ledger| {
        if ledger.samples() >= next
            && let Some(pilot) = Pilot::of_run(view, ledger, rule)
        {
            own.push(pilot);
            next = 4 * ledger.samples();
        }
    });
    let end = certified.finish(&mut gate).map_err(Failure::system)?;
    let samples = (end.stop == Stop::Certified).then(|| end.ledger.samples() as u64);
    Ok(PilotedRun { setting: setting.name.to_owned(), seed, pilot, samples, own })
}

/// All settings together.
#[derive(Debug, Serialize)]
struct Judged {
    rows: Vec<SettingRow>,
    families: Vec<Total>,
}

/// One setting.
#[derive(Debug, Serialize)]
struct SettingRow {
    setting: &'static str,
    set: &'static str,
    method: &'static str,
    /// Runs, those with a forecast, and those of them that ended within its range.
    runs: usize,
    forecast: usize,
    held: usize,
    /// Runs that took less than the low end, and more than the high one.
    below: usize,
    above: usize,
    /// What the runs took, the median.
    samples: f64,
    /// Medians: of what a run took over the middle of its forecast, and of the high end over the low one.
    ratio: Option<f64>,
    width: Option<f64>,
    /// Why there was no forecast, once.
    silent: Option<String>,
    /// Forecasts that runs made of themselves.
    own: Own,
}

/// Forecasts that runs made of themselves while they went on.
#[derive(Debug, Default, Serialize)]
struct Own {
    /// Runs that made one, and those whose first one held.
    runs: usize,
    first_held: usize,
    first_below: usize,
    first_above: usize,
    /// All forecasts of all runs, and those that held.
    forecasts: usize,
    held: usize,
    /// Medians: the share of its samples that a run had drawn at its first one; what it took over the middle; high over low.
    drawn: Option<f64>,
    ratio: Option<f64>,
    width: Option<f64>,
}

impl Own {
    fn of(done: &[&PilotedRun], target: f64) -> Self {
        let mut own = Self::default();
        let (mut drawn, mut ratios, mut widths) = (Vec::new(), Vec::new(), Vec::new());
        for PilotedRun { own: pilots, samples, .. } in done {
            let samples = samples.map_or(f64::INFINITY, |samples| samples as f64);
            let made = pilots.iter().filter_map(|pilot| Some((pilot, pilot.forecast(target).ok()?)));
            for (i, (pilot, forecast)) in made.enumerate() {
                let Forecast { low, middle, high, .. } = forecast.given(pilot.samples as f64);
                let held = usize::from((low..=high).contains(&samples));
                own.forecasts += 1;
                own.held += held;
                if i == 0 {
                    own.runs += 1;
                    own.first_held += held;
                    own.first_below += usize::from(samples < low);
                    own.first_above += usize::from(samples > high);
                    drawn.push(pilot.samples as f64 / samples);
                    ratios.push(samples / middle);
                    widths.push(high / low);
                }
            }
        }
        (own.drawn, own.ratio, own.width) = (median(drawn), median(ratios), median(widths));
        own
    }
}

#[derive(Debug, Serialize)]
struct Total {
    family: Family,
    settings: usize,
    runs: usize,
    forecast: usize,
    held: usize,
    /// Settings whose range held in fewer than 60 % of the runs that had one.
    poor: usize,
}

fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
}

impl Judged {
    fn new(chosen: &[&Setting], done: &[PilotedRun]) -> Result<Self, Failure> {
        let rows: Result<Vec<SettingRow>, Failure> =
            chosen.par_iter().map(|setting| SettingRow::new(setting, done)).collect();
        let rows = rows?;
        let families = Family::ALL
            .into_iter()
            .map(|family| {
                let of: Vec<&SettingRow> =
                    rows.iter().filter(|row| Family::of(row.method) == Some(family)).collect();
                let sum = |count: fn(&SettingRow) -> usize| of.iter().map(|row| count(row)).sum();
                Total {
                    family,
                    settings: of.len(),
                    runs: sum(|row| row.runs),
                    forecast: sum(|row| row.forecast),
                    held: sum(|row| row.held),
                    poor: of.iter().filter(|row| row.is_poor()).count(),
                }
            })
            .collect();
        Ok(Self { rows, families })
    }
}

impl SettingRow {
    fn new(setting: &Setting, done: &[PilotedRun]) -> Result<Self, Failure> {
        let mine: Vec<&PilotedRun> = done.iter().filter(|done| done.setting == setting.name).collect();
        let mut row = Self {
            setting: setting.name,
            set: if setting.set == Set::Development { "dev" } else { "kept back" },
            method: setting.ready()?.method,
            runs: mine.len(),
            forecast: 0,
            held: 0,
            below: 0,
            above: 0,
            samples: 0.0,
            ratio: None,
            width: None,
            silent: None,
            own: Own::of(&mine, setting.target),
        };
        let (mut ratios, mut widths, mut all) = (Vec::new(), Vec::new(), Vec::new());
        for PilotedRun { pilot, samples, .. } in mine {
            let samples = samples.map_or(f64::INFINITY, |samples| samples as f64);
            all.push(samples);
            match pilot.forecast(setting.target) {
                Ok(Forecast { low, middle, high, .. }) => {
                    row.forecast += 1;
                    row.held += usize::from((low..=high).contains(&samples));
                    row.below += usize::from(samples < low);
                    row.above += usize::from(samples > high);
                    ratios.push(samples / middle);
                    widths.push(high / low);
                }
                Err(silence) => row.silent = Some(silence.to_string()),
            }
        }
        (row.samples, row.ratio, row.width) =
            (median(all).unwrap_or(f64::NAN), median(ratios), median(widths));
        Ok(row)
    }

    fn is_poor(&self) -> bool {
        10 * self.held < 6 * self.forecast
    }
}

impl Report for Judged {
    fn text(&self) -> String {
        let number = |value: Option<f64>| value.map_or_else(String::new, |value| significant(value, 2));
        let rows = self.rows.iter().map(|row| {
            vec![
                row.setting.to_owned(),
                significant(row.samples, 2),
                format!("{} of {}", row.held, row.forecast),
                format!("{}/{}", row.below, row.above),
                number(row.ratio),
                number(row.width),
                row.silent.clone().unwrap_or_default(),
            ]
        });
        let settings = Table {
            caption: "Settings".into(),
            columns: Column::all(
                b"lrrrrrl",
                ["setting", "samples", "held", "below/above", "over the middle", "high/low", "silent"],
            ),
            rows: rows.collect(),
        };
        let rows = self.rows.iter().map(|row| {
            let Own { runs, first_held, first_below, first_above, forecasts, held, drawn, ratio, width } =
                row.own;
            vec![
                row.setting.to_owned(),
                significant(row.samples, 2),
                format!("{first_held} of {runs}"),
                format!("{first_below}/{first_above}"),
                format!("{held} of {forecasts}"),
                number(drawn),
                number(ratio),
                number(width),
            ]
        });
        let own = Table {
            caption: "Runs that forecast themselves".into(),
            columns: Column::all(
                b"lrrrrrrr",
                [
                    "setting",
                    "samples",
                    "first held",
                    "below/above",
                    "all held",
                    "drawn",
                    "over the middle",
                    "high/low",
                ],
            ),
            rows: rows.collect(),
        };
        let rows = self.families.iter().map(|total| {
            let share = 100.0 * total.held as f64 / total.forecast.max(1) as f64;
            vec![
                total.family.name().to_owned(),
                total.settings.to_string(),
                format!("{} of {}", total.forecast, total.runs),
                format!("{} of {} ({share:.0} %)", total.held, total.forecast),
                total.poor.to_string(),
            ]
        });
        let families = Table {
            caption: "Families".into(),
            columns: Column::all(b"lrrrr", ["family", "settings", "forecast", "held", "below 60 %"]),
            rows: rows.collect(),
        };
        format!("{}\n{}\n{}", settings.text(), own.text(), families.text())
    }
}
