// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"berth.dev/e2e/harness"
)

// lab is a cluster of real nodes before Berth and kube-scheduler.
type lab struct {
	t     harness.T
	plane *harness.Plane
	nodes []*harness.Machine
	given *harness.Given
	berth *harness.Berth
	close func()

	faults []fault
}

// arm is who chooses: berth-node, the kubelet alone, or the plugin by its own preference.
type arm struct {
	Name   string
	agent  bool
	prefer string
}

var (
	withAgent   = arm{"berth-node", true, "none"}
	pluginAlone = arm{"no preference", false, "none"}
	nvidias     = arm{"NVIDIA's preference", false, "nvidia"}
)

// newLab starts one with so many nodes and these links; close ends it.
func newLab(a arm, s settings, nodes int, links harness.Links, pluginFlags ...string) *lab {
	command := &harness.Command{}
	l := &lab{t: command, plane: harness.NewPlane(command), close: command.Close}
	for i := range nodes {
		flags := append([]string{"-prefer", a.prefer}, pluginFlags...)
		node := l.plane.StartNode(harness.MachineOptions{
			Name: fmt.Sprintf("n%d", i), Agent: a.agent, PluginFlags: flags, Pretended: s.pretended})
		node.Annotate("berth.dev/topology", links.Annotation())
		if a.agent {
			node.StartAgent()
		}
		node.WaitGPUs()
		l.nodes = append(l.nodes, node)
	}
	l.given = l.plane.RecordGiven()
	l.berth = l.plane.StartBerth("")
	l.plane.StartScheduler(harness.ShippedExtenders(command, l.berth.URL)...)
	return l
}

func gpus(count int) harness.Ask { return harness.Ask{harness.GPUResource: strconv.Itoa(count)} }

func ended(pod *v1.Pod) bool {
	return pod.Status.Phase == v1.PodSucceeded || pod.Status.Phase == v1.PodFailed
}

// unfinished are the pods that have not ended; those that have are deleted.
func (l *lab) unfinished() []v1.Pod {
	pods, err := l.plane.ListPods("")
	if err != nil {
		return nil
	}
	now := int64(0)
	return slices.DeleteFunc(pods, func(pod v1.Pod) bool {
		if ended(&pod) {
			_ = l.plane.Client.CoreV1().Pods(harness.Namespace).Delete(background(), pod.Name,
				metav1.DeleteOptions{GracePeriodSeconds: &now})
		}
		return ended(&pod)
	})
}

// drain waits until at most so many pods have not ended.
func (l *lab) drain(most int, limit time.Duration) {
	harness.Eventually(l.t, fmt.Sprintf("all pods but %d to end", most), limit, func() error {
		if left := l.unfinished(); len(left) > most {
			time.Sleep(200 * time.Millisecond) // to list them all costs the API server more than the pods do
			return fmt.Errorf("%d are left: %s on %q: %s %s", len(left), left[0].Name, left[0].Spec.NodeName,
				left[0].Status.Phase, harness.WhyPending(&left[0]))
		}
		return nil
	})
}

// machine is the node of this name.
func (l *lab) machine(name string) *harness.Machine {
	for _, node := range l.nodes {
		if node.Name == name {
			return node
		}
	}
	return nil
}
