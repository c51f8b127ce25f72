//go:build !servers

package main

import (
	"context"
	"encoding/json"
	"io"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/dynamic-resource-allocation/cel"
)

// Selectors are CEL expressions about one device.
type Selectors struct {
	Driver      string                                                  `json:"driver"`
	Attributes  map[resourcev1.QualifiedName]resourcev1.DeviceAttribute `json:"attributes"`
	Expressions []string                                                `json:"expressions"`
}

// A SelectorValue is what kube-scheduler makes of an expression.
type SelectorValue struct {
	// Refused is why the API server would not store it.
	Refused string `json:"refused,omitempty"`
	// Matches is whether it is true of the device.
	Matches bool `json:"matches"`
	// Failed is why it has no value for the device.
	Failed string `json:"failed,omitempty"`
	// Cost is what the evaluation may cost by the API server's estimate.
	Cost uint64 `json:"cost"`
}

// runSelectors reads one Selectors and writes a list with a SelectorValue for each expression.
func runSelectors(_ []string, input io.Reader, output io.Writer) error {
	var asked Selectors
	if err := json.NewDecoder(input).Decode(&asked); err != nil {
		return err
	}
	device := cel.Device{Driver: asked.Driver, Attributes: asked.Attributes}
	compiler := cel.GetCompiler(cel.Features{EnableConsumableCapacity: true, EnableListTypeAttributes: true})
	values := make([]SelectorValue, 0, len(asked.Expressions))
	for _, expression := range asked.Expressions {
		compiled := compiler.CompileCELExpression(expression, cel.Options{})
		if compiled.Error != nil {
			values = append(values, SelectorValue{Refused: compiled.Error.Detail})
			continue
		}
		value := SelectorValue{Cost: compiled.MaxCost}
		matches, _, err := compiled.DeviceMatches(context.Background(), device)
		if value.Matches = matches; err != nil {
			value.Failed = err.Error()
		}
		values = append(values, value)
	}
	return json.NewEncoder(output).Encode(values)
}
