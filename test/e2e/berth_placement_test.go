// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"strings"
	"testing"
	"time"

	configv1 "k8s.io/kube-scheduler/config/v1"

	"berth.dev/e2e/harness"
)

func wantEveryKindPlaced(t *testing.T, nodeCacheCapable bool) {
	needBerth(t)
	plane := harness.NewPlane(t)
	plane.CreateNodes(4)
	berth := plane.StartBerth("")
	stanzas := harness.ShippedExtenders(t, berth.URL)
	for i := range stanzas {
		stanzas[i].NodeCacheCapable = nodeCacheCapable
	}
	plane.StartScheduler(stanzas...)
	plane.CreatePods(harness.OneOfEach()...)
	plane.WaitBound(30 * time.Second)
	plane.CheckGrants()
	if strings.Contains(berth.Log(), "forbidden") {
		t.Errorf("Berth lacks a right:\n%s", berth.Log())
	}
}

func TestEveryKindOfRequestIsPlacedByName(t *testing.T)       { wantEveryKindPlaced(t, true) }
func TestEveryKindOfRequestIsPlacedByWholeNodes(t *testing.T) { wantEveryKindPlaced(t, false) }

func TestDescribePodShowsWhichGPUsItGot(t *testing.T) {
	plane := startCluster(t, 1)
	plane.CreatePods(harness.Pod("two-gpus", harness.Ask{harness.GPUResource: "2"}))
	plane.WaitBound(30 * time.Second)
	harness.Eventually(t, "the GPUs to be in kubectl describe", 10*time.Second, func() error {
		return contains(plane.Kubectl("describe", "pod", "two-gpus"), "GpusAssigned")
	})
	text := plane.Kubectl("describe", "pod", "two-gpus")
	for _, part := range []string{harness.DevicesAnnotation, "berth.dev/decision", "GPU 0, 1 on node node-0000"} {
		if err := contains(text, part); err != nil {
			t.Error(err)
		}
	}
}

func TestDescribePodShowsWhyItDoesNotFit(t *testing.T) {
	plane := startCluster(t, 3)
	pod := harness.Pod("no-such-model", harness.Ask{harness.GPUResource: "1"})
	pod.Annotations["berth.dev/gpu-model"] = "H100"
	plane.CreatePods(pod)
	why := plane.WaitPending("no-such-model", 30*time.Second)
	if !strings.Contains(why, "0/3 nodes are available: 3 ") || !strings.Contains(strings.ToLower(why), "model") {
		t.Errorf("want the model named as the reason for 3 nodes, got %q", why)
	}
	harness.Eventually(t, "the reason to be in kubectl describe", 10*time.Second, func() error {
		return contains(plane.Kubectl("describe", "pod", "no-such-model"), why)
	})
}

// Berth takes the place of the extender that knows names, in the chain of upstream's own test.
func TestBerthIsALinkOfUpstreamsChain(t *testing.T) {
	needBerth(t)
	plane := harness.NewPlane(t)
	fiveMachines(plane)
	berth := plane.StartBerth("")
	chain := upstreamChain(t, plane)
	chain = append(chain, configv1.Extender{URLPrefix: berth.URL + "/extender", FilterVerb: "filter",
		PrioritizeVerb: "prioritize", PreemptVerb: "preempt", Weight: 1, NodeCacheCapable: true})
	plane.StartScheduler(chain...)
	wantOnMachine2(t, plane, harness.Ask{barResource: "1"})
}
