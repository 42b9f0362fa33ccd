//! A page that needs nothing but itself: no network, no fonts, no script.

use minijinja::{Environment, Value, context};

use super::{Chart, Table, typeset::typeset};
use crate::console::Failure;

/// A page: a headline, what it comes to in a sentence or two, and the sections that show it.
#[derive(Debug, Clone)]
pub struct Page {
    /// The headline.
    pub title: String,
    /// What it comes to.
    pub lead: String,
    /// What shows it.
    pub sections: Vec<Section>,
}

/// A part of a page under its own heading.
#[derive(Debug, Clone)]
pub struct Section {
    /// Its heading.
    pub heading: String,
    /// What it is made of.
    pub parts: Vec<Part>,
}

/// What a section is made of.
#[derive(Debug, Clone)]
pub enum Part {
    /// A paragraph.
    Text(String),
    /// Something to type, letter for letter.
    Command(String),
    /// What the program said, letter for letter.
    Quote(String),
    /// A chart.
    Figure(Chart),
    /// A table.
    Table(Table),
    /// A table whose rows lead to the sections with these headings.
    Contents {
        /// The table.
        table: Table,
        /// A heading for each row.
        headings: Vec<String>,
    },
}

const STYLE: &str = concat!(include_str!("page.css"), include_str!("chart.css"));

impl Page {
    /// The whole page. The same page is the same text, always.
    pub fn html(&self) -> Result<String, Failure> {
        self.rendered(None)
    }

    /// The same for a page that will be written again: a browser reads it anew after so many seconds.
    pub fn live_html(&self, seconds: u32) -> Result<String, Failure> {
        self.rendered(Some(seconds))
    }

    fn rendered(&self, again: Option<u32>) -> Result<String, Failure> {
        self.render(again).map_err(|cause| Failure::system(format!("cannot make the page: {cause}")))
    }

    fn render(&self, again: Option<u32>) -> Result<String, minijinja::Error> {
        let environment = environment()?;
        environment.get_template("page.html")?.render(context! {
            again => again,
            title => self.title.as_str(),
            lead => self.lead.as_str(),
            sections => self.sections.iter().map(Section::value).collect::<Vec<_>>(),
            style => Value::from_safe_string(STYLE.into()),
            generator => concat!("pasta ", env!("CARGO_PKG_VERSION")),
        })
    }
}

/// All templates and what they use.
fn environment() -> Result<Environment<'static>, minijinja::Error> {
    let mut environment = Environment::new();
    environment.add_filter("typeset", |text: &str| typeset(text));
    environment.add_template("page.html", include_str!("page.html"))?;
    environment.add_template("chart.html", include_str!("chart.html"))?;
    environment.add_template("plot.html", include_str!("plot.html"))?;
    environment.add_template("swatch.html", include_str!("swatch.html"))?;
    environment.add_template("table.html", include_str!("table.html"))?;
    environment.add_template("figure.xml", include_str!("figure.xml"))?;
    Ok(environment)
}

impl Chart {
    /// The chart as a file of its own, with its title and its legend.
    pub fn svg(&self) -> Result<String, Failure> {
        let chart = self.value();
        let draw = || {
            let rows = chart.get_attr("legend")?.len().unwrap_or(0);
            let height = f64::try_from(chart.get_attr("height")?)? + 40.0 + 20.0 * rows as f64;
            let style = Value::from_safe_string(include_str!("figure.css").into());
            environment()?.get_template("figure.xml")?.render(context! { chart, height, style })
        };
        draw().map_err(|cause| Failure::system(format!("cannot draw {}: {cause}", self.id)))
    }
}

/// The name of a section in links.
fn anchor(heading: &str) -> String {
    let words = heading.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    words.map(str::to_ascii_lowercase).collect::<Vec<_>>().join("-")
}

impl Section {
    /// Parts under a heading.
    pub fn new(heading: impl Into<String>, parts: Vec<Part>) -> Self {
        Self { heading: heading.into(), parts }
    }

    fn value(&self) -> Value {
        let parts: Vec<Value> = self
            .parts
            .iter()
            .map(|part| match part {
                Part::Text(text) => context! { text => text },
                Part::Command(command) => context! { command => command },
                Part::Quote(quote) => context! { quote => quote },
                Part::Figure(chart) => context! { chart => chart.value() },
                Part::Table(table) => context! { table => table.value(&[]) },
                Part::Contents { table, headings } => {
                    let anchors: Vec<String> = headings.iter().map(|heading| anchor(heading)).collect();
                    context! { table => table.value(&anchors) }
                }
            })
            .collect();
        context! { heading => self.heading.as_str(), anchor => anchor(&self.heading), parts => parts }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Axis, Column, Reference, Scale, Series, Shape, Tone, Where};
    use super::*;

    fn page() -> Page {
        let nasty = "<b>&\"'".to_string();
        let axis = |label: &str| Axis { label: label.into(), scale: Scale::Log, range: None };
        let chart = Chart {
            id: "one",
            title: nasty.clone(),
            caption: nasty.clone(),
            x: axis(&nasty),
            y: axis("eps^2"),
            series: ["a", &nasty]
                .map(|name| Series {
                    name: name.into(),
                    tone: Tone::Green,
                    shape: Shape::Line(vec![(1.0, 2.0), (10.0, 20.0)]),
                })
                .to_vec(),
            references: vec![Reference { label: nasty.clone(), at: Where::Y(3.0) }],
        };
        let table = Table {
            caption: nasty.clone(),
            columns: vec![Column::left("<i>")],
            rows: vec![vec![nasty.clone()]],
        };
        let parts = vec![
            Part::Text(nasty.clone()),
            Part::Command(nasty.clone()),
            Part::Quote(nasty.clone()),
            Part::Figure(chart),
            Part::Table(table),
        ];
        Page { title: nasty.clone(), lead: nasty.clone(), sections: vec![Section { heading: nasty, parts }] }
    }

    #[test]
    fn all_text_is_escaped() {
        let html = page().html().unwrap();
        assert!(!html.contains("<b>") && !html.contains("<i>"), "{html}");
        assert!(html.matches("&lt;b&gt;&amp;").count() >= 13, "{html}");
    }

    #[test]
    fn a_page_asks_for_nothing_and_charts_are_labelled() {
        let html = page().html().unwrap();
        for outside in ["http:", "https:", "<script", "<link", "@import", "src="] {
            assert!(!html.contains(outside), "{outside}");
        }
        assert!(html.contains(r#"role="img" aria-labelledby="one-title one-text""#));
        assert!(html.contains(">ε²</text>"));
    }

    #[test]
    fn a_live_page_is_the_same_page_that_is_read_again() {
        let again = "<meta http-equiv=\"refresh\" content=\"2\">\n";
        let live = page().live_html(2).unwrap();
        assert_eq!((live.matches(again).count(), live.replace(again, "")), (1, page().html().unwrap()));
    }

    #[test]
    fn the_same_page_is_the_same_text() {
        assert_eq!(page().html().unwrap(), page().html().unwrap());
    }
}
