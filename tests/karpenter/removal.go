package main

import (
	"context"
	"fmt"

	v1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/cloudprovider"
	"sigs.k8s.io/karpenter/pkg/controllers/disruption"
	"sigs.k8s.io/karpenter/pkg/controllers/state"
	"sigs.k8s.io/karpenter/pkg/utils/pdb"
)

// removals asks for each node, alone, what would become of its pods, as consolidation does.
func (w *world) removals(ctx context.Context, names []string) (map[string]Removal, error) {
	answers := map[string]Removal{}
	for _, name := range names {
		node := w.node(name)
		if node == nil {
			return nil, fmt.Errorf("no node %s", name)
		}
		removal, err := w.removal(ctx, node)
		if err != nil {
			return nil, fmt.Errorf("removal of %s: %w", name, err)
		}
		answers[name] = removal
	}
	return answers, nil
}

func (w *world) node(name string) *state.StateNode {
	for _, node := range w.cluster.DeepCopyNodes() {
		if node.Name() == name {
			return node
		}
	}
	return nil
}

func (w *world) removal(ctx context.Context, node *state.StateNode) (Removal, error) {
	pools, types, err := w.pools(ctx)
	if err != nil {
		return Removal{}, err
	}
	budgets, err := pdb.NewLimits(ctx, w.client)
	if err != nil {
		return Removal{}, err
	}
	queue := disruption.NewQueue(w.client, w.recorder, w.cluster, w.clock, w.provisioner)
	candidate, err := disruption.NewCandidate(ctx, w.client, w.recorder, w.clock, node, budgets, pools, types,
		queue, disruption.GracefulDisruptionClass)
	if err != nil {
		return Removal{Refused: err.Error()}, nil
	}
	results, err := disruption.SimulateScheduling(ctx, w.client, w.cluster, w.provisioner, w.clock, w.recorder, nil, candidate)
	if err != nil {
		return Removal{}, err
	}
	elsewhere := placement(results)
	return Removal{Placement: &elsewhere}, nil
}

// pools are the NodePools and the instance types of each, overlays applied, by name.
func (w *world) pools(ctx context.Context) (map[string]*v1.NodePool, map[string]map[string]*cloudprovider.InstanceType, error) {
	var list v1.NodePoolList
	if err := w.client.List(ctx, &list); err != nil {
		return nil, nil, err
	}
	pools := map[string]*v1.NodePool{}
	types := map[string]map[string]*cloudprovider.InstanceType{}
	for i := range list.Items {
		pool := &list.Items[i]
		offered, err := w.cloud.GetInstanceTypes(ctx, pool)
		if err != nil {
			return nil, nil, err
		}
		pools[pool.Name] = pool
		types[pool.Name] = map[string]*cloudprovider.InstanceType{}
		for _, instance := range offered {
			types[pool.Name][instance.Name] = instance
		}
	}
	return pools, types, nil
}
