// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"berth.dev/e2e/harness"
)

const (
	claimsFolder = "manifests/components/dra-claims"
	claimsLabel  = "berth.dev/dra-claims=true"
)

// startWithClaims has the policy of components/dra-claims in force in the namespace of the tests.
func startWithClaims(t *testing.T) *harness.Plane {
	t.Helper()
	plane := harness.NewPlane(t, "--enable-admission-plugins=MutatingAdmissionPolicy")
	plane.Kubectl("apply", "--filename="+claimsFolder+"/policy.yaml")
	plane.Kubectl("apply", "--namespace="+harness.Namespace, "--filename="+claimsFolder+"/templates.yaml")
	plane.Kubectl("label", "namespace", harness.Namespace, claimsLabel)
	harness.Eventually(t, "the policy to be in force", 30*time.Second, func() error {
		if pod := created(t, plane, harness.Namespace, askingFor("1")); len(pod.Spec.ResourceClaims) == 0 {
			return fmt.Errorf("a pod is as it was")
		}
		return nil
	})
	return plane
}

// created is what the API server would make of the pod.
func created(t *testing.T, plane *harness.Plane, namespace string, pod *v1.Pod) *v1.Pod {
	t.Helper()
	pod = pod.DeepCopy()
	pod.Namespace = namespace
	made, err := plane.Client.CoreV1().Pods(namespace).Create(t.Context(), pod, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// askingFor is a pod with a container for each of these numbers of GPUs, "": none.
func askingFor(gpus ...string) *v1.Pod {
	pod := harness.Pod("asking", nil)
	first := pod.Spec.Containers[0]
	pod.Spec.Containers = nil
	for i, count := range gpus {
		container := *first.DeepCopy()
		container.Name = fmt.Sprintf("c%d", i)
		if count != "" {
			container.Resources.Limits[harness.GPUResource] = resource.MustParse(count)
		}
		pod.Spec.Containers = append(pod.Spec.Containers, container)
	}
	return pod
}

// claimsOf says which template each container has a claim from, and how many GPUs it asks for still: "c0=berth-gpu-2 c1+1".
func claimsOf(pod *v1.Pod) string {
	templates := map[string]string{}
	for _, claim := range pod.Spec.ResourceClaims {
		templates[claim.Name] = *claim.ResourceClaimTemplateName
	}
	var texts []string
	for _, container := range pod.Spec.Containers {
		for _, claim := range container.Resources.Claims {
			texts = append(texts, container.Name+"="+templates[claim.Name])
			delete(templates, claim.Name)
		}
		for _, list := range []v1.ResourceList{container.Resources.Limits, container.Resources.Requests} {
			if count, there := list[harness.GPUResource]; there {
				texts = append(texts, container.Name+"+"+count.String())
			}
		}
	}
	for _, template := range slices.Sorted(maps.Values(templates)) {
		texts = append(texts, "nobody="+template)
	}
	return strings.Join(texts, " ")
}

func TestThePolicyTurnsGPUsIntoClaims(t *testing.T) {
	plane := startWithClaims(t)
	for _, c := range []struct {
		gpus []string
		want string
	}{
		{[]string{"1"}, "c0=berth-gpu-1"},
		{[]string{"8"}, "c0=berth-gpu-8"},
		{[]string{"16"}, "c0=berth-gpu-16"},
		{[]string{"", "2", "", "1", "2"}, "c1=berth-gpu-2 c3=berth-gpu-1 c4=berth-gpu-2"},
		{[]string{"0", "2"}, "c0+0 c0+0 c1=berth-gpu-2"},
		{slices.Repeat([]string{"1"}, 16), oneEach(16)},
		// What there is no template for stays, and all of the pod with it.
		{[]string{"9"}, "c0+9 c0+9"},
		{[]string{"2", "9"}, "c0+2 c0+2 c1+9 c1+9"},
		{[]string{"0"}, "c0+0 c0+0"},
		{[]string{""}, ""},
	} {
		before := askingFor(c.gpus...)
		made := created(t, plane, harness.Namespace, before)
		if got := claimsOf(made); got != c.want {
			t.Errorf("%v: want %q, got %q", c.gpus, c.want, got)
		}
		for i, container := range made.Spec.Containers { // CPU and memory are as they were
			if want := before.Spec.Containers[i].Resources.Limits.Cpu(); container.Resources.Limits.Cpu().Cmp(*want) != 0 {
				t.Errorf("%v: container %d: want CPU %v, got %v", c.gpus, i, want, container.Resources)
			}
		}
	}
}

// oneEach is a claim for one GPU in each of the containers.
func oneEach(count int) string {
	var texts []string
	for i := range count {
		texts = append(texts, fmt.Sprintf("c%d=berth-gpu-1", i))
	}
	return strings.Join(texts, " ")
}

func TestThePolicyOfClaimsLeavesOtherPodsAlone(t *testing.T) {
	plane := startWithClaims(t)
	for _, name := range []string{"unlabelled", "without-templates"} {
		plane.Kubectl("create", "namespace", name)
	}
	plane.Kubectl("label", "namespace", "without-templates", claimsLabel)
	plane.Kubectl("apply", "--namespace=unlabelled", "--filename="+claimsFolder+"/templates.yaml")
	annotated := func(key, value string) func(*v1.Pod) {
		return func(pod *v1.Pod) { pod.Annotations = map[string]string{key: value} }
	}
	for name, c := range map[string]struct {
		namespace string
		change    func(*v1.Pod)
		mutated   bool
	}{
		"of another namespace":             {"unlabelled", nil, false},
		"of a namespace without templates": {"without-templates", nil, false},
		"with the label":                   {"", func(pod *v1.Pod) { pod.Labels = map[string]string{"berth.dev/dra-claims": "false"} }, false},
		"that names its node":              {"", func(pod *v1.Pod) { pod.Spec.NodeName = "g0" }, false},
		"of a model":                       {"", annotated("berth.dev/gpu-model", "H100"), false},
		"that requires links":              {"", annotated("berth.dev/link", "required"), false},
		"that requires one NUMA node":      {"", annotated("berth.dev/numa", "required"), false},
		"of a gang":                        {"", annotated("berth.dev/gang", "g"), true},
		"that prefers links":               {"", annotated("berth.dev/link", "preferred"), true},
		"with an annotation of others":     {"", annotated("example.com/a", "b"), true},
		"of another scheduler":             {"", func(pod *v1.Pod) { pod.Spec.SchedulerName = "others" }, true},
		"whose init container has no GPUs": {"", func(pod *v1.Pod) {
			pod.Spec.InitContainers = askingFor("").Spec.Containers
			pod.Spec.InitContainers[0].Name = "i"
		}, true},
		"whose init container has GPUs": {"", func(pod *v1.Pod) {
			pod.Spec.InitContainers = askingFor("1").Spec.Containers
			pod.Spec.InitContainers[0].Name = "i"
		}, false},
		"of 17 containers":                  {"", func(pod *v1.Pod) { *pod = *askingFor(slices.Repeat([]string{"1"}, 17)...) }, false},
		"with a claim of the policy's name": {"", withClaim("berth-gpus-7"), false},
		"with a claim of its own":           {"", withClaim("own"), true},
	} {
		pod := askingFor("2")
		if c.change != nil {
			c.change(pod)
		}
		namespace := c.namespace
		if namespace == "" {
			namespace = harness.Namespace
		}
		made := created(t, plane, namespace, pod)
		_, asks := made.Spec.Containers[0].Resources.Limits[harness.GPUResource]
		_, requests := made.Spec.Containers[0].Resources.Requests[harness.GPUResource]
		claims := len(made.Spec.ResourceClaims) - len(pod.Spec.ResourceClaims)
		if c.mutated && (asks || requests || claims != 1) {
			t.Errorf("a pod %s: want a claim in place of its GPUs, got %q", name, claimsOf(made))
		}
		if !c.mutated && (!asks || !requests || claims != 0) {
			t.Errorf("a pod %s: want it as it was, got %q", name, claimsOf(made))
		}
	}
}

func withClaim(name string) func(*v1.Pod) {
	return func(pod *v1.Pod) {
		template := "berth-gpu-1"
		pod.Spec.ResourceClaims = []v1.PodResourceClaim{{Name: name, ResourceClaimTemplateName: &template}}
		pod.Spec.Containers[0].Resources.Claims = []v1.ResourceClaim{{Name: name}}
	}
}

// With Kubernetes' own controller of claims: pods that say `nvidia.com/gpu: N` have the GPUs that Berth chose, and give
// them back.
func TestBerthChoosesTheGPUsOfPodsThatAskByNumber(t *testing.T) {
	needBerth(t)
	plane := startWithClaims(t)
	publishWhole(t, plane, 1, 4)
	grantChoice(plane)
	plane.StartControllerManager()
	berth := plane.StartBerth(choosing)
	plane.StartScheduler(harness.ShippedExtenders(t, berth.URL)...)
	place := func(name, gpus, want string) {
		t.Helper()
		plane.CreatePods(harness.Pod(name, harness.Ask{harness.GPUResource: gpus}))
		plane.WaitBound(30 * time.Second)
		if got := strings.Join(devicesOf(t, plane, name), " "); got != want {
			t.Errorf("pod %s: want %s, got %s", name, want, got)
		}
	}
	place("one", "1", "g0/gpu-0")
	place("two", "2", "g0/gpu-2 g0/gpu-3") // of one NUMA node, where the first that are free are not
	if got := berth.Metric("berth_claim_allocations_total"); got != 2 {
		t.Errorf("want two pods, all by Berth, got %g\n%s", got, berth.Log())
	}
	plane.Kubectl("delete", "pod", "two", "--grace-period=0", "--force")
	place("later", "2", "g0/gpu-2 g0/gpu-3")
}

// Members of a gang that ask by number get claims too, and start together or not at all.
func TestAGangThatAsksByNumberStartsWithTheGPUsThatBerthChose(t *testing.T) {
	needBerth(t)
	plane := startWithClaims(t)
	publishWhole(t, plane, 2, 4)
	grantChoice(plane)
	plane.StartControllerManager()
	berth := plane.StartBerth(choosing)
	plane.StartScheduler(harness.ShippedExtenders(t, berth.URL)...)
	gang := func(name, gpus string, size int) []*v1.Pod {
		var pods []*v1.Pod
		for i := range size {
			pod := harness.Pod(fmt.Sprintf("%s-%d", name, i), harness.Ask{harness.GPUResource: gpus})
			pod.Labels = map[string]string{harness.GangLabel: name}
			inBerthsWords.join(pod, name, size)
			pods = append(pods, pod)
		}
		plane.CreatePods(pods...)
		return pods
	}
	gang("large", "3", 3) // there is room for two of them
	plane.WaitPending("large-0", 30*time.Second)
	pods := gang("fits", "3", 2)
	start := time.Now()
	for _, pod := range pods {
		harness.Eventually(t, pod.Name+" to be bound", 60*time.Second, func() error {
			if plane.Pod(pod.Name).Spec.NodeName == "" {
				return fmt.Errorf("it is not bound")
			}
			return nil
		})
	}
	t.Logf("the gang was whole after %s", time.Since(start))
	nodes := map[string]bool{}
	for _, pod := range pods {
		bound := plane.Pod(pod.Name)
		nodes[bound.Spec.NodeName] = true
		if len(bound.Status.ResourceClaimStatuses) != 1 {
			t.Fatalf("pod %s: want one claim, got %v", pod.Name, bound.Status.ResourceClaimStatuses)
		}
		if text, _ := allocated(t, plane, *bound.Status.ResourceClaimStatuses[0].ResourceClaimName); strings.Count(text, "gpus=") != 3 {
			t.Errorf("pod %s: want three GPUs, got %q", pod.Name, text)
		}
	}
	if len(nodes) != 2 {
		t.Errorf("want one pod on each node, got %v", nodes)
	}
	for i := range 3 {
		for _, status := range plane.Pod(fmt.Sprintf("large-%d", i)).Status.ResourceClaimStatuses {
			if text, allocation := allocated(t, plane, *status.ResourceClaimName); allocation != nil {
				t.Errorf("want nothing allocated for the gang that does not fit, got %q", text)
			}
		}
	}
	if got := berth.Metric("berth_claim_allocations_total"); got != 2 {
		t.Errorf("want two pods, all by Berth, got %g\n%s", got, berth.Log())
	}
}

// The templates of a namespace are the same, whether they are applied or come with the chart.
func TestTheChartGivesClaimsWhereTheyAreAskedFor(t *testing.T) {
	values := valuesOf(t, variants[0])
	without := chartObjects(t, values, "berth-system")
	values["draClaims"] = map[string]any{"enabled": true, "namespaces": []any{"team-a"}}
	got := chartObjects(t, values, "berth-system")
	for _, object := range claimObjects(t) {
		key := keyOf(object)
		if _, there := without[key]; there {
			t.Errorf("%s is there although draClaims.enabled is false", key)
		}
		if object.GetKind() == "ResourceClaimTemplate" {
			object.SetNamespace("team-a")
		}
		if !reflect.DeepEqual(object.Object, got[key].Object) {
			t.Errorf("%s: want\n%s\ngot\n%s", key, marshal(t, object.Object), marshal(t, got[key].Object))
		}
		delete(got, key)
	}
	if len(got) != len(without) {
		t.Errorf("it has more: %v", slices.Collect(maps.Keys(got)))
	}
	values["draClaims"].(map[string]any)["namespaces"] = []any{"team-a", "team-b"}
	text := execute(t, "dra-claims.yaml", fileText(t, chart+"/templates/dra-claims.yaml"), values, "gpu")
	if parts := strings.Split(text, "---\n"); len(parts) != 1+2+2*9 {
		t.Errorf("want the policy and the templates of two namespaces, got %d objects", len(parts)-1)
	}
	for _, part := range strings.Split(text, "---\n")[1:] {
		if err := yaml.UnmarshalStrict([]byte(part), &map[string]any{}); err != nil {
			t.Errorf("%v\n%s", err, part)
		}
	}
}
