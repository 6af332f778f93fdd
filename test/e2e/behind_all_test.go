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

// The gangs of TestBehindAllTwentyGangsRunThroughKills: twenty that ask for twice the GPUs there are.
const (
	jobSets, lwsGroups, kueueGroups = 8, 6, 6
	gangNodes                       = 3
	kills                           = 3
)

func byAnyController(pod *v1.Pod) (string, int) {
	for _, of := range []func(*v1.Pod) (string, int){byAttempt(gangNodes + 1), byLWSGroup(gangNodes)} {
		if gang, minimum := of(pod); gang != "" {
			return gang, minimum
		}
	}
	return pod.Labels[ofKueueGroup], gangNodes
}

func TestBehindAllTwentyGangsRunThroughKills(t *testing.T) {
	const gangs = jobSets + lwsGroups + kueueGroups
	c := startBehind(t, gangs*gangNodes/2, jobSet, lwsGang, kueue)
	apply(t, c.Plane, fmt.Sprintf(kueueQueue, 8*gangs*gangNodes))
	watched := c.WatchGangsBy(byAnyController)
	const runs = harness.RunsAnnotation + ": 25s"
	for i := range max(jobSets, lwsGroups, kueueGroups) { // the last ones come to a full cluster
		if i < lwsGroups {
			apply(t, c.Plane, leaderWorkerSet(fmt.Sprintf("serve%d", i), "LeaderCreated", 1, gangNodes))
		}
		if i < kueueGroups {
			c.CreatePods(kueueGroup(fmt.Sprintf("group%d", i), gangNodes, "25s")...)
		}
		if i < jobSets {
			apply(t, c.Plane, driverAndWorkers(fmt.Sprintf("set%d", i), gangNodes, runs, runs))
		}
	}

	restarts, start := 0, time.Now()
	for round := 1; round <= kills; round++ {
		for deadline := start.Add(time.Duration(round) * 20 * time.Second); time.Now().Before(deadline); time.Sleep(time.Second) {
			c.endServers(t)
			if restarts < 2 && c.failOneWorker(t, fmt.Sprintf("set%d", restarts)) {
				restarts++
			}
		}
		t.Logf("round %d: in part: %v", round, watched.InPart())
		c.killAll(t, round == 2)
	}
	harness.Eventually(t, "all gangs to have run", 100*time.Second, func() error {
		c.endServers(t)
		if whole := watched.Whole(); whole < gangs+restarts {
			return fmt.Errorf("%d of %d; in part: %v", whole, gangs+restarts, watched.InPart())
		}
		return nil
	})
	slowest, which := watched.SlowestStart()
	t.Logf("%d gangs and %d restarts ran in %s; slowest from the first pod to the last: %s (%s)", gangs, restarts,
		time.Since(start), slowest, which)
	if part := watched.InPart(); len(part) > 0 {
		t.Errorf("in part at the end: %v", part)
	}
	c.check(t)
}

// killAll kills Berth, kube-scheduler and, where asked, the API server, and starts them again.
func (c controlled) killAll(t *testing.T, apiServer bool) {
	t.Helper()
	c.CheckGrants()
	c.berth.Kill()
	c.scheduler.Kill()
	if apiServer {
		c.StopAPIServer()
		c.StartAPIServer()
	}
	c.berth.Start()
	c.scheduler.Restart()
}

// endServers deletes the sets of LWS all of whose pods run: they do not end by themselves.
func (c controlled) endServers(t *testing.T) {
	t.Helper()
	for i := range lwsGroups {
		if name := fmt.Sprintf("serve%d", i); c.runningOf(t, ofLWS, name) == gangNodes {
			c.Kubectl("delete", "leaderworkerset", name, "--wait=false", "--ignore-not-found")
		}
	}
}

// failOneWorker has a worker of a JobSet fail that runs with all its pods.
func (c controlled) failOneWorker(t *testing.T, set string) bool {
	t.Helper()
	if c.runningOf(t, ofJobSet, set) < gangNodes+1 {
		return false
	}
	for _, pod := range c.podsOf(t, ofJobSet, set) {
		if strings.Contains(pod.Name, "workers") {
			c.kubelets.End(pod.UID, 1)
			return true
		}
	}
	return false
}
