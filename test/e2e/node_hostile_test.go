// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"berth.dev/e2e/harness"
)

// forged are annotations that a tenant may write on pods of his own, where nothing forbids it.
func forged(node *harness.Machine, others []string) []map[string]string {
	plan := func(ids ...string) string {
		var gpus []string
		for _, id := range ids {
			gpus = append(gpus, fmt.Sprintf(`{"index":%d,"uuid":%q}`, node.GPUIndex(id), id))
		}
		return `{"version":1,"node":"a","containers":{"main":{"gpus":[` + strings.Join(gpus, ",") + `]}}}`
	}
	var all []string
	for i := range 8 {
		all = append(all, node.GPUID(i))
	}
	given := func(ids []string) string {
		text, _ := json.Marshal(map[string]any{"version": 1, "containers": map[string]any{"main": map[string]any{harness.GPUResource: ids}}})
		return string(text)
	}
	const most = 110 << 10 // the API server takes 256 KiB in all
	return []map[string]string{
		{"berth.dev/devices": plan(others[0])},
		{"berth.dev/devices": plan(slices.Repeat(all, 500)...)},
		{"berth.dev/devices": strings.Repeat("[", most), "berth.dev/given": strings.Repeat(`{"a":`, most/5)},
		{"berth.dev/given": given(others)},
		{"berth.dev/given": given(all)},
		{"berth.dev/given": given(slices.Repeat([]string{"GPU-nobody"}, 10_000))},
		{"berth.dev/given": `{"version":1,"containers":{"main":{"nvidia.com/gpu":["` + strings.Repeat("G", most) + `"]}}}`},
		{"berth.dev/carries-out": "nvidia.com/gpu", "berth.dev/gpu-health": all[1], "berth.dev/gpu-uuids": "x", "berth.dev/topology": "x",
			"berth.dev/mig": "{", "berth.dev/kubelet": "{", nriOfMain: "nvidia.com/gpu=all"},
	}
}

// A tenant forges every annotation of the agent on his own pods, which come through Berth and past it. Every pod that comes
// after runs on the planned GPUs, nobody shares one, and nothing has to start anew.
func TestNodeAgentHoldsAgainstTheAnnotationsOfATenant(t *testing.T) {
	c := startAgentCluster(t, harness.MachineOptions{Pretended: true}, "a")
	node := c.nodes["a"]
	c.CreatePods(harness.Work("victim", gpus(2)))
	c.WaitPhase("victim", 30*time.Second, v1.PodRunning)
	had := c.givenOf(t, "victim", 2)
	waitCarries(t, node, harness.GPUResource)
	workers := node.AgentProcess.Children()
	var honest []string
	for i, annotations := range forged(node, had) {
		past, through := pastBerth(fmt.Sprintf("past-%d", i), 1), harness.Work(fmt.Sprintf("through-%d", i), gpus(1))
		early := harness.Work(fmt.Sprintf("early-%d", i), gpus(1)) // Berth may refuse it
		past.Annotations, early.Annotations = annotations, annotations
		c.CreatePodsInOrder(past, early, through)
		for _, pod := range []*v1.Pod{past, through} {
			c.WaitPhase(pod.Name, 30*time.Second, v1.PodRunning)
			patch, _ := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": annotations}})
			if _, err := c.Client.CoreV1().Pods(harness.Namespace).Patch(t.Context(), pod.Name, types.MergePatchType, patch,
				metav1.PatchOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		after := harness.Work(fmt.Sprintf("honest-%d", i), gpus(2))
		c.CreatePods(after)
		c.WaitPhase(after.Name, 30*time.Second, v1.PodRunning)
		honest = append(honest, after.Name)
		c.wantNoneShared(t)
		for _, pod := range []*v1.Pod{past, early, through, after} {
			c.DeletePod(pod.Name)
		}
	}
	for _, seen := range c.given.All() {
		if slices.Contains(honest, seen.Pod.Name) {
			if err := node.AsPlanned(seen.Pod, seen.GPUs); err != nil {
				t.Error(err)
			}
		}
	}
	if now := c.givenOf(t, "victim", 2); !slices.Equal(now, had) || c.Pod("victim").Status.ContainerStatuses[0].RestartCount > 0 {
		t.Errorf("the victim had %v, and has %v", had, now)
	}
	if now := node.AgentProcess.Children(); !slices.Equal(now, workers) {
		t.Errorf("the workers of the agent were %v, and are %v", workers, now)
	}
	if twice := c.berth.Metric("berth_audit_double_grants"); twice != 0 {
		t.Errorf("Berth counts %v GPUs that it gave twice", twice)
	}
}

// wantNoneShared fails the test where two pods that run have the same GPU.
func (c agentCluster) wantNoneShared(t *testing.T) {
	t.Helper()
	pods, err := c.ListPods("")
	if err != nil {
		t.Fatal(err)
	}
	owner := map[string]string{}
	for _, pod := range pods {
		for _, id := range heldBy(&pod) {
			if other, taken := owner[id]; taken && other != pod.Name {
				t.Errorf("%s and %s have %s", other, pod.Name, id)
			}
			owner[id] = pod.Name
		}
	}
}

func heldBy(pod *v1.Pod) []string {
	var all []string
	for _, ids := range harness.GivenTo(pod, harness.GPUResource) {
		all = append(all, ids...)
	}
	return all
}
