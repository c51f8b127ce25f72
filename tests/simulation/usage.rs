//! The account of what was used, judged by what pods have held: no moment counts twice, nothing that is counted is lost again, and a pod that
//! goes on has all its time.
//!
//! It is read by the format that docs/usage.md states, without any of Berth's code.

use std::{collections::BTreeMap, sync::Arc};

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use crate::record::{Pod, text};

/// The name of the ConfigMap.
pub(crate) const NAME: &str = "berth-usage";

/// For so many seconds a pod may count that has ended, or not count that was bound: processes stand still and watches break for as long.
const UNSEEN: i64 = 300;

/// One pod that was bound.
#[derive(Debug)]
struct Life {
    name: String,
    /// MiB of cards.
    memory: i64,
    /// In seconds since 1970.
    bound: i64,
    ended: Option<i64>,
}

/// What pods have held, and what of it was counted.
#[derive(Debug, Default)]
pub(crate) struct Usage {
    lives: BTreeMap<String, Life>,
    /// Pods whose holding can't be told from their annotations alone, by name.
    unjudged: Vec<String>,
    account: Option<Arc<Value>>,
    /// When counting began.
    began: i64,
    /// Until when was counted, and what by then, by the name of the pod.
    counted: (i64, BTreeMap<String, i64>),
}

impl Usage {
    /// Takes in the pods and the account; returns what is wrong with it.
    pub(crate) fn see(
        &mut self,
        pods: &[Arc<Pod>],
        account: Option<&Arc<Value>>,
        now: Timestamp,
    ) -> Vec<String> {
        self.see_pods(pods, now.as_second());
        let is_known = match (account, &self.account) {
            (Some(account), Some(known)) => Arc::ptr_eq(account, known),
            (account, known) => account.is_none() == known.is_none(),
        };
        if is_known {
            return Vec::new();
        }
        self.account = account.cloned();
        account.map_or_else(|| vec![format!("{NAME} is gone")], |account| self.judge(account))
    }

    fn see_pods(&mut self, pods: &[Arc<Pod>], now: i64) {
        let holds = |pod: &&Arc<Pod>| pod.is_live() && !pod.node.is_empty();
        for pod in pods.iter().filter(holds) {
            if self.lives.contains_key(&pod.uid) {
                continue;
            }
            let shares =
                pod.shares().ok().filter(|_| pod.readable && pod.inits == 0 && pod.devices.is_none());
            let memory = shares.iter().flatten().flatten().map(|share| share.memory.cast_signed()).sum();
            if shares.is_none() {
                self.unjudged.push(pod.name.clone());
            }
            let life = Life { name: pod.name.clone(), memory, bound: now, ended: None };
            self.lives.insert(pod.uid.clone(), life);
        }
        for (uid, life) in self.lives.iter_mut().filter(|(_, life)| life.ended.is_none()) {
            if !pods.iter().filter(holds).any(|pod| pod.uid == *uid) {
                life.ended = Some(now);
            }
        }
    }

    fn judge(&mut self, account: &Value) -> Vec<String> {
        let text: Value = serde_json::from_str(text(account, "/data/account.json")).unwrap_or_default();
        let Ok(until) = self::text(&text, "/countedUntil").parse::<Timestamp>() else {
            return vec![format!("{NAME} can't be read: {text}")];
        };
        let until = until.as_second();
        let mut rows: BTreeMap<String, i64> = BTreeMap::new();
        for row in text["workloads"].as_array().into_iter().flatten() {
            let [_, kind, name, memory, ..] = row.as_array().map(Vec::as_slice).unwrap_or_default() else {
                return vec![format!("{NAME} has an odd row: {row}")];
            };
            if kind == "Pod" {
                *rows.entry(name.as_str().unwrap_or_default().to_owned()).or_default() +=
                    memory.as_i64().unwrap_or_default();
            }
        }
        let (before, counted) = std::mem::replace(&mut self.counted, (until, rows));
        if before == 0 {
            self.began = until;
        }
        let mut wrong = Vec::new();
        if until < before {
            wrong.push(format!("{NAME} has counted until {until}, and had until {before}"));
        }
        let rows = &self.counted.1;
        for (name, memory) in counted {
            if rows.get(&name).is_none_or(|now| *now < memory) {
                wrong.push(format!(
                    "what {name} has held was {memory} MiB s and is {:?} now",
                    rows.get(&name)
                ));
            }
        }
        let mut by_name: BTreeMap<&str, Vec<&Life>> = BTreeMap::new();
        self.lives.values().for_each(|life| by_name.entry(&life.name).or_default().push(life));
        for (name, lives) in
            by_name.into_iter().filter(|(name, _)| !self.unjudged.iter().any(|pod| pod == name))
        {
            let held = |life: &&Life| {
                let until = life.ended.map_or(until, |ended| until.min(ended + UNSEEN));
                life.memory * (until - life.bound.max(self.began)).max(0)
            };
            let least = |life: &&Life| match life.ended {
                None => life.memory * (until - UNSEEN - life.bound.max(self.began)).max(0),
                Some(_) => 0,
            };
            let (most, least): (i64, i64) = (lives.iter().map(held).sum(), lives.iter().map(least).sum());
            let found = rows.get(name).copied().unwrap_or_default();
            if !(least..=most).contains(&found) {
                wrong.push(format!(
                    "{name} has held {least} to {most} MiB s by {until}, and {found} are counted: {lives:?}"
                ));
            }
        }
        wrong
    }
}

/// The account as if it had counted until a minute before.
pub(crate) fn forget_a_minute(config_map: &mut Value) {
    let mut account: Value = serde_json::from_str(text(config_map, "/data/account.json")).unwrap_or_default();
    let until = self::text(&account, "/countedUntil").parse::<Timestamp>();
    if let Ok(before) = until.and_then(|until| until.checked_sub(SignedDuration::from_mins(1))) {
        account["countedUntil"] = json!(before.to_string());
        config_map["data"]["account.json"] = json!(account.to_string());
    }
}
