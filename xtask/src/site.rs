//! `cargo xtask site`: the pages of docs/ as a site that needs no network: a list of all pages beside each, a search, and a reference that the program writes.
//!
//! Not mdbook: it takes minutes to compile, and what is needed of it is this file.

use std::collections::{BTreeMap, BTreeSet};
use std::env;
use std::fmt::Write;
use std::fs;
use std::path::{Component, Path, PathBuf};
use std::process::Command;

use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd, html};
use serde_json::Value;

const STYLE: &str = include_str!("site.css");
const SCRIPT: &str = include_str!("site.js");

/// A page: its file in the site, its title, and its text in Markdown.
#[derive(Debug, Clone)]
struct Page {
    file: String,
    title: String,
    text: String,
}

/// A part of the list of all pages.
#[derive(Debug)]
struct Chapter {
    title: String,
    pages: Vec<Page>,
}

/// Builds the site under target/site; every link of it leads somewhere.
pub(crate) fn run() -> bool {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let target = env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from);
    let out = target.join("site");
    match reference(&root, &target).and_then(|reference| build(&root, &out, reference)) {
        Ok(pages) => {
            eprintln!("{pages} pages in {}", out.join("index.html").display());
            true
        }
        Err(complaint) => {
            eprintln!("{complaint}");
            false
        }
    }
}

/// The pages that the program writes about itself: its commands, and the keys of problem files.
fn reference(root: &Path, target: &Path) -> Result<Vec<Page>, String> {
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let built =
        Command::new(cargo).args(["build", "--quiet", "--package", "pasta-cli"]).current_dir(root).status();
    if !built.is_ok_and(|status| status.success()) {
        return Err("the program does not compile".into());
    }
    let say = |arguments: &[&str]| {
        let output = Command::new(target.join("debug/pasta")).args(arguments).env("COLUMNS", "100").output();
        let output = output.map_err(|error| error.to_string())?;
        String::from_utf8(output.stdout).map_err(|error| error.to_string())
    };
    let help = say(&["--help"])?;
    let mut commands = format!("# Commands and flags\n\n```text\n{}\n```\n", help.trim_end());
    for command in commands_of(&help) {
        let text = say(&[command, "--help"])?;
        write!(commands, "\n## pasta {command}\n\n```text\n{}\n```\n", text.trim_end())
            .map_err(|error| error.to_string())?;
    }
    let schema = serde_json::from_str(&say(&["schema"])?).map_err(|error| error.to_string())?;
    let problems = say(&["problems"])?;
    Ok(vec![
        page("commands", commands)?,
        page("keys", keys(&schema))?,
        page("problems", format!("# Built-in problems\n\n```text\n{}\n```\n", problems.trim_end()))?,
    ])
}

/// The commands that a help lists.
fn commands_of(help: &str) -> Vec<&str> {
    let list = help.split("Commands:\n").nth(1).unwrap_or_default();
    let lines = list.lines().take_while(|line| line.starts_with("  "));
    let first =
        lines.filter(|line| !line.starts_with("   ")).filter_map(|line| line.split_whitespace().next());
    first.filter(|command| *command != "help").collect()
}

/// The keys of problem files, by their tables.
fn keys(schema: &Value) -> String {
    let mut text = "# Keys of problem files\n\nMade from `pasta schema`. [Files](formats.md) explains how they go together.\n".to_owned();
    let mut tables = vec![("The file".to_owned(), schema)];
    let mut at = 0;
    while at < tables.len() {
        let (name, table) = tables[at].clone();
        at += 1;
        text.push_str(&format!("\n## {name}\n\n| key | meaning | values |\n|---|---|---|\n"));
        for (key, value) in table["properties"].as_object().into_iter().flatten() {
            let of = |inner: &Value| if inner["properties"].is_object() { Some(inner.clone()) } else { None };
            let inner =
                [value, &value["items"], &value["oneOf"][1]].into_iter().find(|inner| of(inner).is_some());
            if let Some(inner) = inner {
                let path = if name == "The file" { key.clone() } else { format!("{name}.{key}") };
                tables.push((path, inner));
            }
            let values: Vec<String> = match value["enum"].as_array() {
                Some(words) => {
                    words.iter().map(|word| format!("`{}`", word.to_string().trim_matches('"'))).collect()
                }
                None => value["type"].as_str().map(str::to_owned).into_iter().collect(),
            };
            let meaning = value["description"].as_str().unwrap_or_default().replace('|', "\\|");
            text.push_str(&format!("| `{key}` | {meaning} | {} |\n", values.join(", ")));
        }
    }
    text
}

