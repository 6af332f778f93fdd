// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"berth.dev/e2e/harness"
)

const (
	fractionOfMain  = "nvidia.com/container.main.gpu-memory.request"
	fractionDevices = "nvidia.com/container.main.gpus.devices"
)

// withFraction is a pod with a share that NVIDIA's driver enforces.
func withFraction(name string) *v1.Pod {
	pod := harness.Pod(name, harness.Ask{"berth.dev/gpu-memory-mib": "0"})
	pod.Annotations[fractionOfMain] = "1Gi"
	return pod
}

func TestBerthAndKaiAloneNameTheGpusOfFractions(t *testing.T) {
	c := nriCluster{controlled: startControlled(t, 0)}
	node := harness.Node("t4", harness.GPUModel, 2)
	node.Status.Conditions = append(node.Status.Conditions, v1.NodeCondition{Type: "gpu-fractioning.nvidia.com/Ready", Status: v1.ConditionTrue})
	c.AddNodes(node)
	c.Kubectl("apply", "--filename=manifests/components/fractions/policy.yaml")
	c.allow(t, "tenant", []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"pods", "pods/status", "pods/binding"}, Verbs: []string{"*"}}})
	tenant := c.as(t, "tenant").CoreV1().Pods(harness.Namespace)
	refused := func(what, key, want string, err error) {
		t.Helper()
		if err == nil || !strings.Contains(err.Error(), "annotation "+key+": "+want) {
			t.Errorf("%s: want it refused with %q, got %v", what, want, err)
		}
	}
	harness.Eventually(t, "the policy of devices to be in force", 30*time.Second, func() error {
		named := withFraction("first")
		named.Annotations[fractionDevices] = "GPU-t4-0"
		_, err := tenant.Create(t.Context(), named, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		if err == nil {
			return fmt.Errorf("a pod that names a device is taken")
		}
		return nil
	})
	c.CreatePods(withFraction("share"))
	c.WaitBound(30 * time.Second)
	devices, err := harness.DevicesOf(c.Pod("share"))
	if err != nil {
		t.Fatal(err)
	}
	want := fmt.Sprintf("GPU-t4-%d", devices.Containers["main"].GPUs[0].Index)
	if got := c.Pod("share").Annotations[fractionDevices]; got != want {
		t.Errorf("want %s=%s, got %q", fractionDevices, want, got)
	}
	// An API server takes policies up one by one.
	harness.Eventually(t, "the policy of bound pods to be in force", 30*time.Second, func() error {
		_, err := tenant.Patch(t.Context(), "share", types.MergePatchType, []byte(fmt.Sprintf(`{"metadata":{"annotations":{%q:"2Gi"}}}`, fractionOfMain)),
			metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}})
		if err == nil {
			return fmt.Errorf("a bound pod may ask for another share")
		}
		return nil
	})
	named := withFraction("thief")
	named.Annotations[fractionDevices] = want
	_, err = tenant.Create(t.Context(), named, metav1.CreateOptions{})
	refused("create", fractionDevices, "want it from Berth or KAI alone", err)
	for key, value := range map[string]string{fractionDevices: `"all"`, fractionOfMain: `"15Gi"`, "nvidia.com/container.main.gpu-memory.limit": `"15Gi"`} {
		text := fmt.Sprintf(`{"metadata":{"annotations":{%q:%s}}}`, key, value)
		for _, subresource := range [][]string{nil, {"status"}} {
			_, err = tenant.Patch(t.Context(), "share", types.MergePatchType, []byte(text), metav1.PatchOptions{}, subresource...)
			if err == nil || !strings.Contains(err.Error(), "annotation "+key+": want it ") {
				t.Errorf("patch of %s: want it refused, got %v", key, err)
			}
		}
	}
	_, err = tenant.Patch(t.Context(), "share", types.MergePatchType, []byte(fmt.Sprintf(`{"metadata":{"annotations":{%q:null}}}`, fractionDevices)), metav1.PatchOptions{})
	if err == nil || !strings.Contains(err.Error(), "annotation "+fractionDevices+": want it ") {
		t.Errorf("removal: want it refused, got %v", err)
	}
	bound := withFraction("bound-by-others")
	bound.Spec.SchedulerName = "nobody"
	c.CreatePods(bound)
	err = tenant.Bind(t.Context(), &v1.Binding{ObjectMeta: metav1.ObjectMeta{Name: bound.Name, Annotations: map[string]string{fractionDevices: want}},
		Target: v1.ObjectReference{Kind: "Node", Name: "t4"}}, metav1.CreateOptions{})
	refused("bind", fractionDevices, "want it from Berth or KAI alone", err)
	// What has no node may still ask for another share, and what changes something else passes.
	for name, text := range map[string]string{"bound-by-others": fmt.Sprintf(`{"metadata":{"annotations":{%q:"2Gi"}}}`, fractionOfMain),
		"share": `{"metadata":{"labels":{"a":"b"}}}`} {
		if _, err := tenant.Patch(t.Context(), name, types.MergePatchType, []byte(text), metav1.PatchOptions{}); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
	for _, name := range []string{"berth-fractions", "berth-fractions-kept"} {
		if policy := c.Kubectl("get", "validatingadmissionpolicy", name, "-o", "jsonpath={.status.typeChecking}"); strings.Contains(policy, "warning") {
			t.Errorf("its expressions are not of one type: %s", policy)
		}
	}
}
