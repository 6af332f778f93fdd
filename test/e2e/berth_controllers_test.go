// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"berth.dev/e2e/harness"
)

// controlled is a cluster whose pods are made by controllers and run.
type controlled struct {
	cluster
	kubelets *harness.Kubelets
}

func startControlled(t *testing.T, nodes int, definitions ...string) controlled {
	t.Helper()
	c := controlled{cluster: startCluster(t, nodes, definitions...)}
	c.kubelets = c.StartKubelets()
	c.StartControllerManager()
	return c
}

// podsOf are the pods of a job by Kubernetes' label, ended ones included.
func (c controlled) podsOf(t *testing.T, label, value string) []v1.Pod {
	t.Helper()
	pods, err := c.Client.CoreV1().Pods(harness.Namespace).List(t.Context(), metav1.ListOptions{LabelSelector: label + "=" + value})
	if err != nil {
		t.Fatal(err)
	}
	return pods.Items
}

// runningOf counts those that have a node and neither ended nor are ending.
func (c controlled) runningOf(t *testing.T, label, value string) int {
	t.Helper()
	count := 0
	for _, pod := range c.podsOf(t, label, value) {
		if pod.Spec.NodeName != "" && pod.DeletionTimestamp == nil && !harness.Ended(&pod) {
			count++
		}
	}
	return count
}

func (c controlled) waitRunning(t *testing.T, label, value string, want int, limit time.Duration) {
	t.Helper()
	harness.Eventually(t, fmt.Sprintf("%d pods of %s to run", want, value), limit, func() error {
		if runs := c.runningOf(t, label, value); runs != want {
			return fmt.Errorf("%d do; gangs: %s", runs, c.berth.Page("/debug/gangs"))
		}
		return nil
	})
}

// check is what has to hold at the end of each of these tests.
func (c controlled) check(t *testing.T) {
	t.Helper()
	c.CheckGrants()
	c.kubelets.CheckRefused()
	wantNonePartial(t, c.berth)
}

// gangJob is a Job whose pods start together, 8 GPUs each. annotations are further lines of the template's.
func gangJob(name string, size int, annotations ...string) string {
	return fmt.Sprintf(`
apiVersion: batch/v1
kind: Job
metadata: {name: %s, namespace: default}
spec:
  completionMode: Indexed
  completions: %d
  parallelism: %d
  backoffLimit: 20
  template:
    metadata:
      annotations: {%s}
    spec:
      restartPolicy: Never
      terminationGracePeriodSeconds: 1
      containers: [{name: main, image: none, resources: {limits: {nvidia.com/gpu: 8}}}]
`, name, size, size, strings.Join(annotations, ", "))
}

func named(gang string, size int) string {
	return fmt.Sprintf("berth.dev/gang: %s, berth.dev/gang-size: \"%d\"", gang, size)
}

const ofJob = "batch.kubernetes.io/job-name"

// fillers are pods of 8 GPUs that keep nodes full until they are deleted.
func (c controlled) fill(t *testing.T, nodes int) {
	t.Helper()
	c.CreatePods(harness.Pods("filler", nodes, harness.Ask{harness.GPUResource: "8"})...)
	c.WaitBound(30 * time.Second)
}

// empty deletes the first so many of them.
func (c controlled) empty(t *testing.T, nodes int) {
	t.Helper()
	for i := range nodes {
		c.Kubectl("delete", "pod", fmt.Sprintf("filler-%04d", i), "--wait=false", "--ignore-not-found")
	}
}

// A gang that comes to a full cluster is known and explained before kube-scheduler has asked about any of its pods,
// since it does not ask where no node has a GPU left.
func TestAJobsGangOnAFullClusterIsKnownAndStarts(t *testing.T) {
	const nodes, size = 5, 4
	c := startControlled(t, nodes)
	c.fill(t, nodes)
	apply(t, c.Plane, gangJob("train", size, named("train", size), harness.RunsAnnotation+": 2s"))
	harness.Eventually(t, "the gang to be known", 20*time.Second, func() error {
		gangs := c.gangs(t)
		if len(gangs) != 1 || gangs[0].Waiting != size || gangs[0].State != "waiting" {
			return fmt.Errorf("gangs: %+v", gangs)
		}
		return nil
	})
	t.Logf("why it waits: %s", c.gangs(t)[0].Why)
	wantParts(t, c.ask("explain", "gang", "default/train"), "waiting", "4")
	pod := c.podsOf(t, ofJob, "train")[0].Name
	text := c.ask("explain", "pod", "default/"+pod)
	wantParts(t, text, "its gang default/train is ")
	sentence, rest, _ := strings.Cut(text, "\n")
	if strings.Contains(sentence, "fits when default/filler") {
		t.Errorf("one pod that ends is not enough for the gang:\n%s", text)
	}
	wantParts(t, rest, "Nearest nodes, for this pod alone:")
	if waiting := metricOf(t, c.berth, `berth_gangs{state="waiting"}`); waiting != 1 {
		t.Errorf("want one gang that waits in the metrics, got %v", waiting)
	}

	c.empty(t, 1)
	time.Sleep(2 * time.Second)
	if runs := c.runningOf(t, ofJob, "train"); runs > 0 {
		t.Errorf("%d of %d pods run on room for one", runs, size)
	}
	c.empty(t, nodes)
	c.waitComplete(t, "train", time.Minute)
	c.check(t)
}

