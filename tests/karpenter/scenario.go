package main

import (
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	v1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	_ "sigs.k8s.io/karpenter/pkg/apis/v1alpha1" // registers NodeOverlay
)

// Scenario is a cluster, and what is asked about it.
type Scenario struct {
	// InstanceTypes are what the cloud offers to every NodePool, each with its capacity.
	InstanceTypes map[string]corev1.ResourceList `json:"instanceTypes"`
	// Objects are NodePools, NodeOverlays, NodeClaims, Nodes and Pods.
	Objects []json.RawMessage `json:"objects"`
	// Remove names nodes; Karpenter is asked about each alone.
	Remove []string `json:"remove,omitempty"`
}

// objects decodes what the scenario holds. A NodePool is made ready, as its controllers would have made it.
func (s Scenario) objects() ([]client.Object, error) {
	decoder := scheme.Codecs.UniversalDeserializer()
	var objects []client.Object
	for i, text := range s.Objects {
		decoded, _, err := decoder.Decode(text, nil, nil)
		if err != nil {
			return nil, fmt.Errorf("object %d: %w", i, err)
		}
		object, ok := decoded.(client.Object)
		if !ok {
			return nil, fmt.Errorf("object %d: %T is not an object with a name", i, decoded)
		}
		if pool, ok := object.(*v1.NodePool); ok {
			pool.StatusConditions().SetTrue(v1.ConditionTypeValidationSucceeded)
			pool.StatusConditions().SetTrue(v1.ConditionTypeNodeClassReady)
		}
		objects = append(objects, object)
	}
	return objects, nil
}
