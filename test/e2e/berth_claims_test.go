// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"berth.dev/e2e/harness"
)

const gpuDriver = "gpu.nvidia.com"

// device is one of NVIDIA's driver: a GPU, or an instance of one that has the memory slices.
func device(name, kind string, slices ...int) resourcev1.Device {
	text := func(text string) resourcev1.DeviceAttribute { return resourcev1.DeviceAttribute{StringValue: &text} }
	d := resourcev1.Device{Name: name, Attributes: map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{"type": text(kind)}}
	counters := map[string]resourcev1.Counter{}
	for _, slice := range slices {
		counters[fmt.Sprintf("memory-slice-%d", slice)] = resourcev1.Counter{Value: resource.MustParse("1")}
	}
	if len(counters) > 0 {
		d.Attributes["profile"] = text("1g.10gb")
		d.ConsumesCounters = []resourcev1.DeviceCounterConsumption{{CounterSet: "gpu-1-counter-set", Counters: counters}}
	}
	return d
}

// publish makes the node's driver publish a pool as it does from Kubernetes 1.35 on: counters in one slice, devices in
// the others.
func publish(t *testing.T, plane *harness.Plane, node string, devices ...resourcev1.Device) {
	t.Helper()
	counters := map[string]resourcev1.Counter{}
	for i := range 8 {
		counters[fmt.Sprintf("memory-slice-%d", i)] = resourcev1.Counter{Value: resource.MustParse("1")}
	}
	pool := resourcev1.ResourcePool{Name: node, Generation: 1, ResourceSliceCount: 2}
	for name, spec := range map[string]resourcev1.ResourceSliceSpec{
		node + "-counters": {SharedCounters: []resourcev1.CounterSet{{Name: "gpu-1-counter-set", Counters: counters}}},
		node + "-devices":  {Devices: devices},
	} {
		spec.Driver, spec.Pool, spec.NodeName = gpuDriver, pool, &node
		_, err := plane.Client.ResourceV1().ResourceSlices().Create(t.Context(),
			&resourcev1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: spec}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// allocate makes a claim that holds a device of the node, as kube-scheduler writes it, for two pods.
func allocate(t *testing.T, plane *harness.Plane, name, node, device string) {
	t.Helper()
	claims := plane.Client.ResourceV1().ResourceClaims(harness.Namespace)
	request := resourcev1.DeviceRequest{Name: "gpu", Exactly: &resourcev1.ExactDeviceRequest{DeviceClassName: gpuDriver}}
	claim, err := claims.Create(t.Context(), &resourcev1.ResourceClaim{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       resourcev1.ResourceClaimSpec{Devices: resourcev1.DeviceClaim{Requests: []resourcev1.DeviceRequest{request}}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	now := metav1.Now()
	claim.Status.Allocation = &resourcev1.AllocationResult{
		Devices: resourcev1.DeviceAllocationResult{Results: []resourcev1.DeviceRequestAllocationResult{
			{Request: "gpu", Driver: gpuDriver, Pool: node, Device: device}}},
		AllocationTimestamp: &now,
	}
	claim.Status.ReservedFor = []resourcev1.ResourceClaimConsumerReference{
		{Resource: "pods", Name: "a", UID: "a"}, {Resource: "pods", Name: "b", UID: "b"}}
	if _, err := claims.UpdateStatus(t.Context(), claim, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// release takes from a claim what it holds.
func release(t *testing.T, plane *harness.Plane, name string) {
	t.Helper()
	claims := plane.Client.ResourceV1().ResourceClaims(harness.Namespace)
	claim, err := claims.Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	claim.Status = resourcev1.ResourceClaimStatus{}
	if _, err := claims.UpdateStatus(t.Context(), claim, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// gpusOf are the GPUs that Berth gave to these pods.
func gpusOf(t *testing.T, pods ...*v1.Pod) []int {
	t.Helper()
	var gpus []int
	for _, pod := range pods {
		devices, err := harness.DevicesOf(pod)
		if err != nil {
			t.Fatal(err)
		}
		for _, assigned := range devices.Containers {
			for _, gpu := range assigned.GPUs {
				gpus = append(gpus, gpu.Index)
			}
		}
	}
	slices.Sort(gpus)
	return gpus
}

func wantClaimed(t *testing.T, berth *harness.Berth, want float64) {
	t.Helper()
	harness.Eventually(t, fmt.Sprintf("%g GPUs to be claimed", want), 20*time.Second, func() error {
		if got := berth.Metric("berth_gpus_claimed"); got != want {
			return fmt.Errorf("%g are", got)
		}
		return nil
	})
}

func TestGPUsThatClaimsHoldAreGivenToNobodyElse(t *testing.T) {
	needBerth(t)
	plane := harness.NewPlane(t)
	plane.AddNodes(harness.Node("n1", harness.GPUModel, 4))
	publish(t, plane, "n1", device("gpu-0", "gpu"), device("gpu-1-mig-1g10gb-19-6", "mig", 6), device("gpu-1-mig-1g10gb-19-5", "mig", 5))
	allocate(t, plane, "whole", "n1", "gpu-0")
	allocate(t, plane, "part", "n1", "gpu-1-mig-1g10gb-19-6")
	berth := plane.StartBerth("")
	wantClaimed(t, berth, 2)
	plane.StartScheduler(harness.ShippedExtenders(t, berth.URL)...)
	plane.CreatePods(oneGPUEach("pod", 2)...)
	plane.WaitBound(30 * time.Second)
	if got := gpusOf(t, plane.Pod("pod-0000"), plane.Pod("pod-0001")); !slices.Equal(got, []int{2, 3}) {
		t.Errorf("want GPUs 2 and 3, got %v", got)
	}

	plane.CreatePods(harness.Pod("later", harness.Ask{harness.GPUResource: "1"}))
	if why := plane.WaitPending("later", 30*time.Second); !strings.Contains(why, "idle GPUs") {
		t.Errorf("want the GPUs as the reason, got %q", why)
	}
	allocate(t, plane, "other-part", "n1", "gpu-1-mig-1g10gb-19-5")
	release(t, plane, "part")
	time.Sleep(3 * time.Second) // GPU 1 still has an instance that is held
	if node := plane.Pod("later").Spec.NodeName; node != "" {
		t.Error("the pod was placed on a GPU that a claim holds")
	}
	release(t, plane, "other-part")
	wantClaimed(t, berth, 1)
	// kube-scheduler may have tried the pod again before Berth heard of the release: any event makes it try once more.
	plane.Kubectl("label", "node", "n1", "released=true")
	plane.WaitBound(60 * time.Second)
	if got := gpusOf(t, plane.Pod("later")); !slices.Equal(got, []int{1}) {
		t.Errorf("want GPU 1, got %v", got)
	}

	// A restart learns it anew.
	berth.Kill()
	release(t, plane, "whole")
	berth.Start()
	berth.WaitReady()
	plane.CreatePods(harness.Pod("last", harness.Ask{harness.GPUResource: "1"}))
	plane.WaitBound(60 * time.Second)
	if got := gpusOf(t, plane.Pod("last")); !slices.Equal(got, []int{0}) {
		t.Errorf("want GPU 0, got %v", got)
	}
	plane.CheckGrants()
	if err := contains(berth.Log(), "forbidden"); err == nil {
		t.Errorf("Berth lacks a right:\n%s", berth.Log())
	}
}
