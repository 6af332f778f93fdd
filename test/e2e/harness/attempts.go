// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Attempts knows which pods the scheduler has placed, and which it has tried in vain.
type Attempts struct {
	plane *Plane
	stop  context.CancelFunc

	mutex   sync.Mutex
	bound   map[string]bool
	refused map[string]bool
}

// WatchAttempts follows all pods from now on.
func (p *Plane) WatchAttempts() *Attempts {
	ctx, stop := context.WithCancel(background())
	a := &Attempts{plane: p, stop: stop, bound: map[string]bool{}, refused: map[string]bool{}}
	go a.read(ctx)
	return a
}

// read watches again whenever the API server ends a watch; each begins with the pods that are there.
func (a *Attempts) read(ctx context.Context) {
	for ; ctx.Err() == nil; time.Sleep(10 * time.Millisecond) {
		w, err := a.plane.Client.CoreV1().Pods(Namespace).Watch(ctx, metav1.ListOptions{})
		if err != nil {
			continue
		}
		for event := range w.ResultChan() {
			pod, isPod := event.Object.(*v1.Pod)
			if !isPod {
				continue
			}
			a.mutex.Lock()
			if pod.Spec.NodeName != "" {
				a.bound[pod.Name] = true
				delete(a.refused, pod.Name)
			} else if WhyPending(pod) != "" {
				a.refused[pod.Name] = true
			}
			a.mutex.Unlock()
		}
	}
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

// Stop ends the following.
func (a *Attempts) Stop() { a.stop() }
