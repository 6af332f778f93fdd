// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	extenderv1 "k8s.io/kube-scheduler/extender/v1"

	"berth.dev/e2e/harness"
)

// Annotations of pods that ask for a GPU, and a part of the message with which they are refused; "": they are taken.
var annotated = []struct {
	annotations map[string]string
	why         string
}{
	{map[string]string{"berth.dev/link": "required", "berth.dev/numa": "preferred", "berth.dev/pattern": "ring"}, ""},
	{map[string]string{"berth.dev/link": "none", "berth.dev/pattern": "all-to-all"}, ""},
	{map[string]string{"berth.dev/link": "strict"}, `berth.dev/link: want one of required, preferred, none, got "strict"`},
	{map[string]string{"berth.dev/link": ""}, "berth.dev/link: want one of"},
	{map[string]string{"berth.dev/numa": "none"}, "berth.dev/numa: want one of required, preferred"},
	{map[string]string{"berth.dev/pattern": "Ring"}, "berth.dev/pattern: want one of"},
	{map[string]string{"berth.dev/isolation": "memory"}, ""},
	{map[string]string{"berth.dev/spread": "card"}, ""},
	{map[string]string{"berth.dev/workload-class": "training"}, ""},
	{map[string]string{"berth.dev/keep": "true"}, ""},
	{map[string]string{"berth.dev/keep": "yes"}, "berth.dev/keep: want one of true, false"},
	{map[string]string{"berth.dev/near": "role=prefill", "berth.dev/far": "role=decode, !canary"}, ""},
	{map[string]string{"berth.dev/min-driver": "550.54.15", "berth.dev/min-cuda": "12.4", "berth.dev/min-compute-capability": "8"}, ""},
	{map[string]string{"berth.dev/min-cuda": "12.x"}, "berth.dev/min-cuda: want a version such as 550, 12.4 or 550.54.15"},
	{map[string]string{"berth.dev/min-driver": "550.54.15.1"}, "berth.dev/min-driver: want a version"},
	{map[string]string{"berth.dev/min-driver": ""}, "berth.dev/min-driver: want a version"},
	{map[string]string{"berth.dev/spread": "gpu"}, "berth.dev/spread: want one of card, node"},
	{map[string]string{"berth.dev/isolation": "full"}, "berth.dev/isolation: want one of hardware, memory, none"},
	{map[string]string{"berth.dev/min-bandwidth-gbps": "0"}, ""},
	{map[string]string{"berth.dev/min-bandwidth-gbps": "0050"}, ""},
	{map[string]string{"berth.dev/min-bandwidth-gbps": "-0"}, ""},
	{map[string]string{"berth.dev/min-bandwidth-gbps": "-1"}, "berth.dev/min-bandwidth-gbps: want an integer from 0 to 100000"},
	{map[string]string{"berth.dev/min-bandwidth-gbps": "50GB"}, "berth.dev/min-bandwidth-gbps: want an integer"},
	{map[string]string{"berth.dev/min-bandwidth-gbps": "99999999999999999999"}, "berth.dev/min-bandwidth-gbps: want an integer"},
	{map[string]string{"berth.dev/min-gpu-memory-gib": "40"}, ""},
	{map[string]string{"berth.dev/min-gpu-memory-gib": "0"}, `berth.dev/min-gpu-memory-gib: want an integer from 1 to 100000, got "0"`},
	{map[string]string{"berth.dev/mig-min-slices": "100001"}, "berth.dev/mig-min-slices: want an integer"},
	{map[string]string{"berth.dev/gpu-model": "A100 | H100||"}, ""},
	{map[string]string{"berth.dev/gpu-model": " | "}, "berth.dev/gpu-model: want GPU models joined by |"},
	{map[string]string{"berth.dev/gpu-modell": "A100"}, "berth.dev/gpu-modell: not known to this version of berth"},
	{map[string]string{"berth.dev/": "x"}, ""}, // the API server refuses that name itself
	{map[string]string{"berth.dev/gang": "g", "berth.dev/gang-size": "4", "berth.dev/gang-min": "3"}, ""},
	{map[string]string{"berth.dev/gang": "g", "berth.dev/gang-min": "3"}, ""},
	{map[string]string{"berth.dev/gang": "g"}, "berth.dev/gang-size: want"},
	{map[string]string{"berth.dev/gang": "g", "berth.dev/gang-size": "0"}, "berth.dev/gang-size: want"},
	{map[string]string{"berth.dev/gang": "g", "berth.dev/gang-size": "many"}, "berth.dev/gang-size: want"},
	{map[string]string{"berth.dev/gang": "g", "berth.dev/gang-size": "2", "berth.dev/gang-min": "3"}, "berth.dev/gang-min: want at most"},
	{map[string]string{"berth.dev/gang-size": "many"}, ""}, // nobody's gang
	{map[string]string{"example.com/berth.dev": "x"}, ""},
	{nil, ""},
}

