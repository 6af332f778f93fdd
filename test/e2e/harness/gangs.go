// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"fmt"
	"maps"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// GangLabel names the gang of a pod for the harness; Berth does not read it.
const GangLabel = "e2e.berth.dev/gang"

// Gangs records when the pods of each gang get their nodes, and deletes a gang that has run for a while, so that the
// next one has room.
type Gangs struct {
	plane *Plane
	of    func(*v1.Pod) (gang string, minimum int)
	runs  time.Duration // 0: for ever

	mutex   sync.Mutex
	minimum map[string]int
	bound   map[string]map[string]time.Time // [gang][pod]
	whole   map[string]time.Time
}

// WatchGangs records from now on; minimum has the number of pods that each gang needs.
func (p *Plane) WatchGangs(minimum map[string]int, runs time.Duration) *Gangs {
	p.T.Helper()
	g := &Gangs{runs: runs, minimum: maps.Clone(minimum), of: func(pod *v1.Pod) (string, int) {
		gang := pod.Labels[GangLabel]
		return gang, minimum[gang]
	}}
	return p.watch(g)
}

// WatchGangsBy records from now on; of tells a pod's gang, "" for none, and the number of pods that it needs.
func (p *Plane) WatchGangsBy(of func(*v1.Pod) (gang string, minimum int)) *Gangs {
	p.T.Helper()
	return p.watch(&Gangs{minimum: map[string]int{}, of: of})
}

func (p *Plane) watch(g *Gangs) *Gangs {
	g.plane = p
	g.bound, g.whole = map[string]map[string]time.Time{}, map[string]time.Time{}
	p.followPods("spec.nodeName!=", g.see)
	return g
}

func (g *Gangs) see(pod *v1.Pod) {
	gang, minimum := g.of(pod)
	if gang == "" {
		return
	}
	g.mutex.Lock()
	defer g.mutex.Unlock()
	if g.bound[gang] == nil {
		g.bound[gang], g.minimum[gang] = map[string]time.Time{}, minimum
	}
	if _, known := g.bound[gang][pod.Name]; known {
		return
	}
	g.bound[gang][pod.Name] = time.Now()
	if _, is := g.whole[gang]; is || len(g.bound[gang]) < g.minimum[gang] {
		return
	}
	g.whole[gang] = time.Now()
	if g.runs > 0 {
		time.AfterFunc(g.runs, func() { g.end(gang) })
	}
}

// end deletes the pods of a gang that has run.
func (g *Gangs) end(gang string) {
	_ = g.plane.Client.CoreV1().Pods(Namespace).DeleteCollection(background(), metav1.DeleteOptions{},
		metav1.ListOptions{LabelSelector: GangLabel + "=" + gang})
}

// WaitWhole waits until so many gangs have had as many pods with a node as they need.
func (g *Gangs) WaitWhole(count int, limit time.Duration) {
	g.plane.T.Helper()
	Eventually(g.plane.T, fmt.Sprintf("%d gangs to be whole", count), limit, func() error {
		g.mutex.Lock()
		defer g.mutex.Unlock()
		if len(g.whole) >= count {
			return nil
		}
		for gang, minimum := range g.minimum {
			if _, is := g.whole[gang]; !is {
				return fmt.Errorf("%d are; %s has %d of %d", len(g.whole), gang, len(g.bound[gang]), minimum)
			}
		}
		return fmt.Errorf("%d are", len(g.whole))
	})
}

// InPart are the gangs with some pods on nodes, but fewer than they need.
func (g *Gangs) InPart() []string {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	var gangs []string
	for gang, pods := range g.bound {
		if len(pods) < g.minimum[gang] {
			gangs = append(gangs, fmt.Sprintf("%s: %d of %d", gang, len(pods), g.minimum[gang]))
		}
	}
	return gangs
}

// Whole is how many gangs have had as many pods with a node as they need.
func (g *Gangs) Whole() int {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	return len(g.whole)
}

// Bound is how many pods of the gang have got a node.
func (g *Gangs) Bound(gang string) int {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	return len(g.bound[gang])
}

// SlowestStart is the longest time from the first pod of a gang with a node to its being whole; and which gang that is.
func (g *Gangs) SlowestStart() (time.Duration, string) {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	slowest, which := time.Duration(0), ""
	for gang, whole := range g.whole {
		for _, at := range g.bound[gang] {
			if took := whole.Sub(at); took > slowest {
				slowest, which = took, gang
			}
		}
	}
	return slowest, which
}
