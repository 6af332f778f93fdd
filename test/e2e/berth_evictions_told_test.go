// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"berth.dev/e2e/harness"
)

// evictionCase is a few nodes of its own, full of pods of several priorities, and a pod that may go nowhere else.
type evictionCase struct {
	name    string
	nodes   []*v1.Node
	running []*v1.Pod
	starts  map[string]time.Time
	budgets []*policyv1.PodDisruptionBudget
	asks    *v1.Pod
}

// toldPreemption is what `berth explain pod --json` says of evictions.
type toldPreemption struct {
	Fitting    int `json:"fitting"`
	Preemption *struct {
		Helps   bool     `json:"helps"`
		Node    string   `json:"node"`
		Victims []string `json:"victims"`
		Text    string   `json:"text"`
	} `json:"preemption"`
}

// anEvictionCase: no two pods have started at once, since between such kube-scheduler's order is by chance.
func anEvictionCase(random *rand.Rand, number int, start *time.Time) evictionCase {
	c := evictionCase{name: fmt.Sprintf("case-%03d", number), starts: map[string]time.Time{}}
	of := map[string]string{"case": c.name}
	for n := range 1 + random.IntN(4) {
		name := fmt.Sprintf("%s-n%d", c.name, n)
		gpus, used := 1+random.IntN(8), 0
		node := harness.Node(name, harness.GPUModel, gpus)
		maps.Copy(node.Labels, of)
		cpu := resource.NewQuantity(int64(12+random.IntN(20)), resource.DecimalSI)
		node.Status.Capacity[v1.ResourceCPU], node.Status.Allocatable[v1.ResourceCPU] = *cpu, *cpu
		c.nodes = append(c.nodes, node)
		left := cpu.Value()
		for i := range 2 + random.IntN(6) {
			pod := harness.Pod(fmt.Sprintf("%s-p%d", name, i), nil)
			pod.Spec.NodeName = name
			pod.Spec.PriorityClassName = fmt.Sprintf("p%d", random.IntN(5))
			cores := min(int64(random.IntN(7)), left)
			left -= cores
			limits := pod.Spec.Containers[0].Resources.Limits
			limits[v1.ResourceCPU] = *resource.NewQuantity(cores, resource.DecimalSI)
			if random.IntN(3) == 0 {
				pod.Labels = map[string]string{"web": c.name}
			}
			if held := min(random.IntN(4), gpus-used); held > 0 {
				limits[harness.GPUResource] = *resource.NewQuantity(int64(held), resource.DecimalSI)
				devices := harness.Devices{Version: 1, Node: name, Containers: map[string]harness.Assigned{}}
				assigned := harness.Assigned{MIG: []harness.AssignedMIG{}}
				for range held {
					assigned.GPUs = append(assigned.GPUs, harness.AssignedGPU{Index: used, Milli: 1000})
					used++
				}
				devices.Containers["main"] = assigned
				text, _ := json.Marshal(devices)
				pod.Annotations[harness.DevicesAnnotation] = string(text)
			}
			*start = start.Add(time.Minute)
			c.starts[pod.Name] = *start
			c.running = append(c.running, pod)
		}
	}
	for i := range random.IntN(3) {
		c.budgets = append(c.budgets, &policyv1.PodDisruptionBudget{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("%s-%d", c.name, i), Namespace: harness.Namespace},
			Spec: policyv1.PodDisruptionBudgetSpec{MinAvailable: &intstr.IntOrString{IntVal: 1},
				Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"web": c.name}}},
			Status: policyv1.PodDisruptionBudgetStatus{DisruptionsAllowed: int32(random.IntN(3))},
		})
	}
	c.asks = harness.Pod(c.name, harness.Ask{harness.GPUResource: strconv.Itoa(1 + random.IntN(6))})
	c.asks.Spec.Containers[0].Resources.Limits[v1.ResourceCPU] =
		*resource.NewQuantity(int64(1+random.IntN(12)), resource.DecimalSI)
	if random.IntN(8) == 0 { // a share, which kube-scheduler does not count
		c.asks.Spec.Containers[0].Resources.Limits[harness.MilliResource] = resource.MustParse("500")
		delete(c.asks.Spec.Containers[0].Resources.Limits, harness.GPUResource)
	}
	if random.IntN(8) == 0 {
		c.asks.Annotations["berth.dev/gpu-model"] = "H100"
	}
	c.asks.Spec.PriorityClassName = "p3"
	c.asks.Spec.NodeSelector = of
	c.asks.Spec.SchedulingGates = []v1.PodSchedulingGate{{Name: "berth.dev/not-yet"}}
	return c
}

