package main

import (
	"context"
	"fmt"
	"sort"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	v1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/apis/v1alpha1"
	"sigs.k8s.io/karpenter/pkg/controllers/nodeclaim/lifecycle"
	"sigs.k8s.io/karpenter/pkg/controllers/provisioning/scheduling"
)

// Answer is what Karpenter makes of a scenario.
type Answer struct {
	// Pending are the pods for which Karpenter looks for a node.
	Pending []string `json:"pending"`
	// Overlays says of each NodeOverlay whether Karpenter applies it.
	Overlays map[string]bool `json:"overlays,omitempty"`
	// Unregistered names, for each claim with a node, a requested resource that the node does not advertise:
	// Karpenter does not call such a node initialized.
	Unregistered map[string]string `json:"unregistered,omitempty"`
	Placement
	// Removed is the answer for each node in Scenario.Remove.
	Removed map[string]Removal `json:"removed,omitempty"`
}

// Placement is where Karpenter sees pods go.
type Placement struct {
	// New are the nodes that Karpenter would launch.
	New []Launch `json:"new"`
	// Existing has the pods that Karpenter expects on nodes that are there.
	Existing map[string][]string `json:"existing,omitempty"`
	// Errors has the pods that it finds no node for.
	Errors map[string]string `json:"errors,omitempty"`
}

// Launch is one node that Karpenter would launch.
type Launch struct {
	Pool          string              `json:"pool"`
	InstanceTypes []string            `json:"instanceTypes"`
	Pods          []string            `json:"pods"`
	Requests      corev1.ResourceList `json:"requests"`
}

// Removal is what Karpenter answers to the removal of a node.
type Removal struct {
	// Refused says why it is no candidate; then nothing else is set.
	Refused string `json:"refused,omitempty"`
	// Placement has the node's pods elsewhere.
	*Placement
}

func (w *world) answer(ctx context.Context, remove []string) (*Answer, error) {
	pending, err := w.provisioner.GetPendingPods(ctx)
	if err != nil {
		return nil, fmt.Errorf("pending pods: %w", err)
	}
	answer := &Answer{Pending: keys(pending)}
	if answer.Overlays, err = w.overlays(ctx); err != nil {
		return nil, err
	}
	if answer.Unregistered, err = w.unregistered(ctx); err != nil {
		return nil, err
	}
	if answer.Removed, err = w.removals(ctx, remove); err != nil {
		return nil, err
	}
	results, err := w.provisioner.Schedule(ctx)
	if err != nil {
		return nil, fmt.Errorf("schedule: %w", err)
	}
	answer.Placement = placement(results)
	return answer, nil
}

func placement(results scheduling.Results) Placement {
	answer := Placement{New: []Launch{}, Existing: map[string][]string{}, Errors: map[string]string{}}
	for _, claim := range results.NewNodeClaims {
		launch := Launch{Pool: claim.NodePoolName, Pods: keys(claim.Pods), Requests: claim.Spec.Resources.Requests}
		for _, instance := range claim.InstanceTypeOptions {
			launch.InstanceTypes = append(launch.InstanceTypes, instance.Name)
		}
		sort.Strings(launch.InstanceTypes)
		answer.New = append(answer.New, launch)
	}
	for _, node := range results.ExistingNodes {
		if len(node.Pods) > 0 {
			answer.Existing[node.Name()] = keys(node.Pods)
		}
	}
	for pod, err := range results.PodErrors {
		answer.Errors[client.ObjectKeyFromObject(pod).String()] = err.Error()
	}
	return answer
}

func (w *world) overlays(ctx context.Context) (map[string]bool, error) {
	var list v1alpha1.NodeOverlayList
	if err := w.client.List(ctx, &list); err != nil {
		return nil, fmt.Errorf("NodeOverlays: %w", err)
	}
	applied := map[string]bool{}
	for i := range list.Items {
		applied[list.Items[i].Name] = list.Items[i].StatusConditions().Root().IsTrue()
	}
	return applied, nil
}

func (w *world) unregistered(ctx context.Context) (map[string]string, error) {
	var claims v1.NodeClaimList
	if err := w.client.List(ctx, &claims); err != nil {
		return nil, fmt.Errorf("NodeClaims: %w", err)
	}
	missing := map[string]string{}
	for i := range claims.Items {
		var node corev1.Node
		key := client.ObjectKey{Name: claims.Items[i].Status.NodeName}
		if err := w.client.Get(ctx, key, &node); err != nil {
			return nil, fmt.Errorf("node of NodeClaim %s: %w", claims.Items[i].Name, err)
		}
		if name, ok := lifecycle.RequestedResourcesRegistered(&node, &claims.Items[i]); !ok {
			missing[claims.Items[i].Name] = string(name)
		}
	}
	return missing, nil
}
