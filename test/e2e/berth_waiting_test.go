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

// A gang of three nodes waits with two that are idle, for a job on the third to end; sixteen small pods come meanwhile. Left to
// themselves they take the idle nodes, and what is idle of the third, and the gang waits on.
func TestAGangGetsItsNodesBesideSmallPods(t *testing.T) {
	plane := startCluster(t, 3)
	job := harness.Pods("job", 1, harness.Ask{harness.GPUResource: "4"})
	job[0].Spec.RestartPolicy = v1.RestartPolicyNever
	bound := plane.WatchBound()
	plane.CreatePods(job...)
	bound.WaitFor(1, 10*time.Second)

	watched := plane.WatchGangs(map[string]int{"train": 3}, 0)
	plane.CreatePods(aGang("train", 3, 8, inBerthsWords)...)
	harness.Eventually(t, "all idle GPUs to be kept for the gang", 10*time.Second, func() error {
		if kept := plane.berth.Metric("berth_earmarked_gpus"); kept != 20 {
			return fmt.Errorf("%v are", kept)
		}
		return nil
	})
	attempts := plane.WatchAttempts()
	plane.CreatePods(oneGPUEach("small", 16)...)
	placed := attempts.WaitForAll(1+3+16, 30*time.Second)
	if len(placed) != 1 || !placed[job[0].Name] {
		t.Errorf("want the job alone to have a node, got %v", placed)
	}
	now := int64(0)
	if err := plane.Client.CoreV1().Pods(harness.Namespace).Delete(t.Context(), job[0].Name,
		metav1.DeleteOptions{GracePeriodSeconds: &now}); err != nil {
		t.Fatal(err)
	}
	watched.WaitWhole(1, 20*time.Second)
	plane.CheckGrants()
}

// jobUntil is a Job of one pod that runs for that long at most.
func jobUntil(name string, gpus, seconds int) string {
	return fmt.Sprintf(`
apiVersion: batch/v1
kind: Job
metadata: {name: %s, namespace: default}
spec:
  activeDeadlineSeconds: %d
  template:
    spec:
      restartPolicy: Never
      containers: [{name: main, image: none, resources: {limits: {nvidia.com/gpu: %d}}}]
`, name, seconds, gpus)
}

// A Job with half of the only node says until when it runs. Once a pod of the whole node has waited for a minute, the node is
// reserved for it, though kube-scheduler asks nobody about that pod: its own count leaves no node. Of the Jobs that come then the one
// that ends before gets in.
func TestTheDeadlineOfAJobReservesItsNode(t *testing.T) {
	c := startControlled(t, 1)
	apply(t, c.Plane, jobUntil("long", 4, 3600))
	c.waitRunning(t, ofJob, "long", 1, 30*time.Second)
	c.CreatePods(harness.Pod("whole", harness.Ask{harness.GPUResource: "8"}))
	harness.Eventually(t, "the node to be reserved", 100*time.Second, func() error {
		return c.says(" when 1 pod on node-0000 ends", "explain", "pod", "default/whole")
	})

	apply(t, c.Plane, jobUntil("later", 1, 7200))
	harness.Eventually(t, "the Job that ends later to be passed over", 30*time.Second, func() error {
		for _, pod := range c.podsOf(t, ofJob, "later") {
			return c.says("passed over: it would delay default/whole", "explain", "pod", "default/"+pod.Name)
		}
		return fmt.Errorf("it has no pod yet")
	})
	apply(t, c.Plane, jobUntil("sooner", 1, 600))
	c.waitRunning(t, ofJob, "sooner", 1, 30*time.Second)
	if runs := c.runningOf(t, ofJob, "later"); runs != 0 {
		t.Errorf("the Job that ends later runs")
	}
	c.check(t)
}
