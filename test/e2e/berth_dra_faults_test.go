// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"berth.dev/e2e/harness"
)

// claimedDevices are all devices that claims have, sorted; each allocated claim has to be reserved for one pod.
func claimedDevices(t *testing.T, plane *harness.Plane) []string {
	t.Helper()
	claims, err := plane.Client.ResourceV1().ResourceClaims(harness.Namespace).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Error(err)
		return nil
	}
	var devices []string
	for _, claim := range claims.Items {
		if claim.Status.Allocation == nil {
			continue
		}
		if len(claim.Status.ReservedFor) != 1 {
			t.Errorf("claim %s is allocated for %d pods", claim.Name, len(claim.Status.ReservedFor))
		}
		for _, result := range claim.Status.Allocation.Devices.Results {
			devices = append(devices, result.Pool+"/"+result.Device)
		}
	}
	slices.Sort(devices)
	return devices
}

// wantEachOnce fails where two claims have one device, or where they have another number of them.
func wantEachOnce(t *testing.T, plane *harness.Plane, count int) {
	t.Helper()
	devices := claimedDevices(t, plane)
	if once := slices.Compact(slices.Clone(devices)); len(once) != len(devices) || len(devices) != count {
		t.Errorf("want %d devices in claims, each once, got %d: %v", count, len(devices), devices)
	}
}

// Berth dies when it has allocated the claim of a pod and kube-scheduler has not heard of it, five times.
func TestClaimsOutliveTheBerthThatAllocatedThem(t *testing.T) {
	needBerth(t)
	plane := harness.NewPlane(t)
	publishWhole(t, plane, 2, 8)
	grantChoice(plane)
	var berth *harness.Berth
	var armed atomic.Bool
	before := 0 // so many devices are in claims
	died := make(chan string, 1)
	server := plane.InFrontOfAPIServer(func(r *http.Request) {
		if r.Method != http.MethodPatch || !strings.Contains(r.URL.Path, "/resourceclaims/") || !strings.HasSuffix(r.URL.Path, "/status") ||
			!armed.CompareAndSwap(true, false) {
			return
		}
		go func() { // Berth answers 20 ms after its watch has shown the write
			for len(claimedDevices(t, plane)) == before {
				time.Sleep(time.Millisecond)
			}
			berth.Kill()
			died <- r.URL.Path
		}()
	})
	berth = plane.NewBerth("berth", plane.BerthKubeconfig(server, plane.Token()), choosing)
	berth.Start()
	berth.WaitReady()
	plane.StartScheduler(harness.ShippedExtenders(t, berth.URL)...)
	for i := range 5 {
		before = 2 * i
		armed.Store(true)
		name := fmt.Sprintf("pod-%d", i)
		plane.CreatePods(claimingAll(t, plane, name, exactly(2)))
		select {
		case <-died:
		case <-time.After(60 * time.Second):
			t.Fatalf("pod %d: nobody allocated its claim", i)
		}
		chosen, _ := allocated(t, plane, name+"-0")
		if plane.Pod(name).Spec.NodeName != "" {
			t.Errorf("pod %d was bound before Berth died", i)
		}
		berth.Start()
		berth.WaitReady()
		plane.WaitBound(60 * time.Second)
		after, allocation := allocated(t, plane, name+"-0")
		if after != chosen {
			t.Errorf("pod %d: want the devices that were allocated, %s, got %s", i, chosen, after)
		}
		if node := plane.Pod(name).Spec.NodeName; allocation != nil && node != allocation.Devices.Results[0].Pool {
			t.Errorf("pod %d is on %s, its devices on %s", i, node, allocation.Devices.Results[0].Pool)
		}
		wantEachOnce(t, plane, 2*(i+1))
	}
	if got := berth.Metric("berth_audit_double_grants"); got != 0 {
		t.Errorf("want no device given twice, got %g", got)
	}
}

