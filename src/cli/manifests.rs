//! `berth manifests`: prints everything that `kubectl apply` needs to install Berth.
//!
//! The YAML files in `webhook-config/`, a link into the Helm chart, are the only copy of the objects; flags replace values in them.

mod agent;
mod certificate;
mod extender;
mod settings;
mod shadow;
mod split;

use std::path::Path;

use clap::{Args, ValueEnum};
use serde_json::{Value, json};

use super::{output, serve::MovesMode};
use crate::config::{ConfigError, Notice};

pub use agent::Account;
use agent::account;
pub use settings::InstallationSettings;

const EXAMPLE: &str = "Example:
  berth manifests --image registry.example.com/berth:0.1.0 --config berth.yaml | kubectl apply -f -
      installs Berth into the namespace berth-system with these settings; to use it in a namespace, set the label
      berth.dev/admission=enabled there";

/// The namespace that the files name.
pub(super) const NAMESPACE: &str = "berth-system";

/// The Service of the API, which the binder answers.
pub(super) const API_SERVICE: &str = "berth-api";

/// Every file, in the order in which an API server can take them.
const FILES: [(&str, &str); 8] = [
    ("10-namespace.yaml", include_str!("../../deploy/helm/berth/manifests/10-namespace.yaml")),
    ("15-priority.yaml", include_str!("../../deploy/helm/berth/manifests/15-priority.yaml")),
    ("20-rbac.yaml", include_str!("../../deploy/helm/berth/manifests/20-rbac.yaml")),
    ("30-config.yaml", include_str!("../../deploy/helm/berth/manifests/30-config.yaml")),
    ("40-deployment.yaml", include_str!("../../deploy/helm/berth/manifests/40-deployment.yaml")),
    ("50-webhooks.yaml", include_str!("../../deploy/helm/berth/manifests/50-webhooks.yaml")),
    ("60-policies.yaml", include_str!("../../deploy/helm/berth/manifests/60-policies.yaml")),
    ("70-flow.yaml", include_str!("../../deploy/helm/berth/manifests/70-flow.yaml")),
];

/// Print the manifests to install with `kubectl apply`.
#[derive(Args, Clone, Debug)]
#[command(after_help = EXAMPLE)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of the command line")]
pub struct ManifestsArgs {
    /// The namespace to install into
    #[arg(long, default_value = NAMESPACE, value_parser = namespace)]
    pub namespace: String,
    /// The container image [default: this version's]
    #[arg(long, value_parser = image)]
    pub image: Option<String>,
    /// Replicas of each Deployment [default: 2]
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..))]
    pub replicas: Option<u32>,
    /// The https URL of the webhook, to use instead of the Service
    #[arg(long, value_name = "URL", value_parser = https)]
    pub webhook_url: Option<String>,
    /// Run webhook and binder as two Deployments, each with its own ServiceAccount and rights
    #[arg(long)]
    pub split: bool,
    /// Let this device plugin or scheduler write what the policies protect; may be repeated
    #[arg(long, value_name = "NAMESPACE/SERVICEACCOUNT", value_parser = account)]
    pub agent: Vec<Account>,
    /// Let cert-manager make the webhook's certificate and publish its authority
    #[arg(long, conflicts_with = "webhook_url")]
    pub cert_manager: bool,
    /// Print a shadow: it reads the cluster, compares the current scheduler's decisions with Berth's and writes nothing
    #[arg(long, conflicts_with_all = ["split", "webhook_url", "agent", "cert_manager"])]
    pub shadow: bool,
    /// Leave the choice of nodes to kube-scheduler: as --split, with one binder that a kube-scheduler asks as its extender
    #[arg(long, conflicts_with = "shadow")]
    pub extender: bool,
    /// Whether the binder looks for moves of pods that would free GPUs, and reports them by metrics and one Event a day; nothing is moved
    #[arg(long, value_enum, default_value_t = MovesMode::Off, conflicts_with_all = ["shadow", "extender"])]
    pub moves: MovesMode,
    /// The output format
    #[arg(short, long, value_enum, default_value_t = ManifestFormat::Yaml)]
    pub output: ManifestFormat,
}

