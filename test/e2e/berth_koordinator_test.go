// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	configv1 "k8s.io/kube-scheduler/config/v1"

	"berth.dev/e2e/harness"
)

// Koordinator's Device, the part that this test needs.
const deviceDefinition = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: devices.scheduling.koordinator.sh}
spec:
  group: scheduling.koordinator.sh
  scope: Cluster
  names: {plural: devices, singular: device, kind: Device, listKind: DeviceList}
  versions:
  - name: v1alpha1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties: {spec: {type: object, x-kubernetes-preserve-unknown-fields: true}}
`

const isolationLabel = "koordinator.sh/gpu-isolation-provider"

// cardsOf is what koordlet reports of a node with GPUs of 80 GiB.
func cardsOf(node string, gpus int) string {
	text := "apiVersion: scheduling.koordinator.sh/v1alpha1\nkind: Device\nmetadata: {name: " + node + "}\nspec:\n  devices:\n"
	for minor := range gpus {
		text += fmt.Sprintf("  - {type: gpu, id: GPU-%s-%d, minor: %d, health: true,\n", node, minor, minor) +
			"     resources: {koordinator.sh/gpu-core: \"100\", koordinator.sh/gpu-memory: 80Gi, koordinator.sh/gpu-memory-ratio: \"100\"},\n" +
			fmt.Sprintf("     topology: {socketID: 0, nodeID: %d, pcieID: p%d}}\n", minor/2, minor/2)
	}
	return text
}

// servedByKoordlet adds to the node what koord-manager writes by its Device.
func servedByKoordlet(node *v1.Node, gpus int) *v1.Node {
	percent := strconv.Itoa(100 * gpus)
	for key, quantity := range (harness.Ask{"koordinator.sh/gpu": percent, "koordinator.sh/gpu-core": percent,
		"koordinator.sh/gpu-memory-ratio": percent, "koordinator.sh/gpu-memory": strconv.Itoa(80*gpus) + "Gi"}) {
		node.Status.Capacity[key] = resource.MustParse(quantity)
		node.Status.Allocatable[key] = resource.MustParse(quantity)
	}
	return node
}

// koordinatorGPU is one GPU of the annotation, with what the pod has of it.
type koordinatorGPU struct {
	Minor     int             `json:"minor"`
	ID        string          `json:"id"`
	Resources v1.ResourceList `json:"resources"`
}

func allocatedByKoordinator(pod *v1.Pod) ([]koordinatorGPU, error) {
	var allocated struct {
		GPU []koordinatorGPU `json:"gpu"`
	}
	text := pod.Annotations["scheduling.koordinator.sh/device-allocated"]
	if err := json.Unmarshal([]byte(text), &allocated); err != nil {
		return nil, fmt.Errorf("pod %s: device-allocated=%q: %w", pod.Name, text, err)
	}
	if len(allocated.GPU) == 0 {
		return nil, fmt.Errorf("pod %s: no GPUs in %q", pod.Name, text)
	}
	return allocated.GPU, nil
}

// koordlet is what its runtime hook adds to the environment of each container of the pod.
func koordlet(pod *v1.Pod) (map[string]string, error) {
	gpus, err := allocatedByKoordinator(pod)
	if err != nil {
		return nil, err
	}
	var minors []string
	for _, gpu := range gpus {
		minors = append(minors, strconv.Itoa(gpu.Minor))
	}
	environment := map[string]string{"NVIDIA_VISIBLE_DEVICES": strings.Join(minors, ",")}
	if pod.Labels[isolationLabel] != "HAMi-core" {
		return environment, nil
	}
	first := gpus[0].Resources
	ratio, there := first["koordinator.sh/gpu-memory-ratio"]
	if !there {
		return nil, errors.New("gpu memory ratio not found in gpu resource")
	}
	if ratio.Value() >= 100 {
		return environment, nil
	}
	memory, there := first["koordinator.sh/gpu-memory"]
	if !there {
		return nil, errors.New("gpu memory not found in gpu resource")
	}
	environment["CUDA_DEVICE_MEMORY_LIMIT"] = strconv.FormatInt(memory.Value(), 10)
	if core, limited := first["koordinator.sh/gpu-core"]; limited {
		environment["CUDA_DEVICE_SM_LIMIT"] = strconv.FormatInt(core.Value(), 10)
	}
	return environment, nil
}

// checkKoordlet fails unless each container sees the GPUs that Berth booked for it.
func checkKoordlet(pod *v1.Pod) error {
	environment, err := koordlet(pod)
	if err != nil {
		return err
	}
	devices, err := harness.DevicesOf(pod)
	if err != nil {
		return err
	}
	var booked []string
	for _, gpu := range devices.Containers["main"].GPUs {
		booked = append(booked, strconv.Itoa(gpu.Index))
	}
	if want := strings.Join(booked, ","); environment["NVIDIA_VISIBLE_DEVICES"] != want {
		return fmt.Errorf("pod %s: sees GPUs %q, booked are %q", pod.Name, environment["NVIDIA_VISIBLE_DEVICES"], want)
	}
	if minors := pod.Annotations["scheduling.koordinator.sh/gpu-minors"]; minors != environment["NVIDIA_VISIBLE_DEVICES"] {
		return fmt.Errorf("pod %s: gpu-minors is %q, want %q", pod.Name, minors, environment["NVIDIA_VISIBLE_DEVICES"])
	}
	if pod.Labels[isolationLabel] == "" {
		return nil
	}
	first := devices.Containers["main"].GPUs[0]
	want := fmt.Sprintf("%d %d", first.MemoryMiB<<20, first.Milli/10)
	if got := environment["CUDA_DEVICE_MEMORY_LIMIT"] + " " + environment["CUDA_DEVICE_SM_LIMIT"]; got != want {
		return fmt.Errorf("pod %s: kept to %q, booked is %q", pod.Name, got, want)
	}
	return nil
}

// promises fails where the pods of a GPU have more of it together than there is.
func promises(pods []v1.Pod) error {
	type sum struct{ core, memory int64 }
	sums := map[string]sum{}
	for i := range pods {
		gpus, err := allocatedByKoordinator(&pods[i])
		if err != nil {
			return err
		}
		for _, gpu := range gpus {
			if want := fmt.Sprintf("GPU-%s-%d", pods[i].Spec.NodeName, gpu.Minor); gpu.ID != want {
				return fmt.Errorf("pod %s: has %q, want %q", pods[i].Name, gpu.ID, want)
			}
			core, memory := gpu.Resources["koordinator.sh/gpu-core"], gpu.Resources["koordinator.sh/gpu-memory"]
			all := sums[gpu.ID]
			sums[gpu.ID] = sum{all.core + core.Value(), all.memory + memory.Value()}
			if sums[gpu.ID].core > 100 || sums[gpu.ID].memory > 80<<30 {
				return fmt.Errorf("GPU %s: promised are %+v", gpu.ID, sums[gpu.ID])
			}
		}
	}
	return nil
}

func TestContainersGetTheGpusThatBerthBookedFromKoordlet(t *testing.T) {
	needBerth(t)
	plane := harness.NewPlane(t)
	define(t, plane, deviceDefinition)
	plane.AddNodes(servedByKoordlet(harness.Node("alone", "", 0), 4),
		servedByKoordlet(harness.Node("beside", harness.GPUModel, 4), 4))
	for _, node := range []string{"alone", "beside"} {
		apply(t, plane, cardsOf(node, 4))
	}
	plane.GrantBerth()
	berth := plane.StartBerth("")
	stanzas := harness.ShippedExtenders(t, berth.URL)
	for i := range stanzas {
		if stanzas[i].BindVerb == "" {
			continue
		}
		stanzas[i].ManagedResources = append(stanzas[i].ManagedResources,
			configv1.ExtenderManagedResource{Name: "koordinator.sh/gpu"},
			configv1.ExtenderManagedResource{Name: "koordinator.sh/gpu-memory"},
			configv1.ExtenderManagedResource{Name: "koordinator.sh/gpu-memory-ratio"},
			configv1.ExtenderManagedResource{Name: "koordinator.sh/gpu.shared", IgnoredByScheduler: true})
	}
	plane.StartScheduler(stanzas...)
	harness.Eventually(t, "Berth to know who serves the nodes", 10*time.Second, func() error {
		served := strings.Count(strings.ReplaceAll(berth.Page("/debug/snapshot"), " ", ""), `"share_agent":"koordinator"`)
		if served != 2 {
			return fmt.Errorf("want 2 nodes, got %d", served)
		}
		return nil
	})
	// Whole ones, in the words of the device plugin and of Koordinator.
	plane.CreatePods(harness.Pod("plain", harness.Ask{harness.GPUResource: "1"}),
		harness.Pod("two", harness.Ask{"koordinator.sh/gpu": "200"}))
	plane.WaitBound(30 * time.Second)
	if node := plane.Pod("plain").Spec.NodeName; node != "beside" {
		t.Errorf("pod plain: its resource is on beside alone, it is on %s", node)
	}
	pods := harness.Pods("half", 4, harness.Ask{"koordinator.sh/gpu": "50"})
	pods = append(pods, harness.Pods("memory", 2, harness.Ask{"koordinator.sh/gpu.shared": "1",
		"koordinator.sh/gpu-memory": "30Gi", "koordinator.sh/gpu-core": "40"})...)
	for _, pod := range pods {
		pod.Labels = map[string]string{isolationLabel: "HAMi-core"}
	}
	plane.CreatePods(pods...)
	plane.CreatePods(harness.Pod("ours", harness.Ask{harness.MilliResource: "300"}))
	plane.WaitBound(30 * time.Second)
	bound, err := plane.ListPods("spec.nodeName!=")
	if err != nil {
		t.Fatal(err)
	}
	for i := range bound {
		if err := checkKoordlet(&bound[i]); err != nil {
			t.Error(err)
		}
	}
	if err := promises(bound); err != nil {
		t.Error(err)
	}
	for _, metric := range []string{"berth_audit_double_grants", "berth_audit_unknown_devices"} {
		if got := berth.Metric(metric); got != 0 {
			t.Errorf("want no %s, got %g", metric, got)
		}
	}
}
