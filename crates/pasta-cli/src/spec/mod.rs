//! Problem files: TOML in, a ready oracle and method out. Every complaint has a file, a line and what was expected.

mod certification;
mod method;
mod section;

use std::path::{Path, PathBuf};

use certification::read_certification;
pub(crate) use certification::{Certification, DELTA, Flown, PILOT, declared_noise, false_assumption};
use method::{Aim, read_method};
pub(crate) use method::{Method, proved_by};
use pasta_opt::algorithm::Pasta;
use pasta_opt::baseline::{Baseline, Settings};
use pasta_opt::certificate::Grade;
use pasta_opt::forecast::Forecast;
use pasta_opt::oracle::{Noise, NoiseError, Noisy, Tail};
use pasta_opt::problems::{self, Parameters};
use pasta_opt::walk::Walk;
use section::{Section, Source, line_at};
use toml_edit::{Document, DocumentMut, Item};

use pasta_report::console::Failure;
use pasta_report::console::flags::{MOST_THREADS, sample_count, seed, thread_count};

/// What a problem file says, with the flags that override it.
#[derive(Debug)]
pub(crate) struct Spec {
    pub(crate) seed: u64,
    pub(crate) threads: Option<usize>,
    pub(crate) budget: Option<u128>,
    pub(crate) output: Option<PathBuf>,
    pub(crate) oracle: Noisy,
    pub(crate) method: Method,
    /// How the run is to be certified, if it is.
    pub(crate) certification: Option<Certification>,
    /// The file with the overrides written into it: what `resume` reads.
    pub(crate) effective: String,
}

impl Spec {
    /// The walk that the file asks for, at its start; for another target of |grad f| and with another seed, if they
    /// are given.
    pub(crate) fn walk(&self, aim: Option<(f64, u64)>) -> Result<Box<dyn Walk + '_>, Failure> {
        let (oracle, x0) = (&self.oracle, self.oracle.start());
        let seed = aim.map_or(self.seed, |(_, seed)| seed);
        let schedule = match (&self.method, aim) {
            (Method::Baseline { settings: Settings { rule, steps, batch }, .. }, _) => {
                let run = Baseline::start(oracle, *rule, *steps, *batch, x0, seed);
                return Ok(Box::new(run.map_err(Failure::input)?));
            }
            (Method::Named { schedule, .. }, _) => schedule.clone(),
            (method @ Method::Recipe { plan, .. }, Some((target, _))) => {
                // A target too coarse for the recipe is run as the file says: finer than asked.
                let aimed = method.aimed_at(self.recipe_over_certificate() * target);
                aimed.ok().flatten().unwrap_or_else(|| plan.schedule.clone())
            }
            (Method::Recipe { plan, .. }, None) => plan.schedule.clone(),
        };
        // A coarse target has a short plan, which would end before it could be certified.
        let schedule = if aim.is_some() { schedule.endless() } else { schedule };
        Ok(Box::new(Pasta::start(oracle, schedule, x0, seed).map_err(Failure::input)?))
    }

    /// How the target of a recipe for the gradient compares to that of the certificate; 1 where there are not two.
    pub(crate) fn recipe_over_certificate(&self) -> f64 {
        let certificate = self.certification.map(|certification| certification.rule.target);
        self.method
            .gradient_target()
            .zip(certificate)
            .map_or(1.0, |(recipe, certificate)| recipe / certificate)
    }

    /// After how many samples the run will end, if that is known or forecast.
    pub(crate) fn likely_end(&self) -> Option<u128> {
        let forecast = self.certification.and_then(|certification| certification.flown?.forecast);
        self.budget.into_iter().chain(forecast.map(|forecast| forecast.middle as u128)).min()
    }

    /// Writes the forecast down, so that a resumed run has it too.
    pub(crate) fn set_forecast(&mut self, flown: Flown) -> Result<(), Failure> {
        let Some(certification) = &mut self.certification else { return Ok(()) };
        certification.flown = Some(flown);
        let mut document: DocumentMut = self.effective.parse().map_err(Failure::system)?;
        let table = &mut document["certificate"]["forecast"];
        *table = toml_edit::table();
        table["pilot"] = Item::Value(integer_or_float(flown.samples));
        if let Some(Forecast { low, middle, high }) = flown.forecast {
            for (key, value) in [("low", low), ("middle", middle), ("high", high)] {
                table[key] = toml_edit::value(value);
            }
        }
        self.effective = document.to_string();
        Ok(())
    }
}

