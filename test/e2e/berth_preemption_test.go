// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"testing"
	"time"

	"berth.dev/e2e/harness"
)

// A plane with Berth whose two nodes are full of 16 pods, and a class of priority, high, that overrides theirs.
func fullPlane(t *testing.T) *harness.Plane {
	t.Helper()
	plane := startCluster(t, 2)
	plane.AddPriorityClass("high", 1000)
	plane.CreatePods(oneGPUEach("low", 16)...)
	plane.WaitBound(30 * time.Second)
	return plane.Plane
}

func TestAPodOfHigherPriorityTakesTheGPUsOfLowerOnes(t *testing.T) {
	plane := fullPlane(t)

	high := harness.Pod("high", harness.Ask{harness.GPUResource: "4"})
	high.Spec.PriorityClassName = "high"
	plane.CreatePods(high)
	plane.WaitBound(60 * time.Second)
	plane.CheckGrants()
	left, err := plane.ListPods("")
	if err != nil || len(left) != 1+12 {
		t.Errorf("want the pod and the 12 whose GPUs it did not need, got %d pods (%v)", len(left), err)
	}
}

// Shares are invisible to the scheduler's own preemption: without a victim that helps nobody may be evicted.
func TestNobodyIsEvictedForAPodThatCannotFitAnyway(t *testing.T) {
	plane := fullPlane(t)

	high := harness.Pod("high", harness.Ask{harness.GPUResource: "4"})
	high.Spec.PriorityClassName = "high"
	high.Annotations["berth.dev/gpu-model"] = "H100"
	plane.CreatePods(high)
	plane.WaitPending("high", 30*time.Second)
	time.Sleep(3 * time.Second) // room for evictions that must not come
	if left, err := plane.ListPods(""); err != nil || len(left) != 1+16 {
		t.Errorf("want all 17 pods, got %d (%v)", len(left), err)
	}
}
