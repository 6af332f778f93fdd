// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"berth.dev/e2e/harness"
)

// needBerth fails the test where there is no Berth to test.
func needBerth(t *testing.T) {
	t.Helper()
	if missing := harness.BerthMissing(); missing != "" {
		t.Fatal(missing)
	}
}

// cluster is a control plane with Berth in front of kube-scheduler, as the shipped configuration puts it there.
type cluster struct {
	*harness.Plane
	berth     *harness.Berth
	scheduler *harness.Scheduler
}

// startCluster starts one with so many nodes of 8 GPUs; Berth finds these definitions of resources there.
func startCluster(t *testing.T, nodes int, definitions ...string) cluster {
	t.Helper()
	needBerth(t)
	c := cluster{Plane: harness.NewPlane(t)}
	c.CreateNodes(nodes)
	for _, definition := range definitions {
		define(t, c.Plane, definition)
	}
	c.berth = c.StartBerth("")
	c.scheduler = c.StartScheduler(harness.ShippedExtenders(t, c.berth.URL)...)
	return c
}

// contains is nil when part is in text.
func contains(text, part string) error {
	if strings.Contains(text, part) {
		return nil
	}
	return fmt.Errorf("no %q in\n%s", part, text)
}

// oneGPUEach are count pods that fill the nodes one GPU at a time and need next to no CPU.
func oneGPUEach(prefix string, count int) []*v1.Pod {
	pods := harness.Pods(prefix, count, harness.Ask{harness.GPUResource: "1"})
	for _, pod := range pods {
		pod.Spec.Containers[0].Resources.Limits[v1.ResourceCPU] = resource.MustParse("100m")
	}
	return pods
}
