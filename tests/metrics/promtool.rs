//! Prometheus' promtool: its linter of metrics, its checks of rules and its engine.
//!
//! It must not know what is right: a test states that.

use std::{
    io::Write as _,
    path::PathBuf,
    process::{Command, Output, Stdio},
};

use serde_json::{Value, json};

use crate::support::{build, controlplane::absent};

pub(crate) struct Promtool(PathBuf);

impl Promtool {
    /// The program; without Go, a line that the test did not run.
    pub(crate) fn find() -> Option<Self> {
        build::promtool().map(Self).map_err(|reason| absent("promtool", &reason)).ok()
    }

    /// Fails unless the page is well formed and each name is as Prometheus' conventions have it.
    pub(crate) fn check_metrics(&self, page: &str) {
        let mut child = Command::new(&self.0)
            .args(["check", "metrics"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut input = child.stdin.take().unwrap();
        let page = page.to_owned();
        let written = std::thread::spawn(move || input.write_all(page.as_bytes()));
        let output = child.wait_with_output().unwrap();
        written.join().unwrap().unwrap();
        succeeded(&output);
    }

    /// Fails unless each rule can be parsed.
    pub(crate) fn check_rules(&self, rules: &Value) {
        let file = file(rules);
        succeeded(&Command::new(&self.0).args(["check", "rules"]).arg(file.path()).output().unwrap());
    }

    /// Fails unless each query answers as stated, some minutes after these samples began to be scraped, with these rules in force.
    pub(crate) fn evaluate(&self, samples: &[(String, String)], rules: Option<&Value>, queries: &[Query]) {
        let rules = rules.map(file);
        let series: Vec<_> =
            samples.iter().map(|(series, values)| json!({"series": series, "values": values})).collect();
        let queries: Vec<_> = queries.iter().map(Query::json).collect();
        let test = json!({
            "rule_files": rules.iter().map(tempfile::NamedTempFile::path).collect::<Vec<_>>(),
            "evaluation_interval": "1m",
            "tests": [{"interval": "1m", "input_series": series, "promql_expr_test": queries}],
        });
        let test = file(&test);
        succeeded(&Command::new(&self.0).args(["test", "rules"]).arg(test.path()).output().unwrap());
    }
}

/// A query, and each sample of its answer: the labels in braces, and the value.
pub(crate) struct Query {
    pub(crate) expr: String,
    pub(crate) answer: Vec<(String, f64)>,
}

impl Query {
    fn json(&self) -> Value {
        let samples: Vec<_> =
            self.answer.iter().map(|(labels, value)| json!({"labels": labels, "value": value})).collect();
        json!({"expr": self.expr, "eval_time": "30m", "exp_samples": samples})
    }
}

/// Samples that stay the same for half an hour and longer.
pub(crate) fn steady(series: &str, value: &str) -> (String, String) {
    (series.to_owned(), format!("{value}+0x40"))
}

fn file(content: &Value) -> tempfile::NamedTempFile {
    let mut file = tempfile::Builder::new().suffix(".yaml").tempfile().unwrap();
    file.write_all(content.to_string().as_bytes()).unwrap();
    file
}

fn succeeded(output: &Output) {
    let said = [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text));
    assert!(output.status.success(), "promtool: {}\n{}", output.status, said.join("\n"));
}
