//! `berth review`: what the admission rules say about files, offline.
//!
//! The rules are those of the webhook; this module selects the pods and prints the answers.

mod judge;
mod opt_in;
mod report;

use std::{path::PathBuf, sync::Arc};

use anyhow::{Context, bail};
use clap::{Args, ValueEnum};

use super::{
    CommandAnswer,
    documents::{self, Document, DocumentError},
    output,
    output::Format,
    table::Table,
};
use crate::{
    admission::{self, AdmissionStage, Facts, passage::ReviewVerdict, rules},
    config::{Config, ConfigError},
    object::workload::{KeptPod, Places},
    webhook::{self, Judge},
};

use opt_in::OptedIn;

pub use judge::{facts, judge};
pub use report::{Review, Reviews};

/// Arguments of `berth review`.
#[derive(Args, Debug)]
#[command(after_help = "Example:\n  berth review -f namespace.yaml -f pod.yaml -o json")]
pub struct ReviewArgs {
    /// A file, a folder, or `-` for standard input; may be given several times.
    #[arg(
        short,
        long = "filename",
        alias = "file",
        value_name = "FILE|DIR|-",
        required_unless_present = "rules"
    )]
    pub file: Vec<PathBuf>,
    /// The webhook path for an AdmissionReview; pods and workloads are judged on both.
    #[arg(long, value_enum, default_value_t = WebhookPath::Mutate)]
    pub path: WebhookPath,
    /// Review as for `kubectl apply --dry-run=server`.
    #[arg(long)]
    pub dry_run: bool,
    /// The output format.
    #[arg(short, long, value_enum, default_value_t = Format::Table)]
    pub output: Format,
    /// Print the name and the meaning of each rule.
    #[arg(long)]
    pub rules: bool,
}

/// A path of the webhook.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub enum WebhookPath {
    /// The mutating call.
    Mutate,
    /// The mutating call about pods without a share, for a namespace with the label `berth.dev/pods: all`.
    Adopt,
    /// The validating call.
    Validate,
}

impl WebhookPath {
    fn stage(self) -> AdmissionStage {
        match self {
            Self::Mutate => AdmissionStage::Mutate,
            Self::Adopt => AdmissionStage::Adopt,
            Self::Validate => AdmissionStage::Validate,
        }
    }
}

/// Kinds that the rules read, or will: no question by themselves.
const FACTS: [&str; 5] = ["Device", "Namespace", "Node", "PodGroup", "ResourceQuota"];

impl ReviewArgs {
    /// Reviews what the files hold; the settings are read only where rules are asked.
    pub fn run(&self, config: impl FnOnce() -> Result<Config, ConfigError>) -> anyhow::Result<CommandAnswer> {
        if self.rules {
            self.print_rules()?;
            return Ok(CommandAnswer::Yes);
        }
        let config = config()?;
        let documents = documents::read(&self.file)?;
        if documents.iter().any(|document| document.kind() == "AdmissionReview") {
            return self.answer(&documents, &config);
        }
        let reviews = Reviews { reviews: reviews(&documents, &config)? };
        output::print(&reviews, self.output, || reviews.table())?;
        let denied = reviews.reviews.iter().any(|review| review.outcome == ReviewVerdict::Denied);
        Ok(if denied { CommandAnswer::No } else { CommandAnswer::Yes })
    }

    /// Answers each AdmissionReview as the server would on this path.
    fn answer(&self, documents: &[Document], config: &Config) -> anyhow::Result<CommandAnswer> {
        let facts = known(documents, config)?;
        let judge: Judge = Arc::new(move |request| admission::review(request, &facts));
        let mut answer = CommandAnswer::Yes;
        for document in documents.iter().filter(|document| !FACTS.contains(&document.kind())) {
            match document.kind() {
                "AdmissionReview" => {
                    let body = serde_json::to_vec(&document.value)?;
                    let answered = webhook::answer(&body, self.path.stage(), &judge, &config.workloads());
                    let answered = answered.with_context(|| document.place.to_string())?;
                    let format = if self.output == Format::Yaml { Format::Yaml } else { Format::Json };
                    output::print(&answered.review, format, output::Shown::default)?;
                    if !answered.review.response.allowed {
                        answer = CommandAnswer::No;
                    }
                }
                "Pod" if is_bound(document) => {}
                kind => bail!(
                    "{}: a {kind} beside an AdmissionReview: ask about them one after the other",
                    document.place
                ),
            }
        }
        Ok(answer)
    }

    fn print_rules(&self) -> anyhow::Result<()> {
        let rules: serde_json::Map<_, _> =
            rules::ALL.iter().map(|(rule, meaning)| (rule.0.to_owned(), (*meaning).into())).collect();
        output::print(&rules, self.output, || {
            let mut table = Table::new(&["RULE", "MEANING"]);
            for (rule, meaning) in rules::ALL {
                table.row([rule.0, meaning]);
            }
            table.render()
        })
    }
}

/// The facts for the rules; warns of quotas that can't be read.
fn known(documents: &[Document], config: &Config) -> Result<Facts, DocumentError> {
    let facts = facts(documents, config)?;
    for trouble in judge::unread_quotas(documents, &facts)? {
        output::remark(&format!("warning: {trouble}"));
    }
    Ok(facts)
}

/// One row for each pod and each pod template among the documents, in order.
fn reviews(documents: &[Document], config: &Config) -> anyhow::Result<Vec<Review>> {
    let facts = known(documents, config)?;
    let workloads = config.workloads();
    let opted = OptedIn::of(documents, config)?;
    let mut reviews = Vec::new();
    let mut unknown = Vec::new();
    for document in documents {
        match document.kind() {
            "Pod" if is_bound(document) => {}
            "Pod" => {
                let judged = judge(document, &Places::default(), &facts)?;
                reviews.push(Review::new(document, judged, &Places::default()));
            }
            kind if FACTS.contains(&kind) => {}
            kind => {
                let kept = document.kept_pods(&workloads)?;
                if kept.is_empty() {
                    unknown.push(kind);
                }
                let several = kept.len() > 1;
                for KeptPod { pod, places, part, .. } in kept {
                    let pod = document.with_pod(pod);
                    let judged = judge::judge_made_by(Some(document), &pod, &places, &facts)?;
                    let part = (several && !part.is_empty()).then_some(part);
                    reviews.push(Review { part, ..Review::new(document, judged, &places) });
                }
            }
        }
    }
    for review in &mut reviews {
        opted.warn(review);
    }
    documents::tell_skipped(unknown, "has no pod to review");
    Ok(reviews)
}

/// A pod on a node is a fact, not a question.
pub(super) fn is_bound(document: &Document) -> bool {
    let node = document.value.pointer("/spec/nodeName").and_then(serde_json::Value::as_str);
    node.is_some_and(|node| !node.is_empty())
}
