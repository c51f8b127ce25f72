//go:build !servers

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"runtime"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	ktesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/scheduler"
	internalcache "k8s.io/kubernetes/pkg/scheduler/backend/cache"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// A Timing says how long kube-scheduler took to decide the pods that waited, in the order of the input.
type Timing struct {
	// Seconds is how long each scheduling cycle took.
	Seconds []float64 `json:"seconds"`
	// Nodes is where each pod went.
	Nodes []string `json:"nodes"`
	// Processors is how many threads ran Go code at the same time.
	Processors int `json:"processors"`
}

// runDecide places every pod that waits, one after the other, as kube-scheduler with its defaults does, and writes one Timing.
func runDecide(args []string, input io.Reader, output io.Writer) error {
	flags := flag.NewFlagSet("decide", flag.ExitOnError)
	if err := flags.Parse(args); err != nil {
		return err
	}
	klog.LogToStderr(true)
	var cluster Cluster
	if err := json.NewDecoder(bufio.NewReaderSize(input, 1<<20)).Decode(&cluster); err != nil {
		return err
	}
	stored, invalid, err := store(cluster.Items)
	if err != nil {
		return err
	}
	if len(invalid) > 0 {
		return fmt.Errorf("%d objects are invalid: %s", len(invalid), invalid[0])
	}
	timing, err := decideAll(stored)
	if err != nil {
		return err
	}
	return json.NewEncoder(output).Encode(timing)
}

func decideAll(objects []apiruntime.Object) (*Timing, error) {
	ctx, cancel := context.WithCancel(klog.NewContext(context.Background(), klog.Background()))
	defer cancel()
	client := updatingClient(len(objects))
	factory, err := filledFactory(client, objects)
	if err != nil {
		return nil, err
	}
	recorder := func(string) events.EventRecorderLogger { return events.NewFakeRecorder(0) }
	kubeScheduler, err := scheduler.New(ctx, client, factory, nil, recorder)
	if err != nil {
		return nil, err
	}
	defer kubeScheduler.SchedulingQueue.Close()
	timing := &Timing{Processors: runtime.GOMAXPROCS(0)}
	for _, object := range objects {
		pod, isPod := object.(*corev1.Pod)
		if !isPod || pod.Spec.NodeName != "" {
			continue
		}
		plugins, known := kubeScheduler.Profiles[pod.Spec.SchedulerName]
		if !known {
			return nil, fmt.Errorf("pod %s: there is no profile %s", pod.Name, pod.Spec.SchedulerName)
		}
		node, took, err := decideOne(ctx, kubeScheduler, plugins, pod)
		if err != nil {
			return nil, fmt.Errorf("pod %s: %w", pod.Name, err)
		}
		timing.Seconds = append(timing.Seconds, took.Seconds())
		timing.Nodes = append(timing.Nodes, node)
	}
	return timing, errors.Join(kubeScheduler.Profiles.Close())
}

// decideOne runs a scheduling cycle of a pod: the snapshot is brought up to date, PreFilter, Filter, PreScore and Score choose a node, the
// pod is assumed there, and Reserve and Permit are asked. That is timed. What comes before a Binding follows and is not: then the claims'
// devices are written.
func decideOne(ctx context.Context, kubeScheduler *scheduler.Scheduler, plugins framework.Framework, pod *corev1.Pod) (string, time.Duration, error) {
	podInfo, err := framework.NewPodInfo(pod)
	if err != nil {
		return "", 0, err
	}
	queued := &framework.QueuedPodInfo{PodInfo: podInfo}
	state := framework.NewCycleState()
	snapshot, ours := plugins.SnapshotSharedLister().(*internalcache.Snapshot)
	if !ours {
		return "", 0, fmt.Errorf("the snapshot is a %T", plugins.SnapshotSharedLister())
	}
	start := time.Now()
	if err := kubeScheduler.Cache.UpdateSnapshot(klog.FromContext(ctx), snapshot); err != nil {
		return "", 0, err
	}
	chosen, err := kubeScheduler.SchedulePod(ctx, plugins, state, queued)
	if err != nil {
		return "", 0, err
	}
	node := chosen.SuggestedHost
	assumed := queued.DeepCopy().Pod
	assumed.Spec.NodeName = node
	if err := kubeScheduler.Cache.AssumePod(klog.FromContext(ctx), assumed); err != nil {
		return "", 0, err
	}
	if status := plugins.RunReservePluginsReserve(ctx, state, assumed, node); !status.IsSuccess() {
		return "", 0, status.AsError()
	}
	if _, status := plugins.RunPermitPlugins(ctx, state, assumed, node); !status.IsSuccess() {
		return "", 0, status.AsError()
	}
	took := time.Since(start)
	if status := plugins.RunPreBindPreFlights(ctx, state, assumed, node); !status.IsSuccess() {
		return "", 0, status.AsError()
	}
	if status := plugins.RunPreBindPlugins(ctx, state, assumed, node); !status.IsSuccess() {
		return "", 0, status.AsError()
	}
	return node, took, nil
}

// updatingClient accepts every update of a claim and gives it a new version, above those of so many objects.
func updatingClient(version int) *fake.Clientset {
	client := fake.NewClientset()
	client.PrependReactor("update", "resourceclaims", func(action ktesting.Action) (bool, apiruntime.Object, error) {
		claim := action.(ktesting.UpdateAction).GetObject().(*resourcev1.ResourceClaim).DeepCopy()
		version++
		claim.ResourceVersion = strconv.Itoa(version)
		return true, claim, nil
	})
	return client
}
