//! Runs every command of docs/tutorial.md in an empty folder and compares what it prints with the page.
//!
//! A fence with a file name after its language is that file; a fence `sh` is a command, and the fence `text` after it what it prints.
//! A line `..` stands for any lines. Lines about time, the number of workers and errors of rounding may differ.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod place;

use std::path::Path;
use std::process::Command;

use place::{PASTA, TestDir};

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// The first words of lines that depend on the machine (time, cores, and how it rounds), with the lines that go on under them.
const VARYING: [&str; 5] = ["time ", "block ", "workers ", "simulator ", "losses "];

/// A fenced block: what stands after the opening fence, and its lines.
struct Fence<'p> {
    info: &'p str,
    text: &'p str,
}

/// The page as it alternates: prose, fence, prose, ..
fn fences(page: &str) -> Vec<Fence<'_>> {
    let mut parts = page.split("```");
    parts.next();
    let mut fences = Vec::new();
    while let Some(fence) = parts.next() {
        let (info, text) = fence.split_once('\n').unwrap();
        fences.push(Fence { info, text });
        parts.next().expect("every fence is closed");
    }
    fences
}

/// Without the lines that depend on the machine.
fn steady(text: &str) -> Vec<&str> {
    let mut varies = false;
    let mut kept = Vec::new();
    for line in text.lines() {
        if !line.starts_with(' ') {
            varies = VARYING.iter().any(|word| line.starts_with(word));
        }
        if !varies {
            kept.push(line.trim_end());
        }
    }
    kept
}

/// Whether the page shows what was printed.
fn shows(shown: &str, printed: &str) -> bool {
    let (shown, printed) = (steady(shown), steady(printed));
    if !shown.contains(&"..") {
        return shown == printed;
    }
    let mut rest = printed.as_slice();
    shown.split(|line| *line == "..").filter(|part| !part.is_empty()).all(|part| {
        let found = rest.windows(part.len()).position(|lines| lines == part);
        rest = found.map_or(&[][..], |at| &rest[at + part.len()..]);
        found.is_some()
    })
}

/// Runs a command as a shell would, with `pasta` among its programs, and returns what it printed.
fn run(place: &TestDir, command: &str) -> String {
    let folder = Path::new(PASTA).parent().unwrap().to_str().unwrap();
    let search = format!("{folder}:{}", std::env::var("PATH").unwrap());
    let mut shell = Command::new("sh");
    shell.args(["-c", command]).env("PATH", search).env_remove("COLUMNS");
    let output = shell.current_dir(place.0.path()).output().unwrap();
    assert!(output.status.success(), "{command}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn every_command_of_the_tutorial_prints_what_the_page_shows() {
    let path = Path::new(ROOT).join("docs/tutorial.md");
    let mut page = std::fs::read_to_string(&path).unwrap();
    let place = TestDir::new();
    for file in ["sdk/pasta.py", "examples/iris.csv"] {
        let from = Path::new(ROOT).join(file);
        std::fs::copy(&from, place.path(from.file_name().unwrap().to_str().unwrap())).unwrap();
    }
    let copy = page.clone();
    let fences = fences(&copy);
    let mut commands = 0;
    for (fence, next) in fences.iter().zip(fences.iter().skip(1)) {
        match fence.info.split_once(' ') {
            Some((_, name)) => place.write(name, fence.text),
            // Cargo builds; the library's tests run that example.
            None if fence.info != "sh" || fence.text.starts_with("cargo ") => {}
            None => {
                commands += 1;
                assert_eq!(next.info, "text", "no output after {}", fence.text);
                let printed = run(&place, fence.text);
                if std::env::var_os("PASTA_BLESS").is_some() && !next.text.lines().any(|line| line == "..") {
                    let asked = format!("```sh\n{}```\n\n```text\n", fence.text);
                    page = page.replacen(
                        &format!("{asked}{}```", next.text),
                        &format!("{asked}{printed}```"),
                        1,
                    );
                    continue;
                }
                assert!(
                    shows(next.text, &printed),
                    "{}prints\n{printed}\nPASTA_BLESS=1 cargo test -p pasta-cli --test tutorial writes the page anew",
                    fence.text
                );
            }
        }
    }
    assert_eq!(commands, 8);
    if copy != page {
        std::fs::write(path, page).unwrap();
    }
}

#[test]
fn every_command_of_the_readme_runs_and_prints_what_it_shows() {
    let readme = std::fs::read_to_string(Path::new(ROOT).join("README.md")).unwrap();
    let place = TestDir::holding("");
    std::fs::create_dir(place.path("examples")).unwrap();
    for name in ["iris.csv", "sine-bowl.toml"] {
        std::fs::copy(Path::new(ROOT).join("examples").join(name), place.path("examples").join(name))
            .unwrap();
    }
    let fences = fences(&readme);
    let listed = fences.iter().filter(|fence| fence.info == "sh").flat_map(|fence| fence.text.lines());
    let commands: Vec<&str> = listed.filter(|line| line.starts_with("pasta ")).collect();
    assert!(commands.len() >= 8, "{commands:?}");
    let files = readme.split(|c: char| c.is_whitespace() || "()`".contains(c));
    let files = files.map(|word| word.split('#').next().unwrap_or_default());
    let named: Vec<&str> = files
        .filter(|word| ["docs/", "examples/", "crates/"].iter().any(|top| word.starts_with(top)))
        .collect();
    assert!(named.len() > 15, "{named:?}");
    for file in named {
        assert!(Path::new(ROOT).join(file).exists(), "README.md names {file}, which is not there");
    }
    for command in commands {
        run(&place, command);
    }
    let shown = fences.iter().filter_map(|fence| fence.text.strip_prefix("$ ")?.split_once('\n'));
    for (command, shown) in shown {
        let printed = run(&place, command);
        assert!(shows(shown, &printed), "{command} prints\n{printed}");
    }
}

#[test]
fn a_page_that_shows_something_else_is_noticed() {
    let printed = "samples  10\ntime     3 us\n         or 4\nsteps    7\nend\n";
    assert!(shows("samples  10\ntime     5 us\nsteps    7\nend\n", printed));
    assert!(shows("samples  10\n..\nend\n", printed));
    assert!(!shows("samples  11\ntime     3 us\n         or 4\nsteps    7\nend\n", printed));
    assert!(!shows("..\nend\n..\nsamples  10\n", printed));
    assert!(!shows("samples  10\nend\n", printed));
}
