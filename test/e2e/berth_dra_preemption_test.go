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

const (
	preempting       = "dra: {preempt: true}\n"
	preemptingClaims = "dra: {preempt: true, chooseDevices: true}\n"
	h200             = "NVIDIA H200"
)

// startPreempting has nodes d0, d1, ... with so many GPUs of DRA each, of these products, Kubernetes' controllers, and Berth
// that evicts for such GPUs.
func startPreempting(t *testing.T, config string, gpus int, products ...string) controlled {
	t.Helper()
	needBerth(t)
	c := controlled{cluster: cluster{Plane: harness.NewPlane(t)}}
	for i, product := range products {
		node := fmt.Sprintf("d%d", i)
		c.AddNodes(harness.Node(node, "", 0))
		var devices []resourcev1.Device
		for gpu := range gpus {
			devices = append(devices, wholeGPU(node, gpu, product))
		}
		publishGPUs(t, c.Plane, node, 1, 1, devices...)
	}
	addClass(t, c.Plane, gpuDriver, harness.GPUResource, ofGPUs)
	if config == preemptingClaims {
		grantChoice(c.Plane)
	} else {
		c.GrantBerth()
	}
	c.Kubectl("apply", "--filename=manifests/components/dra-preempt/rbac.yaml")
	c.addPriority(t, "high", 1000, v1.PreemptLowerPriority)
	c.addPriority(t, "never", 1000, v1.PreemptNever)
	c.addPriority(t, "middle", 500, v1.PreemptLowerPriority)
	c.kubelets = c.StartKubelets()
	c.StartControllerManager()
	c.berth = c.StartBerth(config)
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
	return prioritized(harness.Pod(name, harness.Ask{byClass + gpuDriver: fmt.Sprint(gpus)}), class)
}

func prioritized(pod *v1.Pod, class string) *v1.Pod {
	pod.Spec.PriorityClassName = class
	pod.Labels = map[string]string{"app": pod.Name}
	return pod
}

