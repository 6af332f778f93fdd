// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"

	"berth.dev/e2e/harness"
)

// numaNode is a machine whose first four GPUs are NUMA node 0's, the others NUMA node 1's.
func numaNode(policy string) harness.MachineOptions {
	return harness.MachineOptions{FakeNUMA: true, Kubelet: "topologyManagerPolicy: " + policy + "\n",
		PluginFlags: append([]string{"-numa", "0,0,0,0,1,1,1,1"}, opposite...)}
}

// startNumaCluster starts a node with four GPUs on each of two NUMA nodes, and waits until its agent has said the policy.
func startNumaCluster(t *testing.T, policy string) agentCluster {
	t.Helper()
	c := startAgentCluster(t, numaNode(policy), "a")
	harness.Eventually(t, "Berth to know the policy", time.Minute, func() error {
		return c.says("Topology Manager policy "+policy, "explain", "node", "a")
	})
	return c
}

func TestNodeAgentPlansWithinWhatATopologyManagerOffers(t *testing.T) {
	for _, policy := range []string{"best-effort", "restricted", "single-numa-node"} {
		t.Run(policy, func(t *testing.T) {
			c := startNumaCluster(t, policy)
			// The first container no longer fits on the first NUMA node, the second one does.
			c.CreatePods(harness.Work("three", gpus(3)))
			c.WaitRunning(time.Minute)
			split := harness.Work("split", gpus(2))
			split.Spec.Containers = append(split.Spec.Containers, harness.WorkContainer("second", gpus(1)))
			c.CreatePods(split)
			c.WaitRunning(time.Minute)
			c.DeletePods()

			halves := harness.Work("halves", gpus(4))
			halves.Spec.Containers = append(halves.Spec.Containers, harness.WorkContainer("second", gpus(4)))
			c.runOne(halves)
			before := harness.Work("init-of-two", gpus(1))
			before.Spec.InitContainers = []v1.Container{harness.WorkContainer("first", gpus(2), "0.1")}
			before.Spec.Containers = append(before.Spec.Containers, harness.WorkContainer("second", gpus(1)))
			c.runOne(before)
			c.checkPlanned(t, 4)
		})
	}
}

// Without Berth's knowledge of the policy the kubelet would refuse one pod after the other.
func TestNodeAgentKeepsPodsFromATopologyManagerThatWouldRefuseThem(t *testing.T) {
	c := startNumaCluster(t, "single-numa-node")
	c.CreatePods(harness.Work("six", gpus(6)))
	harness.Eventually(t, "the pod of six to wait", 30*time.Second, func() error {
		six := c.Pod("six")
		if six.Spec.NodeName != "" || six.Status.Phase != v1.PodPending {
			t.Fatalf("it is on %q: %s %s", six.Spec.NodeName, six.Status.Phase, six.Status.Reason)
		}
		if why := harness.WhyPending(six); !strings.Contains(why, "Topology Manager policy") {
			return fmt.Errorf("its condition says %q", why)
		}
		return nil
	})
	wantParts(t, c.ask("explain", "pod", harness.Namespace+"/six"), "needs 6 in one NUMA node", "with 4 GPUs instead of 6")
	c.CreatePods(harness.Work("four", gpus(4)))
	c.WaitPhase("four", 30*time.Second, v1.PodRunning)
	if refusals := c.berth.Metric("berth_kubelet_refusals_total"); refusals != 0 {
		t.Errorf("%g pods were refused", refusals)
	}
}

// The kubelet refuses what no NUMA node has, by the name that Berth must know.
func TestNodeOfASingleNUMAPolicyRefusesSixOfEightGPUs(t *testing.T) {
	needNodes(t)
	plane := harness.NewPlane(t)
	options := numaNode("single-numa-node")
	options.Name = "a"
	plane.StartNode(options)
	plane.StartScheduler()
	plane.CreatePods(harness.Work("six", gpus(6)), harness.Work("two", gpus(2)))
	plane.WaitPhase("two", 30*time.Second, v1.PodRunning)
	if pod := plane.WaitPhase("six", 30*time.Second, v1.PodFailed); pod.Status.Reason != "TopologyAffinityError" {
		t.Errorf("want TopologyAffinityError, got %s: %s", pod.Status.Reason, pod.Status.Message)
	}
}

// With --lift-numa the kubelet knows of no NUMA nodes, and six GPUs fit.
func TestNodeAgentLiftsTheTopologyManagersLimit(t *testing.T) {
	c := startAgentCluster(t, numaNode("single-numa-node"), "a")
	node := c.nodes["a"]
	node.AgentProcess.Stop()
	node.StartAgent("--lift-numa")
	node.WaitGPUs()
	harness.Eventually(t, "the node to say so", 30*time.Second, func() error {
		return contains(node.Node().Annotations["berth.dev/kubelet"], `"numa":"lifted"`)
	})
	c.CreatePods(harness.Work("six", gpus(6)))
	c.WaitPhase("six", 30*time.Second, v1.PodRunning)
	c.checkPlanned(t, 1)
}
