// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"slices"
	"time"

	"berth.dev/e2e/harness"
)

// books is what became of pods on other GPUs than planned: whether Berth knew before it decided for that node again.
type books struct {
	// Corrected are those whose status said what they had before the next pod was bound to the node, or ended first.
	Corrected int
	// Late are the others, and Clashes those of them where the next decisions planned GPUs that the pod had.
	Late, Clashes int
	FirstClashes  []string
}

func (b *books) sentence() string {
	return fmt.Sprintf("Of the pods on others %d were known as such before the next decision for the node, %d were not; in %d "+
		"cases a decision planned GPUs that such a pod had.", b.Corrected, b.Late, b.Clashes)
}

// look looks at the decisions for the node that followed when the pod had its GPUs, and says whether one came too early.
func (b *books) look(node *harness.Machine, pod harness.GivenPod, had time.Time, all []harness.GivenPod) bool {
	late, clash := false, ""
	for _, next := range all {
		after := next.Pod.Spec.NodeName == node.Name && next.Bound.After(had) && next.Pod.UID != pod.Pod.UID
		if !after || (!pod.Ended.IsZero() && next.Bound.After(pod.Ended)) {
			continue
		}
		if next.Bound.Before(pod.Given) {
			late = true
		}
		if both := overlap(gpusOf(node.Planned(next.Pod)), gpusOf(pod.GPUs)); both != "" {
			clash = fmt.Sprintf("%s had %s, then planned for %s (bound %.3f s later; its status came after %.3f s)", pod.Pod.Name,
				both, next.Pod.Name, next.Bound.Sub(had).Seconds(), pod.Given.Sub(had).Seconds())
		}
	}
	if late {
		b.Late++
	} else {
		b.Corrected++
	}
	if clash != "" {
		b.Clashes++
		b.FirstClashes = append(b.FirstClashes[:min(4, len(b.FirstClashes))], clash)
	}
	return late
}

func gpusOf(containers map[string][]string) []string {
	var all []string
	for _, ids := range containers {
		all = append(all, ids...)
	}
	return all
}

// overlap is one that both have; empty: none.
func overlap(a, b []string) string {
	for _, id := range a {
		if slices.Contains(b, id) {
			return id
		}
	}
	return ""
}
