// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	resourcev1 "k8s.io/api/resource/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"berth.dev/e2e/harness"
)

const preempting = "dra: {preempt: true}\n"

// startPreempting has nodes with four GPUs of DRA each, Kubernetes' controllers, and Berth that evicts for such GPUs.
func startPreempting(t *testing.T, nodes int) controlled {
	t.Helper()
	needBerth(t)
	c := controlled{cluster: cluster{Plane: harness.NewPlane(t)}}
	for i := range nodes {
		node := fmt.Sprintf("d%d", i)
		c.AddNodes(harness.Node(node, "", 0))
		var devices []resourcev1.Device
		for gpu := range 4 {
			devices = append(devices, wholeGPU(node, gpu, h100))
		}
		publishGPUs(t, c.Plane, node, 1, 1, devices...)
	}
	addClass(t, c.Plane, gpuDriver, harness.GPUResource, ofGPUs)
	c.GrantBerth()
	c.Kubectl("apply", "--filename=manifests/components/dra-preempt/rbac.yaml")
	c.addPriority(t, "high", 1000, v1.PreemptLowerPriority)
	c.addPriority(t, "never", 1000, v1.PreemptNever)
	c.addPriority(t, "middle", 500, v1.PreemptLowerPriority)
	c.kubelets = c.StartKubelets()
	c.StartControllerManager()
	c.berth = c.StartBerth(preempting)
	c.scheduler = c.StartScheduler(harness.ShippedExtenders(t, c.berth.URL)...)
	return c
}

func (c controlled) addPriority(t *testing.T, name string, value int32, policy v1.PreemptionPolicy) {
	t.Helper()
	class := &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Value: value, PreemptionPolicy: &policy}
	if _, err := c.Client.SchedulingV1().PriorityClasses().Create(t.Context(), class, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// ofPriority is a pod for so many GPUs, by the name that every DeviceClass has: for the other one the stand-ins for kubelets
// have a device plugin.
func ofPriority(name, class string, gpus int) *v1.Pod {
	pod := harness.Pod(name, harness.Ask{byClass + gpuDriver: fmt.Sprint(gpus)})
	pod.Spec.PriorityClassName = class
	pod.Labels = map[string]string{"app": name}
	return pod
}

// waitFor waits until these have a node.
func (c controlled) waitFor(t *testing.T, names ...string) {
	t.Helper()
	harness.Eventually(t, strings.Join(names, ", ")+" to have a node", 90*time.Second, func() error {
		for _, name := range names {
			if pod := c.Pod(name); pod.Spec.NodeName == "" {
				return fmt.Errorf("%s waits: %s", name, harness.WhyPending(pod))
			}
		}
		return nil
	})
}

func (c controlled) names(t *testing.T) []string {
	t.Helper()
	pods, err := c.ListPods("")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, pod := range pods {
		if pod.DeletionTimestamp == nil && !harness.Ended(&pod) {
			names = append(names, pod.Name)
		}
	}
	slices.Sort(names)
	return names
}

// kube-scheduler evicts nobody for devices of DRA and asks nobody. Berth evicts the fewest pods of the lowest priority, and
// what comes free is the pod's, though others that want it wait longer.
func TestBerthMakesRoomForPodsThatWaitForDevices(t *testing.T) {
	c := startPreempting(t, 2)
	on := func(node string, pod *v1.Pod) *v1.Pod {
		pod.Spec.NodeSelector = map[string]string{"kubernetes.io/hostname": node}
		return pod
	}
	c.CreatePodsInOrder(on("d0", ofPriority("a", "", 2)), on("d0", ofPriority("b", "middle", 2)),
		on("d1", ofPriority("c", "", 1)), on("d1", ofPriority("d", "", 3)))
	c.waitFor(t, "a", "b", "c", "d")
	c.CreatePods(ofPriority("waits", "", 1))
	c.WaitPending("waits", 30*time.Second)
	c.CreatePods(ofPriority("high", "high", 2))
	c.waitFor(t, "high")
	if got := c.names(t); slices.Contains(got, "a") == slices.Contains(got, "d") || !slices.Contains(got, "b") {
		t.Errorf("want one pod of the lowest priority evicted, and no other, got %v left", got)
	}
	if got := specialDevices(t, c.Plane, "high"); len(got) != 2 {
		t.Errorf("want two GPUs, got %v", got)
	}
	if got := c.berth.Metric(`berth_device_evictions_total`); got < 1 {
		t.Errorf("want an eviction counted, got %g", got)
	}
	events := c.Kubectl("get", "events", "-o", "jsonpath={range .items[*]}{.reason} {.involvedObject.name}: {.message}{'\\n'}{end}")
	for _, want := range []string{"Preempted ", "MakesRoom high: Berth evicts pods from "} {
		if err := contains(events, want); err != nil {
			t.Error(err)
		}
	}
	harness.Eventually(t, "nothing to be kept any more", 10*time.Second, func() error {
		return contains(c.berth.Metrics(), "berth_device_nodes_kept 0")
	})
	if err := contains(c.berth.Metrics(), "berth_audit_double_grants 0"); err != nil {
		t.Error(err)
	}
	if err := contains(c.berth.Log(), "forbidden"); err == nil {
		t.Errorf("Berth lacks a right:\n%s", c.berth.Log())
	}
}

// A budget is kept, and nobody is evicted for a pod that may not preempt or would not be let in.
func TestBerthEvictsNobodyForDevicesInVain(t *testing.T) {
	c := startPreempting(t, 1)
	c.CreatePodsInOrder(ofPriority("guarded", "", 2), ofPriority("middle", "middle", 2))
	c.waitFor(t, "guarded", "middle")
	one := intstr.FromInt32(1)
	budget := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Name: "guard"}, Spec: policyv1.PodDisruptionBudgetSpec{
		MinAvailable: &one, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "guarded"}}}}
	if _, err := c.Client.PolicyV1().PodDisruptionBudgets(harness.Namespace).Create(t.Context(), budget, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	never, same, lost, large := ofPriority("never", "never", 2), ofPriority("same", "middle", 2), ofPriority("lost", "high", 2), ofPriority("large", "high", 4)
	lost.Spec.NodeSelector = map[string]string{"kubernetes.io/hostname": "nowhere"}
	c.CreatePods(never, same, lost, large) // `same` could have the GPUs of `guarded`, were it not for the budget
	time.Sleep(15 * time.Second)           // nothing happens
	if got := c.names(t); !slices.Contains(got, "guarded") || !slices.Contains(got, "middle") {
		t.Errorf("want nobody evicted, got %v left", got)
	}
	if err := contains(c.berth.Metrics(), `berth_device_evictions_total{result="evicted"} 0`); err != nil {
		t.Error(err)
	}
	// A pod for which the other pod will do gets its GPUs.
	c.CreatePods(ofPriority("high", "high", 2))
	c.waitFor(t, "high")
	if got := c.names(t); !slices.Contains(got, "guarded") || slices.Contains(got, "middle") {
		t.Errorf("want middle evicted and not guarded, got %v left", got)
	}
}
