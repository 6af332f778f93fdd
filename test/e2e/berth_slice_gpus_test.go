// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"berth.dev/e2e/harness"
)

const (
	ofGPUs    = "device.driver == 'gpu.nvidia.com' && device.attributes['gpu.nvidia.com'].type == 'gpu'"
	productOf = "device.attributes['gpu.nvidia.com'].productName"
	h100      = "NVIDIA H100 80GB HBM3"
)

// wholeGPU is a GPU as NVIDIA's driver publishes it (dra-driver-nvidia-gpu, cmd/gpu-kubelet-plugin/deviceinfo.go).
func wholeGPU(node string, index int, product string) resourcev1.Device {
	text := func(text string) resourcev1.DeviceAttribute { return resourcev1.DeviceAttribute{StringValue: &text} }
	numa, version := int64(index/4), "580.65.6"
	return resourcev1.Device{Name: fmt.Sprintf("gpu-%d", index),
		Attributes: map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{"type": text("gpu"),
			"uuid": text(fmt.Sprintf("GPU-%s-%d", node, index)), "productName": text(product), "brand": text("Nvidia"),
			"architecture": text("Hopper"), "numaNode": {IntValue: &numa}, "driverVersion": {VersionValue: &version},
			"resource.kubernetes.io/pcieRoot": text(fmt.Sprintf("pci0000:%02d", index))},
		Capacity: map[resourcev1.QualifiedName]resourcev1.DeviceCapacity{"memory": {Value: resource.MustParse("81559Mi")}}}
}

