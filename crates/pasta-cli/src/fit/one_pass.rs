//! `pasta fit - --one-pass`: a model from a stream that goes by once.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Instant;

use pasta_io::{Blocks, Data, Encoding, Fault, Options, Source};
use pasta_opt::Ledger;
use pasta_opt::certificate::{self, Basis, Claim};
use pasta_opt::draws::Role;
use pasta_opt::gate::Halt;
use pasta_opt::one_pass::{LearnError, OnePass};
use pasta_opt::oracle::Charge;
use pasta_opt::run::Target;
use pasta_opt::score::Score;
use pasta_opt::stop::Stop;
use pasta_opt::table::{Class, Linear, Loss, Table, TableError};
use pasta_opt::walk::StopRule;
use pasta_report::console::{self, Bar, Exit, Failure, Report, Signals, say};
use pasta_report::number::{given, real, significant};
use pasta_report::{Table as Lines, grouped};
use serde::Serialize;
use serde::ser::SerializeMap;

use super::arguments::Arguments;
use super::descent::not_finite;
use super::header::{threads, words};
use super::judging::no_minimiser;
use super::{interrupted, write_file};
use crate::table::{
    Certificate, Classes, FORMAT, ModelFile, Provenance, Rows, TailBound, Verdict, check_output,
    check_products, check_width, counted, memory_limit, mixed_columns, naming, refused, score_words,
    unreadable,
};

/// Of a short stream this part is kept back; of a long one, a block.
const KEPT: usize = 4;
/// With fewer rows than this there is nothing to keep back from.
const LEAST: usize = 16;
/// The gradient shall be so much smaller than at the start, unless a target is given.
const RELATIVE: f64 = 0.1;
/// Coordinates of gradients that are looked at one by one.
const MOST_NUMBERS: f64 = 2e9;

pub(super) fn run(arguments: &Arguments, begun: Instant) -> Result<Exit, Failure> {
    let signals = Signals::register()?;
    // Before the stream is gone.
    check_output(arguments.output.as_deref(), &[&arguments.data])?;
    arguments.shaping.refuse_auto("--one-pass")?;
    let Some(loss) = &arguments.loss else {
        return Err(Failure::input("--one-pass needs --loss: a stream is gone before its labels are known"));
    };
    let source = Source::named(&arguments.data);
    let file = source.name();
    let options = arguments.reading.options(loss);
    let memory = memory_limit(options.memory)?;
    // A word that comes later, and a column of a LIBSVM stream, was 0 before.
    let options = Options { grow: true, memory, ..options };
    let mut blocks = Blocks::open(&source, &options, arguments.block as usize).map_err(unreadable)?;
    let bar = Bar::endless("");
    let mut school: Option<StreamFit> = None;
    // Two blocks wait, so that the last rows can be kept back wherever the stream ends.
    let mut waiting: VecDeque<Block> = VecDeque::new();
    while let Some(data) = blocks.next_block(&|_, _| {}).map_err(in_a_stream)? {
        if signals.received().is_some() {
            return Ok(interrupted(&signals));
        }
        let school = match &mut school {
            Some(school) => school,
            none => none.insert(StreamFit::open(arguments, loss, &file, &data)?),
        };
        waiting.push_back(school.rows(data)?);
        if waiting.len() > 2
            && let Some(block) = waiting.pop_front()
            && !school.learn(block, &signals)?
        {
            return Ok(interrupted(&signals));
        }
        if bar.is_drawn() {
            bar.say(format!("{} rows learnt", grouped(school.learner.rows())));
        }
    }
    let empty = || Failure::input(Fault::Empty).in_file(&file);
    let mut school = school.ok_or_else(empty)?;
    let tail = school.tail(waiting, &signals)?;
    drop(bar);
    let Some(tail) = tail else { return Ok(interrupted(&signals)) };
    let Some(outcome) = school.judge(arguments, tail, &signals)? else { return Ok(interrupted(&signals)) };
    let timed = format!("{:.2} s", begun.elapsed().as_secs_f64());
    if let Some(failure) = outcome.failure() {
        say(&timed);
        return Err(failure.in_file(&file));
    }
    if let Some(path) = &arguments.output {
        let model = serde_json::to_string_pretty(&outcome.model).map_err(Failure::system)?;
        write_file(path, model + "\n")?;
    }
    console::print(&outcome, arguments.json)?;
    say(&timed);
    Ok(match outcome.model.certificate.verdict {
        Verdict::Certified => Exit::Done,
        Verdict::NotCertified | Verdict::Worse => {
            let why = if outcome.contradicted {
                "the rows that were kept back contradict what a certificate would rest on; a few rows far out do that, and --kurtosis K allows for more of them"
            } else {
                "the bound is above the target"
            };
            let kept = match arguments.output {
                Some(_) => "; the model is written, since the stream is gone",
                None => "",
            };
            say(&format!("not certified: {why}{kept}"));
            Exit::NotCertified
        }
        Verdict::Kinks => {
            say("not certified: the loss has kinks, where the gradient need not be small");
            Exit::NotCertified
        }
    })
}

