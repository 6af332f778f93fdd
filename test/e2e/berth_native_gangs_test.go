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

// Gangs of Kubernetes itself: kube-scheduler takes all members at once, and asks about each.
var inKubernetesWords = convention{"kubernetes", func(pod *v1.Pod, gang string, _ int) { byField(pod, gang) }}

// needNativeGangs skips the test where kube-scheduler tries gangs that do not fit without pause, as 1.36 does (17,859
// filters in 20 s).
func needNativeGangs(t *testing.T) {
	t.Helper()
	needBerth(t)
	if version := harness.KubernetesVersion(t); strings.HasPrefix(version, "1.36.") {
		t.Skipf("Kubernetes' own gangs are tested on 1.37 and later, this is %s", version)
	}
}

// newNativePlane is a control plane whose kube-scheduler schedules gangs by itself.
func newNativePlane(t *testing.T, nodes int) *harness.Plane {
	t.Helper()
	plane := planeWithNativeGroups(t)
	plane.SchedulerFlags = []string{"--feature-gates=GenericWorkload=true"}
	plane.CreateNodes(nodes)
	return plane
}

// nativeGang is the pods of a gang with so many GPUs each.
func nativeGang(name string, size, gpus int) []*v1.Pod {
	return aGang(name, size, gpus, inKubernetesWords)
}

// nativeGroupOf is the PodGroup of so many pods that have to start together.
func nativeGroupOf(t *testing.T, name string, size int) string {
	return fmt.Sprintf(nativePodGroup, nativeAPI(t), name, size)
}

// createNative creates a gang all of whose pods have to start together.
func createNative(t *testing.T, plane *harness.Plane, name string, pods []*v1.Pod, priorityClass string) {
	t.Helper()
	group := nativeGroupOf(t, name, len(pods))
	if priorityClass != "" {
		group = strings.Replace(group, "spec: {", "spec: {priorityClassName: "+priorityClass+", ", 1)
	}
	apply(t, plane, group)
	for _, pod := range pods {
		pod.Spec.PriorityClassName = priorityClass
	}
	plane.CreatePods(pods...)
}

func TestNativeGangsStartWholeOrNotAtAll(t *testing.T) {
	needNativeGangs(t)
	const nodes = 4
	plane := newNativePlane(t, nodes)
	berth := plane.StartBerth("")
	plane.StartScheduler(harness.ShippedExtenders(t, berth.URL)...)
	watched := plane.WatchGangs(map[string]int{"fits": nodes, "large": nodes + 1}, 0)

	createNative(t, plane, "large", nativeGang("large", nodes+1, 8), "")
	t.Logf("of the gang that does not fit: %s", plane.WaitPending("large-0000", 30*time.Second))
	start := time.Now()
	createNative(t, plane, "fits", nativeGang("fits", nodes, 8), "")
	watched.WaitWhole(1, time.Minute)
	t.Logf("the gang that fits was whole after %s", time.Since(start))
	plane.CheckGrants()
	if bound := watched.Bound("large"); bound > 0 {
		t.Errorf("%d pods of a gang that does not fit were bound", bound)
	}

	before := berth.Metric("berth_calls_total")
	plane.Kubectl("delete", "pod", "--selector="+harness.GangLabel+"=fits", "--wait=false")
	plane.AddNodes(harness.Node("one-more", harness.GPUModel, 8))
	start = time.Now()
	watched.WaitWhole(2, 2*time.Minute)
	t.Logf("the gang that did not fit was whole %s after there was room, %.0f calls later", time.Since(start),
		berth.Metric("berth_calls_total")-before)
	plane.CheckGrants()
	wantNonePartial(t, berth)
}

// kube-scheduler evicts for a whole gang, or for none of it: alone, and with Berth in front. The first gang would fit on
// no empty cluster of this size.
func TestNativeGangsPreempt(t *testing.T) {
	needNativeGangs(t)
	for _, arm := range []string{"alone", "behind Berth"} {
		t.Run(arm, func(t *testing.T) {
			const nodes = 4
			plane := newNativePlane(t, nodes)
			plane.AddPriorityClass("high", 1000)
			if arm == "alone" {
				plane.StartScheduler()
			} else {
				berth := plane.StartBerth("")
				plane.StartScheduler(harness.ShippedExtenders(t, berth.URL)...)
			}
			plane.CreatePods(oneGPUEach("low", nodes*8)...)
			plane.WaitBound(time.Minute)
			watched := plane.WatchGangs(map[string]int{"large": nodes + 1, "high": nodes}, 0)
			createNative(t, plane, "large", nativeGang("large", nodes+1, 8), "high")
			t.Logf("of the gang that does not fit: %s", plane.WaitPending("large-0000", 30*time.Second))
			time.Sleep(3 * time.Second) // room for evictions that must not come
			if left := countPods(t, plane, "low-"); left != nodes*8 {
				t.Fatalf("%d pods were evicted for a gang that does not fit", nodes*8-left)
			}
			plane.Kubectl("delete", "pod", "--selector="+harness.GangLabel+"=large", "--wait=false")

			start := time.Now()
			createNative(t, plane, "high", nativeGang("high", nodes, 8), "high")
			watched.WaitWhole(1, time.Minute)
			t.Logf("whole after %s", time.Since(start))
			if bound := watched.Bound("large"); bound > 0 {
				t.Errorf("%d pods of a gang that does not fit were bound", bound)
			}
			if arm != "alone" {
				plane.CheckGrants()
			}
		})
	}
}

// The gang needs 12 of the 16 GPUs of two nodes, and its driver none.
func TestNativeGangsEvictNoMoreThanTheyNeed(t *testing.T) {
	needNativeGangs(t)
	plane := newNativePlane(t, 2)
	plane.AddPriorityClass("high", 1000)
	berth := plane.StartBerth("")
	plane.StartScheduler(harness.ShippedExtenders(t, berth.URL)...)
	plane.CreatePods(oneGPUEach("low", 14)...)
	plane.WaitBound(time.Minute)
	watched := plane.WatchGangs(map[string]int{"high": 4}, 0)
	pods := nativeGang("high", 4, 4)
	delete(pods[0].Spec.Containers[0].Resources.Limits, harness.GPUResource)
	createNative(t, plane, "high", pods, "high")
	watched.WaitWhole(1, time.Minute)
	if left := countPods(t, plane, "low-"); left != 4 {
		t.Errorf("want 4 of the 14 pods beside the gang, got %d", left)
	}
	plane.CheckGrants()
	wantNonePartial(t, berth)
}

// countPods counts the pods whose name begins so.
func countPods(t *testing.T, plane *harness.Plane, prefix string) int {
	t.Helper()
	pods, err := plane.ListPods("")
	if err != nil {
		t.Fatal(err)
	}
	count := 0
	for _, pod := range pods {
		if strings.HasPrefix(pod.Name, prefix) {
			count++
		}
	}
	return count
}
