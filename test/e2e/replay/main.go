// SPDX-License-Identifier: Apache-2.0

// Replay lets a real kube-scheduler place the arrivals of a trace, in order and without departures, with Berth in
// front and alone, and reads from the API server how many GPUs are allocated in the end.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	configv1 "k8s.io/kube-scheduler/config/v1"

	"berth.dev/e2e/harness"
)

// result is what one arm came to.
type result struct {
	Arm          string  `json:"arm"`
	Placed       int     `json:"placed"`
	Pending      int     `json:"pending"`
	AllocatedPct float64 `json:"allocated_pct"`
	Seconds      float64 `json:"seconds"`
}

func main() {
	data := flag.String("data", "", "folder with the data (default $BERTH_DATA, else ../shared/data)")
	name := flag.String("trace", "default", "openb trace")
	seed := flag.Int("seed", 42, "seed of the arrival order")
	limit := flag.Int("arrivals", 0, "only so many arrivals; 0 is all")
	names := flag.String("arms", "expected-waste,fragmentation-gradient,MostAllocated,LeastAllocated",
		"profiles of Berth, scoring strategies of kube-scheduler, and both as PROFILE+STRATEGY")
	weight := flag.Int64("weight", 0, "of Berth's priorities; 0 is the one of manifests/scheduler")
	file := flag.String("json", "", "write the figures to this file")
	flag.Parse()

	command := &harness.Command{}
	defer command.Close()
	t, err := readTrace(filepath.Join(dataFolder(*data), "openb"), *name, *seed)
	if err != nil {
		command.Fatalf("%v", err)
	}
	if *limit > 0 {
		t.arrivals = t.arrivals[:min(*limit, len(t.arrivals))]
	}
	plane := harness.NewPlane(command)
	var nodes []*v1.Node
	for _, m := range t.machines {
		nodes = append(nodes, m.node())
	}
	plane.AddNodes(nodes...)
	scheduler := plane.StartScheduler()
	scheduler.Stop()

	var results []result
	for _, arm := range strings.Split(*names, ",") {
		r := replay(plane, scheduler, arm, t, *weight)
		command.Logf("%-24s %6.2f %% of the GPUs allocated, %d pods placed, %d pending, %.0f s", r.Arm, r.AllocatedPct, r.Placed,
			r.Pending, r.Seconds)
		results = append(results, r)
	}
	if *file != "" {
		text, _ := json.MarshalIndent(results, "", "  ")
		if err := os.WriteFile(*file, append(text, '\n'), 0o644); err != nil {
			command.Fatalf("%v", err)
		}
	}
}

func dataFolder(given string) string {
	for _, folder := range []string{given, os.Getenv("BERTH_DATA")} {
		if folder != "" {
			return folder
		}
	}
	return "../shared/data"
}

// replay lets the pods come in the order of the trace, faster than they are placed.
func replay(plane *harness.Plane, scheduler *harness.Scheduler, arm string, t trace, weight int64) result {
	profile, strategy, _ := strings.Cut(arm, "+")
	alone := profile == "MostAllocated" || profile == "LeastAllocated"
	if alone {
		strategy = profile
	}
	var pods []*v1.Pod
	for _, task := range t.arrivals {
		if alone {
			pods = append(pods, task.podForScheduler())
		} else {
			pods = append(pods, task.podForBerth())
		}
	}
	scheduler.Config.Extenders, scheduler.Config.Profiles = nil, nil
	if strategy != "" {
		scheduler.Config.Profiles = []configv1.KubeSchedulerProfile{packing(strategy)}
	}
	if !alone {
		berth := plane.StartBerth("profile: " + profile + "\n")
		defer berth.Stop()
		scheduler.Config.Extenders = harness.ShippedExtenders(plane.T, berth.URL)
		for i, extender := range scheduler.Config.Extenders {
			if weight != 0 && extender.PrioritizeVerb != "" {
				scheduler.Config.Extenders[i].Weight = weight
			}
		}
	}
	seen := plane.WatchAttempts()
	defer seen.Stop()
	start := time.Now()
	scheduler.Restart()
	plane.CreatePodsInOrder(pods...)
	bound := seen.WaitForAll(len(pods), 30*time.Minute)
	r := result{Arm: arm, Placed: len(bound), Pending: len(pods) - len(bound), Seconds: time.Since(start).Seconds()}
	scheduler.Stop()
	r.AllocatedPct = allocated(t, bound)
	plane.DeletePods()
	return r
}

func allocated(t trace, bound map[string]bool) float64 {
	var taken, there int64
	for _, m := range t.machines {
		there += int64(m.gpus) * 1000
	}
	for _, task := range t.arrivals {
		if bound[task.name] {
			taken += task.gpuMilli()
		}
	}
	return 100 * float64(taken) / float64(there)
}

// packing is the default profile but for the strategy, which looks at the GPUs as well.
func packing(strategy string) configv1.KubeSchedulerProfile {
	text := fmt.Sprintf(`{"apiVersion":"kubescheduler.config.k8s.io/v1","kind":"NodeResourcesFitArgs","scoringStrategy":{"type":%q,`+
		`"resources":[{"name":"cpu","weight":1},{"name":"memory","weight":1},{"name":%q,"weight":5}]}}`, strategy, harness.MilliResource)
	return configv1.KubeSchedulerProfile{PluginConfig: []configv1.PluginConfig{
		{Name: "NodeResourcesFit", Args: runtime.RawExtension{Raw: []byte(text)}}}}
}
