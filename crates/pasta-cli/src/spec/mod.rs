//! Problem files: TOML in, a ready oracle and method out. Every complaint has a file, a line and what was expected.

mod certification;
mod method;
#[cfg(test)]
mod mutations;
mod pipe;
mod problem;
mod section;
mod table;
mod term;
pub(crate) mod trust;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use certification::{Certification, read_certification, read_gamma};
use method::{Aim, FALLBACK, Read, read_method};
use pasta_opt::certificate::Basis;
use pasta_opt::forecast::{Price, PriceError};
use pasta_opt::gate::{Gate, OnNan};
use pasta_opt::run::{AUTO, Chosen, Target, Task};
use pasta_opt::walk::{StopRule, Walk};
pub(crate) use pipe::{QuickTry, Simulated};
pub(crate) use problem::Problem;
use problem::read_problem;
use section::{Section, Source, line_at};
use table::{FILES, TABLE, read_table};
use term::{Ends, PROJECT, TERM, read_terms};
use toml_edit::{Document, Item};
use trust::Origin;

use crate::world;
use pasta_report::console::Failure;
use pasta_report::console::flags::{MOST_THREADS, sample_count, seed, thread_count};

/// What a problem file says, with the flags that override it.
#[derive(Debug)]
pub(crate) struct Spec {
    pub(crate) threads: Option<usize>,
    pub(crate) output: Option<PathBuf>,
    pub(crate) problem: Problem,
    pub(crate) task: Task,
    pub(crate) method: Chosen,
    /// What a sample costs, if that is known.
    pub(crate) price: Option<Price>,
    /// The file with the overrides written into it: what `resume` reads.
    pub(crate) effective: String,
}

impl Spec {
    /// The method of a pilot for another target of |grad f|.
    pub(crate) fn walk_to(&self, gate: &Gate, target: f64) -> Result<Box<dyn Walk>, Failure> {
        let certified = self.task.certify.map_or(target, |rule| rule.target);
        let engine = self.method.pilot(target, certified);
        engine.start(gate, &self.problem.start).map_err(Failure::input)
    }
}

/// A count as TOML can hold it.
fn integer_or_float(n: u128) -> toml_edit::Value {
    i64::try_from(n).map_or_else(|_| (n as f64).into(), i64::into)
}

/// What a problem file says besides the method: all it takes to draw samples.
#[derive(Debug)]
pub(crate) struct Setup {
    pub(crate) seed: u64,
    pub(crate) threads: Option<usize>,
    pub(crate) problem: Problem,
}

impl From<Spec> for Setup {
    fn from(spec: Spec) -> Self {
        Self { seed: spec.task.seed, threads: spec.threads, problem: spec.problem }
    }
}

