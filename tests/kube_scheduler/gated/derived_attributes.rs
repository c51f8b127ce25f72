//! Attributes that claims compute of devices in CEL (KEP-6080), and constraints that compare them.

use serde_json::{Value, json};

use crate::kube_scheduler::{dice::Dice, family::devices::DRIVER, gated::of_kind, world::Case};

/// What a claim computes of a card: numbers, texts, truth values, versions and lists.
const EXPRESSIONS: &[&str] = &[
    "OWN.switch",
    "OWN.minor % 2",
    "OWN.model",
    "OWN.model == 'big'",
    "'switch-' + string(OWN.switch)",
    "[OWN.minor, OWN.minor + 1]",
    "[OWN.model, 'card']",
    "semver(string(OWN.switch) + '.0.0')",
    "OWN.minor > 1 ? 'far' : 'near'",
];

/// Has claims compute attributes. An attribute that one of the requests does not compute is that of the device, if it has one.
pub(super) fn put_into(case: &mut Case) {
    let mut dice = Dice::new(case.seed ^ 0x6465_7269_7665);
    for claim in of_kind(case, "ResourceClaim") {
        if claim["status"]["allocation"].is_null() {
            compute(&mut claim["spec"]["devices"], &mut dice);
        }
    }
}

fn compute(devices: &mut Value, dice: &mut Dice) {
    let model = format!("{DRIVER}/model");
    let attribute = dice.pick(&[("derived/place", 3), (model.as_str(), 1)]);
    let kind = dice.pick(&[("matchAttribute", 2), ("distinctAttribute", 1)]);
    let same = dice.one_of(EXPRESSIONS);
    let is_same = dice.in_thousand(700);
    let mut derive = |request: &mut Value| {
        let expression = if request["deviceClassName"] == "fabric" {
            "device.driver"
        } else if is_same {
            same
        } else {
            dice.one_of(EXPRESSIONS)
        };
        let expression = expression.replace("OWN", &format!("device.attributes['{DRIVER}']"));
        request["derivedAttributes"] = json!([{"name": attribute, "expression": expression}]);
    };
    for request in devices["requests"].as_array_mut().into_iter().flatten() {
        if request["exactly"].is_object() {
            derive(&mut request["exactly"]);
        }
        request["firstAvailable"].as_array_mut().into_iter().flatten().for_each(&mut derive);
    }
    devices["constraints"] = json!([{kind: attribute}]);
}
