//! What must hold once faults have stopped and time has run.

use std::sync::Arc;

use serde_json::Value;

use super::{Checker, LOCK, is_bound, of_volcano, room::would_fit};
use crate::{
    fresh, kept_room,
    record::{Pod, annotation, text},
};

impl Checker {
    /// Once faults have stopped and no volume is made: a claim is selected for a node only while a pod is to go there with it.
    pub(crate) fn judge_selected_claims(&mut self) {
        let pods = self.pods();
        for claim in self.sandbox.objects("persistentvolumeclaims").iter().filter(|claim| !is_bound(claim)) {
            let name = text(claim, "/metadata/name");
            let selected = annotation(claim, "volume.kubernetes.io/selected-node");
            let used = pods.iter().any(|pod| pod.is_live() && pod.claims.iter().any(|used| used == name));
            if let Some(node) = selected.filter(|_| !used) {
                self.violations.push(format!("{name} is left selected for {node}, and no pod uses it"));
            }
        }
    }

    /// While all is calm: pods that are spread stand where they may, and none waits that could stand somewhere.
    pub(crate) fn judge_spread(&mut self) {
        let (pods, nodes) = (self.pods(), self.sandbox.objects("nodes"));
        self.violations.extend(self.spread.judge(&nodes, &pods));
        self.judge_the_end();
    }

    /// Once faults have stopped and time has run: nothing waits that would fit, and no lock is left behind.
    pub(crate) fn judge_the_end(&mut self) {
        let pods = self.pods();
        let nodes = self.sandbox.objects("nodes");
        for pod in
            pods.iter().filter(|pod| pod.ours && pod.is_live() && pod.node.is_empty() && !pod.terminating)
        {
            match &pod.waits_because {
                _ if pod.gated => {}
                None => self.violations.push(format!("{} is neither bound nor told why", pod.name)),
                Some(reason) => self.judge_waiting(pod, reason, &pods, &nodes),
            }
        }
        for pod in pods.iter().filter(|pod| pod.is_live() && !pod.node.is_empty()) {
            if pod.waits_because.is_some() {
                self.violations.push(format!("{} is bound, and its condition says that it waits", pod.name));
            }
            if pod.is_awaited() && nodes.iter().any(|node| text(node, "/metadata/name") == pod.node) {
                self.violations.push(format!("{} is bound and never answered", pod.name));
            }
        }
        self.violations.extend(self.gangs.judge_the_end(&pods, &of_volcano(&self.sandbox)));
        self.violations.extend(self.groups.judge_the_end(&pods));
        self.violations.extend(self.device_claims.judge_the_end(&pods, &nodes, &self.groups));
        self.violations.extend(fresh::look(&self.sandbox, &self.config));
        let now = self.sandbox.now();
        self.violations.extend(kept_room::judge_the_end(&pods, nodes.len(), now));
        self.violations.extend(self.division.iter().flat_map(|division| division.judge_the_end(&pods, now)));
        for node in &nodes {
            let lock = annotation(node, LOCK).unwrap_or_default();
            if lock.contains(",default,pod-") {
                self.violations
                    .push(format!("the lock `{lock}` of {} is left", text(node, "/metadata/name")));
            }
        }
    }

    fn judge_waiting(&mut self, pod: &Pod, reason: &str, pods: &[Arc<Pod>], nodes: &[Arc<Value>]) {
        // Whether a gang has room is left to the fresh look, and to what is known of claims.
        let of_gang = |group: &String| reason.starts_with(&format!("PodGroup default/{group}: "));
        let of_tree =
            || ["PodGroup default/", "CompositePodGroup default/"].iter().any(|of| reason.starts_with(of));
        if pod.group.as_ref().is_some_and(of_gang) || pod.kubernetes_group.as_ref().is_some_and(|_| of_tree())
        {
            return;
        }
        let told = format!("0/{} nodes are available: ", nodes.len());
        let unreadable = reason.starts_with("Pod's GPU request can't be read: ");
        let holders: Vec<&Pod> =
            pods.iter().map(AsRef::as_ref).filter(|pod| pod.is_live() && !pod.node.is_empty()).collect();
        let surely_over = self.quotas.exceeds(pod, &holders, Pod::takes);
        let maybe_over = self.quotas.exceeds(pod, &holders, Pod::may_take);
        let true_of_it = (reason.starts_with(&told) && (!surely_over || !pod.readable))
            || (unreadable && !pod.readable)
            || (maybe_over && reason.starts_with("exceeded quota: "))
            || self.device_claims.is_given_twice(reason);
        if !true_of_it {
            self.violations.push(format!("{} waits for a reason that is not true: {reason}", pod.name));
        }
        if (!pod.readable && pod.devices.is_none()) || maybe_over {
            return;
        }
        // Pods of lower priority would go for it.
        let staying: Vec<_> = pods.iter().filter(|other| other.priority >= pod.priority).cloned().collect();
        let now = self.sandbox.now();
        let open = |node: &&Arc<Value>| {
            let name = text(node, "/metadata/name");
            !kept_room::is_kept(name, pod, pods)
                && self.division.as_ref().is_none_or(|division| division.takes(pod, name, now))
        };
        let open: Vec<_> = nodes.iter().filter(open).collect();
        for node in open {
            if node["spec"]["unschedulable"] != true
                && (would_fit(pod, node, (nodes, &self.device_claims), &staying)
                    || self.devices.would_fit(pod, node, &staying))
            {
                let text = format!(
                    "{} waits though {} would have it: {reason}",
                    pod.name,
                    text(node, "/metadata/name")
                );
                self.violations.push(text);
            }
        }
    }
}