/// A fault in a later block, with what helps.
fn in_a_stream(error: pasta_io::ReadError) -> Failure {
    let hint = match error.fault {
        Fault::ZeroIndex => Some("the first block has no index 0; --first-index 0 says that there is one"),
        _ => None,
    };
    let failure = unreadable(error);
    match hint {
        Some(hint) => failure.hint(hint),
        None => failure,
    }
}

/// Rows, and how their columns became numbers.
struct Block {
    rows: Rows,
    encoding: Encoding,
}

/// The learner, and how its rows are read.
struct StreamFit {
    file: String,
    learner: OnePass,
    /// That of the rows that were learnt last.
    encoding: Encoding,
    memory: Option<u64>,
    label: String,
    classes: Classes,
    loss: Loss,
    dropped: u64,
    filled: u64,
    checksum: u32,
    /// Whether every class of every block was right once it was learnt.
    separated: bool,
}

impl StreamFit {
    /// Learns from the first block how the others are read and scaled.
    fn open(arguments: &Arguments, loss: &str, file: &str, first: &Data) -> Result<Self, Failure> {
        let in_file = |failure: Failure| failure.in_file(file);
        let classes = Classes::learn(first, loss).map_err(in_file)?;
        let loss = arguments.shaping.loss(loss, classes.0.len().max(2))?;
        let labels = classes.code(first).map_err(in_file)?;
        mixed_columns(&first.encoding).iter().for_each(|line| say(line));
        check_width(file, &first.encoding, arguments.reading.memory)?;
        let names = first.encoding.names();
        let wrong = |error| refused(file, &names, &error);
        let design = arguments.shaping.design();
        let table =
            Table::new(first.features.clone(), Arc::new(labels), None, names.clone()).map_err(wrong)?;
        let table = Arc::new(table);
        let learner = OnePass::start(Arc::clone(&table), loss, design, arguments.seed).map_err(wrong)?;
        check_products(file, &*learner.problem(table).map_err(wrong)?)?;
        let target = match arguments.target.unwrap_or(Target::OfStart(RELATIVE)) {
            Target::Norm(norm) => given(norm),
            share @ Target::OfStart(_) => format!("{share} of the start"),
        };
        say(&format!(
            "{file}: one pass in blocks of {} bytes, {}{}, scaled and coded by the first block of {} (later columns when they first vary); loss {}, {}, {}, degree {}, penalty \
             {}; |grad f| <= {target}, seed {}, threads {}",
            grouped(u64::from(arguments.block)),
            counted(first.features.columns() as u64, "column"),
            naming(&first.encoding),
            counted(first.features.rows() as u64, "row"),
            words(&loss, None),
            if design.intercept { "intercept" } else { "no intercept" },
            if design.standardise { "standardised" } else { "raw columns" },
            design.degree,
            given(design.penalty),
            arguments.seed,
            threads(arguments),
        ));
        Ok(Self {
            file: file.to_owned(),
            learner,
            encoding: first.encoding.clone(),
            memory: arguments.reading.memory,
            label: first.label.clone(),
            classes,
            loss,
            dropped: 0,
            filled: 0,
            checksum: 0,
            separated: true,
        })
    }

