// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"testing"
	"time"

	"berth.dev/e2e/harness"
)

// A cluster whose GPU nodes are empty and have no taint. kube-scheduler alone takes the emptiest node, which these are.
func TestPodsWithoutGpusStayOffGpuNodesWhileOthersHaveRoom(t *testing.T) {
	const gpuNodes, cpuNodes, pods = 4, 12, 1000
	c := startCluster(t, gpuNodes)
	for i := range cpuNodes {
		c.AddNodes(harness.Node(fmt.Sprintf("cpu-%02d", i), "", 0))
	}
	harness.Eventually(t, "Berth to know the nodes", 30*time.Second, func() error {
		if got := c.berth.Metric("berth_nodes"); got != gpuNodes+cpuNodes {
			return fmt.Errorf("it knows %g", got)
		}
		return nil
	})
	if got := c.berth.Metric("berth_unguarded_gpu_nodes"); got != gpuNodes {
		t.Errorf("berth_unguarded_gpu_nodes is %g, want %d", got, gpuNodes)
	}

	onGpuNodes := func() int {
		count := 0
		for i := range gpuNodes {
			there, err := c.ListPods(fmt.Sprintf("spec.nodeName=node-%04d", i))
			if err != nil {
				t.Fatal(err)
			}
			count += len(there)
		}
		return count
	}
	c.CreatePods(harness.Pods("web", pods, nil)...)
	c.WaitBound(5 * time.Minute)
	if lost := onGpuNodes(); lost > 0 {
		t.Errorf("%d of %d pods without GPUs are on GPU nodes", lost, pods)
	}

	// No condition: where the others are full, they go there rather than wait.
	rest := harness.Pods("more", 200, nil) // 1,152 CPUs are beside the GPUs
	c.CreatePods(rest...)
	c.WaitBound(2 * time.Minute)
	if got := onGpuNodes(); got != pods+len(rest)-cpuNodes*96 {
		t.Errorf("%d pods are on GPU nodes, want the %d for which no other has room", got, pods+len(rest)-cpuNodes*96)
	}
}
