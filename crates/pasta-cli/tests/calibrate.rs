//! `pasta calibrate` from outside: what it prints and writes, that `solve` takes it without promising anything, and what
//! it refuses.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod place;

use std::fs;

use place::{TestDir, with};
use predicates::str::contains;
use serde_json::Value;

const PROBLEM: &str = r#"seed = 1

[problem]
name = "quadratic"
spectrum = [4.0, 1.0]
start = [1.0, 1.0]

[noise]
tail = "gaussian"
growth = 0.5
floor = 1.0
"#;

impl TestDir {
    fn text(&self, words: &str) -> String {
        let output = self.pasta(words).assert().success().get_output().stdout.clone();
        String::from_utf8(output).unwrap()
    }

    /// Bad input: exit code 2, nothing on stdout, these words on stderr.
    fn refuses(&self, words: &str, told: &[&str]) {
        let mut assert = self.pasta(words).assert().code(2).stdout("");
        for word in told {
            assert = assert.stderr(contains(*word));
        }
    }
}

/// The figure of a constant.
fn figure<'a>(answer: &'a Value, constant: &str) -> &'a Value {
    let figures = answer["figures"].as_array().unwrap();
    figures.iter().find(|figure| figure["constant"] == constant).unwrap()
}

#[test]
fn no_table_is_wider_than_a_terminal_and_none_shows_a_hash_or_a_debug_form() {
    let heavy = with(PROBLEM, "\"gaussian\"", "\"student-t\"\ndof = 3.0");
    let run = format!("{heavy}\n[recipe]\nname = \"sgd\"\neta = 0.01\nsteps = 1e6\n");
    let place = TestDir::holding(&run);
    for words in
        ["calibrate p.toml", "solve p.toml --certify 0.5", "certify p.toml --at 0,0 --target 0.5", "problems"]
    {
        let text = place.text(words);
        for strange in ["StudentT", "around start", "Some("] {
            assert!(!text.contains(strange), "{words}: {strange}");
        }
        // The block of constants is to be copied, and so is not broken.
        let table = text.split("[recipe.constants]").next().unwrap();
        let widest = table.lines().map(|line| line.chars().count()).max().unwrap();
        assert!(widest <= 80, "{words}: {widest}");
    }
}

#[test]
fn people_see_figures_with_their_origin_rays_in_words_and_the_ledger() {
    let place = TestDir::holding(PROBLEM);
    let text = place.text("calibrate p.toml --output out");
    // On the page no cell is broken into lines.
    let page = place.read("out/index.html");
    for cell in [
        "estimated at the start; proved by the problem: 4",
        "cannot be measured; proved by the problem: 2.5",
        "BG-0 plausible: exponent 2.0",
    ] {
        assert!(page.contains(cell), "{cell:?} is not on\n{page}");
    }
    for word in [
        "L (smoothness)",
        "against the gradient",
        "random 3",
        "of 32,000 allowed",
        "[recipe.constants]",
        "estimated = [\"smoothness\", \"ms-smoothness\", \"growth\", \"floor\"]",
        "# gap =",
        "# mu =",
    ] {
        assert!(text.contains(word), "{word:?} is not in\n{text}");
    }
    // What cannot be measured has no line that could be taken for a measurement.
    assert!(!text.contains("\nmu =") && !text.contains("\nrho =") && !text.contains("\ngap ="), "{text}");
}