    fn rows(&mut self, data: Data) -> Result<Block, Failure> {
        let labels = self.classes.code(&data).map_err(|failure| failure.in_file(&self.file))?;
        self.dropped += data.left_out.len() as u64;
        self.filled += data.filled;
        let rows = Rows { features: data.features, labels, weights: None, offsets: None };
        Ok(Block { rows, encoding: data.encoding })
    }

    fn refused(&self, error: &TableError) -> Failure {
        refused(&self.file, &self.encoding.names(), error)
    }

    /// The rows as a table. The learner is made as wide as they are.
    fn table(&mut self, Block { rows, encoding }: Block) -> Result<Arc<Table>, Failure> {
        if encoding != self.encoding {
            check_width(&self.file, &encoding, self.memory)?;
            let widened = self.learner.widen(&self.encoding.places_in(&encoding), encoding.width());
            widened.map_err(|error| self.refused(&error))?;
            self.encoding = encoding;
        }
        let table = Table::new(rows.features, Arc::new(rows.labels), None, self.encoding.names());
        let table = table.map_err(|error| self.refused(&error))?;
        self.checksum = self.checksum.rotate_left(1) ^ table.checksum();
        Ok(Arc::new(table))
    }

    /// Rows in the coordinates of the learner.
    fn problem(&self, table: &Arc<Table>) -> Result<Arc<Linear>, Failure> {
        let linear = self.learner.problem(Arc::clone(table)).map_err(|error| self.refused(&error))?;
        check_products(&self.file, &linear)?;
        Ok(linear)
    }

    /// Learns from a block; false if it was interrupted.
    fn learn(&mut self, block: Block, signals: &Signals) -> Result<bool, Failure> {
        let table = self.table(block)?;
        match self.learner.learn(Arc::clone(&table), &signals.flag()) {
            Ok(Stop::Diverged(divergence)) => {
                let mut failure = Failure::input(format!("diverged: {divergence}")).in_file(&self.file);
                failure.exit = Exit::Diverged;
                Err(failure.hint("labels or columns are too large for this loss; scale them down"))
            }
            Ok(_) => {
                let block = self.problem(&table)?;
                self.separated &= self.score(&block)?.separated;
                Ok(true)
            }
            Err(LearnError::Halt(Halt::Interrupted)) => Ok(false),
            Err(error) => Err(self.failed(error)),
        }
    }

    fn failed(&self, error: LearnError) -> Failure {
        match error {
            LearnError::Table(error) => self.refused(&error),
            LearnError::Halt(halt) => not_finite(&halt.into(), self.loss),
            other => Failure::system(other),
        }
    }

    fn score(&self, rows: &Linear) -> Result<Score, Failure> {
        let model = rows.raw_weights(self.learner.point());
        let table = rows.table();
        let scored = Score::of(&model, &table.features, (*table.labels).as_ref(), None);
        scored.map_err(|error| self.refused(&error))
    }

    /// Learns from what waits but for the end, which is kept back; `None` if it was interrupted.
    fn tail(&mut self, waiting: VecDeque<Block>, signals: &Signals) -> Result<Option<Block>, Failure> {
        let encoding = waiting.back().map_or_else(|| self.encoding.clone(), |last| last.encoding.clone());
        // All as wide as the last.
        let widened = |Block { rows, encoding: own }: Block| {
            if own == encoding { rows } else { rows.widened(&own.places_in(&encoding), encoding.width()) }
        };
        let mut waiting: VecDeque<Rows> = waiting.into_iter().map(widened).collect();
        let full = waiting.front().map_or(0, |rows| rows.labels.len());
        let rest: usize = waiting.iter().map(|rows| rows.labels.len()).sum();
        let all = rest + self.learner.rows() as usize;
        if all < LEAST {
            let message = format!(
                "{all} rows are too few to learn from some and keep others back; leave out --one-pass"
            );
            return Err(Failure::input(message).in_file(&self.file));
        }
        let kept = (all / KEPT).min(full);
        let mut tail: Option<Rows> = None;
        // From the end on: what is still wanted of each block goes in front of the tail.
        let mut heads = Vec::new();
        while let Some(rows) = waiting.pop_back() {
            let count = rows.labels.len();
            let wanted = kept - tail.as_ref().map_or(0, |tail| tail.labels.len());
            let cut = count - wanted.min(count);
            let all: Vec<usize> = (0..count).collect();
            if cut < count {
                let end = rows.pick(&all[cut..]);
                tail = Some(match tail {
                    None => end,
                    Some(later) => end.join(&later),
                });
            }
            if cut > 0 {
                heads.push(if cut == count { rows } else { rows.pick(&all[..cut]) });
            }
        }
        for rows in heads.into_iter().rev() {
            if !self.learn(Block { rows, encoding: encoding.clone() }, signals)? {
                return Ok(None);
            }
        }
        Ok(tail.map(|rows| Block { rows, encoding }))
    }

