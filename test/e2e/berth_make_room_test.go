// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"berth.dev/e2e/harness"
)

const makesRoom = "makeRoom: {mode: act, afterMinutes: 0}\n"

const halfNodeTemplate = `
  template:
    metadata:
      labels: {app: %[1]s, guarded: "%[3]t"}
      annotations: {%[2]s}
    spec:
      restartPolicy: %[4]s
      terminationGracePeriodSeconds: %[5]d
      containers: [{name: main, image: none, resources: {limits: {nvidia.com/gpu: 4}}}]
`

// halfNodes are pods of 4 GPUs by a Deployment. checkpointed: they have just saved their work, so that moving them is cheap.
func halfNodes(name string, replicas int, checkpointed, guarded bool, grace int) string {
	return fmt.Sprintf(`
apiVersion: apps/v1
kind: Deployment
metadata: {name: %s, namespace: default}
spec:
  replicas: %d
  selector: {matchLabels: {app: %[1]s}}`, name, replicas) + halfNodeTemplateOf(name, checkpointed, guarded, "Always", grace)
}

func halfNodeTemplateOf(name string, checkpointed, guarded bool, restart string, grace int) string {
	annotations := ""
	if checkpointed {
		annotations = fmt.Sprintf("berth.dev/checkpointed-at: %q", time.Now().UTC().Format(time.RFC3339))
	}
	return fmt.Sprintf(halfNodeTemplate, name, annotations, guarded, restart, grace)
}

func halfNodeJob(name string) string {
	return fmt.Sprintf(`
apiVersion: batch/v1
kind: Job
metadata: {name: %s, namespace: default}
spec:`, name) + halfNodeTemplateOf(name, true, false, "Never", 1)
}

// startMakingRoom has a node for each object, which makes one pod of 4 GPUs there; 4 are idle on each. They have run for an hour.
func startMakingRoom(t *testing.T, objects ...string) controlled {
	t.Helper()
	needBerth(t)
	c := controlled{cluster: cluster{Plane: harness.NewPlane(t)}}
	c.CreateNodes(len(objects))
	c.GrantBerth()
	c.Kubectl("apply", "--filename=manifests/components/make-room/rbac.yaml",
		"--filename=manifests/components/keep-nodes/rbac.yaml", "--filename=manifests/components/keep-nodes/policy.yaml")
	c.kubelets = c.StartKubelets()
	c.StartControllerManager()
	c.berth = c.StartBerth(makesRoom)
	c.scheduler = c.StartScheduler(harness.ShippedExtenders(t, c.berth.URL)...)
	for i := range objects {
		filler := harness.Pod(fmt.Sprintf("filler-%d", i), harness.Ask{harness.GPUResource: "4"})
		filler.Spec.NodeSelector = map[string]string{"kubernetes.io/hostname": fmt.Sprintf("node-%04d", i)}
		c.CreatePods(filler)
	}
	c.WaitBound(30 * time.Second)
	for i, object := range objects {
		apply(t, c.Plane, object)
		harness.Eventually(t, "its pod to run", 60*time.Second, func() error {
			if runs := len(c.running(t)); runs != len(objects)+i+1 {
				return fmt.Errorf("%d pods run", runs)
			}
			return nil
		})
	}
	for i := range objects {
		c.Kubectl("delete", "pod", fmt.Sprintf("filler-%d", i), "--wait=true")
	}
	for _, pod := range c.running(t) {
		patch := fmt.Appendf(nil, `{"status": {"startTime": %q}}`, time.Now().Add(-time.Hour).UTC().Format(time.RFC3339))
		if _, err := c.Client.CoreV1().Pods(harness.Namespace).Patch(t.Context(), pod.Name, types.MergePatchType, patch,
			metav1.PatchOptions{}, "status"); err != nil {
			t.Fatal(err)
		}
	}
	return c
}

// running are the pods that run and are not ending, by UID.
func (c controlled) running(t *testing.T) map[types.UID]v1.Pod {
	t.Helper()
	pods, err := c.ListPods("")
	if err != nil {
		t.Fatal(err)
	}
	running := map[types.UID]v1.Pod{}
	for _, pod := range pods {
		if pod.Status.Phase == v1.PodRunning && pod.DeletionTimestamp == nil {
			running[pod.UID] = pod
		}
	}
	return running
}

func (c controlled) eventTexts() string {
	return c.Kubectl("get", "events", "-o", "jsonpath={range .items[*]}{.reason} {.involvedObject.name}: {.message}{'\\n'}{end}")
}

