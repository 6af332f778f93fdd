// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"math/rand"
	"sort"
	"strconv"
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

// shareAgent is a device plugin that hands out parts of GPUs and is not told for which pod the kubelet asks: it takes
// the one that has waited longest for as much.
type shareAgent struct {
	// What the kubelet asks for, for the pod's container; and whether a pod waits for that much, since when.
	asks  func(pod *v1.Pod) string
	waits func(pod *v1.Pod) (what, since string)
	// The GPU that the container gets by what is written on the pod that the plugin took, as the plugin calls it.
	gpu func(pod *v1.Pod) string
	// What it writes there when it has served.
	served map[string]string
	// The name of the index-th GPU of a node.
	named func(node string, index int) string
}

func gpushareAgent() shareAgent {
	return shareAgent{
		asks: func(pod *v1.Pod) string {
			units := pod.Spec.Containers[0].Resources.Limits["aliyun.com/gpu-mem"]
			return units.String()
		},
		waits: func(pod *v1.Pod) (string, string) {
			if pod.Annotations["ALIYUN_COM_GPU_MEM_ASSIGNED"] != "false" {
				return "", ""
			}
			units := pod.Spec.Containers[0].Resources.Limits["aliyun.com/gpu-mem"]
			return units.String(), pod.Annotations["ALIYUN_COM_GPU_MEM_ASSUME_TIME"]
		},
		gpu:    func(pod *v1.Pod) string { return pod.Annotations["ALIYUN_COM_GPU_MEM_IDX"] },
		served: map[string]string{"ALIYUN_COM_GPU_MEM_ASSIGNED": "true"},
		named:  func(_ string, index int) string { return strconv.Itoa(index) },
	}
}

func volcanoAgent() shareAgent {
	return shareAgent{
		asks: func(*v1.Pod) string { return "1" }, // devices, whatever part of each
		waits: func(pod *v1.Pod) (string, string) {
			devices := strings.Count(pod.Annotations["volcano.sh/devices-to-allocate"], ",NVIDIA,")
			if devices == 0 || pod.Annotations["volcano.sh/vgpu-node"] != pod.Spec.NodeName {
				return "", ""
			}
			return strconv.Itoa(devices), pod.Annotations["volcano.sh/vgpu-time"]
		},
		gpu: func(pod *v1.Pod) string {
			return strings.Split(pod.Annotations["volcano.sh/devices-to-allocate"], ",")[0]
		},
		served: map[string]string{"volcano.sh/devices-to-allocate": "", "volcano.sh/bind-phase": "success"},
		named:  func(node string, index int) string { return fmt.Sprintf("GPU-%s-%d", node, index) },
	}
}

// allocate serves a container of that pod, and fails unless it gets the GPU that Berth booked for it.
func (a shareAgent) allocate(ctx context.Context, plane *harness.Plane, pod *v1.Pod) error {
	list, err := plane.Client.CoreV1().Pods(harness.Namespace).List(ctx,
		metav1.ListOptions{FieldSelector: "spec.nodeName=" + pod.Spec.NodeName})
	if err != nil {
		return err
	}
	var taken *v1.Pod
	oldest := ""
	for i := range list.Items {
		what, since := a.waits(&list.Items[i])
		if what != a.asks(pod) || (taken != nil && since >= oldest) {
			continue
		}
		taken, oldest = &list.Items[i], since
	}
	if taken == nil {
		return fmt.Errorf("pod %s: no pod waits for as much", pod.Name)
	}
	devices, err := harness.DevicesOf(pod)
	if err != nil {
		return err
	}
	want := a.named(pod.Spec.NodeName, devices.Containers["main"].GPUs[0].Index)
	if got := a.gpu(taken); got != want {
		return fmt.Errorf("pod %s: its container would get GPU %s (of pod %s), booked is %s", pod.Name, got, taken.Name, want)
	}
	patch := v1.Pod{ObjectMeta: metav1.ObjectMeta{Annotations: a.served}}
	text := fmt.Sprintf(`{"metadata":{"annotations":%s}}`, jsonOf(patch.Annotations))
	_, err = plane.Client.CoreV1().Pods(harness.Namespace).Patch(ctx, taken.Name, types.MergePatchType, []byte(text), metav1.PatchOptions{})
	return err
}

func jsonOf(texts map[string]string) string {
	var fields []string
	for key, value := range texts {
		fields = append(fields, fmt.Sprintf("%q:%q", key, value))
	}
	sort.Strings(fields)
	return "{" + strings.Join(fields, ",") + "}"
}