// kube-scheduler dies in the middle of pods with claims that Berth chooses for: it knows nothing of its assumptions then.
func TestClaimsOutliveKubeScheduler(t *testing.T) {
	needBerth(t)
	plane := harness.NewPlane(t)
	publishWhole(t, plane, 4, 8)
	grantChoice(plane)
	berth := plane.StartBerth(choosing)
	scheduler := plane.StartScheduler(harness.ShippedExtenders(t, berth.URL)...)
	gpus := 0
	for round := range 3 {
		var pods []*v1.Pod
		for i := range 5 {
			count := int64(1 + i%3)
			gpus += int(count)
			pods = append(pods, claimingAll(t, plane, fmt.Sprintf("pod-%d-%d", round, i), exactly(count)))
		}
		plane.CreatePods(pods...)
		time.Sleep(time.Duration(100+150*round) * time.Millisecond)
		scheduler.Restart()
		plane.WaitBound(90 * time.Second)
		wantEachOnce(t, plane, gpus)
	}
	if got := berth.Metric("berth_audit_double_grants"); got != 0 {
		t.Errorf("want no device given twice, got %g", got)
	}
}

// A mixed cluster, drivers that publish their devices anew in another order while pods are bound, a kube-scheduler and a
// Berth that die on the way: every pod gets its GPUs, and nobody gets another one's.
func TestSlicesThatArePublishedAnewWhilePodsAreBound(t *testing.T) {
	needBerth(t)
	plane := harness.NewPlane(t)
	random := rand.New(rand.NewPCG(3, 5))
	generation := map[string]int64{}
	publish := func(node string) {
		var devices []resourcev1.Device
		for i := range 8 {
			devices = append(devices, wholeGPU(node, i, h100))
		}
		random.Shuffle(8, func(i, j int) { devices[i], devices[j] = devices[j], devices[i] })
		generation[node]++
		publishGPUs(t, plane, node, generation[node], 1+random.IntN(2), devices...)
	}
	const draNodes = 4
	for i := range draNodes {
		node := fmt.Sprintf("dra-%d", i)
		plane.AddNodes(harness.Node(node, "", 0))
		publish(node)
	}
	plane.AddNodes(harness.Node("plugin-0", harness.GPUModel, 8), harness.Node("plugin-1", harness.GPUModel, 8))
	addClass(t, plane, gpuDriver, harness.GPUResource, ofGPUs)
	berth := plane.StartBerth("")
	scheduler := plane.StartScheduler(harness.ShippedExtenders(t, berth.URL)...)
	var pods []*v1.Pod
	for i := range 30 {
		pods = append(pods, harness.Pod(fmt.Sprintf("pod-%02d", i), harness.Ask{harness.GPUResource: fmt.Sprint(1 + i%2)}))
	}
	for i := range 3 { // 45 of 48 GPUs
		plane.CreatePods(pods[10*i : 10*i+10]...)
		for range 6 {
			publish(fmt.Sprintf("dra-%d", random.IntN(draNodes)))
			time.Sleep(50 * time.Millisecond)
		}
		switch i {
		case 0:
			scheduler.Restart()
		case 1:
			berth.Kill()
			berth.Start()
			berth.WaitReady()
		}
	}
	plane.WaitBound(120 * time.Second)
	byClaims, byPlugin := 0, map[string]int{}
	for i, pod := range pods {
		bound, gpus := plane.Pod(pod.Name), 1+i%2
		if strings.HasPrefix(bound.Spec.NodeName, "plugin-") {
			byPlugin[bound.Spec.NodeName] += gpus
			continue
		}
		byClaims += gpus
		if got := specialDevices(t, plane, pod.Name); len(got) != gpus || !strings.HasPrefix(got[0], bound.Spec.NodeName+"/") {
			t.Errorf("%s on %s: want %d GPUs there, got %v", pod.Name, bound.Spec.NodeName, gpus, got)
		}
	}
	for node, gpus := range byPlugin {
		if gpus > 8 {
			t.Errorf("%s has 8 GPUs and gave %d", node, gpus)
		}
	}
	wantEachOnce(t, plane, byClaims)
	harness.Eventually(t, "Berth to have the same in its books", 15*time.Second, func() error {
		for _, want := range []string{"berth_audit_double_grants 0", fmt.Sprintf(`berth_gpus_claimed{model="NVIDIA-H100-80GB-HBM3"} %d`, byClaims)} {
			if err := contains(berth.Metrics(), want); err != nil {
				return err
			}
		}
		return nil
	})
}

