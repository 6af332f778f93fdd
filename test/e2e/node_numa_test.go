// SPDX-License-Identifier: Apache-2.0

package e2e

import (
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

// Three and two GPUs do not fit on one NUMA node: the second pod's are on the other one.
func TestNodeAgentCarriesOutPlansWithinTheTopologyManagers(t *testing.T) {
	for _, policy := range []string{"best-effort", "single-numa-node"} {
		t.Run(policy, func(t *testing.T) {
			c := startAgentCluster(t, numaNode(policy), "a")
			c.CreatePodsInOrder(harness.Work("three", gpus(3)))
			c.WaitPhase("three", 30*time.Second, v1.PodRunning)
			c.CreatePodsInOrder(harness.Work("two", gpus(2)))
			c.WaitPhase("two", 30*time.Second, v1.PodRunning)
			c.checkPlanned(t, 2)
		})
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
