//! Problem files: TOML in, a ready oracle and method out. Every complaint has a file, a line and what was expected.

mod certification;
mod method;
#[cfg(test)]
mod mutations;
mod pipe;
mod problem;
mod schema;
mod section;
mod table;
mod term;
pub mod trust;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use certification::{Certification, read_certification, read_gamma};
use method::{Aim, FALLBACK, Read, read_method};
use pasta_opt::certificate::Basis;
use pasta_opt::forecast::{Price, PriceError};
use pasta_opt::gate::{Gate, MOST_ROUND_COST, OnNan};
use pasta_opt::method::{AUTO, EXACT, UNIVERSAL};
use pasta_opt::run::{Chosen, Target, Task};
use pasta_opt::walk::{StopRule, Walk};
pub use pipe::{QuickTry, Simulated};
pub use problem::Problem;
use problem::read_problem;
pub use schema::schema;
use section::{Section, Source, line_at};
use table::{FILES, TABLE, read_table};
pub use term::Ends;
use term::{PROJECT, TERM, read_terms};
use toml_edit::{Document, Item};
use trust::Origin;

use crate::Failure;
use crate::limits::MOST_THREADS;
use crate::world;

/// What a problem file says, with the flags that override it.
#[derive(Debug)]
pub struct Spec {
    /// The threads that it asks for.
    pub threads: Option<usize>,
    /// The folder for what the run leaves behind.
    pub output: Option<PathBuf>,
    /// What is minimised.
    pub problem: Problem,
    /// What is run.
    pub task: Task,
    /// The method.
    pub method: Chosen,
    /// What a sample costs, if that is known.
    pub price: Option<Price>,
    /// The file with the overrides written into it: what `resume` reads.
    pub effective: String,
}

