// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"fmt"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Work is a pod that a Machine can run: its container waits, or with args ends by itself (see work/main.go).
func Work(name string, ask Ask, args ...string) *v1.Pod {
	pod := Pod(name, nil)
	pod.Spec.Containers[0] = WorkContainer("main", ask, args...)
	MakeWork(pod)
	return pod
}

// MakeWork has a Machine be able to run a pod of Pod, which then needs next to no CPU.
func MakeWork(pod *v1.Pod) {
	pod.Spec.HostNetwork = true
	pod.Spec.RestartPolicy = v1.RestartPolicyNever
	pod.Spec.AutomountServiceAccountToken = new(bool)
	for i := range pod.Spec.Containers {
		container := &pod.Spec.Containers[i]
		container.Image, container.ImagePullPolicy = WorkImage, v1.PullNever
		delete(container.Resources.Limits, v1.ResourceCPU)
		container.Resources.Requests = v1.ResourceList{v1.ResourceCPU: resource.MustParse("1m")}
	}
}

// WorkContainer is a container of such a pod.
func WorkContainer(name string, ask Ask, args ...string) v1.Container {
	limits := v1.ResourceList{}
	for key, quantity := range ask {
		limits[key] = resource.MustParse(quantity)
	}
	return v1.Container{Name: name, Image: WorkImage, ImagePullPolicy: v1.PullNever, Args: args,
		Resources: v1.ResourceRequirements{Limits: limits,
			Requests: v1.ResourceList{v1.ResourceCPU: resource.MustParse("1m")}}}
}

// WaitPhase waits until the pod is in one of these phases, and gives it as it is then.
func (p *Plane) WaitPhase(name string, limit time.Duration, phases ...v1.PodPhase) *v1.Pod {
	p.T.Helper()
	var pod *v1.Pod
	Eventually(p.T, fmt.Sprintf("%s to be %v", name, phases), limit, func() error {
		if pod = p.Pod(name); !slices.Contains(phases, pod.Status.Phase) {
			return fmt.Errorf("it is %s: %s %s %s", pod.Status.Phase, pod.Status.Reason, pod.Status.Message, WhyPending(pod))
		}
		return nil
	})
	return pod
}

// WaitRunning waits until every pod runs or has ended well.
func (p *Plane) WaitRunning(limit time.Duration) []v1.Pod {
	p.T.Helper()
	var all []v1.Pod
	Eventually(p.T, "every pod to run", limit, func() error {
		pods, err := p.ListPods("")
		for _, pod := range pods {
			if pod.Status.Phase != v1.PodRunning && pod.Status.Phase != v1.PodSucceeded {
				return fmt.Errorf("%s is %s: %s %s %s", pod.Name, pod.Status.Phase, pod.Status.Reason, pod.Status.Message,
					WhyPending(&pod))
			}
		}
		all = pods
		return err
	})
	return all
}

// GivenTo are the devices of a resource that the kubelet says it gave to each container that has not ended, in order;
// kubelets say so from Kubernetes 1.36 on.
func GivenTo(pod *v1.Pod, resourceName string) map[string][]string {
	given := map[string][]string{}
	for _, status := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		for _, allocated := range status.AllocatedResourcesStatus {
			if string(allocated.Name) != resourceName {
				continue
			}
			for _, device := range allocated.Resources {
				given[status.Name] = append(given[status.Name], string(device.ResourceID))
			}
			slices.Sort(given[status.Name])
		}
	}
	return given
}

// Planned are the devices that Berth wrote into the pod for each container, in order, as the machine's plugin names them.
func (m *Machine) Planned(pod *v1.Pod) map[string][]string {
	m.plane.T.Helper()
	devices, err := DevicesOf(pod)
	if err != nil {
		m.plane.T.Fatalf("%v", err)
	}
	planned := map[string][]string{}
	for name, assigned := range devices.Containers {
		for _, gpu := range slices.Concat(assigned.GPUs, assigned.Places) {
			planned[name] = append(planned[name], m.GPUID(gpu.Index))
		}
		slices.Sort(planned[name])
	}
	return planned
}

// AsPlanned is nil when the containers that the kubelet gave GPUs have those that Berth planned for them. Which of a
// pod's main containers gets which GPU of an init container is the kubelet's own choice: the pod's set counts.
func (m *Machine) AsPlanned(pod *v1.Pod, given map[string][]string) error {
	m.plane.T.Helper()
	planned := m.Planned(pod)
	var want, got []string
	for name, ids := range given {
		for _, id := range ids {
			gpu, _, _ := strings.Cut(id, "::")
			got = append(got, gpu)
		}
		want = append(want, planned[name]...)
	}
	slices.Sort(want)
	slices.Sort(got)
	want, got = slices.Compact(want), slices.Compact(got)
	if len(got) == 0 || !slices.Equal(want, got) {
		return fmt.Errorf("%s: planned %s, given %s", pod.Name, strings.Join(want, " "), strings.Join(got, " "))
	}
	return nil
}
