//! [`OwnMetric`]: what a program tells besides what the server counts.
//!
//! `metrics.rs` asks for them whenever a page is made, and writes them behind its own.

use selvedge_site::listing::escaped;
use std::fmt::Write;

/// Values of one kind that a program tells, each with labels that say of what.
///
/// # Examples
/// ```
/// use selvedge::http::{Metrics, OwnMetric};
///
/// let metrics = Metrics::new();
/// metrics.also(|| {
///     let samples = vec![(vec![("loom", "left".to_owned())], 7)];
///     vec![OwnMetric { name: "ells", help: "Ells of cloth on a loom.", samples }]
/// });
/// assert!(metrics.prometheus().ends_with("selvedge_ells{loom=\"left\"} 7\n"));
/// ```
#[derive(Clone, Debug)]
pub struct OwnMetric {
    /// The name, which gets `selvedge_` in front. One that ends in `_total` is a counter, any other
    /// is a gauge.
    pub name: &'static str,
    /// A sentence that says what it is.
    pub help: &'static str,
    /// The values, each with its labels.
    pub samples: Vec<(Vec<(&'static str, String)>, u64)>,
}

impl OwnMetric {
    /// Appends it as a table of the status page.
    pub(super) fn put_table(&self, page: &mut String) {
        let _ = writeln!(page, "<h2>{}</h2>\n<table>", escaped(self.help));
        for (labels, value) in &self.samples {
            let _ = writeln!(page, "<tr><td>{}<td class=\"n\">{value}", escaped(&words(labels)));
        }
        page.push_str("</table>\n");
    }

    /// Appends a line for each value.
    pub(super) fn put_lines(&self, text: &mut String) {
        for (labels, value) in &self.samples {
            let _ = writeln!(text, "{} {} {value}", self.name.replace('_', " "), words(labels));
        }
    }
}

/// The values of labels, one behind the other.
fn words(labels: &[(&'static str, String)]) -> String {
    labels.iter().map(|(_, value)| value.as_str()).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::super::Metrics;
    use super::*;

    #[test]
    fn labels_are_escaped() {
        let samples = vec![(vec![("route", "/a\"\\\n<".to_owned()), ("server", "b".to_owned())], 1)];
        let metric = OwnMetric { name: "up", help: "Whether <it> is up.", samples };
        let (mut page, mut lines) = (String::new(), String::new());
        let metrics = Metrics::new();
        let told = metric.clone();
        metrics.also(move || vec![told.clone(), OwnMetric { name: "up_total", ..told.clone() }]);
        let labels = "{route=\"/a\\\"\\\\\\n<\",server=\"b\"}";
        let text = metrics.prometheus();
        for (name, kind) in [("up", "gauge"), ("up_total", "counter")] {
            let lines = format!(
                "# HELP selvedge_{name} Whether <it> is up.\n# TYPE selvedge_{name} {kind}\n\
                 selvedge_{name}{labels} 1\n"
            );
            assert!(text.contains(&lines), "{lines}\n{text}");
        }
        metric.put_table(&mut page);
        assert!(page.contains("<h2>Whether &lt;it&gt; is up.</h2>") && page.contains("&lt; b<td"), "{page}");
        metric.put_lines(&mut lines);
        assert!(lines.starts_with("up /a"), "{lines}");
    }
}
