// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"slices"
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

// needPretendedNodes skips the test where there can be no node whose runtime is pretended.
func needPretendedNodes(t *testing.T) {
	t.Helper()
	if missing := harness.PretendedNodesMissing(); missing != "" {
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

func TestNodeOfDebiansContainerdRunsAPod(t *testing.T) {
	needNodes(t)
	plane := harness.NewPlane(t)
	plane.StartNode(harness.MachineOptions{Name: "a", Debian: true})
	plane.StartScheduler()
	plane.CreatePods(harness.Work("ends", harness.Ask{harness.GPUResource: "2"}, "0.3"))
	plane.WaitPhase("ends", 30*time.Second, v1.PodSucceeded)
}

func TestNodeKeepsItsPodsWhenItsKubeletRestarts(t *testing.T) {
	needNodes(t)
	plane := harness.NewPlane(t)
	node := plane.StartNode(harness.MachineOptions{Name: "a"})
	plane.StartScheduler()
	plane.CreatePods(harness.Work("before", harness.Ask{harness.GPUResource: "3"}))
	before := plane.WaitPhase("before", 30*time.Second, v1.PodRunning)
	node.RestartKubelet()
	node.WaitGPUs()
	plane.CreatePods(harness.Work("after", harness.Ask{harness.GPUResource: "5"}))
	after := plane.WaitPhase("after", 30*time.Second, v1.PodRunning)
	pod := plane.Pod("before")
	given := slices.Concat(harness.GivenTo(pod, harness.GPUResource)["main"], harness.GivenTo(after, harness.GPUResource)["main"])
	slices.Sort(given)
	if pod.Status.ContainerStatuses[0].RestartCount > 0 || len(slices.Compact(given)) != 8 {
		t.Errorf("want 3 and 5 GPUs and no restart; before %+v, after %+v, then %+v", before.Status, pod.Status, after.Status)
	}
}

func TestNodeSaysWhichGPUIsSick(t *testing.T) {
	needNodes(t)
	plane := harness.NewPlane(t)
	node := plane.StartNode(harness.MachineOptions{Name: "a"})
	plane.StartScheduler()
	plane.CreatePods(harness.Work("all", harness.Ask{harness.GPUResource: "8"}))
	plane.WaitPhase("all", 30*time.Second, v1.PodRunning)
	node.Sick(node.GPUID(5))
	node.WaitGPUs(7)
	harness.Eventually(t, "the status to name the GPU", 20*time.Second, func() error {
		for _, device := range plane.Pod("all").Status.ContainerStatuses[0].AllocatedResourcesStatus[0].Resources {
			if device.Health == v1.ResourceHealthStatusUnhealthy && string(device.ResourceID) == node.GPUID(5) {
				return nil
			}
		}
		return fmt.Errorf("no device is unhealthy")
	})
}

// Two nodes beside each other: neither sees the other's GPUs.
func TestNodesOfOneClusterRunTwentyPodsAtOnce(t *testing.T) {
	needNodes(t)
	plane := harness.NewPlane(t)
	plane.StartNode(harness.MachineOptions{Name: "a"})
	plane.StartNode(harness.MachineOptions{Name: "b", GPUs: "12"})
	plane.StartScheduler()
	var pods []*v1.Pod
	for i := range 20 {
		pods = append(pods, harness.Work(fmt.Sprintf("p-%02d", i), harness.Ask{harness.GPUResource: "1"}))
	}
	plane.CreatePods(pods...)
	given := map[string]bool{}
	for _, pod := range plane.WaitRunning(time.Minute) {
		for _, id := range harness.GivenTo(&pod, harness.GPUResource)["main"] {
			given[id] = true
		}
	}
	if len(given) != 20 {
		t.Errorf("want 20 GPUs in use, got %v", given)
	}
}
