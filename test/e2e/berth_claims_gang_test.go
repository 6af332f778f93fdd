// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"

	"berth.dev/e2e/harness"
)

// wholeOrHalf asks for a whole A100, else for half of one.
func wholeOrHalf() resourcev1.DeviceClaim {
	want := func(name, profile string) resourcev1.DeviceSubRequest {
		return resourcev1.DeviceSubRequest{Name: name, DeviceClassName: migClass, Selectors: selecting(ofProfile(profile)),
			AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: 1}
	}
	return resourcev1.DeviceClaim{Requests: []resourcev1.DeviceRequest{{Name: "gpu",
		FirstAvailable: []resourcev1.DeviceSubRequest{want("whole", "7g.40gb"), want("half", "3g.20gb")}}}}
}

// claimingGang is pods of one gang with a claim each, which are made.
func claimingGang(t *testing.T, plane *harness.Plane, name string, size int, in convention, claim resourcev1.DeviceClaim) []*v1.Pod {
	t.Helper()
	var pods []*v1.Pod
	for i := range size {
		pod := claimingAll(t, plane, name+"-"+string(rune('a'+i)), claim)
		if pod.Annotations == nil {
			pod.Annotations = map[string]string{}
		}
		pod.Labels = map[string]string{harness.GangLabel: name}
		in.join(pod, name, size)
		pods = append(pods, pod)
	}
	return pods
}

// allocatedOf is what the claims of these pods have, one text each that has any.
func allocatedOf(t *testing.T, plane *harness.Plane, pods []*v1.Pod) []string {
	t.Helper()
	var all []string
	for _, pod := range pods {
		if text, allocation := allocated(t, plane, pod.Name+"-0"); allocation != nil {
			all = append(all, text)
		}
	}
	return all
}

// A gang of two on one GPU, each for the whole or a half: kube-scheduler gives the first the whole one and finds
// nothing for the second, each time (kubernetes#138765).
func TestAGangOfClaimsStartsWhereFirstFitLosesIt(t *testing.T) {
	t.Run("kube-scheduler alone", func(t *testing.T) {
		needNativeGangs(t)
		plane := newNativePlane(t, 0)
		publishCut(t, plane, 1, 1)
		plane.StartScheduler()
		apply(t, plane, nativeGroupOf(t, "two", 2))
		pods := claimingGang(t, plane, "two", 2, inKubernetesWords, wholeOrHalf())
		plane.CreatePods(pods...)
		t.Logf("kube-scheduler says: %s", plane.WaitPending("two-a", 30*time.Second))
		time.Sleep(5 * time.Second) // it may try again
		if got := allocatedOf(t, plane, pods); len(got) > 0 {
			t.Logf("kube-scheduler places it by now: %v", got)
		}
	})
	for _, in := range []convention{inBerthsWords, inKubernetesWords} {
		t.Run("behind Berth as "+in.name, func(t *testing.T) {
			needBerth(t)
			var plane *harness.Plane
			if in.name == inKubernetesWords.name {
				needNativeGangs(t)
				plane = newNativePlane(t, 0)
				apply(t, plane, nativeGroupOf(t, "two", 2))
			} else {
				plane = harness.NewPlane(t)
			}
			publishCut(t, plane, 1, 1)
			grantChoice(plane)
			berth := plane.StartBerth(choosing)
			plane.StartScheduler(harness.ShippedExtenders(t, berth.URL)...)
			pods := claimingGang(t, plane, "two", 2, in, wholeOrHalf())
			start := time.Now()
			plane.CreatePods(pods...)
			plane.WaitBound(60 * time.Second)
			t.Logf("the gang was whole after %s", time.Since(start))
			got := allocatedOf(t, plane, pods)
			slices.Sort(got)
			want := []string{"n0 gpu/half=gpu-0-mig-3g20gb-9-0", "n0 gpu/half=gpu-0-mig-3g20gb-9-4"}
			if !slices.Equal(got, want) {
				t.Errorf("want %v, got %v\n%s", want, got, berth.Log())
			}
			if double := berth.Metric("berth_audit_double_grants"); double != 0 {
				t.Errorf("want no device given twice, got %g", double)
			}
		})
	}
}

