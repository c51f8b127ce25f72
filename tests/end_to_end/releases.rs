//! Which cases of the real floor need a certain release of Kubernetes, and why.
//!
//! A case that stands here says on standard error that it does not run on the release under test. All others run on every release, but where `BERTH_CASES`
//! names the modules whose cases are to run.

use crate::support::{build::Release, floor::Floor, server::say};

/// On which releases a case runs.
#[derive(Clone, Copy, Debug)]
enum On {
    /// This one and later ones.
    Since(Release),
    /// This one and earlier ones.
    Until(Release),
}

/// Cases that run on some releases alone.
struct Limited {
    on: On,
    /// Why they do not run on others.
    why: &'static str,
    cases: &'static [&'static str],
}

/// Each such case.
const LIMITED: [Limited; 6] = [
    Limited {
        on: On::Since(Release::Usual),
        why: "PodGroups of Kubernetes as Berth reads them are served since 1.36",
        cases: &[
            "gangs::a_gang_of_kubernetes_own_api",
            "gangs::a_group_of_kubernetes_own_api_that_is_preempted_as_a_whole",
            "gangs::a_group_of_groups_of_kubernetes_own_api",
            "gangs::the_pods_of_a_group_of_kubernetes_own_api_share_its_claim",
            "gangs::the_pods_of_a_group_of_kubernetes_own_api_share_a_claim_made_from_a_template",
        ],
    },
    Limited {
        on: On::Since(Release::V1_37),
        why: "1.37 is the first release with two versions of PodGroup",
        cases: &["gangs::groups_of_kubernetes_own_api_that_are_served_in_its_older_version_alone"],
    },
    Limited {
        on: On::Since(Release::Usual),
        why: "DeviceTaintRules are served as v1beta2 since 1.36",
        cases: &["device_claims::devices_that_a_rule_taints_are_given_once_the_rule_is_gone"],
    },
    Limited {
        on: On::Since(Release::Usual),
        why: "counters that devices share stand in a slice of their own since 1.35",
        cases: &["rivals::devices_that_take_more_of_a_counter_than_there_is_are_found"],
    },
    Limited {
        on: On::Since(Release::V1_37),
        why: "the API server drops that status before 1.37, and so there is no such write",
        cases: &["device_claims::a_binder_that_is_killed_at_the_status_of_a_pod_states_what_its_claim_takes"],
    },
    Limited {
        on: On::Until(Release::Usual),
        why: "the API server keeps what the pod's status says of a claim since 1.37",
        cases: &["extended_resources::a_claim_that_is_not_needed_after_all_is_deleted"],
    },
];

/// Why a case does not run on this release; `None`: it runs.
fn reason(case: &str, release: Release) -> Option<&'static str> {
    let limited = LIMITED.iter().find(|limited| limited.cases.contains(&case))?;
    let runs = match limited.on {
        On::Since(first) => release >= first,
        On::Until(last) => release <= last,
    };
    (!runs).then_some(limited.why)
}

/// The modules whose cases run on the real floor, of a list with commas; `None`: all.
#[expect(clippy::disallowed_methods, reason = "which cases run is asked from outside")]
fn chosen() -> Option<Vec<String>> {
    let named = std::env::var("BERTH_CASES").ok().filter(|named| !named.is_empty())?;
    Some(named.split(',').map(str::to_owned).collect())
}

fn is_chosen(case: &str, chosen: Option<&[String]>) -> bool {
    chosen.is_none_or(|chosen| chosen.iter().any(|module| case.split("::").next() == Some(module)))
}

/// Whether the case runs on this floor with the release under test. If the release is the reason that it does not, a line on standard error says so.
pub(crate) fn runs(case: &str, floor: Floor) -> bool {
    if let Some(why) = reason(case, release_on(floor)) {
        say(&format!("does not run on this release of Kubernetes: {case}: {why}"));
        return false;
    }
    floor == Floor::Sandbox || is_chosen(case, chosen().as_deref())
}

/// The release of a floor; the sandbox stores objects as the usual one does, and keeps what 1.37 has in addition.
fn release_on(floor: Floor) -> Release {
    match floor {
        Floor::Sandbox => Release::Usual,
        Floor::Real => Release::of_tests().unwrap(),
    }
}

/// Every entry is about a case, and no release goes without more cases than these.
pub(crate) fn all_cases_but_the_limited_ones_run_on_each_release(cases: &[&str]) {
    for case in LIMITED.iter().flat_map(|limited| limited.cases) {
        assert!(cases.contains(case), "there is no case {case}");
    }
    let (release, chosen) = (Release::of_tests().unwrap(), chosen());
    for module in chosen.iter().flatten() {
        let is_there = cases.iter().any(|case| is_chosen(case, Some(std::slice::from_ref(module))));
        assert!(is_there, "BERTH_CASES: there is no module {module}");
    }
    for (of, left_out) in [(Release::V1_34, 9), (Release::Usual, 2), (Release::V1_37, 1)] {
        let without = cases.iter().filter(|case| reason(case, of).is_some()).count();
        assert_eq!(without, left_out, "{of:?}");
        if of == release {
            let runs = |case: &&&str| reason(case, of).is_none() && is_chosen(case, chosen.as_deref());
            let running = cases.iter().filter(runs).count();
            say(&format!("{running} of {} cases run on Kubernetes 1.{}", cases.len(), of.minor()));
        }
    }
}
