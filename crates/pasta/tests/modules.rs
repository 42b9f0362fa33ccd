//! The order of the modules that lib.rs draws is the order that the code keeps.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

const SOURCE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/src");

/// The modules in the order of the list in lib.rs.
fn listed() -> Vec<String> {
    let lib = fs::read_to_string(format!("{SOURCE}/lib.rs")).unwrap();
    let list = lib.split("```text").nth(1).unwrap().split("```").next().unwrap();
    let names = list.lines().filter_map(|line| line.strip_prefix("//! ")?.split_whitespace().next());
    names.map(str::to_owned).collect()
}

fn files(folder: &Path, all: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files(&path, all);
        } else if path.extension().is_some_and(|end| end == "rs") {
            all.push(path);
        }
    }
}

/// The code without comments and without its tests, which stand last in a file.
fn code(text: &str) -> String {
    let text = text.split("#[cfg(test)]").next().unwrap();
    text.lines().map(|line| line.split("//").next().unwrap()).collect::<Vec<_>>().join("\n")
}

/// The top modules that code names as `crate::module`, also in a group `crate::{one, two::Thing}`.
fn used(code: &str) -> Vec<String> {
    let name = |text: &str| -> String {
        text.trim_start().chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect()
    };
    let mut all = Vec::new();
    for rest in code.split("crate::").skip(1) {
        let Some(group) = rest.strip_prefix('{') else {
            all.push(name(rest));
            continue;
        };
        let (mut depth, mut start) = (0, 0);
        for (i, c) in group.char_indices() {
            match c {
                '{' => depth += 1,
                '}' | ',' if depth == 0 => {
                    all.push(name(&group[start..i]));
                    start = i + 1;
                    if c == '}' {
                        break;
                    }
                }
                '}' => depth -= 1,
                _ => {}
            }
        }
    }
    all.retain(|name| !name.is_empty());
    all
}

/// Every module of the crate with the modules that its files name.
fn uses() -> BTreeMap<String, Vec<String>> {
    let mut all = Vec::new();
    files(Path::new(SOURCE), &mut all);
    let mut uses = BTreeMap::<String, Vec<String>>::new();
    for path in all {
        let inside = path.strip_prefix(SOURCE).unwrap();
        let top = inside.components().next().unwrap().as_os_str().to_str().unwrap();
        let module = top.trim_end_matches(".rs").to_owned();
        let names = used(&code(&fs::read_to_string(&path).unwrap()));
        uses.entry(module).or_default().extend(names);
    }
    uses.remove("lib");
    uses
}

#[test]
fn the_list_of_modules_is_the_modules_that_there_are() {
    let mut listed = listed();
    listed.sort();
    assert_eq!(listed, uses().into_keys().collect::<Vec<_>>());
}

#[test]
fn each_module_uses_only_those_above_it() {
    let order = listed();
    let place = |name: &str| order.iter().position(|listed| listed == name);
    let mut seen = 0;
    for (module, names) in uses() {
        for name in names.iter().filter(|name| **name != module) {
            let above = place(name).unwrap_or_else(|| panic!("{module} uses {name}, which is not listed"));
            assert!(above < place(&module).unwrap(), "{module} uses {name}, which is listed below it");
            seen += 1;
        }
    }
    assert!(seen > 100, "only {seen} paths were found");
}

#[test]
fn paths_are_found_in_groups_and_not_in_comments_or_tests() {
    let text = "use crate::{draws::{Role, Stream}, gate};\n// crate::walk\n/// crate::state\nlet x = crate::stop::f();\n\
                #[cfg(test)]\nmod tests { use crate::trace; }";
    assert_eq!(used(&code(text)), ["draws", "gate", "stop"]);
}

#[test]
fn few_modules_are_documented() {
    let lib = fs::read_to_string(format!("{SOURCE}/lib.rs")).unwrap();
    let lines: Vec<_> = lib.lines().collect();
    let open = lines.windows(2).filter(|pair| pair[1].starts_with("pub mod ") && pair[0] != "#[doc(hidden)]");
    let names: Vec<_> = open.map(|pair| pair[1]).collect();
    assert!((1..=14).contains(&names.len()), "{} modules: {names:#?}", names.len());
}
