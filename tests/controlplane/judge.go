//go:build !servers

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sort"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/latest"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/validation"
	internalcache "k8s.io/kubernetes/pkg/scheduler/backend/cache"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// client serves no request: kube-scheduler reads from its informers, and its plugins write nothing before a pod is bound.
// To make it, all of Kubernetes' types are parsed, which an API server of a test has no use for.
var client = sync.OnceValue(func() *fake.Clientset { return fake.NewClientset() })

// profilesWith returns kube-scheduler's default profile, with this strategy as NodeResourcesFit's unless it is empty.
func profilesWith(strategy json.RawMessage) ([]config.KubeSchedulerProfile, error) {
	defaults, err := latest.Default()
	if err != nil || len(strategy) == 0 {
		return defaults.Profiles, err
	}
	for _, profile := range defaults.Profiles {
		for _, plugin := range profile.PluginConfig {
			fit, isFit := plugin.Args.(*config.NodeResourcesFitArgs)
			if !isFit {
				continue
			}
			fit.ScoringStrategy = &config.ScoringStrategy{}
			if err := json.Unmarshal(strategy, fit.ScoringStrategy); err != nil {
				return nil, fmt.Errorf("scoringStrategy: %w", err)
			}
			if err := validation.ValidateNodeResourcesFitArgs(nil, fit); err != nil {
				return nil, fmt.Errorf("scoringStrategy: %w", err)
			}
			return defaults.Profiles, nil
		}
	}
	return nil, errors.New("the default profile has no NodeResourcesFitArgs")
}

// judge builds a kube-scheduler with these profiles on the objects, and has its plugins judge every pod that waits, one
// after the other. None of them is placed.
func judge(objects []runtime.Object, profiles []config.KubeSchedulerProfile) ([]PodVerdict, error) {
	ctx, cancel := context.WithCancel(klog.NewContext(context.Background(), klog.Background()))
	defer cancel()
	factory, err := filledFactory(client(), objects)
	if err != nil {
		return nil, err
	}
	recorder := func(string) events.EventRecorderLogger { return events.NewFakeRecorder(0) }
	kubeScheduler, err := scheduler.New(ctx, client(), factory, nil, recorder, scheduler.WithParallelism(1), scheduler.WithProfiles(profiles...))
	if err != nil {
		return nil, err
	}
	defer kubeScheduler.SchedulingQueue.Close()
	var verdicts []PodVerdict
	for _, object := range objects {
		pod, isPod := object.(*corev1.Pod)
		if !isPod || pod.Spec.NodeName != "" || pod.DeletionTimestamp != nil {
			continue
		}
		plugins, known := kubeScheduler.Profiles[pod.Spec.SchedulerName]
		if !known {
			return nil, fmt.Errorf("pod %s: there is no profile %s", pod.Name, pod.Spec.SchedulerName)
		}
		nodes, err := nodesOf(ctx, kubeScheduler, plugins)
		if err != nil {
			return nil, err
		}
		verdict, err := judgePod(ctx, plugins, pod, nodes)
		if err != nil {
			return nil, fmt.Errorf("pod %s: %w", pod.Name, err)
		}
		verdicts = append(verdicts, verdict)
	}
	return verdicts, errors.Join(kubeScheduler.Profiles.Close())
}

// nodesOf brings the snapshot that the plugins see up to date, as each scheduling cycle does, and returns its nodes by name.
func nodesOf(ctx context.Context, kubeScheduler *scheduler.Scheduler, plugins framework.Framework) ([]fwk.NodeInfo, error) {
	snapshot, ours := plugins.SnapshotSharedLister().(*internalcache.Snapshot)
	if !ours {
		return nil, fmt.Errorf("the snapshot is a %T", plugins.SnapshotSharedLister())
	}
	if err := kubeScheduler.Cache.UpdateSnapshot(klog.FromContext(ctx), snapshot); err != nil {
		return nil, err
	}
	listed, err := snapshot.NodeInfos().List()
	if err != nil {
		return nil, err
	}
	nodes := append([]fwk.NodeInfo{}, listed...)
	sort.Slice(nodes, func(one, other int) bool { return nodes[one].Node().Name < nodes[other].Node().Name })
	return nodes, nil
}

