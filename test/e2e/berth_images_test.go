// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"

	"berth.dev/e2e/harness"
)

// Every node has pulled another large image. The nodes are alike to Berth, which gives them the same priority, so that
// kube-scheduler's own score decides (ImageLocality, with its default weight). By chance all would find their
// images once in 720 times.
func TestAmongNodesThatAreAlikeThePodsImageDecides(t *testing.T) {
	const nodes = 6
	imageOf := func(node int) string { return fmt.Sprintf("registry.example/train-%d:v1", node) }
	c := startCluster(t, 0)
	for i := range nodes {
		node := harness.Node(fmt.Sprintf("node-%04d", i), harness.GPUModel, 8)
		node.Status.Images = []v1.ContainerImage{{Names: []string{imageOf(i)}, SizeBytes: 12 << 30}}
		c.AddNodes(node)
	}
	harness.Eventually(t, "Berth to know the nodes", 30*time.Second, func() error {
		if got := c.berth.Metric("berth_nodes"); got != nodes {
			return fmt.Errorf("it knows %g", got)
		}
		return nil
	})

	place := func(image int, gpus string) string {
		t.Helper()
		pod := harness.Pod(fmt.Sprintf("train-%d-%s", image, gpus), harness.Ask{harness.GPUResource: gpus})
		pod.Spec.Containers[0].Image = imageOf(image)
		c.CreatePods(pod)
		c.WaitBound(30 * time.Second)
		return c.Pod(pod.Name).Spec.NodeName
	}
	wantAtItsImage := func(image int, gpus string) {
		t.Helper()
		if got, want := place(image, gpus), fmt.Sprintf("node-%04d", image); got != want {
			t.Errorf("the pod with image %d is on %s, want %s", image, got, want)
		}
	}
	for _, image := range []int{4, 1, 5, 0} {
		wantAtItsImage(image, "8")
	}
	wantAtItsImage(3, "1")
	// A GPU of a node in use is worth more than the image that the idle node has.
	if got := place(2, "1"); got != "node-0003" {
		t.Errorf("the pod with image 2 is on %s, want node-0003, which is in use", got)
	}
}
