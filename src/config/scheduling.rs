//! `scheduling`: how nodes are compared, and which pods are preempted.

use std::collections::BTreeMap;

use jiff::SignedDuration;
use serde::{Serialize, Serializer};

use super::{
    duration,
    plugin_config::{self, PluginConfig},
    section::Section,
    trouble::Trouble,
};
use crate::scheduling::{
    model::{claim_use::DeviceClaims, kept_room::RoomTerms, kube_scheduler::KubeScheduler},
    plan::preemption::Rules,
    plugin::{Plugin, score::weights::ScoreWeights},
};

/// When room is kept for a pod that waits, where that is not set.
const KEEP_ROOM_AFTER: SignedDuration = SignedDuration::ZERO;
const KEEP_ROOM_FOR: SignedDuration = SignedDuration::from_hours(1);

/// How nodes are compared, and which pods are preempted.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SchedulingConfig {
    /// Which release of kube-scheduler is followed where releases differ; `None`: that of the API server.
    #[serde(rename = "kubeScheduler", serialize_with = "written")]
    pub kube_scheduler: Option<KubeScheduler>,
    /// The release of the API server, which is no setting; `None`: it is not known.
    #[serde(skip)]
    pub api_server: Option<KubeScheduler>,
    /// The factor of each plugin's score, from 0 to 100. One that is not set and differs between releases is missing where the API server's is followed.
    pub weights: BTreeMap<&'static str, u32>,
    /// What is said to single plugins.
    #[serde(rename = "pluginConfig")]
    pub plugin_config: PluginConfig,
    /// Which pods are preempted.
    pub preemption: PreemptionConfig,
    /// Which pods are placed together.
    pub gangs: GangsConfig,
    /// What pods hold while they wait for volumes.
    pub volumes: VolumesConfig,
    /// Claims of devices.
    pub claims: ClaimsConfig,
    /// Pods without a share, and pods that wait long.
    pub pods: PodsConfig,
}

/// Where pods without a share are placed, and when room is kept for pods that wait.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PodsConfig {
    /// Which node first, for a pod without a share.
    pub policy: PodsPolicy,
    /// So long after its creation room is kept for a pod that fits nowhere; zero: never.
    #[serde(serialize_with = "duration::serialize")]
    pub keep_room_after: SignedDuration,
    /// For so long room is kept at most.
    #[serde(serialize_with = "duration::serialize")]
    pub keep_room_for: SignedDuration,
}

impl PodsConfig {
    /// From when and for how long room is kept for pods that wait; `None`: none is.
    pub fn rooms(self) -> Option<RoomTerms> {
        let Self { keep_room_after: after, keep_room_for: length, .. } = self;
        after.is_positive().then_some(RoomTerms { after, length })
    }
}

/// Which node is taken first for a pod without a share.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum PodsPolicy {
    /// The one where the pod leaves least of no use for pods with shares that may come.
    LeastWaste,
    /// The one whose cpu and memory it makes used most evenly, as kube-scheduler does.
    Balanced,
}

/// Claims of devices.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ClaimsConfig {
    /// Whether they are served.
    pub enabled: bool,
}

impl ClaimsConfig {
    /// Whether they are served.
    pub fn served(self) -> DeviceClaims {
        if self.enabled { DeviceClaims::Served } else { DeviceClaims::Off }
    }
}

/// What pods hold while they wait for volumes.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct VolumesConfig {
    /// How many percent of the cluster's cards the pods of one namespace may hold; one pod or one gang may hold more.
    pub held_percent: u32,
}

/// Which pods are placed together.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct GangsConfig {
    /// Whether the pods of a PodGroup are.
    pub enabled: bool,
    /// For how long bound pods of a group wait for the others before they are evicted.
    #[serde(serialize_with = "duration::serialize")]
    pub timeout: SignedDuration,
}