    /// What the rows that were kept back say; `None` if it was interrupted.
    fn judge(
        mut self,
        arguments: &Arguments,
        tail: Block,
        signals: &Signals,
    ) -> Result<Option<Outcome>, Failure> {
        let table = self.table(tail)?;
        let tail = self.problem(&table)?;
        let (x, origin) = (self.learner.point().to_vec(), self.learner.origin().to_vec());
        let (objective, gradient) = match self.learner.look(&table, &signals.flag()) {
            Ok(found) => found,
            Err(LearnError::Halt(Halt::Interrupted)) => return Ok(None),
            Err(error) => return Err(self.failed(error)),
        };
        // By rows that were learnt from: a target must not depend on the rows that certify.
        let start = self.learner.start_gradient();
        // Where the start has no gradient, the least target that a certificate can have.
        let target = match arguments.target.unwrap_or(Target::OfStart(RELATIVE)) {
            Target::Norm(norm) => norm,
            Target::OfStart(share) => (share * start).clamp(1e-100, 1e100),
        };
        let claim = Claim {
            target,
            delta: StopRule::DELTA,
            basis: Basis::Kurtosis(arguments.kurtosis),
            budget: None,
            guess: None,
        };
        let bound = match self.learner.certify(&tail, claim, &signals.flag()) {
            Ok(certificate) => certificate,
            Err(certificate::CertificateError::Halt(Halt::Interrupted)) => return Ok(None),
            Err(error) => return Err(Failure::input(error).in_file(&self.file)),
        };
        let held = self.score(&tail)?;
        let kinks = matches!(self.loss.row().class, Class::LipschitzConvex | Class::WeaklyConvex);
        let unseen = self.learner.first_seen(&table).map_err(|error| self.refused(&error))?;
        let names = self.encoding.names();
        let unseen: Vec<String> = unseen.into_iter().map(|column| names[column].clone()).collect();
        let contradiction = self.contradiction(&tail, arguments.kurtosis, gradient, bound.bound, &unseen);
        let bound = if contradiction.is_some() { bound.void() } else { bound };
        let verdict = if kinks { Verdict::Kinks } else { verdict_of(bound.verdict) };
        let no_minimiser = no_minimiser(&tail, self.separated && held.separated, false);
        let worse = worse_by(&tail, &x, &origin).map_err(|error| self.refused(&error))?;
        let mut ledger: Ledger = self.learner.ledger().clone();
        let read = Charge { samples: bound.samples, evaluations: bound.samples, exact: false };
        ledger.charge(Role::Certificate, read);
        let (weights, intercept) = ModelFile::named(&tail.raw_weights(&x), &names);
        let rows = self.learner.rows() + held.rows as u64;
        let model = ModelFile {
            format: FORMAT,
            program: concat!("pasta ", env!("CARGO_PKG_VERSION")).into(),
            loss: self.loss,
            design: tail.design(),
            label: self.label,
            offset: None,
            classes: self.classes,
            weights,
            intercept,
            scaling: tail.scaling().cloned(),
            encoding: self.encoding,
            data: Provenance {
                file: self.file,
                rows,
                columns: tail.table().columns() as u64,
                checksum: format!("{:08x}", self.checksum),
            },
            constants: Vec::new(),
            method: "one-pass".into(),
            seed: arguments.seed,
            ledger,
            deviation: None,
            left_out: Vec::new(),
            summary: None,
            conformal: None,
            ranges: Vec::new(),
            certificate: Certificate {
                verdict,
                exact: false,
                gradient,
                target,
                start_gradient: start,
                objective,
                gap: None,
                tail: Some(TailBound {
                    rows: held.rows as u64,
                    bound: bound.bound,
                    delta: StopRule::DELTA,
                    kurtosis: arguments.kurtosis,
                }),
            },
        };
        Ok(Some(Outcome {
            contradicted: contradiction.is_some(),
            statement: contradiction.unwrap_or_else(|| bound.statement()),
            unseen,
            worse,
            no_minimiser,
            held,
            dropped: self.dropped,
            filled: self.filled,
            learnt: self.learner.rows(),
            blocks: self.learner.blocks(),
            output: arguments.output.as_ref().map(|path| path.display().to_string()),
            model,
        }))
    }
}

