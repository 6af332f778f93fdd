// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"

	"berth.dev/e2e/harness"
)

func background() context.Context { return context.Background() }

// admitted are the figures of an arm of admissions.
type admitted struct {
	Arm                          string
	Pods, AsPlanned, Others      int
	Books                        books          `json:"books_of_those_on_others"`
	Unseen                       int            `json:"ended_before_their_status_was_seen"`
	Refused                      map[string]int `json:"refused_by_cause"`
	OthersAfter                  map[string]int `json:"on_others_by_the_fault_before"`
	LateAfter                    map[string]int `json:"of_these_not_booked_in_time_by_the_fault_before"`
	RefusedAfter                 map[string]int `json:"refused_by_the_fault_before"`
	KubeletRestarts              int
	PluginRestarts, AgentKills   int
	BindToAllocateMedianMs       float64
	BindToAllocate90PercentileMs float64
	FirstOthers                  []string
	Seconds                      float64
}

// admissions runs the same pods and faults with berth-node and with the plugin alone.
func admissions(t harness.T, s settings) (any, []string) {
	var all []admitted
	var sentences []string
	for _, a := range s.arms(withAgent, pluginAlone) {
		r := admit(t, a, s)
		all = append(all, r)
		sentences = append(sentences, fmt.Sprintf(
			"%s: %d pods, %d on the planned GPUs, %d on others, %d not seen, refused %v; %d kubelet restarts, %d plugin "+
				"restarts, %d agent kills; from Binding to Allocate %.1f ms (median), %.1f ms (90 %%); %.0f s.", r.Arm, r.Pods, r.AsPlanned,
			r.Others, r.Unseen, r.Refused, r.KubeletRestarts, r.PluginRestarts, r.AgentKills, r.BindToAllocateMedianMs,
			r.BindToAllocate90PercentileMs, r.Seconds), r.Books.sentence())
	}
	if len(all) == 2 {
		sentences = append(sentences, fmt.Sprintf("berth-node adds %.1f ms to an admission (medians).",
			all[0].BindToAllocateMedianMs-all[1].BindToAllocateMedianMs))
	}
	return all, sentences
}

func admit(t harness.T, a arm, s settings) admitted {
	l := newLab(a, s, s.nodes, harness.TwoQuads)
	defer l.close()
	random := rand.New(rand.NewPCG(s.seed, 0))
	r := admitted{Arm: a.Name, Refused: map[string]int{}, OthersAfter: map[string]int{}, LateAfter: map[string]int{},
		RefusedAfter: map[string]int{}}
	start := time.Now()
	for made := 0; made < s.pods && time.Since(start) < s.longest; {
		batch := 1 + random.IntN(20)
		for range batch {
			l.plane.CreatePods(randomPod(random, fmt.Sprintf("p-%05d", made)))
			made++
		}
		l.drain(30, 5*time.Minute)
		l.fault(random, a, &r, batch)
		if made/500 != (made-batch)/500 {
			t.Logf("%s: %d of %d pods", a.Name, made, s.pods)
		}
	}
	l.drain(0, 5*time.Minute)
	time.Sleep(time.Second)
	r.Seconds = time.Since(start).Seconds()
	l.count(&r)
	return r
}

// randomPod has 1 to 8 GPUs, in one or several containers of every kind, and ends by itself.
func randomPod(random *rand.Rand, name string) *v1.Pod {
	ends := fmt.Sprintf("%.2f", 0.1+0.4*random.Float64())
	size := []int{1, 1, 1, 1, 2, 2, 2, 3, 4, 4, 5, 6, 7, 8}[random.IntN(14)]
	pod := harness.Work(name, gpus(size), ends)
	second := harness.WorkContainer("second", gpus(max(1, size/2)), ends)
	switch kind := random.IntN(8); {
	case kind == 0 && size < 6:
		pod.Spec.Containers = append(pod.Spec.Containers, second)
	case kind == 1:
		first := harness.WorkContainer("first", gpus(max(1, size/2)), "0.05")
		pod.Spec.InitContainers = []v1.Container{first}
	case kind == 2 && size < 6:
		always := v1.ContainerRestartPolicyAlways
		second.RestartPolicy, second.Args = &always, nil
		pod.Spec.InitContainers = []v1.Container{second}
	}
	return pod
}

