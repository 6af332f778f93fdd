// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"maps"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"berth.dev/e2e/harness"
)

// nodeOf has so many devices of that resource, as its vendor's device plugin and labeller write it.
func nodeOf(name, resourceName string, devices int64, labels map[string]string) *v1.Node {
	node := harness.Node(name, "", 0)
	maps.Copy(node.Labels, labels)
	node.Status.Capacity[v1.ResourceName(resourceName)] = *resource.NewQuantity(devices, resource.DecimalSI)
	node.Status.Allocatable = node.Status.Capacity.DeepCopy()
	return node
}

// Nothing is configured: kube-scheduler has the configuration that is shipped, Berth has none.
func TestPodsOfEveryVendorAreBoundByBerth(t *testing.T) {
	needBerth(t)
	plane := harness.NewPlane(t)
	plane.AddNodes(
		harness.Node("nvidia", harness.GPUModel, 8),
		nodeOf("amd", "amd.com/gpu", 8, map[string]string{
			"amd.com/gpu.product-name": "AMD_Instinct_MI300X_OAM", "amd.com/gpu.vram": "192G"}),
		nodeOf("ascend", "huawei.com/Ascend910", 8, map[string]string{"node.kubernetes.io/npu.chip.name": "910A"}))
	berth := plane.StartBerth("")
	plane.StartScheduler(harness.ShippedExtenders(t, berth.URL)...)
	amd, npu := v1.ResourceName("amd.com/gpu"), v1.ResourceName("huawei.com/Ascend910")
	wanted := map[string]string{"one-npu": "ascend", "two-npus": "ascend", "four-npus": "ascend", "amd-train": "amd",
		"nvidia-train": "nvidia"}
	// One after the other, so that it is known which NPUs are free: one of a ring goes first.
	for _, pod := range []*v1.Pod{
		harness.Pod("one-npu", harness.Ask{npu: "1"}), harness.Pod("four-npus", harness.Ask{npu: "4"}),
		harness.Pod("two-npus", harness.Ask{npu: "2"}), harness.Pod("amd-train", harness.Ask{amd: "8"}),
		harness.Pod("nvidia-train", harness.Ask{harness.GPUResource: "2"}),
	} {
		plane.CreatePods(pod)
		plane.WaitBound(30 * time.Second)
	}
	for name, node := range wanted {
		pod := plane.Pod(name)
		if pod.Spec.NodeName != node {
			t.Errorf("%s: want node %s, got %q", name, node, pod.Spec.NodeName)
		}
		devices, err := harness.DevicesOf(pod)
		if err != nil {
			t.Error(err)
		}
		for _, container := range devices.Containers {
			for _, gpu := range container.GPUs {
				if node == "ascend" && gpu.Index/4 != container.GPUs[0].Index/4 {
					t.Errorf("%s: want NPUs of one HCCS ring, got %v", name, container.GPUs)
				}
			}
		}
	}
	plane.CreatePods(harness.Pod("no-amd-is-left", harness.Ask{amd: "1"}))
	plane.WaitPending("no-amd-is-left", 30*time.Second)
	if without := berth.Metric("berth_pods_without_devices"); without != 0 {
		t.Errorf("want every pod bound by Berth, got %v that are not", without)
	}
}
