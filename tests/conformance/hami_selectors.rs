//! HAMi's annotations by which pods choose cards.

use berth::{
    device::{CardChoice, CardPolicy, CardPreference, LinkChoice, NumaBinding, PodRequest, Sharing},
    dialect::{
        Dialect as _,
        hami::{Hami, HamiSettings, names},
    },
};
use serde_json::{Value, json};

use super::{
    table::{Case, Table, Verdict},
    upstream::{card, hami, hami_settings, list, pod, pod_of, text},
};

#[test]
fn hami_selectors() {
    let table = Table {
        file: "hami_selectors.json",
        differences: &[],
        not_served: &[
            (
                "TestIsPodGroupMember",
                "upstream retries a contended lock for members of a group; Berth waits in line for every pod",
            ),
            ("Test_FilterDeviceToRegister", "the node plugin's own filter"),
            ("TestParseReason", "upstream takes its own messages apart again"),
        ],
    };
    table.check(judge);
}

fn judge(case: &Case) -> Verdict {
    let (input, expect) = (&case.input, &case.expect);
    match case.test.as_str() {
        "TestCheckUUID" => {
            let annotations = renamed(
                &input["annos"],
                "hami.io/gpu-use-uuid",
                "hami.io/gpu-no-use-uuid",
                names::USE_ID,
                names::NO_USE_ID,
            );
            let admits = asked(&annotations).selection.ids.admits(&text(input, "id").into());
            Verdict::of(&json!(admits), &expect["want"])
        }
        "TestCheckType" => {
            let annotations = renamed(
                &input["annos"],
                "example.com/use-gputype",
                "example.com/nouse-gputype",
                names::USE_MODEL,
                names::NO_USE_MODEL,
            );
            Verdict::of(
                &json!(asked(&annotations).selection.models.admits(text(input, "cardType"))),
                &expect["want"],
            )
        }
        "Test_checkType" => {
            let (selection, card) = (asked(&input["annos"]).selection, card(&input["d"]));
            let admits = selection.models.admits(&card.model) && selection.admits_mode(&card);
            Verdict::of(&json!(admits), &expect["want"])
        }
        "TestAssertNuma" => {
            let bound = asked(&input["annos"]).choice.numa == NumaBinding::OneNode;
            Verdict::of(&json!(bound), &expect["want"])
        }
        "TestPolicyContains" => {
            let choice = asked(&json!({names::CARD_POLICY: input["policy"]})).choice;
            Verdict::of(&json!(contains(&choice, text(input, "target"))), &expect["want"])
        }
        "TestGetGPUSchedulerPolicyByPod" => {
            let wanted = CardChoice::from(policy(text(expect, "want")));
            let default = policy(text(input, "defaultPolicy"));
            Verdict::of(&request(default, &input["pod"]["metadata"]["annotations"]).unwrap().choice, &wanted)
        }
        _ => judge_pod(case),
    }
}

/// The tests about pods, requests and weights.
fn judge_pod(case: &Case) -> Verdict {
    let (input, expect) = (&case.input, &case.expect);
    match case.test.as_str() {
        "TestParseDeviceScoringWeights" => {
            let wanted = (text(expect, "wantErr").is_empty()).then(|| expect["want"].clone());
            Verdict::of(&weights(&json!({names::WEIGHTS: input["value"]})), &wanted.map(|want| whole(&want)))
        }
        "TestGetDeviceScoringWeightsByPod" => {
            let wanted = (expect["wantErr"] == json!(false)).then(|| expect["want"].clone());
            Verdict::of(&weights(&input["pod"]["metadata"]["annotations"]), &wanted.map(|want| whole(&want)))
        }
        "Test_IsPodInTerminatedState" => Verdict::of(&json!(pod(input).is_terminal()), &expect["want"]),
        "Test_IsPodTerminating" => {
            let text = input.to_string().replace("{now}", "2026-11-21T00:00:00Z");
            let pod = pod(&serde_json::from_str(&text).unwrap());
            Verdict::of(&json!(pod.metadata.deletion_timestamp.is_some()), &expect["want"])
        }
        "TestIsMIGRequest" => {
            let annotations = &input["pod"]["metadata"]["annotations"];
            let selection = asked(annotations).selection;
            let ours = input["request"]["Type"] == json!("NVIDIA");
            let sliced = list(&input["devices"])
                .iter()
                .map(card)
                .any(|card| card.mode == berth::device::Mode::Mig && selection.admits_mode(&card));
            Verdict::of(&json!(ours && sliced), &expect["want"])
        }
        other => panic!("no adapter for {other}"),
    }
}

fn renamed(annotations: &Value, wanted: &str, unwanted: &str, use_key: &str, no_use_key: &str) -> Value {
    let known = |(key, value): (&String, &Value)| {
        let key = match key.as_str() {
            key if key == wanted => use_key,
            key if key == unwanted => no_use_key,
            key => key,
        };
        (key.to_owned(), value.clone())
    };
    Value::Object(annotations.as_object().into_iter().flatten().map(known).collect())
}

fn request(default: CardPolicy, annotations: &Value) -> Option<PodRequest> {
    let dialect = Hami::new(HamiSettings { card_policies: vec![default], ..hami_settings() });
    dialect
        .request(&pod_of(annotations, &json!({names::COUNT: "1"})), berth::dialect::MissingCount::Refuse)
        .ok()?
}

/// What a pod with these annotations asks.
pub(crate) fn asked(annotations: &Value) -> PodRequest {
    hami()
        .request(&pod_of(annotations, &json!({names::COUNT: "1"})), berth::dialect::MissingCount::Refuse)
        .unwrap()
        .unwrap()
}

fn policy(word: &str) -> CardPolicy {
    match word {
        "binpack" => CardPolicy::Binpack,
        "spread" => CardPolicy::Spread,
        other => panic!("no policy {other}"),
    }
}

fn contains(choice: &CardChoice, target: &str) -> bool {
    match target {
        "mutex" => choice.sharing == Sharing::Alone,
        "topology-aware" => choice.links == LinkChoice::Closest,
        "numa" => choice.order.contains(&CardPreference::HighestNuma),
        other => panic!("no target {other}"),
    }
}

/// Slot, core and memory; `None`: refused.
fn weights(annotations: &Value) -> Option<[u64; 3]> {
    let weights = request(CardPolicy::Spread, annotations)?.choice.weights;
    Some([weights.slots, weights.cores, weights.memory].map(u64::from))
}

fn whole(weights: &Value) -> [u64; 3] {
    ["Slot", "Core", "Memory"].map(|key| weights[key].as_u64().unwrap_or(0))
}
