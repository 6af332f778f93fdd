// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"berth.dev/e2e/harness"
)

const migClass = "mig.nvidia.com"

// What an A100-40GB can be cut into: profile, its number in the names of NVIDIA's driver, size and starts in memory slices.
var a100 = []struct {
	profile string
	id      int
	size    int
	starts  []int
}{
	{"1g.5gb", 19, 1, []int{0, 1, 2, 3, 4, 5, 6}}, {"1g.10gb", 15, 2, []int{0, 2, 4, 6}}, {"2g.10gb", 14, 2, []int{0, 2, 4}},
	{"3g.20gb", 9, 4, []int{0, 4}}, {"4g.20gb", 5, 4, []int{0}}, {"7g.40gb", 0, 8, []int{0}},
}

func memorySlices(start, size int) map[string]resourcev1.Counter {
	counters := map[string]resourcev1.Counter{}
	for i := start; i < start+size; i++ {
		counters[fmt.Sprintf("memory-slice-%d", i)] = resourcev1.Counter{Value: resource.MustParse("1")}
	}
	return counters
}

// cutGPU is all that NVIDIA's driver offers of one A100-40GB, by name as it sorts them: every instance, and the whole.
func cutGPU(node string, gpu int) []resourcev1.Device {
	text := func(text string) resourcev1.DeviceAttribute { return resourcev1.DeviceAttribute{StringValue: &text} }
	uuid := fmt.Sprintf("GPU-%s-%d", node, gpu)
	set := fmt.Sprintf("gpu-%d-counter-set", gpu)
	whole := resourcev1.Device{Name: fmt.Sprintf("gpu-%d", gpu),
		Attributes:       map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{"type": text("gpu"), "uuid": text(uuid)},
		ConsumesCounters: []resourcev1.DeviceCounterConsumption{{CounterSet: set, Counters: memorySlices(0, 8)}}}
	devices := []resourcev1.Device{whole}
	for _, row := range a100 {
		for _, start := range row.starts {
			devices = append(devices, resourcev1.Device{
				Name: fmt.Sprintf("gpu-%d-mig-%s-%d-%d", gpu, strings.ReplaceAll(row.profile, ".", ""), row.id, start),
				Attributes: map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{"type": text("mig"), "profile": text(row.profile),
					"parentUUID": text(uuid), "productName": text("NVIDIA A100-SXM4-40GB")},
				ConsumesCounters: []resourcev1.DeviceCounterConsumption{{CounterSet: set, Counters: memorySlices(start, row.size)}},
			})
		}
	}
	slices.SortFunc(devices, func(a, b resourcev1.Device) int { return strings.Compare(a.Name, b.Name) })
	return devices
}

