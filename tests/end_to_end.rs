//! From `kubectl apply` to a card: the same cases on the API server inside the process and on a real one.
//!
//! It must not look inside Berth: what is asserted is what the API server shows and what the node agents saw.
#![cfg(feature = "sandbox")]
#![allow(clippy::unwrap_used, reason = "a helper of a test fails as the test does")]

#[path = "end_to_end/admission.rs"]
mod admission;
#[path = "end_to_end/adoption.rs"]
mod adoption;
mod agents;
#[path = "end_to_end/autoscaling.rs"]
mod autoscaling;
#[path = "end_to_end/binding.rs"]
mod binding;
#[path = "end_to_end/cambricon.rs"]
mod cambricon;
#[path = "end_to_end/cards.rs"]
mod cards;
#[path = "end_to_end/claim_preemption.rs"]
mod claim_preemption;
#[path = "end_to_end/claims.rs"]
mod claims;
mod controlplane_smoke;
#[path = "end_to_end/deaths.rs"]
mod deaths;
#[path = "end_to_end/device_claims.rs"]
mod device_claims;
#[path = "end_to_end/events.rs"]
mod events;
#[path = "end_to_end/extended_resources.rs"]
mod extended_resources;
#[path = "end_to_end/extender.rs"]
mod extender;
#[path = "end_to_end/gangs.rs"]
mod gangs;
#[path = "end_to_end/gates.rs"]
mod gates;
#[path = "end_to_end/groups.rs"]
mod groups;
#[path = "end_to_end/handshakes.rs"]
mod handshakes;
#[path = "end_to_end/kept_rooms.rs"]
mod kept_rooms;
#[path = "end_to_end/koordinator.rs"]
mod koordinator;
#[path = "end_to_end/leases.rs"]
mod leases;
#[path = "end_to_end/leftovers.rs"]
mod leftovers;
#[path = "end_to_end/machines.rs"]
mod machines;
#[path = "end_to_end/mixed_nodes.rs"]
mod mixed_nodes;
#[path = "end_to_end/moves.rs"]
mod moves;
#[path = "end_to_end/neighbours.rs"]
mod neighbours;
#[path = "end_to_end/node_locks.rs"]
mod node_locks;
#[path = "end_to_end/nodes.rs"]
mod nodes;
#[path = "end_to_end/numbers.rs"]
mod numbers;
#[path = "end_to_end/plugin_locks.rs"]
mod plugin_locks;
#[path = "end_to_end/preemption.rs"]
mod preemption;
#[path = "end_to_end/quotas.rs"]
mod quotas;
#[path = "end_to_end/releases.rs"]
mod releases;
#[path = "end_to_end/reservations.rs"]
mod reservations;
#[path = "end_to_end/rivals.rs"]
mod rivals;
#[path = "end_to_end/shadow.rs"]
mod shadow;
#[path = "end_to_end/slices.rs"]
mod slices;
#[path = "end_to_end/storage.rs"]
mod storage;
#[path = "support/lib.rs"]
mod support;
#[path = "end_to_end/time_division.rs"]
mod time_division;
#[path = "end_to_end/usage.rs"]
mod usage;
#[path = "end_to_end/vendors.rs"]
mod vendors;
#[path = "end_to_end/whole_namespaces.rs"]
mod whole_namespaces;
#[path = "end_to_end/withdrawal.rs"]
mod withdrawal;
#[path = "end_to_end/world.rs"]
mod world;