// judgePod goes the way of a scheduling cycle: PreEnqueue, PreFilter, Filter with nominated pods, PreScore, Score. Unlike
// a cycle it looks at every node.
func judgePod(ctx context.Context, plugins framework.Framework, pod *corev1.Pod, nodes []fwk.NodeInfo) (PodVerdict, error) {
	verdict := PodVerdict{Namespace: pod.Namespace, Name: pod.Name, Nodes: make([]NodeVerdict, 0, len(nodes))}
	all := func(status *fwk.Status) PodVerdict {
		verdict.Nodes = verdict.Nodes[:0]
		for _, node := range nodes {
			verdict.Nodes = append(verdict.Nodes, failed(node, status))
		}
		return verdict
	}
	for _, plugin := range plugins.PreEnqueuePlugins() {
		if status := plugin.PreEnqueue(ctx, pod); !status.IsSuccess() {
			return all(status.WithPlugin(plugin.Name())), nil
		}
	}
	state := framework.NewCycleState()
	subset, status, _ := plugins.RunPreFilterPlugins(ctx, state, pod)
	if !status.IsSuccess() {
		verdict = all(status)
		if status.IsRejected() {
			statuses := framework.NewNodeToStatus(map[string]*fwk.Status{}, status)
			preempted, err := preempt(ctx, plugins, state, pod, statuses)
			verdict.Preemption = preempted
			return verdict, err
		}
		return verdict, nil
	}
	statuses := framework.NewDefaultNodeToStatus()
	var feasible []fwk.NodeInfo
	for _, node := range nodes {
		if !subset.AllNodes() && !subset.NodeNames.Has(node.Node().Name) {
			status := fwk.NewStatus(fwk.UnschedulableAndUnresolvable, "not among the nodes of PreFilter")
			verdict.Nodes = append(verdict.Nodes, failed(node, status.WithPlugin("PreFilter")))
			continue
		}
		status := plugins.RunFilterPluginsWithNominatedPods(ctx, state, pod, node)
		if status.Code() == fwk.Error {
			return all(status), nil
		}
		if status.IsSuccess() {
			verdict.Nodes = append(verdict.Nodes, NodeVerdict{Name: node.Node().Name, Fits: true})
			feasible = append(feasible, node)
			continue
		}
		statuses.Set(node.Node().Name, status)
		verdict.Nodes = append(verdict.Nodes, failure(ctx, plugins, state, pod, node, status))
	}
	if len(feasible) == 0 {
		preempted, err := preempt(ctx, plugins, state, pod, statuses)
		verdict.Preemption = preempted
		return verdict, err
	}
	scores, err := scoresOf(ctx, plugins, state, pod, feasible)
	verdict.Scores = scores
	return verdict, err
}

// failure names the plugin that refuses the node without nominated pods, if there is one: what is refused for them alone
// is marked.
func failure(ctx context.Context, plugins framework.Framework, state fwk.CycleState, pod *corev1.Pod, node fwk.NodeInfo, status *fwk.Status) NodeVerdict {
	if alone := plugins.RunFilterPlugins(ctx, state, pod, node); !alone.IsSuccess() {
		return failed(node, alone)
	}
	verdict := failed(node, status)
	verdict.Nominated = true
	return verdict
}

func failed(node fwk.NodeInfo, status *fwk.Status) NodeVerdict {
	return NodeVerdict{
		Name:    node.Node().Name,
		Plugin:  status.Plugin(),
		Reasons: status.Reasons(),
		Failed:  status.Code() == fwk.Error,
	}
}

// scoresOf has the feasible nodes scored. kube-scheduler's own numbers are multiplied by the plugins' weights already.
func scoresOf(ctx context.Context, plugins framework.Framework, state fwk.CycleState, pod *corev1.Pod, feasible []fwk.NodeInfo) (map[string]NodeScore, error) {
	if len(feasible) == 0 {
		return nil, nil
	}
	if status := plugins.RunPreScorePlugins(ctx, state, pod, feasible); !status.IsSuccess() {
		return nil, status.AsError()
	}
	weighted, status := plugins.RunScorePlugins(ctx, state, pod, feasible)
	if !status.IsSuccess() {
		return nil, status.AsError()
	}
	weights := map[string]int64{}
	for _, plugin := range plugins.ListPlugins().Score.Enabled {
		weights[plugin.Name] = int64(plugin.Weight)
	}
	scores := map[string]NodeScore{}
	for _, node := range weighted {
		score := NodeScore{Total: node.TotalScore, Plugins: map[string]int64{}}
		for _, plugin := range node.Scores {
			score.Plugins[plugin.Name] = plugin.Score / max(weights[plugin.Name], 1)
		}
		scores[node.Name] = score
	}
	return scores, nil
}
