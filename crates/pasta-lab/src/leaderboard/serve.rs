//! Answers about one problem on stdin and stdout, line by line, for methods in other languages: `tests/peers/prototype.py`.

use std::io::{self, BufRead};

use pasta_opt::draws::Role;
use pasta_opt::oracle::{Answer, Batch, Draw, Request, Source};
use serde::Deserialize;
use serde_json::json;

use super::problems::{Instance, Problem};
use pasta_report::console::{Exit, Failure, answer};

/// A line of the input.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Question {
    x: Vec<f64>,
    /// So many samples, or with 0 the error that judges.
    n: u64,
    /// Which samples; without it all rows.
    seed: Option<u64>,
}

/// Introduces the problem and answers until the input ends.
pub(super) fn serve(problem: &Problem) -> Result<Exit, Failure> {
    let instance = problem.instance();
    let about = instance.oracle.about();
    let rows = match about.source {
        Source::Table { rows } => Some(rows),
        Source::Stream | Source::Formula => None,
    };
    answer(&json!({ "start": instance.start, "rows": rows, "losses": about.losses }).to_string())?;
    for line in io::stdin().lock().lines() {
        let line = line.map_err(Failure::system)?;
        let question: Question = serde_json::from_str(&line).map_err(Failure::input)?;
        answer(&told(&instance, &question)?.to_string())?;
    }
    Ok(Exit::Done)
}

/// The mean gradient, the sum of squared deviations from it, and the mean loss; or the error.
fn told(instance: &Instance, question: &Question) -> Result<serde_json::Value, Failure> {
    let Question { x, n, seed } = question;
    let about = instance.oracle.about();
    if x.len() != about.dim {
        let message = format!("the problem has {} coordinates, but the question {}", about.dim, x.len());
        return Err(Failure::input(message));
    }
    if *n == 0 {
        return Ok(json!({ "error": instance.truth.error(x) }));
    }
    let points = [x.as_slice()];
    let one = |draw: Draw| -> Result<(Vec<f64>, f64), Failure> {
        let (mut gradient, mut losses) = (vec![0.0; x.len()], [0.0]);
        let request = Request { draw, losses: about.losses, ..Request::everything(Role::Large, &points) };
        let mut answer = Answer { losses: &mut losses, ..Answer::new(&mut gradient) };
        instance.oracle.answer(&request, &mut answer).map_err(Failure::system)?;
        Ok((gradient, losses[0]))
    };
    let Some(seed) = *seed else {
        let (gradient, loss) = one(Draw::Everything(Role::Large))?;
        return Ok(json!({ "gradient": gradient, "scatter": 0.0, "loss": loss }));
    };
    let (mut mean, mut squares, mut loss) = (vec![0.0; x.len()], 0.0, 0.0);
    for i in 0..*n {
        let batch = Batch { seed, role: Role::Large, step: 0, samples: i..i + 1 };
        let (gradient, of_sample) = one(Draw::Batch(batch))?;
        mean.iter_mut().zip(&gradient).for_each(|(mean, g)| *mean += g / *n as f64);
        squares += gradient.iter().map(|g| g * g).sum::<f64>();
        loss += of_sample / *n as f64;
    }
    let scatter = (squares - *n as f64 * mean.iter().map(|g| g * g).sum::<f64>()).max(0.0);
    Ok(json!({ "gradient": mean, "scatter": scatter, "loss": loss }))
}
