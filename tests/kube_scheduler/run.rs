//! Many clusters, each asked of kube-scheduler's plugins and of Berth, with what was found.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write,
    sync::atomic::{AtomicU64, Ordering},
    thread,
};

use serde_json::Value;

use crate::kube_scheduler::{
    difference::{Difference, NAMED, WHOLE_POD, Way, differences, score_differences},
    family::Family,
    plugins::{Answer, Judge, Plugins},
    simulate::{Settings, simulate},
    world::Case,
};

/// How many clusters, from which seed, with which families.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) clusters: u64,
    pub(crate) seed: u64,
    pub(crate) families: Vec<Family>,
}

/// What a run has found.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    /// How often each known difference was met, by its position in `NAMED`.
    pub(crate) named: BTreeMap<usize, u64>,
    /// The first of each kind of difference that has no name.
    pub(crate) unnamed: BTreeMap<(Way, String, BTreeSet<Family>), (Case, Difference)>,
    /// Clusters about which one of both has no answer, and why.
    pub(crate) unanswered: Vec<String>,
    /// How far each family decides.
    tallies: BTreeMap<Family, Tally>,
}

/// How the nodes of a family's clusters fared with kube-scheduler.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Tally {
    /// Pairs of a pod and a node.
    verdicts: u64,
    /// Those that fit.
    fit: u64,
    /// Those that one of the family's plugins refuses; for a family of preferences, those that fit and that the plugin scores unlike
    /// another node.
    decided: u64,
}

impl Findings {
    /// Families that refuse no node, or in whose clusters no node fits: these test nothing.
    pub(crate) fn idle(&self, families: &[Family]) -> Vec<&'static str> {
        let tally = |family: &Family| self.tallies.get(family).copied().unwrap_or_default();
        let idle = families.iter().filter(|family| tally(family).fit == 0 || tally(family).decided == 0);
        idle.map(|family| family.name()).collect()
    }

    /// One line for each family.
    pub(crate) fn table(&self) -> String {
        let mut table = format!("{:<18} {:>8} {:>8} {:>8}", "family", "verdicts", "fit", "decided");
        for (family, tally) in &self.tallies {
            let Tally { verdicts, fit, decided } = tally;
            write!(table, "\n{:<18} {verdicts:>8} {fit:>8} {decided:>8}", family.name()).unwrap();
        }
        table
    }

    fn count(&mut self, case: &Case, answer: &Answer) {
        let pods = answer.pods.iter().flatten().filter(|pod| case.waiting.contains_key(&pod.name));
        for pod in pods {
            for (node, family) in
                pod.nodes.iter().flat_map(|node| case.families.iter().map(move |f| (node, f)))
            {
                let tally = self.tallies.entry(*family).or_default();
                tally.verdicts += 1;
                tally.fit += u64::from(node.fits);
                let decided = match family.scorer() {
                    Some(plugin) => node.fits && pod.scores_apart(&node.name, plugin),
                    None => !node.fits && family.may_decide(&node.plugin, node.nominated),
                };
                tally.decided += u64::from(decided);
            }
        }
    }

    fn note(&mut self, case: &Case, difference: Difference) {
        if let Some(name) = difference.name(&case.families, NAMED) {
            *self.named.entry(name).or_default() += 1;
        } else {
            let kind = (difference.way, difference.by.clone(), case.families.clone());
            self.unnamed.entry(kind).or_insert_with(|| (case.clone(), difference));
        }
    }

    fn merge(&mut self, other: Self) {
        for (name, count) in other.named {
            *self.named.entry(name).or_default() += count;
        }
        for (kind, example) in other.unnamed {
            self.unnamed.entry(kind).or_insert(example);
        }
        self.unanswered.extend(other.unanswered);
        for (family, Tally { verdicts, fit, decided }) in other.tallies {
            let tally = self.tallies.entry(family).or_default();
            tally.verdicts += verdicts;
            tally.fit += fit;
            tally.decided += decided;
        }
    }
}

/// Compares all clusters of the plan, on every processor.
pub(crate) fn run(judge: &Judge, plan: &Plan) -> Findings {
    let next = AtomicU64::new(0);
    let worker = || {
        let mut plugins = Plugins::start(judge);
        let mut findings = Findings::default();
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            if at >= plan.clusters {
                return findings;
            }
            let case = Case::generate(plan.seed.wrapping_add(at), &plan.families);
            let (answer, differences) = match compare(&mut plugins, &case) {
                Ok(found) => found,
                Err(reason) => {
                    findings.unanswered.push(format!("seed {}: {reason}", case.seed));
                    continue;
                }
            };
            findings.count(&case, &answer);
            for difference in differences {
                findings.note(&case, difference);
            }
        }
    };
    let mut all = Findings::default();
    for findings in on_all_processors(worker) {
        all.merge(findings);
    }
    all
}

/// What came of this work, done once on every processor at the same time.
pub(crate) fn on_all_processors<T: Send>(work: impl Fn() -> T + Sync) -> Vec<T> {
    let workers = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| {
        let running: Vec<_> = (0..workers).map(|_| scope.spawn(&work)).collect();
        let joined = running.into_iter().map(thread::ScopedJoinHandle::join);
        joined.map(|done| done.unwrap_or_else(|panic| std::panic::resume_unwind(panic))).collect()
    })
}

/// What kube-scheduler's plugins answer, and where Berth differs.
pub(crate) fn compare(plugins: &mut Plugins, case: &Case) -> Result<(Answer, Vec<Difference>), String> {
    let settings = Settings::of(case.seed, plugins.release);
    let answer = plugins.judge(&case.items, settings)?;
    let objects = answer.objects.as_deref().unwrap_or_default();
    let mut found = Vec::new();
    for (pod, asked) in &case.waiting {
        let theirs = answer.pods.iter().flatten().find(|verdict| verdict.name == *pod);
        let theirs = theirs.ok_or_else(|| format!("kube-scheduler: no pod {pod}"))?;
        let ours = simulate(&without_others(objects, case, pod), pod, settings)?;
        found.extend(differences(&case.families, asked, theirs, &ours));
        let requests_as_a_whole = objects.iter().any(|object| {
            object["kind"] == "Pod"
                && object["metadata"]["name"] == **pod
                && !object["spec"]["resources"].is_null()
        });
        found.extend(score_differences(theirs, &ours).into_iter().map(|difference| {
            let is_named = requests_as_a_whole && difference.by == "NodeResourcesFit";
            if is_named { Difference { by: WHOLE_POD.to_owned(), ..difference } } else { difference }
        }));
    }
    Ok((answer, found))
}

/// The objects without the other waiting pods, which Berth would place first.
pub(crate) fn without_others<'a>(objects: &'a [Value], case: &Case, pod: &str) -> Vec<&'a Value> {
    let is_other = |object: &&Value| {
        let name = object["metadata"]["name"].as_str().unwrap_or_default();
        object["kind"] == "Pod" && name != pod && case.waiting.contains_key(name)
    };
    objects.iter().filter(|object| !is_other(object)).collect()
}
