// SPDX-License-Identifier: Apache-2.0

// Bench measures how fast kube-scheduler places pods alone, with the stub and with Berth in front, in alternating
// rounds on one control plane: the figures are ratios within one run, on whatever machine it is.
package main

import (
	"encoding/json"
	"flag"
	"os"
	"time"

	configv1 "k8s.io/kube-scheduler/config/v1"

	"berth.dev/e2e/harness"
)

// arm is what stands in front of the scheduler; start gives the process and how the scheduler learns of it.
type arm struct {
	name  string
	start func() (*harness.Process, []configv1.Extender)
}

func main() {
	nodes := flag.Int("nodes", 1000, "nodes, 8 GPUs each")
	pods := flag.Int("pods", 2000, "pods per round, one GPU each")
	rounds := flag.Int("rounds", 5, "rounds of every arm")
	percentage := flag.Int("percentage", 100, "percentageOfNodesToScore of every arm; 0 is kube-scheduler's own choice")
	withBerth := flag.Bool("berth", true, "measure Berth too")
	file := flag.String("json", "", "write the figures to this file")
	flag.Parse()

	command := &harness.Command{}
	defer command.Close()
	if missing := harness.BerthMissing(); *withBerth && missing != "" {
		command.Fatalf("%s; -berth=false measures the others", missing)
	}
	plane := harness.NewPlane(command)
	plane.CreateNodes(*nodes)
	scheduler := plane.StartScheduler()
	share := int32(*percentage)
	scheduler.Config.PercentageOfNodesToScore = &share
	scheduler.Stop()

	report := Report{Nodes: *nodes, Pods: *pods, PercentageOfNodesToScore: *percentage}
	all := arms(plane, *withBerth)
	for round := range *rounds {
		for i := range all {
			a := all[(i+round)%len(all)] // none of them always comes first
			r := measure(plane, scheduler, a, *pods)
			report.Rounds = append(report.Rounds, r)
			command.Logf("round %d, %-5s %7.1f pods/s", round+1, a.name, r.PodsPerSecond)
		}
	}
	report.summarize()
	report.print(os.Stdout)
	if *file != "" {
		text, _ := json.MarshalIndent(report, "", "  ")
		if err := os.WriteFile(*file, append(text, '\n'), 0o644); err != nil {
			command.Fatalf("%v", err)
		}
	}
}

func arms(plane *harness.Plane, withBerth bool) []arm {
	all := []arm{
		{"none", func() (*harness.Process, []configv1.Extender) { return nil, nil }},
		{"stub", func() (*harness.Process, []configv1.Extender) {
			stub := plane.StartStub()
			return stub.Process, stub.Extenders()
		}},
	}
	if withBerth {
		plane.GrantBerth()
		berth := plane.NewBerth("berth", plane.BerthKubeconfig(plane.URL(), plane.Token()), "")
		all = append(all, arm{"berth", func() (*harness.Process, []configv1.Extender) {
			berth.Start()
			berth.WaitReady()
			return berth.Process, harness.ShippedExtenders(plane.T, berth.URL)
		}})
	}
	return all
}

// measure lets the scheduler find all pods waiting, and takes the time and the CPU from the first to the last Binding.
func measure(plane *harness.Plane, scheduler *harness.Scheduler, a arm, pods int) Round {
	extender, stanzas := a.start()
	plane.CreatePods(harness.Pods("pod", pods, harness.Ask{harness.GPUResource: "1"})...)
	bound := plane.WatchBound()
	defer bound.Stop()
	scheduler.Config.Extenders = stanzas
	scheduler.Restart()

	processes := map[string]*harness.Process{
		"etcd": plane.Etcd, "kube-apiserver": plane.APIServer, "kube-scheduler": scheduler.Process}
	if extender != nil {
		processes["extender"] = extender
	}
	bound.WaitFor(1, time.Minute)
	from, before, used := bound.Count(), time.Now(), cpu(processes)
	bound.WaitFor(pods, 10*time.Minute)
	placed, took := float64(pods-from), time.Since(before)
	r := Round{Arm: a.name, PodsPerSecond: placed / took.Seconds(), CPUMillisPerPod: map[string]float64{}}
	for name, now := range cpu(processes) {
		r.CPUMillisPerPod[name] = float64((now - used[name]).Microseconds()) / 1000 / placed
	}
	scheduler.Stop()
	if extender != nil {
		extender.Stop()
	}
	plane.DeletePods()
	return r
}

func cpu(processes map[string]*harness.Process) map[string]time.Duration {
	used := map[string]time.Duration{}
	for name, process := range processes {
		used[name] = process.CPU()
	}
	return used
}