/// Runs each case on both floors, but on no release of Kubernetes for which `releases` says that it does not run.
macro_rules! on_both_floors {
    ($($module:ident :: $case:ident),* $(,)?) => {
        const CASES_OF_BOTH_FLOORS: &[&str] = &[$(concat!(stringify!($module), "::", stringify!($case))),*];
        mod on_the_sandbox {
            $(#[tokio::test] async fn $case() { on_a_floor!($module::$case, super::support::floor::Floor::Sandbox); })*
        }
        mod on_a_real_api_server {
            $(#[tokio::test] async fn $case() { on_a_floor!($module::$case, super::support::floor::Floor::Real); })*
        }
    };
}

/// Runs a case on a floor.
macro_rules! on_a_floor {
    ($module:ident :: $case:ident, $floor:expr) => {
        if super::releases::runs(concat!(stringify!($module), "::", stringify!($case)), $floor) {
            super::$module::$case($floor).await;
        }
    };
}

/// Runs each case on the real floor alone.
macro_rules! on_the_real_floor {
    ($($module:ident :: $case:ident),* $(,)?) => {
        const CASES_OF_THE_REAL_FLOOR: &[&str] = &[$(concat!(stringify!($module), "::", stringify!($case))),*];
        mod on_a_real_api_server {
            $(#[tokio::test] async fn $case() {
                let name = concat!(stringify!($module), "::", stringify!($case));
                if crate::releases::runs(name, crate::support::floor::Floor::Real) {
                    crate::$module::$case().await;
                }
            })*
        }
    };
}

/// Groups of pods that kube-apiserver has in itself.
mod with_groups_of_kubernetes {
    on_the_real_floor! {
        gangs::a_gang_of_kubernetes_own_api,
        gangs::a_group_of_kubernetes_own_api_that_is_preempted_as_a_whole,
        gangs::a_group_of_groups_of_kubernetes_own_api,
        gangs::the_pods_of_a_group_of_kubernetes_own_api_share_its_claim,
        gangs::the_pods_of_a_group_of_kubernetes_own_api_share_a_claim_made_from_a_template,
        gangs::groups_of_kubernetes_own_api_that_are_served_in_its_older_version_alone,
    }

    /// A filter by `on_a_real_api_server` takes it, too.
    #[test]
    fn on_a_real_api_server_all_cases_but_the_limited_ones_run_on_each_release() {
        let cases = [crate::CASES_OF_BOTH_FLOORS, CASES_OF_THE_REAL_FLOOR].concat();
        crate::releases::all_cases_but_the_limited_ones_run_on_each_release(&cases);
    }
}

/// A program that needs a real API server.
mod with_kube_scheduler {
    #[tokio::test]
    async fn pods_get_cards_and_what_does_not_fit_waits() {
        super::extender::pods_get_cards_and_what_does_not_fit_waits().await;
    }

    #[tokio::test]
    async fn what_an_extender_costs() {
        super::extender::what_an_extender_costs().await;
    }

    #[tokio::test]
    async fn no_pod_is_bound_with_what_that_has_given_before() {
        super::rivals::beside_kube_scheduler_no_pod_is_bound_with_what_that_has_given_before().await;
    }

    #[tokio::test]
    async fn the_settings_for_cluster_autoscaler_let_a_share_fit() {
        super::autoscaling::the_settings_for_cluster_autoscaler_let_a_share_fit().await;
    }
}

on_both_floors! {
    admission::a_share_of_an_opted_in_namespace_is_patched_and_placed,
    admission::contradictions_are_refused_before_a_pod_exists,
    admission::a_dry_run_is_told_the_place_and_leaves_nothing,
    admission::a_dry_run_that_fits_nowhere_is_told_why,
    admission::a_pod_that_is_let_in_is_handed_to_the_binder,
    admission::a_replica_that_does_not_lead_answers_dry_runs_too,
    admission::what_is_not_berths_is_left_alone,
    whole_namespaces::a_labelled_namespace_gives_berth_its_pods_without_a_share,
    whole_namespaces::kube_system_and_berths_own_namespace_give_away_no_pod,
    whole_namespaces::a_pod_with_a_share_is_admitted_once_beside_the_label,
    whole_namespaces::pods_without_a_share_are_created_while_berth_is_away,
    adoption::pods_of_an_adopted_scheduler_are_placed_in_every_namespace,
    adoption::a_scheduler_that_runs_keeps_its_pods_until_it_is_stopped,
    adoption::a_pod_that_the_other_scheduler_binds_after_all_counts_as_it_stands,
    moves::a_pod_is_evicted_and_its_successor_stands_where_the_plan_has_it,
    moves::no_further_pod_is_evicted_after_one_that_does_not_stand_again,
    moves::what_moves_would_win_is_told_by_metrics_and_one_event,
    autoscaling::karpenter_launches_no_node_for_a_share_by_a_clouds_own_capacity,
    autoscaling::karpenter_launches_nodes_for_shares_by_the_documented_overlay,
    autoscaling::karpenter_counts_on_a_node_of_hamis_plugin_and_does_not_remove_it,
    autoscaling::karpenter_moves_shares_as_if_a_node_were_one_card,
    koordinator::shares_fill_a_card_and_no_more,
    koordinator::whole_cards_are_given_to_one_pod_each,
    koordinator::gpus_and_nics_are_chosen_together,
    koordinator::each_pod_gets_a_virtual_function_of_its_own,
    koordinator::a_pod_that_fits_nowhere_says_why,
    koordinator::a_card_that_becomes_unhealthy_gets_no_further_pod,
    koordinator::a_device_that_can_not_be_read_costs_its_node_alone,
    koordinator::pods_of_koordinators_scheduler_count,
    koordinator::a_request_is_completed_and_placed_or_refused,
    koordinator::containers_have_gpus_of_their_own,
    koordinator::shares_of_ascend_cards_are_templates_of_the_config_map,
    koordinator::whole_cards_by_a_vendors_name_are_koordinators_where_the_setting_says_so,
    reservations::what_is_reserved_is_kept_for_its_owners,
    plugin_locks::pods_of_both_vendors_are_served_one_after_the_other,
    plugin_locks::a_lock_of_koordinators_scheduler_is_respected_until_it_is_freed,
    plugin_locks::a_vendors_lock_that_serves_nobody_is_taken_over,
    plugin_locks::a_killed_binder_leaves_no_pod_to_the_wrong_plugin_call,
    plugin_locks::a_failed_allocation_of_a_vendors_plugin_costs_its_pod_only,
    plugin_locks::a_deleted_pod_frees_its_vendors_node,
    binding::a_share_is_bound_with_its_assignment_in_one_write,
    gangs::the_pods_of_a_group_are_placed_together_or_not_at_all,
    gangs::a_pod_group_that_cannot_be_read_keeps_only_its_own_pods_waiting,
    gangs::a_group_stays_within_one_rack,
    gangs::a_gang_is_completed_by_another_binder_after_a_kill,
    gangs::a_gang_that_is_not_complete_in_time_is_rolled_back_and_placed_anew,
    binding::a_volcano_pod_goes_to_a_volcano_node,
    usage::a_leader_counts_on_where_the_last_one_stopped,
    usage::an_account_that_cannot_be_read_is_left_as_it_is_and_pods_are_placed,
    vendors::each_vendors_pods_go_to_its_nodes,
    vendors::a_share_is_cut_by_its_template,
    cards::iluvatar_counts_in_blocks_and_computes_alone_on_several,
    cards::amd_turns_percent_into_compute_units,
    cards::amd_serves_one_container_a_pod,
    cards::biren_gives_cards_whole,
    cards::biren_leaves_a_failed_pods_lock,
    cards::a_restarted_binder_goes_on_with_a_vendors_node,
    cambricon::parts_and_whole_cards_are_cut_as_the_profile_says,
    cambricon::what_the_plugin_is_not_asked_for_is_refused,
    cambricon::a_foreign_lock_is_respected_until_it_is_freed,
    cambricon::a_lock_that_serves_nobody_is_taken_over,
    cambricon::a_restarted_binder_waits_for_the_lock_of_the_one_that_died,
    cambricon::a_failed_allocation_costs_its_pod_only,
    cambricon::a_decision_of_hamis_scheduler_holds_its_cards_and_is_taken_over,
    binding::pods_of_one_node_follow_each_other,
    binding::a_pod_that_does_not_fit_says_why_and_goes_when_room_comes,
    binding::taints_cordons_and_affinity_are_honoured,
    binding::a_request_that_cannot_be_read_is_named,
    binding::a_node_with_an_unreadable_registration_is_out_until_mended,
    binding::a_lock_without_an_owner_is_taken_over,
    binding::a_fresh_lock_of_a_holder_that_cannot_exist_is_taken_over,
    binding::a_failing_agent_costs_its_pod_only,
    binding::a_failed_volcano_pod_is_not_served_in_place_of_the_next,
    binding::a_restarted_binder_goes_on,
    device_claims::a_card_is_given_with_the_pod_and_free_after_it,
    device_claims::shares_of_one_card_are_counted_together,
    device_claims::pods_that_share_a_claim_go_to_one_node,
    device_claims::a_card_that_is_published_later_wakes_the_pod,
    device_claims::devices_that_a_rule_taints_are_given_once_the_rule_is_gone,
    device_claims::what_devices_take_of_their_node_is_stated_and_counted,
    device_claims::a_binder_that_is_killed_at_the_status_of_a_pod_states_what_its_claim_takes,
    device_claims::a_claim_moves_with_its_pod,
    device_claims::a_binder_that_is_killed_between_any_two_steps_gives_one_card,
    rivals::a_pod_that_is_not_bound_gives_way_to_another_scheduler,
    rivals::a_device_that_another_scheduler_gives_again_is_found,
    rivals::shares_that_another_scheduler_gives_beyond_a_card_are_found,
    rivals::devices_that_take_more_of_a_counter_than_there_is_are_found,
    mixed_nodes::a_card_is_given_through_one_api_at_a_time,
    mixed_nodes::shares_of_claims_and_of_pods_fill_a_card_together,
    mixed_nodes::a_binder_that_is_killed_between_any_two_steps_gives_a_card_once,
    extended_resources::a_resource_is_served_by_a_claim_that_the_pod_owns,
    extended_resources::where_a_device_plugin_provides_the_resource_no_claim_is_made,
    extended_resources::a_binder_that_is_killed_between_any_two_writes_makes_one_claim,
    extended_resources::a_claim_of_another_node_is_deleted_and_made_anew,
    extended_resources::a_claim_that_another_scheduler_has_made_is_taken_up,
    extended_resources::a_claim_that_is_not_needed_after_all_is_deleted,
    extended_resources::a_pod_whose_status_names_a_claim_for_good_goes_where_it_is_served,
    extended_resources::a_pod_that_is_deleted_in_between_leaves_no_claim,
    extended_resources::a_share_is_a_claim_where_a_driver_publishes_the_cards,
    extended_resources::the_same_share_is_an_annotation_where_a_device_plugin_serves_it,
    claims::a_volume_is_made_on_the_pods_node_before_the_pod_is_bound,
    claims::a_pod_goes_to_the_node_of_the_volume_that_its_claim_is_given,
    claims::a_provisioner_that_gives_up_sends_the_pod_to_another_node,
    claims::two_pods_that_share_a_claim_go_to_one_node,
    claims::a_volume_that_lives_as_long_as_its_pod_is_waited_for,
    claims::a_claim_is_free_again_when_its_pod_is_deleted,
    claims::a_volume_is_free_again_when_its_pod_is_deleted,
    claims::a_claim_of_one_pod_keeps_the_next_one_waiting,
    claims::a_binder_that_is_killed_between_any_two_steps_leaves_one_place,
    preemption::a_victim_goes_for_the_card_that_is_needed,
    preemption::nothing_is_deleted_in_vain,
    preemption::a_binder_that_is_killed_while_it_preempts_takes_one_victim,
    claim_preemption::a_claim_takes_the_device_of_a_claim,
    claim_preemption::all_users_of_a_claim_go_for_its_device,
    claim_preemption::a_card_changes_hands_between_a_claim_and_a_share,
    claim_preemption::a_binder_that_is_killed_while_it_preempts_for_a_claim_takes_one_victim,
    kept_rooms::a_large_pod_gets_the_room_that_small_ones_leave,
    kept_rooms::a_restarted_binder_keeps_the_same_room,
    gates::a_gated_pod_holds_nothing_and_is_placed_once_its_gate_is_removed,
    leases::a_binder_whose_lease_has_no_namespace_ends_with_the_command_to_run,
    neighbours::a_pod_of_another_namespace_keeps_shares_away_until_it_is_gone,
    neighbours::pods_are_spread_over_zones_and_the_next_waits_for_the_emptier_one,
    neighbours::pods_of_a_service_or_a_controller_are_spread_by_default,
    neighbours::a_pod_waits_until_the_port_of_a_node_is_free,
    neighbours::a_binder_that_is_killed_between_any_two_steps_keeps_pods_apart,
    quotas::a_pod_beyond_the_quota_waits_and_goes_when_another_ends,
    quotas::what_exceeds_the_quota_is_denied_before_a_pod_exists,
    quotas::what_is_used_of_a_quota_stands_in_it_and_a_denial_names_who_holds_it,
    quotas::a_pod_and_its_group_must_not_contradict_each_other,
    leftovers::a_decision_of_another_scheduler_holds_its_cards,
    leftovers::the_pods_of_a_scheduler_that_is_gone_are_taken_over,
    leftovers::more_than_a_card_has_is_told_and_nothing_more_is_given_of_it,
    leftovers::a_card_that_nobody_can_tell_counts_on_each_card_of_its_node,
    numbers::blocks_of_memory_share_the_lowest_card_that_has_room,
    numbers::whole_cards_are_given_once,
    numbers::what_the_plugin_would_fail_is_refused,
    nodes::every_release_of_a_plugin_is_served,
    nodes::linked_cards_go_together,
    events::who_waits_for_a_node_is_told_for_whom,
    events::a_pod_that_is_bound_at_first_sight_gets_one_event_and_no_condition_of_berths,
    node_locks::a_lock_is_left_out_until_another_scheduler_appears_and_then_taken_for_the_pod_in_flight,
    node_locks::a_lock_is_taken_beside_a_pod_that_has_not_started,
    events::a_plugin_that_never_answers_is_told_and_gets_no_further_pod_until_it_does,
    handshakes::a_plugin_that_goes_on_reporting_goes_on_serving,
    handshakes::a_plugin_that_died_is_given_nothing_until_it_reports,
    handshakes::a_question_and_a_leftover_stop_nothing,
    extender::a_busy_node_is_told_and_the_pod_can_go_elsewhere,
    extender::a_follower_judges_nodes_and_names_the_leader_for_bind,
    shadow::a_shadow_tells_of_the_schedulers_decisions_and_only_reads,
    time_division::pods_leave_a_closed_zone_within_the_budget_of_their_job_across_a_kill,
    time_division::a_disruption_budget_keeps_a_pod_until_it_allows_its_eviction,
    time_division::pods_of_another_user_spend_no_budget_of_a_job,
    time_division::a_pod_that_takes_back_its_mark_leaves_a_closed_zone,
    time_division::a_zone_that_opens_takes_the_pod_that_waits_for_it,
    slices::a_card_is_cut_slice_by_slice,
    slices::a_card_is_filled_to_its_last_slice,
    slices::a_card_is_cut_by_one_geometry_at_a_time,
    slices::a_slice_of_an_old_template_keeps_its_card_and_counts_as_what_it_is,
    withdrawal::a_volcano_pod_deleted_before_its_allocation_is_withdrawn,
    withdrawal::a_volcano_pod_that_failed_before_its_allocation_is_withdrawn,
    withdrawal::a_failed_volcano_pod_that_another_scheduler_left_is_withdrawn,
    withdrawal::a_hygon_pod_deleted_before_its_allocation_is_withdrawn,
    withdrawal::a_hygon_pod_that_failed_before_its_allocation_is_withdrawn,
    withdrawal::a_failed_hygon_pod_that_another_scheduler_left_is_withdrawn,
}
