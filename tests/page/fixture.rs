//! Clusters as the API describes them: one to look at, a large one, and one of names that would like to be markup.

use std::collections::BTreeMap;

use serde_json::{Value, json};

pub(crate) const NOW: &str = "2026-11-25T09:30:00Z";

/// What the API answers about a cluster.
#[derive(Clone)]
pub(crate) struct Cluster {
    pub(crate) fleet: Value,
    pub(crate) queue: Value,
    pub(crate) fits: Value,
    pub(crate) quotas: Value,
}

/// Nodes of one kind.
struct Rack {
    prefix: &'static str,
    nodes: u64,
    cards: u64,
    model: &'static str,
    memory: u64,
}

const RACKS: &[Rack] = &[
    Rack { prefix: "dgx", nodes: 7, cards: 8, model: "NVIDIA H100 80GB HBM3", memory: 81_559 },
    Rack { prefix: "train", nodes: 10, cards: 8, model: "NVIDIA A100-SXM4-40GB", memory: 40_960 },
    Rack { prefix: "serve", nodes: 9, cards: 4, model: "NVIDIA L40S", memory: 46_068 },
];

/// Namespaces, with the parts of a card that their pods usually ask for, in eighths.
const TENANTS: &[(&str, &[&str], &[u64])] = &[
    ("vision", &["train-resnet", "eval-sam"], &[8, 8, 4]),
    ("speech", &["whisper-finetune", "align"], &[4, 4, 8]),
    ("search", &["ranker", "embedder"], &[2, 1, 2]),
    ("notebooks", &["lab-ines", "lab-tomas", "lab-noor"], &[1, 1, 2]),
    ("chat", &["llm-serve", "guard"], &[8, 2, 4]),
    ("research", &["sweep", "ablation"], &[2, 3, 4]),
    ("forecast", &["nightly"], &[1, 2]),
];

/// Numbers that look random and are the same every time.
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(2).wrapping_add(0x9e37_79b9_7f4a_7c15))
    }

    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }

    fn one<'a, T>(&mut self, of: &'a [T]) -> &'a T {
        let at = self.below(u64::try_from(of.len()).expect("a short list"));
        &of[usize::try_from(at).expect("a short list")]
    }
}

fn card(id: &str, index: u64, model: &str, memory: u64, shares: &[Value]) -> Value {
    let sum = |what: &str| shares.iter().filter_map(|share| share[what].as_u64()).sum::<u64>();
    let (used, cores) = (sum("memory"), sum("cores"));
    let pods: u64 = shares.iter().map(|share| share["others"].as_u64().unwrap_or(1)).sum();
    json!({
        "id": id, "index": index, "model": model, "healthy": true, "memory": memory, "memoryUsed": used,
        "cores": 100, "coresUsed": cores, "slots": 10, "slotsUsed": pods, "shares": shares,
    })
}

/// A cluster of an ordinary company.
pub(crate) fn company() -> Cluster {
    let mut dice = Dice::new(7);
    let mut nodes = Vec::new();
    for rack in RACKS {
        for number in 0..rack.nodes {
            let name = format!("{}-{number}", rack.prefix);
            let mut cards: Vec<Value> = (0..rack.cards)
                .map(|index| {
                    let id = format!("GPU-{:08x}-{name}-{index}", dice.below(1 << 31));
                    let shares = shares(&mut dice, rack.memory, &format!("{number}{index}"));
                    card(&id, index, rack.model, rack.memory, &shares)
                })
                .collect();
            let full = dice.below(5) == 0;
            for card in &mut cards {
                let free = card["memory"].as_u64().unwrap_or(0) - card["memoryUsed"].as_u64().unwrap_or(0);
                if free > 2000 && (full || dice.below(9) == 0) {
                    card["stranded"] = if full { "cpu" } else { "partlyUsed" }.into();
                }
            }
            nodes.push(json!({"name": name, "cards": cards}));
        }
    }
    nodes[4]["closed"] = json!(["cordoned"]);
    nodes[12]["cards"][3]["healthy"] = false.into();
    nodes[21]["closed"] = json!(["silentAgent"]);
    nodes.sort_by_key(|node| node["name"].as_str().unwrap_or_default().to_owned());
    let queue = waiting(&mut dice, 17);
    Cluster { fleet: fleet(&nodes, &queue), queue, fits: fits(), quotas: quotas() }
}

