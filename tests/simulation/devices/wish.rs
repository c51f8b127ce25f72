//! What pods ask for of Koordinator's devices.

use serde_json::{Value, json};

use super::{CORE, RATIO, RDMA};
use crate::{dice::Dice, record::annotation, reservation};

const HINT: &str = "scheduling.koordinator.sh/device-allocate-hint";
const JOINT: &str = "scheduling.koordinator.sh/device-joint-allocate";

/// So many of a thousand pods ask for devices.
pub(crate) fn ask(dice: &mut Dice, pods: u64, pod: &mut Value) {
    if pods > 0 && dice.in_thousand(pods) {
        let (annotations, limits) = request(dice);
        pod["metadata"]["annotations"] = annotations;
        if dice.in_thousand(300) {
            pod["metadata"]["labels"] = json!({"app": reservation::OWNER});
        }
        pod["spec"]["containers"] = json!([{"name": "main", "image": "i", "resources": {"limits": limits}}]);
    }
}

/// The annotations and limits of a pod that asks for devices.
fn request(dice: &mut Dice) -> (Value, Value) {
    let function = json!({"rdma": {"vfSelector": {}}}).to_string();
    let joint = json!({"deviceTypes": ["gpu", "rdma"], "requiredScope": "SamePCIe"}).to_string();
    let share = |percent: &str| json!({CORE: percent, RATIO: percent});
    match dice.below(10) {
        0..3 => (json!({}), share(dice.one_of(&["30", "50", "60"]))),
        3 | 4 => (json!({}), json!({"koordinator.sh/gpu": dice.one_of(&["100", "200"])})),
        5 => (json!({}), json!({RDMA: "100"})),
        6 | 7 => (json!({HINT: function}), json!({RDMA: "1"})),
        _ => {
            let gpus = dice.one_of(&["100", "200"]);
            (json!({HINT: function, JOINT: joint}), json!({"koordinator.sh/gpu": gpus, RDMA: "1"}))
        }
    }
}

/// What a pod asks for.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct Wish {
    /// GPUs, and the percent of each.
    pub(super) gpus: Option<(u64, u64)>,
    pub(super) nic: Option<NicWish>,
    /// Whether GPUs and NICs are on the same PCIe roots.
    pub(super) joint: bool,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum NicWish {
    Whole,
    Function,
}

impl Wish {
    /// What the pod asks for; `None`: no such device.
    pub(crate) fn of(pod: &Value) -> Option<Self> {
        let limits = &pod["spec"]["containers"][0]["resources"]["limits"];
        let number = |name: &str| limits[name].as_str().and_then(|text| text.parse::<u64>().ok());
        let whole = number("koordinator.sh/gpu").map(|percent| (percent / 100, 100));
        let gpus = whole.or_else(|| Some((1, number(RATIO)?)));
        let nic = number(RDMA).map(|amount| if amount == 100 { NicWish::Whole } else { NicWish::Function });
        let joint = annotation(pod, JOINT).is_some();
        (gpus.is_some() || nic.is_some()).then_some(Self { gpus, nic, joint })
    }

    /// By resource, what Kubernetes accounts for it.
    pub(super) fn accounted(&self) -> Vec<(&'static str, u64)> {
        let gpus = match self.gpus {
            Some((count, 100)) => vec![("koordinator.sh/gpu", 100 * count)],
            Some((_, percent)) => vec![(CORE, percent), (RATIO, percent)],
            None => Vec::new(),
        };
        let nic = self.nic.map(|nic| (RDMA, if nic == NicWish::Whole { 100 } else { 1 }));
        gpus.into_iter().chain(nic).collect()
    }
}