// gangs is /debug/gangs.
func (c controlled) gangs(t *testing.T) []gangView {
	t.Helper()
	var views []gangView
	if err := json.Unmarshal([]byte(c.berth.Page("/debug/gangs")), &views); err != nil {
		t.Fatal(err)
	}
	return views
}

type gangView struct {
	Gang, State, Why                               string
	Minimum, Total, Placed, Waiting, Planned, Held int
}

// metricOf is one line of /metrics; 0 where it is not there.
func metricOf(t *testing.T, berth *harness.Berth, line string) float64 {
	t.Helper()
	var value float64
	for text := range strings.Lines(berth.Metrics()) {
		if rest, found := strings.CutPrefix(text, line+" "); found {
			if _, err := fmt.Sscan(rest, &value); err != nil {
				t.Fatal(err)
			}
		}
	}
	return value
}

func (c controlled) waitComplete(t *testing.T, job string, limit time.Duration) {
	t.Helper()
	harness.Eventually(t, "the Job "+job+" to be complete", limit, func() error {
		got, err := c.Client.BatchV1().Jobs(harness.Namespace).Get(t.Context(), job, metav1.GetOptions{})
		if err == nil && got.Status.Succeeded < *got.Spec.Completions {
			err = fmt.Errorf("status: %+v; gangs: %s", got.Status, c.berth.Page("/debug/gangs"))
		}
		return err
	})
}

// Three of four have ended well and the fourth is lost: that the gang ran is known to a Berth that starts later, too.
func TestTheRestOfAGangThatRanIsPlacedByABerthThatStartsLater(t *testing.T) {
	const nodes, size = 5, 4
	c := startControlled(t, nodes)
	apply(t, c.Plane, gangJob("tail", size, named("tail", size)))
	c.waitRunning(t, ofJob, "tail", size, 30*time.Second)
	pods := c.podsOf(t, ofJob, "tail")
	for _, pod := range pods[1:] {
		c.kubelets.End(pod.UID, 0)
	}
	c.waitRunning(t, ofJob, "tail", 1, 30*time.Second)
	c.Kubectl("delete", "pod", pods[0].Name, "--wait=false")
	harness.Eventually(t, "the replacement to wait", 40*time.Second, func() error {
		for _, pod := range c.podsOf(t, ofJob, "tail") {
			if pod.Spec.NodeName == "" && harness.WhyPending(&pod) != "" {
				return nil
			}
		}
		return fmt.Errorf("none waits")
	})
	c.berth.Kill()
	c.berth.Start()
	c.berth.WaitReady()
	start := time.Now()
	c.waitRunning(t, ofJob, "tail", 1, 100*time.Second)
	t.Logf("the replacement runs %s after Berth was started", time.Since(start))
	c.check(t)
}

// Two runs of one template, as a CronJob makes them: each is a gang of its own by what the controller writes.
func TestTwoJobsOfOneTemplateAreTwoGangs(t *testing.T) {
	const nodes, size = 6, 4
	c := startControlled(t, nodes)
	byController := `berth.dev/gang-by: batch.kubernetes.io/controller-uid`
	apply(t, c.Plane, gangJob("run-1", size, byController))
	c.waitRunning(t, ofJob, "run-1", size, 30*time.Second)
	apply(t, c.Plane, gangJob("run-2", size, byController))
	for deadline := time.Now().Add(8 * time.Second); time.Now().Before(deadline); time.Sleep(100 * time.Millisecond) {
		if runs := c.runningOf(t, ofJob, "run-2"); runs > 0 {
			t.Fatalf("%d of %d pods of the second run were placed on room for %d", runs, size, nodes-size)
		}
	}
	c.Kubectl("delete", "job", "run-1", "--wait=false")
	c.waitRunning(t, ofJob, "run-2", size, time.Minute)
	c.check(t)
}