impl Default for ManifestsArgs {
    /// What the command prints without a flag.
    fn default() -> Self {
        Self {
            namespace: NAMESPACE.to_owned(),
            image: None,
            replicas: None,
            webhook_url: None,
            split: false,
            agent: Vec::new(),
            cert_manager: false,
            shadow: false,
            extender: false,
            moves: MovesMode::Off,
            output: ManifestFormat::Yaml,
        }
    }
}

/// The form of the output.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub enum ManifestFormat {
    /// YAML documents, separated by `---`.
    Yaml,
    /// One JSON `v1` List.
    Json,
}

/// Why nothing can be printed.
#[derive(Debug, thiserror::Error)]
pub enum ManifestsError {
    /// The settings can't be read.
    #[error(transparent)]
    Settings(#[from] ConfigError),
    /// An embedded file is not YAML.
    #[error("{file}")]
    Unreadable {
        /// The file.
        file: &'static str,
        /// Why.
        source: Box<serde_saphyr::Error>,
    },
    /// The output can't be written as YAML or JSON.
    #[error("cannot write the manifests: {reason}")]
    Unwritable {
        /// Why.
        reason: String,
    },
}

/// The text to print, with the settings of this file or the built-in ones, and what is to be said of them.
pub fn run(args: &ManifestsArgs, config: Option<&Path>) -> Result<(String, Vec<Notice>), ManifestsError> {
    let (settings, notices) = match config {
        Some(file) => InstallationSettings::load(file)?,
        None => (InstallationSettings::default(), Vec::new()),
    };
    let objects = objects(args, &settings)?;
    let text = match args.output {
        ManifestFormat::Yaml => yaml(&objects)?,
        ManifestFormat::Json => {
            let list = json!({"apiVersion": "v1", "kind": "List", "items": objects});
            let text = serde_json::to_string_pretty(&list);
            text.map_err(|error| ManifestsError::Unwritable { reason: error.to_string() })? + "\n"
        }
    };
    Ok((text, notices))
}

/// Every object, in the order in which an API server can take them.
pub fn objects(args: &ManifestsArgs, settings: &InstallationSettings) -> Result<Vec<Value>, ManifestsError> {
    let mut objects = Vec::new();
    for (file, text) in FILES {
        objects.extend(documents(file, text)?);
    }
    if args.shadow {
        objects = shadow::reading(objects);
    }
    if args.split || args.extender {
        objects = split::apart(objects);
    }
    if args.extender {
        objects = extender::asked_by_kube_scheduler(objects);
    }
    if args.cert_manager {
        objects = certificate::kept_by_cert_manager(objects)?;
        objects.extend(args.extender.then(extender::certificate));
    }
    objects.retain(|object| object["kind"] != "Namespace" || !is_of_kubernetes(&args.namespace));
    // A budget that wants one replica of one would keep its node from being drained.
    objects.retain(|object| object["kind"] != "PodDisruptionBudget" || args.replicas != Some(1));
    for object in &mut objects {
        settings.apply(object, &args.agent);
        rename(object, &args.namespace);
        configure(object, args);
        if args.moves == MovesMode::Advise {
            advise(object);
        }
    }
    objects.extend(agent::bindings(&args.agent));
    Ok(objects)
}

fn documents(file: &'static str, text: &str) -> Result<Vec<Value>, ManifestsError> {
    serde_saphyr::from_multiple(text)
        .map_err(|source| ManifestsError::Unreadable { file, source: Box::new(source) })
}

/// Replaces the namespace of the files by `namespace`: alone, or as a part of a DNS name or of a path.
fn rename(value: &mut Value, namespace: &str) {
    match value {
        Value::String(text) if text.contains(NAMESPACE) && !text.contains(char::is_whitespace) => {
            let parts = text.split_inclusive(['.', '/']).map(|part| {
                let name = part.trim_end_matches(['.', '/']);
                if name == NAMESPACE { part.replacen(NAMESPACE, namespace, 1) } else { part.to_owned() }
            });
            *text = parts.collect();
        }
        Value::Array(items) => items.iter_mut().for_each(|item| rename(item, namespace)),
        Value::Object(fields) => fields.values_mut().for_each(|field| rename(field, namespace)),
        _ => {}
    }
}

/// Whether the namespace is one that Kubernetes makes itself.
fn is_of_kubernetes(namespace: &str) -> bool {
    namespace == "default" || namespace.starts_with("kube-")
}

fn configure(object: &mut Value, args: &ManifestsArgs) {
    // Another namespace may be there already, with pods that its labels would reject.
    if object["kind"] == "Namespace" && args.namespace != NAMESPACE {
        object["metadata"] = json!({"name": args.namespace});
    }
    if object["kind"] == "Deployment" {
        // The binder of an extender stays the only one.
        if let Some(replicas) = args.replicas.filter(|_| object["spec"]["strategy"]["type"] != "Recreate") {
            object["spec"]["replicas"] = replicas.into();
        }
        if let Some(image) = &args.image {
            object["spec"]["template"]["spec"]["containers"][0]["image"] = image.as_str().into();
        }
    }
    if let (Some(url), Some(webhooks)) =
        (&args.webhook_url, object.get_mut("webhooks").and_then(Value::as_array_mut))
    {
        for webhook in webhooks {
            reach(webhook, url);
        }
    }
}

/// Lets the binder look for moves; a webhook apart from it can't.
fn advise(object: &mut Value) {
    if object["kind"] != "Deployment" {
        return;
    }
    let flags = object["spec"]["template"]["spec"]["containers"][0]["args"].as_array_mut();
    if let Some(flags) = flags.filter(|flags| !flags.contains(&json!("--webhook-only"))) {
        flags.push(json!("--moves=advise"));
    }
}

fn reach(webhook: &mut Value, url: &str) {
    let path = webhook["clientConfig"]["service"]["path"].as_str().unwrap_or_default();
    let url = format!("{}{path}", url.trim_end_matches('/'));
    webhook["clientConfig"] = json!({ "url": url });
}

fn yaml(objects: &[Value]) -> Result<String, ManifestsError> {
    let mut text = String::new();
    for object in objects {
        let document =
            output::yaml(object).map_err(|error| ManifestsError::Unwritable { reason: error.to_string() })?;
        text.push_str("---\n");
        text.push_str(document.trim_end());
        text.push('\n');
    }
    Ok(text)
}

pub(super) fn namespace(text: &str) -> Result<String, String> {
    let fits = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    let edges = !text.starts_with('-') && !text.ends_with('-');
    if !text.is_empty() && text.len() <= 63 && edges && text.bytes().all(fits) {
        return Ok(text.to_owned());
    }
    Err(format!("`{text}` is not a namespace: lower case letters, digits and `-`, at most 63"))
}

/// Kubelet would only find out later.
pub(super) fn image(text: &str) -> Result<String, String> {
    if text.is_empty() || text.contains(|c: char| c.is_whitespace() || c.is_control()) {
        return Err(format!("`{text}` is not an image, such as `registry.example/berth:0.1.0`"));
    }
    Ok(text.to_owned())
}

/// The API server takes neither user, query nor fragment in a webhook's URL.
fn https(text: &str) -> Result<String, String> {
    let uri: http::Uri = text.parse().map_err(|error| format!("`{text}`: {error}"))?;
    let plain = !text.contains(['@', '?', '#']);
    if uri.scheme_str() == Some("https") && uri.host().is_some() && plain {
        return Ok(text.to_owned());
    }
    Err(format!("`{text}` is not an https URL without user, query and fragment"))
}

#[cfg(test)]
mod tests;
