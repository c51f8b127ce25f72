//! Webhook and binder as two Deployments, each with its own ServiceAccount and only the rights that it needs.
//!
//! They are made from the same objects as the single Deployment, so that the two forms can't diverge.

use serde_json::{Value, json};

use super::API_SERVICE;

/// One of the two Deployments.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Half {
    Webhook,
    Binder,
}

const HALVES: [Half; 2] = [Half::Webhook, Half::Binder];

/// The label that distinguishes the two parts.
const COMPONENT: &str = "app.kubernetes.io/component";

impl Half {
    /// Of its Deployment, ServiceAccount and disruption budget.
    fn name(self) -> &'static str {
        match self {
            Self::Webhook => "berth-webhook",
            Self::Binder => "berth-binder",
        }
    }

    fn component(self) -> &'static str {
        match self {
            Self::Webhook => "webhook",
            Self::Binder => "binder",
        }
    }

    fn flag(self) -> &'static str {
        match self {
            Self::Webhook => "--webhook-only",
            Self::Binder => "--scheduler-only",
        }
    }
}

/// The objects of both halves.
pub(super) fn apart(objects: Vec<Value>) -> Vec<Value> {
    objects.into_iter().flat_map(halved).collect()
}

fn halved(mut object: Value) -> Vec<Value> {
    match object["kind"].as_str().unwrap_or_default() {
        "ServiceAccount" | "PodDisruptionBudget" => HALVES.map(|half| named(&object, half)).into(),
        "Deployment" => HALVES.map(|half| deployment(&object, half)).into(),
        "ClusterRoleBinding" | "RoleBinding" => {
            let webhooks = object["roleRef"]["name"] == "berth:webhook";
            let half = if webhooks { Half::Webhook } else { Half::Binder };
            object["subjects"][0]["name"] = half.name().into();
            vec![object]
        }
        "Service" => {
            let half = if object["metadata"]["name"] == API_SERVICE { Half::Binder } else { Half::Webhook };
            object["spec"]["selector"][COMPONENT] = half.component().into();
            vec![object]
        }
        "FlowSchema" => {
            object["spec"]["rules"][0]["subjects"][0]["serviceAccount"]["name"] = Half::Binder.name().into();
            vec![object]
        }
        _ => vec![object],
    }
}

/// The half's own copy, which selects the half's pods where it selects pods at all.
fn named(object: &Value, half: Half) -> Value {
    let mut object = object.clone();
    object["metadata"]["name"] = half.name().into();
    object["metadata"]["labels"][COMPONENT] = half.component().into();
    if let Some(labels) = object.pointer_mut("/spec/selector/matchLabels") {
        labels[COMPONENT] = half.component().into();
    }
    object
}

fn deployment(object: &Value, half: Half) -> Value {
    let mut object = named(object, half);
    let template = &mut object["spec"]["template"];
    template["metadata"]["labels"][COMPONENT] = half.component().into();
    let spec = &mut template["spec"];
    spec["serviceAccountName"] = half.name().into();
    let apart = "/affinity/podAntiAffinity/preferredDuringSchedulingIgnoredDuringExecution/0/podAffinityTerm/labelSelector/matchLabels";
    if let Some(labels) = spec.pointer_mut(apart) {
        labels[COMPONENT] = half.component().into();
    }
    if let Some(args) = spec["containers"][0]["args"].as_array_mut() {
        args.push(json!(half.flag()));
    }
    object
}
