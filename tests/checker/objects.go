// What pods and nodes say of cards, as HAMi and Volcano write it. It must not judge.

package main

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
)

// Entry is one line of a history.
type Entry struct {
	// Version is the resourceVersion that the event made.
	Version uint64 `json:"version"`
	// Type is LISTED, ADDED, MODIFIED, DELETED, GAP (events between the last and this version were not seen) or END.
	Type   string  `json:"type"`
	Kind   string  `json:"kind,omitempty"`
	Object *Object `json:"object,omitempty"`
}

// Object is a pod or a node, as far as it matters here.
type Object struct {
	Metadata Metadata `json:"metadata"`
	Spec     Spec     `json:"spec"`
	Status   Status   `json:"status"`
}

type Metadata struct {
	Name              string            `json:"name"`
	Namespace         string            `json:"namespace,omitempty"`
	UID               string            `json:"uid"`
	ResourceVersion   string            `json:"resourceVersion"`
	DeletionTimestamp string            `json:"deletionTimestamp,omitempty"`
	Labels            map[string]string `json:"labels,omitempty"`
	Annotations       map[string]string `json:"annotations,omitempty"`
}

type Spec struct {
	NodeName       string      `json:"nodeName,omitempty"`
	InitContainers []Container `json:"initContainers,omitempty"`
	Containers     []Container `json:"containers,omitempty"`
}

type Container struct {
	Name      string `json:"name"`
	Resources struct {
		Limits map[string]string `json:"limits,omitempty"`
	} `json:"resources"`
}

type Status struct {
	Phase      string      `json:"phase,omitempty"`
	Reason     string      `json:"reason,omitempty"`
	Message    string      `json:"message,omitempty"`
	Conditions []Condition `json:"conditions,omitempty"`
}

type Condition struct {
	Type    string `json:"type"`
	Status  string `json:"status"`
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
}

func (object *Object) version() (uint64, error) {
	return strconv.ParseUint(object.Metadata.ResourceVersion, 10, 64)
}

func (object *Object) key() string {
	return object.Metadata.Namespace + "/" + object.Metadata.Name
}

// family is how one project writes down cards, requests and assignments.
type family struct {
	name                             string
	register, record, node, phase    string
	count, memory, percentage, cores string
	cards                            func(string) ([]Card, error)
}

// HAMi v2.10 pkg/util/types.go, pkg/device/nvidia/device.go; Volcano pkg/scheduler/api/devices/config/vgpu.go.
var families = []family{
	{
		name: "HAMi", register: "hami.io/node-nvidia-register", record: "hami.io/vgpu-devices-allocated",
		node: "hami.io/vgpu-node", phase: "hami.io/bind-phase",
		count: "nvidia.com/gpu", memory: "nvidia.com/gpumem", percentage: "nvidia.com/gpumem-percentage",
		cores: "nvidia.com/gpucores", cards: hamiCards,
	},
	{
		name: "Volcano", register: "volcano.sh/node-vgpu-register", record: "volcano.sh/vgpu-ids-new",
		node: "volcano.sh/vgpu-node", phase: "volcano.sh/bind-phase",
		count: "volcano.sh/vgpu-number", memory: "volcano.sh/vgpu-memory",
		percentage: "volcano.sh/vgpu-memory-percentage", cores: "volcano.sh/vgpu-cores", cards: volcanoCards,
	},
}

// Card is what a node's device plugin says that a card can bear.
type Card struct {
	ID                   string
	Slots, Memory, Cores int64
	Healthy              bool
}

// Share is what a pod's container was given of a card.
type Share struct {
	Card          string
	Memory, Cores int64
}

// hamiCards reads the JSON list of HAMi from v2.8 on, where zero values are left out, and the comma fields before it.
func hamiCards(text string) ([]Card, error) {
	if !strings.HasPrefix(strings.TrimSpace(text), "[") {
		return fieldCards(text, 3, 6)
	}
	var entries []struct {
		ID      string `json:"id"`
		Count   int64  `json:"count"`
		Memory  int64  `json:"devmem"`
		Cores   int64  `json:"devcore"`
		Healthy bool   `json:"health"`
	}
	if err := json.Unmarshal([]byte(text), &entries); err != nil {
		return nil, err
	}
	var cards []Card
	for _, entry := range entries {
		cards = append(cards, Card{entry.ID, entry.Count, entry.Memory, entry.Cores, entry.Healthy})
	}
	return cards, nil
}

