//! What Ascend's plugin reads beside the assignment: each share of the pod with the template that its card is to be cut by.
//!
//! It must not choose: it stands for another project's program (Project-HAMi/ascend-device-plugin, `buildRuntimeInfoLookup`).

use serde::Deserialize;

use super::allocate::Ask;
use super::audit::Violation;
use super::share::Share;
use super::template::size;
use super::view::Pod;

/// The annotation, on pods that got cards 910B3.
const DESCRIBED: &str = "huawei.com/Ascend910B3";

#[derive(Deserialize)]
struct Described {
    #[serde(rename = "UUID")]
    uuid: String,
    #[serde(default)]
    temp: String,
}

/// Whether each share is described, by its card, with its own template.
pub(super) fn judge(ask: &Ask<'_>, pod: &Pod, shares: &[Share]) {
    let text = pod.annotation(DESCRIBED).unwrap_or_default();
    let described: Vec<Described> = serde_json::from_str(text).unwrap_or_default();
    for share in shares {
        let template = size(u64::try_from(share.memory).unwrap_or(0)).map_or("", |size| size.name);
        // The plugin keeps one description a card: the last.
        let known = described.iter().rfind(|described| described.uuid == share.uuid);
        if known.is_none_or(|known| known.temp != template) {
            let (pod, card, described) = (pod.key(), share.uuid.clone(), text.to_owned());
            ask.note(Violation::WrongTemplate { pod, card, described });
        }
    }
}
