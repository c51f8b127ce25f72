//go:build !servers

package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"runtime"
	"strings"

	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/features"
)

// A Cluster is what one line of the input holds: a `v1` List of Kubernetes objects.
type Cluster struct {
	Items []json.RawMessage `json:"items"`
	// ScoringStrategy is that of NodeResourcesFitArgs; absent: kube-scheduler's default.
	ScoringStrategy json.RawMessage `json:"scoringStrategy,omitempty"`
}

// An Answer is what one line of the output holds, in the order of the input.
type Answer struct {
	// Pods has every pod that waits for a node, in the order of the input.
	Pods []PodVerdict `json:"pods"`
	// Objects are those of the input as the API server would have stored them, with its defaults.
	Objects []json.RawMessage `json:"objects"`
	// Invalid names what the API server would have refused; then there are no pods.
	Invalid []string `json:"invalid,omitempty"`
	// Error says why nothing was computed.
	Error string `json:"error,omitempty"`
}

// A PodVerdict says where one pod could go if no other pod that waits were there.
type PodVerdict struct {
	Namespace string        `json:"namespace"`
	Name      string        `json:"name"`
	Nodes     []NodeVerdict `json:"nodes"`
	// Scores holds the nodes that fit; Plugins before their weights.
	Scores map[string]NodeScore `json:"scores,omitempty"`
	// Preemption is absent where a node fits, or where the pod is held back before any node is looked at.
	Preemption *PreemptionVerdict `json:"preemption,omitempty"`
}

// A NodeVerdict says whether one node passes every Filter plugin, and which one it fails first.
type NodeVerdict struct {
	Name    string   `json:"name"`
	Fits    bool     `json:"fits"`
	Plugin  string   `json:"plugin,omitempty"`
	Reasons []string `json:"reasons,omitempty"`
	// Nominated: the node fits but for pods that are nominated to run on it.
	Nominated bool `json:"nominated,omitempty"`
	// Failed: the plugin did not decide but failed with an error.
	Failed bool `json:"failed,omitempty"`
}

// A NodeScore is what the Score plugins make of one node.
type NodeScore struct {
	Total   int64            `json:"total"`
	Plugins map[string]int64 `json:"plugins"`
}

// runFeasible answers each line of the input with one line. The plugins are those of kube-scheduler's default profile.
func runFeasible(args []string, input io.Reader, output io.Writer) error {
	flags := flag.NewFlagSet("feasible", flag.ExitOnError)
	devices := flags.String("devices", "nvidia.com/,volcano.sh/,berth.dev/",
		"prefixes of resources that the plugins do not see, separated by commas")
	gates := flags.String("gates", "", "feature gates of kube-scheduler, as its flag --feature-gates has them")
	workers := flags.Int("workers", runtime.GOMAXPROCS(0), "clusters that are computed at the same time")
	if err := flags.Parse(args); err != nil {
		return err
	}
	klog.LogToStderr(true)
	// Off by default until 1.37: the score of VolumeBinding.
	if err := utilfeature.DefaultMutableFeatureGate.Set(string(features.StorageCapacityScoring) + "=true"); err != nil {
		return err
	}
	if err := utilfeature.DefaultMutableFeatureGate.Set(*gates); err != nil {
		return err
	}
	prefixes := strings.Split(*devices, ",")
	lines := bufio.NewReaderSize(input, 1<<20)
	waiting := make(chan chan Answer, max(*workers, 1))
	written := make(chan error, 1)
	go func() { written <- writeAnswers(waiting, output) }()
	readErr := eachLine(lines, func(line []byte) {
		answer := make(chan Answer, 1)
		waiting <- answer
		go func() { answer <- answerTo(line, prefixes) }()
	})
	close(waiting)
	return errors.Join(readErr, <-written)
}

func eachLine(lines *bufio.Reader, take func([]byte)) error {
	for {
		line, err := lines.ReadBytes('\n')
		if len(line) > 1 {
			take(line)
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// writeAnswers writes each answer as soon as it and all before it are known. After an error it goes on
// taking answers, so that the reader does not block.
func writeAnswers(waiting <-chan chan Answer, output io.Writer) error {
	encoder := json.NewEncoder(output)
	var failed error
	for answer := range waiting {
		if err := encoder.Encode(<-answer); failed == nil {
			failed = err
		}
	}
	return failed
}

func answerTo(line []byte, devices []string) Answer {
	var cluster Cluster
	if err := json.Unmarshal(line, &cluster); err != nil {
		return Answer{Error: err.Error()}
	}
	stored, invalid, err := store(cluster.Items)
	if err != nil {
		return Answer{Error: err.Error()}
	}
	if len(invalid) > 0 {
		return Answer{Invalid: invalid}
	}
	objects, err := encode(stored)
	if err != nil {
		return Answer{Error: err.Error()}
	}
	profiles, err := profilesWith(cluster.ScoringStrategy)
	if err != nil {
		return Answer{Error: err.Error()}
	}
	pods, err := judge(visible(stored, devices), profiles)
	if err != nil {
		return Answer{Error: fmt.Sprint("kube-scheduler: ", err)}
	}
	return Answer{Pods: pods, Objects: objects}
}
