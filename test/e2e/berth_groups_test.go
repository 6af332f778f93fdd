// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"

	"berth.dev/e2e/harness"
)

// The coscheduling plugin's PodGroup, the part that this test needs.
const podGroupDefinition = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: podgroups.scheduling.x-k8s.io}
spec:
  group: scheduling.x-k8s.io
  scope: Namespaced
  names: {plural: podgroups, singular: podgroup, kind: PodGroup, listKind: PodGroupList}
  versions:
  - name: v1alpha1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec: {type: object, properties: {minMember: {type: integer, format: int32}}}
`

const podGroup = `
apiVersion: scheduling.x-k8s.io/v1alpha1
kind: PodGroup
metadata: {name: %s, namespace: default}
spec: {minMember: %d}
`

// waitEvents waits until Berth has heard so many changes of a resource.
func waitEvents(t *testing.T, berth *harness.Berth, resource string, count int) {
	t.Helper()
	line := regexp.MustCompile(`berth_watch_events_total\{resource="` + regexp.QuoteMeta(resource) + `"\} (\d+)`)
	harness.Eventually(t, "Berth to hear of "+resource, 10*time.Second, func() error {
		found := line.FindStringSubmatch(berth.Metrics())
		if len(found) == 0 {
			return errors.New("they are not watched")
		}
		if heard, err := strconv.Atoi(found[1]); err != nil || heard < count {
			return fmt.Errorf("want %d events, got %s", count, found[1])
		}
		return nil
	})
}

func apply(t *testing.T, plane *harness.Plane, text string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "object.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	plane.Kubectl("apply", "--filename="+file)
}

// define applies a definition of a resource and waits until its API is served.
func define(t *testing.T, plane *harness.Plane, definition string) {
	t.Helper()
	apply(t, plane, definition)
	plane.Kubectl("wait", "--for=condition=Established", "crd", "--all", "--timeout=30s")
}

// addTwoRacks adds a rack of five GPUs and one of eight, and gives Berth's configuration for them.
func addTwoRacks(plane *harness.Plane) string {
	for name, gpus := range map[string]int{"small": 5, "large": 8} {
		node := harness.Node(name, harness.GPUModel, gpus)
		node.Labels["rack"] = name
		plane.AddNodes(node)
	}
	return "topology: {levels: [{name: rack, labels: [rack]}]}\n"
}

func byLabel(pod *v1.Pod, group string) {
	pod.Labels = map[string]string{"scheduling.x-k8s.io/pod-group": group}
}

func byField(pod *v1.Pod, group string) {
	pod.Spec.SchedulingGroup = &v1.PodSchedulingGroup{PodGroupName: &group}
}

// placeGroup creates pods of a group that must be in one rack, and gives the node of the first.
func placeGroup(t *testing.T, plane *harness.Plane, group string, size int, join func(*v1.Pod, string)) string {
	t.Helper()
	pods := oneGPUEach(group, size)
	for _, pod := range pods {
		join(pod, group)
		pod.Annotations["berth.dev/required-domain"] = "rack"
	}
	plane.CreatePods(pods...)
	plane.WaitBound(30 * time.Second)
	return plane.Pod(pods[0].Name).Spec.NodeName
}

// A group goes to the smallest rack that holds all of it, once its size is known; before, to the one with most room.
func TestPodGroupsAreReadFromWhenTheirAPIIsServed(t *testing.T) {
	needBerth(t)
	plane := harness.NewPlane(t)
	berth := plane.StartBerth(addTwoRacks(plane))
	plane.StartScheduler(harness.ShippedExtenders(t, berth.URL)...)
	if node := placeGroup(t, plane, "unknown", 2, byLabel); node != "large" {
		t.Errorf("want a group of unknown size in the larger rack, got %s", node)
	}
	missing := len(samplesOf(berth.Metrics())["berth_watch_served"]) - int(berth.Metric("berth_watch_served"))
	if missing == 0 {
		t.Fatal("every API is served from the beginning")
	}

	define(t, plane, podGroupDefinition)
	apply(t, plane, fmt.Sprintf(podGroup, "known", 2))
	harness.Eventually(t, "Berth to find the API", time.Minute, func() error {
		if still := len(samplesOf(berth.Metrics())["berth_watch_served"]) - int(berth.Metric("berth_watch_served")); still != missing-1 {
			return fmt.Errorf("%d are not served, %d at first", still, missing)
		}
		return nil
	})
	if node := placeGroup(t, plane, "known", 2, byLabel); node != "small" {
		t.Errorf("want a group of two in the smaller rack, got %s", node)
	}

	// One that changes is seen: two would fit there, four do not.
	apply(t, plane, fmt.Sprintf(podGroup, "grown", 2))
	apply(t, plane, fmt.Sprintf(podGroup, "grown", 4))
	waitEvents(t, berth, "podgroups.scheduling.x-k8s.io", 2)
	if node := placeGroup(t, plane, "grown", 4, byLabel); node != "large" {
		t.Errorf("want a group of four in the larger rack, got %s", node)
	}
	plane.CheckGrants()
	if err := contains(berth.Log(), "watch_problem"); err == nil {
		t.Errorf("APIs that are not served are problems:\n%s", berth.Log())
	}
}

const nativePodGroup = `
apiVersion: %s
kind: PodGroup
metadata: {name: %s, namespace: default}
spec: {schedulingPolicy: {gang: {minCount: %d}}}
`

// nativeAPI is the API of Kubernetes' own pod groups.
func nativeAPI(t *testing.T) string {
	if strings.HasPrefix(harness.KubernetesVersion(t), "1.36.") {
		return "scheduling.k8s.io/v1alpha2"
	}
	return "scheduling.k8s.io/v1beta1"
}

// planeWithNativeGroups has an API server that serves them.
func planeWithNativeGroups(t *testing.T) *harness.Plane {
	t.Helper()
	return harness.NewPlane(t, "--feature-gates=GenericWorkload=true", "--runtime-config="+nativeAPI(t)+"=true")
}

func TestPodGroupsOfKubernetesAreRead(t *testing.T) {
	needBerth(t)
	plane := planeWithNativeGroups(t)
	berth := plane.StartBerth(addTwoRacks(plane))
	plane.StartScheduler(harness.ShippedExtenders(t, berth.URL)...)
	apply(t, plane, fmt.Sprintf(nativePodGroup, nativeAPI(t), "two", 2))
	waitEvents(t, berth, "podgroups.scheduling.k8s.io", 1)
	if node := placeGroup(t, plane, "two", 2, byField); node != "small" {
		t.Errorf("want a group of two in the smaller rack, got %s", node)
	}
	plane.CheckGrants()
}
