// Judging: the cluster replayed by resourceVersion. It must not know when or by whom an event was recorded.

package main

import (
	"fmt"
	"regexp"
	"slices"
	"sort"
)

// A pod with this label is deleted by its user; of any other the end is a loss.
const deletedByUser = "deleted-by-user"

// Report is what a history comes to.
type Report struct {
	// Events is how many were replayed, up to LastVersion; after each, every card of the cluster stood within its capacity
	// unless a violation says otherwise.
	Events      int    `json:"events"`
	LastVersion uint64 `json:"lastVersion"`
	Nodes       int    `json:"nodes"`
	Cards       int    `json:"cards"`
	// FullestCard is the largest part of a card's memory, in percent, that was given away at once.
	FullestCard int64 `json:"fullestCard"`
	Pods        int   `json:"pods"`
	// What became of them.
	Served        int            `json:"served"`
	DeletedByUser int            `json:"deletedByUser"`
	Unschedulable int            `json:"unschedulable"`
	FailedOnNode  map[string]int `json:"failedOnNode"`
	// Violations is what must never be, at any resourceVersion.
	Violations []string `json:"violations"`
	// Lost is what must not be at the end: pods without a place or a true reason, or that hang half way.
	Lost []string `json:"lost"`
}

// state is the cluster at one resourceVersion.
type state struct {
	report *Report
	nodes  map[string]*node
	pods   map[string]*pod
	said   map[string]bool
}

type node struct {
	// cards by family and id.
	cards map[string]map[string]Card
	// pods that are bound there, by uid.
	pods map[string]*pod
}

type pod struct {
	object *Object
	family *family
	asks   []Ask
	shares [][]Share
}

func (pod *pod) holds() bool {
	phase := pod.object.Status.Phase
	return pod.object.Spec.NodeName != "" && phase != "Succeeded" && phase != "Failed"
}

// judge replays a history in the order of its resourceVersions.
func judge(history []Entry) *Report {
	history = slices.Clone(history)
	sort.SliceStable(history, func(one, other int) bool { return history[one].Version < history[other].Version })
	state := &state{
		report: &Report{FailedOnNode: map[string]int{}, Violations: []string{}, Lost: []string{}},
		nodes:  map[string]*node{}, pods: map[string]*pod{}, said: map[string]bool{},
	}
	ended := false
	for _, entry := range history {
		state.report.LastVersion = entry.Version
		switch {
		case entry.Type == "GAP":
			state.violate("gap", "%d: events of kind %s before this version were not seen", entry.Version, entry.Kind)
		case entry.Type == "END":
			ended = true
		case entry.Object == nil:
			state.violate("entry", "%d: an entry of type %s without an object", entry.Version, entry.Type)
		case entry.Kind == "Node":
			state.report.Events++
			state.seeNode(entry)
		case entry.Kind == "Pod":
			state.report.Events++
			state.seePod(entry)
		}
	}
	if !ended {
		state.violate("end", "the history has no end")
	}
	state.finish()
	return state.report
}

// violate notes a violation once by its key.
func (state *state) violate(key, format string, values ...any) {
	if !state.said[key] {
		state.said[key] = true
		state.report.Violations = append(state.report.Violations, fmt.Sprintf(format, values...))
	}
}

func (state *state) node(name string) *node {
	if state.nodes[name] == nil {
		state.nodes[name] = &node{cards: map[string]map[string]Card{}, pods: map[string]*pod{}}
	}
	return state.nodes[name]
}

func (state *state) seeNode(entry Entry) {
	name := entry.Object.Metadata.Name
	node := state.node(name)
	node.cards = map[string]map[string]Card{}
	if entry.Type == "DELETED" {
		return
	}
	for _, family := range families {
		text, ok := entry.Object.Metadata.Annotations[family.register]
		if !ok {
			continue
		}
		cards, err := family.cards(text)
		if err != nil {
			state.violate("register "+name, "%d: node %s: %s: %v", entry.Version, name, family.register, err)
		}
		node.cards[family.name] = map[string]Card{}
		for _, card := range cards {
			node.cards[family.name][card.ID] = card
		}
	}
	state.weigh(entry.Version, name)
}