#[test]
fn machines_see_the_same_with_all_digits() {
    let place = TestDir::holding(PROBLEM);
    let answer = place.json("calibrate p.toml", 0);
    for (constant, truth) in [("smoothness", 4.0), ("growth", 0.5), ("floor", 1.0)] {
        let figure = figure(&answer, constant);
        assert_eq!(figure["provenance"], "estimated");
        assert_eq!(figure["proved_by_problem"], truth);
        let value = figure["estimate"]["value"].as_f64().unwrap();
        assert!((value - truth).abs() < 0.1 * truth, "{constant}: {value}");
        assert!(figure["estimate"]["low"].as_f64().unwrap() <= value);
    }
    for constant in ["gap", "distance", "mu", "rho", "lipschitz"] {
        assert_eq!(figure(&answer, constant)["provenance"], "cannot-be-measured");
        assert!(figure(&answer, constant).get("estimate").is_none());
    }
    assert!(answer["samples"].as_u64().unwrap() <= 32_000);
    assert_eq!(answer["rays"].as_array().unwrap().len(), 4);
    assert_eq!(answer["bg0_fails"], false);
    assert_eq!(place.json("calibrate p.toml --threads 3", 0), answer);
    assert_ne!(place.json("calibrate p.toml --seed 2", 0), answer);
    assert!(place.json("calibrate p.toml --budget 64000", 0)["samples"].as_u64().unwrap() > 50_000);
    // Nothing is written unless asked for.
    assert_eq!(fs::read_dir(place.0.path()).unwrap().count(), 1);
}

#[test]
fn noise_that_breaks_bg_0_is_called_so_with_what_it_means() {
    let place = TestDir::holding(&with(PROBLEM, "growth = 0.5", "growth = 0.5\nexponent = 6"));
    let text = place.text("calibrate p.toml --output out");
    let page = place.read("out/index.html");
    for cell in ["BG-0 fails along this direction: exponent 6.0", "no B is large enough"] {
        assert!(page.contains(cell), "{cell:?} is not on\n{page}");
    }
    for word in ["Every recipe rests on BG-0, so none promises anything", "# BG-0 fails along some ray"] {
        assert!(text.contains(word), "{word:?} is not in\n{text}");
    }
    assert_eq!(place.json("calibrate p.toml", 0)["bg0_fails"], true);

    let place = TestDir::holding(&with(PROBLEM, "growth = 0.5", "growth = 0.0"));
    let text = place.text("calibrate p.toml --output out");
    assert!(place.read("out/index.html").contains("bounded: exponent 0.0"));
    assert!(text.contains("growth = 0.0"), "{text}");
}

#[test]
fn the_folder_gets_a_page_an_object_and_a_block() {
    let place = TestDir::holding(PROBLEM);
    let printed = place.text("calibrate p.toml --output deep/out");
    let json: Value = serde_json::from_str(&place.read("deep/out/calibration.json")).unwrap();
    assert_eq!(json, place.json("calibrate p.toml", 0));
    let block = place.read("deep/out/constants.toml");
    assert!(printed.contains(block.trim_end()), "{block}");
    let page = place.read("deep/out/index.html");
    for word in ["<svg", "fit: ", "BG-0 plausible", "[recipe.constants]", "distance |x − x₀|"] {
        assert!(page.contains(word), "{word:?} is not in the page");
    }
    assert_eq!(fs::read_dir(place.path("deep/out")).unwrap().count(), 3);
    place.pasta("calibrate p.toml --output p.toml").assert().code(1).stderr(contains("p.toml"));
}

/// The problem with a recipe and the block that calibration prints, completed by what must be declared.
fn solvable(place: &TestDir, recipe: &str, declared: &str) -> String {
    place.text("calibrate p.toml --output out");
    format!(
        "{PROBLEM}\n[recipe]\nname = \"{recipe}\"\ntarget = 1.0\n\n{}\n{declared}\n",
        place.read("out/constants.toml")
    )
}

#[test]
fn solve_takes_the_block_for_every_recipe_and_promises_nothing() {
    for (recipe, declared, used) in [
        ("smooth", "gap = 2.5", "smoothness, growth, floor are estimates"),
        ("mean-square-smooth", "gap = 2.5", "ms-smoothness, growth, floor are estimates"),
        ("smooth-convex", "distance = 1.5", "smoothness, growth, floor are estimates"),
    ] {
        let place = TestDir::holding(PROBLEM);
        // Above the truth, so that being an estimate is all there is against them.
        let text = solvable(&place, recipe, declared);
        let safe = text
            .lines()
            .map(|line| match line.split_once(" = ") {
                Some((name @ ("smoothness" | "ms-smoothness" | "growth" | "floor"), value)) => {
                    // The problem's own lines are the truth and stay.
                    let value: f64 = value.parse().unwrap();
                    let above = if [0.5, 1.0].contains(&value) { value } else { 1.2 * value };
                    format!("{name} = {above:?}")
                }
                _ => line.to_owned(),
            })
            .collect::<Vec<_>>()
            .join("\n");
        fs::write(place.path("q.toml"), safe).unwrap();
        let answer = place.json("solve q.toml", 0);
        assert_eq!(answer["promise"]["holds"], false, "{recipe}");
        let promise = answer["promise"]["statement"].as_str().unwrap();
        assert!(promise.starts_with(&format!("none proved: {used} (were they true: E ")), "{promise}");
        let note = format!("nothing is promised for this run: {used}");
        place.pasta("solve q.toml").assert().success().stderr(contains(note));
    }
}