fn page(file: &str, text: String) -> Result<Page, String> {
    let title = text.lines().next().and_then(|line| line.strip_prefix("# ")).map(str::to_owned);
    let title = title.ok_or_else(|| format!("{file} does not begin with a headline"))?;
    Ok(Page { file: format!("{file}.html"), title, text })
}

/// Writes all pages, and says how many. A link that leads nowhere is an error, and so is a page that docs/index.md does not list.
fn build(root: &Path, out: &Path, reference: Vec<Page>) -> Result<usize, String> {
    let docs = root.join("docs");
    let mut chapters = chapters(&docs)?;
    if let Some(chapter) = chapters.iter_mut().find(|chapter| chapter.title == "Reference") {
        chapter.pages.extend(reference);
    }
    let listed: BTreeSet<String> =
        chapters.iter().flat_map(|c| &c.pages).map(|page| page.file.clone()).collect();
    let files = fs::read_dir(&docs).map_err(|error| error.to_string())?.flatten().map(|entry| entry.path());
    for file in files.filter(|file| file.extension().is_some_and(|end| end == "md")) {
        let name = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        if name != "index" && !listed.contains(&format!("{name}.html")) {
            return Err(format!("docs/index.md does not list {name}.md"));
        }
    }
    let index = fs::read_to_string(docs.join("index.md")).map_err(|error| error.to_string())?;
    let home = page("index", index)?;
    let pages: Vec<&Page> =
        std::iter::once(&home).chain(chapters.iter().flat_map(|chapter| &chapter.pages)).collect();
    fs::create_dir_all(out).map_err(|error| format!("{}: {error}", out.display()))?;
    let write =
        |name: &str, text: &str| fs::write(out.join(name), text).map_err(|error| format!("{name}: {error}"));
    let mut written = BTreeMap::new();
    let mut found = Vec::new();
    for page in &pages {
        let body = rendered(page, root, out)?;
        let list = list(&chapters, &page.file);
        let html = format!(
            "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
             <meta name=\"color-scheme\" content=\"light dark\">\n<title>{} - pasta</title>\n<link rel=\"stylesheet\" href=\"site.css\">\n</head>\n<body>\n\
             <nav>\n<p class=\"name\"><a href=\"index.html\">pasta</a></p>\n<input type=\"search\" id=\"search\" placeholder=\"Search\" aria-label=\"Search all pages\">\n\
             <ol id=\"found\" hidden></ol>\n<details open><summary>All pages</summary>\n{list}</details>\n</nav>\n<main>\n{}</main>\n\
             <script src=\"words.js\"></script>\n<script src=\"site.js\"></script>\n</body>\n</html>\n",
            escaped(&page.title),
            body.html
        );
        write(&page.file, &html)?;
        found.extend(body.sections.into_iter().map(|(anchor, heading, words)| {
            serde_json::json!([format!("{}{anchor}", page.file), page.title, heading, words])
        }));
        written.insert(page.file.clone(), (body.anchors, body.links));
    }
    write("site.css", STYLE)?;
    write("site.js", SCRIPT)?;
    // A script and not a file of JSON: a browser reads it from a disk, too.
    write("words.js", &format!("const WORDS = {};\n", Value::from(found)))?;
    let broken = broken(&written, out);
    if broken.is_empty() { Ok(written.len()) } else { Err(broken.join("\n")) }
}