impl GangsConfig {
    /// For how long bound pods wait for the others; `None`: every pod is placed alone.
    pub fn timeout(self) -> Option<SignedDuration> {
        let Self { enabled, timeout } = self;
        enabled.then_some(timeout)
    }
}

/// Which pods are preempted for a pod of higher priority that fits nowhere.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PreemptionConfig {
    /// Whether any are.
    pub enabled: bool,
    /// Whether pods that another scheduler has placed may be.
    pub other_schedulers: bool,
    /// Whether of pods of one priority those go first that are marked `volcano.sh/preemptable: "true"`.
    pub preemptable_first: bool,
}

impl PreemptionConfig {
    /// The rules by which victims are chosen; `None`: no pod is preempted.
    pub fn rules(self) -> Option<Rules> {
        let Self { enabled, other_schedulers, preemptable_first } = self;
        enabled.then_some(Rules { other_schedulers, preemptable_first })
    }
}

impl SchedulingConfig {
    /// The release of kube-scheduler that is followed where releases differ. Where neither is known it is the first.
    pub fn followed(&self) -> KubeScheduler {
        self.kube_scheduler.or(self.api_server).unwrap_or_default()
    }

    /// By how much each plugin's score of a node is multiplied.
    pub fn score_weights(&self) -> ScoreWeights {
        let weight = |plugin: Plugin| self.weights.get(plugin.name()).copied();
        ScoreWeights::each(|plugin| weight(plugin).unwrap_or_else(|| plugin.default_weight(self.followed())))
    }
}

/// The words for the release that is followed.
pub(super) const FOLLOWED: [(&str, Option<KubeScheduler>); 3] = {
    let [older, newer] = KubeScheduler::ALL;
    [("auto", None), (older.word(), Some(older)), (newer.word(), Some(newer))]
};

#[expect(clippy::ref_option, clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn written<S: Serializer>(followed: &Option<KubeScheduler>, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(followed.map_or("auto", KubeScheduler::word))
}

pub(super) fn read(mut section: Section) -> Result<SchedulingConfig, Trouble> {
    let kube_scheduler = section.choice("kubeScheduler", None, &FOLLOWED)?;
    let weights = weights(section.section("weights")?, kube_scheduler)?;
    let plugin_config = plugin_config::read(section.section("pluginConfig")?)?;
    let preemption = preemption(section.section("preemption")?)?;
    let gangs = gangs(section.section("gangs")?)?;
    let volumes = volumes(section.section("volumes")?)?;
    let claims = claims(section.section("claims")?)?;
    let pods = pods(section.section("pods")?)?;
    section.finish()?;
    Ok(SchedulingConfig {
        kube_scheduler,
        api_server: None,
        weights,
        plugin_config,
        preemption,
        gangs,
        volumes,
        claims,
        pods,
    })
}

fn weights(
    mut section: Section,
    followed: Option<KubeScheduler>,
) -> Result<BTreeMap<&'static str, u32>, Trouble> {
    let mut weights = BTreeMap::new();
    for plugin in Plugin::scoring() {
        let name = plugin.name();
        let default = plugin.default_weight(followed.unwrap_or_default());
        let differs = KubeScheduler::ALL.iter().any(|release| plugin.default_weight(*release) != default);
        let default = Some(default).filter(|_| followed.is_some() || !differs);
        let weight = section.int_if_set(name, 0..=100)?.or(default);
        weights.extend(weight.map(|weight| (name, weight)));
    }
    section.finish()?;
    Ok(weights)
}

fn preemption(mut section: Section) -> Result<PreemptionConfig, Trouble> {
    let preemption = PreemptionConfig {
        enabled: section.on_unless_off("enabled")?,
        other_schedulers: section.on_unless_off("otherSchedulers")?,
        preemptable_first: section.on_unless_off("preemptableFirst")?,
    };
    section.finish()?;
    Ok(preemption)
}