#[test]
fn an_estimate_below_the_truth_is_told_as_well() {
    let place = TestDir::holding(PROBLEM);
    let text = solvable(&place, "smooth", "gap = 2.5");
    let line = text.lines().find(|line| line.starts_with("smoothness = ")).unwrap().to_owned();
    fs::write(place.path("q.toml"), with(&text, &line, "smoothness = 3.0")).unwrap();
    let answer = place.json("solve q.toml", 0);
    let promise = answer["promise"]["statement"].as_str().unwrap();
    assert!(
        promise.starts_with("none for this problem: smoothness = 3 is declared, but 4 is true"),
        "{promise}"
    );
    assert!(promise.contains("are estimates"), "{promise}");
}

#[test]
fn names_of_estimates_are_checked() {
    let block = |estimated: &str| {
        format!(
            "{PROBLEM}\n[recipe]\nname = \"smooth\"\ntarget = 1.0\n\n[recipe.constants]\nsmoothness = 4.0\ngap = 2.5\n\
             growth = 0.5\nfloor = 1.0\nestimated = {estimated}\n"
        )
    };
    for (estimated, told) in [
        ("[\"smothness\"]", "unknown constant \"smothness\"; expected some of smoothness"),
        ("[\"target\"]", "unknown constant \"target\""),
        ("[\"mu\"]", "mu is called an estimate, but is not given"),
        ("\"growth\"", "expected a list of names of constants"),
        ("[1]", "expected a list of names of constants"),
    ] {
        let place = TestDir::holding(&block(estimated));
        place.refuses("solve p.toml", &["p.toml:22: [recipe.constants] estimated: ", told]);
    }
    // An empty list is no estimate, and one is one.
    let promised = TestDir::holding(&block("[]")).json("solve p.toml", 0);
    assert_eq!(promised["promise"]["holds"], true);
    let one = TestDir::holding(&block("[\"growth\"]")).json("solve p.toml", 0);
    assert!(
        one["promise"]["statement"].as_str().unwrap().contains("growth is an estimate (were it true: E ")
    );
    // What the recipe does not use is an error unless it is an estimate.
    let unused = with(&block("[]"), "estimated = []", "ms-smoothness = 5.0\nestimated = []");
    TestDir::holding(&unused).refuses("solve p.toml", &["ms-smoothness"]);
    let dropped = with(&unused, "estimated = []", "estimated = [\"ms-smoothness\"]");
    assert_eq!(TestDir::holding(&dropped).json("solve p.toml", 0)["promise"]["holds"], true);
}

#[test]
fn noise_of_another_power_has_no_proved_constants_and_no_promise() {
    let six = with(PROBLEM, "growth = 0.5", "growth = 0.5\nexponent = 6");
    let proved = format!("{six}\n[recipe]\nname = \"smooth\"\ntarget = 1.0\nconstants = \"problem\"\n");
    TestDir::holding(&proved).refuses("solve p.toml", &["constants: ", "to the power 6", "BG-0 fails"]);
    let declared = format!(
        "{six}\n[recipe]\nname = \"smooth\"\ntarget = 1.0\n\n[recipe.constants]\nsmoothness = 4.0\ngap = 2.5\n\
         growth = 0.5\nfloor = 1.0\n"
    );
    let place = TestDir::holding(&declared);
    let answer = place.json("solve p.toml --budget 1e6", 0);
    assert_eq!(answer["promise"]["holds"], false);
    assert!(answer["problem"].as_str().unwrap().ends_with("exponent 6"), "{answer}");
    let doubts = answer["promise"]["doubts"].as_array().unwrap();
    let doubt =
        "the noise grows with the distance to the power 6 (variance), so no B and b bound it: BG-0 fails";
    assert!(doubts.iter().any(|told| told == doubt), "{doubts:?}");
    for bad in ["-1", "nan", "inf"] {
        let text = with(&six, "exponent = 6", &format!("exponent = {bad}"));
        TestDir::holding(&text).refuses("calibrate p.toml", &["p.toml:11: [noise] exponent: ", "at least 0"]);
    }
    // The square said aloud is the square.
    let two = with(PROBLEM, "growth = 0.5", "growth = 0.5\nexponent = 2.0");
    assert_eq!(
        TestDir::holding(&two).json("calibrate p.toml", 0),
        TestDir::holding(PROBLEM).json("calibrate p.toml", 0)
    );
}

