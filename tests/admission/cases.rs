//! `cases/*.yaml`: a pod and facts go in, the outcome at the end of the file comes out, with full messages.
//!
//! With `BERTH_BLESS=1` the outcomes are written anew; read the difference before it is kept.

use std::{fs, path::Path};

use berth::{
    admission::{AdmissionStage, Operation, Request, Verdict, Violation, review, rules},
    object::Pod,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::facts::Given;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    /// What the case is about.
    #[serde(rename = "case")]
    _about: String,
    #[serde(default)]
    facts: Given,
    #[serde(default)]
    asked: Asked,
    /// How the pod is stored now: the review is of an update.
    old: Option<Value>,
    pod: Value,
    outcome: Option<Outcome>,
}

/// Which mutating webhook is asked about a new pod.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq)]
#[serde(rename_all = "camelCase")]
enum Asked {
    /// That for shares.
    #[default]
    Mutate,
    /// That for pods without a share.
    Adopt,
}

#[derive(Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(default, deny_unknown_fields)]
struct Outcome {
    verdict: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    violations: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    warnings: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    patch: Vec<Value>,
}

impl From<Verdict> for Outcome {
    fn from(verdict: Verdict) -> Self {
        let warnings = verdict.warnings().iter().map(ToString::to_string).collect();
        match verdict {
            Verdict::Ignored => Self { verdict: "ignored".into(), ..Self::default() },
            Verdict::Admitted { patch, .. } => {
                let patch = patch.iter().map(|operation| serde_json::to_value(operation).unwrap()).collect();
                Self { verdict: "admitted".into(), warnings, patch, ..Self::default() }
            }
            Verdict::Denied { violations, .. } => {
                let say = |Violation { rule, field, message }| format!("{field}: {message} ({})", rule.0);
                let violations = violations.into_iter().map(say).collect();
                Self { verdict: "denied".into(), violations, warnings, ..Self::default() }
            }
        }
    }
}

fn pod(value: &Value) -> Pod {
    serde_json::from_value(value.clone()).unwrap()
}

fn judge(case: &Case) -> Outcome {
    let facts = case.facts.facts();
    let new = pod(&case.pod);
    let old = case.old.as_ref().map(pod);
    let ask = |stage, pod: &Pod| {
        let operation = old.as_ref().map_or(Operation::Create, Operation::Update);
        review(&Request { stage, operation, namespace: "train", pod }, &facts)
    };
    let stage = match case.asked {
        Asked::Mutate if old.is_some() => AdmissionStage::Validate,
        Asked::Mutate => AdmissionStage::Mutate,
        Asked::Adopt => AdmissionStage::Adopt,
    };
    let first = ask(stage, &new);
    if let Verdict::Admitted { patch, .. } = &first {
        let mut patched = case.pod.clone();
        json_patch::patch(&mut patched, patch).unwrap();
        let stages = match case.asked {
            Asked::Mutate => &[AdmissionStage::Mutate, AdmissionStage::Validate][..],
            Asked::Adopt => &[AdmissionStage::Adopt, AdmissionStage::Mutate, AdmissionStage::Validate],
        };
        for &stage in stages {
            match ask(stage, &pod(&patched)) {
                Verdict::Admitted { patch, .. } => assert_eq!(patch, [], "twice is once"),
                Verdict::Ignored if case.asked == Asked::Adopt => {}
                other => panic!("admitted, then {other:?}"),
            }
        }
    }
    first.into()
}

#[test]
fn every_case_comes_out_as_it_says() {
    let bless = std::env::var_os("BERTH_BLESS").is_some();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/admission/cases");
    let mut faults = Vec::new();
    let mut seen = String::new();
    for entry in fs::read_dir(&folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let text = fs::read_to_string(&path).unwrap();
        let case: Case = serde_saphyr::from_str(&text).unwrap_or_else(|error| panic!("{name}: {error}"));
        let outcome = judge(&case);
        let written = serde_saphyr::to_string(&serde_json::json!({ "outcome": outcome })).unwrap();
        seen.push_str(&written);
        if case.outcome.as_ref() == Some(&outcome) {
            continue;
        }
        if bless {
            let given = text.split("\noutcome:").next().unwrap().trim_end();
            fs::write(&path, format!("{given}\n{written}")).unwrap();
        } else {
            faults.push(format!("{name}:\n{written}instead of {:#?}", case.outcome));
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    let unseen: Vec<_> = rules::ALL
        .iter()
        .map(|(rule, _)| rule.0)
        .filter(|rule| !seen.contains(&format!("({rule})")))
        .collect();
    assert!(unseen.is_empty(), "rules without a case: {unseen:?}");
}
