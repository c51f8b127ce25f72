//! Settings of Koordinator's dialect.

use serde::Serialize;

use super::{section::Section, trouble::Trouble};

/// Settings of Koordinator's dialect.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct KoordinatorConfig {
    /// Whether Berth serves the dialect; otherwise its pods are left to Koordinator's own scheduler.
    pub enabled: bool,
    /// Whether pods that ask for whole cards by their vendors' names (`nvidia.com/gpu`), and for no share, are given Koordinator's devices.
    pub whole_cards: bool,
}

pub(super) fn read(mut section: Section) -> Result<KoordinatorConfig, Trouble> {
    let config = KoordinatorConfig {
        enabled: section.on_unless_off("enabled")?,
        whole_cards: section.off_unless_on("wholeCards")?,
    };
    section.finish()?;
    Ok(config)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use crate::{config::Config, dialect::Dialects, object::Pod};

    const ON: &str = "dialects: {koordinator: {wholeCards: true}, hami: {amd: {}}}";

    fn dialects(settings: &str) -> Dialects {
        Config::parse(settings, "f").unwrap().0.dialects()
    }

    fn pod(limits: &Value) -> Pod {
        let spec = json!({"containers": [{"name": "main", "resources": {"limits": limits}}]});
        serde_json::from_value(json!({"metadata": {"name": "p"}, "spec": spec})).unwrap()
    }

    fn modes(dialects: &Dialects, pod: &Pod) -> Vec<String> {
        dialects.asked(pod).into_iter().map(|dialect| dialect.mode().to_string()).collect()
    }

    #[test]
    fn whole_cards_are_koordinators_only_where_the_setting_says_so_and_no_share_is_asked() {
        let (off, on) = (dialects("dialects: {hami: {amd: {}}}"), dialects(ON));
        for (limits, without, with) in [
            (json!({"nvidia.com/gpu": "2"}), &["hami"][..], &["koordinator"][..]),
            (json!({"amd.com/gpu": "1"}), &["hami-amd"], &["koordinator"]),
            (json!({"dcu.com/gpu": "1"}), &[], &["koordinator"]),
            (json!({"nvidia.com/gpu": "1", "nvidia.com/gpumem": "4000"}), &["hami"], &["hami"]),
            (json!({"nvidia.com/gpu": "1", "nvidia.com/gpucores": "0"}), &["hami"], &["hami"]),
            (
                json!({"nvidia.com/gpu": "1", "koordinator.sh/rdma": "1"}),
                &["hami", "koordinator"],
                &["koordinator"],
            ),
            (
                json!({"nvidia.com/gpu": "1", "volcano.sh/vgpu-number": "1"}),
                &["hami", "vgpu"],
                &["vgpu", "koordinator"],
            ),
            (json!({"cpu": "1"}), &[], &[]),
        ] {
            let pod = pod(&limits);
            assert_eq!(modes(&off, &pod), without, "{limits}");
            assert_eq!(modes(&on, &pod), with, "{limits}");
        }
    }

    #[test]
    fn a_share_in_any_container_makes_the_pod_hamis() {
        let mut pod = pod(&json!({"nvidia.com/gpu": "1"}));
        let init = json!({"name": "init", "resources": {"limits": {"nvidia.com/gpumem": "100"}}});
        pod.spec.init_containers = vec![serde_json::from_value(init).unwrap()];
        assert_eq!(modes(&dialects(ON), &pod), ["hami"]);
    }

    #[test]
    fn a_pod_that_hami_has_placed_stays_hamis() {
        let mut placed = pod(&json!({"nvidia.com/gpu": "1"}));
        let cards = json!({
            "hami.io/vgpu-node": "n", "hami.io/vgpu-devices-allocated": "GPU-1,NVIDIA,16384,100:;",
        });
        placed.metadata.annotations = Some(serde_json::from_value(cards).unwrap());
        assert_eq!(modes(&dialects(ON), &placed), ["hami"]);
    }

    #[test]
    fn whole_cards_ask_for_as_many_gpus_and_an_amount_of_0_for_none() {
        let dialects = dialects(ON);
        let request = |amount: &str| {
            let pod = pod(&json!({"nvidia.com/gpu": amount}));
            let asked = dialects.request(&pod).unwrap();
            asked.map(|(dialect, _)| dialect.joint_request(&pod).unwrap().unwrap().types.len())
        };
        assert_eq!((request("2"), request("0")), (Some(1), None));
    }
}
