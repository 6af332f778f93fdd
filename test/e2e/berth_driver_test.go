// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"

	"berth.dev/e2e/harness"
)

// A driver holds no GPU, and its controller makes it some milliseconds before the workers: on a full cluster it waits
// with them, since it would fail beside an empty gang.
func TestADriverThatComesBeforeItsWorkersWaitsForThem(t *testing.T) {
	const nodes, gangs = 2, 5
	c := startCluster(t, nodes)
	c.CreatePods(harness.Pods("filler", nodes, harness.Ask{harness.GPUResource: "8"})...)
	c.WaitBound(30 * time.Second)
	minimum := map[string]int{}
	for i := range gangs {
		minimum[fmt.Sprintf("mpi%d", i)] = nodes + 1
	}
	watched := c.WatchGangs(minimum, time.Second)
	for gang, size := range minimum {
		driver := harness.Pod(gang+"-driver", nil)
		driver.Labels = map[string]string{harness.GangLabel: gang}
		workers := aGang(gang, nodes, 8, inBerthsWords)
		for _, pod := range append([]*v1.Pod{driver}, workers...) {
			inBerthsWords.join(pod, gang, size)
		}
		c.CreatePods(driver)
		time.Sleep(10 * time.Millisecond)
		c.CreatePods(workers...)
	}
	time.Sleep(3 * time.Second)
	if alone := watched.InPart(); len(alone) > 0 {
		t.Errorf("%d of %d drivers run without their workers: %v", len(alone), gangs, alone)
	}
	c.Kubectl("delete", "pod", "filler-0000", "filler-0001", "--wait=false")
	watched.WaitWhole(gangs, time.Minute)
	c.CheckGrants()
}