// fault breaks something now and then: about every 300, 200 and 100 pods.
func (l *lab) fault(random *rand.Rand, a arm, r *admitted, pods int) {
	happens := func(every int) bool { return random.IntN(every) < pods }
	node := l.nodes[random.IntN(len(l.nodes))]
	kubelet, plugin, agent := happens(300), happens(200), happens(100)
	switch {
	case kubelet:
		l.faults = append(l.faults, fault{node.Name, "kubelet restart", time.Now()})
		node.RestartKubelet()
		r.KubeletRestarts++
	case plugin:
		l.faults = append(l.faults, fault{node.Name, "plugin restart", time.Now()})
		node.Plugin.Kill()
		node.StartPlugin()
		r.PluginRestarts++
	case agent && a.agent:
		l.faults = append(l.faults, fault{node.Name, "agent kill", time.Now()})
		killWorker(node)
		r.AgentKills++
	}
}

// fault is one that the trial made.
type fault struct {
	node, kind string
	at         time.Time
}

// faultBefore is the last fault of the node in the 10 s before that time, in words.
func (l *lab) faultBefore(node string, at time.Time) string {
	for _, f := range slices.Backward(l.faults) {
		if f.node != node || f.at.After(at) {
			continue
		}
		switch after := at.Sub(f.at); {
		case after < time.Second:
			return f.kind + ", less than 1 s before"
		case after < 10*time.Second:
			return f.kind + ", 1 to 10 s before"
		}
		break
	}
	return "none in 10 s"
}

// count compares plans with what was given.
func (l *lab) count(r *admitted) {
	var times []float64
	calls := map[string][]harness.PluginCall{}
	for _, node := range l.nodes {
		calls[node.Name] = node.PluginCalls("Allocate")
		for _, call := range calls[node.Name] {
			slices.Sort(call.IDs)
		}
	}
	all := l.given.All()
	for _, seen := range all {
		r.Pods++
		node := l.machine(seen.Pod.Spec.NodeName)
		switch {
		case seen.Pod.Status.Phase == v1.PodFailed:
			r.Refused[cause(seen.Pod)]++
			r.RefusedAfter[l.faultBefore(seen.Pod.Spec.NodeName, seen.Bound)]++
		case node == nil || len(seen.GPUs) == 0:
			r.Unseen++
		default:
			had, found := allocated(calls[node.Name], seen)
			if found {
				times = append(times, had.Sub(seen.Bound).Seconds()*1000)
			} else {
				had = seen.Bound
			}
			if err := node.AsPlanned(seen.Pod, seen.GPUs); err == nil {
				r.AsPlanned++
			} else {
				r.Others++
				r.FirstOthers = append(r.FirstOthers, fmt.Sprintf("%s (bound at %s)", err, seen.Bound.Format("05.000")))
				before := l.faultBefore(node.Name, had)
				r.OthersAfter[before]++
				if r.Books.look(node, seen, had, all) {
					r.LateAfter[before]++
				}
			}
		}
	}
	r.FirstOthers = r.FirstOthers[:min(5, len(r.FirstOthers))]
	r.BindToAllocateMedianMs, r.BindToAllocate90PercentileMs = percentile(times, 50), percentile(times, 90)
}

// cause is why a kubelet refused the pod, without names and numbers.
func cause(pod *v1.Pod) string {
	text, _, _ := strings.Cut(pod.Status.Message, ", which is unexpected")
	words := strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' {
			return -1
		}
		return r
	}, text)
	return strings.TrimSpace(pod.Status.Reason + ": " + words)
}

// allocated is when the plugin gave the pod the GPUs of its first container.
func allocated(calls []harness.PluginCall, seen harness.GivenPod) (time.Time, bool) {
	first, last := seen.Bound.Add(-time.Second), seen.Given.Add(time.Second)
	from, _ := slices.BinarySearchFunc(calls, first, func(call harness.PluginCall, at time.Time) int { return call.At.Compare(at) })
	for _, call := range calls[from:] {
		if call.At.After(last) {
			break
		}
		for _, ids := range seen.GPUs {
			if slices.Equal(ids, call.IDs) {
				return call.At, true
			}
		}
	}
	return time.Time{}, false
}

func percentile(values []float64, percent int) float64 {
	if len(values) == 0 {
		return 0
	}
	slices.Sort(values)
	return values[min(len(values)-1, len(values)*percent/100)]
}