/// What a comparison of methods needs of a problem file.
#[derive(Debug)]
pub(crate) struct Contest {
    pub(crate) setup: Setup,
    /// The file's own method, if it has one.
    pub(crate) own: Option<Chosen>,
    /// How runs are certified, where nothing but samples can tell how good their points are and there is a target.
    pub(crate) rule: Option<StopRule>,
    /// What is to be reached, if anything is.
    pub(crate) target: Option<f64>,
    /// gamma of the gradient mapping, where there is a term and it is given or the target was measured with it.
    pub(crate) gamma: Option<f64>,
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
    /// What to do where some answers at a point are NaN or infinite and others are not: stop (the default), or skip: leave those samples out,
    /// which biases the result and voids a certificate.
    #[arg(long, value_name = "stop|skip")]
    pub(crate) on_nan: Option<OnNan>,
    /// Without a budget, go on where the target is not within reach (as no_limit = true in the file does).
    #[arg(long)]
    pub(crate) no_limit: bool,
    /// Target accuracy of the recipe; for auto, the same as --certify.
    #[arg(long, allow_negative_numbers = true, value_name = "EPS")]
    pub(crate) target: Option<Target>,
    /// Stop when |grad f| <= EPS is certified by fresh samples (as the table `[certificate]` of the file does); 1% is a
    /// hundredth of the gradient at the start, which is measured. A recipe that aims at a larger gradient aims at EPS instead, unless --target says otherwise.
    #[arg(long, allow_negative_numbers = true, value_name = "EPS")]
    pub(crate) certify: Option<Target>,
    /// Samples of the run before it forecasts itself for the first time; none for no forecast [default: 1000].
    #[arg(long, allow_negative_numbers = true, value_name = "N|none", value_parser = pilot)]
    pub(crate) pilot: Option<u128>,
    /// What a sample costs, such as 0.2 or "0.2 EUR": forecast, progress and report say what the run costs.
    #[arg(long, allow_negative_numbers = true, value_name = "PRICE")]
    pub(crate) price: Option<Price>,
    /// Keep every coordinate at least this: one number, or one for each with commas between (-inf: no bound). Adds to the tables [[term]] of the file.
    #[arg(long, allow_hyphen_values = true, value_name = "NUMBERS")]
    pub(crate) lower: Option<Ends>,
    /// Keep every coordinate at most this, likewise.
    #[arg(long, allow_hyphen_values = true, value_name = "NUMBERS")]
    pub(crate) upper: Option<Ends>,
    /// Move a start outside of the bounds, or of what [[term]] allows, to the nearest point inside; without this flag it is refused.
    #[arg(long)]
    pub(crate) project_start: bool,
    /// What stands for the growth and floor of the table noise where they do not bound it.
    #[arg(skip)]
    pub(crate) undeclared: Option<Basis>,
    /// True if a file without a certificate gets one, of what its recipe aims at.
    #[arg(skip)]
    pub(crate) certify_recipe: bool,
    /// Where the file is from.
    #[arg(skip)]
    pub(crate) origin: Origin,
    /// Folder for trace, checkpoint and result; a relative one is taken from where you are.
    #[arg(long, value_name = "DIR")]
    pub(crate) output: Option<PathBuf>,
}

/// A number of samples, or none.
fn pilot(text: &str) -> Result<u128, String> {
    if text == "none" { Ok(0) } else { sample_count(text).map_err(|error| format!("{error}, or none")) }
}

/// What a sample costs: a number, or a text with its unit.
const PRICE: &str = "price";

fn read_price(root: &Section<'_>) -> Result<Option<Price>, Failure> {
    let Some(item) = root.item(PRICE) else { return Ok(None) };
    let price = match item.as_str() {
        Some(text) => text.parse(),
        None => root.number(PRICE)?.map_or(Err(PriceError), Price::new),
    };
    price.map(Some).map_err(|error| root.complain(PRICE, &error.to_string()))
}

/// Reads a problem file.
pub(crate) fn read(path: &Path, overrides: &Overrides) -> Result<Spec, Failure> {
    ProblemFile::load(path)?.spec(overrides)
}

/// The text of a problem file.
#[derive(Debug)]
pub(crate) struct ProblemFile {
    name: String,
    text: String,
}

impl ProblemFile {
    /// The file at a path.
    pub(crate) fn load(path: &Path) -> Result<Self, Failure> {
        let name = path.display().to_string();
        let text = world::read_to_string(path).map_err(|error| Failure::input(error).in_file(&name))?;
        Ok(Self { name, text })
    }

    /// What it says of the problem: reads its table, or starts its simulator. It need not have a table `recipe`, and what it has is not looked at.
    pub(crate) fn setup(&self, overrides: &Overrides) -> Result<Setup, Failure> {
        let document = open(&self.name, &self.text)?;
        setup(&root(&self.name, &self.text, &document)?, overrides)
    }

    /// All that it says.
    fn spec(&self, overrides: &Overrides) -> Result<Spec, Failure> {
        self.rest(self.setup(overrides)?, overrides)
    }

    /// What the table `certificate` says, with this target; `None` if there is none.
    pub(crate) fn rule(
        &self,
        problem: &Problem,
        target: f64,
        overrides: &Overrides,
    ) -> Result<Option<StopRule>, Failure> {
        let document = open(&self.name, &self.text)?;
        let root = root(&self.name, &self.text, &document)?;
        if root.item("certificate").is_none() {
            return Ok(None);
        }
        certificate_rule(&root, problem, &Chosen::auto(None), Some(target), overrides)
    }

