// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"berth.dev/e2e/harness"
)

// The node of a gang's member is drained, its kubelet dies, or its object is deleted: the Job makes another pod, and it
// joins the others.
func TestAMemberWhoseNodeGoesIsReplaced(t *testing.T) {
	const size = 3
	c := startControlled(t, 3*(size+1))
	faults := map[string]func(node string){
		"drained":   func(node string) { c.Kubectl("drain", node, "--timeout=60s") },
		"not-ready": c.kubelets.Silence,
		"deleted": func(node string) {
			if err := c.Client.CoreV1().Nodes().Delete(t.Context(), node, metav1.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
		},
	}
	gone := map[string]bool{}
	for job, fault := range faults {
		apply(t, c.Plane, gangJob(job, size, named(job, size)))
		c.waitRunning(t, ofJob, job, size, 30*time.Second)
		node := c.podsOf(t, ofJob, job)[0].Spec.NodeName
		gone[node] = true
		fault(node)
	}
	start := time.Now()
	for job := range faults {
		c.waitElsewhere(t, job, size, gone)
	}
	t.Logf("all are whole elsewhere %s later", time.Since(start))
	c.check(t)
}

// waitElsewhere waits until so many pods of a Job run on nodes that have not gone.
func (c controlled) waitElsewhere(t *testing.T, job string, want int, gone map[string]bool) {
	t.Helper()
	harness.Eventually(t, "the gang to be whole on other nodes", 100*time.Second, func() error {
		var nodes []string
		for _, pod := range c.podsOf(t, ofJob, job) {
			if pod.Spec.NodeName != "" && !gone[pod.Spec.NodeName] && pod.Status.Phase == v1.PodRunning {
				nodes = append(nodes, pod.Spec.NodeName)
			}
		}
		if len(nodes) != want {
			return fmt.Errorf("pods run on %v; gangs: %s", nodes, c.berth.Page("/debug/gangs"))
		}
		return nil
	})
}
