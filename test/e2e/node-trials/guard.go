// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"math/rand/v2"
	"syscall"
	"time"

	v1 "k8s.io/api/core/v1"

	"berth.dev/e2e/harness"
)

// killWorker kills the worker of berth-node, which its guard starts.
func killWorker(node *harness.Machine) { signalWorker(node, syscall.SIGKILL) }

func signalWorker(node *harness.Machine, signal syscall.Signal) {
	for _, pid := range node.AgentProcess.Children() {
		_ = syscall.Kill(pid, signal)
	}
}

// guarded are the figures of guard.
type guarded struct {
	Kills, Hangs       int
	Pods               int
	RefusedWithin500ms int
	RefusedLater       int
	FirstRefused       []string
	Touched            int       `json:"running_pods_touched"`
	AwayMs             []float64 `json:"kubelet_lacked_gpus_for_ms"`
}

// guard kills or stops the worker of berth-node while pods come and go, in whatever phase.
func guard(t harness.T, s settings) (any, []string) {
	l := newLab(withAgent, s, 1, harness.TwoQuads)
	defer l.close()
	node := l.nodes[0]
	random := rand.New(rand.NewPCG(s.seed, 1))
	l.plane.CreatePods(harness.Work("stays-a", gpus(1)), harness.Work("stays-b", nil))
	l.plane.WaitRunning(time.Minute)

	r := guarded{}
	var faults []time.Time
	for number := range s.faults {
		for i := range 3 {
			l.plane.CreatePods(harness.Work(fmt.Sprintf("g-%04d-%d", number, i), gpus(1+random.IntN(2)), "0.1"))
		}
		time.Sleep(time.Duration(random.IntN(600)) * time.Millisecond)
		stop, away := make(chan struct{}), make(chan time.Duration, 1)
		go func() { away <- node.WatchDevices(8, stop) }()
		faults = append(faults, time.Now())
		if number%4 == 3 {
			signalWorker(node, syscall.SIGSTOP)
			r.Hangs++
		} else {
			killWorker(node)
			r.Kills++
		}
		time.Sleep(time.Duration(2500+random.IntN(1000)) * time.Millisecond) // a worker that hangs is found after two seconds
		close(stop)
		r.AwayMs = append(r.AwayMs, (<-away).Seconds()*1000)
		l.drain(2, time.Minute)
		if number%20 == 19 {
			t.Logf("guard: %d of %d faults", number+1, s.faults)
		}
	}
	l.judge(&r, faults)
	return r, []string{fmt.Sprintf("%d kills and %d hangs of the worker: %d pods came, %d were refused within 0.5 s of one, %d "+
		"later; %d running pods were touched; the kubelet lacked GPUs for %.0f ms (median), %.0f ms (at most).", r.Kills, r.Hangs,
		r.Pods, r.RefusedWithin500ms, r.RefusedLater, r.Touched, percentile(r.AwayMs, 50), percentile(r.AwayMs, 100))}
}

// judge counts the refused pods, by the time between the last fault and their Binding, and the running ones that were
// touched.
func (l *lab) judge(r *guarded, faults []time.Time) {
	for _, seen := range l.given.All() {
		pod := seen.Pod
		if pod.Name == "stays-a" || pod.Name == "stays-b" {
			if pod.Status.Phase != v1.PodRunning || pod.Status.ContainerStatuses[0].RestartCount > 0 {
				r.Touched++
			}
			continue
		}
		r.Pods++
		if pod.Status.Phase != v1.PodFailed {
			continue
		}
		last := time.Time{}
		for _, fault := range faults {
			// A call that was under way at the fault is lost with the worker.
			if fault.Add(-500 * time.Millisecond).Before(seen.Bound) {
				last = fault
			}
		}
		if seen.Bound.Sub(last) < 500*time.Millisecond || last.IsZero() {
			r.RefusedWithin500ms++
		} else {
			r.RefusedLater++
		}
		if len(r.FirstRefused) < 5 {
			r.FirstRefused = append(r.FirstRefused, fmt.Sprintf("%s, %.3f s after a fault: %s", pod.Name, seen.Bound.Sub(last).Seconds(), cause(pod)))
		}
	}
}