    /// All that it says, for a problem that was read.
    pub(crate) fn rest(&self, setup: Setup, overrides: &Overrides) -> Result<Spec, Failure> {
        let document = open(&self.name, &self.text)?;
        let root = root(&self.name, &self.text, &document)?;
        let Setup { seed, threads, problem } = setup;
        let budget = overrides.budget.or(root.samples("budget")?);
        let on_nan = match root.text("on_nan")? {
            Some(text) => text.parse().map_err(|error: String| root.complain("on_nan", &error))?,
            None => OnNan::default(),
        };
        let on_nan = overrides.on_nan.unwrap_or(on_nan);
        let no_limit = overrides.no_limit || root.flag("no_limit")?.unwrap_or(false);
        let output = overrides.output.clone().or(root.text("output")?.map(PathBuf::from));
        let price = overrides.price.clone().map_or_else(|| read_price(&root), |price| Ok(Some(price)))?;
        let recipe = root.item("recipe").map(|_| root.section("recipe")).transpose()?;
        let read = |aim| match &recipe {
            Some(recipe) => read_method(recipe, &problem, aim),
            None => Ok(Read::auto()),
        };
        let mut overrides = overrides.clone();
        let without_constants = match &recipe {
            Some(recipe) => recipe.text("name")? == Some(AUTO),
            None => true,
        };
        if without_constants {
            // What such a run aims at is what it has to certify.
            overrides.certify = overrides.certify.or(overrides.target.take());
        }
        let aim = overrides.target.map(|target| aim(target, "--target")).transpose()?;
        let Read { spec: mut asked, chosen: mut method } = read(aim)?;
        let certificate = root.item("certificate").map(|_| root.section("certificate")).transpose()?;
        if (method.fallback || overrides.certify_recipe) && certificate.is_none() {
            // A certificate chooses between a recipe and its fall-back, so that there has to be one: of what the recipe aims at, unless told otherwise.
            overrides.certify = overrides.certify.or(method.gradient_target().map(Target::Norm));
        }
        let certification = read_certification(certificate.as_ref(), &problem, &method, &overrides)?;
        if without_constants && certification.is_none() && budget.is_none() {
            let hint = "give --target EPS, to certify |grad f| <= EPS, or --budget SAMPLES";
            let place = recipe.as_ref().unwrap_or(&root);
            return Err(place.complain("", "auto needs a target or a budget").hint(hint));
        }
        // A recipe that aims at a coarser target than is to be certified would end too early.
        let coarser = |certified: &f64| method.gradient_target().is_some_and(|target| target > *certified);
        let certified = overrides.certify.and_then(Target::norm);
        if let Some(certified) = certified.filter(coarser).filter(|_| overrides.target.is_none()) {
            overrides.target = Some(Target::Norm(certified));
            Read { spec: asked, chosen: method } = read(Some(Aim { flag: "--certify", target: certified }))?;
        }
        if method.fallback && certification.is_none() {
            return Err(no_choice(recipe.as_ref().unwrap_or(&root)));
        }
        let check = problem.simulator.as_ref().is_none_or(|simulator| simulator.check);
        let (certify, of_start, pilot) = match certification {
            Some(Certification { rule, of_start, pilot, .. }) => (Some(rule), of_start, pilot),
            None => (None, None, 0),
        };
        let gamma = certification.and_then(|certification| certification.gamma);
        let project = overrides.project_start || root.flag(PROJECT)?.unwrap_or(false);
        let task = Task {
            method: asked,
            certify,
            of_start,
            budget,
            seed,
            check,
            pilot,
            on_nan,
            no_limit,
            project,
            gamma,
        };
        let method = task.choose(&problem).map_err(Failure::input)?;
        let effective = write_overrides(&self.name, document, &overrides, problem.simulator.as_ref());
        Ok(Spec { threads, output, problem, task, method, price, effective })
    }
}

/// Reads what the command line says in place of a file.
pub(crate) fn read_quick(quick: &QuickTry, overrides: &Overrides) -> Result<Spec, Failure> {
    let text = quick.file(overrides.target.is_some() || overrides.certify.is_some())?;
    ProblemFile { name: pipe::COMMAND_LINE.into(), text }.spec(overrides)
}

/// Reads what a problem file says of the problem.
pub(crate) fn read_setup(path: &Path, overrides: &Overrides) -> Result<Setup, Failure> {
    ProblemFile::load(path)?.setup(overrides)
}

