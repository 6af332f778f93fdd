// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"berth.dev/e2e/harness"
)

// plannedPods is what `berth plan --json` says of pods.
type plannedPods struct {
	Pods []struct {
		Pod  string `json:"pod"`
		Fits bool   `json:"fits"`
		Node string `json:"node"`
	} `json:"pods"`
}

// planCounts are pods and batches, and how many of them a plan foretold.
type planCounts struct {
	pods, fitting, verdicts, sameNode, batches, wholeBatches int
}

func (c planCounts) String() string {
	return fmt.Sprintf("%d of %d pods as planned (%d have a node, %d of them the planned one), %d of %d batches whole",
		c.verdicts, c.pods, c.fitting, c.sameNode, c.wholeBatches, c.batches)
}

// mixedNodes are nodes of three models with 1 to 8 GPUs and little CPU for each.
func mixedNodes(random *rand.Rand, count int) []*v1.Node {
	models := []string{harness.GPUModel, "Tesla-T4", "NVIDIA-H100-80GB-HBM3"}
	var nodes []*v1.Node
	for i := range count {
		gpus := 1 << random.IntN(4)
		node := harness.Node(fmt.Sprintf("node-%04d", i), models[random.IntN(len(models))], gpus)
		cpu := resource.NewQuantity(int64(4+gpus*(2+random.IntN(10))), resource.DecimalSI)
		node.Status.Capacity[v1.ResourceCPU], node.Status.Allocatable[v1.ResourceCPU] = *cpu, *cpu
		nodes = append(nodes, node)
	}
	return nodes
}

// aMixedPod asks for whole GPUs, for a share, or for CPU alone.
func aMixedPod(random *rand.Rand, name string) *v1.Pod {
	var ask harness.Ask
	switch kind := random.IntN(10); {
	case kind < 6:
		ask = harness.Ask{harness.GPUResource: strconv.Itoa(1 << random.IntN(4))}
	case kind < 9:
		ask = harness.Ask{harness.MilliResource: strconv.Itoa(100 * (1 + random.IntN(9)))}
	}
	pod := harness.Pod(name, ask)
	pod.Spec.Containers[0].Resources.Limits[v1.ResourceCPU] = *resource.NewQuantity(int64(1+random.IntN(12)), resource.DecimalSI)
	if ask != nil && random.IntN(4) == 0 {
		pod.Annotations["berth.dev/gpu-model"] = "Tesla-T4"
	}
	return pod
}

// settled waits until kube-scheduler has bound each of the pods or said why not: the node of each, "" for none.
func (c cluster) settled(pods []*v1.Pod) []string {
	c.T.Helper()
	nodes := make([]string, len(pods))
	harness.Eventually(c.T, "kube-scheduler to have decided about the batch", time.Minute, func() error {
		for i, pod := range pods {
			now := c.Pod(pod.Name)
			if nodes[i] = now.Spec.NodeName; nodes[i] == "" && harness.WhyPending(now) == "" {
				return fmt.Errorf("%s is not decided", pod.Name)
			}
		}
		return nil
	})
	return nodes
}

// waitBooks waits until Berth knows of so many pods on nodes and no more.
func (c cluster) waitBooks(pods int) {
	c.T.Helper()
	harness.Eventually(c.T, "Berth to know which pods run", 30*time.Second, func() error {
		var books struct{ Pods []struct{} }
		if err := json.Unmarshal([]byte(c.berth.Page("/debug/snapshot")), &books); err != nil || len(books.Pods) != pods {
			return fmt.Errorf("it has %d of %d: %v", len(books.Pods), pods, err)
		}
		return nil
	})
}

// plan is what Berth plans for the pods, in their order.
func (c cluster) plan(file string, pods []*v1.Pod) plannedPods {
	c.T.Helper()
	list := v1.PodList{}
	list.Kind, list.APIVersion = "PodList", "v1"
	for _, pod := range pods {
		list.Items = append(list.Items, *pod)
	}
	text, err := json.Marshal(list)
	if err == nil {
		err = os.WriteFile(file, text, 0o600)
	}
	if err != nil {
		c.T.Fatalf("%v", err)
	}
	var told plannedPods
	if err := json.Unmarshal([]byte(c.ask("plan", "-f", file, "--json")), &told); err != nil || len(told.Pods) != len(pods) {
		c.T.Fatalf("a plan of %d of %d pods: %v", len(told.Pods), len(pods), err)
	}
	return told
}

// A plan of a batch of pods is what kube-scheduler and Berth do with them then, while the mix is learned: on a Berth that
// has seen no pod before, batch for batch, as pods end.
func TestPlansOfBatchesAreWhatKubeSchedulerDoes(t *testing.T) {
	batches, size := 12, 15
	if text := os.Getenv("BERTH_PLAN_BATCHES"); text != "" {
		var err error
		if batches, err = strconv.Atoi(text); err != nil {
			t.Fatal(err)
		}
	}
	const seed, most = 33, 12 // so many pods still run when the next batch comes
	random := rand.New(rand.NewPCG(seed, 0))
	needBerth(t)
	c := cluster{Plane: harness.NewPlane(t)}
	c.AddNodes(mixedNodes(random, 24)...)
	c.berth = c.StartBerth("")
	c.StartScheduler(harness.ShippedExtenders(t, c.berth.URL)...)
	file := filepath.Join(t.TempDir(), "batch.json")

	var counts planCounts
	var running []string
	for batch := range batches {
		random.Shuffle(len(running), func(i, j int) { running[i], running[j] = running[j], running[i] })
		for ; len(running) > most; running = running[1:] {
			c.DeletePod(running[0])
		}
		c.waitBooks(len(running))
		var pods []*v1.Pod
		for i := range size {
			pods = append(pods, aMixedPod(random, fmt.Sprintf("b%03d-%02d", batch, i)))
		}
		told := c.plan(file, pods)
		c.CreatePodsInOrder(pods...)
		before := counts
		for i, node := range c.settled(pods) {
			planned := told.Pods[i]
			counts.pods++
			if planned.Fits == (node != "") {
				counts.verdicts++
			} else {
				t.Logf("batch %d: %s: planned on %q, is on %q", batch, planned.Pod, planned.Node, node)
			}
			if node == "" {
				c.DeletePod(pods[i].Name)
				continue
			}
			counts.fitting++
			running = append(running, pods[i].Name)
			if node == planned.Node {
				counts.sameNode++
			}
		}
		counts.batches++
		if counts.verdicts-before.verdicts == size {
			counts.wholeBatches++
		}
	}
	t.Logf("seed %d: %s", seed, counts)
	// At the end of a batch kube-scheduler may have chosen another one of equal nodes, and the last pod that fits is
	// another one then: of so few pods at most two.
	if counts.verdicts < counts.pods-max(2, counts.pods/100) {
		t.Errorf("plans are not what happens: %s", counts)
	}
}
