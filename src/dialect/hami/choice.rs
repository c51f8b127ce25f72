//! How a pod's annotations have its cards chosen: policy, NUMA binding, weights.
//!
//! Source: HAMi v2.10 `pkg/util/util.go` (`GetGPUSchedulerPolicyByPod`), `pkg/util/device_scoring_weights.go`,
//! `pkg/scheduler/policy/gpu_policy.go`.

use super::names;
use crate::{
    device::{CardChoice, CardPolicy, NumaBinding, Weights},
    dialect::{Problem, Unreadable, go_bool},
    object::Pod,
};

/// How the pod's cards are chosen; `default` are the policies of a pod that names none.
pub(in crate::dialect) fn read(default: &[CardPolicy], pod: &Pod) -> Result<CardChoice, Unreadable> {
    let bound = pod.metadata.annotation(names::NUMA_BIND).and_then(go_bool) == Some(true);
    let numa = if bound { NumaBinding::OneNode } else { NumaBinding::Free };
    let choice = match pod.metadata.annotation(names::CARD_POLICY) {
        None => match *default {
            [policy] => CardChoice::lone(policy, numa),
            _ => CardChoice::chain(default, numa),
        },
        Some(list) if list.contains(',') => {
            let policies: Vec<_> = list.split(',').filter_map(policy).collect();
            CardChoice::chain(&policies, numa)
        }
        // HAMi treats a word that it does not know as `spread`.
        Some(word) => CardChoice::lone(policy(word).unwrap_or(CardPolicy::Spread), numa),
    };
    let weights = pod.metadata.annotation(names::WEIGHTS).map_or(Ok(Weights::default()), weights);
    let refuse = |message| Unreadable::annotation(Problem::Hint, names::WEIGHTS, message);
    Ok(CardChoice { weights: weights.map_err(refuse)?, ..choice })
}

fn policy(word: &str) -> Option<CardPolicy> {
    match word.trim() {
        "binpack" => Some(CardPolicy::Binpack),
        "spread" => Some(CardPolicy::Spread),
        "mutex" => Some(CardPolicy::Mutex),
        "numa" => Some(CardPolicy::Numa),
        "topology-aware" => Some(CardPolicy::TopologyAware),
        // Berth's own word; HAMi takes a word that it does not know for `spread`.
        "least-waste" => Some(CardPolicy::LeastWaste),
        _ => None,
    }
}

/// `slot=<n>,core=<n>,memory=<n>`: each once, in any order, whole numbers from 0, not all of them 0.
fn weights(text: &str) -> Result<Weights, String> {
    let (mut slots, mut cores, mut memory) = (None, None, None);
    for entry in text.split(',').map(str::trim) {
        let (key, value) = entry.split_once('=').ok_or_else(|| format!("`{entry}` is not `key=value`"))?;
        let (key, value) = (key.trim(), value.trim());
        let place = match key {
            "slot" => &mut slots,
            "core" => &mut cores,
            "memory" => &mut memory,
            _ => return Err(format!("unknown weight `{key}`; there are `slot`, `core` and `memory`")),
        };
        let weight =
            value.parse().map_err(|_| format!("weight `{key}`: `{value}` is not a whole number from 0"))?;
        if place.replace(weight).is_some() {
            return Err(format!("weight `{key}` is given twice"));
        }
    }
    let (Some(slots), Some(cores), Some(memory)) = (slots, cores, memory) else {
        return Err("weights must be given for `slot`, `core` and `memory`".to_owned());
    };
    if slots == 0 && cores == 0 && memory == 0 {
        return Err("at least one weight must be above 0".to_owned());
    }
    Ok(Weights { slots, cores, memory })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_of_the_settings_is_a_chain_and_the_pods_own_wins() {
        let pod = |annotations| -> Pod {
            serde_json::from_value(serde_json::json!({"metadata": {"annotations": annotations}})).unwrap()
        };
        let default = [CardPolicy::Numa, CardPolicy::TopologyAware, CardPolicy::Binpack];
        let silent = read(&default, &pod(serde_json::json!({}))).unwrap();
        assert_eq!(silent, CardChoice::chain(&default, NumaBinding::Free));
        let own = read(&default, &pod(serde_json::json!({names::CARD_POLICY: "mutex"}))).unwrap();
        assert_eq!(own, CardChoice::from(CardPolicy::Mutex));
    }

    #[test]
    fn weights_are_complete_or_refused() {
        assert_eq!(
            weights(" memory = 3, slot = 1, core = 0 "),
            Ok(Weights { slots: 1, cores: 0, memory: 3 })
        );
        for text in [
            "",
            "slot=1",
            "slot=1,core,memory=1",
            "slot=1,core=-1,memory=1",
            "slot=1,slot=1,memory=1",
            "slot=1,core=1,memory=1,",
            "slot=0,core=0,memory=0",
        ] {
            assert!(weights(text).is_err(), "{text}");
        }
    }
}