impl Spec {
    /// The method of a pilot for another target of |grad f|.
    pub fn walk_to(&self, gate: &Gate, target: f64) -> Result<Box<dyn Walk>, Failure> {
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
pub struct Setup {
    /// The seed of all randomness.
    pub seed: u64,
    /// The threads that it asks for.
    pub threads: Option<usize>,
    /// What is minimised.
    pub problem: Problem,
}

impl From<Spec> for Setup {
    fn from(spec: Spec) -> Self {
        Self { seed: spec.task.seed, threads: spec.threads, problem: spec.problem }
    }
}

/// What a comparison of methods needs of a problem file.
#[derive(Debug)]
pub struct Contest {
    /// The problem.
    pub setup: Setup,
    /// The file's own method, if it has one.
    pub own: Option<Chosen>,
    /// How runs are certified, where nothing but samples can tell how good their points are and there is a target.
    pub rule: Option<StopRule>,
    /// What is to be reached, if anything is.
    pub target: Option<f64>,
    /// gamma of the gradient mapping, where there is a term and it is given or the target was measured with it.
    pub gamma: Option<f64>,
}

/// What overrides a file.
#[derive(Debug, Clone, Default)]
pub struct Overrides {
    /// The seed of all randomness; 1 if neither this nor the file says.
    pub seed: Option<u64>,
    /// Threads for batches that are drawn sample by sample; does not change a bit of the result.
    pub threads: Option<u16>,
    /// Stop before drawing more samples than this.
    pub budget: Option<u128>,
    /// What to do where some answers at a point are NaN or infinite and others are not.
    pub on_nan: Option<OnNan>,
    /// True if a run without a budget goes on where the target is not within reach.
    pub no_limit: bool,
    /// What a round costs, in samples.
    pub round_cost: Option<u64>,
    /// Target accuracy of the recipe; for auto, the same as `certify`.
    pub target: Option<Target>,
    /// Stop when |grad f| is certified to be at most this by fresh samples.
    pub certify: Option<Target>,
    /// Samples of the run before it forecasts itself for the first time; 0 for no forecast.
    pub pilot: Option<u128>,
    /// What a sample costs.
    pub price: Option<Price>,
    /// Every coordinate is at least this.
    pub lower: Option<Ends>,
    /// Every coordinate is at most this.
    pub upper: Option<Ends>,
    /// True if a start outside of what is allowed moves to the nearest point inside.
    pub project_start: bool,
    /// What stands for the growth and floor of the table noise where they do not bound it.
    pub undeclared: Option<Basis>,
    /// True if a file without a certificate gets one, of what its recipe aims at.
    pub certify_recipe: bool,
    /// Where the file is from.
    pub origin: Origin,
    /// Folder for trace, checkpoint and result; a relative one is taken from where you are.
    pub output: Option<PathBuf>,
}

/// What a round costs, in samples.
const ROUND_COST: &str = "round_cost";

fn read_round_cost(root: &Section<'_>) -> Result<u64, Failure> {
    let cost = root.count(ROUND_COST)?.unwrap_or(0);
    if cost > MOST_ROUND_COST {
        let message = format!("expected a whole number of samples from 0 to {MOST_ROUND_COST}, got {cost}");
        return Err(root.complain(ROUND_COST, &message));
    }
    Ok(cost)
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
pub fn read(path: &Path, overrides: &Overrides) -> Result<Spec, Failure> {
    ProblemFile::load(path)?.spec(overrides)
}

/// The text of a problem file.
#[derive(Debug)]
pub struct ProblemFile {
    name: String,
    text: String,
}

impl ProblemFile {
    /// The file at a path.
    pub fn load(path: &Path) -> Result<Self, Failure> {
        let name = path.display().to_string();
        let text = world::read_to_string(path).map_err(|error| Failure::input(error).in_file(&name))?;
        Ok(Self { name, text })
    }

    /// What it says of the problem: reads its table, or starts its simulator. It need not have a table `recipe`, and what it has is not looked at.
    pub fn setup(&self, overrides: &Overrides) -> Result<Setup, Failure> {
        let document = open(&self.name, &self.text)?;
        setup(&root(&self.name, &self.text, &document)?, overrides)
    }

    /// All that it says.
    fn spec(&self, overrides: &Overrides) -> Result<Spec, Failure> {
        self.rest(self.setup(overrides)?, overrides)
    }

    /// What the table `certificate` says, with this target; `None` if there is none.
    pub fn rule(
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
    pub fn rest(&self, setup: Setup, overrides: &Overrides) -> Result<Spec, Failure> {
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
        let round_cost = overrides.round_cost.map_or_else(|| read_round_cost(&root), Ok)?;
        let output = overrides.output.clone().or(root.text("output")?.map(PathBuf::from));
        let price = overrides.price.clone().map_or_else(|| read_price(&root), |price| Ok(Some(price)))?;
        let recipe = root.item("recipe").map(|_| root.section("recipe")).transpose()?;
        let read = |aim| match &recipe {
            Some(recipe) => read_method(recipe, &problem, aim),
            None => Ok(Read::usual(&problem)),
        };
        let mut overrides = overrides.clone();
        let usual = || Ok(Some(Chosen::usual(&problem).name));
        let name = recipe.as_ref().map_or_else(usual, |recipe| recipe.text("name"))?;
        if matches!(name, Some(AUTO | EXACT | UNIVERSAL)) {
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
        if certification.is_none() {
            let place = recipe.as_ref().unwrap_or(&root);
            if name == Some(AUTO) && budget.is_none() {
                let hint = "give --target EPS, to certify |grad f| <= EPS, or --budget SAMPLES";
                return Err(place.complain("", "auto needs a target or a budget").hint(hint));
            }
            if name == Some(UNIVERSAL) {
                return Err(no_target(place));
            }
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
            round_cost,
        };
        let method = task.choose(&problem).map_err(Failure::input)?;
        // As `pasta fit` begins, unless the file says where.
        let is_given = root.section("problem")?.item("start").is_some();
        let problem = if method.name == EXACT && !is_given { problem.at_best_constant() } else { problem };
        let effective = write_overrides(&self.name, document, &overrides, problem.simulator.as_ref());
        Ok(Spec { threads, output, problem, task, method, price, effective })
    }
}

/// Reads what the command line says in place of a file.
pub fn read_quick(quick: &QuickTry<'_>, overrides: &Overrides) -> Result<Spec, Failure> {
    let text = quick.file(overrides.target.is_some() || overrides.certify.is_some())?;
    ProblemFile { name: pipe::COMMAND_LINE.into(), text }.spec(overrides)
}

/// Reads what a problem file says of the problem.
pub fn read_setup(path: &Path, overrides: &Overrides) -> Result<Setup, Failure> {
    ProblemFile::load(path)?.setup(overrides)
}

/// Reads a problem file for a comparison: the table `recipe` may be missing, and `overrides` has the target.
pub fn read_contest(path: &Path, overrides: &Overrides, stop: Arc<AtomicBool>) -> Result<Contest, Failure> {
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
        if method.fallback || method.engine.needs_rule() {
            let target = target.or(method.gradient_target());
            let rule = certificate_rule(&root, problem, method, target, overrides)?;
            let missing = if method.fallback { no_choice } else { no_target };
            method.hedge(rule.ok_or_else(|| missing(&recipe))?);
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

/// The keys of a problem file.
const KEYS: [&str; 14] = [
    "seed",
    "threads",
    "budget",
    "on_nan",
    "no_limit",
    ROUND_COST,
    "output",
    "problem",
    "noise",
    "recipe",
    "certificate",
    TERM,
    PROJECT,
    PRICE,
];

fn root<'d>(file: &'d str, text: &'d str, document: &'d Document<&str>) -> Result<Section<'d>, Failure> {
    let source = Source { file, text };
    let root = Section { source, name: String::new(), table: document.as_table(), line: 1 };
    root.only(&KEYS)?;
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

fn no_target(recipe: &Section<'_>) -> Failure {
    let message = "universal ends with a certificate, and needs a target";
    recipe.complain("", message).hint("give --target EPS, to certify |grad f| <= EPS")
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
    set(ROUND_COST, overrides.round_cost.map(|n| integer_or_float(n.into())));
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