fn verdict_of(verdict: certificate::Verdict) -> Verdict {
    match verdict {
        certificate::Verdict::Certified => Verdict::Certified,
        _ => Verdict::NotCertified,
    }
}

impl StreamFit {
    /// What the rows that were kept back say against the assumption of a certificate, or against the bound that it led to.
    fn contradiction(
        &self,
        tail: &Linear,
        assumed: f64,
        gradient: f64,
        bound: Option<f64>,
        unseen: &[String],
    ) -> Option<String> {
        let rows = tail.table().rows();
        // A row's gradient has all coordinates; means of several rows stand for single ones where that would take longer than the fit.
        let each = (rows as f64 * tail.dim() as f64 / MOST_NUMBERS).ceil().max(1.0);
        // The kurtosis that a mean of so many independent rows has at most.
        let allowed = assumed / each + 3.0 * (1.0 - 1.0 / each);
        let seen = self.learner.seen_kurtosis(tail, each as usize);
        if seen > allowed {
            let what = if each > 1.0 {
                format!("of means of {each} rows of the tail")
            } else {
                "of the tail".into()
            };
            return Some(format!(
                "no bound: the noise {what} has kurtosis {}, and at most {} is assumed",
                significant(seen, 3),
                significant(allowed, 3)
            ));
        }
        let bound = bound.filter(|bound| gradient > *bound)?;
        if !unseen.is_empty() {
            return Some(format!(
                "no bound: {}, which no row before the tail could teach; with that |grad f| over the tail is {}",
                vary_first(unseen),
                real(gradient)
            ));
        }
        Some(format!(
            "no bound: |grad f| over the tail is {}, though it would be at most {} if the noise had kurtosis {} at most",
            real(gradient),
            real(bound),
            given(assumed)
        ))
    }
}

/// Names some columns that vary in the tail alone.
fn vary_first(columns: &[String]) -> String {
    const SHOWN: usize = 5;
    let shown = columns.iter().take(SHOWN).cloned().collect::<Vec<_>>().join(", ");
    let more = if columns.len() > SHOWN { ", .." } else { "" };
    let verb = if columns.len() == 1 { "varies" } else { "vary" };
    format!("{} ({shown}{more}) {verb} in the tail alone", counted(columns.len() as u64, "column"))
}

/// By how much the mean loss at x is above that at the start, and the standard error of that, over these rows.
fn worse_by(rows: &Linear, x: &[f64], start: &[f64]) -> Result<(f64, f64), TableError> {
    let table = rows.table();
    let losses = |x: &[f64]| -> Result<Vec<f64>, TableError> {
        let model = rows.raw_weights(x);
        let mut scores = model.scores(&table.features)?;
        let each = scores.chunks_exact_mut(model.outputs()).zip((*table.labels).as_ref());
        Ok(each.map(|(scores, label)| model.loss.differentiate(scores, *label)).collect())
    };
    let changes: Vec<f64> = losses(x)?.iter().zip(losses(start)?).map(|(here, there)| here - there).collect();
    let n = changes.len() as f64;
    let mean = changes.iter().sum::<f64>() / n;
    let spread = changes.iter().map(|change| (change - mean).powi(2)).sum::<f64>() / (n - 1.0).max(1.0);
    Ok((mean, (spread / n).sqrt()))
}

