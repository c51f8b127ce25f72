//go:build !servers

package main

import (
	"context"
	"fmt"
	"sort"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/labels"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/defaultpreemption"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/feature"
	"k8s.io/kubernetes/pkg/scheduler/framework/preemption"
)

// A PreemptionVerdict says what the preemption plugin makes of a pod that fits nowhere.
type PreemptionVerdict struct {
	// Eligible: the pod may preempt others.
	Eligible bool `json:"eligible"`
	// Candidates are all nodes where preemption helps, by name.
	Candidates []CandidateVerdict `json:"candidates"`
}

// A CandidateVerdict says which pods would go from a node.
type CandidateVerdict struct {
	Node       string   `json:"node"`
	Victims    []string `json:"victims"`
	Violations int64    `json:"violations"`
	// Best: the plugin may choose the node. Several may be as good.
	Best bool `json:"best"`
}

// rounds is how often two candidates are compared to find out whether they are as good: the plugin takes one of two equal ones at
// random.
const rounds = 24

// preempt runs the plugin on every node that may be helped, without a limit to their number.
func preempt(ctx context.Context, plugins framework.Framework, state fwk.CycleState, pod *corev1.Pod, statuses *framework.NodeToStatus) (*PreemptionVerdict, error) {
	args := &config.DefaultPreemptionArgs{MinCandidateNodesPercentage: 100, MinCandidateNodesAbsolute: 1}
	gates := feature.NewSchedulerFeaturesFromGates(utilfeature.DefaultFeatureGate)
	plugin, err := defaultpreemption.New(ctx, args, plugins, gates)
	if err != nil {
		return nil, err
	}
	if eligible, _ := plugin.PodEligibleToPreemptOthers(ctx, pod, statuses.Get(pod.Status.NominatedNodeName)); !eligible {
		return &PreemptionVerdict{}, nil
	}
	potential, err := statuses.NodesForStatusCode(plugins.SnapshotSharedLister().NodeInfos(), fwk.Unschedulable)
	if err != nil {
		return nil, err
	}
	verdict := &PreemptionVerdict{Eligible: true}
	if len(potential) == 0 {
		return verdict, nil
	}
	budgets, err := allBudgets(plugins)
	if err != nil {
		return nil, err
	}
	candidates, _, err := plugin.Evaluator.DryRunPreemption(ctx, state, pod, potential, budgets, 0, int32(len(potential)+1))
	if err != nil && len(candidates) == 0 {
		// Every victim was put back: the node failed for another reason than its pods.
		return verdict, nil
	}
	best := plugin.Evaluator.SelectCandidate(ctx, candidates)
	for _, candidate := range candidates {
		verdict.Candidates = append(verdict.Candidates, verdictOf(ctx, plugin.Evaluator, candidate, best))
	}
	sort.Slice(verdict.Candidates, func(one, other int) bool {
		return verdict.Candidates[one].Node < verdict.Candidates[other].Node
	})
	return verdict, nil
}

func allBudgets(plugins framework.Framework) ([]*policyv1.PodDisruptionBudget, error) {
	return plugins.SharedInformerFactory().Policy().V1().PodDisruptionBudgets().Lister().List(labels.Everything())
}

func verdictOf(ctx context.Context, evaluator *preemption.Evaluator, candidate, best preemption.Candidate) CandidateVerdict {
	verdict := CandidateVerdict{
		Node:       candidate.Name(),
		Violations: candidate.Victims().NumPDBViolations,
		Best:       candidate.Name() == best.Name(),
	}
	for _, victim := range candidate.Victims().Pods {
		verdict.Victims = append(verdict.Victims, fmt.Sprintf("%s/%s", victim.Namespace, victim.Name))
	}
	for round := 0; round < rounds && !verdict.Best; round++ {
		chosen := evaluator.SelectCandidate(ctx, []preemption.Candidate{candidate, best})
		verdict.Best = chosen.Name() == candidate.Name()
	}
	return verdict
}
