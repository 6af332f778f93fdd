// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"berth.dev/e2e/harness"
)

// Every node has GPUs for the whole gang; a few have disk for two of its pods each, the others for none. A plan by
// GPUs, CPU and memory alone would go from node to node, and the pods would be refused meanwhile.
func TestAGangWithLocalScratchStartsWhereTheDiskSuffices(t *testing.T) {
	const small, large, pods = 20, 4, 8
	c := startCluster(t, 0)
	name := func(i int) string { return fmt.Sprintf("node-%04d", i) }
	for i := range small + large {
		disk := resource.MustParse("150Gi")
		if i >= small {
			disk = resource.MustParse("500Gi")
		}
		node := harness.Node(name(i), harness.GPUModel, 8)
		node.Status.Capacity[v1.ResourceEphemeralStorage] = disk
		node.Status.Allocatable[v1.ResourceEphemeralStorage] = disk
		c.AddNodes(node)
	}
	scratch := harness.Ask{harness.GPUResource: "1", v1.ResourceEphemeralStorage: "200Gi"}
	gang := harness.Pods("scratch", pods, scratch)
	for _, pod := range gang {
		inBerthsWords.join(pod, "scratch", pods)
	}
	c.CreatePods(gang...)
	c.WaitBound(60 * time.Second)
	for i := small; i < small+large; i++ {
		if there, err := c.ListPods("spec.nodeName=" + name(i)); err != nil || len(there) != 2 {
			t.Errorf("%s has %d pods of the gang, want 2 (%v)", name(i), len(there), err)
		}
	}
	for _, refused := range []string{`berth_calls_total{result="refused",verb="bind"}`,
		`berth_refusals_total{reason="gang_no_room"}`} {
		if got := c.berth.Metric(refused); got > 0 {
			t.Errorf("%s is %g, want 0: the first plan holds", refused, got)
		}
	}

	c.CreatePods(harness.Pod("one-more", scratch))
	if err := contains(c.WaitPending("one-more", 30*time.Second), "24 Insufficient ephemeral-storage"); err != nil {
		t.Error(err)
	}
}
