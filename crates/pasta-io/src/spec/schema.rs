//! The JSON schema of problem files, for editors. Names come from the tables that the reader goes by; a test
//! compares the keys with those it takes.
//!
//! Not schemars: the reader has no types to derive from, since it goes key by key to name line and key of
//! what is wrong.

use pasta_opt::method::{AUTO, METHODS, Method};
use pasta_opt::problems::{self, Kind};
use pasta_opt::recipe::Constant;
use pasta_opt::run::{self, CHOICES};
use pasta_opt::table::LOSSES;
use pasta_opt::term::KINDS;
use serde_json::{Map, Value, json};

use super::method::{ESTIMATED, FALLBACK};
use super::problem::{FORMULAS, TAILS};
use super::table::{FORMATS, MISSING, PRECISIONS, STORAGES};

/// What a key takes, and what that means.
type Row = (&'static str, fn() -> Value, &'static str);

fn number() -> Value {
    json!({ "type": "number" })
}

fn positive() -> Value {
    json!({ "type": "number", "exclusiveMinimum": 0 })
}

/// A count, which may be written as 1e6.
fn count() -> Value {
    json!({ "type": "number", "minimum": 0, "multipleOf": 1 })
}

fn text() -> Value {
    json!({ "type": "string" })
}

fn flag() -> Value {
    json!({ "type": "boolean" })
}

fn texts() -> Value {
    json!({ "type": "array", "items": { "type": "string" } })
}

fn command() -> Value {
    json!({ "type": "array", "items": { "type": "string" }, "minItems": 1 })
}

fn number_or_list() -> Value {
    json!({ "type": ["number", "array"], "items": { "type": "number" } })
}

fn text_or_number() -> Value {
    json!({ "type": ["string", "number"] })
}

fn text_or_flag() -> Value {
    json!({ "type": ["string", "boolean"] })
}

fn word(words: impl IntoIterator<Item = &'static str>) -> Value {
    json!({ "enum": words.into_iter().collect::<Vec<_>>() })
}

const ROOT: [Row; 10] = [
    ("seed", count, "Seed of all randomness; 1 by default."),
    ("threads", count, "Threads; changes the time, not a bit of the result. Default: all."),
    ("budget", count, "Stop before drawing more samples than this. Default: none."),
    (
        "on_nan",
        || word(["stop", "skip"]),
        "Where some samples at a point are not finite: stop, or skip them (no certificate).",
    ),
    ("no_limit", flag, "True to go on without a budget where the target is not within reach."),
    ("round_cost", count, "The samples that one round, a request to the oracle, costs beside its own."),
    ("output", text, "Folder for trace, checkpoint and result. Default: nothing is written."),
    ("price", text_or_number, "Price of a sample, such as 0.2 or \"0.2 EUR\"."),
    (
        "project_start",
        flag,
        "True to move a start outside of what the terms allow to the nearest point inside.",
    ),
    ("term", || json!({ "type": "array", "items": terms() }), "Constraints and penalties beside f."),
];

const NOISE: [Row; 7] = [
    ("tail", || word(TAILS), "Law of the noise."),
    ("growth", number, "B: the variance is B^2 |x - x0|^2 + b^2."),
    ("floor", number, "b: the variance is B^2 |x - x0|^2 + b^2."),
    ("exponent", number, "Another power of |x - x0|; 2 by default."),
    ("dof", number, "Degrees of freedom of student-t."),
    ("sigma", number, "sigma of lognormal."),
    ("probability", number, "Probability of two-point."),
];

const CERTIFICATE: [Row; 9] = [
    (
        "target",
        text_or_number,
        "Stop when |grad f| <= target is certified; \"1%\" is a share of the gradient at the start.",
    ),
    ("delta", positive, "Probability that a false certificate is issued; 0.05 by default."),
    ("share", number, "Largest share of all samples that goes into certificates; 0.5 by default."),
    ("variance", number, "Declared: a bound on the variance of one sample's gradient near the point."),
    ("growth", number, "Declared: B of B^2 |x - x0|^2 + b^2 (with floor)."),
    ("floor", number, "Declared: b of B^2 |x - x0|^2 + b^2 (with growth)."),
    ("kurtosis", number, "Assumed: a bound on the kurtosis of the noise, such as 100."),
    (
        "pilot",
        text_or_number,
        "The run forecasts its own cost after this many samples; 1000 by default, \"none\" for no forecast.",
    ),
    ("gamma", positive, "gamma of the gradient mapping, with a term."),
];