fn shares(dice: &mut Dice, memory: u64, place: &str) -> Vec<Value> {
    let mut left = 8;
    let mut shares = Vec::new();
    if dice.below(8) == 0 {
        return shares;
    }
    while left > 0 && (shares.is_empty() || dice.below(4) > 0) {
        let (namespace, pods, sizes) = dice.one(TENANTS);
        let eighths = *dice.one(sizes);
        if eighths > left {
            break;
        }
        left -= eighths;
        let pod = format!("{}-{place}{}", dice.one(pods), shares.len());
        let cores = eighths * 100 / 8;
        shares.push(json!({"namespace": namespace, "pod": pod, "memory": memory * eighths / 8, "cores": cores * (5 + dice.below(4)) / 8}));
    }
    if left >= 2 && dice.below(9) == 0 {
        shares.push(json!({"others": 2, "memory": memory / 8 * 2, "cores": 20}));
    }
    shares
}

/// What the API says of these nodes as a whole.
pub(crate) fn fleet(nodes: &[Value], queue: &Value) -> Value {
    let mut models: BTreeMap<String, (f64, f64, BTreeMap<String, f64>)> = BTreeMap::new();
    for card in nodes.iter().flat_map(|node| node["cards"].as_array().into_iter().flatten()) {
        let part = |used: &str, whole: &str| {
            card[used].as_f64().unwrap_or(0.0) / card[whole].as_f64().unwrap_or(1.0)
        };
        let used = part("memoryUsed", "memory").max(part("coresUsed", "cores"));
        let model = models.entry(card["model"].as_str().unwrap_or_default().to_owned()).or_default();
        model.0 += 1.0;
        model.1 += used;
        if let Some(reason) = card["stranded"].as_str() {
            *model.2.entry(reason.to_owned()).or_default() += 1.0 - used;
        }
    }
    let sizes = [(1, 12.5), (1, 25.0), (1, 50.0), (1, 100.0), (2, 100.0), (4, 100.0), (8, 100.0)];
    let models: Vec<_> = models
        .into_iter()
        .map(|(model, (cards, allocated, stranded))| {
            let free = cards - allocated;
            let fits = sizes.map(|(size, percent)| {
                let pods = (free * 70.0 / (f64::from(size) * f64::from(size) * percent)).floor();
                json!({"cards": size, "percent": percent, "pods": pods})
            });
            let stranded: Vec<_> =
                stranded.into_iter().map(|(reason, gpus)| json!({"reason": reason, "gpus": gpus})).collect();
            json!({"model": model, "cards": cards, "allocated": allocated, "free": free, "fragmented": free * 0.4, "stranded": stranded, "fits": fits})
        })
        .collect();
    let mut reasons: BTreeMap<&str, u64> = BTreeMap::new();
    for pod in queue["pods"].as_array().into_iter().flatten() {
        *reasons.entry(pod["reason"].as_str().unwrap_or_default()).or_default() += 1;
    }
    let mut reasons: Vec<_> =
        reasons.into_iter().map(|(reason, pods)| json!({"reason": reason, "pods": pods})).collect();
    reasons.sort_by_key(|reason| std::cmp::Reverse(reason["pods"].as_u64()));
    json!({
        "at": NOW, "leads": true, "viewer": {"user": "jane", "sees": "some"}, "models": models,
        "waiting": {"pods": queue["of"], "reasons": reasons}, "nodes": nodes,
    })
}

fn waiting(dice: &mut Dice, count: u64) -> Value {
    let reasons = [
        "CardInsufficientMemory",
        "CardInsufficientMemory",
        "CardInsufficientCores",
        "NodeAffinity",
        "QuotaExceeded",
    ];
    let asks =
        ["1 x 40000 MiB, 50 %", "8 x 100 %", "2 x 81559 MiB", "1 x 24000 MiB, 25 %", "4 x 40960 MiB, 100 %"];
    let pods: Vec<_> = (1..=count)
        .map(|position| {
            let (namespace, pods, _) = dice.one(TENANTS);
            let reason = *dice.one(&reasons);
            let mut pod = json!({
                "position": position, "since": format!("2026-11-25T0{}:{:02}:00Z", 1 + dice.below(7), dice.below(60)),
                "priority": if position < 4 { 1000 } else { 0 }, "attempts": 1 + dice.below(9), "asks": *dice.one(&asks), "reason": reason,
            });
            if position % 6 != 5 {
                pod["namespace"] = (*namespace).into();
                pod["pod"] = format!("{}-w{position}", dice.one(pods)).into();
                pod["message"] = format!("0/26 nodes are available: 21 {reason}, 4 TaintToleration, 1 NodeUnschedulable.").into();
            }
            pod
        })
        .collect();
    json!({"at": NOW, "of": count, "pods": pods})
}