/// Reads a problem file for a comparison: the table `recipe` may be missing, and `overrides` has the target.
pub(crate) fn read_contest(
    path: &Path,
    overrides: &Overrides,
    stop: Arc<AtomicBool>,
) -> Result<Contest, Failure> {
    let ProblemFile { name, text } = ProblemFile::load(path)?;
    let document = open(&name, &text)?;
    let root = root(&name, &text, &document)?;
    let setup = setup(&root, overrides)?;
    let problem = &setup.problem;
    let gamma = gamma(&root, problem)?;
    let (target, gamma) = match overrides.target {
        Some(Target::OfStart(share)) => {
            let mut gate = problem.gate(setup.seed, None, stop).with_gamma(gamma);
            let measured = problem.of_start(share, &mut gate)?;
            (Some(measured.target), measured.gamma)
        }
        given => (given.and_then(Target::norm), gamma),
    };
    let mut own = None;
    if root.item("recipe").is_some() {
        let recipe = root.section("recipe")?;
        let method = own.insert(own_method(&recipe, problem, target)?);
        if method.fallback {
            let target = target.or(method.gradient_target());
            let rule = certificate_rule(&root, problem, method, target, overrides)?;
            method.hedge(rule.ok_or_else(|| no_choice(&recipe))?);
        }
    }
    let judged = problem.truth.is_some() || problem.oracle.about().full_pass().is_some();
    let rule = match target.filter(|_| !judged) {
        None => None,
        Some(target) => certificate_rule(&root, problem, &Chosen::auto(None), Some(target), overrides)?,
    };
    Ok(Contest { setup, own, rule, target, gamma })
}

/// gamma of the table `certificate`, if it has one.
fn gamma(root: &Section<'_>, problem: &Problem) -> Result<Option<f64>, Failure> {
    match root.item("certificate") {
        None => Ok(None),
        Some(_) => read_gamma(&root.section("certificate")?, problem),
    }
}

/// How a run of a comparison is certified.
fn certificate_rule(
    root: &Section<'_>,
    problem: &Problem,
    method: &Chosen,
    target: Option<f64>,
    overrides: &Overrides,
) -> Result<Option<StopRule>, Failure> {
    let certificate = root.item("certificate").map(|_| root.section("certificate")).transpose()?;
    let flags = Overrides { certify: target.map(Target::Norm), ..overrides.clone() };
    Ok(read_certification(certificate.as_ref(), problem, method, &flags)?.map(|read| read.rule))
}

/// The method of a file, a recipe with this target if there is one.
fn own_method(recipe: &Section<'_>, problem: &Problem, target: Option<f64>) -> Result<Chosen, Failure> {
    let is_recipe = recipe.text("name")?.and_then(pasta_opt::recipe::find).is_some();
    let aim = target.filter(|_| is_recipe).map(|target| Aim { flag: "--target", target });
    Ok(read_method(recipe, problem, aim)?.chosen)
}

fn open<'d>(file: &str, text: &'d str) -> Result<Document<&'d str>, Failure> {
    Document::parse(text).map_err(|error| {
        let line = error.span().map_or(1, |span| line_at(text, span.start));
        let hint = "a problem file is TOML (docs/formats.md); for a table of data use `pasta fit`";
        Failure::input(error.message()).in_file(file).at_line(line).hint(hint)
    })
}

fn root<'d>(file: &'d str, text: &'d str, document: &'d Document<&str>) -> Result<Section<'d>, Failure> {
    let source = Source { file, text };
    let root = Section { source, name: String::new(), table: document.as_table(), line: 1 };
    root.only(&[
        "seed",
        "threads",
        "budget",
        "on_nan",
        "no_limit",
        "output",
        "problem",
        "noise",
        "recipe",
        "certificate",
        TERM,
        PROJECT,
        PRICE,
    ])?;
    Ok(root)
}