/// A count as TOML can hold it.
fn integer_or_float(n: u128) -> toml_edit::Value {
    i64::try_from(n).map_or_else(|_| (n as f64).into(), i64::into)
}

/// What a problem file says of the problem alone: all it takes to draw samples.
#[derive(Debug)]
pub(crate) struct Problem {
    pub(crate) seed: u64,
    pub(crate) threads: Option<usize>,
    pub(crate) oracle: Noisy,
    /// Whether there is a table `certificate`.
    pub(crate) asks_for_certificate: bool,
}

/// Flags that override a file.
#[derive(Debug, Clone, Default, clap::Args)]
pub(crate) struct Overrides {
    /// Seed of all randomness (overrides the file; default 1).
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    #[arg(value_parser = seed())]
    pub(crate) seed: Option<u64>,
    /// Threads for batches that are drawn sample by sample; does not change a bit of the result.
    #[arg(long, allow_negative_numbers = true, value_name = "N", value_parser = thread_count())]
    pub(crate) threads: Option<u16>,
    /// Stop before drawing more samples than this.
    #[arg(long, allow_negative_numbers = true, value_name = "SAMPLES", value_parser = sample_count)]
    pub(crate) budget: Option<u128>,
    /// Target accuracy of the recipe.
    #[arg(long, allow_negative_numbers = true, value_name = "EPS")]
    pub(crate) target: Option<f64>,
    /// Stop when |grad f| <= EPS is certified by fresh samples (as the table certificate of the file does). A recipe
    /// that aims at a larger gradient aims at EPS instead, unless --target says otherwise.
    #[arg(long, allow_negative_numbers = true, value_name = "EPS")]
    pub(crate) certify: Option<f64>,
    /// What stands for the growth and floor of the table noise where they do not bound it.
    #[arg(skip)]
    pub(crate) undeclared: Option<Grade>,
    /// Folder for trace, checkpoint and result; a relative one is taken from where you are.
    #[arg(long, value_name = "DIR")]
    pub(crate) output: Option<PathBuf>,
}

/// Reads a problem file.
pub(crate) fn read(path: &Path, overrides: &Overrides) -> Result<Spec, Failure> {
    let (name, text) = load(path)?;
    parse(&name, &text, overrides)
}

/// Reads what a problem file says of the problem. It need not have a table `recipe`, and what it has is not looked at.
pub(crate) fn read_problem(path: &Path, overrides: &Overrides) -> Result<Problem, Failure> {
    let (name, text) = load(path)?;
    let document = open(&name, &text)?;
    problem(&root(&name, &text, &document)?, overrides)
}

fn load(path: &Path) -> Result<(String, String), Failure> {
    let name = path.display().to_string();
    let text = std::fs::read_to_string(path).map_err(|error| Failure::input(format!("{name}: {error}")))?;
    Ok((name, text))
}

fn open<'d>(file: &str, text: &'d str) -> Result<Document<&'d str>, Failure> {
    Document::parse(text).map_err(|error| {
        let line = error.span().map_or(1, |span| line_at(text, span.start));
        Failure::input(format!("{file}:{line}: {}", error.message()))
    })
}

fn root<'d>(file: &'d str, text: &'d str, document: &'d Document<&str>) -> Result<Section<'d>, Failure> {
    let source = Source { file, text };
    let root = Section { source, name: String::new(), table: document.as_table(), line: 1 };
    root.only(&["seed", "threads", "budget", "output", "problem", "noise", "recipe", "certificate"])?;
    Ok(root)
}

fn problem(root: &Section<'_>, overrides: &Overrides) -> Result<Problem, Failure> {
    let seed = overrides.seed.or(root.count("seed")?).unwrap_or(1);
    let threads = match root.count("threads")? {
        Some(n) if !(1..=u64::from(MOST_THREADS)).contains(&n) => {
            let message = format!("expected a whole number from 1 to {MOST_THREADS}, got {n}");
            return Err(root.complain("threads", &message));
        }
        file => overrides.threads.map(usize::from).or(file.map(|n| n as usize)),
    };
    let oracle = read_oracle(&root.section("problem")?, &root.section("noise")?)?;
    let asks_for_certificate = root.item("certificate").is_some();
    Ok(Problem { seed, threads, oracle, asks_for_certificate })
}