fn fits() -> Value {
    let sizes = [(1, 12.5), (1, 25.0), (1, 50.0), (1, 100.0), (2, 100.0), (4, 100.0), (8, 100.0)];
    let counts = [
        ("NVIDIA A100-SXM4-40GB", [161, 74, 29, 9, 3, 0, 0]),
        ("NVIDIA H100 80GB HBM3", [96, 41, 17, 6, 2, 1, 0]),
        ("NVIDIA L40S", [83, 38, 15, 7, 3, 1, 0]),
    ];
    let sizes: Vec<_> = counts
        .iter()
        .flat_map(|(model, counts)| {
            sizes.iter().zip(counts).map(move |((cards, percent), fits)| {
                let request = json!({"cards": cards, "memoryPercent": percent, "coresPercent": percent});
                json!({"request": request, "model": model, "fits": fits})
            })
        })
        .collect();
    json!({ "sizes": sizes })
}

fn quotas() -> Value {
    json!([
        {"resource": "limits.nvidia.com/gpumem", "used": 312_000, "hard": 400_000},
        {"resource": "limits.nvidia.com/gpucores", "used": 800, "hard": 800},
    ])
}

/// A thousand nodes of eight cards with two shares each.
pub(crate) fn large() -> Cluster {
    let nodes: Vec<_> = (0..1000)
        .map(|number| {
            let cards: Vec<_> = (0..8).map(|index| card_of_two(number, index, number + index)).collect();
            json!({"name": format!("gpu-{number}"), "cards": cards})
        })
        .collect();
    let queue = waiting(&mut Dice::new(3), 1000);
    Cluster { fleet: fleet(&nodes, &queue), queue, fits: fits(), quotas: quotas() }
}

/// A card of the large cluster, which looks different for each `turn`.
pub(crate) fn card_of_two(node: u64, index: u64, turn: u64) -> Value {
    let share = |at: u64| {
        let (namespace, memory) = (format!("team-{}", (turn + at) % 40), 8000 + 4000 * ((turn + 3 * at) % 8));
        json!({"namespace": namespace, "pod": format!("pod-{node}-{index}-{at}"), "memory": memory, "cores": 20 + (turn * 7) % 30})
    };
    card(&format!("GPU-{node}-{index}"), index, "NVIDIA H100 80GB HBM3", 81_559, &[share(0), share(1)])
}

/// Texts that would be markup, a script or another direction if the page were careless.
pub(crate) const HOSTILE: &[&str] = &[
    "<img src=x onerror=\"document.title='broken out'\">",
    "\"><script>document.title='broken out'</script>",
    "javascript:document.title='broken out'",
    "\u{202e}dewol\u{202c}\u{2067}שלום\u{2069}",
    "a/../../b?c#d%2e%2e&e=\u{0}\u{1}f",
    "__proto__",
    "constructor",
    "-an-extremely-long-name-without-any-place-to-break-it-----------------------------------------------------------------------------------------------------------------",
];

/// A cluster in which everything is called something hostile.
pub(crate) fn hostile() -> Cluster {
    let nodes: Vec<_> = HOSTILE
        .iter()
        .map(|name| {
            let share = json!({"namespace": name, "pod": name, "memory": 4000, "cores": 10});
            let mut card = card(&format!("GPU {name}"), 0, name, 40_960, &[share]);
            card["stranded"] = (*name).into();
            json!({"name": name, "closed": [name], "cards": [card]})
        })
        .collect();
    let pods: Vec<_> = HOSTILE
        .iter()
        .zip(1..)
        .map(|(name, position)| {
            json!({"position": position, "since": name, "priority": 0, "attempts": 1, "asks": name, "reason": name, "namespace": name, "pod": name, "message": name})
        })
        .collect();
    let queue = json!({"at": NOW, "of": pods.len(), "pods": pods});
    let sizes: Vec<_> = HOSTILE
        .iter()
        .map(|model| json!({"request": {"cards": 1, "memoryPercent": 50, "coresPercent": 50}, "model": model, "fits": 3}))
        .collect();
    let quotas = HOSTILE.iter().map(|name| json!({"resource": name, "used": 1, "hard": 2})).collect();
    Cluster { fleet: fleet(&nodes, &queue), queue, fits: json!({ "sizes": sizes }), quotas }
}

impl Cluster {
    fn nodes(&self) -> impl Iterator<Item = &Value> {
        self.fleet["nodes"].as_array().into_iter().flatten()
    }

    /// The first card that a share of several holders is on, and its node.
    pub(crate) fn shared_card(&self) -> (&Value, &Value) {
        let cards = self
            .nodes()
            .flat_map(|node| node["cards"].as_array().into_iter().flatten().map(move |card| (node, card)));
        let most = cards.max_by_key(|(_, card)| card["shares"].as_array().map(Vec::len));
        most.expect("there are cards")
    }

