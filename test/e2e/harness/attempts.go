// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"fmt"
	"maps"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
)

// Attempts knows which pods the scheduler has placed, and which it has tried in vain.
type Attempts struct {
	// Stop ends the following before the test does.
	Stop func()

	plane   *Plane
	mutex   sync.Mutex
	bound   map[string]bool
	refused map[string]bool
}

// WatchAttempts follows all pods from now on.
func (p *Plane) WatchAttempts() *Attempts {
	a := &Attempts{plane: p, bound: map[string]bool{}, refused: map[string]bool{}}
	a.Stop = p.followPods("", func(pod *v1.Pod) {
		a.mutex.Lock()
		defer a.mutex.Unlock()
		if pod.Spec.NodeName != "" {
			a.bound[pod.Name] = true
			delete(a.refused, pod.Name)
		} else if WhyPending(pod) != "" {
			a.refused[pod.Name] = true
		}
	})
	return a
}

// WaitForAll returns the names of the pods with a node, once all of count have been tried and none has been placed for
// a while.
func (a *Attempts) WaitForAll(count int, limit time.Duration) map[string]bool {
	a.plane.T.Helper()
	const quiet = 10 * time.Second
	placed, since := -1, time.Now()
	var bound map[string]bool
	Eventually(a.plane.T, "every pod to be tried", limit, func() error {
		a.mutex.Lock()
		defer a.mutex.Unlock()
		if len(a.bound) != placed {
			placed, since = len(a.bound), time.Now()
		}
		if tried := len(a.bound) + len(a.refused); tried < count || time.Since(since) < quiet {
			return fmt.Errorf("%d of %d were", tried, count)
		}
		bound = maps.Clone(a.bound)
		return nil
	})
	return bound
}