// serve starts the containers of the pods of all nodes in a random order, each once, some time after it was bound.
func (a shareAgent) serve(ctx context.Context, plane *harness.Plane, pods int) error {
	started := map[string]bool{}
	random := rand.New(rand.NewSource(1))
	for len(started) < pods {
		list, err := plane.Client.CoreV1().Pods(harness.Namespace).List(ctx, metav1.ListOptions{FieldSelector: "spec.nodeName!="})
		if err != nil {
			return err
		}
		random.Shuffle(len(list.Items), func(i, j int) { list.Items[i], list.Items[j] = list.Items[j], list.Items[i] })
		for i := range list.Items {
			pod := &list.Items[i]
			if started[pod.Name] || random.Intn(3) > 0 {
				continue
			}
			if err := a.allocate(ctx, plane, pod); err != nil {
				return err
			}
			started[pod.Name] = true
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%d of %d pods were started", len(started), pods)
		case <-time.After(20 * time.Millisecond):
		}
	}
	return nil
}

// placeShares binds the pods on the nodes by Berth and kube-scheduler, while the agent serves them.
func placeShares(t *testing.T, agent shareAgent, config string, managed v1.ResourceName, nodes []*v1.Node, pods []*v1.Pod) {
	plane := harness.NewPlane(t)
	plane.AddNodes(nodes...)
	plane.GrantBerth()
	berth := plane.StartBerth(config)
	stanzas := harness.ShippedExtenders(t, berth.URL)
	for i := range stanzas {
		if stanzas[i].BindVerb != "" {
			stanzas[i].ManagedResources = append(stanzas[i].ManagedResources, configv1.ExtenderManagedResource{Name: string(managed)})
		}
	}
	plane.StartScheduler(stanzas...)
	plane.CreatePods(pods...)
	ctx, cancel := context.WithTimeout(t.Context(), 90*time.Second)
	defer cancel()
	if err := agent.serve(ctx, plane, len(pods)); err != nil {
		t.Fatal(err)
	}
	for _, metric := range []string{"berth_audit_double_grants", "berth_audit_unknown_devices"} {
		if got := berth.Metric(metric); got != 0 {
			t.Errorf("want no %s, got %g", metric, got)
		}
	}
	if err := contains(berth.Log(), "forbidden"); err == nil {
		t.Errorf("Berth lacks a right:\n%s", berth.Log())
	}
}

func nodeOfAgent(name string, capacity harness.Ask) *v1.Node {
	node := harness.Node(name, "", 0)
	for key, quantity := range capacity {
		node.Status.Capacity[key] = resource.MustParse(quantity)
		node.Status.Allocatable[key] = resource.MustParse(quantity)
	}
	return node
}

func TestContainersGetTheGpuThatBerthBookedFromGpushare(t *testing.T) {
	needBerth(t)
	capacity := harness.Ask{"aliyun.com/gpu-mem": "60", "aliyun.com/gpu-count": "4"}
	nodes := []*v1.Node{nodeOfAgent("share-0", capacity), nodeOfAgent("share-1", capacity)}
	// Of equal amounts, which the agent cannot tell apart, and two to a GPU.
	pods := harness.Pods("share", 14, harness.Ask{"aliyun.com/gpu-mem": "7"})
	pods = append(pods, harness.Pods("large", 1, harness.Ask{"aliyun.com/gpu-mem": "15"})...)
	placeShares(t, gpushareAgent(), "", "aliyun.com/gpu-mem", nodes, pods)
}

func TestContainersGetTheGpuThatBerthBookedFromVolcano(t *testing.T) {
	needBerth(t)
	var nodes []*v1.Node
	for _, name := range []string{"vgpu-0", "vgpu-1"} {
		node := nodeOfAgent(name, harness.Ask{"volcano.sh/vgpu-number": "40"})
		register := ""
		for i := range 4 {
			register += fmt.Sprintf("GPU-%s-%d,10,40960,NVIDIA-A100,true,hami-core:", name, i)
		}
		node.Annotations = map[string]string{"volcano.sh/node-vgpu-register": register}
		nodes = append(nodes, node)
	}
	words := func(memory string) harness.Ask {
		return harness.Ask{"volcano.sh/vgpu-number": "1", "volcano.sh/vgpu-memory": memory}
	}
	for _, node := range nodes { // kube-scheduler counts what the plugin lists
		node.Status.Capacity["volcano.sh/vgpu-memory"] = resource.MustParse("163840")
		node.Status.Allocatable["volcano.sh/vgpu-memory"] = resource.MustParse("163840")
	}
	pods := harness.Pods("half", 8, words("20000"))
	pods = append(pods, harness.Pods("third", 6, words("13000"))...)
	placeShares(t, volcanoAgent(), "", "volcano.sh/vgpu-number", nodes, pods)
}
