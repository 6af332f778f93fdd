// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"berth.dev/e2e/harness"
)

// The policy of components/guard on pods of every sort; "" as why: it takes the pod.
func TestTheGuardRefusesPodsThatReachForGpuNodes(t *testing.T) {
	plane := harness.NewPlane(t)
	plane.Kubectl("apply", "--filename=manifests/components/guard/policy.yaml")
	plane.Kubectl("apply", "--filename=manifests/components/guard/namespaces.yaml")

	pod := func(name string, ask harness.Ask, tolerations ...v1.Toleration) *v1.Pod {
		made := harness.Pod(name, ask)
		made.Spec.Tolerations = tolerations
		made.Spec.SchedulerName = "nobody"
		return made
	}
	sku := v1.Toleration{Key: "sku", Operator: v1.TolerationOpEqual, Value: "gpu", Effect: v1.TaintEffectNoSchedule}
	any := v1.Toleration{Operator: v1.TolerationOpExists}
	limited := harness.Ask{harness.GPUResource: "1", "memory": "8Gi"}
	daemon := pod("daemon", nil, sku)
	daemon.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "DaemonSet", Name: "d", UID: "u"}}
	initial := pod("initial", harness.Ask{"memory": "1Gi"}, sku)
	initial.Spec.InitContainers = []v1.Container{{Name: "i", Image: "none", Resources: v1.ResourceRequirements{
		Limits: v1.ResourceList{harness.GPUResource: resource.MustParse("1")}}}}
	const noAsk, noLimit = "toleration of sku: want it on pods that ask for GPUs alone", "container main: want a request of cpu"

	asked := []struct {
		pod *v1.Pod
		why string
	}{
		{pod("plain", nil), ""},
		{pod("reaches", nil, sku), noAsk},
		{pod("tolerates-all", nil, any), ""},
		{pod("trains", limited, sku), ""},
		{pod("unlimited", harness.Ask{harness.GPUResource: "1"}, sku), noLimit},
		{pod("share", harness.Ask{"berth.dev/gpu-milli": "300", "memory": "1Gi"}, sku), ""},
		{pod("amd", harness.Ask{"amd.com/gpu": "1", "memory": "1Gi"}, sku), ""},
		{daemon, ""},
		{initial, ""},
	}
	create := func(pod *v1.Pod) error {
		_, err := plane.Client.CoreV1().Pods(pod.Namespace).Create(
			t.Context(), pod, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return err
	}
	harness.Eventually(t, "the policy to be in force", 30*time.Second, func() error {
		if create(asked[1].pod) == nil {
			return fmt.Errorf("a pod that reaches for GPU nodes is taken")
		}
		return nil
	})
	for _, one := range asked {
		err := create(one.pod)
		refused := err != nil && strings.Contains(err.Error(), "berth-gpu-nodes")
		if refused != (one.why != "") || (refused && !strings.Contains(err.Error(), one.why)) {
			t.Errorf("%s: want %q, got %v", one.pod.Name, one.why, err)
		}
	}
	policy := plane.Kubectl("get", "validatingadmissionpolicy", "berth-gpu-nodes", "-o", "jsonpath={.status.typeChecking}")
	if strings.Contains(policy, "warning") {
		t.Errorf("its expressions are not of one type: %s", policy)
	}
}
