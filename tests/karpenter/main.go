// Command karpenter asks Karpenter's provisioner and its disruption controller about a cluster that is
// given as text: for which pods it would launch which nodes, and what would become of the pods of a node
// that it removes. Nothing is launched, no server runs.
//
//	karpenter < scenario.json
//
// All decisions are made by Karpenter's own packages. This program stores the objects, names the instance
// types that a cloud would offer, and prints what Karpenter answered.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"os"

	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func main() {
	klog.SetOutput(io.Discard)
	if err := run(context.Background(), os.Stdin, os.Stdout); err != nil {
		log.SetFlags(0)
		log.Fatalln("karpenter:", err)
	}
}

func run(ctx context.Context, in io.Reader, out io.Writer) error {
	var scenario Scenario
	decoder := json.NewDecoder(in)
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&scenario); err != nil {
		return fmt.Errorf("scenario: %w", err)
	}
	objects, err := scenario.objects()
	if err != nil {
		return err
	}
	ctx, world, err := newWorld(ctx, scenario.InstanceTypes, objects)
	if err != nil {
		return err
	}
	answer, err := world.answer(ctx, scenario.Remove)
	if err != nil {
		return err
	}
	return json.NewEncoder(out).Encode(answer)
}

// keys names objects as namespace/name.
func keys[T client.Object](objects []T) []string {
	names := make([]string, 0, len(objects))
	for _, object := range objects {
		names = append(names, client.ObjectKeyFromObject(object).String())
	}
	return names
}