// Of a gang that does not fit no claim is allocated, so a pod beside it gets its devices; when there is room it starts.
func TestAGangOfClaimsThatDoesNotFitHoldsNothing(t *testing.T) {
	needBerth(t)
	plane, berth := startChoosingWhole(t, 2, 4)
	large := claimingGang(t, plane, "large", 3, inBerthsWords, exactly(3))
	plane.CreatePods(large...)
	t.Logf("of the gang that does not fit: %s", plane.WaitPending("large-a", 30*time.Second))
	plane.CreatePods(claimingAll(t, plane, "single", exactly(4)))
	deadline := time.Now().Add(30 * time.Second)
	for plane.Pod("single").Spec.NodeName == "" && time.Now().Before(deadline) {
		time.Sleep(100 * time.Millisecond)
	}
	if node := plane.Pod("single").Spec.NodeName; node == "" {
		t.Errorf("the pod beside it is not bound\n%s", berth.Log())
	}
	if got := allocatedOf(t, plane, large); len(got) > 0 {
		t.Errorf("want nothing allocated for a gang that does not fit, got %v", got)
	}
	publishMore(t, plane, "g2", 4)
	publishMore(t, plane, "g3", 4)
	start := time.Now()
	plane.WaitBound(90 * time.Second)
	t.Logf("the gang was whole %s after there was room", time.Since(start))
	if got := allocatedOf(t, plane, large); len(got) != 3 {
		t.Errorf("want three claims allocated, got %v", got)
	}
}

// Berth is killed after the first of a gang's allocations is written: the next one finishes it, and no device is lost.
func TestBerthIsKilledAmongTheAllocationsOfAGang(t *testing.T) {
	needBerth(t)
	plane := harness.NewPlane(t)
	publishWhole(t, plane, 2, 4)
	grantChoice(plane)
	var written atomic.Int32
	var berth *harness.Berth
	killed := make(chan struct{})
	server := plane.InFrontOfAPIServer(func(r *http.Request) {
		if r.Method == http.MethodPatch && strings.Contains(r.URL.Path, "/resourceclaims/") && strings.HasSuffix(r.URL.Path, "/status") {
			if written.Add(1) == 2 {
				berth.Kill()
				close(killed)
				<-r.Context().Done() // the second one is never sent
			}
		}
	})
	berth = plane.NewBerth("berth", plane.BerthKubeconfig(server, plane.Token()), choosing)
	berth.Start()
	berth.WaitReady()
	plane.StartScheduler(harness.ShippedExtenders(t, berth.URL)...)
	pods := claimingGang(t, plane, "killed", 3, inBerthsWords, exactly(2))
	plane.CreatePods(pods...)
	select {
	case <-killed: // its port is free then
	case <-time.After(60 * time.Second):
		t.Fatalf("Berth allocated nothing\n%s", berth.Log())
	}
	t.Logf("allocated when Berth was killed: %v", allocatedOf(t, plane, pods))
	berth.Start()
	berth.WaitReady()
	start := time.Now()
	plane.WaitBound(120 * time.Second)
	t.Logf("the gang was whole %s after Berth came back", time.Since(start))
	var all []string
	for _, pod := range pods {
		_, allocation := allocated(t, plane, pod.Name+"-0")
		for _, result := range allocation.Devices.Results {
			all = append(all, result.Pool+"/"+result.Device)
		}
		if node := plane.Pod(pod.Name).Spec.NodeName; node != allocation.Devices.Results[0].Pool {
			t.Errorf("pod %s is on %s, its devices on %s", pod.Name, node, allocation.Devices.Results[0].Pool)
		}
	}
	slices.Sort(all)
	if once := slices.Compact(slices.Clone(all)); len(once) != 6 {
		t.Errorf("want six GPUs, each of one claim, got %v", all)
	}
}
