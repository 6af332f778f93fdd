// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"berth.dev/e2e/harness"
)

// give writes into the pod's status, as its kubelet does, that it has these GPUs of its node.
func give(t *testing.T, plane *harness.Plane, name string, health v1.ResourceHealthStatus, gpus ...int) {
	t.Helper()
	pod := plane.Pod(name)
	pod.Status.Phase = v1.PodRunning
	devices := v1.ResourceStatus{Name: harness.GPUResource}
	for _, gpu := range gpus {
		id := v1.ResourceID(fmt.Sprintf("GPU-%s-%d", pod.Spec.NodeName, gpu))
		devices.Resources = append(devices.Resources, v1.ResourceHealth{ResourceID: id, Health: health})
	}
	pod.Status.ContainerStatuses = []v1.ContainerStatus{
		{Name: "main", AllocatedResourcesStatus: []v1.ResourceStatus{devices}}}
	written, err := plane.Client.CoreV1().Pods(harness.Namespace).UpdateStatus(t.Context(), pod, metav1.UpdateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if len(written.Status.ContainerStatuses[0].AllocatedResourcesStatus) == 0 {
		t.Skip("this API server has no ResourceHealthStatus: Kubernetes 1.36 and later do")
	}
}

func wantMetric(t *testing.T, c cluster, name string, want float64) {
	t.Helper()
	harness.Eventually(t, fmt.Sprintf("%s to be %g", name, want), 20*time.Second, func() error {
		if got := c.berth.Metric(name); got != want {
			return fmt.Errorf("it is %g", got)
		}
		return nil
	})
}

// wantGPUs fails unless Berth planned the pod on these GPUs.
func wantGPUs(t *testing.T, c cluster, name string, want ...int) {
	t.Helper()
	devices, err := harness.DevicesOf(c.Pod(name))
	if err != nil {
		t.Fatal(err)
	}
	var got []int
	for _, gpu := range devices.Containers["main"].GPUs {
		got = append(got, gpu.Index)
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%s was planned on GPUs %v, want %v", name, got, want)
	}
}

// The device plugin gives other GPUs than Berth chose: the next decisions, and those after a restart, go by what pods
// really have.
func TestPodsHoldTheGPUsThatTheKubeletGaveThem(t *testing.T) {
	c := startCluster(t, 1)
	c.CreatePods(harness.Pod("first", harness.Ask{harness.GPUResource: "4"}))
	c.WaitBound(30 * time.Second)
	wantGPUs(t, c, "first", 0, 1, 2, 3)
	wantMetric(t, c, "berth_pods_on_other_gpus", 0)
	give(t, c.Plane, "first", v1.ResourceHealthStatusHealthy, 2, 3, 4, 5)
	wantMetric(t, c, "berth_pods_on_other_gpus", 1)
	wantParts(t, c.ask("explain", "pod", harness.Namespace+"/first"),
		"with GPU 2, GPU 3, GPU 4, GPU 5 (planned: GPU 0, GPU 1, GPU 2, GPU 3; the kubelet gave other GPUs)")
	wantParts(t, c.ask("explain", "node", "node-0000"), "1 pod has other GPUs than planned")

	c.CreatePods(harness.Pod("second", harness.Ask{harness.GPUResource: "2"}))
	c.WaitBound(30 * time.Second)
	c.berth.Stop()
	c.berth.Start()
	c.berth.WaitReady()
	wantMetric(t, c, "berth_pods_on_other_gpus", 1)
	c.CreatePods(harness.Pod("third", harness.Ask{harness.GPUResource: "2"}))
	c.WaitBound(30 * time.Second)
	planned := map[int]bool{}
	for _, name := range []string{"second", "third"} {
		devices, err := harness.DevicesOf(c.Pod(name))
		if err != nil {
			t.Fatal(err)
		}
		for _, gpu := range devices.Containers["main"].GPUs {
			planned[gpu.Index] = true
		}
	}
	if fmt.Sprint(planned) != "map[0:true 1:true 6:true 7:true]" {
		t.Errorf("want the GPUs that the first pod was not given, got %v", planned)
	}
	for _, metric := range []string{"berth_audit_double_grants", "berth_audit_differences", "berth_pods_disputed"} {
		wantMetric(t, c, metric, 0)
	}
}

// A GPU falls off the bus under its pod. The kubelet says which one it is.
func TestAGPUThatIsUnhealthyUnderItsPodIsClosedByName(t *testing.T) {
	c := startCluster(t, 1)
	c.CreatePods(harness.Pod("first", harness.Ask{harness.GPUResource: "1"}))
	c.WaitBound(30 * time.Second)
	give(t, c.Plane, "first", v1.ResourceHealthStatusUnhealthy, 0)
	harness.Eventually(t, "the GPU to be closed", 15*time.Second, func() error {
		return c.says("unhealthy GPUs by status of pods", "explain", "node", "node-0000")
	})
	c.CreatePods(harness.Pod("seven", harness.Ask{harness.GPUResource: "7"}))
	c.WaitBound(30 * time.Second)
	wantGPUs(t, c, "seven", 1, 2, 3, 4, 5, 6, 7)
}