func (state *state) seePod(entry Entry) {
	object := entry.Object
	uid := object.Metadata.UID
	before := state.pods[uid]
	if before == nil {
		state.report.Pods++
		before = &pod{object: &Object{}}
	}
	if was := before.object.Spec.NodeName; was != "" {
		delete(state.node(was).pods, uid)
		if was != object.Spec.NodeName {
			state.violate("moved "+uid, "%d: pod %s was bound to %s and is bound to %q", entry.Version, object.key(), was, object.Spec.NodeName)
		}
	}
	if entry.Type == "DELETED" {
		delete(state.pods, uid)
		if object.Metadata.Labels[deletedByUser] == "true" {
			state.report.DeletedByUser++
		} else {
			state.violate("vanished "+uid, "%d: pod %s is gone, and its user did not delete it", entry.Version, object.key())
		}
		return
	}
	now := state.readPod(entry)
	state.pods[uid] = now
	name := object.Spec.NodeName
	if name == "" {
		return
	}
	if before.object.Spec.NodeName == "" {
		state.bound(entry.Version, now)
	}
	if now.holds() {
		state.node(name).pods[uid] = now
		state.weigh(entry.Version, name)
	}
}

func (state *state) readPod(entry Entry) *pod {
	object := entry.Object
	read := &pod{object: object}
	for at := range families {
		family := &families[at]
		asks, err := family.asks(object)
		if err != nil {
			state.violate("ask "+object.Metadata.UID, "%d: pod %s: %v", entry.Version, object.key(), err)
		}
		if slices.ContainsFunc(asks, func(ask Ask) bool { return ask.Count > 0 }) {
			read.family, read.asks = family, asks
		}
		text, ok := object.Metadata.Annotations[family.record]
		if !ok {
			continue
		}
		if object.Spec.NodeName == "" {
			state.violate("early "+object.Metadata.UID, "%d: pod %s carries %s and is not bound", entry.Version, object.key(), family.record)
		}
		if read.shares, err = shares(text); err != nil {
			state.violate("record "+object.Metadata.UID, "%d: pod %s: %s: %v", entry.Version, object.key(), family.record, err)
		}
	}
	return read
}

// bound judges a pod at the moment in which it was bound: node, cards and amounts are what it asked for.
func (state *state) bound(version uint64, pod *pod) {
	object, name := pod.object, pod.object.Spec.NodeName
	wrong := func(format string, values ...any) {
		told := fmt.Sprintf(format, values...)
		state.violate("bound "+object.Metadata.UID+told, "%d: pod %s on %s %s", version, object.key(), name, told)
	}
	if pod.family == nil {
		return
	}
	if on := object.Metadata.Annotations[pod.family.node]; on != name {
		wrong("was assigned to %q", on)
	}
	if len(pod.shares) > len(pod.asks) {
		wrong("was given shares for %d containers and has %d", len(pod.shares), len(pod.asks))
		return
	}
	cards := state.node(name).cards[pod.family.name]
	for at, ask := range pod.asks {
		var given []Share
		if at < len(pod.shares) {
			given = pod.shares[at]
		}
		if int64(len(given)) != ask.Count {
			wrong("asked for %d cards in container %d and was given %d", ask.Count, at, len(given))
		}
		used := map[string]bool{}
		for _, share := range given {
			card, known := cards[share.Card]
			switch {
			case !known || !card.Healthy:
				wrong("was given card %s, which the node does not offer", share.Card)
			case used[share.Card]:
				wrong("was given card %s twice in container %d", share.Card, at)
			case share.Memory != ask.memoryOf(card):
				wrong("asked for %d MiB of card %s and was given %d", ask.memoryOf(card), share.Card, share.Memory)
			case ask.Cores >= 0 && share.Cores != ask.Cores:
				wrong("asked for %d percent of card %s and was given %d", ask.Cores, share.Card, share.Cores)
			}
			used[share.Card] = true
		}
	}
}

// memoryOf is what an ask means on this card, in MiB; one that says nothing means all of it.
func (ask Ask) memoryOf(card Card) int64 {
	switch {
	case ask.Memory >= 0:
		return ask.Memory
	case ask.Percentage >= 0:
		return card.Memory * ask.Percentage / 100
	default:
		return card.Memory
	}
}

// usage is what pods hold of each card of a node. Init containers are counted as if they ran beside the others.
func (node *node) usage() map[string]Card {
	used := map[string]Card{}
	for _, pod := range node.pods {
		for _, container := range pod.shares {
			for _, share := range container {
				card := used[share.Card]
				card.Slots, card.Memory, card.Cores = card.Slots+1, card.Memory+share.Memory, card.Cores+share.Cores
				used[share.Card] = card
			}
		}
	}
	return used
}

