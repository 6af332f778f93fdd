// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

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

// The first gang would fit on no empty cluster of this size; the second one needs 12 of the 16 GPUs.
func TestAGangOfHigherPriorityMakesRoomForAllOfItOrForNoneOfIt(t *testing.T) {
	plane := fullPlane(t)
	gang := func(name string, size int) []*v1.Pod {
		pods := aGang(name, size, 4, inBerthsWords)
		for _, pod := range pods {
			pod.Spec.PriorityClassName = "high"
		}
		return pods
	}
	left := func(want int) {
		t.Helper()
		if pods, err := plane.ListPods(""); err != nil || len(pods) != want {
			t.Errorf("want %d pods, got %d (%v)", want, len(pods), err)
		}
	}

	large := gang("large", 5)
	plane.CreatePods(large...)
	plane.WaitPending(large[4].Name, 30*time.Second)
	time.Sleep(3 * time.Second) // room for evictions that must not come
	left(16 + 5)
	for _, pod := range large {
		if err := plane.Client.CoreV1().Pods(harness.Namespace).Delete(t.Context(), pod.Name, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
	}

	began := time.Now()
	plane.CreatePods(gang("fits", 3)...)
	plane.WaitBound(60 * time.Second)
	t.Logf("the gang ran after %.1f s", time.Since(began).Seconds())
	plane.CheckGrants()
	left(3 + 4)
}

// A gang on three nodes stays where only two of its pods are in the way, and goes whole where all are.
func TestAGangOnSeveralNodesIsEvictedWholeOrNotAtAll(t *testing.T) {
	plane := startCluster(t, 3)
	plane.AddPriorityClass("high", 1000)
	plane.CreatePods(aGang("low", 3, 8, inBerthsWords)...)
	plane.WaitBound(30 * time.Second)
	important := func(name string, size int) []*v1.Pod {
		pods := aGang(name, size, 8, inBerthsWords)
		for _, pod := range pods {
			pod.Spec.PriorityClassName = "high"
		}
		return pods
	}
	pair := important("pair", 2)
	plane.CreatePods(pair...)
	plane.WaitPending(pair[1].Name, 30*time.Second)
	time.Sleep(3 * time.Second) // room for evictions that must not come
	if pods, err := plane.ListPods(""); err != nil || len(pods) != 3+2 {
		t.Errorf("want nobody evicted, so 5 pods, got %d (%v)", len(pods), err)
	}
	plane.Kubectl("delete", "pod", pair[0].Name, pair[1].Name)
	plane.CreatePods(important("three", 3)...)
	plane.WaitBound(60 * time.Second)
	plane.CheckGrants()
	if pods, err := plane.ListPods(""); err != nil || len(pods) != 3 {
		t.Errorf("want the whole gang evicted, so 3 pods, got %d (%v)", len(pods), err)
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

// kube-scheduler alone evicts the pod that started last, which has saved nothing for 31 hours.
func TestOfPodsOfOnePriorityTheOneThatHasSavedItsWorkIsEvicted(t *testing.T) {
	plane := startCluster(t, 1).Plane
	plane.AddPriorityClass("high", 1000)
	now := time.Now()
	run := func(name string, started, saved time.Duration) {
		pod := harness.Pod(name, harness.Ask{harness.GPUResource: "4"})
		pod.Annotations["berth.dev/checkpointed-at"] = now.Add(-saved).UTC().Format(time.RFC3339)
		plane.CreatePods(pod)
		plane.WaitBound(30 * time.Second)
		pod = plane.Pod(name)
		pod.Status.Phase = v1.PodRunning
		pod.Status.StartTime = &metav1.Time{Time: now.Add(-started)}
		if _, err := plane.Client.CoreV1().Pods(pod.Namespace).UpdateStatus(t.Context(), pod, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	run("saved", 40*time.Hour, 30*time.Second)
	run("unsaved", 31*time.Hour, 31*time.Hour)

	high := harness.Pod("high", harness.Ask{harness.GPUResource: "4"})
	high.Spec.PriorityClassName = "high"
	plane.CreatePods(high)
	plane.WaitBound(60 * time.Second)
	plane.WaitGone("saved", 10*time.Second)
	plane.CheckGrants()
	if left, err := plane.ListPods(""); err != nil || len(left) != 2 {
		t.Errorf("want the pod and the one that has saved nothing, got %d pods (%v)", len(left), err)
	}
}
