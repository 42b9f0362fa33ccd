//! The ways in: `pasta init`, completions, man pages, the schema, and what is said about flags and words of other programs.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod place;

use std::path::Path;
use std::process::Command;

use place::{BOWL, PASTA, TestDir, with};
use predicates::prelude::PredicateBooleanExt;
use predicates::str::contains;
use serde_json::Value;

/// What a shell prints, with `pasta` among its programs.
fn shell(folder: &Path, command: &str) -> String {
    let programs = Path::new(PASTA).parent().unwrap().to_str().unwrap();
    let search = format!("{programs}:{}", std::env::var("PATH").unwrap());
    let output =
        Command::new("sh").args(["-c", command]).env("PATH", search).current_dir(folder).output().unwrap();
    assert!(output.status.success(), "{command}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn what_init_writes_runs_by_the_commands_that_it_prints() {
    for (kind, end) in [("simulator", "certified  |grad f| <= 0.0"), ("table", "certified  |grad f| = ")] {
        let place = TestDir::new();
        let said = shell(place.0.path(), &format!("pasta init {kind}"));
        let commands: Vec<&str> = said.lines().skip(2).map(str::trim).collect();
        assert_eq!(commands[0], format!("cd pasta-{kind}"));
        let printed = shell(place.0.path(), &commands.join(" && "));
        assert!(printed.contains(end), "{printed}");
    }
}

#[test]
fn init_writes_into_new_or_empty_folders_alone() {
    let place = TestDir::new();
    place.pasta("init python mine").assert().code(0).stdout(contains("wrote problem.py to mine"));
    assert!(place.read("mine/problem.py").contains("pasta_opt.minimize"));
    place.pasta("init rust mine").assert().code(2).stderr(contains("mine is there already"));
    place.pasta("init rust other").assert().code(0).stdout(contains("cargo run --release"));
    assert!(place.read("other/Cargo.toml").contains(concat!(
        "pasta-opt = \"",
        env!("CARGO_PKG_VERSION"),
        "\""
    )));
    assert!(place.read("other/src/main.rs").contains("impl Sampled for Newsvendor"));
    place.pasta("init cobol").assert().code(2).stderr(contains("simulator, table, python, rust"));
}

#[test]
fn completions_and_man_pages_name_commands_and_flags() {
    let place = TestDir::new();
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let output = place.pasta(&format!("completions {shell}")).output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(text.contains("certify") && text.contains("checkpoint-every"), "{shell}");
    }
    shell(place.0.path(), "pasta completions bash > pasta.bash && bash -n pasta.bash");
    place.pasta("man solve").assert().code(0).stdout(contains(".TH pasta-solve 1").and(contains("kurtosis")));
    place.pasta("man sovle").assert().code(2).stderr(contains("expected one of init, inspect, fit"));
    place.pasta("man --output man1").assert().code(0);
    for name in ["pasta", "pasta-solve", "pasta-fit", "pasta-init"] {
        assert!(place.read(&format!("man1/{name}.1")).contains(".SH"), "{name}");
    }
}

#[test]
fn the_help_has_the_commands_in_the_order_of_use() {
    let place = TestDir::new();
    let output = place.pasta("--help").output().unwrap();
    let help = String::from_utf8(output.stdout).unwrap();
    let commands = [
        "init", "inspect", "fit", "predict", "check", "plan", "solve", "resume", "certify", "verify",
        "compare",
    ];
    let places: Vec<usize> =
        commands.iter().map(|command| help.find(&format!("\n  {command} ")).unwrap()).collect();
    assert!(places.is_sorted(), "{help}");
}

/// Keys of a TOML document that a schema does not have, by a walk over its tables.
fn strangers(document: &toml_edit::Table, schema: &Value, path: &str, out: &mut Vec<String>) {
    for (key, item) in document {
        let inner = &schema["properties"][key];
        if inner.is_null() {
            out.push(format!("{path}{key}"));
        }
        if let Some(words) = inner["enum"].as_array()
            && let Some(text) = item.as_str()
            && !words.iter().any(|word| word == text)
        {
            out.push(format!("{path}{key} = {text}"));
        }
        if let Some(table) = item.as_table() {
            let inner = if inner["properties"].is_null() { &inner["oneOf"][1] } else { inner };
            strangers(table, inner, &format!("{path}{key}."), out);
        }
    }
}

