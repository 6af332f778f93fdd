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
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"

	"berth.dev/e2e/harness"
)

const gpuClass = "gpu.nvidia.com"

// publishWhole makes nodes g0, g1, ... of so many GPUs, as NVIDIA's driver publishes them: half of them in each NUMA node.
func publishWhole(t *testing.T, plane *harness.Plane, nodes, gpus int) {
	t.Helper()
	_, err := plane.Client.ResourceV1().DeviceClasses().Create(t.Context(), &resourcev1.DeviceClass{
		ObjectMeta: metav1.ObjectMeta{Name: gpuClass}, Spec: resourcev1.DeviceClassSpec{
			Selectors: selecting("device.driver == 'gpu.nvidia.com' && device.attributes['gpu.nvidia.com'].type == 'gpu'"),
			Config: []resourcev1.DeviceClassConfiguration{{DeviceConfiguration: resourcev1.DeviceConfiguration{
				Opaque: &resourcev1.OpaqueDeviceConfiguration{Driver: gpuDriver,
					Parameters: runtime.RawExtension{Raw: []byte(`{"kind":"GpuConfig"}`)}}}}}}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range nodes {
		publishMore(t, plane, fmt.Sprintf("g%d", i), gpus)
	}
}

// publishMore makes one such node more.
func publishMore(t *testing.T, plane *harness.Plane, node string, gpus int) {
	t.Helper()
	text := func(text string) resourcev1.DeviceAttribute { return resourcev1.DeviceAttribute{StringValue: &text} }
	plane.AddNodes(harness.Node(node, "", 0))
	spec := resourcev1.ResourceSliceSpec{Driver: gpuDriver, NodeName: &node,
		Pool: resourcev1.ResourcePool{Name: node, Generation: 1, ResourceSliceCount: 1}}
	for gpu := range gpus {
		spec.Devices = append(spec.Devices, resourcev1.Device{Name: fmt.Sprintf("gpu-%d", gpu),
			Attributes: map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{"type": text("gpu"),
				"uuid": text(fmt.Sprintf("GPU-%s-%d", node, gpu)), "productName": text("NVIDIA H100 80GB HBM3"),
				"numaNode":                        {IntValue: ptr.To(int64(2 * gpu / gpus))},
				"resource.kubernetes.io/pcieRoot": text(fmt.Sprintf("pci0000:%02x", gpu))}})
	}
	_, err := plane.Client.ResourceV1().ResourceSlices().Create(t.Context(),
		&resourcev1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: node + "-gpu"}, Spec: spec}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
}

// claimingAll is a pod with claims NAME-0, NAME-1, ..., which are made.
func claimingAll(t *testing.T, plane *harness.Plane, name string, claims ...resourcev1.DeviceClaim) *v1.Pod {
	t.Helper()
	pod := harness.Pod(name, nil)
	for i, asks := range claims {
		claim := fmt.Sprintf("%s-%d", name, i)
		_, err := plane.Client.ResourceV1().ResourceClaims(harness.Namespace).Create(t.Context(), &resourcev1.ResourceClaim{
			ObjectMeta: metav1.ObjectMeta{Name: claim}, Spec: resourcev1.ResourceClaimSpec{Devices: asks}}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		pod.Spec.ResourceClaims = append(pod.Spec.ResourceClaims, v1.PodResourceClaim{Name: claim, ResourceClaimName: &claim})
		pod.Spec.Containers[0].Resources.Claims = append(pod.Spec.Containers[0].Resources.Claims, v1.ResourceClaim{Name: claim})
	}
	return pod
}

func wholeGPUs(count int64) *resourcev1.ExactDeviceRequest {
	return &resourcev1.ExactDeviceRequest{DeviceClassName: gpuClass, AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: count}
}

func exactly(count int64) resourcev1.DeviceClaim {
	return resourcev1.DeviceClaim{Requests: []resourcev1.DeviceRequest{{Name: "gpus", Exactly: wholeGPUs(count)}}}
}

// allocated is what the claim has: "g0 gpus=gpu-2 gpus=gpu-3".
func allocated(t *testing.T, plane *harness.Plane, claim string) (string, *resourcev1.AllocationResult) {
	t.Helper()
	read, err := plane.Client.ResourceV1().ResourceClaims(harness.Namespace).Get(t.Context(), claim, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	allocation := read.Status.Allocation
	if allocation == nil {
		return "", nil
	}
	texts := []string{allocation.Devices.Results[0].Pool}
	for _, result := range allocation.Devices.Results {
		texts = append(texts, result.Request+"="+result.Device)
	}
	return strings.Join(texts, " "), allocation
}

// devicesIn are the devices of an allocation: "g0/gpu-2".
func devicesIn(allocation *resourcev1.AllocationResult) []string {
	var devices []string
	for _, result := range allocation.Devices.Results {
		devices = append(devices, result.Pool+"/"+result.Device)
	}
	return devices
}

// devicesOf are the devices of the claims that were made from templates for the pod.
func devicesOf(t *testing.T, plane *harness.Plane, name string) []string {
	t.Helper()
	var devices []string
	for _, status := range plane.Pod(name).Status.ResourceClaimStatuses {
		if _, allocation := allocated(t, plane, *status.ResourceClaimName); allocation != nil {
			devices = append(devices, devicesIn(allocation)...)
		}
	}
	return devices
}

func startChoosingWhole(t *testing.T, nodes, gpus int) (*harness.Plane, *harness.Berth) {
	t.Helper()
	return startChoosingOf(t, publishWhole, nodes, gpus)
}

// Two GPUs of one NUMA node, where kube-scheduler alone takes the first two that are free; with the configuration of the
// class, and for a pod with two claims.
func TestBerthChoosesTheGPUsOfClaims(t *testing.T) {
	needBerth(t)
	plane, berth := startChoosingWhole(t, 2, 4)
	place := func(name, want string, claims ...resourcev1.DeviceClaim) {
		t.Helper()
		plane.CreatePods(claimingAll(t, plane, name, claims...))
		plane.WaitBound(30 * time.Second)
		got, allocation := allocated(t, plane, name+"-0")
		if got != want {
			t.Errorf("pod %s: want %s, got %s", name, want, got)
		}
		if allocation == nil {
			return
		}
		if node := plane.Pod(name).Spec.NodeName; node != allocation.Devices.Results[0].Pool {
			t.Errorf("pod %s is on %s, its devices on %s", name, node, allocation.Devices.Results[0].Pool)
		}
		configs := allocation.Devices.Config
		if len(configs) != 1 || configs[0].Source != resourcev1.AllocationConfigSourceClass || configs[0].Requests != nil {
			t.Errorf("pod %s: want the configuration of its class, got %+v", name, configs)
		}
	}
	place("one", "g0 gpus=gpu-0", exactly(1))
	place("two", "g0 gpus=gpu-2 gpus=gpu-3", exactly(2))
	place("twice", "g1 gpus=gpu-0 gpus=gpu-1", exactly(2), exactly(1))
	if got, _ := allocated(t, plane, "twice-1"); got != "g1 gpus=gpu-2" {
		t.Errorf("want the second claim on the same node, got %s", got)
	}
	if got := berth.Metric("berth_claim_allocations_total"); got != 3 {
		t.Errorf("want three pods, all by Berth, got %g\n%s", got, berth.Log())
	}
	if err := contains(berth.Log(), "forbidden"); err == nil {
		t.Errorf("Berth lacks a right:\n%s", berth.Log())
	}
}

// Constraints hold, the first wish that can be had is granted, and kube-scheduler, which checks what it is given, binds.
func TestBerthKeepsTheConstraintsOfClaims(t *testing.T) {
	needBerth(t)
	plane, berth := startChoosingWhole(t, 1, 8)
	numa := ptr.To(resourcev1.FullyQualifiedName("gpu.nvidia.com/numaNode"))
	together := exactly(3)
	together.Constraints = []resourcev1.DeviceConstraint{{MatchAttribute: numa}}
	apart := resourcev1.DeviceClaim{Requests: []resourcev1.DeviceRequest{{Name: "a", Exactly: wholeGPUs(1)}, {Name: "b", Exactly: wholeGPUs(1)}},
		Constraints: []resourcev1.DeviceConstraint{{DistinctAttribute: numa}}}
	want := func(name string, count int64) resourcev1.DeviceSubRequest {
		return resourcev1.DeviceSubRequest{Name: name, DeviceClassName: gpuClass,
			AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: count}
	}
	either := resourcev1.DeviceClaim{Requests: []resourcev1.DeviceRequest{{Name: "gpus",
		FirstAvailable: []resourcev1.DeviceSubRequest{want("eight", 8), want("two", 2), want("one", 1)}}}}
	for _, step := range []struct {
		name, want string
		claim      resourcev1.DeviceClaim
	}{
		{"together", "g0 gpus=gpu-0 gpus=gpu-1 gpus=gpu-2", together},
		{"apart", "g0 a=gpu-3 b=gpu-4", apart},
		{"either", "g0 gpus/two=gpu-5 gpus/two=gpu-6", either},
	} {
		plane.CreatePods(claimingAll(t, plane, step.name, step.claim))
		plane.WaitBound(30 * time.Second)
		if got, _ := allocated(t, plane, step.name+"-0"); got != step.want {
			t.Errorf("pod %s: want %s, got %s\n%s", step.name, step.want, got, berth.Log())
		}
	}
	if got := berth.Metric("berth_claim_allocations_total"); got != 3 {
		t.Errorf("want three pods, all by Berth, got %g\n%s", got, berth.Log())
	}
}

// Many pods with claims of several sizes, as fast as they can be made: no GPU goes to two claims, and what ends comes free.
func TestGPUsOfClaimsGoToNobodyTwice(t *testing.T) {
	needBerth(t)
	plane, berth := startChoosingWhole(t, 4, 8)
	var pods []*v1.Pod
	for i := range 16 {
		pods = append(pods, claimingAll(t, plane, fmt.Sprintf("pod-%02d", i), exactly(int64(1+i%3))))
	}
	plane.CreatePods(pods...)
	plane.WaitBound(120 * time.Second)
	var all []string
	for i := range pods {
		_, allocation := allocated(t, plane, fmt.Sprintf("pod-%02d-0", i))
		if allocation == nil {
			t.Fatalf("pod %d has no GPUs", i)
		}
		all = append(all, devicesIn(allocation)...)
	}
	slices.Sort(all)
	if once := slices.Compact(slices.Clone(all)); len(once) != len(all) {
		t.Errorf("a GPU of two claims: %v", all)
	}
	if got := berth.Metric("berth_audit_double_grants"); got != 0 {
		t.Errorf("want no device given twice, got %g", got)
	}
}
