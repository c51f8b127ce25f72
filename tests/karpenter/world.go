package main

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	clientfake "sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	v1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/apis/v1alpha1"
	"sigs.k8s.io/karpenter/pkg/cloudprovider"
	"sigs.k8s.io/karpenter/pkg/cloudprovider/fake"
	"sigs.k8s.io/karpenter/pkg/cloudprovider/overlay"
	"sigs.k8s.io/karpenter/pkg/controllers/dynamicresources/deviceallocation"
	"sigs.k8s.io/karpenter/pkg/controllers/nodeoverlay"
	"sigs.k8s.io/karpenter/pkg/controllers/provisioning"
	"sigs.k8s.io/karpenter/pkg/controllers/state"
	"sigs.k8s.io/karpenter/pkg/events"
	"sigs.k8s.io/karpenter/pkg/operator/options"
	"sigs.k8s.io/karpenter/pkg/test"
)

// world is Karpenter with a cluster in memory.
type world struct {
	client      client.Client
	clock       clock.Clock
	cloud       cloudprovider.CloudProvider
	cluster     *state.Cluster
	recorder    events.Recorder
	provisioner *provisioning.Provisioner
}

// newWorld stores the objects, evaluates the NodeOverlays and tells Karpenter's state of nodes and pods.
// The context carries Karpenter's options.
func newWorld(ctx context.Context, types map[string]corev1.ResourceList, objects []client.Object) (context.Context, *world, error) {
	settings := test.Options()
	settings.FeatureGates.NodeOverlay = true
	ctx = options.ToContext(ctx, settings)
	cloud := fake.NewCloudProvider()
	for name, capacity := range types {
		cloud.InstanceTypes = append(cloud.InstanceTypes, fake.NewInstanceType(name, fake.WithResources(capacity)))
	}
	w := &world{client: stored(objects), clock: clock.RealClock{}, recorder: events.NewRecorder(&record.FakeRecorder{})}
	overlays := nodeoverlay.NewInstanceTypeStore()
	w.cloud = overlay.Decorate(cloud, w.client, overlays)
	w.cluster = state.NewCluster(w.clock, w.client, w.cloud)
	evaluator := nodeoverlay.NewController(w.clock, w.client, cloud, overlays, w.cluster)
	if _, err := evaluator.Reconcile(ctx, reconcile.Request{}); err != nil {
		return nil, nil, fmt.Errorf("NodeOverlays: %w", err)
	}
	devices := deviceallocation.NewController(w.client)
	w.provisioner = provisioning.NewProvisioner(w.client, w.recorder, w.cloud, w.cluster, w.clock, devices)
	return ctx, w, w.tell(ctx, objects)
}

// stored is a client of a store in memory, with the indices that Karpenter lists by.
func stored(objects []client.Object) client.Client {
	return clientfake.NewClientBuilder().WithScheme(scheme.Scheme).WithObjects(objects...).
		WithStatusSubresource(&v1.NodePool{}, &v1.NodeClaim{}, &v1alpha1.NodeOverlay{}).
		WithIndex(&corev1.Pod{}, "spec.nodeName", func(object client.Object) []string {
			return []string{object.(*corev1.Pod).Spec.NodeName}
		}).
		WithIndex(&storagev1.VolumeAttachment{}, "spec.nodeName", func(object client.Object) []string {
			return []string{object.(*storagev1.VolumeAttachment).Spec.NodeName}
		}).
		WithIndex(&corev1.Node{}, "spec.providerID", func(object client.Object) []string {
			return []string{object.(*corev1.Node).Spec.ProviderID}
		}).
		WithIndex(&v1.NodeClaim{}, "status.providerID", func(object client.Object) []string {
			return []string{object.(*v1.NodeClaim).Status.ProviderID}
		}).Build()
}

// tell does what Karpenter's informers do: claims first, then nodes, then the pods that are bound to them.
func (w *world) tell(ctx context.Context, objects []client.Object) error {
	for _, object := range objects {
		if claim, ok := object.(*v1.NodeClaim); ok {
			w.cluster.UpdateNodeClaim(claim)
		}
	}
	for _, object := range objects {
		if node, ok := object.(*corev1.Node); ok {
			if err := w.cluster.UpdateNode(ctx, node); err != nil {
				return fmt.Errorf("node %s: %w", node.Name, err)
			}
		}
	}
	for _, object := range objects {
		if pod, ok := object.(*corev1.Pod); ok {
			if err := w.cluster.UpdatePod(ctx, pod); err != nil {
				return fmt.Errorf("pod %s: %w", pod.Name, err)
			}
		}
	}
	return nil
}