fn volumes(mut section: Section) -> Result<VolumesConfig, Trouble> {
    // Half of the cluster is left to others; volumes are mostly made so fast that a namespace alone in its cluster does not notice.
    let volumes = VolumesConfig { held_percent: section.int("heldPercent", 50, 0..=100)? };
    section.finish()?;
    Ok(volumes)
}

fn claims(mut section: Section) -> Result<ClaimsConfig, Trouble> {
    let claims = ClaimsConfig { enabled: section.on_unless_off("enabled")? };
    section.finish()?;
    Ok(claims)
}

fn pods(mut section: Section) -> Result<PodsConfig, Trouble> {
    let policies = [("least-waste", PodsPolicy::LeastWaste), ("balanced", PodsPolicy::Balanced)];
    let policy = section.choice("policy", PodsPolicy::LeastWaste, &policies)?;
    let keep_room_after = section.take("keepRoomAfter");
    let keep_room_after = keep_room_after.map_or(Ok(KEEP_ROOM_AFTER), |field| field.duration_or_zero())?;
    let keep_room_for = section.take("keepRoomFor").map_or(Ok(KEEP_ROOM_FOR), |field| field.duration())?;
    let pods = PodsConfig { policy, keep_room_after, keep_room_for };
    section.finish()?;
    Ok(pods)
}

