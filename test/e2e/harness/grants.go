// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// DevicesAnnotation is where Berth writes which GPUs a pod got.
const DevicesAnnotation = "berth.dev/devices"

// VisibleDevicesAnnotation is where Berth writes the UUID of the GPU that a pod got a share of, for the runtime.
const VisibleDevicesAnnotation = "berth.dev/visible-devices"

// Devices is the value of DevicesAnnotation.
type Devices struct {
	Version    int                 `json:"version"`
	Node       string              `json:"node"`
	Containers map[string]Assigned `json:"containers"`
}

// Assigned is what one container got.
type Assigned struct {
	GPUs []AssignedGPU `json:"gpus"`
	MIG  []AssignedMIG `json:"mig"`
	// Places are the GPUs of its replicas.
	Places []AssignedGPU `json:"places"`
}

// AssignedGPU is a GPU or a share of one.
type AssignedGPU struct {
	Index     int   `json:"index"`
	Milli     int64 `json:"milli"`
	MemoryMiB int64 `json:"memory_mib"`
}

// AssignedMIG is a MIG device: GPU and Start are nil where somebody else picks the device.
type AssignedMIG struct {
	GPU     *int   `json:"gpu"`
	Profile string `json:"profile"`
	Start   *int   `json:"start"`
}

// DevicesOf reads the annotation of a pod.
func DevicesOf(pod *v1.Pod) (Devices, error) {
	var devices Devices
	text, there := pod.Annotations[DevicesAnnotation]
	if !there {
		return devices, fmt.Errorf("pod %s has no annotation %s", pod.Name, DevicesAnnotation)
	}
	if err := json.Unmarshal([]byte(text), &devices); err != nil {
		return devices, fmt.Errorf("pod %s: %s=%s: %w", pod.Name, DevicesAnnotation, text, err)
	}
	return devices, nil
}

// CheckGrants fails the test unless every GPU pod that has a node says which GPUs it got, they are what it asked for,
// and no GPU was given away beyond what it has.
func (p *Plane) CheckGrants() {
	p.T.Helper()
	pods, err := p.ListPods("")
	if err != nil {
		p.T.Fatalf("%v", err)
	}
	nodes, err := p.Client.CoreV1().Nodes().List(background(), metav1.ListOptions{})
	if err != nil {
		p.T.Fatalf("%v", err)
	}
	if err := GrantErrors(nodes.Items, pods); err != nil {
		p.T.Fatalf("grants:\n%v", err)
	}
}

type gpuID struct {
	node  string
	index int
}

// GrantErrors is what CheckGrants finds wrong with these pods on these nodes.
func GrantErrors(nodes []v1.Node, pods []v1.Pod) error {
	memory := map[gpuID]int64{} // of every GPU that exists
	uuids := map[string][]string{}
	for _, node := range nodes {
		mib, _ := strconv.ParseInt(node.Labels[gpuMemoryLabel], 10, 64)
		uuids[node.Name] = strings.Split(node.Annotations[UUIDsAnnotation], ",")
		gpus := node.Status.Allocatable[GPUResource]
		for i := range int(gpus.Value()) {
			memory[gpuID{node.Name, i}] = mib
		}
	}
	var errs []error
	used := map[gpuID]AssignedGPU{}
	for _, pod := range pods {
		if pod.Spec.NodeName == "" || !asksForGPU(&pod) {
			continue
		}
		gpus, err := gpusOf(&pod)
		errs = append(errs, err, sharesAreVisible(&pod, gpus, uuids[pod.Spec.NodeName]))
		if Ended(&pod) {
			continue // its GPUs are free
		}
		for _, gpu := range gpus {
			id := gpuID{pod.Spec.NodeName, gpu.Index}
			sum := used[id]
			sum.Milli += gpu.Milli
			sum.MemoryMiB += gpu.MemoryMiB
			used[id] = sum
			mib, exists := memory[id]
			if !exists || sum.Milli > 1000 || (mib > 0 && sum.MemoryMiB > mib) {
				errs = append(errs, fmt.Errorf("GPU %d of %s: %d milli and %d MiB given away, %s was the last (exists: %v)",
					id.index, id.node, sum.Milli, sum.MemoryMiB, pod.Name, exists))
			}
		}
	}
	return errors.Join(errs...)
}

// gpusOf are the GPUs of a bound pod, checked against what it asked for.
func gpusOf(pod *v1.Pod) ([]AssignedGPU, error) {
	devices, err := DevicesOf(pod)
	if err != nil {
		return nil, err
	}
	if devices.Version != 1 || devices.Node != pod.Spec.NodeName {
		return nil, fmt.Errorf("pod %s on %s: the annotation has version %d and node %q", pod.Name, pod.Spec.NodeName,
			devices.Version, devices.Node)
	}
	var all []AssignedGPU
	for _, container := range pod.Spec.Containers {
		gpus := devices.Containers[container.Name].GPUs
		if err := isWhatWasAsked(container.Resources.Limits, gpus); err != nil {
			return nil, fmt.Errorf("pod %s, container %s: %w", pod.Name, container.Name, err)
		}
		all = append(all, gpus...)
	}
	return all, nil
}

// sharesAreVisible: the container of a pod with a share sees the very GPU that Berth booked, by its UUID, where the node
// says them.
func sharesAreVisible(pod *v1.Pod, gpus []AssignedGPU, uuids []string) error {
	for _, gpu := range gpus {
		if gpu.Milli == 1000 || gpu.Index >= len(uuids) || uuids[gpu.Index] == "" {
			continue
		}
		if got := pod.Annotations[VisibleDevicesAnnotation]; got != uuids[gpu.Index] {
			return fmt.Errorf("pod %s: %s: want %s, got %q", pod.Name, VisibleDevicesAnnotation, uuids[gpu.Index], got)
		}
	}
	return nil
}

func isWhatWasAsked(limits v1.ResourceList, got []AssignedGPU) error {
	whole, milli, mib := limits[GPUResource], limits[MilliResource], limits[MemoryResource]
	want := int(whole.Value())
	if !milli.IsZero() || !mib.IsZero() {
		want = 1
	}
	if len(got) != want {
		return fmt.Errorf("want %d GPUs, got %v", want, got)
	}
	for _, gpu := range got {
		if (!whole.IsZero() && gpu.Milli != 1000) || gpu.Milli < milli.Value() || gpu.MemoryMiB < mib.Value() {
			return fmt.Errorf("asked for %v, got %+v", limits, gpu)
		}
	}
	return nil
}

func asksForGPU(pod *v1.Pod) bool {
	for _, container := range pod.Spec.Containers {
		for _, name := range []v1.ResourceName{GPUResource, MilliResource, MemoryResource} {
			if quantity := container.Resources.Limits[name]; !quantity.IsZero() {
				return true
			}
		}
	}
	return false
}
