//! What a run did, as a table for people and an object for machines.

use pasta_opt::certificate::Certificate;
use pasta_opt::forecast::Forecast;
use pasta_opt::objective::Measure;
use pasta_opt::oracle::{Noise, Noisy, Tail};
use pasta_opt::recipe::Plan;
use pasta_opt::state::State;
use pasta_opt::walk::{Progress, Stop, Walk};
use serde_json::{Value, json};

use crate::spec::{self, Method, Spec};
use pasta_report::console::{Failure, answer};
use pasta_report::number::{real, rough};
use pasta_report::{Table, grouped};

/// The end of a run.
pub(super) struct Summary<'s> {
    spec: &'s Spec,
    state: &'s State,
    point: &'s [f64],
    certification: Option<&'s Progress>,
    stop: Stop,
}

/// How many coordinates of the point a table shows.
const SHOWN: usize = 6;

impl<'s> Summary<'s> {
    pub(super) fn new(spec: &'s Spec, walk: &'s dyn Walk, stop: Stop) -> Self {
        Self { spec, state: walk.state(), point: walk.point(), certification: walk.certification(), stop }
    }

    fn plan(&self) -> Option<(&Plan, &[String])> {
        match &self.spec.method {
            Method::Recipe { plan, doubts, .. } => Some((plan, doubts)),
            Method::Named { .. } | Method::Baseline { .. } => None,
        }
    }

    /// The measures that the problem has a formula for, at the output point; the promised one first.
    fn measured(&self) -> Vec<(Measure, f64)> {
        let promised = self.plan().map(|(plan, _)| plan.guarantee.measure);
        let mut measures: Vec<_> = promised.into_iter().collect();
        measures.extend([Measure::Gap, Measure::GradientSquared].iter().filter(|m| Some(**m) != promised));
        let objective = self.spec.oracle.objective();
        measures.into_iter().filter_map(|m| Some((m, m.at(objective, self.point)?))).collect()
    }

    /// Whether nothing speaks against the promise but that constants were measured instead of proved.
    fn only_estimates(&self) -> bool {
        matches!(&self.spec.method, Method::Recipe { doubts, estimated, .. }
            if doubts.len() == 1 && !estimated.is_empty())
    }

    /// What is promised, or why nothing is.
    fn promise(&self) -> String {
        let Some((plan, doubts)) = self.plan() else { return "none: no theorem is about this method".into() };
        let g = plan.guarantee;
        // Twelve digits hide the rounding of eps^2 and nothing else.
        let bound = format!("{:.12}", g.bound);
        let bound = bound.trim_end_matches('0').trim_end_matches('.');
        let bound = if g.bound < 1e-6 { format!("{:e}", g.bound) } else { bound.to_owned() };
        let statement = format!("E {} <= {bound} for {}", g.measure.formula(), g.point.description());
        match (self.stop, doubts.is_empty()) {
            (Stop::PlannedEnd, true) => statement,
            (Stop::PlannedEnd, false) if self.only_estimates() => {
                let they = if doubts[0].ends_with("estimates") { "they" } else { "it" };
                format!("none proved: {} (were {they} true: {statement})", doubts[0])
            }
            (Stop::PlannedEnd, false) => format!("none for this problem: {}", doubts.join("; ")),
            (Stop::Certified, _) => {
                format!("the certificate's; the theorem's planned end was not needed ({statement})")
            }
            _ => format!("none: the run did not reach its planned end ({statement})"),
        }
    }

    /// The certificate in words.
    fn certificate(&self) -> String {
        let Some(Progress { attempts, last, .. }) = self.certification else {
            return "none was asked for (--certify EPS)".into();
        };
        match last {
            None if *attempts == 0 => {
                "none: no samples were left for one, or the run never looked good enough to try".into()
            }
            None => format!("none for this point, after {attempts} failed attempts at others"),
            Some(certificate) => {
                let (verdict, statement) = (certificate.verdict.words(), certificate.statement());
                let tried = if *attempts == 1 { String::new() } else { format!(", attempt {attempts}") };
                let doubt = self.certificate_doubt();
                let doubt = doubt.map_or(String::new(), |doubt| format!(" But it means nothing: {doubt}."));
                format!("{verdict}{tried} (target {}): {statement}{doubt}", certificate.target)
            }
        }
    }

    /// Why the certificate means nothing, by what the file says about its noise.
    fn certificate_doubt(&self) -> Option<String> {
        let certificate = self.certification?.last?;
        spec::false_assumption(&certificate.grade, &self.spec.oracle, self.point)
    }

    /// All samples: the run's, its certificates' and its pilot's.
    fn total(&self) -> u128 {
        let pilot = self.spec.certification.map_or(0, |certification| certification.pilot_samples());
        self.state.ledger.samples + self.certification.map_or(0, |progress| progress.samples) + pilot
    }

    fn forecast(&self) -> Option<Forecast> {
        self.spec.certification?.flown?.forecast
    }

