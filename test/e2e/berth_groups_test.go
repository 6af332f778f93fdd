// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"berth.dev/e2e/harness"
)

// The coscheduling plugin's PodGroup, as far as this test needs it.
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

var twoEvents = regexp.MustCompile(`berth_watch_events_total\{resource="podgroups.scheduling.x-k8s.io"\} [2-9]`)

func apply(t *testing.T, plane *harness.Plane, text string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "object.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	plane.Kubectl("apply", "--filename="+file)
}

// placeGroup creates two pods of a group that must be in one rack, and gives the node of the first.
func placeGroup(t *testing.T, plane *harness.Plane, group string) string {
	t.Helper()
	pods := oneGPUEach(group, 2)
	for _, pod := range pods {
		pod.Labels = map[string]string{"scheduling.x-k8s.io/pod-group": group}
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
	for name, gpus := range map[string]int{"small": 5, "large": 8} {
		node := harness.Node(name, harness.GPUModel, gpus)
		node.Labels["rack"] = name
		plane.AddNodes(node)
	}
	berth := plane.StartBerth("topology: {levels: [{name: rack, labels: [rack]}]}\n")
	plane.StartScheduler(harness.ShippedExtenders(t, berth.URL)...)
	if node := placeGroup(t, plane, "unknown"); node != "large" {
		t.Errorf("want a group of unknown size in the larger rack, got %s", node)
	}
	missing := len(samplesOf(berth.Metrics())["berth_watch_served"]) - int(berth.Metric("berth_watch_served"))
	if missing == 0 {
		t.Fatal("every API is served from the beginning")
	}

	apply(t, plane, podGroupDefinition)
	plane.Kubectl("wait", "--for=condition=Established", "crd/podgroups.scheduling.x-k8s.io", "--timeout=30s")
	apply(t, plane, fmt.Sprintf(podGroup, "known", 2))
	harness.Eventually(t, "Berth to find the API", time.Minute, func() error {
		if still := len(samplesOf(berth.Metrics())["berth_watch_served"]) - int(berth.Metric("berth_watch_served")); still != missing-1 {
			return fmt.Errorf("%d are not served, %d at first", still, missing)
		}
		return nil
	})
	if node := placeGroup(t, plane, "known"); node != "small" {
		t.Errorf("want a group of two in the smaller rack, got %s", node)
	}

	// One that changes is seen: two would fit there, four do not.
	apply(t, plane, fmt.Sprintf(podGroup, "grown", 2))
	apply(t, plane, fmt.Sprintf(podGroup, "grown", 4))
	harness.Eventually(t, "Berth to hear of it", 10*time.Second, func() error {
		if !twoEvents.MatchString(berth.Metrics()) {
			return errors.New("less than two events")
		}
		return nil
	})
	if node := placeGroup(t, plane, "grown"); node != "large" {
		t.Errorf("want a group of four in the larger rack, got %s", node)
	}
	plane.CheckGrants()
	if err := contains(berth.Log(), "watch_problem"); err == nil {
		t.Errorf("APIs that are not served are problems:\n%s", berth.Log())
	}
}