fn setup(root: &Section<'_>, overrides: &Overrides) -> Result<Setup, Failure> {
    let seed = overrides.seed.or(root.count("seed")?).unwrap_or(1);
    let threads = match root.count("threads")? {
        Some(n) if !(1..=u64::from(MOST_THREADS)).contains(&n) => {
            let message = format!("expected a whole number from 1 to {MOST_THREADS}, got {n}");
            return Err(root.complain("threads", &message));
        }
        file => overrides.threads.map(usize::from).or(file.map(|n| n as usize)),
    };
    let section = root.section("problem")?;
    let problem = if section.item(TABLE).is_some() {
        if root.item("noise").is_some() {
            let message = "a table has no [noise]: its samples are its rows";
            return Err(root.complain("noise", message));
        }
        read_table(&section)?
    } else if let Some(simulator) = pipe::read(root, &section, threads, overrides.origin)? {
        simulator
    } else {
        read_problem(&section, &root.section("noise")?)?
    };
    let term = read_terms(root, overrides, problem.oracle.about().dim)?;
    let problem = problem.with_term(term);
    Ok(Setup { seed, threads, problem })
}

/// A target that a flag gives a recipe.
fn aim(target: Target, flag: &'static str) -> Result<Aim, Failure> {
    let Some(norm) = target.norm() else {
        let message =
            format!("{flag}: a recipe is planned for a number, and {target} is measured in the run");
        return Err(Failure::input(message)
            .hint(format!("--certify {target} stops the run on a certificate of that")));
    };
    Ok(Aim { flag, target: norm })
}

/// A fall-back without a certificate.
fn no_choice(recipe: &Section<'_>) -> Failure {
    let message = "a certificate chooses between a recipe and its fall-back, and none is asked for";
    recipe.complain(FALLBACK, message).hint("give --certify EPS, or a table [certificate] with a target")
}

/// Writes the flags into the file's text, so that resuming needs no flags. The copy is kept in the output
/// folder, wherever that may be moved to, and names none.
fn write_overrides(
    file: &str,
    document: Document<&str>,
    overrides: &Overrides,
    simulator: Option<&Simulated>,
) -> String {
    let mut document = document.into_mut();
    if let (Some(simulator), Some(problem)) =
        (simulator, document.get_mut("problem").and_then(Item::as_table_like_mut))
    {
        // The copy is elsewhere, the simulator is not.
        problem.insert(pipe::DIRECTORY, Item::Value(simulator.directory().into()));
    }
    document.remove("output");
    write_paths(file, &mut document);
    term::write_flags(&mut document, overrides);
    let mut set = |key: &str, value: Option<toml_edit::Value>| {
        if let Some(value) = value {
            document.insert(key, Item::Value(value));
        }
    };
    set("seed", overrides.seed.map(|n| (n as i64).into()));
    set("threads", overrides.threads.map(|n| i64::from(n).into()));
    set("budget", overrides.budget.map(integer_or_float));
    let word = |on_nan| if on_nan == OnNan::Skip { "skip" } else { "stop" };
    set("on_nan", overrides.on_nan.map(|on_nan| word(on_nan).into()));
    set("no_limit", overrides.no_limit.then(|| true.into()));
    set(PRICE, overrides.price.as_ref().map(|price| price.to_string().into()));
    if let (Some(target), Some(recipe)) = (
        overrides.target.and_then(Target::norm),
        document.get_mut("recipe").and_then(Item::as_table_like_mut),
    ) {
        recipe.insert("target", Item::Value(target.into()));
    }
    if let Some(target) = overrides.certify {
        document.entry("certificate").or_insert(toml_edit::table())["target"] = match target {
            Target::Norm(norm) => toml_edit::value(norm),
            Target::OfStart(_) => toml_edit::value(target.to_string()),
        };
    }
    if let (Some(pilot), Some(certificate)) =
        (overrides.pilot, document.get_mut("certificate").and_then(Item::as_table_like_mut))
    {
        certificate.insert(certification::PILOT, Item::Value(integer_or_float(pilot)));
    }
    document.to_string()
}

/// Files that are named from where the problem file is are named from the root instead.
fn write_paths(file: &str, document: &mut toml_edit::DocumentMut) {
    let Some(problem) = document.get_mut("problem").and_then(Item::as_table_like_mut) else { return };
    let folder = Path::new(file).parent().unwrap_or(Path::new(""));
    for key in FILES {
        let path = problem
            .get(key)
            .and_then(Item::as_str)
            .and_then(|name| std::path::absolute(folder.join(name)).ok());
        if let Some(path) = path {
            problem.insert(key, toml_edit::value(path.display().to_string()));
        }
    }
}
