// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	configv1 "k8s.io/kube-scheduler/config/v1"

	"berth.dev/e2e/harness"
)

const (
	hamiNode = "hami-0"
	hamiLock = "hami.io/mutex.lock"
	gpuMem   = "nvidia.com/gpumem"
	giving   = "hami: {giveDevices: true}\n"
)

const hamiMemoryMiB = 40960

// GPUs of a node that HAMi's device plugin shares without cutting them.
func hamiSharedRegister(gpus int) string {
	var list []map[string]any
	for gpu := range gpus {
		list = append(list, map[string]any{"id": fmt.Sprintf("GPU-%d", gpu), "index": gpu, "count": 10, "devmem": hamiMemoryMiB,
			"devcore": 100, "type": "NVIDIA-A100-SXM4-40GB", "mode": "hami-core", "health": true})
	}
	text, _ := json.Marshal(list)
	return string(text)
}

// An A100-40GB as HAMi's device plugin publishes it: only what it makes by the number of slices.
func hamiRegister(gpus int) string {
	memory := map[int]int{1: 4864, 2: 9856, 4: 19968, 8: 40192}
	var profiles []map[string]any
	for _, row := range a100 {
		if row.profile == "1g.10gb" {
			continue
		}
		var placements []map[string]int
		for _, start := range row.starts {
			placements = append(placements, map[string]int{"start": start, "size": row.size})
		}
		profiles = append(profiles, map[string]any{"name": row.profile, "memoryMB": memory[row.size], "placements": placements})
	}
	var list []map[string]any
	for gpu := range gpus {
		list = append(list, map[string]any{"id": fmt.Sprintf("GPU-%d", gpu), "index": gpu, "count": 7, "devmem": 40960,
			"type": "NVIDIA-NVIDIA A100-SXM4-40GB", "mode": "mig", "health": true, "migProfiles": profiles})
	}
	text, _ := json.Marshal(list)
	return string(text)
}

type migAllocation struct {
	ContainerIndex, DeviceIndex int
	GPUUUID, Profile            string
	Placement                   struct{ Start, Size int }
}

// hamiAgent does what HAMi's device plugin does of its node: it serves the pod that the lock names, and unlocks.
type hamiAgent struct {
	t      *testing.T
	plane  *harness.Plane
	slices map[string]string // "GPU-0/3" -> the pod that has it
	memory map[string]int64  // MiB that pods have of GPUs that are not cut
	served []string
}

// serveOne looks at the lock once.
func (a *hamiAgent) serveOne(ctx context.Context) error {
	nodes := a.plane.Client.CoreV1().Nodes()
	node, err := nodes.Get(ctx, hamiNode, metav1.GetOptions{})
	if err != nil {
		return err
	}
	lock, locked := node.Annotations[hamiLock]
	if !locked {
		return nil
	}
	parts := strings.Split(lock, ",")
	if len(parts) != 3 {
		return fmt.Errorf("lock %q: want TIME,NAMESPACE,POD", lock)
	}
	if _, err := time.Parse(time.RFC3339, parts[0]); err != nil {
		return fmt.Errorf("lock %q: %w", lock, err)
	}
	pods := a.plane.Client.CoreV1().Pods(parts[1])
	pod, err := pods.Get(ctx, parts[2], metav1.GetOptions{})
	if err != nil || pod.Spec.NodeName == "" {
		return nil // not the kubelet's yet
	}
	if pod.Annotations["hami.io/bind-phase"] != "success" { // else only the lock is left
		if err := a.allocate(pod); err != nil {
			return fmt.Errorf("pod %s: %w", pod.Name, err)
		}
		done := `{"metadata":{"annotations":{"hami.io/bind-phase":"success","hami.io/vgpu-devices-to-allocate":";"}}}`
		if _, err := pods.Patch(ctx, pod.Name, types.MergePatchType, []byte(done), metav1.PatchOptions{}); err != nil {
			return err
		}
	}
	unlock := fmt.Sprintf(`{"metadata":{"annotations":{"%s":null},"resourceVersion":"%s"}}`, hamiLock, node.ResourceVersion)
	_, err = nodes.Patch(ctx, hamiNode, types.MergePatchType, []byte(unlock), metav1.PatchOptions{})
	return err
}