// unreadableToBerth is what Berth says of the annotations of a pod; "" where it can read them.
func unreadableToBerth(t *testing.T, berth *harness.Berth, pod *v1.Pod) string {
	t.Helper()
	names := []string{"node-0000"}
	body, err := json.Marshal(extenderv1.ExtenderArgs{Pod: pod, NodeNames: &names})
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.Post(berth.URL+"/extender/filter", "application/json", strings.NewReader(string(body)))
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	var result extenderv1.ExtenderFilterResult
	if err := json.NewDecoder(response.Body).Decode(&result); err != nil {
		t.Fatal(err)
	}
	for _, why := range result.FailedAndUnresolvableNodes {
		if strings.Contains(why, "annotation ") {
			return why
		}
	}
	return ""
}

func TestThePolicyRefusesTheAnnotationsThatBerthCannotRead(t *testing.T) {
	c := startCluster(t, 1)
	c.Kubectl("apply", "--filename=manifests/components/admission/policy.yaml")
	pods := c.Client.CoreV1().Pods(harness.Namespace)
	create := func(name string, annotations map[string]string) (*v1.Pod, error) {
		pod := harness.Pod(name, harness.Ask{harness.GPUResource: "1"})
		pod.Spec.SchedulerName = "nobody"
		maps.Copy(pod.Annotations, annotations)
		_, err := pods.Create(t.Context(), pod, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return pod, err
	}
	harness.Eventually(t, "the policy to be in force", 30*time.Second, func() error {
		if _, err := create("first", map[string]string{"berth.dev/nonsense": ""}); err == nil {
			return fmt.Errorf("a pod with berth.dev/nonsense is taken")
		}
		return nil
	})
	for i, asked := range annotated {
		pod, err := create(fmt.Sprintf("pod-%d", i), asked.annotations)
		pod.Namespace, pod.UID = harness.Namespace, "uid"
		inBerth := unreadableToBerth(t, c.berth, pod)
		refusedByPolicy := err != nil && strings.Contains(err.Error(), "berth-annotations")
		switch {
		case asked.why == "" && refusedByPolicy:
			t.Errorf("%v: refused: %v (Berth: %q)", asked.annotations, err, inBerth)
		case asked.why != "" && (!refusedByPolicy || !strings.Contains(err.Error(), "annotation "+asked.why)):
			t.Errorf("%v: want %q, got %v", asked.annotations, asked.why, err)
		}
		if (inBerth != "") != (asked.why != "") && asked.annotations["berth.dev/"] == "" {
			t.Errorf("%v: Berth says %q, the policy %v", asked.annotations, inBerth, err)
		}
	}
	policy := c.Kubectl("get", "validatingadmissionpolicy", "berth-annotations", "-o", "jsonpath={.status.typeChecking}")
	if strings.Contains(policy, "warning") {
		t.Errorf("its expressions are not of one type: %s", policy)
	}
}

func TestThePolicyWarnsOfResourcesThatNobodyOffers(t *testing.T) {
	plane := harness.NewPlane(t)
	plane.Kubectl("apply", "--filename=manifests/components/admission/policy.yaml")
	pod := func(name, resource string) *v1.Pod {
		pod := harness.Pod(name, harness.Ask{v1.ResourceName(resource): "1"})
		pod.Spec.SchedulerName = "nobody"
		return pod
	}
	wantWarnings(t, plane, "berth-resource-names", map[*v1.Pod]string{
		pod("mig", "nvidia.com/mig1g.5gb"):    "container main: no node offers nvidia.com/mig1g.5gb; did you mean nvidia.com/mig-1g.5gb?",
		pod("gpus", "nvidia.com/gpus"):        "did you mean nvidia.com/gpu?",
		pod("right", "nvidia.com/mig-1g.5gb"): "", pod("whole", "nvidia.com/gpu"): "",
		pod("other", "example.com/mig1g.5gb"): ""})
}