// Whom kube-scheduler evicts is what Berth said before: on which node, and which pods. BERTH_E2E_CASES says how many
// cases there are: 40 if it is not set.
func TestEvictionsAreThoseThatWereTold(t *testing.T) {
	count := 40
	if text := os.Getenv("BERTH_E2E_CASES"); text != "" {
		var err error
		if count, err = strconv.Atoi(text); err != nil {
			t.Fatalf("BERTH_E2E_CASES: want a number, got %q", text)
		}
	}
	plane := startCluster(t, 0)
	for i := range 5 {
		plane.AddPriorityClass(fmt.Sprintf("p%d", i), int32(10*i))
	}
	random := rand.New(rand.NewPCG(33, 1))
	start := time.Now().Add(-30 * 24 * time.Hour).Truncate(time.Second)
	var cases []evictionCase
	for i := range count {
		cases = append(cases, anEvictionCase(random, i, &start))
	}
	for _, c := range cases {
		plane.run(t, c)
	}

	time.Sleep(2 * time.Second) // for budgets and start times to reach Berth
	told := map[string]toldPreemption{}
	for _, c := range cases {
		harness.Eventually(t, c.name+" to be known", 30*time.Second, func() error {
			text := plane.berth.Page("/debug/pods/default/" + c.name)
			var report toldPreemption
			if err := json.Unmarshal([]byte(text), &report); err != nil {
				return err
			}
			told[c.name] = report
			return nil
		})
	}
	for _, c := range cases {
		pod := plane.Pod(c.name)
		pod.Spec.SchedulingGates = nil
		if _, err := plane.Client.CoreV1().Pods(pod.Namespace).Update(t.Context(), pod, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	evicts := 0
	for _, c := range cases {
		if plane.checkEvictions(t, c, told[c.name]) {
			evicts++
		}
	}
	t.Logf("%d cases, evictions in %d", count, evicts)
	if evicts < count/4 {
		t.Errorf("want evictions in a quarter of the cases at least, got %d of %d", evicts, count)
	}
}

// run creates the nodes, the pods on them and the budgets of the case, and the pod that asks, behind its gate.
func (c cluster) run(t *testing.T, made evictionCase) {
	t.Helper()
	c.AddNodes(made.nodes...)
	c.CreatePods(made.running...)
	for _, pod := range made.running {
		there := c.Pod(pod.Name)
		there.Status.Phase = v1.PodRunning
		there.Status.StartTime = &metav1.Time{Time: made.starts[pod.Name]}
		if _, err := c.Client.CoreV1().Pods(there.Namespace).UpdateStatus(t.Context(), there, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	for _, budget := range made.budgets {
		client := c.Client.PolicyV1().PodDisruptionBudgets(budget.Namespace)
		there, err := client.Create(t.Context(), budget, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		there.Status = budget.Status
		if _, err := client.UpdateStatus(t.Context(), there, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	c.CreatePods(made.asks)
}

// checkEvictions compares what happens with what was told; whether pods were evicted.
func (c cluster) checkEvictions(t *testing.T, made evictionCase, told toldPreemption) bool {
	t.Helper()
	helps := told.Preemption != nil && told.Preemption.Helps
	var pod *v1.Pod
	settled := func() error {
		pod = c.Pod(made.name)
		if pod.Spec.NodeName != "" || (!helps && told.Fitting == 0 && harness.WhyPending(pod) != "") {
			return nil
		}
		return fmt.Errorf("told: %+v %+v; it waits: %s", told, told.Preemption, harness.WhyPending(pod))
	}
	harness.Eventually(t, made.name+" to be placed or refused", 60*time.Second, settled)
	if !helps && told.Fitting == 0 {
		time.Sleep(100 * time.Millisecond) // for evictions that must not come
	}
	list, err := c.Client.CoreV1().Pods(harness.Namespace).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	left := map[string]bool{}
	for _, there := range list.Items {
		left[there.Name] = there.DeletionTimestamp == nil
	}
	var gone, wanted []string
	for _, running := range made.running {
		if !left[running.Name] {
			gone = append(gone, harness.Namespace+"/"+running.Name)
		}
	}
	node := ""
	if helps {
		wanted, node = told.Preemption.Victims, told.Preemption.Node
	}
	slices.Sort(gone)
	if !slices.Equal(gone, wanted) || (helps && pod.Spec.NodeName != node) {
		t.Errorf("%s: told evictions of %v on %q (%+v), got those of %v, and it is on %q",
			made.name, wanted, node, told.Preemption, gone, pod.Spec.NodeName)
	}
	return len(gone) > 0
}
