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
    /// The name, which gets `selvedge_` in front. It is a gauge.
    pub name: &'static str,
    /// A sentence that says what it is.
    pub help: &'static str,
    /// The values, each with its labels.
    pub samples: Vec<(Vec<(&'static str, String)>, u64)>,
}

impl OwnMetric {
    /// Appends it in the text format of Prometheus.
    pub(super) fn put_prometheus(&self, out: &mut String) {
        let OwnMetric { name, help, samples } = self;
        super::put_head(name, "gauge", help, out);
        for (labels, value) in samples {
            let label = |(name, value): &(&str, String)| format!("{name}=\"{}\"", label_value(value));
            let labels: Vec<String> = labels.iter().map(label).collect();
            let _ = writeln!(out, "selvedge_{name}{{{}}} {value}", labels.join(","));
        }
    }

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

/// A value as a label has it.
fn label_value(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_escaped() {
        let samples = vec![(vec![("route", "/a\"\\\n<".to_owned()), ("server", "b".to_owned())], 1)];
        let metric = OwnMetric { name: "up", help: "Whether <it> is up.", samples };
        let (mut text, mut page, mut lines) = (String::new(), String::new(), String::new());
        metric.put_prometheus(&mut text);
        assert_eq!(
            text,
            "# HELP selvedge_up Whether <it> is up.\n# TYPE selvedge_up gauge\n\
             selvedge_up{route=\"/a\\\"\\\\\\n<\",server=\"b\"} 1\n"
        );
        metric.put_table(&mut page);
        assert!(page.contains("<h2>Whether &lt;it&gt; is up.</h2>") && page.contains("&lt; b<td"), "{page}");
        metric.put_lines(&mut lines);
        assert!(lines.starts_with("up /a"), "{lines}");
    }
}
