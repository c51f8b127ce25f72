//go:build !servers

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	resourcev1 "k8s.io/api/resource/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	"k8s.io/kubernetes/pkg/registry/apps/replicaset"
	"k8s.io/kubernetes/pkg/registry/apps/statefulset"
	"k8s.io/kubernetes/pkg/registry/core/namespace"
	"k8s.io/kubernetes/pkg/registry/core/node"
	"k8s.io/kubernetes/pkg/registry/core/persistentvolume"
	"k8s.io/kubernetes/pkg/registry/core/persistentvolumeclaim"
	"k8s.io/kubernetes/pkg/registry/core/pod"
	"k8s.io/kubernetes/pkg/registry/policy/poddisruptionbudget"
	"k8s.io/kubernetes/pkg/registry/scheduling/priorityclass"
	"k8s.io/kubernetes/pkg/registry/storage/csidriver"
	"k8s.io/kubernetes/pkg/registry/storage/csinode"
	"k8s.io/kubernetes/pkg/registry/storage/csistoragecapacity"
	"k8s.io/kubernetes/pkg/registry/storage/storageclass"
	"k8s.io/kubernetes/pkg/registry/storage/volumeattachment"
)

// strategies are how the API server creates each kind that is read, by the Go type of its stable version.
// A kind without a strategy is stored with its defaults alone.
var strategies = map[reflect.Type]rest.RESTCreateStrategy{
	reflect.TypeFor[*corev1.Pod]():                   pod.Strategy,
	reflect.TypeFor[*corev1.Node]():                  node.Strategy,
	reflect.TypeFor[*corev1.Namespace]():             namespace.Strategy,
	reflect.TypeFor[*corev1.PersistentVolume]():      persistentvolume.Strategy,
	reflect.TypeFor[*corev1.PersistentVolumeClaim](): persistentvolumeclaim.Strategy,
	reflect.TypeFor[*corev1.Service]():               nil,
	reflect.TypeFor[*corev1.ReplicationController](): nil,
	reflect.TypeFor[*appsv1.ReplicaSet]():            replicaset.Strategy,
	reflect.TypeFor[*appsv1.StatefulSet]():           statefulset.Strategy,
	reflect.TypeFor[*policyv1.PodDisruptionBudget](): poddisruptionbudget.Strategy,
	reflect.TypeFor[*schedulingv1.PriorityClass]():   priorityclass.Strategy,
	reflect.TypeFor[*storagev1.StorageClass]():       storageclass.Strategy,
	reflect.TypeFor[*storagev1.CSINode]():            csinode.Strategy,
	reflect.TypeFor[*storagev1.CSIDriver]():          csidriver.Strategy,
	reflect.TypeFor[*storagev1.CSIStorageCapacity](): csistoragecapacity.Strategy,
	reflect.TypeFor[*storagev1.VolumeAttachment]():   volumeattachment.Strategy,
	reflect.TypeFor[*resourcev1.ResourceClaim]():     nil,
	reflect.TypeFor[*resourcev1.ResourceSlice]():     nil,
	reflect.TypeFor[*resourcev1.DeviceClass]():       nil,
}

// DeviceTaintRules, in the versions that this release has.
func init() {
	for _, version := range []string{"v1", "v1beta2"} {
		kind := schema.GroupVersionKind{Group: resourcev1.GroupName, Version: version, Kind: "DeviceTaintRule"}
		if rule, err := legacyscheme.Scheme.New(kind); err == nil {
			strategies[reflect.TypeOf(rule)] = nil
		}
	}
}

// An unknown field is an error: an object with one tests something else than it says.
var decoder = serializer.NewCodecFactory(legacyscheme.Scheme, serializer.EnableStrict).UniversalDeserializer()

// store makes of each object what the API server would have stored, and names what it would have refused.
func store(items []json.RawMessage) (stored []runtime.Object, invalid []string, err error) {
	known := map[string]bool{}
	for at, item := range items {
		object, _, err := decoder.Decode(item, nil, nil)
		if err != nil {
			return nil, nil, fmt.Errorf("items[%d]: %w", at, err)
		}
		object, refusals, err := create(object)
		if err != nil {
			return nil, nil, fmt.Errorf("items[%d]: %w", at, err)
		}
		for _, refusal := range refusals {
			invalid = append(invalid, fmt.Sprintf("items[%d]: %v", at, refusal))
		}
		key, err := keyOf(object)
		if err != nil {
			return nil, nil, fmt.Errorf("items[%d]: %w", at, err)
		}
		if known[key] {
			invalid = append(invalid, fmt.Sprintf("items[%d]: %s exists", at, key))
		}
		known[key] = true
		stored = append(stored, object)
	}
	return stored, invalid, nil
}

