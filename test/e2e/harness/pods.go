// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Namespace is where the pods of the tests live.
const Namespace = "default"

// Resources of shares of a GPU, which no node advertises.
const (
	MilliResource  = "berth.dev/gpu-milli"
	MemoryResource = "berth.dev/gpu-memory-mib"
)

// Ask is what the container of a pod asks for, beside one CPU: resource name to quantity.
type Ask map[v1.ResourceName]string

// Pod is a pod that asks for ask.
func Pod(name string, ask Ask) *v1.Pod {
	limits := v1.ResourceList{v1.ResourceCPU: resource.MustParse("1")}
	for key, quantity := range ask {
		limits[key] = resource.MustParse(quantity)
	}
	atOnce := int64(0) // no kubelet is there to say that a deleted pod has ended
	return &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: Namespace, Annotations: map[string]string{}},
		Spec: v1.PodSpec{
			TerminationGracePeriodSeconds: &atOnce,
			Containers: []v1.Container{
				{Name: "main", Image: "none", Resources: v1.ResourceRequirements{Limits: limits}}},
		},
	}
}

// Pods are count pods PREFIX-0000, ... that ask for the same.
func Pods(prefix string, count int, ask Ask) []*v1.Pod {
	var pods []*v1.Pod
	for i := range count {
		pods = append(pods, Pod(fmt.Sprintf("%s-%04d", prefix, i), ask))
	}
	return pods
}

// OneOfEach is a pod of every kind of request that Berth knows, named after the kind.
func OneOfEach() []*v1.Pod {
	model := Pod("one-gpu-of-a-model", Ask{GPUResource: "1"})
	model.Annotations["berth.dev/gpu-model"] = "T4|" + GPUModel
	return []*v1.Pod{
		Pod("no-gpu", nil),
		Pod("one-gpu", Ask{GPUResource: "1"}),
		Pod("eight-gpus", Ask{GPUResource: "8"}),
		Pod("share-of-compute", Ask{MilliResource: "300"}),
		Pod("share-of-memory", Ask{MemoryResource: "8192"}),
		Pod("share-of-both", Ask{MilliResource: "500", MemoryResource: "16384"}),
		model,
	}
}

// CreatePods creates these pods.
func (p *Plane) CreatePods(pods ...*v1.Pod) {
	p.T.Helper()
	err := inParallel(pods, func(pod *v1.Pod) error {
		_, err := p.Client.CoreV1().Pods(pod.Namespace).Create(background(), pod, metav1.CreateOptions{})
		return err
	})
	if err != nil {
		p.T.Fatalf("create pods: %v", err)
	}
}

// CreatePodsInOrder creates them one after the other. A scheduler that is running hears of them in this order; one that
// starts later lists them, and then takes them in none.
func (p *Plane) CreatePodsInOrder(pods ...*v1.Pod) {
	p.T.Helper()
	for _, pod := range pods {
		if _, err := p.Client.CoreV1().Pods(pod.Namespace).Create(background(), pod, metav1.CreateOptions{}); err != nil {
			p.T.Fatalf("create pods: %v", err)
		}
	}
}

// Pod is the pod as the API server has it.
func (p *Plane) Pod(name string) *v1.Pod {
	p.T.Helper()
	pod, err := p.Client.CoreV1().Pods(Namespace).Get(background(), name, metav1.GetOptions{})
	if err != nil {
		p.T.Fatalf("%v", err)
	}
	return pod
}

// ListPods are the pods that a field selector admits ("" for all).
func (p *Plane) ListPods(fields string) ([]v1.Pod, error) {
	list, err := p.Client.CoreV1().Pods(Namespace).List(background(), metav1.ListOptions{FieldSelector: fields})
	if err != nil {
		return nil, err
	}
	return list.Items, nil
}

// WaitBound waits until every pod has a node.
func (p *Plane) WaitBound(limit time.Duration) {
	p.T.Helper()
	Eventually(p.T, "every pod to be bound", limit, func() error {
		waiting, err := p.ListPods("spec.nodeName=")
		if err != nil || len(waiting) == 0 {
			return err
		}
		return fmt.Errorf("%d are not; %s: %s", len(waiting), waiting[0].Name, WhyPending(&waiting[0]))
	})
}

// WaitPending waits until the scheduler has said why it cannot place the pod, and gives the reason.
func (p *Plane) WaitPending(name string, limit time.Duration) string {
	p.T.Helper()
	why := ""
	Eventually(p.T, name+" to be unschedulable", limit, func() error {
		if why = WhyPending(p.Pod(name)); why == "" {
			return fmt.Errorf("no condition yet")
		}
		return nil
	})
	return why
}

// WaitGone waits until there is no pod of this name.
func (p *Plane) WaitGone(name string, limit time.Duration) {
	p.T.Helper()
	Eventually(p.T, name+" to be gone", limit, func() error {
		pods, err := p.ListPods("metadata.name=" + name)
		if err == nil && len(pods) > 0 {
			err = fmt.Errorf("it is there")
		}
		return err
	})
}

// WhyPending is what the scheduler wrote into the pod; empty for a pod that it has placed or not seen.
func WhyPending(pod *v1.Pod) string {
	for _, condition := range pod.Status.Conditions {
		if condition.Type == v1.PodScheduled && condition.Status == v1.ConditionFalse {
			return condition.Message
		}
	}
	return ""
}

// DeletePod deletes the pod at once and waits until it is gone.
func (p *Plane) DeletePod(name string) {
	p.T.Helper()
	now := int64(0)
	err := p.Client.CoreV1().Pods(Namespace).Delete(background(), name, metav1.DeleteOptions{GracePeriodSeconds: &now})
	if err != nil {
		p.T.Fatalf("%v", err)
	}
	p.WaitGone(name, 30*time.Second)
}

// DeletePods deletes all pods at once and waits until they are gone.
func (p *Plane) DeletePods() {
	p.T.Helper()
	now := int64(0)
	Eventually(p.T, "every pod to be gone", 5*time.Minute, func() error {
		// Ten thousand of them may take longer than one request is given.
		err := p.Client.CoreV1().Pods(Namespace).DeleteCollection(background(),
			metav1.DeleteOptions{GracePeriodSeconds: &now}, metav1.ListOptions{})
		if err != nil {
			return err
		}
		pods, err := p.ListPods("")
		if err == nil && len(pods) > 0 {
			err = fmt.Errorf("%d are left", len(pods))
		}
		return err
	})
}