func (state *state) weigh(version uint64, name string) {
	node := state.node(name)
	for id, used := range node.usage() {
		known := false
		for _, cards := range node.cards {
			card, ok := cards[id]
			if !ok {
				continue
			}
			known = true
			over := func(what string, used, capacity int64) {
				if used > capacity {
					state.violate(fmt.Sprint("over ", id, what), "%d: card %s of %s has %d %s and %d are given away", version, id, name, capacity, what, used)
				}
			}
			over("slots", used.Slots, card.Slots)
			over("MiB", used.Memory, card.Memory)
			over("percent", used.Cores, card.Cores)
			if card.Memory > 0 {
				state.report.FullestCard = max(state.report.FullestCard, used.Memory*100/card.Memory)
			}
		}
		if !known {
			state.violate("unknown "+id, "%d: %s has no card %s, which is given away", version, name, id)
		}
	}
}

var unschedulable = regexp.MustCompile(`^0/[0-9]+ nodes are available: `)

// finish judges the pods that are left.
func (state *state) finish() {
	for _, node := range state.nodes {
		if len(node.cards) > 0 {
			state.report.Nodes++
		}
		for _, cards := range node.cards {
			state.report.Cards += len(cards)
		}
	}
	for _, pod := range state.pods {
		if pod.family != nil {
			state.finishPod(pod)
		}
	}
	sort.Strings(state.report.Lost)
}

func (state *state) finishPod(pod *pod) {
	object := pod.object
	answer := object.Metadata.Annotations[pod.family.phase]
	lost := func(format string, values ...any) {
		state.report.Lost = append(state.report.Lost, fmt.Sprintf("pod %s: %s", object.key(), fmt.Sprintf(format, values...)))
	}
	switch {
	case object.Metadata.Labels[deletedByUser] == "true" && object.Metadata.DeletionTimestamp == "":
		lost("its user means to delete it and has not")
	case object.Metadata.DeletionTimestamp != "":
		lost("it is being deleted and does not go")
	case object.Status.Phase == "Failed":
		state.report.FailedOnNode[object.Status.Reason+": "+object.Status.Message]++
	case object.Spec.NodeName != "" && object.Status.Phase == "Pending":
		lost("it is bound to %s and does not run (%s)", object.Spec.NodeName, answer)
	case object.Spec.NodeName != "" && answer != "success":
		lost("it is bound to %s and its agent says %q", object.Spec.NodeName, answer)
	case object.Spec.NodeName != "":
		state.report.Served++
	default:
		state.finishUnbound(pod, lost)
	}
}

// finishUnbound: a pod without a node must say why, and it must be so.
func (state *state) finishUnbound(pod *pod, lost func(string, ...any)) {
	for _, condition := range pod.object.Status.Conditions {
		if condition.Type != "PodScheduled" || condition.Status != "False" || condition.Reason != "Unschedulable" {
			continue
		}
		if !unschedulable.MatchString(condition.Message) {
			lost("it is said to be unschedulable because of %q", condition.Message)
			return
		}
		for name, node := range state.nodes {
			if pod.family != nil && node.fits(pod) {
				lost("it is said to be unschedulable, and %s has room (%s)", name, condition.Message)
				return
			}
		}
		state.report.Unschedulable++
		return
	}
	lost("it is neither bound nor told why")
}

// fits says whether each container's cards are there, one after another on what the last ones left. Nodes' other resources are
// taken to be plenty.
func (node *node) fits(pod *pod) bool {
	used := node.usage()
	for _, ask := range pod.asks {
		left := ask.Count
		for id, card := range node.cards[pod.family.name] {
			if left > 0 && ask.fits(card, used[id]) {
				left--
				taken := used[id]
				taken.Slots, taken.Memory, taken.Cores = taken.Slots+1, taken.Memory+ask.memoryOf(card), taken.Cores+max(ask.Cores, 0)
				used[id] = taken
			}
		}
		if left > 0 {
			return false
		}
	}
	return true
}

// fits says whether one share fits: a whole card's compute is given only to one that has the card alone.
func (ask Ask) fits(card, used Card) bool {
	cores := max(ask.Cores, 0)
	alone := cores < 100 || used.Slots == 0
	spent := used.Cores >= card.Cores
	return card.Healthy && used.Slots < card.Slots && used.Memory+ask.memoryOf(card) <= card.Memory &&
		used.Cores+cores <= card.Cores && alone && !spent
}