// fromTemplate is a pod with a claim of a template of its name, which is made: for so many whole GPUs that the selector admits
// and that are alike in the attribute ("" for none).
func (c controlled) fromTemplate(t *testing.T, name, class string, gpus int64, selector, alike string) *v1.Pod {
	t.Helper()
	devices := exactly(gpus)
	if selector != "" {
		devices.Requests[0].Exactly.Selectors = selecting(selector)
	}
	if alike != "" {
		attribute := resourcev1.FullyQualifiedName(alike)
		devices.Constraints = []resourcev1.DeviceConstraint{{MatchAttribute: &attribute}}
	}
	template := &resourcev1.ResourceClaimTemplate{ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: resourcev1.ResourceClaimTemplateSpec{Spec: resourcev1.ResourceClaimSpec{Devices: devices}}}
	_, err := c.Client.ResourceV1().ResourceClaimTemplates(harness.Namespace).Create(t.Context(), template, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	pod := prioritized(harness.Pod(name, nil), class)
	pod.Spec.Containers[0].Resources.Claims = []v1.ResourceClaim{{Name: "gpus"}}
	pod.Spec.ResourceClaims = []v1.PodResourceClaim{{Name: "gpus", ResourceClaimTemplateName: &name}}
	return pod
}

// checkMadeRoom is what has to hold once Berth has made room for the pod `high` and it is there.
func (c controlled) checkMadeRoom(t *testing.T) {
	t.Helper()
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
	c := startPreempting(t, preempting, 4, h100, h100)
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
	c.checkMadeRoom(t)
}

// A budget is kept, and nobody is evicted for a pod that may not preempt or would not be let in.
func TestBerthEvictsNobodyForDevicesInVain(t *testing.T) {
	c := startPreempting(t, preempting, 4, h100)
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

// The same for pods with ResourceClaims of their own, which hold what others of them wait for: selectors and constraints say
// whose GPUs will do.
func TestBerthMakesRoomForPodsWithClaimsOfTheirOwn(t *testing.T) {
	const numa, product = "gpu.nvidia.com/numaNode", productOf + " == '" + h200 + "'"
	ofNUMA := func(node int) string {
		return fmt.Sprintf("%s && device.attributes['gpu.nvidia.com'].numaNode == %d", product, node)
	}
	c := startPreempting(t, preemptingClaims, 8, h100, h200) // four in each NUMA node
	// The pod that is evicted loses more than these two, which have not run as long: but the GPUs of the one are of two NUMA
	// nodes, and the selector admits none of the other's.
	other := c.fromTemplate(t, "other", "", 8, productOf+" == '"+h100+"'", "")
	apart := c.fromTemplate(t, "apart", "", 2, product, "")
	c.CreatePodsInOrder(c.fromTemplate(t, "left", "", 3, ofNUMA(0), numa), c.fromTemplate(t, "right", "middle", 3, ofNUMA(1), numa))
	c.waitFor(t, "left", "right")
	c.CreatePodsInOrder(apart, other)
	c.waitFor(t, "apart", "other")
	left := devicesOf(t, c.Plane, "left")
	c.CreatePods(c.fromTemplate(t, "waits", "", 1, "", ""))
	t.Logf("of the pod of no priority: %s", c.WaitPending("waits", 30*time.Second))
	c.CreatePods(c.fromTemplate(t, "high", "high", 2, product, numa))
	c.waitFor(t, "high")
	got := devicesOf(t, c.Plane, "high")
	if len(got) != 2 || !slices.Contains(left, got[0]) || !slices.Contains(left, got[1]) {
		t.Errorf("want two of the GPUs %v, got %v", left, got)
	}
	if node := c.Pod("high").Spec.NodeName; node != "d1" {
		t.Errorf("want the pod on d1, it is on %s", node)
	}
	c.waitFor(t, "waits") // once the node is nobody's again, what is left goes to others
	if got := devicesOf(t, c.Plane, "waits"); len(got) != 1 || !slices.Contains(left, got[0]) {
		t.Errorf("want the third of the GPUs %v, got %v", left, got)
	}
	if got, want := c.names(t), []string{"apart", "high", "other", "right", "waits"}; !slices.Equal(got, want) {
		t.Errorf("want %v, got %v", want, got)
	}
	if err := contains(c.berth.Metrics(), `berth_device_evictions_total{result="evicted"} 1`); err != nil {
		t.Error(err)
	}
	c.checkMadeRoom(t)
}

// Nobody is evicted for claims that could have no devices even on empty nodes, and somebody is where they could.
func TestBerthEvictsNobodyForClaimsInVain(t *testing.T) {
	const pcie = "resource.kubernetes.io/pcieRoot"
	c := startPreempting(t, preemptingClaims, 4, h100, h100)
	c.CreatePodsInOrder(c.fromTemplate(t, "a", "", 4, "", ""), c.fromTemplate(t, "b", "middle", 4, "", ""))
	c.waitFor(t, "a", "b")
	c.CreatePods(
		c.fromTemplate(t, "unmet", "high", 1, productOf+" == '"+h200+"'", ""),
		c.fromTemplate(t, "together", "high", 2, "", pcie), // each GPU has a root of its own
		c.fromTemplate(t, "large", "high", 5, "", ""),
		c.fromTemplate(t, "never", "never", 1, "", ""))
	time.Sleep(15 * time.Second) // nothing happens
	if got, want := c.names(t), []string{"a", "b", "large", "never", "together", "unmet"}; !slices.Equal(got, want) {
		t.Errorf("want nobody evicted, got %v left", got)
	}
	for _, result := range []string{"evicted", "blocked", "failed"} {
		if err := contains(c.berth.Metrics(), fmt.Sprintf("berth_device_evictions_total{result=%q} 0", result)); err != nil {
			t.Error(err)
		}
	}
	c.CreatePods(c.fromTemplate(t, "high", "high", 2, "", ""))
	c.waitFor(t, "high")
	if got := c.names(t); !slices.Contains(got, "b") || slices.Contains(got, "a") {
		t.Errorf("want a evicted and not b, got %v left", got)
	}
	c.checkMadeRoom(t)
}
