// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"maps"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
)

// Given remembers which GPUs kubelets gave to which containers, also of pods that have ended: these say so no more.
type Given struct {
	plane *Plane

	mutex sync.Mutex
	pods  map[types.UID]*GivenPod
}

// GivenPod is what was seen of one pod.
type GivenPod struct {
	// Pod is the pod as it was seen last.
	Pod *v1.Pod
	// GPUs are the device IDs by container.
	GPUs map[string][]string
	// Bound, Given and Ended are when the pod was first seen with a node, with GPUs, and over or gone.
	Bound, Given, Ended time.Time
}

// RecordGiven follows the pods of all nodes from now on.
func (p *Plane) RecordGiven() *Given {
	p.T.Helper()
	g := &Given{plane: p, pods: map[types.UID]*GivenPod{}}
	stop := make(chan struct{})
	p.T.Cleanup(func() { close(stop) })
	go func() {
		for {
			select {
			case <-stop:
				return
			default:
				g.follow(stop)
			}
		}
	}()
	return g
}

// follow follows the pods until the API server ends the watch.
func (g *Given) follow(stop <-chan struct{}) {
	pods := g.plane.Client.CoreV1().Pods(Namespace)
	list, err := pods.List(background(), metav1.ListOptions{})
	if err != nil {
		return
	}
	for _, pod := range list.Items {
		g.see(&pod, false)
	}
	changes, err := pods.Watch(background(), metav1.ListOptions{ResourceVersion: list.ResourceVersion})
	if err != nil {
		return
	}
	defer changes.Stop()
	for {
		select {
		case <-stop:
			return
		case event, open := <-changes.ResultChan():
			pod, isPod := event.Object.(*v1.Pod)
			if !open {
				return
			}
			if isPod && event.Type != watch.Error {
				g.see(pod, event.Type == watch.Deleted)
			}
		}
	}
}

func (g *Given) see(pod *v1.Pod, gone bool) {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	seen := g.pods[pod.UID]
	if seen == nil {
		seen = &GivenPod{GPUs: map[string][]string{}}
		g.pods[pod.UID] = seen
	}
	seen.Pod = pod
	if seen.Bound.IsZero() && pod.Spec.NodeName != "" {
		seen.Bound = time.Now()
	}
	over := gone || pod.Status.Phase == v1.PodSucceeded || pod.Status.Phase == v1.PodFailed
	if seen.Ended.IsZero() && over {
		seen.Ended = time.Now()
	}
	for name, ids := range GivenTo(pod, GPUResource) {
		if seen.Given.IsZero() {
			seen.Given = time.Now()
		}
		seen.GPUs[name] = ids
	}
}

// All are the pods seen so far.
func (g *Given) All() []GivenPod {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	var all []GivenPod
	for _, seen := range g.pods {
		copied := *seen
		copied.GPUs = maps.Clone(seen.GPUs)
		all = append(all, copied)
	}
	return all
}
