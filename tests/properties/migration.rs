//! Whatever pods a pool has: the plan of its migration gives a pod cards of its own node exactly where the claims before it leave them, and never
//! more of a card than there is. It is judged by sums alone.

use std::collections::{BTreeMap, BTreeSet};

use berth::{
    cli::{
        Cli, Command,
        documents::{Document, DocumentPlace},
        migrate,
    },
    dialect::hami::names,
};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::share_claims::PRODUCTS;

/// A pool of up to three nodes with up to three cards, and pods of one container on them.
fn world() -> impl Strategy<Value = Vec<Value>> {
    let cards = prop::collection::vec((prop::sample::select(PRODUCTS.to_vec()), 1..5_u32), 0..4);
    let share = (1..3_u32, prop::option::of(1..40_u32), prop::option::of(0..101_u32));
    let pods = prop::collection::vec((0..3_usize, share, prop::option::of("A100|V100|SXM|nothing")), 0..8);
    (prop::collection::vec(cards, 3), pods).prop_map(|(nodes, pods)| {
        let nodes = nodes.iter().enumerate().map(|(at, cards)| node(at, cards));
        let pods = pods.iter().enumerate().map(|(at, (node, (count, memory, cores), model))| {
            let limits = [
                ("nvidia.com/gpu", Some(*count)),
                ("nvidia.com/gpumem", memory.map(|units| units * 1000)),
                ("nvidia.com/gpucores", *cores),
            ];
            let limits: BTreeMap<_, _> =
                limits.into_iter().filter_map(|(name, amount)| Some((name, amount?))).collect();
            let hints: BTreeMap<_, _> = model.iter().map(|model| (names::USE_MODEL, model)).collect();
            json!({
                "apiVersion": "v1", "kind": "Pod",
                "metadata": {"name": format!("p{at}"), "annotations": hints},
                "spec": {"nodeName": format!("n{node}"), "containers": [share_of(&json!(limits))]},
                "status": {"phase": "Running", "startTime": format!("2026-01-01T00:00:{at:02}Z")},
            })
        });
        nodes.chain(pods).collect()
    })
}

fn share_of(limits: &Value) -> Value {
    json!({"name": "main", "resources": {"limits": limits}})
}

/// Cards of so many times 10,000 MiB.
fn node(at: usize, cards: &[(&str, u32)]) -> Value {
    let card = |(index, (model, units)): (usize, &(&str, u32))| {
        json!({
            "id": format!("GPU-{at}-{index}"), "index": index, "count": 10, "devmem": units * 10_000,
            "devcore": 100, "type": format!("NVIDIA-{model}"), "mode": "hami-core", "health": true,
        })
    };
    let cards: Vec<Value> = cards.iter().enumerate().map(card).collect();
    let register = json!({"hami.io/node-nvidia-register": json!(cards).to_string()});
    json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": format!("n{at}"), "annotations": register}})
}

fn planned(objects: &[Value]) -> Value {
    let documents: Vec<Document> = objects
        .iter()
        .enumerate()
        .map(|(at, value)| {
            let place = DocumentPlace { file: "f".to_owned(), document: at + 1, item: None };
            Document { value: value.clone(), place }
        })
        .collect();
    let cli = <Cli as clap::Parser>::try_parse_from(["berth", "migrate", "--plan"]).unwrap();
    let Command::Migrate(args) = cli.command else { unreachable!("it is this command") };
    serde_json::to_value(migrate::plan(&args, &berth::config::Config::default(), &documents).unwrap())
        .unwrap()
}

/// What is left of each card, by node and uuid: memory and compute.
type Rest = BTreeMap<(String, String), (i64, i64, String)>;

fn rest(objects: &[Value]) -> Rest {
    let nodes = objects.iter().filter(|object| object["kind"] == "Node");
    let cards = nodes.flat_map(|node| {
        let register = &node["metadata"]["annotations"]["hami.io/node-nvidia-register"];
        let cards: Vec<Value> = serde_json::from_str(register.as_str().unwrap()).unwrap();
        let name = node["metadata"]["name"].as_str().unwrap().to_owned();
        cards.into_iter().map(move |card| {
            let text = |key: &str| card[key].as_str().unwrap().to_owned();
            ((name.clone(), text("id")), (card["devmem"].as_i64().unwrap(), 100, text("type")))
        })
    });
    cards.collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn a_plan_gives_a_pod_cards_of_its_node_whenever_the_claims_before_it_leave_them(objects in world()) {
        let cards: Rest = rest(&objects);
        prop_assume!(!cards.is_empty());
        let mut left = cards.clone();
        let plan = planned(&objects);
        let pods = objects.iter().filter(|object| object["kind"] == "Pod");
        let pods = pods.filter(|pod| plan["nodes"].as_array().unwrap().iter().any(|node| node["name"] == pod["spec"]["nodeName"]));
        for (pod, row) in pods.zip(plan["pods"].as_array().unwrap()) {
            prop_assert_eq!(&pod["metadata"]["name"], &row["name"]);
            let node = pod["spec"]["nodeName"].as_str().unwrap();
            let limits = &pod["spec"]["containers"][0]["resources"]["limits"];
            let (memory, cores) = (limits["nvidia.com/gpumem"].as_i64(), limits["nvidia.com/gpucores"].as_i64());
            let wanted = pod["metadata"]["annotations"][names::USE_MODEL].as_str();
            // A whole card's memory is that of the card; without an amount of either kind it is all of its compute too.
            let takes = |card: &(String, String)| {
                let cores = cores.filter(|cores| *cores > 0);
                let cores = cores.or_else(|| memory.map(|_| 0)).unwrap_or(100);
                (memory.unwrap_or(cards[card].0), cores)
            };
            let mut of_node = left.iter().filter(|((name, _), _)| name == node);
            let would_do = of_node.by_ref().filter(|(card, (free, free_cores, model))| {
                let (memory, cores) = takes(card);
                wanted.is_none_or(|wanted| model.contains(wanted)) && memory <= *free && cores <= *free_cores
            });
            let count = limits["nvidia.com/gpu"].as_u64().unwrap();
            let fits = would_do.count() as u64 >= count;
            prop_assert_eq!(row["outcome"] == "Fits", fits, "{} of {}", row, plan);
            let mut given = BTreeSet::new();
            for device in row["devices"].as_array().into_iter().flatten() {
                let card = (node.to_owned(), device["uuid"].as_str().unwrap().to_owned());
                let (memory, cores) = takes(&card);
                let (free, free_cores, model) = left.get_mut(&card).expect("a card of the pod's node");
                *free -= memory;
                *free_cores -= cores;
                prop_assert!(*free >= 0 && *free_cores >= 0 && wanted.is_none_or(|wanted| model.contains(wanted)));
                prop_assert!(given.insert(card), "the same card twice");
            }
            prop_assert_eq!(given.len() as u64, if fits { count } else { 0 });
        }
    }
}
