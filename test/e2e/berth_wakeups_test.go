// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"os"
	"strconv"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"berth.dev/e2e/harness"
)

// freesOfEachKind is how often a device is freed in front of a pod that waits for it: BERTH_E2E_FREES, or a few.
func freesOfEachKind(t *testing.T) int {
	text := os.Getenv("BERTH_E2E_FREES")
	if text == "" {
		return 7
	}
	count, err := strconv.Atoi(text)
	if err != nil {
		t.Fatalf("BERTH_E2E_FREES: %v", err)
	}
	return count
}

// freeing is a node with one device of a kind, and pods that want it one after the other.
type freeing struct {
	t     *testing.T
	plane *harness.Plane
	berth *harness.Berth
	node  string
	ask   harness.Ask

	next         int
	stuck, frees int
	most         time.Duration // that a pod waited beside the device
	calls        float64
}

// pod creates the next pod that wants the device.
func (f *freeing) pod() string {
	name := fmt.Sprintf("%s-%04d", f.node, f.next)
	f.next++
	pod := harness.Pod(name, f.ask)
	pod.Spec.NodeSelector = map[string]string{"kubernetes.io/hostname": f.node}
	f.plane.CreatePods(pod)
	return name
}

func (f *freeing) bound(name string, limit time.Duration) bool {
	for deadline := time.Now().Add(limit); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		if f.plane.Pod(name).Spec.NodeName != "" {
			return true
		}
	}
	return false
}

// round lets a pod wait, frees the device, and counts whether the pod gets it. Nothing else happens in the cluster: any
// event would wake the pod. It returns who has the device in the end.
func (f *freeing) round(free func()) string {
	f.t.Helper()
	waiter := f.pod()
	f.plane.WaitPending(waiter, 20*time.Second)
	time.Sleep(time.Duration(f.next*37%200) * time.Millisecond)
	before := f.berth.Metric("berth_calls_total")
	start := time.Now()
	free()
	f.frees++
	got := f.bound(waiter, 10*time.Second)
	f.most = max(f.most, time.Since(start))
	f.calls = max(f.calls, f.berth.Metric("berth_calls_total")-before)
	if !got {
		f.stuck++
		f.remove(waiter)
		waiter = f.pod()
		f.bound(waiter, 20*time.Second)
	}
	return waiter
}

func (f *freeing) remove(name string) {
	if err := f.plane.Client.CoreV1().Pods(harness.Namespace).Delete(f.t.Context(), name, metav1.DeleteOptions{}); err != nil {
		f.t.Fatal(err)
	}
}

// end is what the kubelet writes when the containers of a pod have ended.
func (f *freeing) end(name string) {
	pod := f.plane.Pod(name)
	pod.Status.Phase = v1.PodSucceeded
	if _, err := f.plane.Client.CoreV1().Pods(harness.Namespace).UpdateStatus(f.t.Context(), pod, metav1.UpdateOptions{}); err != nil {
		f.t.Fatal(err)
	}
}

// hand passes the device from pod to pod, by deletion and by ending in turn.
func (f *freeing) hand(frees int) {
	holder := f.pod()
	f.bound(holder, 20*time.Second)
	for i := range frees {
		free, gone := f.remove, func(string) {}
		if i%2 == 1 {
			free, gone = f.end, f.remove
		}
		waiter := f.round(func() { free(holder) })
		gone(holder)
		holder = waiter
	}
	f.remove(holder)
	f.plane.WaitGone(holder, 10*time.Second)
}

// kube-scheduler hears of a device that is free before Berth does, asks at once, and after a "no" does not ask again for
// minutes unless something happens.
func TestNobodyWaitsBesideADeviceThatWasFreed(t *testing.T) {
	needBerth(t)
	plane := harness.NewPlane(t)
	whole, claimed := harness.Node("whole", harness.GPUModel, 1), harness.Node("claimed", harness.GPUModel, 1)
	mig := migNode("mig", `{"gpus": [{"index": 0, "instances": [{"profile": "1g.5gb", "count": 1}]}]}`,
		harness.Ask{mig1g: "1"})
	shared := harness.Node("shared", harness.GPUModel, 1)
	for _, node := range []*v1.Node{whole, claimed, mig, shared} {
		node.Labels["kubernetes.io/hostname"] = node.Name
	}
	plane.AddNodes(whole, claimed, mig, shared)
	berth := plane.StartBerth("")
	plane.StartScheduler(bindingMIG(t, berth, true, mig1g)...)
	frees := freesOfEachKind(t)

	all := map[string]*freeing{}
	on := func(node string, ask harness.Ask) *freeing {
		all[node] = &freeing{t: t, plane: plane, berth: berth, node: node, ask: ask}
		return all[node]
	}
	on("whole", harness.Ask{harness.GPUResource: "1"}).hand(frees)
	on("shared", harness.Ask{harness.MilliResource: "600"}).hand(frees)
	on("mig", harness.Ask{mig1g: "1"}).hand(frees)

	// A claim holds the GPU; it is no pod's.
	publish(t, plane, "claimed", device("gpu-0", "gpu"))
	claims := on("claimed", harness.Ask{harness.GPUResource: "1"})
	for i := range frees {
		name := fmt.Sprintf("claim-%04d", i)
		allocate(t, plane, name, "claimed", "gpu-0")
		harness.Eventually(t, "the claim to be known", 10*time.Second, func() error {
			if berth.Metric("berth_gpus_claimed") != 1 {
				return fmt.Errorf("it is not")
			}
			return nil
		})
		waiter := claims.round(func() { release(t, plane, name) })
		claims.remove(waiter)
		plane.WaitGone(waiter, 10*time.Second)
	}

	for kind, f := range all {
		t.Logf("%s: %d of %d stuck, %.0f ms at most, %.0f calls for one at most; pods woken so far %.0f", kind, f.stuck,
			f.frees, f.most.Seconds()*1000, f.calls, berth.Metric("berth_pods_woken_total"))
		if f.stuck > 0 {
			t.Errorf("%s: %d of %d pods waited beside a free device", kind, f.stuck, f.frees)
		}
		if f.calls > 20 {
			t.Errorf("%s: %.0f calls for one pod", kind, f.calls)
		}
	}
	plane.CheckGrants()
}

// What is evicted for a pod is that pod's: others wait for the same GPUs.
func TestThePodThatPreemptsGetsTheGPUOfItsVictim(t *testing.T) {
	plane := fullPlane(t)
	plane.CreatePods(oneGPUEach("other", 4)...)
	plane.WaitPending("other-0003", 20*time.Second)

	const rounds = 12
	for i := range rounds {
		name := fmt.Sprintf("high-%04d", i)
		high := harness.Pod(name, harness.Ask{harness.GPUResource: "1"})
		high.Spec.Containers[0].Resources.Limits[v1.ResourceCPU] = resource.MustParse("100m")
		high.Spec.PriorityClassName = "high"
		plane.CreatePods(high)
		harness.Eventually(t, name+" to be bound", 10*time.Second, func() error {
			if pod := plane.Pod(name); pod.Spec.NodeName == "" {
				return fmt.Errorf("%s", harness.WhyPending(pod))
			}
			return nil
		})
	}
	pods, err := plane.ListPods("")
	if err != nil || len(pods) != 16+4 {
		t.Errorf("want one victim for each of %d pods, so 20 pods left, got %d (%v)", rounds, len(pods), err)
	}
	for i := range 4 {
		if name := fmt.Sprintf("other-%04d", i); plane.Pod(name).Spec.NodeName != "" {
			t.Errorf("%s has a GPU that was freed by an eviction for another pod", name)
		}
	}
	plane.CheckGrants()
}