// publishCut makes nodes n0, n1, ... without GPUs of the device plugin, and their drivers offer so many GPUs each.
func publishCut(t *testing.T, plane *harness.Plane, nodes, gpus int) {
	t.Helper()
	selectMIG := []resourcev1.DeviceSelector{{CEL: &resourcev1.CELDeviceSelector{
		Expression: "device.driver == 'gpu.nvidia.com' && device.attributes['gpu.nvidia.com'].type == 'mig'"}}}
	_, err := plane.Client.ResourceV1().DeviceClasses().Create(t.Context(), &resourcev1.DeviceClass{
		ObjectMeta: metav1.ObjectMeta{Name: migClass}, Spec: resourcev1.DeviceClassSpec{Selectors: selectMIG}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range nodes {
		node := fmt.Sprintf("n%d", i)
		plane.AddNodes(harness.Node(node, "", 0))
		pool := resourcev1.ResourcePool{Name: node, Generation: 1, ResourceSliceCount: int64(gpus) + 1}
		specs := map[string]resourcev1.ResourceSliceSpec{}
		var sets []resourcev1.CounterSet
		for gpu := range gpus {
			sets = append(sets, resourcev1.CounterSet{Name: fmt.Sprintf("gpu-%d-counter-set", gpu), Counters: memorySlices(0, 8)})
			specs[fmt.Sprintf("%s-g%d", node, gpu)] = resourcev1.ResourceSliceSpec{Devices: cutGPU(node, gpu)}
		}
		specs[node+"-counters"] = resourcev1.ResourceSliceSpec{SharedCounters: sets}
		for name, spec := range specs {
			spec.Driver, spec.Pool, spec.NodeName = gpuDriver, pool, &node
			_, err := plane.Client.ResourceV1().ResourceSlices().Create(t.Context(),
				&resourcev1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: spec}, metav1.CreateOptions{})
			if err != nil {
				t.Fatal(err)
			}
		}
	}
}

// claiming is a pod with a claim of its name for one device of the class with these selectors; the claim is made.
func claiming(t *testing.T, plane *harness.Plane, name string, selectors ...string) *v1.Pod {
	t.Helper()
	exactly := &resourcev1.ExactDeviceRequest{DeviceClassName: migClass}
	for _, selector := range selectors {
		exactly.Selectors = append(exactly.Selectors, resourcev1.DeviceSelector{CEL: &resourcev1.CELDeviceSelector{Expression: selector}})
	}
	return claimingBy(t, plane, name, exactly)
}

func claimingBy(t *testing.T, plane *harness.Plane, name string, exactly *resourcev1.ExactDeviceRequest) *v1.Pod {
	t.Helper()
	_, err := plane.Client.ResourceV1().ResourceClaims(harness.Namespace).Create(t.Context(), &resourcev1.ResourceClaim{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: resourcev1.ResourceClaimSpec{Devices: resourcev1.DeviceClaim{
			Requests: []resourcev1.DeviceRequest{{Name: "gpu", Exactly: exactly}}}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	pod := harness.Pod(name, nil)
	pod.Spec.ResourceClaims = []v1.PodResourceClaim{{Name: "gpu", ResourceClaimName: &name}}
	pod.Spec.Containers[0].Resources.Claims = []v1.ResourceClaim{{Name: "gpu"}}
	return pod
}

func ofProfile(profile string) string {
	return fmt.Sprintf("device.attributes['gpu.nvidia.com'].profile == '%s'", profile)
}

// deviceOf is the device that the claim of a bound pod has: "n0/gpu-1-mig-1g5gb-19-6".
func deviceOf(t *testing.T, plane *harness.Plane, name string) string {
	t.Helper()
	claim, err := plane.Client.ResourceV1().ResourceClaims(harness.Namespace).Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	pod := plane.Pod(name)
	if claim.Status.Allocation == nil || len(claim.Status.Allocation.Devices.Results) != 1 {
		t.Fatalf("claim %s has no device: %+v", name, claim.Status)
	}
	result := claim.Status.Allocation.Devices.Results[0]
	if result.Pool != pod.Spec.NodeName {
		t.Errorf("pod %s is on node %s, its device on %s", name, pod.Spec.NodeName, result.Pool)
	}
	reserved := claim.Status.ReservedFor
	if len(reserved) != 1 || reserved[0].UID != pod.UID {
		t.Errorf("claim %s: want it reserved for its pod once, got %v", name, reserved)
	}
	if !slices.Contains(claim.Finalizers, resourcev1.Finalizer) {
		t.Errorf("claim %s would never be deallocated: finalizers %v", name, claim.Finalizers)
	}
	return result.Pool + "/" + result.Device
}

// checkDisjoint fails where two claims have one memory slice of a GPU.
func checkDisjoint(t *testing.T, devices []string) {
	t.Helper()
	holders := map[string]string{}
	for _, device := range devices {
		parts := strings.Split(device, "-") // n0/gpu, 1, mig, 1g5gb, 19, 6
		id, _ := strconv.Atoi(parts[4])
		start, _ := strconv.Atoi(parts[5])
		for _, row := range a100 {
			for i := start; row.id == id && i < start+row.size; i++ {
				slice := fmt.Sprintf("%s-%s memory slice %d", parts[0], parts[1], i)
				if holders[slice] != "" {
					t.Errorf("%s: held by %s and %s", slice, holders[slice], device)
				}
				holders[slice] = device
			}
		}
	}
}

const choosing = "dra: {chooseDevices: true}\n"

func grantChoice(plane *harness.Plane) {
	plane.GrantBerth()
	plane.Kubectl("apply", "--filename=manifests/components/dra-devices/rbac.yaml")
}

type publisher func(t *testing.T, plane *harness.Plane, nodes, gpus int)

// startChoosingOf has nodes whose drivers publish such GPUs, Berth, which chooses devices, and kube-scheduler.
func startChoosingOf(t *testing.T, publish publisher, nodes, gpus int) (*harness.Plane, *harness.Berth) {
	t.Helper()
	plane := harness.NewPlane(t)
	publish(t, plane, nodes, gpus)
	grantChoice(plane)
	berth := plane.StartBerth(choosing)
	plane.StartScheduler(harness.ShippedExtenders(t, berth.URL)...)
	return plane, berth
}

func startChoosing(t *testing.T, nodes, gpus int) (*harness.Plane, *harness.Berth) {
	t.Helper()
	return startChoosingOf(t, publishCut, nodes, gpus)
}

func TestBerthChoosesTheDeviceOfAClaim(t *testing.T) {
	needBerth(t)
	plane, berth := startChoosing(t, 2, 2)
	plane.CreatePods(claiming(t, plane, "first", ofProfile("1g.5gb")))
	plane.WaitBound(30 * time.Second)
	first := deviceOf(t, plane, "first")
	// kube-scheduler alone takes the lowest start, and with it 4g.20gb, 7g.40gb and the better 3g.20gb.
	if !strings.HasSuffix(first, "-mig-1g5gb-19-4") {
		t.Errorf("want a slice in the half that 4g cannot begin in, got %s", first)
	}
	plane.CreatePods(claiming(t, plane, "second", ofProfile("1g.5gb")), claiming(t, plane, "third", ofProfile("3g.20gb")))
	plane.WaitBound(30 * time.Second)
	second, third := deviceOf(t, plane, "second"), deviceOf(t, plane, "third")
	gpu, _, _ := strings.Cut(first, "-mig-")
	for _, device := range []string{second, third} {
		if !strings.HasPrefix(device, gpu+"-mig-") {
			t.Errorf("want a device of %s, which is broken into already, got %s", gpu, device)
		}
	}
	checkDisjoint(t, []string{first, second, third})
	if got := berth.Metric("berth_claim_allocations_total"); got != 3 {
		t.Errorf("want three claims, all allocated by Berth, got %g", got)
	}
	if !strings.Contains(berth.Metrics(), `berth_mig_memory_units{product="A100-40GB",state="taken"} 6`) {
		t.Errorf("want 6 memory units taken:\n%s", berth.Metrics())
	}
	if err := contains(berth.Log(), "forbidden"); err == nil {
		t.Errorf("Berth lacks a right:\n%s", berth.Log())
	}
}

func TestAClaimThatSomebodyElseAllocatesFirstIsTheirs(t *testing.T) {
	needBerth(t)
	plane := harness.NewPlane(t)
	publishCut(t, plane, 2, 1)
	grantChoice(plane)
	const theirs = "gpu-0-mig-1g5gb-19-2"
	var once sync.Once
	allocateFirst := func() {
		claims := plane.Client.ResourceV1().ResourceClaims(harness.Namespace)
		claim, err := claims.Get(t.Context(), "wanted", metav1.GetOptions{})
		if err != nil {
			t.Error(err)
			return
		}
		now := metav1.Now()
		claim.Status.Allocation = &resourcev1.AllocationResult{
			Devices: resourcev1.DeviceAllocationResult{Results: []resourcev1.DeviceRequestAllocationResult{
				{Request: "gpu", Driver: gpuDriver, Pool: "n1", Device: theirs}}},
			NodeSelector: &v1.NodeSelector{NodeSelectorTerms: []v1.NodeSelectorTerm{{MatchFields: []v1.NodeSelectorRequirement{
				{Key: "metadata.name", Operator: v1.NodeSelectorOpIn, Values: []string{"n1"}}}}}},
			AllocationTimestamp: &now,
		}
		if _, err := claims.UpdateStatus(t.Context(), claim, metav1.UpdateOptions{}); err != nil {
			t.Error(err)
		}
	}
	server := plane.InFrontOfAPIServer(func(r *http.Request) {
		if r.Method == http.MethodPatch && strings.HasSuffix(r.URL.Path, "/status") {
			once.Do(allocateFirst)
		}
	})
	berth := plane.NewBerth("berth", plane.BerthKubeconfig(server, plane.Token()), choosing)
	berth.Start()
	berth.WaitReady()
	plane.StartScheduler(harness.ShippedExtenders(t, berth.URL)...)
	plane.CreatePods(claiming(t, plane, "wanted", ofProfile("1g.5gb")))
	plane.WaitBound(60 * time.Second)
	if got := deviceOf(t, plane, "wanted"); got != "n1/"+theirs {
		t.Errorf("want the device that was written first, n1/%s, got %s", theirs, got)
	}
	if !strings.Contains(berth.Metrics(), `berth_claim_allocations_total{result="lost"} 1`) {
		t.Error("want one claim that was lost")
	}
	// Nothing stays held, and the next claim is Berth's to place: beside the other one.
	plane.CreatePods(claiming(t, plane, "next", ofProfile("1g.5gb")))
	plane.WaitBound(30 * time.Second)
	next := deviceOf(t, plane, "next")
	if !strings.HasPrefix(next, "n1/gpu-0-mig-1g5gb") {
		t.Errorf("want a device of the GPU that is broken into already, got %s", next)
	}
	checkDisjoint(t, []string{"n1/" + theirs, next})
}

// Claims for Berth and claims for kube-scheduler, as fast as they can be made: the two allocators take no slice twice.
func TestTwoAllocatorsTakeNoDeviceTwice(t *testing.T) {
	needBerth(t)
	plane, berth := startChoosing(t, 4, 4)
	var names []string
	var pods []*v1.Pod
	for i := range 40 {
		name := fmt.Sprintf("pod-%02d", i)
		selectors := []string{ofProfile("1g.5gb")}
		if i%4 == 0 { // not one that Berth reads
			selectors = append(selectors, "b'mig' == b'mig'")
		}
		names = append(names, name)
		pods = append(pods, claiming(t, plane, name, selectors...))
	}
	plane.CreatePods(pods...)
	plane.WaitBound(120 * time.Second)
	var devices []string
	for _, name := range names {
		devices = append(devices, deviceOf(t, plane, name))
	}
	checkDisjoint(t, devices)
	if got := berth.Metric("berth_audit_double_grants"); got != 0 {
		t.Errorf("want no device given twice, got %g", got)
	}
	for line := range strings.Lines(berth.Metrics()) {
		if !strings.HasPrefix(line, "berth_claim_allocations_total{") {
			continue
		}
		t.Log(strings.TrimSpace(line))
		placed := strings.Contains(line, `"allocated"`) || strings.Contains(line, `"left"`)
		if placed && strings.HasSuffix(line, " 0\n") {
			t.Errorf("want some of the claims on either side, got %s", line)
		}
	}
}

// Of a claim that is kube-scheduler's to allocate Berth hears only once there are devices for it: one for which there are none
// keeps Berth from nothing.
func TestAClaimOfKubeSchedulersThatFindsNoDeviceKeepsNobodyWaiting(t *testing.T) {
	needBerth(t)
	plane, berth := startChoosing(t, 1, 1)
	plane.CreatePods(claiming(t, plane, "stuck", "b'mig' == b'none'")) // not one that Berth reads
	t.Logf("kube-scheduler says: %s", plane.WaitPending("stuck", 30*time.Second))
	plane.CreatePods(claiming(t, plane, "next", ofProfile("1g.5gb")))
	harness.Eventually(t, "next to have a node", 30*time.Second, func() error {
		if pod := plane.Pod("next"); pod.Spec.NodeName == "" {
			return fmt.Errorf("it waits: %s", harness.WhyPending(pod))
		}
		return nil
	})
	for _, result := range []string{`"allocated"} 1`, `"left"} 0`} {
		if err := contains(berth.Metrics(), "berth_claim_allocations_total{result="+result); err != nil {
			t.Error(err)
		}
	}
}

func TestPodsOfOneClaimGoToTheNodeOfItsDevice(t *testing.T) {
	needBerth(t)
	plane, berth := startChoosing(t, 3, 1)
	first := claiming(t, plane, "shared", ofProfile("1g.5gb"))
	pods := []*v1.Pod{first}
	for _, pod := range harness.Pods("user", 5, nil) {
		pod.Spec.ResourceClaims = first.Spec.ResourceClaims
		pod.Spec.Containers[0].Resources.Claims = first.Spec.Containers[0].Resources.Claims
		pods = append(pods, pod)
	}
	plane.CreatePods(pods...) // at once: the first that is asked about is the one it is allocated for
	plane.WaitBound(30 * time.Second)
	claim, err := plane.Client.ResourceV1().ResourceClaims(harness.Namespace).Get(t.Context(), "shared", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	node := claim.Status.Allocation.Devices.Results[0].Pool
	for _, pod := range pods {
		if got := plane.Pod(pod.Name).Spec.NodeName; got != node {
			t.Errorf("pod %s: want it on %s, where the device of its claim is, got %s", pod.Name, node, got)
		}
	}
	if got := len(claim.Status.ReservedFor); got != len(pods) {
		t.Errorf("want the claim reserved for %d pods, got %d", len(pods), got)
	}
	for metric, want := range map[string]float64{"berth_claim_allocations_total": 1, "berth_audit_double_grants": 0} {
		if got := berth.Metric(metric); got != want {
			t.Errorf("%s: want %g, got %g", metric, want, got)
		}
	}
	if want := `berth_mig_memory_units{product="A100-40GB",state="taken"} 1`; !strings.Contains(berth.Metrics(), want) {
		t.Errorf("want %s, the device counted once:\n%s", want, berth.Metrics())
	}
}

// publishShared makes nodes n0, n1, ... whose drivers offer so many GPUs of 80 GiB each, which claims may share.
func publishShared(t *testing.T, plane *harness.Plane, nodes, gpus int) {
	t.Helper()
	publishCut(t, plane, 0, 0) // the class
	text := func(text string) resourcev1.DeviceAttribute { return resourcev1.DeviceAttribute{StringValue: &text} }
	memory := resourcev1.DeviceCapacity{Value: resource.MustParse("80Gi"), RequestPolicy: &resourcev1.CapacityRequestPolicy{
		Default:    ptr.To(resource.MustParse("80Gi")),
		ValidRange: &resourcev1.CapacityRequestPolicyRange{Min: ptr.To(resource.MustParse("1Mi")), Step: ptr.To(resource.MustParse("1Mi"))}}}
	for i := range nodes {
		node := fmt.Sprintf("n%d", i)
		plane.AddNodes(harness.Node(node, "", 0))
		var devices []resourcev1.Device
		for gpu := range gpus {
			devices = append(devices, resourcev1.Device{Name: fmt.Sprintf("gpu-%d", gpu), AllowMultipleAllocations: ptr.To(true),
				Attributes: map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{
					"type": text("mig"), "uuid": text(fmt.Sprintf("GPU-%s-%d", node, gpu))}, // of the class that there is
				Capacity: map[resourcev1.QualifiedName]resourcev1.DeviceCapacity{"memory": memory}})
		}
		_, err := plane.Client.ResourceV1().ResourceSlices().Create(t.Context(), &resourcev1.ResourceSlice{
			ObjectMeta: metav1.ObjectMeta{Name: node}, Spec: resourcev1.ResourceSliceSpec{Driver: gpuDriver, NodeName: &node,
				Pool: resourcev1.ResourcePool{Name: node, Generation: 1, ResourceSliceCount: 1}, Devices: devices}}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// Parts of GPUs fill one GPU after the other: the API server and kube-scheduler take what Berth writes for an allocation of their
// own.
func TestPartsOfGPUsFillOneGPUAfterTheOther(t *testing.T) {
	needBerth(t)
	plane, berth := startChoosingOf(t, publishShared, 2, 2)
	part := func(name, memory string) *v1.Pod {
		return claimingBy(t, plane, name, &resourcev1.ExactDeviceRequest{DeviceClassName: migClass, Capacity: &resourcev1.CapacityRequirements{
			Requests: map[resourcev1.QualifiedName]resource.Quantity{"memory": resource.MustParse(memory)}}})
	}
	plane.CreatePods(part("a", "30Gi"))
	plane.WaitBound(30 * time.Second)
	first := deviceOf(t, plane, "a")
	for _, name := range []string{"b", "c"} {
		plane.CreatePods(part(name, "25Gi"))
		plane.WaitBound(30 * time.Second)
		if got := deviceOf(t, plane, name); got != first {
			t.Errorf("pod %s: want a part of %s, which has room, got %s", name, first, got)
		}
	}
	plane.CreatePods(part("d", "60Gi"), part("e", "60Gi"), part("f", "60Gi"))
	plane.WaitBound(30 * time.Second)
	given := map[string]bool{first: true}
	for _, name := range []string{"d", "e", "f"} {
		given[deviceOf(t, plane, name)] = true
	}
	if len(given) != 4 {
		t.Errorf("want 60 GiB of each of the three other GPUs, got %v beside 80 GiB of %s", given, first)
	}
	claim, err := plane.Client.ResourceV1().ResourceClaims(harness.Namespace).Get(t.Context(), "b", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	result := claim.Status.Allocation.Devices.Results[0]
	if took := result.ConsumedCapacity["memory"]; result.ShareID == nil || took.Cmp(resource.MustParse("25Gi")) != 0 {
		t.Errorf("want a share of 25 GiB, got %+v", result)
	}
	if got := berth.Metric("berth_claim_allocations_total"); got != 6 {
		t.Errorf("want six claims, all allocated by Berth, got %g", got)
	}
}