fn parse(file: &str, text: &str, overrides: &Overrides) -> Result<Spec, Failure> {
    let document = open(file, text)?;
    let root = root(file, text, &document)?;
    let budget = overrides.budget.or(root.samples("budget")?);
    let output = overrides.output.clone().or(root.text("output")?.map(PathBuf::from));
    let Problem { seed, threads, oracle, .. } = problem(&root, overrides)?;

    let recipe = root.section("recipe")?;
    let aim = overrides.target.map(|target| Aim { flag: "--target", target });
    let mut method = read_method(&recipe, &oracle, aim)?;
    let certificate = root.item("certificate").map(|_| root.section("certificate")).transpose()?;
    let certification = read_certification(certificate.as_ref(), &oracle, &method, overrides)?;
    let mut overrides = overrides.clone();
    // A recipe that aims at a coarser target than is to be certified would end too early.
    let coarser = |certified: &f64| method.gradient_target().is_some_and(|target| target > *certified);
    if let Some(certified) = overrides.certify.filter(coarser).filter(|_| overrides.target.is_none()) {
        overrides.target = Some(certified);
        method = read_method(&recipe, &oracle, Some(Aim { flag: "--certify", target: certified }))?;
    }
    let effective = write_overrides(document, &overrides);
    Ok(Spec { seed, threads, budget, output, oracle, method, certification, effective })
}

/// Writes the flags into the file's text, so that resuming needs no flags. The copy is kept in the output
/// folder, wherever that may be moved to, and names none.
fn write_overrides(document: Document<&str>, overrides: &Overrides) -> String {
    let mut document = document.into_mut();
    document.remove("output");
    let mut set = |key: &str, value: Option<toml_edit::Value>| {
        if let Some(value) = value {
            document.insert(key, Item::Value(value));
        }
    };
    set("seed", overrides.seed.map(|n| (n as i64).into()));
    set("threads", overrides.threads.map(|n| i64::from(n).into()));
    set("budget", overrides.budget.map(integer_or_float));
    if let (Some(target), Some(recipe)) =
        (overrides.target, document.get_mut("recipe").and_then(Item::as_table_like_mut))
    {
        recipe.insert("target", Item::Value(target.into()));
    }
    if let Some(target) = overrides.certify {
        document.entry("certificate").or_insert(toml_edit::table())["target"] = toml_edit::value(target);
    }
    document.to_string()
}

fn read_oracle(problem: &Section<'_>, noise: &Section<'_>) -> Result<Noisy, Failure> {
    let name = problem.required_text("name", "the name of a problem")?;
    let parameters: Parameters = problem
        .keys()
        .filter(|key| !["name", "start"].contains(key))
        .map(|key| Ok((key.to_owned(), problem.parameter(key)?)))
        .collect::<Result<_, Failure>>()?;
    let objective = problems::build(name, &parameters).map_err(|error| {
        let key = error.parameter().unwrap_or("name").to_owned();
        problem.complain(&key, &error.to_string())
    })?;
    let start = problem.start(objective.dim())?;

    let tail_name = noise.required_text("tail", "gaussian, student-t, lognormal or two-point")?;
    let (tail, own) = match tail_name {
        "gaussian" => (Tail::Gaussian, None),
        "student-t" => (Tail::StudentT { dof: noise.required("dof")? }, Some("dof")),
        "lognormal" => (Tail::Lognormal { sigma: noise.required("sigma")? }, Some("sigma")),
        "two-point" => (Tail::TwoPoint { probability: noise.required("probability")? }, Some("probability")),
        other => {
            let expected = format!("expected gaussian, student-t, lognormal or two-point, got {other:?}");
            return Err(noise.complain("tail", &expected));
        }
    };
    let known: Vec<_> = ["tail", "growth", "floor", "exponent"].into_iter().chain(own).collect();
    noise.only(&known)?;
    let law = Noise { growth: noise.required("growth")?, floor: noise.required("floor")?, tail };
    let mut oracle = Noisy::new(objective, law, start).map_err(|error| match error {
        NoiseError::Constant { name, needs, got } => {
            noise.complain(name, &format!("expected {needs}, got {got}"))
        }
        NoiseError::Dimension { .. } => problem.complain("start", &error.to_string()),
    })?;
    match noise.number("exponent")? {
        Some(exponent) if !(exponent.is_finite() && exponent >= 0.0) => {
            let expected = format!("expected a finite number, at least 0, got {exponent}");
            return Err(noise.complain("exponent", &expected));
        }
        exponent => oracle.exponent = exponent.unwrap_or(oracle.exponent),
    }
    Ok(oracle)
}
