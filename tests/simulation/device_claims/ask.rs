//! What users ask for with claims of devices: templates, claims that several pods use, and the pods.

use serde_json::{Value, json};

use super::pools::Kind;
use crate::{dice::Dice, story::Crowd};

/// The claims that several pods use; those of [`HELD`] have their devices before anything else happens.
pub(crate) const SHARED: [&str; 6] = ["shared-0", "shared-1", "shared-2", "shared-3", HELD[0], HELD[1]];
/// Claims to which another scheduler has given devices, and that nobody uses yet.
pub(crate) const HELD: [&str; 2] = ["held-0", "held-1"];

/// What one template gives each pod.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Template {
    Whole,
    Pair,
    /// The name, the memory and the percent of compute.
    Share(&'static str, &'static str, &'static str),
    /// The name and the size.
    Part(&'static str, &'static str),
}

impl Template {
    pub(crate) const ALL: [Self; 7] = [
        Self::Whole,
        Self::Pair,
        Self::Share("even", "40Gi", "30"),
        Self::Share("busy", "30Gi", "60"),
        Self::Share("wide", "60Gi", "10"),
        Self::Part("part-half", "half"),
        Self::Part("part-whole", "whole"),
    ];

    /// Those that do not ask for a whole card, or ask for one that others have parts of.
    pub(crate) const PARTIAL: [Self; 5] = [
        Self::Share("even", "40Gi", "30"),
        Self::Share("busy", "30Gi", "60"),
        Self::Share("wide", "60Gi", "10"),
        Self::Part("part-half", "half"),
        Self::Part("part-whole", "whole"),
    ];

    /// Whose devices it asks for.
    pub(crate) fn kind(self) -> Kind {
        match self {
            Self::Whole | Self::Pair => Kind::Whole,
            Self::Share(..) => Kind::Shared,
            Self::Part(..) => Kind::Parted,
        }
    }

    /// Of which size they are, if it asks for one.
    pub(crate) fn size(self) -> Option<&'static str> {
        match self {
            Self::Part(_, size) => Some(size),
            _ => None,
        }
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Whole => "whole",
            Self::Pair => "pair",
            Self::Share(name, ..) | Self::Part(name, _) => name,
        }
    }

    /// The `spec` of its claims.
    pub(crate) fn spec(self) -> Value {
        let exactly = match self {
            Self::Whole => json!({"deviceClassName": Kind::Whole.driver()}),
            Self::Pair => json!({"deviceClassName": Kind::Whole.driver(), "count": 2}),
            Self::Share(_, memory, cores) => {
                json!({"deviceClassName": Kind::Shared.driver(),
                    "capacity": {"requests": {"memory": memory, "cores": cores}}})
            }
            Self::Part(_, size) => {
                let driver = Kind::Parted.driver();
                let expression = format!("device.attributes['{driver}'].size == '{size}'");
                json!({"deviceClassName": driver, "selectors": [{"cel": {"expression": expression}}]})
            }
        };
        json!({"devices": {"requests": [{"name": "gpu", "exactly": exactly}]}})
    }
}

/// So many of a thousand pods use claims of devices.
pub(crate) fn ask(dice: &mut Dice, crowd: &Crowd, pod: &mut Value) {
    if crowd.device_claims == 0 || !dice.in_thousand(crowd.device_claims) {
        return;
    }
    let shared = dice.in_thousand(crowd.shared_claims);
    let own = !shared || dice.in_thousand(300);
    let mut uses = Vec::new();
    if own {
        let template = dice.one_of(&Template::ALL).name();
        uses.push(json!({"name": "own", "resourceClaimTemplateName": template}));
    }
    if shared {
        uses.push(json!({"name": "shared", "resourceClaimName": dice.one_of(&SHARED)}));
    }
    let claims: Vec<Value> = uses.iter().map(|used| json!({"name": used["name"]})).collect();
    pod["spec"]["resourceClaims"] = json!(uses);
    pod["spec"]["containers"] = json!([{"name": "main", "image": "i", "resources": {"claims": claims}}]);
}
