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

// pastBerth is a pod that names its node: no scheduler sees it.
func pastBerth(name string, count int) *v1.Pod {
	pod := harness.Work(name, gpus(count))
	pod.Spec.NodeName = "a"
	return pod
}

// givenOf waits until the pod runs, and says which GPUs it has.
func (c agentCluster) givenOf(t *testing.T, name string, count int) []string {
	t.Helper()
	var given []string
	harness.Eventually(t, name+" to have its GPUs", 30*time.Second, func() error {
		pod := c.Pod(name)
		given = harness.GivenTo(pod, harness.GPUResource)["main"]
		if len(given) != count {
			return fmt.Errorf("it is %s %s and has %v", pod.Status.Phase, pod.Status.Message, given)
		}
		return nil
	})
	return given
}

// Without a taint: a plugin that prefers the very GPU with shares never gives it away while others are left, neither
// to Berth's pods nor to pods past Berth. When none is left, a pod past Berth gets it, and Berth counts that.
func TestNodeAgentKeepsPodsOffGPUsWithShares(t *testing.T) {
	c := startAgentCluster(t, harness.MachineOptions{PluginFlags: []string{"-prefer", "first"}}, "a")
	c.CreatePods(harness.Work("share", harness.Ask{harness.MilliResource: "300"}))
	c.WaitPhase("share", 30*time.Second, v1.PodRunning)
	devices, err := harness.DevicesOf(c.Pod("share"))
	if err != nil {
		t.Fatal(err)
	}
	shared := c.nodes["a"].GPUID(devices.Containers["main"].GPUs[0].Index)
	if shared != c.nodes["a"].GPUID(0) {
		t.Fatalf("the plugin prefers %s; the share is on %s", c.nodes["a"].GPUID(0), shared)
	}
	c.CreatePods(harness.Work("planned", gpus(2)))
	c.WaitPhase("planned", 30*time.Second, v1.PodRunning)
	c.CreatePodsInOrder(pastBerth("past-1", 1), pastBerth("past-2", 4))
	for name, count := range map[string]int{"planned": 2, "past-1": 1, "past-2": 4} {
		if given := c.givenOf(t, name, count); slices.Contains(given, shared) {
			t.Errorf("%s has %v; %s has a share", name, given, shared)
		}
	}
	c.CreatePods(pastBerth("past-all", 1))
	if given := c.givenOf(t, "past-all", 1); !slices.Contains(given, shared) {
		t.Errorf("no other GPU is left, and it has %v", given)
	}
	harness.Eventually(t, "Berth to count the GPU", 90*time.Second, func() error {
		for metric, want := range map[string]float64{"berth_audit_whole_gpus_with_shares": 1, "berth_audit_double_grants": 0} {
			if got := c.berth.Metric(metric); got != want {
				return fmt.Errorf("%s: want %v, got %v", metric, want, got)
			}
		}
		return contains(c.berth.Log(), `"whole_gpu_with_shares","text":"GPU 0 of node a: default/`)
	})
}
