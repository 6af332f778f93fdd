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

// The example of docs/workload-classes.md, from its heading to the text below it.
func exampleOfClasses(t *testing.T) string {
	t.Helper()
	page := fileText(t, "docs/workload-classes.md")
	_, after, found := strings.Cut(page, "    # Berth's configuration\n")
	example, _, ends := strings.Cut(after, "\nA pod with GPUs")
	if !found || !ends {
		t.Fatal("docs/workload-classes.md has no example where it was")
	}
	return strings.ReplaceAll(strings.TrimPrefix(example, "    "), "\n    ", "\n")
}

// A fleet of two sorts of machines and three sorts of work that arrive mixed: each gets its nodes, and what no longer has
// room there goes elsewhere rather than wait.
func TestWorkloadClassesGetTheirNodes(t *testing.T) {
	needBerth(t)
	plane := harness.NewPlane(t)
	node := func(name, model, machine string, gpus int, labels map[string]string) *v1.Node {
		node := harness.Node(name, model, gpus)
		node.Labels["node.kubernetes.io/instance-type"] = machine
		for key, value := range labels {
			node.Labels[key] = value
		}
		return node
	}
	for i := range 2 {
		plane.AddNodes(
			node(fmt.Sprintf("train-%d", i), "NVIDIA-H100-80GB-HBM3", "Standard_ND96isr_H100_v5", 8,
				map[string]string{"berth.dev/price-per-hour": "98.32"}),
			node(fmt.Sprintf("spot-%d", i), "Tesla-T4", "Standard_NC64as_T4_v3", 4,
				map[string]string{"kubernetes.azure.com/scalesetpriority": "spot", "berth.dev/price-per-hour": "0.87"}))
	}
	berth := plane.StartBerth(exampleOfClasses(t))
	plane.StartScheduler(harness.ShippedExtenders(t, berth.URL)...)

	var pods []*v1.Pod
	add := func(class string, count int, gpus string) {
		for _, pod := range harness.Pods(class, count, harness.Ask{harness.GPUResource: gpus}) {
			pod.Labels = map[string]string{"workload": class}
			pods = append(pods, pod)
		}
	}
	add("inference", 4, "1")
	add("batch", 4, "1")
	add("training", 3, "4")
	plane.CreatePods(pods...)
	plane.WaitBound(time.Minute)

	want := map[string]string{"inference": "spot-", "batch": "spot-", "training": "train-"}
	bound, err := plane.ListPods("")
	if err != nil {
		t.Fatal(err)
	}
	for _, pod := range bound {
		if class := pod.Labels["workload"]; !strings.HasPrefix(pod.Spec.NodeName, want[class]) {
			t.Errorf("%s is on %s, want %s...", pod.Name, pod.Spec.NodeName, want[class])
		}
	}

	// Spot is full, and four GPUs of the training machines are left.
	more := harness.Pods("late", 1, harness.Ask{harness.GPUResource: "1"})
	more[0].Labels = map[string]string{"workload": "inference"}
	plane.CreatePods(more...)
	plane.WaitBound(time.Minute)
}

// A class that asks for too much: its operator changes it, and the pods that waited go at once, not when kube-scheduler
// happens to look through them again (5 minutes).
func TestPodsGoWhenTheirClassNoLongerForbidsTheNodes(t *testing.T) {
	needBerth(t)
	plane := harness.NewPlane(t)
	plane.AddNodes(harness.Node("plain", "Tesla-T4", 4))
	const class = "workloadClasses:\n- {name: training, labels: [workload=training], %s: [rdma]}\n"
	berth := plane.StartBerth(fmt.Sprintf(class, "require"))
	plane.StartScheduler(harness.ShippedExtenders(t, berth.URL)...)
	pods := harness.Pods("train", 2, harness.Ask{harness.GPUResource: "1"})
	for _, pod := range pods {
		pod.Labels = map[string]string{"workload": "training"}
	}
	plane.CreatePods(pods...)
	for _, pod := range pods {
		why := plane.WaitPending(pod.Name, time.Minute)
		if !strings.Contains(why, "lacked a trait") {
			t.Errorf("%s waits because %q", pod.Name, why)
		}
	}
	berth.WriteConfig(fmt.Sprintf(class, "forbid"))
	plane.WaitBound(30 * time.Second)
}
