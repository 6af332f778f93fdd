// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"

	"berth.dev/e2e/harness"
)

// needNodes skips the test where no node can run containers.
func needNodes(t *testing.T) {
	t.Helper()
	if missing := harness.NodesMissing(); missing != "" {
		t.Skip("SKIPPED: " + missing)
	}
}

func TestNodeRunsAPodAndSaysWhichGPUsItGave(t *testing.T) {
	needNodes(t)
	plane := harness.NewPlane(t)
	node := plane.StartNode(harness.MachineOptions{Name: "a"})
	plane.StartScheduler()
	plane.CreatePods(harness.Work("stays", harness.Ask{harness.GPUResource: "3"}),
		harness.Work("ends", harness.Ask{harness.GPUResource: "2"}, "0.3"))
	plane.WaitPhase("ends", 30*time.Second, v1.PodSucceeded)
	pod := plane.WaitPhase("stays", 30*time.Second, v1.PodRunning)
	if given := harness.GivenTo(pod, harness.GPUResource)["main"]; len(given) != 3 || node.GPUIndex(given[0]) < 0 {
		t.Errorf("want three GPUs of the node, given %v", given)
	}
	if calls := node.PluginCalls("Allocate"); len(calls) != 2 {
		t.Errorf("want two calls of Allocate, got %+v", calls)
	}
}