/// docs/index.md as a list: headings, and links to pages under them. A line may name several.
fn chapters(docs: &Path) -> Result<Vec<Chapter>, String> {
    let index =
        fs::read_to_string(docs.join("index.md")).map_err(|error| format!("docs/index.md: {error}"))?;
    let mut chapters: Vec<Chapter> = Vec::new();
    for line in index.lines() {
        if let Some(title) = line.strip_prefix("## ") {
            chapters.push(Chapter { title: title.into(), pages: Vec::new() });
        }
        for link in line.split("](").skip(1) {
            let file = link.split(')').next().unwrap_or_default();
            let name = file.strip_suffix(".md").ok_or_else(|| format!("docs/index.md: {file} is no page"))?;
            let text =
                fs::read_to_string(docs.join(file)).map_err(|error| format!("docs/{file}: {error}"))?;
            let chapter = chapters.last_mut().ok_or("docs/index.md: a link before the first heading")?;
            chapter.pages.push(page(name, text)?);
        }
    }
    Ok(chapters)
}

fn list(chapters: &[Chapter], here: &str) -> String {
    let mut list = String::new();
    for chapter in chapters {
        list.push_str(&format!("<p>{}</p>\n<ul>\n", escaped(&chapter.title)));
        for Page { file, title, .. } in &chapter.pages {
            let current = if file == here { " aria-current=\"page\"" } else { "" };
            list.push_str(&format!("<li><a href=\"{file}\"{current}>{}</a></li>\n", escaped(title)));
        }
        list.push_str("</ul>\n");
    }
    list
}

/// A page in HTML, with its anchors, its links, and the words under each heading for the search.
#[derive(Default)]
struct Body {
    html: String,
    anchors: BTreeSet<String>,
    links: Vec<String>,
    /// The anchor with its #, the heading, the words under it.
    sections: Vec<(String, String, String)>,
}

fn rendered(page: &Page, root: &Path, out: &Path) -> Result<Body, String> {
    let mut body =
        Body { sections: vec![(String::new(), page.title.clone(), String::new())], ..Body::default() };
    let mut events: Vec<Event<'_>> = Vec::new();
    // The place of the heading that is open, and its words.
    let mut heading: Option<(usize, String)> = None;
    for event in Parser::new_ext(&page.text, Options::ENABLE_TABLES | Options::ENABLE_FOOTNOTES) {
        let event = match event {
            Event::Start(Tag::Link { link_type, dest_url, title, id }) => {
                let to = target(&dest_url, root, out)?;
                body.links.push(to.clone());
                Event::Start(Tag::Link { link_type, dest_url: to.into(), title, id })
            }
            Event::Start(Tag::Image { link_type, dest_url, title, id }) => {
                let to = target(&dest_url, root, out)?;
                body.links.push(to.clone());
                Event::Start(Tag::Image { link_type, dest_url: to.into(), title, id })
            }
            Event::Start(Tag::Heading { .. }) => {
                heading = Some((events.len(), String::new()));
                event
            }
            Event::End(TagEnd::Heading(level)) => {
                if let Some((at, words)) = heading.take() {
                    let anchor = anchor(&words);
                    events[at] = Event::Start(Tag::Heading {
                        level,
                        id: Some(anchor.clone().into()),
                        classes: Vec::new(),
                        attrs: Vec::new(),
                    });
                    body.sections.push((format!("#{anchor}"), words, String::new()));
                    body.anchors.insert(anchor);
                }
                event
            }
            Event::Text(ref text) | Event::Code(ref text) => {
                match (&mut heading, body.sections.last_mut()) {
                    (Some((_, words)), _) => words.push_str(text),
                    (None, Some((.., words))) => {
                        words.push_str(text);
                        words.push(' ');
                    }
                    (None, None) => {}
                }
                event
            }
            other => other,
        };
        events.push(event);
    }
    html::push_html(&mut body.html, events.into_iter());
    // Wide tables scroll by themselves, and not the page.
    body.html =
        body.html.replace("<table>", "<div class=\"wide\"><table>").replace("</table>", "</table></div>");
    Ok(body)
}

/// Where a link of docs/ leads in the site. A file of the project that is no page is brought along.
fn target(link: &str, root: &Path, out: &Path) -> Result<String, String> {
    if link.starts_with("http:") || link.starts_with("https:") || link.starts_with('#') {
        return Ok(link.into());
    }
    let (file, anchor) =
        link.split_once('#').map_or((link, String::new()), |(file, anchor)| (file, format!("#{anchor}")));
    if let Some(name) = file.strip_suffix(".md").filter(|name| !name.contains('/')) {
        return Ok(format!("{name}.html{anchor}"));
    }
    let path = plain(&Path::new("docs").join(file));
    let (from, to) = (root.join(&path), out.join("files").join(&path));
    let folder = to.parent().ok_or_else(|| format!("{link} is no file"))?;
    fs::create_dir_all(folder).map_err(|error| error.to_string())?;
    fs::copy(&from, &to).map_err(|error| format!("{link}: {}: {error}", from.display()))?;
    Ok(format!("files/{}", path.display()))
}