    pub(super) fn json(&self) -> Value {
        let state = self.state;
        let mut object = json!({
            "method": self.spec.method.name(),
            "problem": self.spec.oracle.objective().identity(),
            "noise": self.spec.oracle.noise(),
            "seed": self.spec.seed,
            "stop": self.stop,
            "meaning": self.stop.meaning(),
            "promise": self.promise(),
            "steps": state.step,
            "samples": count(state.ledger.samples),
            "evaluations": count(state.ledger.evaluations),
            "distance": state.distance2.sqrt(),
            "point": self.point,
            "last": state.x,
        });
        if self.spec.oracle.exponent != 2.0 {
            object["noise"]["exponent"] = json!(self.spec.oracle.exponent);
        }
        for (measure, value) in self.measured() {
            object[measure_key(measure)] = json!(value);
        }
        if let (Some(progress), Some(certification)) = (self.certification, self.spec.certification) {
            object["certificate"] = progress.last.map_or(Value::Null, |certificate| {
                // JSON values have no numbers of 128 bits.
                let mut value = json!(Certificate { samples: 0, ..certificate });
                value["samples"] = count(certificate.samples);
                value
            });
            object["certificate_statement"] = json!(progress.last.map(|last| last.statement()));
            object["certificate_doubt"] = json!(self.certificate_doubt());
            object["certificate_point"] = json!(progress.handed_out());
            object["certificate_attempts"] = json!(progress.attempts);
            object["certificate_samples"] = count(progress.samples);
            object["pilot_samples"] = count(certification.pilot_samples());
            object["total_samples"] = count(self.total());
            object["forecast"] = json!(self.forecast());
        }
        if let Some((plan, doubts)) = self.plan() {
            object["predicted_samples"] = match plan.cost.exact {
                Some(exact) => count(exact),
                None => json!(plan.cost.samples),
            };
            object["predicted_evaluations"] = json!(plan.cost.evaluations);
            object["guarantee"] = json!(plan.guarantee);
            object["promise_holds"] = json!(self.stop == Stop::PlannedEnd && doubts.is_empty());
            object["doubts"] = json!(doubts);
        }
        object
    }

    pub(super) fn print(&self, as_json: bool) -> Result<(), Failure> {
        let text = if as_json { self.json().to_string() } else { self.table().text() };
        answer(&text)
    }

    fn table(&self) -> Table {
        let state = self.state;
        let which = self.certification.and_then(Progress::handed_out);
        let which = which.map_or(String::new(), |which| format!(": {}", which.words()));
        let mut rows = vec![
            ("method".to_owned(), self.spec.method.name().to_owned()),
            ("problem".into(), self.spec.oracle.objective().identity()),
            ("noise".into(), noise(&self.spec.oracle)),
            ("seed".into(), self.spec.seed.to_string()),
            ("stopped".into(), self.stop.meaning()),
            ("promise".into(), self.promise()),
            ("certificate".into(), self.certificate()),
            ("point".into(), format!("{}{which}", point(self.point))),
        ];
        let there = |(measure, value): (Measure, f64)| (format!("{} there", measure.formula()), real(value));
        rows.extend(self.measured().into_iter().map(there));
        rows.push(("last distance from start".into(), real(state.distance2.sqrt())));
        let samples = with_prediction(state.ledger.samples, self.plan().map(|(plan, _)| plan));
        rows.push(("samples".into(), samples));
        if let (Some(progress), Some(certification)) = (self.certification, self.spec.certification) {
            rows.push(("samples of certificates".into(), grouped(progress.samples)));
            rows.push(("samples of the pilot".into(), grouped(certification.pilot_samples())));
            rows.push(("samples in all".into(), grouped(self.total())));
            rows.push(("forecast".into(), forecast(self.forecast())));
        }
        rows.push(("evaluations".into(), grouped(state.ledger.evaluations)));
        rows.push(("steps".into(), grouped(u128::from(state.step))));
        Table::labelled(rows)
    }
}

/// What the pilot expected of run and certificates together.
fn forecast(forecast: Option<Forecast>) -> String {
    match forecast {
        Some(Forecast { low, middle, high }) => {
            let [low, middle, high] = [low, middle, high].map(rough);
            format!("about {middle}, {low} to {high} in four of five runs (without the pilot)")
        }
        None => "none".into(),
    }
}

fn noise(oracle: &Noisy) -> String {
    let Noise { growth, floor, tail } = oracle.noise();
    let tail = match tail {
        Tail::Gaussian => "gaussian".to_owned(),
        Tail::StudentT { dof } => format!("student-t (dof {dof})"),
        Tail::Lognormal { sigma } => format!("lognormal (sigma {sigma})"),
        Tail::TwoPoint { probability } => format!("two-point (probability {probability})"),
    };
    let exponent = match oracle.exponent {
        2.0 => String::new(),
        exponent => format!(", exponent {exponent}"),
    };
    format!("{tail}, growth {growth}, floor {floor}{exponent}")
}

fn with_prediction(samples: u128, plan: Option<&Plan>) -> String {
    let used = grouped(samples);
    match plan.map(|plan| plan.cost) {
        Some(cost) if cost.exact == Some(samples) => format!("{used} (exactly as predicted)"),
        Some(cost) if cost.exact.is_some() => format!("{used} (predicted {:.4e})", cost.samples),
        Some(cost) => format!("{used} (worst case: {:.4e} in expectation)", cost.samples),
        None => used,
    }
}

fn measure_key(measure: Measure) -> &'static str {
    match measure {
        Measure::Gap => "gap",
        Measure::GradientSquared => "gradient_squared",
        Measure::MoreauSquared { .. } => "moreau_squared",
    }
}

/// A count as a JSON number; as text if it does not fit 64 bits.
fn count(n: u128) -> Value {
    u64::try_from(n).map_or_else(|_| json!(n.to_string()), |n| json!(n))
}

fn point(x: &[f64]) -> String {
    let shown: Vec<_> = x.iter().take(SHOWN).map(|x| real(*x)).collect();
    let rest = if x.len() > SHOWN { format!(", .. ({} coordinates)", x.len()) } else { String::new() };
    format!("({}{rest})", shown.join(", "))
}