const SIMULATOR: [Row; 12] = [
    ("command", command, "The simulator: the program and its arguments; no shell reads them."),
    ("dimension", count, "Number of coordinates; not needed where start is a list."),
    ("start", number_or_list, "Starting point: a list, or one number for all coordinates."),
    ("workers", count, "Processes at a time; changes the time, not the result. Default: threads."),
    ("block", count, "Samples of a request; part of the result's bits; 8 by default."),
    ("timeout", positive, "Seconds that a request may take; 600 by default."),
    ("greeting", positive, "Seconds that a worker may take to start."),
    ("retries", count, "How often a failed request is asked again; 2 by default."),
    ("directory", text, "Where it runs, seen from the file."),
    (
        "environment",
        || json!({ "type": "object", "additionalProperties": { "type": "string" } }),
        "Variables of its environment.",
    ),
    ("check", flag, "True (the default) to check it by a few dozen samples before a run."),
    ("pathwise", flag, "False if gradients are not those of the samples' losses (likelihood ratios)."),
];

const TABLE: [Row; 28] = [
    ("table", text, "The rows: a LIBSVM, CSV, NPY or NPZ file, text also compressed; seen from this file."),
    ("loss", || word(LOSSES.iter().map(|row| row.name)), "Loss of a row."),
    ("label", text_or_number, "Column of the label: a name, or a number from 1."),
    ("labels", text, "File of the labels, beside an NPY file."),
    ("weight", text_or_number, "Column of the rows' weights."),
    ("offset", text_or_number, "Column of known numbers that are added to the scores."),
    ("ignore", texts, "Columns to leave out."),
    ("missing", || word(MISSING.map(|(name, _)| name)), "What stands for missing values."),
    ("one-hot", flag, "True to turn columns of words into columns of 0 and 1."),
    ("categories", texts, "Columns in which numbers are categories, too."),
    ("interact", texts, "Pairs of columns, a:b, whose products are features, too."),
    ("header", flag, "True if the first line has the names of the columns."),
    ("delimiter", text, "What separates the cells of a line."),
    ("first-index", || json!({ "enum": [0, 1] }), "The first index of a LIBSVM file."),
    ("memory", text_or_number, "The most memory that the table may take, such as \"8G\"."),
    ("format", || word(FORMATS.map(|(name, _)| name)), "Format of the file, if its name does not say."),
    ("columns", count, "Number of columns of a LIBSVM file."),
    ("cache", text_or_flag, "True, or a folder: map the table from arrays that are written once."),
    (
        "storage",
        || word(STORAGES.map(|(name, _)| name)),
        "How the rows are stored; by their density by default.",
    ),
    ("precision", || word(PRECISIONS.map(|(name, _)| name)), "Precision of the stored values."),
    ("delta", positive, "delta of the huber loss."),
    ("level", positive, "Level of the quantile loss."),
    ("scale", positive, "Scale of the cauchy, welsch and tukey losses."),
    ("penalty", number, "l of the penalty l/2 |w|^2; 0 by default."),
    ("intercept", flag, "True (the default) to fit an intercept."),
    ("standardise", flag, "True (the default) to bring columns to mean 0 and deviation 1."),
    ("degree", || json!({ "enum": [1, 2, 3] }), "2 or 3: products of columns are features too."),
    ("start", number_or_list, "Starting point; the loss decides by default."),
];

fn properties(rows: &[Row]) -> Map<String, Value> {
    let mut properties = Map::new();
    rows.iter().for_each(|&(key, takes, words)| add(&mut properties, key, takes(), words));
    properties
}

/// Adds a key, unless it is there.
fn add(to: &mut Map<String, Value>, key: &str, mut takes: Value, words: &str) {
    takes["description"] = words.into();
    to.entry(key).or_insert(takes);
}

/// A table without other keys.
fn object(properties: Map<String, Value>, required: &[&str]) -> Value {
    json!({ "type": "object", "properties": properties, "required": required, "additionalProperties": false })
}

/// The table `problem`: built in, of rows, or a simulator.
fn problem() -> Value {
    let mut all = Map::new();
    add(
        &mut all,
        "name",
        word(problems::TABLE.iter().map(|row| row.name)),
        "A built-in problem (pasta problems).",
    );
    add(
        &mut all,
        FORMULAS,
        flag(),
        "False to treat a built-in problem as a stranger's, of which only samples are known.",
    );
    all.extend(properties(&TABLE));
    all.extend(properties(&SIMULATOR));
    for row in problems::TABLE {
        for parameter in row.parameters {
            let takes = if parameter.kind == Kind::List { number_or_list() } else { number() };
            add(&mut all, parameter.name, takes, parameter.meaning);
        }
    }
    let mut problem = object(all, &[]);
    problem["oneOf"] =
        ["name", "table", "command"].map(|key| json!({ "required": [key] })).into_iter().collect();
    problem
}