// keyOf is what one object in the API server alone can have.
func keyOf(object runtime.Object) (string, error) {
	accessor, err := meta.Accessor(object)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%T %s/%s", object, accessor.GetNamespace(), accessor.GetName()), nil
}

// create applies defaults, then preparation and validation of the kind's strategy. The status is kept as it was given.
func create(given runtime.Object) (runtime.Object, field.ErrorList, error) {
	strategy, known := strategies[reflect.TypeOf(given)]
	if !known {
		return nil, nil, fmt.Errorf("%T is not a kind that is read", given)
	}
	legacyscheme.Scheme.Default(given)
	if strategy == nil {
		return given, nil, nil
	}
	version := given.GetObjectKind().GroupVersionKind()
	internal, err := legacyscheme.Scheme.ConvertToVersion(given, runtime.InternalGroupVersioner)
	if err != nil {
		return nil, nil, err
	}
	accessor, err := meta.Accessor(internal)
	if err != nil {
		return nil, nil, err
	}
	ctx := creating(version, accessor.GetNamespace())
	strategy.PrepareForCreate(ctx, internal)
	refusals := strategy.Validate(ctx, internal)
	strategy.Canonicalize(internal)
	created, err := legacyscheme.Scheme.ConvertToVersion(internal, version.GroupVersion())
	if err != nil {
		return nil, nil, err
	}
	keepStatus(given, created)
	return created, refusals, nil
}

// creating is the context of a request that creates an object, as far as strategies read it.
func creating(version schema.GroupVersionKind, namespace string) context.Context {
	resource, _ := meta.UnsafeGuessKindToResource(version)
	info := &request.RequestInfo{
		IsResourceRequest: true,
		Verb:              "create",
		APIGroup:          version.Group,
		APIVersion:        version.Version,
		Resource:          resource.Resource,
		Namespace:         namespace,
	}
	return request.WithRequestInfo(request.WithNamespace(context.Background(), namespace), info)
}

// keepStatus takes the status as given: a strategy begins every object anew, and these are in the middle of their lives.
func keepStatus(given, created runtime.Object) {
	switch created := created.(type) {
	case *corev1.Pod:
		if given := given.(*corev1.Pod); given.Status.Phase != "" {
			created.Status = given.Status
		}
	case *corev1.PersistentVolume:
		created.Status = given.(*corev1.PersistentVolume).Status
	case *corev1.PersistentVolumeClaim:
		created.Status = given.(*corev1.PersistentVolumeClaim).Status
	case *storagev1.VolumeAttachment:
		created.Status = given.(*storagev1.VolumeAttachment).Status
	}
}

func encode(objects []runtime.Object) ([]json.RawMessage, error) {
	encoded := make([]json.RawMessage, 0, len(objects))
	for _, object := range objects {
		text, err := json.Marshal(object)
		if err != nil {
			return nil, err
		}
		encoded = append(encoded, text)
	}
	return encoded, nil
}

// visible takes the devices' resources out of the pods, and leaves out the pods that kube-scheduler's own watch leaves out.
func visible(stored []runtime.Object, devices []string) []runtime.Object {
	seen := make([]runtime.Object, 0, len(stored))
	for _, object := range stored {
		pod, isPod := object.(*corev1.Pod)
		if isPod && (pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed) {
			continue
		}
		if isPod {
			withoutDevices(pod, devices)
		}
		seen = append(seen, object)
	}
	return seen
}

func withoutDevices(pod *corev1.Pod, devices []string) {
	strip := func(resources corev1.ResourceList) {
		for name := range resources {
			for _, prefix := range devices {
				if prefix != "" && strings.HasPrefix(string(name), prefix) {
					delete(resources, name)
				}
			}
		}
	}
	for _, containers := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for at := range containers {
			strip(containers[at].Resources.Requests)
			strip(containers[at].Resources.Limits)
		}
	}
	statuses := [][]corev1.ContainerStatus{pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses}
	for _, statuses := range statuses {
		for at := range statuses {
			strip(statuses[at].AllocatedResources)
			if resources := statuses[at].Resources; resources != nil {
				strip(resources.Requests)
				strip(resources.Limits)
			}
		}
	}
}
