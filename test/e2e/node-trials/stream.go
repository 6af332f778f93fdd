// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"math/rand/v2"
	"time"

	v1 "k8s.io/api/core/v1"

	"berth.dev/e2e/harness"
)

// islands are pairs in quads, and their GPUs are not beside each other.
var islands = harness.Links{GPUs: 8, Kinds: []harness.LinkKind{
	{Cell: "NV12", GBps: 300, Islands: [][]int{{0, 5}, {2, 7}, {1, 6}, {3, 4}}},
	{Cell: "NV4", GBps: 100, Islands: [][]int{{0, 5, 2, 7}, {1, 6, 3, 4}}}}}

// streamed are the figures of an arm of stream.
type streamed struct {
	Arm       string
	Pods      int
	AsPlanned int
	// Ring is the mean ring bandwidth by the number of GPUs of the pod, planned and had.
	RingPlanned, RingHad map[int]float64
	Refused              map[string]int
}

// stream runs pods of 2, 4 and 8 GPUs that come and go, by each arm, and looks at the links of what they got.
func stream(t harness.T, s settings) (any, []string) {
	var all []streamed
	var sentences []string
	for _, a := range s.arms(withAgent, pluginAlone, nvidias) {
		r := streamArm(t, a, s)
		all = append(all, r)
		line := fmt.Sprintf("%s: %d pods, %d as planned, refused %v", r.Arm, r.Pods, r.AsPlanned, r.Refused)
		for _, size := range []int{2, 4, 8} {
			line += fmt.Sprintf("; %d GPUs: ring of %.0f GB/s, %.0f planned", size, r.RingHad[size], r.RingPlanned[size])
		}
		sentences = append(sentences, line+".")
	}
	return all, sentences
}

func streamArm(t harness.T, a arm, s settings) streamed {
	l := newLab(a, s, s.nodes, islands, "-links", "0-5,2-7,1-6,3-4,0-5-2-7,1-6-3-4")
	defer l.close()
	random := rand.New(rand.NewPCG(s.seed, 2))
	for made := range s.pods {
		size := []int{1, 2, 2, 2, 2, 4, 4, 4, 8}[random.IntN(9)]
		l.plane.CreatePods(harness.Work(fmt.Sprintf("s-%05d", made), gpus(size), fmt.Sprintf("%.2f", 0.5+2*random.Float64())))
		l.drain(4*s.nodes, time.Minute)
		if made%200 == 199 {
			t.Logf("%s: %d of %d pods", a.Name, made+1, s.pods)
		}
	}
	l.drain(0, time.Minute)
	time.Sleep(time.Second)
	r := streamed{Arm: a.Name, RingPlanned: map[int]float64{}, RingHad: map[int]float64{}, Refused: map[string]int{}}
	count := map[int]float64{}
	for _, seen := range l.given.All() {
		r.Pods++
		node := l.machine(seen.Pod.Spec.NodeName)
		if seen.Pod.Status.Phase == v1.PodFailed || node == nil || len(seen.GPUs) == 0 {
			r.Refused[cause(seen.Pod)]++
			continue
		}
		if node.AsPlanned(seen.Pod, seen.GPUs) == nil {
			r.AsPlanned++
		}
		had := indices(node, seen.GPUs["main"])
		count[len(had)]++
		r.RingHad[len(had)] += float64(islands.Ring(had))
		r.RingPlanned[len(had)] += float64(islands.Ring(indices(node, node.Planned(seen.Pod)["main"])))
	}
	for size, pods := range count {
		r.RingHad[size] /= pods
		r.RingPlanned[size] /= pods
	}
	return r
}

func indices(node *harness.Machine, ids []string) []int {
	var all []int
	for _, id := range ids {
		all = append(all, node.GPUIndex(id))
	}
	return all
}