// A gang of two whole nodes waits beside four nodes that are half idle: one pod of a Deployment and one of a Job are moved,
// those that have just saved their work, and no other.
func TestBerthMakesRoomByMovesOfADeploymentAndAJob(t *testing.T) {
	c := startMakingRoom(t, halfNodes("web", 1, true, false, 1), halfNodeJob("batch"),
		halfNodes("old-a", 1, false, false, 1), halfNodes("old-b", 1, false, false, 1))
	before := c.running(t)
	apply(t, c.Plane, gangJob("train", 2, named("train", 2)))
	c.waitRunning(t, ofJob, "train", 2, 2*time.Minute)
	harness.Eventually(t, "the plan to be done", 90*time.Second, func() error {
		return contains(c.berth.Metrics(), `berth_room_plans_total{result="done"} 1`)
	})
	after := c.running(t)
	for uid, pod := range before {
		_, stays := after[uid]
		if old := strings.HasPrefix(pod.Name, "old-"); old != stays {
			t.Errorf("%s: want it moved: %t", pod.Name, !old)
		}
	}
	c.waitRunning(t, "app", "web", 1, 20*time.Second)
	c.waitRunning(t, "app", "batch", 1, 30*time.Second)
	events := c.eventTexts()
	for _, want := range []string{"MakesRoom train-", "MovedForRoom web-", "MovedForRoom batch-", "TakesKeptPlace web-",
		"TakesKeptPlace batch-", "RoomMade train-"} {
		if err := contains(events, want); err != nil {
			t.Error(err)
		}
	}
	for _, want := range []string{`berth_room_moves_total{result="evicted"} 2`, "berth_room_moves_left 0", "berth_audit_double_grants 0"} {
		if err := contains(c.berth.Metrics(), want); err != nil {
			t.Error(err)
		}
	}
	if err := contains(c.berth.Page("/debug/snapshot"), "moves-here"); err == nil {
		t.Error("a place is still held")
	}
	if err := contains(c.berth.Log(), "forbidden"); err == nil {
		t.Errorf("Berth lacks a right:\n%s", c.berth.Log())
	}
	c.check(t)
}

// A budget that allows nothing any more after the first move: Berth stops, says why, and holds nothing.
func TestBerthStopsMakingRoomWhereABudgetRefuses(t *testing.T) {
	c := startMakingRoom(t, halfNodes("web", 1, true, true, 6), halfNodes("shop", 1, true, true, 6),
		halfNodes("old-a", 1, false, false, 1), halfNodes("old-b", 1, false, false, 1))
	budget := func(available int) {
		apply(t, c.Plane, fmt.Sprintf(`
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: guard, namespace: default}
spec: {minAvailable: %d, selector: {matchLabels: {guarded: "true"}}}
`, available))
	}
	budget(1)
	before := c.running(t)
	apply(t, c.Plane, gangJob("train", 2, named("train", 2)))
	harness.Eventually(t, "the first pod to be evicted", 90*time.Second, func() error {
		return contains(c.berth.Metrics(), `berth_room_moves_total{result="evicted"} 1`)
	})
	budget(2)
	harness.Eventually(t, "the plan to be given up", 60*time.Second, func() error {
		return contains(c.berth.Metrics(), `berth_room_plans_total{result="given_up"} 1`)
	})
	events := c.eventTexts()
	if err := contains(events, "RoomGivenUp train-"); err != nil {
		t.Error(err)
	}
	if !strings.Contains(events, "its disruption budget allows no eviction now (1 of 2 moves made)") &&
		!strings.Contains(events, "a PodDisruptionBudget does not allow the eviction of") {
		t.Errorf("want the budget as the reason:\n%s", events)
	}
	harness.Eventually(t, "web and shop to run", 60*time.Second, func() error {
		if web, shop := c.runningOf(t, "app", "web"), c.runningOf(t, "app", "shop"); web != 1 || shop != 1 {
			return fmt.Errorf("%d and %d do", web, shop)
		}
		return nil
	})
	after := c.running(t)
	gone := 0
	for uid := range before {
		if _, stays := after[uid]; !stays {
			gone++
		}
	}
	if gone != 1 {
		t.Errorf("want one pod evicted, got %d", gone)
	}
	if err := contains(c.berth.Page("/debug/snapshot"), "moves-here"); err == nil {
		t.Error("a place is still held")
	}
	c.check(t)
}