#[test]
fn the_schema_knows_all_that_the_examples_and_the_page_of_files_say() {
    let place = TestDir::new();
    let schema: Value = serde_json::from_slice(&place.pasta("schema").output().unwrap().stdout).unwrap();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut files: Vec<String> = Vec::new();
    for folder in ["examples", "examples/simulators"] {
        for entry in std::fs::read_dir(root.join(folder)).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_some_and(|end| end == "toml") {
                files.push(std::fs::read_to_string(path).unwrap());
            }
        }
    }
    let page = std::fs::read_to_string(root.join("docs/formats.md")).unwrap();
    files.extend(page.split("```toml\n").skip(1).map(|part| part.split("```").next().unwrap().to_owned()));
    assert!(files.len() >= 15, "{}", files.len());
    let mut found = Vec::new();
    for file in &files {
        let document: toml_edit::DocumentMut = file.parse().unwrap();
        strangers(&document, &schema, "", &mut found);
    }
    assert!(found.is_empty(), "{found:?}");
    // The walk sees what is wrong.
    let wrong: toml_edit::DocumentMut = with(BOWL, "gaussian", "gausian").parse().unwrap();
    strangers(&wrong, &schema, "", &mut found);
    assert_eq!(found, ["noise.tail = gausian"]);
}

#[test]
fn a_word_that_is_nearly_right_is_recognised() {
    let cases = [
        ("tail = \"gaussian\"", "tail = \"gausian\"", "did you mean gaussian?"),
        ("name = \"sine-bowl\"", "name = \"sinebowl\"", "did you mean sine-bowl?"),
        ("start = [1.2]", "start = [1.2]\ndimensoin = 1", "did you mean dimension?"),
        ("name = \"smooth\"", "name = \"smoth\"", "did you mean smooth?"),
        ("seed = 1", "sead = 1", "did you mean seed?"),
        ("constants = \"problem\"", "constants = \"problem\"\nfallback = \"atuo\"", "did you mean auto?"),
        ("seed = 1", "[[term]]\nkind = \"ballz\"\nradius = 1", "did you mean ball?"),
    ];
    for (old, new, hint) in cases {
        let place = TestDir::holding(&with(BOWL, old, new));
        place.pasta("solve p.toml").assert().code(2).stderr(contains(hint));
    }
}

#[test]
fn flags_of_other_programs_are_explained() {
    let place = TestDir::new();
    for (flag, words) in [
        ("--learning-rate 0.1", "there is no learning rate to set"),
        ("--epochs 3", "a run ends at its target"),
        ("--tol 1e-3", "--target EPS stops a run"),
        ("--lr=0.1", "there is no learning rate to set"),
    ] {
        for command in ["solve p.toml", "fit t.csv"] {
            place.pasta(&format!("{command} {flag}")).assert().code(2).stderr(contains(words));
        }
    }
}

#[test]
fn what_is_wrong_with_a_command_line_is_said_of_its_flags_and_of_no_file() {
    let place = TestDir::new();
    let refused = |command: &str| {
        let output = place.pasta(command).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        String::from_utf8(output.stderr).unwrap()
    };
    let no_end = refused("solve --command true --dimension 2");
    assert!(no_end.starts_with("error: ") && !no_end.contains("[recipe]"), "{no_end}");
    let missing = refused("solve --command no-such-program --dimension 2 --target 0.1");
    assert!(missing.starts_with("error: --command: ") && !missing.contains(":2"), "{missing}");
    let start = refused("solve --command no-such-program --dimension 2 --start 1,2,3 --target 0.1");
    assert!(start.starts_with("error: --start: expected as many numbers"), "{start}");
}