// Two claims have one device, and nothing at the API server refuses that: Berth tells both pods, and takes it from the younger
// claim. kube-scheduler starts afterwards, and both pods get a GPU of their own.
func TestADeviceInTwoClaimsIsTakenFromTheYoungerOne(t *testing.T) {
	needBerth(t)
	plane := harness.NewPlane(t)
	publishWhole(t, plane, 1, 4)
	grantChoice(plane)
	berth := plane.StartBerth(choosing)
	claims := plane.Client.ResourceV1().ResourceClaims(harness.Namespace)
	for i, name := range []string{"older", "younger"} {
		plane.CreatePods(claimingAll(t, plane, name, exactly(1)))
		claim, err := claims.Get(t.Context(), name+"-0", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		claim.Finalizers = append(claim.Finalizers, resourcev1.Finalizer)
		if claim, err = claims.Update(t.Context(), claim, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		at := metav1.NewTime(time.Now().Add(time.Duration(i-2) * time.Second))
		onNode := v1.NodeSelectorRequirement{Key: "metadata.name", Operator: v1.NodeSelectorOpIn, Values: []string{"g0"}}
		claim.Status.Allocation = &resourcev1.AllocationResult{AllocationTimestamp: &at,
			Devices: resourcev1.DeviceAllocationResult{Results: []resourcev1.DeviceRequestAllocationResult{
				{Request: "gpus", Driver: gpuDriver, Pool: "g0", Device: "gpu-0"}}},
			NodeSelector: &v1.NodeSelector{NodeSelectorTerms: []v1.NodeSelectorTerm{
				{MatchFields: []v1.NodeSelectorRequirement{onNode}}}}}
		claim.Status.ReservedFor = []resourcev1.ResourceClaimConsumerReference{
			{Resource: "pods", Name: name, UID: plane.Pod(name).UID}}
		if _, err = claims.UpdateStatus(t.Context(), claim, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	harness.Eventually(t, "the metric to count it", 5*time.Second, func() error {
		return contains(berth.Metrics(), "berth_audit_double_grants 1")
	})
	harness.Eventually(t, "the device to be taken from the younger claim", 30*time.Second, func() error {
		if text, allocation := allocated(t, plane, "younger-0"); allocation != nil {
			return fmt.Errorf("it has %s", text)
		}
		return nil
	})
	if text, _ := allocated(t, plane, "older-0"); text != "g0 gpus=gpu-0" {
		t.Errorf("want the older claim as it was, got %q", text)
	}
	for _, name := range []string{"older", "younger"} {
		harness.Eventually(t, "the Event of "+name, 10*time.Second, func() error {
			events, err := plane.Client.CoreV1().Events(harness.Namespace).List(t.Context(),
				metav1.ListOptions{FieldSelector: "reason=DeviceInTwoClaims,involvedObject.name=" + name})
			if err == nil && len(events.Items) == 0 {
				err = fmt.Errorf("there is none")
			}
			return err
		})
	}
	plane.StartScheduler(harness.ShippedExtenders(t, berth.URL)...)
	plane.WaitBound(60 * time.Second)
	wantEachOnce(t, plane, 2)
	if err := contains(berth.Metrics(), "berth_audit_double_grants 0"); err != nil {
		t.Error(err)
	}
}