#[test]
fn a_recipe_is_not_needed_and_not_looked_at() {
    let place = TestDir::holding(&format!("{PROBLEM}\n[recipe]\nname = \"no such recipe\"\n"));
    place.text("calibrate p.toml");
    place.refuses("solve p.toml", &["no such recipe"]);
}

#[test]
fn bad_input_is_refused_with_its_place() {
    let place = TestDir::holding(PROBLEM);
    place.refuses("calibrate p.toml --budget 6399", &["--budget: ", "6399", "6400"]);
    place.refuses("calibrate p.toml --budget few", &["--budget"]);
    place.refuses("calibrate p.toml --threads 0", &["--threads"]);
    place.refuses("calibrate p.toml --seed -1", &["--seed"]);
    place.refuses("calibrate none.toml", &["none.toml: No such file"]);
    place.refuses("calibrate", &["<FILE>"]);
    let bad = |old, new| TestDir::holding(&with(PROBLEM, old, new));
    bad("[noise]", "[nose]").refuses("calibrate p.toml", &["p.toml:8: nose: unknown key"]);
    bad("growth = 0.5", "growth = -0.5").refuses("calibrate p.toml", &["p.toml:10: [noise] growth"]);
    bad("start = [1.0, 1.0]", "start = [1.0]").refuses("calibrate p.toml", &["p.toml:6: [problem] start"]);
    bad("start = [1.0, 1.0]", "start = [1e200, 1.0]")
        .refuses("calibrate p.toml", &["too large to be squared"]);
}

#[test]
fn the_help_teaches_by_examples_that_work() {
    let place = TestDir::holding(PROBLEM);
    let help = place.text("calibrate --help");
    let examples = help.split("Examples:").nth(1).unwrap();
    let commands: Vec<_> = examples.lines().filter_map(|line| line.trim().strip_prefix("pasta ")).collect();
    assert_eq!(commands.len(), 3);
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/sine-bowl.toml");
    for command in commands {
        place.text(&with(command, "examples/sine-bowl.toml", file));
    }
}

#[cfg(unix)]
#[test]
fn ctrl_c_ends_it_with_130_and_writes_nothing() {
    use std::process::{Command as Process, Stdio};
    let place = TestDir::holding(PROBLEM);
    // Hours of work, were it not interrupted.
    let mut child = Process::new(env!("CARGO_BIN_EXE_pasta"))
        .args(["calibrate", "p.toml", "--budget", "1e12", "--output", "out"])
        .current_dir(place.0.path())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // The folder is made once signals are watched for.
    while !place.path("out").exists() {
        std::thread::yield_now();
    }
    let id = child.id().to_string();
    assert!(Process::new("kill").args(["-INT", &id]).status().unwrap().success());
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert_eq!(fs::read_dir(place.path("out")).unwrap().count(), 0);
}