/// A path without `..`.
fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => {
                plain.pop();
            }
            Component::Normal(name) => plain.push(name),
            _ => {}
        }
    }
    plain
}

/// The anchor of a heading, as code hosts make them.
fn anchor(heading: &str) -> String {
    let kept = heading.trim().to_lowercase();
    let kept = kept.chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c));
    kept.map(|c| if c == ' ' { '-' } else { c }).collect()
}

/// The links that lead nowhere.
fn broken(written: &BTreeMap<String, (BTreeSet<String>, Vec<String>)>, out: &Path) -> Vec<String> {
    let mut broken = Vec::new();
    for (page, (_, links)) in written {
        for link in links.iter().filter(|link| !link.starts_with("http")) {
            let (file, anchor) = link.split_once('#').unwrap_or((link, ""));
            let file = if file.is_empty() { page } else { file };
            let is_there = match written.get(file) {
                Some((anchors, _)) => anchor.is_empty() || anchors.contains(anchor),
                None => out.join(file).is_file(),
            };
            if !is_there {
                broken.push(format!("{page}: the link {link} leads nowhere"));
            }
        }
    }
    broken
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_link_of_the_docs_leads_somewhere_and_every_page_is_listed() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let out = tempfile::tempdir().unwrap();
        let pages = build(&root, out.path(), Vec::new()).unwrap_or_else(|complaint| panic!("{complaint}"));
        assert!(pages > 20, "{pages}");
        let page = fs::read_to_string(out.path().join("formats.html")).unwrap();
        assert!(page.contains("<h2 id=\"problem-files\">") && page.contains("aria-current=\"page\""));
        let words = fs::read_to_string(out.path().join("words.js")).unwrap();
        assert!(words.starts_with("const WORDS = [[") && words.contains("formats.html#problem-files"));
    }

    #[test]
    fn a_link_that_leads_nowhere_is_seen() {
        let root = tempfile::tempdir().unwrap();
        let docs = root.path().join("docs");
        fs::create_dir(&docs).unwrap();
        let site = |index: &str, text: &str| {
            fs::write(docs.join("index.md"), index).unwrap();
            fs::write(docs.join("a.md"), text).unwrap();
            build(root.path(), &root.path().join("site"), Vec::new())
        };
        let index = "# All\n\n## Start\n\n- [A](a.md)\n";
        assert_eq!(site(index, "# A\n\n[here](#part) [self](a.md#part)\n\n## Part\n"), Ok(2));
        for (text, complaint) in [
            ("# A\n\n[b](b.md)\n", "a.html: the link b.html leads nowhere"),
            ("# A\n\n[b](#b)\n", "a.html: the link #b leads nowhere"),
            ("# A\n\n![b](b.svg)\n", "b.svg: "),
            ("A\n", "does not begin with a headline"),
        ] {
            assert!(site(index, text).unwrap_err().contains(complaint), "{text}");
        }
        assert!(site("# All\n", "# A\n").unwrap_err().contains("does not list a.md"));
    }

    #[test]
    fn keys_and_commands_are_read_from_what_the_program_says() {
        let help = "About.\n\nUsage: pasta\n\nCommands:\n  init   Write\n         more\n  solve  Run\n  help   Print\n\nOptions:\n  -h\n";
        assert_eq!(commands_of(help), ["init", "solve"]);
        let schema = serde_json::json!({ "properties": {
            "seed": { "type": "number", "description": "Of all | randomness." },
            "noise": { "properties": { "tail": { "enum": ["gaussian", "b"] } } },
        } });
        let text = keys(&schema);
        assert!(text.contains("| `seed` | Of all \\| randomness. | number |"), "{text}");
        assert!(text.contains("## noise\n") && text.contains("| `tail` |  | `gaussian`, `b` |"), "{text}");
    }
}