// publishGPUs makes the node's driver publish these devices as a new generation of its pool, in so many slices.
func publishGPUs(t *testing.T, plane *harness.Plane, node string, generation int64, count int, devices ...resourcev1.Device) {
	t.Helper()
	client := plane.Client.ResourceV1().ResourceSlices()
	for i := range count {
		first, end := len(devices)*i/count, len(devices)*(i+1)/count
		slice := &resourcev1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("%s-%d-%d", node, generation, i)},
			Spec: resourcev1.ResourceSliceSpec{Driver: gpuDriver, NodeName: &node, Devices: devices[first:end],
				Pool: resourcev1.ResourcePool{Name: node, Generation: generation, ResourceSliceCount: int64(count)}}}
		if _, err := client.Create(t.Context(), slice, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	old, err := client.List(t.Context(), metav1.ListOptions{FieldSelector: "spec.nodeName=" + node})
	if err != nil {
		t.Fatal(err)
	}
	for _, slice := range old.Items {
		if slice.Spec.Pool.Generation >= generation {
			continue
		}
		if err := client.Delete(t.Context(), slice.Name, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
}

// dropWithClaim deletes a pod and the claim that kube-scheduler made for it, as Kubernetes' controllers do.
func dropWithClaim(t *testing.T, plane *harness.Plane, name string) {
	t.Helper()
	status := plane.Pod(name).Status.ExtendedResourceClaimStatus
	plane.DeletePod(name)
	if status == nil {
		return
	}
	claims := plane.Client.ResourceV1().ResourceClaims(harness.Namespace)
	claim, err := claims.Get(t.Context(), status.ResourceClaimName, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	claim.Finalizers = nil
	if _, err := claims.Update(t.Context(), claim, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := claims.Delete(t.Context(), claim.Name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
}

// A fleet moves from the device plugin to DRA: the same pods run on nodes of both kinds, which Berth judges alike.
func TestWholeGPUsOfDRAAndOfADevicePluginAreOneCluster(t *testing.T) {
	needBerth(t)
	plane := harness.NewPlane(t)
	plane.AddNodes(harness.Node("cpu-0", "", 0), harness.Node("dra-0", "", 0), harness.Node("plugin-0", harness.GPUModel, 4))
	publishGPUs(t, plane, "dra-0", 1, 1, wholeGPU("dra-0", 1, h100), wholeGPU("dra-0", 0, h100))
	addClass(t, plane, gpuDriver, harness.GPUResource, ofGPUs)
	berth := plane.StartBerth("")
	plane.StartScheduler(harness.ShippedExtenders(t, berth.URL)...)

	// The node that is full afterwards, so that the large pod has its four.
	plane.CreatePods(harness.Pod("two", harness.Ask{harness.GPUResource: "2"}))
	plane.WaitBound(30 * time.Second)
	plane.CreatePods(harness.Pod("four", harness.Ask{harness.GPUResource: "4"}))
	plane.WaitBound(30 * time.Second)
	for name, want := range map[string]string{"two": "dra-0", "four": "plugin-0"} {
		if got := plane.Pod(name).Spec.NodeName; got != want {
			t.Errorf("%s: want %s, got %s", name, want, got)
		}
	}
	if got := specialDevices(t, plane, "two"); len(got) != 2 {
		t.Errorf("want both GPUs of dra-0, got %v", got)
	}
	two := plane.Pod("two")
	if two.Annotations["berth.dev/decision"] == "" {
		t.Error("want the pod bound by Berth")
	}
	if _, said := two.Annotations[harness.DevicesAnnotation]; said {
		t.Error("want no devices written by Berth: the claim says them")
	}
	page := "/debug/pods/" + harness.Namespace + "/two"
	harness.Eventually(t, "Berth to know which GPUs the pod has", 10*time.Second, func() error {
		return contains(berth.Page(page), "is on dra-0 with GPU 0, GPU 1")
	})

	// A claim of somebody else, a taint: what is left is known to both.
	dropWithClaim(t, plane, "two")
	harness.Eventually(t, "the GPUs to be free", 10*time.Second, func() error {
		return contains(berth.Metrics(), `berth_gpus_claimed{model="NVIDIA-H100-80GB-HBM3"} 0`)
	})
	rule := &resourcev1.DeviceTaintRule{ObjectMeta: metav1.ObjectMeta{Name: "sick"}, Spec: resourcev1.DeviceTaintRuleSpec{
		DeviceSelector: &resourcev1.DeviceTaintSelector{Device: new("gpu-1")},
		Taint:          resourcev1.DeviceTaint{Key: "xid", Effect: resourcev1.DeviceTaintEffectNoSchedule}}}
	if _, err := plane.Client.ResourceV1().DeviceTaintRules().Create(t.Context(), rule, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	time.Sleep(time.Second) // kube-scheduler hears of the rule by a watch of its own, and does not say when
	plane.CreatePods(harness.Pod("one", harness.Ask{byClass + gpuDriver: "1"}))
	plane.WaitBound(30 * time.Second)
	if got := specialDevices(t, plane, "one"); !slices.Equal(got, []string{"dra-0/gpu-0"}) {
		t.Errorf("want the GPU without a taint, got %v", got)
	}
	plane.CreatePods(harness.Pod("waits", harness.Ask{harness.GPUResource: "1"}))
	plane.WaitPending("waits", 30*time.Second)
	harness.Eventually(t, "no GPU to be counted twice", 10*time.Second, func() error {
		for _, count := range []string{"berth_audit_double_grants 0", "berth_pods_without_devices 0"} {
			if err := contains(berth.Metrics(), count); err != nil {
				return err
			}
		}
		return nil
	})
	if err := contains(berth.Log(), "forbidden"); err == nil {
		t.Errorf("Berth lacks a right:\n%s", berth.Log())
	}
}

// kube-scheduler writes the claim of each pod before it binds it, and asks about the next ones meanwhile.
func TestAWaveOfPodsFillsOneNodeOfDRAAfterTheOther(t *testing.T) {
	needBerth(t)
	plane := harness.NewPlane(t)
	for _, node := range []string{"dra-0", "dra-1"} {
		plane.AddNodes(harness.Node(node, "", 0))
		var devices []resourcev1.Device
		for gpu := range 8 {
			devices = append(devices, wholeGPU(node, gpu, h100))
		}
		publishGPUs(t, plane, node, 1, 1, devices...)
	}
	addClass(t, plane, gpuDriver, harness.GPUResource, ofGPUs)
	berth := plane.StartBerth("")
	plane.StartScheduler(harness.ShippedExtenders(t, berth.URL)...)
	var wave []*v1.Pod
	for i := range 9 {
		wave = append(wave, harness.Pod(fmt.Sprintf("one-%d", i), harness.Ask{harness.GPUResource: "1"}))
	}
	plane.CreatePods(wave...)
	plane.WaitBound(60 * time.Second)
	on := map[string]int{}
	for _, pod := range wave {
		on[plane.Pod(pod.Name).Spec.NodeName]++
	}
	if on["dra-0"] != 8 || on["dra-1"] != 1 {
		t.Errorf("want 8 and 1 on the two nodes, as with a device plugin, got %v", on)
	}
}

// plannedGPUs asks Berth where the pods would go: which GPUs of its node each would get; nil: it fits nowhere.
func plannedGPUs(t *testing.T, berth *harness.Berth, pods []*v1.Pod) map[string][]string {
	t.Helper()
	body, err := json.Marshal(map[string]any{"pods": pods})
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.Post(berth.URL+"/plan", "application/json", bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		t.Fatalf("/plan: %s: %s %v", response.Status, text, err)
	}
	var answer struct {
		Pods []struct {
			Pod     string
			Node    string
			Devices struct{ GPUs []struct{ Index int } }
		}
	}
	if err := json.Unmarshal(text, &answer); err != nil {
		t.Fatal(err)
	}
	planned := map[string][]string{}
	for _, pod := range answer.Pods {
		for _, grant := range pod.Devices.GPUs {
			planned[pod.Pod] = append(planned[pod.Pod], fmt.Sprintf("%s/gpu-%d", pod.Node, grant.Index))
		}
	}
	return planned
}

// Berth foresees which GPUs kube-scheduler takes: random pods with a node each, taints that come and go, drivers that
// publish in other orders and slices, claims that end. BERTH_DRA_PODS: how many pods; BERTH_DRA_SEED: which.
func TestWhatKubeSchedulerTakesOfSlicesIsForeseen(t *testing.T) {
	needBerth(t)
	pods, nodes := 150, 24
	if said := os.Getenv("BERTH_DRA_PODS"); said != "" {
		pods, _ = strconv.Atoi(said)
		nodes = 100
	}
	seed := uint64(11)
	if said, err := strconv.ParseUint(os.Getenv("BERTH_DRA_SEED"), 10, 64); err == nil {
		seed = said
	}
	random := rand.New(rand.NewPCG(7, seed))
	plane := harness.NewPlane(t)
	generation := map[string]int64{}
	publish := func(node string) {
		var devices []resourcev1.Device
		for i := range 8 {
			devices = append(devices, wholeGPU(node, i, []string{h100, "NVIDIA H200"}[i/6]))
		}
		random.Shuffle(8, func(i, j int) { devices[i], devices[j] = devices[j], devices[i] })
		generation[node]++
		publishGPUs(t, plane, node, generation[node], 1+random.IntN(3), devices...)
	}
	for i := range nodes {
		node := fmt.Sprintf("n%03d", i)
		plane.AddNodes(harness.Node(node, "", 0))
		publish(node)
	}
	addClass(t, plane, gpuDriver, harness.GPUResource, ofGPUs)
	addClass(t, plane, "h100", "example.com/h100", ofGPUs+" && "+productOf+" == '"+h100+"'")
	berth := plane.StartBerth("")
	plane.StartScheduler(harness.ShippedExtenders(t, berth.URL)...)
	names := []v1.ResourceName{harness.GPUResource, "example.com/h100", byClass + gpuDriver, byClass + "h100"}

	asked, foreseen, refused := 0, 0, 0
	var there []string
	rules := map[string]bool{}
	for round := 0; asked < pods; round++ {
		var batch []*v1.Pod
		for i := range nodes {
			node := fmt.Sprintf("n%03d", i)
			pod := harness.Pod(fmt.Sprintf("r%d-%s", round, node), harness.Ask{names[random.IntN(4)]: strconv.Itoa(1 + random.IntN(4))})
			pod.Spec.NodeSelector = map[string]string{"kubernetes.io/hostname": node}
			batch = append(batch, pod)
		}
		planned := plannedGPUs(t, berth, batch)
		var placed []*v1.Pod
		for _, pod := range batch {
			if planned[harness.Namespace+"/"+pod.Name] != nil {
				placed = append(placed, pod)
			} else {
				refused++
			}
		}
		plane.CreatePods(placed...)
		plane.WaitBound(120 * time.Second)
		for _, pod := range placed {
			asked++
			got, want := specialDevices(t, plane, pod.Name), planned[harness.Namespace+"/"+pod.Name]
			slices.Sort(got)
			slices.Sort(want)
			if slices.Equal(got, want) {
				foreseen++
			} else {
				t.Logf("%s: foreseen %v, kube-scheduler took %v", pod.Name, want, got)
			}
			there = append(there, pod.Name)
		}

		// The cluster changes, and is quiet again.
		random.Shuffle(len(there), func(i, j int) { there[i], there[j] = there[j], there[i] })
		leave := len(there) * (1 + random.IntN(3)) / 4
		var group sync.WaitGroup
		limit := make(chan struct{}, 8)
		for _, name := range there[:leave] {
			group.Go(func() {
				limit <- struct{}{}
				dropWithClaim(t, plane, name)
				<-limit
			})
		}
		group.Wait()
		there = there[leave:]
		for range 3 {
			publish(fmt.Sprintf("n%03d", random.IntN(nodes)))
			toggleTaint(t, plane, rules, fmt.Sprintf("n%03d", random.IntN(nodes)), fmt.Sprintf("gpu-%d", random.IntN(8)))
		}
		held := 0
		for _, name := range there {
			held += len(specialDevices(t, plane, name))
		}
		harness.Eventually(t, "Berth to see what is left", 30*time.Second, func() error {
			if got := int(berth.Metric("berth_gpus_claimed")); got != held {
				return fmt.Errorf("want %d GPUs in claims, got %d", held, got)
			}
			return nil
		})
		time.Sleep(200 * time.Millisecond) // nothing tells when the slices and rules are seen
	}
	t.Logf("%d of %d pods got the GPUs that were foreseen; %d were foreseen to fit nowhere", foreseen, asked, refused)
	if foreseen*1000 < asked*999 {
		t.Errorf("want 999 of 1,000 foreseen, got %d of %d", foreseen, asked)
	}
	if err := contains(berth.Metrics(), "berth_audit_double_grants 0"); err != nil {
		t.Error(err)
	}
}

// toggleTaint taints a device, or takes the taint away.
func toggleTaint(t *testing.T, plane *harness.Plane, rules map[string]bool, pool, device string) {
	t.Helper()
	client, name := plane.Client.ResourceV1().DeviceTaintRules(), pool+"-"+device
	if rules[name] {
		delete(rules, name)
		if err := client.Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		return
	}
	rules[name] = true
	rule := &resourcev1.DeviceTaintRule{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: resourcev1.DeviceTaintRuleSpec{
		DeviceSelector: &resourcev1.DeviceTaintSelector{Driver: new(gpuDriver), Pool: &pool, Device: &device},
		Taint:          resourcev1.DeviceTaint{Key: "sick", Effect: resourcev1.DeviceTaintEffectNoSchedule}}}
	if _, err := client.Create(t.Context(), rule, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}
