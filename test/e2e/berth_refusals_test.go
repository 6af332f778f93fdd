// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"berth.dev/e2e/harness"
)

// setStatus does what the kubelet of the pod's node would.
func setStatus(t *testing.T, c cluster, name string, phase v1.PodPhase, reason string) {
	t.Helper()
	pod := c.Pod(name)
	pod.Status.Phase, pod.Status.Reason = phase, reason
	if reason == "UnexpectedAdmissionError" {
		pod.Status.Message = "Allocate failed due to no healthy devices present; cannot allocate unhealthy devices " +
			harness.GPUResource + ", which is unexpected"
	}
	if _, err := c.Client.CoreV1().Pods(harness.Namespace).UpdateStatus(t.Context(), pod, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// A node with a dead GPU stays ready and publishes all of them. A scheduler that packs sends it pod after pod.
func TestANodeThatRefusesItsPodsGetsNoMore(t *testing.T) {
	c := startCluster(t, 2)
	full := harness.Pod("full", harness.Ask{harness.GPUResource: "7"})
	full.Spec.NodeSelector = on("node-0000")
	c.CreatePods(full)
	c.WaitBound(30 * time.Second)
	setStatus(t, c, "full", v1.PodRunning, "")

	// Each pod would best go to the one GPU that is left there.
	lost := 0
	for number := range 6 {
		name := fmt.Sprintf("p-%d", number)
		c.CreatePods(harness.Pod(name, harness.Ask{harness.GPUResource: "1"}))
		harness.Eventually(t, name+" to be bound", 30*time.Second, func() error {
			if c.Pod(name).Spec.NodeName == "" {
				return fmt.Errorf("it is not: %s", harness.WhyPending(c.Pod(name)))
			}
			return nil
		})
		if c.Pod(name).Spec.NodeName != "node-0000" {
			setStatus(t, c, name, v1.PodRunning, "")
			continue
		}
		lost++
		setStatus(t, c, name, v1.PodFailed, "UnexpectedAdmissionError")
		harness.Eventually(t, "Berth to learn of it", 15*time.Second, func() error {
			if got := c.berth.Metric("berth_kubelet_refusals_total"); got != float64(lost) {
				return fmt.Errorf("it knows of %g refusals, want %d", got, lost)
			}
			return nil
		})
	}
	if lost != 2 {
		t.Errorf("%d pods were lost, want 2", lost)
	}
	if nodes := c.berth.Metric("berth_nodes_refusing_gpu_pods"); nodes != 1 {
		t.Errorf("%g nodes are closed, want 1", nodes)
	}
	wantParts(t, c.ask("explain", "node", "node-0000"), "its kubelet rejected the last GPU pods")

	// The device plugin finds the dead GPU: what is left is used at once.
	node, err := c.Client.CoreV1().Nodes().Get(t.Context(), "node-0000", metav1.GetOptions{})
	if err == nil {
		node.Status.Allocatable[harness.GPUResource] = resource.MustParse("7")
		_, err = c.Client.CoreV1().Nodes().UpdateStatus(t.Context(), node, metav1.UpdateOptions{})
	}
	if err != nil {
		t.Fatal(err)
	}
	harness.Eventually(t, "the node to be open again", 15*time.Second, func() error {
		if nodes := c.berth.Metric("berth_nodes_refusing_gpu_pods"); nodes != 0 {
			return fmt.Errorf("%g nodes are closed", nodes)
		}
		return nil
	})
}

// A Topology Manager refuses pods of one size and takes others: each node loses two of them, not all.
func TestANodeThatRefusesPodsOfOneSizeGoesOnTakingOthers(t *testing.T) {
	c := startCluster(t, 2)
	lost := map[string]int{}
	for number := range 4 {
		name := fmt.Sprintf("six-%d", number)
		c.CreatePods(harness.Pod(name, harness.Ask{harness.GPUResource: "6"}))
		c.WaitBound(30 * time.Second)
		lost[c.Pod(name).Spec.NodeName]++
		setStatus(t, c, name, v1.PodFailed, "TopologyAffinityError")
		harness.Eventually(t, "Berth to learn of it", 15*time.Second, func() error {
			if got := c.berth.Metric("berth_kubelet_refusals_total"); got != float64(number+1) {
				return fmt.Errorf("it knows of %g refusals, want %d", got, number+1)
			}
			return nil
		})
	}
	if lost["node-0000"] != 2 || lost["node-0001"] != 2 {
		t.Errorf("want two pods lost on each node, got %v", lost)
	}
	c.CreatePods(harness.Pod("six-4", harness.Ask{harness.GPUResource: "6"}))
	why := c.WaitPending("six-4", 30*time.Second)
	if err := contains(why, "node(s) had a kubelet that rejected the last pods asking for the same resources"); err != nil {
		t.Error(err)
	}
	if got := c.berth.Metric("berth_asks_refused_by_nodes"); got != 2 {
		t.Errorf("%g asks are refused, want 2", got)
	}
	wantParts(t, c.ask("explain", "node", "node-0000"), "its kubelet rejected the last pods that ask for 6 GPUs")
	if nodes := c.berth.Metric("berth_nodes_refusing_gpu_pods"); nodes != 0 {
		t.Errorf("%g nodes are closed, want none", nodes)
	}
	c.CreatePods(harness.Pod("four", harness.Ask{harness.GPUResource: "4"}))
	harness.Eventually(t, "four to be bound", 30*time.Second, func() error {
		if c.Pod("four").Spec.NodeName == "" {
			return fmt.Errorf("it is not: %s", harness.WhyPending(c.Pod("four")))
		}
		return nil
	})
}

// Pods that name their node are refused rightly where it has no room. That closes it for nobody.
func TestPodsThatNameTheirNodeCloseItForNobody(t *testing.T) {
	c := startCluster(t, 1)
	c.CreatePods(harness.Pod("full", harness.Ask{harness.GPUResource: "7"}))
	c.WaitBound(30 * time.Second)
	setStatus(t, c, "full", v1.PodRunning, "")
	for number := range 3 {
		pod := harness.Pod(fmt.Sprintf("past-%d", number), harness.Ask{harness.GPUResource: "8"})
		pod.Spec.NodeName = "node-0000"
		pod.Annotations = map[string]string{"berth.dev/decision": "0123456789abcdef"}
		c.CreatePods(pod)
		setStatus(t, c, pod.Name, v1.PodFailed, "OutOfnvidia.com/gpu")
	}
	// Berth asks what became of pods once a second.
	time.Sleep(3 * time.Second)
	c.CreatePods(harness.Pod("one", harness.Ask{harness.GPUResource: "1"}))
	harness.Eventually(t, "one to be bound", 30*time.Second, func() error {
		if c.Pod("one").Spec.NodeName == "" {
			return fmt.Errorf("it is not: %s", harness.WhyPending(c.Pod("one")))
		}
		return nil
	})
	for _, metric := range []string{"berth_nodes_refusing_gpu_pods", "berth_kubelet_refusals_total"} {
		if got := c.berth.Metric(metric); got != 0 {
			t.Errorf("%s is %g, want 0", metric, got)
		}
	}
}