/// What a pass came to.
struct Outcome {
    model: ModelFile,
    /// The certificate in words.
    statement: String,
    /// Whether the tail refutes what the certificate rests on.
    contradicted: bool,
    /// Columns that vary in the tail alone.
    unseen: Vec<String>,
    /// By how much the loss is above the start's on rows that were kept back, and the error of that.
    worse: (f64, f64),
    no_minimiser: Option<(&'static str, &'static str)>,
    held: Score,
    dropped: u64,
    filled: u64,
    learnt: u64,
    blocks: u64,
    output: Option<String>,
}

impl Outcome {
    /// Why there is no model, if there is none.
    fn failure(&self) -> Option<Failure> {
        let fail = |message: String, hint: &str| {
            let mut failure = Failure::input(message).hint(hint);
            failure.exit = Exit::Diverged;
            Some(failure)
        };
        let (mean, error) = self.worse;
        if let Some((why, hint)) = self.no_minimiser {
            return fail(why.into(), hint);
        }
        if mean.is_nan() || mean > 2.0 * error {
            let message = format!(
                "on the rows that were kept back the loss is higher than at the start, by {} (standard error {}): is the stream sorted?",
                real(mean),
                real(error)
            );
            return fail(message, "shuffle the rows, or fit the whole table without --one-pass");
        }
        None
    }
}

impl Serialize for Outcome {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("data", &self.model.data)?;
        map.serialize_entry("loss", &self.model.loss)?;
        map.serialize_entry("design", &self.model.design)?;
        map.serialize_entry("method", &self.model.method)?;
        map.serialize_entry("seed", &self.model.seed)?;
        map.serialize_entry("certificate", &self.model.certificate)?;
        map.serialize_entry("statement", &self.statement)?;
        map.serialize_entry("tail", &self.held)?;
        map.serialize_entry("learnt_rows", &self.learnt)?;
        map.serialize_entry("blocks", &self.blocks)?;
        map.serialize_entry("dropped_rows", &self.dropped)?;
        map.serialize_entry("filled_cells", &self.filled)?;
        map.serialize_entry("varies_in_tail_only", &self.unseen)?;
        map.serialize_entry("ledger", &self.model.ledger)?;
        map.serialize_entry("weights", &self.model.weights)?;
        map.serialize_entry("intercept", &self.model.intercept)?;
        map.serialize_entry("model", &self.output)?;
        map.end()
    }
}

impl Report for Outcome {
    fn text(&self) -> String {
        let certificate = &self.model.certificate;
        let row = |name: &str, value: String| (name.to_owned(), value);
        let verdict = match certificate.verdict {
            Verdict::Certified => format!("certified, |grad f| <= {}: ", real(certificate.target)),
            Verdict::NotCertified | Verdict::Worse => {
                format!("not certified, |grad f| <= {} is not seen: ", real(certificate.target))
            }
            Verdict::Kinks => "nothing is certified, since the loss has kinks: ".into(),
        };
        let mut rows = vec![
            row("stopped", "the stream ended".into()),
            row("certificate", format!("{verdict}{}", self.statement)),
            row(
                "rests on",
                "rows of the tail that are independent draws from one law, whose mean loss is f; each was read once".into(),
            ),
            row(
                "tail",
                format!(
                    "{}; |grad f| over it {} ({} at the start, over the rows learnt)",
                    score_words(&self.held),
                    real(certificate.gradient),
                    real(certificate.start_gradient)
                ),
            ),
            row("learnt", format!("{} in {}", counted(self.learnt, "row"), counted(self.blocks, "block"))),
        ];
        if !self.unseen.is_empty() {
            let what = format!("{}: the certificate says nothing of that", vary_first(&self.unseen));
            rows.push(row("not learnt", what));
        }
        if self.filled > 0 {
            rows.push(row("filled", counted(self.filled, "missing cell")));
        }
        if self.dropped > 0 {
            rows.push(row(
                "dropped",
                format!("{} in which something is missing", counted(self.dropped, "row")),
            ));
        }
        rows.push(row(
            "model",
            self.output.clone().unwrap_or_else(|| "not written (-o FILE writes it)".into()),
        ));
        Lines::labelled(rows).text()
    }
}