fn gangs(mut section: Section) -> Result<GangsConfig, Trouble> {
    // Longer than a lock of a holder that is gone is respected.
    let timeout =
        section.take("timeout").map_or(Ok(SignedDuration::from_mins(10)), |field| field.duration())?;
    let gangs = GangsConfig { enabled: section.on_unless_off("enabled")?, timeout };
    section.finish()?;
    Ok(gangs)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        config::Config,
        device::{CardPolicy, NodePolicy},
    };

    fn error(text: &str) -> String {
        Config::parse(text, "berth.yaml").unwrap_err().to_string()
    }

    #[test]
    fn pods_are_preempted_as_it_is_set() {
        let rules = |text: &str| Config::parse(text, "f").unwrap().0.scheduling.preemption.rules();
        assert_eq!(rules(""), Some(Rules { other_schedulers: true, preemptable_first: true }));
        assert_eq!(rules("scheduling: {preemption: {enabled: false}}"), None);
        let set = rules("scheduling: {preemption: {otherSchedulers: false, preemptableFirst: false}}");
        assert_eq!(set, Some(Rules { other_schedulers: false, preemptable_first: false }));
        assert_eq!(
            error("scheduling:\n  preemption:\n    enable: false\n"),
            "berth.yaml:3: scheduling.preemption.enable: unknown key; the nearest known one is `enabled`"
        );
    }

    #[test]
    fn a_policy_that_is_not_set_is_least_waste() {
        let node = |text: &str| {
            let config = Config::parse(text, "f").unwrap().0;
            let hami = config.dialects.hami.settings();
            (config.scheduling.pods.policy, hami.node_policy, hami.card_policies[0])
        };
        assert_eq!(node(""), (PodsPolicy::LeastWaste, NodePolicy::LeastWaste, CardPolicy::LeastWaste));
        let set = "scheduling: {pods: {policy: balanced}}\n\
            dialects: {hami: {nodeSchedulerPolicy: binpack, gpuSchedulerPolicy: spread}}";
        assert_eq!(node(set), (PodsPolicy::Balanced, NodePolicy::Binpack, CardPolicy::Spread));
        assert_eq!(
            error("scheduling:\n  pods:\n    policy: balance\n"),
            "berth.yaml:3: scheduling.pods.policy: must be `least-waste` or `balanced`, not the text `balance`"
        );
    }

    #[test]
    fn room_is_kept_where_it_is_set() {
        let rooms = |text: &str| Config::parse(text, "f").unwrap().0.scheduling.pods.rooms();
        let terms = |after, length| {
            let [after, length] = [after, length].map(SignedDuration::from_mins);
            Some(RoomTerms { after, length })
        };
        assert_eq!(rooms(""), None);
        assert_eq!(rooms("scheduling: {pods: {keepRoomAfter: 0s, keepRoomFor: 2h}}"), None);
        assert_eq!(rooms("scheduling: {pods: {keepRoomAfter: 30m}}"), terms(30, 60));
        assert_eq!(rooms("scheduling: {pods: {keepRoomAfter: 10m, keepRoomFor: 2h}}"), terms(10, 120));
        assert_eq!(
            error("scheduling:\n  pods:\n    keepRoomAfter: soon\n"),
            "berth.yaml:3: scheduling.pods.keepRoomAfter: must be a duration such as `5m` or `0s`, not the text `soon`"
        );
        assert_eq!(
            error("scheduling:\n  pods:\n    keepRoomFor: 0s\n"),
            "berth.yaml:3: scheduling.pods.keepRoomFor: must be a positive duration such as `5m` or `1m30s`, not the text `0s`"
        );
    }

    #[test]
    fn claims_are_served_unless_they_are_off() {
        let served = |text: &str| Config::parse(text, "f").unwrap().0.scheduling.claims.served();
        assert_eq!(served(""), DeviceClaims::Served);
        assert_eq!(served("scheduling: {claims: {enabled: false}}"), DeviceClaims::Off);
    }

    #[test]
    fn a_plugins_score_has_the_weight_that_is_set() {
        let config = Config::parse("scheduling: {weights: {NodeAffinity: 7, Devices: 0}}", "f").unwrap().0;
        let weights = serde_json::to_value(&config).unwrap()["scheduling"]["weights"].take();
        let expected = serde_json::json!({
            "TaintToleration": 3, "NodeAffinity": 7, "PodTopologySpread": 2, "InterPodAffinity": 2,
            "NodeResourcesFit": 0, "LeastWaste": 1, "NodeResourcesBalancedAllocation": 1, "ImageLocality": 0, "tdm": 10,
            "DynamicResources": 2, "Devices": 0,
        });
        assert_eq!(weights, expected);
        assert_eq!(
            error("scheduling:\n  weights:\n    NodeAfinity: 2\n"),
            "berth.yaml:3: scheduling.weights.NodeAfinity: unknown key; the nearest known one is `NodeAffinity`"
        );
        assert_eq!(
            error("scheduling: {weights: {Devices: 101}}\n"),
            "berth.yaml:1: scheduling.weights.Devices: must be a whole number from 0 to 100, not `101`"
        );
    }

    #[test]
    fn the_release_that_is_followed_is_that_of_the_api_server_unless_it_is_set() {
        let volumes = |text: &str, minor: u32| {
            let config = Config::parse(text, "f").unwrap().0.beside(Some(KubeScheduler::of_minor(minor)));
            let weighs = config.scheduling.score_weights().counts(Plugin::VolumeBinding);
            (config.scheduling.followed().word().to_owned(), weighs)
        };
        let scored = |release: &str, weighs| (release.to_owned(), weighs);
        assert_eq!(volumes("", 36), scored("v1.36", false));
        assert_eq!(volumes("scheduling: {kubeScheduler: auto}", 37), scored("v1.37", true));
        assert_eq!(volumes("scheduling: {weights: {VolumeBinding: 0}}", 37), scored("v1.37", false));
        assert_eq!(volumes("scheduling: {kubeScheduler: v1.36}", 37), scored("v1.36", false));
        assert_eq!(volumes("scheduling: {kubeScheduler: v1.37}", 34), scored("v1.37", true));
        let unknown = Config::default();
        assert_eq!(serde_json::to_value(&unknown).unwrap()["scheduling"]["kubeScheduler"], "auto");
        assert!(!unknown.scheduling.score_weights().counts(Plugin::VolumeBinding));
        assert_eq!(
            error("scheduling: {kubeScheduler: v1.35}\n"),
            "berth.yaml:1: scheduling.kubeScheduler: must be `auto` or `v1.36` or `v1.37`, not the text `v1.35`"
        );
    }
}