// allocate makes the devices of a pod with one container.
func (a *hamiAgent) allocate(pod *v1.Pod) error {
	notes := pod.Annotations
	if notes["hami.io/bind-phase"] != "allocating" || notes["hami.io/vgpu-node"] != hamiNode || notes["hami.io/bind-time"] == "" {
		return fmt.Errorf("it is not one that waits for this node: %v", notes)
	}
	if notes["hami.io/vgpu-devices-to-allocate"] != notes["hami.io/vgpu-devices-allocated"] {
		return fmt.Errorf("want the same devices in both records: %v", notes)
	}
	segments := strings.Split(strings.TrimSuffix(notes["hami.io/vgpu-devices-to-allocate"], ";"), ";")
	devices := strings.Split(strings.TrimSuffix(segments[0], ":"), ":")
	if _, cut := notes["hami.io/vgpu-mig-allocations"]; !cut {
		return a.share(pod, devices)
	}
	var allocations []migAllocation
	if err := json.Unmarshal([]byte(notes["hami.io/vgpu-mig-allocations"]), &allocations); err != nil {
		return err
	}
	asked := pod.Spec.Containers[0].Resources.Limits[harness.GPUResource]
	if len(segments) != 1 || int64(len(devices)) != asked.Value() || len(allocations) != len(devices) {
		return fmt.Errorf("want %d devices of one container, got %v", asked.Value(), notes)
	}
	for i, allocation := range allocations {
		if allocation.ContainerIndex != 0 || allocation.DeviceIndex != i || !strings.HasPrefix(devices[i], allocation.GPUUUID+",NVIDIA,") {
			return fmt.Errorf("device %d: want %s, got %+v", i, devices[i], allocation)
		}
		if err := a.create(pod.Name, allocation); err != nil {
			return err
		}
	}
	a.served = append(a.served, pod.Name)
	return nil
}

// share gives a pod with one container parts of GPUs, which have to be those that Berth booked.
func (a *hamiAgent) share(pod *v1.Pod, devices []string) error {
	booked, err := harness.DevicesOf(pod)
	if err != nil {
		return err
	}
	gpus := booked.Containers["main"].GPUs
	if len(gpus) != len(devices) {
		return fmt.Errorf("want %d devices, got %v", len(gpus), devices)
	}
	for i, gpu := range gpus {
		if want := fmt.Sprintf("GPU-%d,NVIDIA,%d,", gpu.Index, gpu.MemoryMiB); !strings.HasPrefix(devices[i], want) {
			return fmt.Errorf("device %d: want %s, got %s", i, want, devices[i])
		}
		uuid := fmt.Sprintf("GPU-%d", gpu.Index)
		if a.memory[uuid] += gpu.MemoryMiB; a.memory[uuid] > hamiMemoryMiB {
			return fmt.Errorf("%d MiB of %s were given", a.memory[uuid], uuid)
		}
	}
	a.served = append(a.served, pod.Name)
	return nil
}

// create cuts the GPU; the driver would refuse a start that the profile has not, or slices that are taken.
func (a *hamiAgent) create(pod string, allocation migAllocation) error {
	place := allocation.Placement
	for _, row := range a100 {
		if row.profile != allocation.Profile || row.size != place.Size {
			continue
		}
		for _, start := range row.starts {
			if start != place.Start {
				continue
			}
			for slice := start; slice < start+row.size; slice++ {
				key := fmt.Sprintf("%s/%d", allocation.GPUUUID, slice)
				if other, taken := a.slices[key]; taken {
					return fmt.Errorf("memory slice %s is taken by %s: %+v", key, other, allocation)
				}
				a.slices[key] = pod
			}
			return nil
		}
	}
	return fmt.Errorf("no such device can be made: %+v", allocation)
}

// run serves until the test ends, and returns when it does not any more.
func (a *hamiAgent) run() (stop func()) {
	ctx, cancel := context.WithCancel(a.t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			if err := a.serveOne(ctx); err != nil && ctx.Err() == nil && !strings.Contains(err.Error(), "object has been modified") {
				a.t.Error(err)
			}
			time.Sleep(20 * time.Millisecond)
		}
	}()
	return func() {
		cancel()
		<-done
	}
}

// startHami has a node of HAMi's with so many GPUs to cut, Berth, which gives them, and kube-scheduler.
func startHami(t *testing.T, gpus int) (*harness.Plane, *harness.Berth) {
	return startHamiWith(t, 7*gpus, hamiRegister(gpus))
}

func startHamiWith(t *testing.T, devices int, register string) (*harness.Plane, *harness.Berth) {
	plane := harness.NewPlane(t)
	node := harness.Node(hamiNode, "NVIDIA-A100-SXM4-40GB", devices)
	node.Annotations = map[string]string{"hami.io/node-nvidia-register": register}
	plane.AddNodes(node)
	plane.GrantBerth()
	plane.Kubectl("apply", "--filename=manifests/components/hami-nodes/rbac.yaml")
	berth := plane.StartBerth(giving)
	stanzas := harness.ShippedExtenders(t, berth.URL)
	for i := range stanzas {
		if stanzas[i].BindVerb != "" {
			stanzas[i].ManagedResources = append(stanzas[i].ManagedResources,
				configv1.ExtenderManagedResource{Name: gpuMem, IgnoredByScheduler: true})
		}
	}
	plane.StartScheduler(stanzas...)
	return plane, berth
}

// asking is a pod as HAMi's users write it.
func asking(name string, memoryMiB int64) *v1.Pod {
	pod := harness.Pod(name, harness.Ask{harness.GPUResource: "1"})
	pod.Spec.Containers[0].Resources.Limits[gpuMem] = *resource.NewQuantity(memoryMiB, resource.DecimalSI)
	pod.Annotations["nvidia.com/vgpu-mode"] = "mig"
	return pod
}

