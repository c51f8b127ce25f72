//! `berth manifests`: prints everything that `kubectl apply` needs to install Berth.
//!
//! The YAML files under `webhook-config/` are the truth; flags replace values in them and nothing is made up here.

use clap::{Args, ValueEnum};
use serde_json::{Value, json};

const EXAMPLE: &str = "Example:
  berth manifests --image registry.example.com/berth:0.1.0 | kubectl apply -f -
      installs Berth into the namespace berth-system; label a namespace `berth.dev/admission=enabled` to let its pods in";

/// The namespace that the files name.
const NAMESPACE: &str = "berth-system";

/// The policy that `--unmanaged-pods` sets.
const UNMANAGED_POLICY: &str = "berth-unmanaged.berth.dev";

/// Every file, in the order in which an API server can take them.
const FILES: [(&str, &str); 7] = [
    ("10-namespace.yaml", include_str!("../../webhook-config/10-namespace.yaml")),
    ("20-rbac.yaml", include_str!("../../webhook-config/20-rbac.yaml")),
    ("30-config.yaml", include_str!("../../webhook-config/30-config.yaml")),
    ("40-deployment.yaml", include_str!("../../webhook-config/40-deployment.yaml")),
    ("50-webhooks.yaml", include_str!("../../webhook-config/50-webhooks.yaml")),
    ("60-policies.yaml", include_str!("../../webhook-config/60-policies.yaml")),
    ("70-flow.yaml", include_str!("../../webhook-config/70-flow.yaml")),
];

/// Print everything to `kubectl apply`.
#[derive(Args, Clone, Debug)]
#[command(after_help = EXAMPLE)]
pub struct ManifestsArgs {
    /// The namespace to install into
    #[arg(long, default_value = NAMESPACE, value_parser = namespace)]
    pub namespace: String,
    /// The container image [default: this version's]
    #[arg(long)]
    pub image: Option<String>,
    /// Replicas of the server [default: 2]
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..))]
    pub replicas: Option<u32>,
    /// Reach the webhook at this https URL instead of through the Service
    #[arg(long, value_name = "URL", value_parser = https)]
    pub webhook_url: Option<String>,
    /// What to do with share pods, in any namespace, that no known scheduler of shares will serve [default: warn]
    #[arg(long, value_enum)]
    pub unmanaged_pods: Option<UnmanagedPods>,
    /// The form of the output
    #[arg(short, long, value_enum, default_value_t = ManifestFormat::Yaml)]
    pub output: ManifestFormat,
}

/// What the policy on unmanaged share pods does.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub enum UnmanagedPods {
    /// Let them in with a warning.
    Warn,
    /// Refuse them.
    Deny,
    /// Let them in; the audit log keeps it.
    Allow,
}

impl UnmanagedPods {
    /// The word in berth.yaml, and the action of the policy's binding.
    fn words(self) -> (&'static str, &'static str) {
        match self {
            Self::Warn => ("warn", "Warn"),
            Self::Deny => ("deny", "Deny"),
            Self::Allow => ("allow", "Audit"),
        }
    }
}

/// The form of the output.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub enum ManifestFormat {
    /// Documents, each after `---`.
    Yaml,
    /// One `v1` List.
    Json,
}

/// Why nothing can be printed.
#[derive(Debug, thiserror::Error)]
pub enum ManifestsError {
    /// An embedded file is not YAML.
    #[error("webhook-config/{file}")]
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

/// The text to print.
pub fn run(args: &ManifestsArgs) -> Result<String, ManifestsError> {
    let objects = objects(args)?;
    match args.output {
        ManifestFormat::Yaml => yaml(&objects),
        ManifestFormat::Json => {
            let list = json!({"apiVersion": "v1", "kind": "List", "items": objects});
            let text = serde_json::to_string_pretty(&list);
            text.map(|text| text + "\n")
                .map_err(|error| ManifestsError::Unwritable { reason: error.to_string() })
        }
    }
}

/// Every object, in the order in which an API server can take them.
pub fn objects(args: &ManifestsArgs) -> Result<Vec<Value>, ManifestsError> {
    let mut objects = Vec::new();
    for (file, text) in FILES {
        let documents: Vec<Value> = serde_saphyr::from_multiple(text)
            .map_err(|source| ManifestsError::Unreadable { file, source: Box::new(source) })?;
        objects.extend(documents);
    }
    for object in &mut objects {
        rename(object, &args.namespace);
        configure(object, args);
    }
    Ok(objects)
}

/// Puts `namespace` wherever the files name theirs, in references and selectors too.
fn rename(value: &mut Value, namespace: &str) {
    match value {
        Value::String(text) if text == NAMESPACE => namespace.clone_into(text),
        Value::Array(items) => items.iter_mut().for_each(|item| rename(item, namespace)),
        Value::Object(fields) => fields.values_mut().for_each(|field| rename(field, namespace)),
        _ => {}
    }
}

fn configure(object: &mut Value, args: &ManifestsArgs) {
    if let Some(what) = args.unmanaged_pods {
        unmanaged(object, what);
    }
    if object["kind"] == "Deployment" {
        if let Some(replicas) = args.replicas {
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

/// The binding and the settings say the same.
fn unmanaged(object: &mut Value, what: UnmanagedPods) {
    let (word, action) = what.words();
    let name = object["metadata"]["name"].as_str();
    if object["kind"] == "ValidatingAdmissionPolicyBinding" && name == Some(UNMANAGED_POLICY) {
        object["spec"]["validationActions"] = json!([action]);
    }
    if let Some(Value::String(settings)) = object.pointer_mut("/data/berth.yaml") {
        *settings = settings.replace("unmanagedPods: warn", &format!("unmanagedPods: {word}"));
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
        let document = serde_saphyr::to_string(object)
            .map_err(|error| ManifestsError::Unwritable { reason: error.to_string() })?;
        text.push_str("---\n");
        text.push_str(document.trim_end());
        text.push('\n');
    }
    Ok(text)
}

fn namespace(text: &str) -> Result<String, String> {
    let fits = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    let edges = !text.starts_with('-') && !text.ends_with('-');
    if !text.is_empty() && text.len() <= 63 && edges && text.bytes().all(fits) {
        return Ok(text.to_owned());
    }
    Err(format!("`{text}` is not a namespace: lower case letters, digits and `-`, at most 63"))
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
