// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
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
	other := v1.Toleration{Key: "example.com/night", Operator: v1.TolerationOpExists}
	const waits = "tolerates none of the taints sku, nvidia.com/gpu"
	wantWarnings(t, plane, "berth-gpu-toleration", map[*v1.Pod]string{
		pod("without", limited): waits, pod("with-another", limited, other): waits,
		pod("with-sku", limited, sku): "", pod("with-all", limited, any): "", pod("without-gpus", nil): ""})
	policy := plane.Kubectl("get", "validatingadmissionpolicy", "berth-gpu-nodes", "-o", "jsonpath={.status.typeChecking}")
	if strings.Contains(policy, "warning") {
		t.Errorf("its expressions are not of one type: %s", policy)
	}
}

// wantWarnings creates the pods, without keeping them; a warning of the policy has the text, "": there is none.
func wantWarnings(t *testing.T, plane *harness.Plane, policy string, pods map[*v1.Pod]string) {
	t.Helper()
	want := "Warning: Validation failed for ValidatingAdmissionPolicy '" + policy + "'"
	for pod, text := range pods {
		pod.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}
		file := filepath.Join(t.TempDir(), "pod.json")
		written, err := json.Marshal(pod)
		if err == nil {
			err = os.WriteFile(file, written, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
		harness.Eventually(t, "the warning of "+pod.Name, 30*time.Second, func() error {
			out := plane.Kubectl("create", "--dry-run=server", "--filename="+file)
			if strings.Contains(out, want) != (text != "") || !strings.Contains(out, text) {
				return fmt.Errorf("want a warning %q, got %q", text, out)
			}
			return nil
		})
	}
	if told := plane.Kubectl("get", "validatingadmissionpolicy", policy, "-o", "jsonpath={.status.typeChecking}"); strings.Contains(told, "warning") {
		t.Errorf("its expressions are not of one type: %s", told)
	}
}