/// The table `recipe`: the keys of recipes and of all other methods.
fn recipe() -> Value {
    let mut constants = Map::new();
    let natural = || Constant::ALL.iter().filter(|constant| !CHOICES.contains(constant));
    natural().for_each(|constant| add(&mut constants, constant.name(), number(), constant.meaning()));
    let names: Vec<_> = natural().map(|constant| constant.name()).collect();
    let estimated = json!({ "type": "array", "items": { "enum": names } });
    add(
        &mut constants,
        ESTIMATED,
        estimated,
        "Constants that were measured and not proved: nothing is promised then.",
    );
    let given = json!({ "oneOf": [{ "const": "problem" }, object(constants, &[])] });

    let mut all = Map::new();
    add(&mut all, "name", word(run::names()), "A recipe, or another method. Without a table [recipe]: auto.");
    add(&mut all, "constants", given, "\"problem\" for what is proved about it, or a table of constants.");
    add(&mut all, FALLBACK, word([AUTO]), "Run auto beside the recipe, each with half of the budget.");
    add(&mut all, "steps", count(), "Steps of a method that is no recipe.");
    add(&mut all, "batch", count(), "Samples of a step; 1 by default.");
    CHOICES.iter().for_each(|choice| add(&mut all, choice.name(), number(), choice.meaning()));
    for setting in METHODS.iter().flat_map(Method::settings) {
        add(&mut all, setting.name, number(), setting.meaning);
    }
    object(all, &["name"])
}

/// A table `term`: the keys of all kinds.
fn terms() -> Value {
    let mut all = Map::new();
    add(&mut all, "kind", word(KINDS.iter().map(|kind| kind.name)), "Kind of constraint or penalty.");
    let coordinates = json!({ "type": ["string", "array"], "items": { "type": "integer", "minimum": 0 } });
    add(&mut all, "coordinates", coordinates, "A range such as \"0..10\", or a list from 0; all by default.");
    for kind in KINDS {
        kind.keys
            .iter()
            .for_each(|key| add(&mut all, key.name, json!({}), &format!("{}: {}", kind.name, key.words)));
    }
    object(all, &["kind"])
}

/// The schema (draft 7) of a problem file.
pub fn schema() -> Value {
    let mut all = properties(&ROOT);
    add(&mut all, "problem", problem(), "What is minimised.");
    add(&mut all, "noise", object(properties(&NOISE), &["tail"]), "Noise of a built-in problem.");
    add(&mut all, "recipe", recipe(), "The method; auto by default.");
    add(
        &mut all,
        "certificate",
        object(properties(&CERTIFICATE), &[]),
        "Stop when |grad f| <= target is certified.",
    );
    let mut schema = object(all, &["problem"]);
    schema["$schema"] = "http://json-schema.org/draft-07/schema#".into();
    schema["title"] = concat!("problem file of pasta ", env!("CARGO_PKG_VERSION")).into();
    schema
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::super::{KEYS, certification, method, pipe, problem, table};
    use super::*;

    fn keys(rows: &[Row]) -> BTreeSet<&str> {
        rows.iter().map(|row| row.0).collect()
    }

    #[test]
    fn the_schema_has_the_keys_that_the_reader_takes() {
        let set = |keys: &[&'static str]| keys.iter().copied().collect::<BTreeSet<_>>();
        assert_eq!(keys(&SIMULATOR), set(&pipe::KEYS));
        assert_eq!(keys(&TABLE), set(&table::KEYS));
        assert_eq!(keys(&CERTIFICATE), set(&certification::KEYS));
        // The last three are those of laws.
        assert_eq!(keys(&NOISE[..4]), set(&problem::NOISE));
        let schema = schema();
        let of = |value: &Value| -> BTreeSet<String> {
            value["properties"].as_object().expect("a table").keys().cloned().collect()
        };
        assert_eq!(of(&schema), set(&KEYS).into_iter().map(str::to_owned).collect());
        let recipe = of(&schema["properties"]["recipe"]);
        assert!(method::OF_RECIPES.iter().all(|key| recipe.contains(*key)), "{recipe:?}");
        assert!(recipe.contains("steps") && recipe.contains("eta"), "{recipe:?}");
    }

    #[test]
    fn whatever_a_term_takes_is_in_the_schema() {
        let terms = terms();
        for kind in KINDS {
            let example: Value = serde_json::from_str(kind.example).expect("JSON");
            for key in example.as_object().expect("a table").keys() {
                assert!(!terms["properties"][key].is_null(), "{}: {key}", kind.name);
            }
        }
    }
}
