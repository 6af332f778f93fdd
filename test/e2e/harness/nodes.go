// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"fmt"
	"strconv"
	"strings"
	"sync"

	v1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// What the GPU feature discovery writes on nodes, and the device plugin's resource.
const (
	GPUResource    = "nvidia.com/gpu"
	ProductLabel   = "nvidia.com/gpu.product"
	gpuMemoryLabel = "nvidia.com/gpu.memory"
	// UUIDsAnnotation is where the UUIDs of a node's GPUs are, by index.
	UUIDsAnnotation = "berth.dev/gpu-uuids"
	// GPUModel is the model of every GPU of CreateNodes, as its node publishes it.
	GPUModel = "NVIDIA-A100-SXM4-80GB"
)

// Node is a node without a kubelet: Ready, 96 CPUs, 512 GiB, and gpus GPUs of a model with 80 GiB each, which have
// UUIDs.
func Node(name, model string, gpus int) *v1.Node {
	node := &v1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"kubernetes.io/hostname": name}},
		Status: v1.NodeStatus{
			Capacity: v1.ResourceList{
				v1.ResourceCPU:    resource.MustParse("96"),
				v1.ResourceMemory: resource.MustParse("512Gi"),
				v1.ResourcePods:   resource.MustParse("250"),
			},
			Conditions: []v1.NodeCondition{{Type: v1.NodeReady, Status: v1.ConditionTrue, Reason: "KubeletReady"}},
		},
	}
	if gpus > 0 {
		node.Labels[ProductLabel] = model
		node.Labels[gpuMemoryLabel] = strconv.Itoa(80 * 1024)
		node.Status.Capacity[GPUResource] = *resource.NewQuantity(int64(gpus), resource.DecimalSI)
		var uuids []string
		for i := range gpus {
			uuids = append(uuids, fmt.Sprintf("GPU-%s-%d", name, i))
		}
		node.Annotations = map[string]string{UUIDsAnnotation: strings.Join(uuids, ",")}
	}
	node.Status.Allocatable = node.Status.Capacity.DeepCopy()
	return node
}

// CreateNodes adds node-0000, node-0001, ... with 8 GPUs each.
func (p *Plane) CreateNodes(count int) {
	p.T.Helper()
	var nodes []*v1.Node
	for i := range count {
		nodes = append(nodes, Node(fmt.Sprintf("node-%04d", i), GPUModel, 8))
	}
	p.AddNodes(nodes...)
}

// AddNodes creates these nodes.
func (p *Plane) AddNodes(nodes ...*v1.Node) {
	p.T.Helper()
	err := inParallel(nodes, func(node *v1.Node) error {
		_, err := p.Client.CoreV1().Nodes().Create(background(), node, metav1.CreateOptions{})
		return err
	})
	if err != nil {
		p.T.Fatalf("create nodes: %v", err)
	}
}

// AddPriorityClass lets pods name a class of this value.
func (p *Plane) AddPriorityClass(name string, value int32) {
	p.T.Helper()
	class := &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Value: value}
	if _, err := p.Client.SchedulingV1().PriorityClasses().Create(background(), class, metav1.CreateOptions{}); err != nil {
		p.T.Fatalf("%v", err)
	}
}

// inParallel calls do for each item, several at a time, and gives one of the errors.
func inParallel[Item any](items []Item, do func(Item) error) error {
	work := make(chan Item)
	errs := make(chan error, len(items))
	var workers sync.WaitGroup
	for range 8 {
		workers.Go(func() {
			for item := range work {
				if err := do(item); err != nil {
					errs <- err
				}
			}
		})
	}
	for _, item := range items {
		work <- item
	}
	close(work)
	workers.Wait()
	close(errs)
	return <-errs
}