func volcanoCards(text string) ([]Card, error) {
	return fieldCards(text, -1, 4)
}

// fieldCards reads `uuid,slots,memory,…:` with cores and health at these places; without a place for cores a card has 100.
func fieldCards(text string, cores, health int) ([]Card, error) {
	var cards []Card
	for _, piece := range strings.Split(text, ":") {
		if !strings.Contains(piece, ",") {
			continue
		}
		fields := strings.Split(piece, ",")
		if len(fields) <= health {
			return nil, fmt.Errorf("card %q has %d fields", piece, len(fields))
		}
		card := Card{ID: fields[0], Cores: 100, Healthy: fields[health] == "true"}
		numbers := map[int]*int64{1: &card.Slots, 2: &card.Memory}
		if cores >= 0 {
			numbers[cores] = &card.Cores
		}
		for place, number := range numbers {
			value, err := strconv.ParseInt(fields[place], 10, 64)
			if err != nil {
				return nil, fmt.Errorf("card %q: %w", piece, err)
			}
			*number = value
		}
		cards = append(cards, card)
	}
	return cards, nil
}

// shares reads an assignment: containers parted by `;`, in each the shares `uuid,type,MiB,percent` ended by `:`.
func shares(text string) ([][]Share, error) {
	var containers [][]Share
	for _, segment := range strings.Split(strings.TrimSuffix(text, ";"), ";") {
		var container []Share
		for _, piece := range strings.Split(segment, ":") {
			if piece == "" {
				continue
			}
			fields := strings.Split(piece, ",")
			if len(fields) != 4 {
				return nil, fmt.Errorf("share %q has %d fields", piece, len(fields))
			}
			memory, err := strconv.ParseInt(fields[2], 10, 64)
			if err != nil {
				return nil, fmt.Errorf("share %q: %w", piece, err)
			}
			cores, err := strconv.ParseInt(fields[3], 10, 64)
			if err != nil {
				return nil, fmt.Errorf("share %q: %w", piece, err)
			}
			container = append(container, Share{fields[0], memory, cores})
		}
		containers = append(containers, container)
	}
	return containers, nil
}

// Ask is what a container asks of one family's cards; -1 stands for what it does not say.
type Ask struct {
	Count, Memory, Percentage, Cores int64
}

// asks is what each container asks of the family's cards; a count of 0 is a container that asks nothing.
func (family *family) asks(object *Object) ([]Ask, error) {
	var asks []Ask
	for _, container := range append(append([]Container{}, object.Spec.InitContainers...), object.Spec.Containers...) {
		limits := container.Resources.Limits
		number := func(name string, absent int64) (int64, error) {
			text, ok := limits[name]
			if !ok {
				return absent, nil
			}
			return quantity(text)
		}
		var ask Ask
		var err error
		for _, field := range []struct {
			into   *int64
			name   string
			absent int64
		}{{&ask.Count, family.count, 0}, {&ask.Memory, family.memory, -1}, {&ask.Percentage, family.percentage, -1}, {&ask.Cores, family.cores, -1}} {
			if *field.into, err = number(field.name, field.absent); err != nil {
				return nil, fmt.Errorf("%s: %w", field.name, err)
			}
		}
		asks = append(asks, ask)
	}
	return asks, nil
}

// quantity reads whole numbers as the API server writes them: `4000`, `4k`, `4M`.
func quantity(text string) (int64, error) {
	factor := int64(1)
	for suffix, by := range map[string]int64{"k": 1000, "M": 1000000, "Ki": 1024, "Mi": 1024 * 1024} {
		if strings.HasSuffix(text, suffix) {
			text, factor = strings.TrimSuffix(text, suffix), by
			break
		}
	}
	number, err := strconv.ParseInt(text, 10, 64)
	return number * factor, err
}
