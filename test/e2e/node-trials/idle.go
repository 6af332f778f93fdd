// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"time"

	"berth.dev/e2e/harness"
)

// rest are the figures of idle.
type rest struct {
	RSSMiB     float64
	Processes  int
	CPUMs      float64 `json:"cpu_ms_per_minute"`
	Seconds    float64
	PodsBefore int
}

// idle looks at berth-node after some pods have come and gone.
func idle(t harness.T, s settings) (any, []string) {
	l := newLab(withAgent, s, 1, harness.TwoQuads)
	defer l.close()
	r := rest{PodsBefore: 30, Seconds: s.idle.Seconds()}
	for i := range r.PodsBefore {
		l.plane.CreatePods(harness.Work(fmt.Sprintf("p-%02d", i), gpus(1), "0.1"))
	}
	l.drain(0, time.Minute)
	time.Sleep(5 * time.Second)
	agent := l.nodes[0].AgentProcess
	before := agent.CPU()
	time.Sleep(s.idle)
	r.CPUMs = (agent.CPU() - before).Seconds() * 1000 / s.idle.Minutes()
	r.RSSMiB, r.Processes = float64(agent.RSS())/(1<<20), 1+len(agent.Children())
	return r, []string{fmt.Sprintf("berth-node at rest: %.1f MiB in %d processes, %.0f ms of CPU a minute.", r.RSSMiB, r.Processes, r.CPUMs)}
}
