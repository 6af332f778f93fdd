// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"testing"
	"time"

	"berth.dev/e2e/harness"
)

// The configuration of Berth that elects a leader.
const electLeader = "leaderElection:\n  enabled: true\n"

// ready waits until exactly one of them is ready, as a Service sees them, and gives its index.
func ready(t *testing.T, berths []*harness.Berth) int {
	t.Helper()
	leader := -1
	harness.Eventually(t, "one Berth of two to be ready", time.Minute, func() error {
		var who []int
		for i, berth := range berths {
			if berth.Running() && berth.Ready() == nil {
				who = append(who, i)
			}
		}
		if len(who) != 1 {
			return fmt.Errorf("ready: %v", who)
		}
		leader = who[0]
		return nil
	})
	return leader
}

// The Service: a proxy whose target is the Berth that is ready.
func TestLeadershipIsHandedOverInTheMiddleOfBinds(t *testing.T) {
	needBerth(t)
	plane := harness.NewPlane(t)
	plane.CreateNodes(64)
	plane.GrantBerth()
	kubeconfig := plane.BerthKubeconfig(plane.URL(), plane.Token())
	var berths []*harness.Berth
	for _, name := range []string{"berth-a", "berth-b"} {
		berth := plane.NewBerth(name, kubeconfig, electLeader)
		berth.Start()
		berths = append(berths, berth)
	}
	leader := ready(t, berths)
	service := harness.NewProxy(t, berths[leader].Listen)
	bound := plane.WatchBound()
	plane.CreatePods(oneGPUEach("pod", manyPods)...)
	plane.StartScheduler(harness.ShippedExtenders(t, "http://"+service.Address())...)
	bound.WaitFor(manyPods/4, time.Minute)

	berths[leader].Kill()
	wantHalfway(t, plane)
	next := ready(t, berths)
	if next == leader {
		t.Fatalf("%d leads again", next)
	}
	service.Target(berths[next].Listen)
	wantAllPlaced(t, plane)
}