func lockOf(t *testing.T, plane *harness.Plane) string {
	t.Helper()
	node, err := plane.Client.CoreV1().Nodes().Get(t.Context(), hamiNode, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return node.Annotations[hamiLock]
}

// wantServed waits until the agent has served so many pods, each once, and stops it.
func wantServed(t *testing.T, plane *harness.Plane, berth *harness.Berth, agent *hamiAgent, stop func(), pods int) {
	t.Helper()
	harness.Eventually(t, "the agent to have served every pod", 30*time.Second, func() error {
		if lock := lockOf(t, plane); lock != "" {
			return fmt.Errorf("the node is locked: %s", lock)
		}
		return nil
	})
	stop()
	if len(agent.served) != pods {
		t.Errorf("want each of %d pods served once, got %v", pods, agent.served)
	}
	for _, metric := range []string{"berth_audit_double_grants", "berth_audit_unknown_devices"} {
		if got := berth.Metric(metric); got != 0 {
			t.Errorf("want no %s, got %g", metric, got)
		}
	}
}

func TestBerthGivesTheDevicesOfHamisAgent(t *testing.T) {
	needBerth(t)
	plane, berth := startHami(t, 2)
	agent := &hamiAgent{t: t, plane: plane, slices: map[string]string{}}
	stop := agent.run()
	var pods []*v1.Pod
	for i := range 3 {
		pods = append(pods, asking(fmt.Sprintf("small-%d", i), 4000))
	}
	pods = append(pods, asking("half-0", 15000), asking("half-1", 15000))
	need := harness.Pod("need", harness.Ask{harness.GPUResource: "2"})
	need.Annotations["berth.dev/mig-min-slices"] = "1"
	pods = append(pods, need)
	plane.CreatePods(pods...)
	plane.WaitBound(60 * time.Second)
	wantServed(t, plane, berth, agent, stop, len(pods))
	// What cannot be made there is refused with its reason.
	byName := harness.Pod("by-name", harness.Ask{"nvidia.com/mig-1g.5gb": "1"})
	plane.CreatePods(byName, asking("too-much", 50000))
	if why := plane.WaitPending("too-much", 30*time.Second); !strings.Contains(why, "no MIG device of a profile that the pod asks for") {
		t.Errorf("want the reason, got %q", why)
	}
	plane.WaitPending("by-name", 30*time.Second)
	if err := contains(berth.Log(), "forbidden"); err == nil {
		t.Errorf("Berth lacks a right:\n%s", berth.Log())
	}
}

func TestBerthGivesPartsOfTheGpusOfHamisAgent(t *testing.T) {
	needBerth(t)
	plane, berth := startHamiWith(t, 40, hamiSharedRegister(4))
	agent := &hamiAgent{t: t, plane: plane, memory: map[string]int64{}}
	stop := agent.run()
	var pods []*v1.Pod
	for i := range 9 {
		pod := asking(fmt.Sprintf("part-%d", i), 13000)
		delete(pod.Annotations, "nvidia.com/vgpu-mode")
		pods = append(pods, pod)
	}
	pods = append(pods, harness.Pod("whole", harness.Ask{harness.GPUResource: "1"}))
	plane.CreatePods(pods...)
	plane.WaitBound(60 * time.Second)
	wantServed(t, plane, berth, agent, stop, len(pods))
}

func TestABindWaitsForHamisLock(t *testing.T) {
	needBerth(t)
	plane, _ := startHami(t, 1)
	// A pod of another scheduler, which is about to be bound there.
	other := harness.Pod("other", nil)
	other.Spec.SchedulerName = "hami-scheduler"
	plane.CreatePods(other)
	lock := fmt.Sprintf(`{"metadata":{"annotations":{"%s":"%s,%s,other"}}}`, hamiLock, time.Now().Format(time.RFC3339), harness.Namespace)
	patch := func(text string) {
		_, err := plane.Client.CoreV1().Nodes().Patch(t.Context(), hamiNode, types.MergePatchType, []byte(text), metav1.PatchOptions{})
		if err != nil {
			t.Fatal(err)
		}
	}
	patch(lock)
	plane.CreatePods(asking("mine", 4000))
	time.Sleep(2 * time.Second) // nothing tells that nothing happens
	if node := plane.Pod("mine").Spec.NodeName; node != "" {
		t.Fatalf("bound to %s past the lock of another pod", node)
	}
	if !strings.HasSuffix(lockOf(t, plane), ",other") {
		t.Errorf("want the lock as it was, got %s", lockOf(t, plane))
	}
	patch(fmt.Sprintf(`{"metadata":{"annotations":{"%s":null}}}`, hamiLock))
	harness.Eventually(t, "the pod to be bound", 20*time.Second, func() error {
		if plane.Pod("mine").Spec.NodeName == "" {
			return fmt.Errorf("it is not; lock %q", lockOf(t, plane))
		}
		return nil
	})
	if lock := lockOf(t, plane); !strings.HasSuffix(lock, ","+harness.Namespace+",mine") {
		t.Errorf("want the lock for the agent, got %q", lock)
	}
}