/// The text of an example with the printed block in place of its constants, and what no sample can tell taken from the
/// problem's own proofs.
fn example_with_printed_constants(place: &TestDir, name: &str, needed: &[&str], seed: u64) -> String {
    let path = format!("{}/../../examples/{name}", env!("CARGO_MANIFEST_DIR"));
    place.write("p.toml", &fs::read_to_string(path).unwrap());
    let answer = place.json(&format!("calibrate p.toml --seed {seed}"), 0);
    let declared = needed.iter().map(|constant| {
        let value = figure(&answer, constant)["proved_by_problem"].as_f64().unwrap();
        format!("{constant} = {value:?}\n")
    });
    let text = place.read("p.toml").replace("constants = \"problem\"", "");
    let text = text.split("[recipe.constants]").next().unwrap().to_owned();
    format!("{text}\n{}\n{}", answer["constants"].as_str().unwrap(), declared.collect::<String>())
}

#[test]
fn calibrate_paste_solve_arrives_on_the_examples() {
    const SEEDS: u64 = 10;
    let place = TestDir::holding(PROBLEM);
    for (name, needed, target) in [
        ("sine-bowl.toml", &["gap"][..], 0.1),
        ("ramp-page.toml", &["gap"], 0.25),
        ("quadratic-pl.toml", &["gap", "mu"], 0.1),
        ("absolute-student-t.toml", &["lipschitz", "distance"], 0.1),
    ] {
        let measure = match name {
            "quadratic-pl.toml" | "absolute-student-t.toml" => "gap",
            _ => "gradient_squared",
        };
        let reached = (1..=SEEDS).map(|seed| {
            place.write("q.toml", &example_with_printed_constants(&place, name, needed, seed));
            let answer = place.json(&format!("solve q.toml --seed {seed}"), 0);
            assert_eq!(answer["stop"]["kind"], "planned-end", "{name} {seed}");
            answer["truth"][measure].as_f64().unwrap()
        });
        // What would be promised, were the constants true, is a bound on a mean.
        let promised = if measure == "gap" { target } else { target * target };
        let mean = reached.sum::<f64>() / SEEDS as f64;
        assert!(mean <= promised, "{name}: {mean} instead of {promised}");
    }
}

#[test]
fn calibrate_paste_solve_arrives_on_the_other_examples_with_a_recipe_in_place_of_their_methods() {
    const SMOOTH: &str = "name = \"smooth\"\ntarget = 0.1";
    const KINKED: &str = "name = \"weakly-convex\"\nlambda = 3.0\ntarget = 0.7";
    let place = TestDir::holding(PROBLEM);
    let examples = format!("{}/../../examples", env!("CARGO_MANIFEST_DIR"));
    fs::copy(format!("{examples}/iris.csv"), place.path("iris.csv")).unwrap();
    // With what no sample can tell, and the target that the run has to come to.
    for (name, recipe, declared, target) in [
        ("certified-sgd.toml", SMOOTH, "gap = 1.25", 0.1),
        ("sgd-diverges.toml", SMOOTH, "gap = 1.6", 0.1),
        ("iris.toml", SMOOTH, "gap = 1.1", 0.1),
        ("kinked-well.toml", KINKED, "rho = 1.0\nlipschitz = 1.0\ngap = 0.5", 0.7),
    ] {
        let text = fs::read_to_string(format!("{examples}/{name}")).unwrap();
        let (problem, _) = text.split_once("\n[recipe]").unwrap();
        place.write("p.toml", &text);
        let mut squares = 0.0;
        for seed in 1..=3 {
            let answer = place.json(&format!("calibrate p.toml --seed {seed}"), 0);
            let block = answer["constants"].as_str().unwrap();
            place.write("q.toml", &format!("{problem}\n[recipe]\n{recipe}\n{block}\n{declared}\n"));
            let truth = if name == "iris.toml" {
                // Nothing is known of it but by a pass over its rows.
                let answer = place.json(&format!("solve q.toml --certify 0.1 --seed {seed}"), 0);
                answer["certificate"]["bound"].as_f64().unwrap().powi(2)
            } else {
                let answer = place.json(&format!("solve q.toml --seed {seed}"), 0);
                assert_eq!(answer["stop"]["kind"], "planned-end", "{name} {seed}");
                let measure = if recipe == KINKED { "moreau_squared" } else { "gradient_squared" };
                answer["truth"][measure].as_f64().unwrap()
            };
            squares += truth / 3.0;
        }
        assert!(squares <= target * target, "{name}: {squares}");
    }
}
