//! The page docs/tutorial.md quotes the example that runs, and shows what it prints.

#[path = "../examples/tutorial.rs"]
#[allow(dead_code, reason = "the test has a main of its own")]
mod example;

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/tutorial.md");

#[test]
fn the_tutorial_shows_the_rust_program_and_what_it_prints() {
    let page = std::fs::read_to_string(PAGE).unwrap();
    let code = include_str!("../examples/tutorial.rs");
    let quoted: Vec<&str> =
        page.split("```rust\n").skip(1).map(|rest| rest.split("```").next().unwrap()).collect();
    assert_eq!(quoted.len(), 6);
    let mut rest = code;
    for quote in quoted {
        assert!(!quote.is_empty() && rest.contains(quote), "not in the example, or not in order:\n{quote}");
        rest = &rest[rest.find(quote).unwrap() + quote.len()..];
    }

    let mut printed = Vec::new();
    example::tutorial(&mut printed).unwrap();
    let printed = String::from_utf8(printed).unwrap();
    let (before, after) = page.split_once("It prints\n\n```text\n").unwrap();
    let (shown, after) = after.split_once("```").unwrap();
    if std::env::var_os("PASTA_BLESS").is_some() {
        std::fs::write(PAGE, format!("{before}It prints\n\n```text\n{printed}```{after}")).unwrap();
        return;
    }
    assert_eq!(printed, shown, "PASTA_BLESS=1 cargo test -p pasta-opt --test tutorial writes the page anew");
}