    pub(crate) fn node(&self, name: &str) -> Option<Value> {
        let mut node = self.nodes().find(|node| node["name"] == name)?.clone();
        node["labels"] = json!({"kubernetes.io/hostname": name, "topology.kubernetes.io/zone": "eu-1a", "gpu.example/rack": "r12"});
        node["taints"] = json!([{"key": "dedicated", "value": name, "effect": "NoSchedule"}]);
        node["resources"] = json!([
            {"resource": "cpu", "allocatable": "96", "requested": "88500m"},
            {"resource": "memory", "allocatable": "1031774Mi", "requested": "412Gi"},
            {"resource": "pods", "allocatable": "110", "requested": "23"},
        ]);
        node["models"] = node["cards"]
            .as_array()
            .map(|cards| cards.iter().take(1).map(|card| card["model"].clone()).collect())?;
        Some(node)
    }

    pub(crate) fn card(&self, id: &str) -> Option<Value> {
        self.nodes().find_map(|node| {
            let card = node["cards"].as_array()?.iter().find(|card| card["id"] == id)?;
            Some(json!({"node": node["name"], "card": card}))
        })
    }

    pub(crate) fn namespace(&self, name: &str) -> Value {
        let queued = self.queue["pods"].as_array().into_iter().flatten();
        let queued = queued.filter(|pod| pod["namespace"] == name).filter_map(|pod| pod["pod"].as_str());
        let shares = self.nodes().flat_map(|node| node["cards"].as_array().into_iter().flatten());
        let shares = shares.flat_map(|card| card["shares"].as_array().into_iter().flatten());
        let holding =
            shares.filter(|share| share["namespace"] == name).filter_map(|share| share["pod"].as_str());
        let names: std::collections::BTreeSet<_> = queued.chain(holding).collect();
        let pods: Vec<_> = names.into_iter().filter_map(|pod| self.pod(name, pod)).collect();
        json!({"namespace": name, "pods": pods, "quotas": self.quotas})
    }

    /// A pod: what it holds, or why it waits.
    pub(crate) fn pod(&self, namespace: &str, name: &str) -> Option<Value> {
        let mut holds = Vec::new();
        let mut place = Value::Null;
        for node in self.nodes() {
            for card in node["cards"].as_array().into_iter().flatten() {
                for share in card["shares"].as_array().into_iter().flatten() {
                    if share["namespace"] == namespace && share["pod"] == name {
                        place = node["name"].clone();
                        holds.push(json!({"card": card["id"], "index": card["index"], "model": card["model"], "memory": share["memory"], "cores": share["cores"]}));
                    }
                }
            }
        }
        if let Some(first) = holds.first() {
            let asks = format!("{} x {} MiB, {} %", holds.len(), first["memory"], first["cores"]);
            return Some(json!({
                "namespace": namespace, "name": name, "outcome": "Bound", "node": place, "since": "2026-11-25T03:12:00Z", "priority": 0,
                "holds": holds, "asks": asks, "attempts": 1,
            }));
        }
        let queued = self.queue["pods"]
            .as_array()?
            .iter()
            .find(|pod| pod["namespace"] == namespace && pod["pod"] == name)?;
        let names: Vec<_> = self.nodes().map(|node| node["name"].clone()).collect();
        let (near, far) = names.split_at(names.len().min(9));
        Some(json!({
            "namespace": namespace, "name": name, "outcome": "Waiting", "since": queued["since"], "priority": queued["priority"], "asks": queued["asks"],
            "queue": {"position": queued["position"], "of": self.queue["of"]}, "attempts": queued["attempts"], "reason": queued["reason"],
            "message": queued["message"], "fitting": 0,
            "nodes": [
                {"reasons": [{"reason": queued["reason"], "by": 5424}], "count": near.len(), "names": near},
                {"reasons": [{"reason": "TaintToleration"}], "count": far.len(), "names": far},
            ],
            "history": [{
                "reasons": [queued["reason"]], "message": queued["message"], "first": queued["since"], "last": queued["since"],
                "count": queued["attempts"],
            }],
            "nearest": {"node": names[0], "lacks": [{"reason": queued["reason"], "card": self.shared_card().1["id"], "by": 5424}]},
        }))
    }
}

/// What would help a pod that waits.
pub(crate) fn change() -> Value {
    let field = "spec.containers[0].resources.limits[nvidia.com/gpumem]";
    json!({"change": [{"field": field, "from": "40000", "to": "34576"}]})
}
