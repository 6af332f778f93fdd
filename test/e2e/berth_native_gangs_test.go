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

// createNative creates a gang all of whose pods have to start together.
func createNative(t *testing.T, plane *harness.Plane, name string, size int, priorityClass string) {
	t.Helper()
	group := fmt.Sprintf(nativePodGroup, nativeAPI(t), name, size)
	if priorityClass != "" {
		group = strings.Replace(group, "spec: {", "spec: {priorityClassName: "+priorityClass+", ", 1)
	}
	apply(t, plane, group)
	pods := aGang(name, size, 8, inKubernetesWords)
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

	createNative(t, plane, "large", nodes+1, "")
	t.Logf("of the gang that does not fit: %s", plane.WaitPending("large-0000", 30*time.Second))
	start := time.Now()
	createNative(t, plane, "fits", nodes, "")
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

// What becomes of kube-scheduler's preemption for a whole gang: alone, and with Berth in front.
func TestNativeGangsThatPreempt(t *testing.T) {
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
			watched := plane.WatchGangs(map[string]int{"high": nodes}, 0)
			start := time.Now()
			createNative(t, plane, "high", nodes, "high")
			why, whole := "", false
			for !whole && time.Since(start) < 20*time.Second {
				time.Sleep(200 * time.Millisecond)
				whole = watched.Bound("high") == nodes
				if text := harness.WhyPending(plane.Pod("high-0000")); text != "" {
					why = text
				}
			}
			took := time.Since(start)
			pods, err := plane.ListPods("")
			if err != nil {
				t.Fatal(err)
			}
			low := 0
			for _, pod := range pods {
				if strings.HasPrefix(pod.Name, "low-") {
					low++
				}
			}
			t.Logf("%s: %d of %d bound after %s, %d of %d evicted; %s", arm, watched.Bound("high"), nodes, took, nodes*8-low,
				nodes*8, why)
			if bound := watched.Bound("high"); bound > 0 && !whole {
				t.Errorf("%d of %d pods were bound", bound, nodes)
			}
			if low < nodes*8 && !whole {
				t.Errorf("%d pods were evicted for a gang that does not run", nodes*8-low)
			}
		})
	}
}
