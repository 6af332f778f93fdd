// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"

	"berth.dev/e2e/harness"
)

const (
	forEver   = harness.RunsAnnotation + ": for-ever"
	ofJobSet  = "jobset.sigs.k8s.io/jobset-name"
	ofAttempt = "jobset.sigs.k8s.io/restart-attempt"
)

// driverAndWorkers is a JobSet of one gang: a driver without GPUs, and workers with 8 GPUs each.
func driverAndWorkers(name string, workers int, driverRuns, workersRun string) string {
	gang := named(name, workers+1)
	return fmt.Sprintf(`
apiVersion: jobset.x-k8s.io/v1alpha2
kind: JobSet
metadata: {name: %[1]s, namespace: default}
spec:
  failurePolicy: {maxRestarts: 5}
  replicatedJobs:
  - name: driver
    template:
      spec:
        parallelism: 1
        completions: 1
        backoffLimit: 0
        template:
          metadata: {annotations: {%[3]s, %[4]s}}
          spec:
            restartPolicy: Never
            terminationGracePeriodSeconds: 1
            containers: [{name: main, image: none, resources: {requests: {cpu: 100m}}}]
  - name: workers
    template:
      spec:
        parallelism: %[2]d
        completions: %[2]d
        backoffLimit: 0
        template:
          metadata: {annotations: {%[3]s, %[5]s}}
          spec:
            restartPolicy: Never
            terminationGracePeriodSeconds: 1
            containers: [{name: main, image: none, resources: {limits: {nvidia.com/gpu: 8}}}]
`, name, workers, gang, driverRuns, workersRun)
}

// byAttempt tells the attempts of JobSets of so many pods apart.
func byAttempt(size int) func(*v1.Pod) (string, int) { return byLabels(size, ofJobSet, ofAttempt) }

// A driver holds no GPU and is made some milliseconds before its workers.
func TestBehindJobSetADriverWaitsForItsWorkers(t *testing.T) {
	const nodes, workers, sets = 4, 4, 5
	c := startBehind(t, nodes, jobSet)
	c.fill(t, nodes)
	watched := c.WatchGangsBy(byAttempt(workers + 1))
	for i := range sets {
		apply(t, c.Plane, driverAndWorkers(fmt.Sprintf("mpi%d", i), workers, harness.RunsAnnotation+": 3s", harness.RunsAnnotation+": 3s"))
	}
	time.Sleep(5 * time.Second)
	if alone := watched.InPart(); len(alone) > 0 {
		t.Errorf("on a full cluster %d of %d JobSets run in part: %v", len(alone), sets, alone)
	}
	c.empty(t, nodes)
	watched.WaitWhole(sets, 2*time.Minute)
	slowest, which := watched.SlowestStart()
	t.Logf("slowest from the first pod to the last: %s (%s)", slowest, which)
	c.check(t)
}

// A worker fails: JobSet deletes all pods and makes them again, beside another gang that waits for the same room.
func TestBehindJobSetARestartIsWholeAgain(t *testing.T) {
	const nodes, workers = 4, 4
	c := startBehind(t, nodes, jobSet)
	watched := c.WatchGangsBy(byAttempt(workers + 1))
	apply(t, c.Plane, driverAndWorkers("first", workers, forEver, forEver))
	watched.WaitWhole(1, 30*time.Second)
	apply(t, c.Plane, driverAndWorkers("second", workers, harness.RunsAnnotation+": 4s", harness.RunsAnnotation+": 4s"))
	for _, pod := range c.podsOf(t, ofJobSet, "first") {
		if pod.Labels["jobset.sigs.k8s.io/replicatedjob-name"] == "workers" {
			c.kubelets.End(pod.UID, 1)
			break
		}
	}
	watched.WaitWhole(3, time.Minute) // the second set, and the first again
	if part := watched.InPart(); len(part) > 0 {
		t.Errorf("run in part: %v", part)
	}
	c.check(t)
}
