// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
)

// Bound counts pods as they get their node. It reads a watch, so that counting costs the API server little.
type Bound struct {
	// Stop ends the counting before the test does.
	Stop func()

	plane   *Plane
	mutex   sync.Mutex
	changed *sync.Cond
	uids    map[string]struct{}
}

// WatchBound counts from now on, pods that are bound already included.
func (p *Plane) WatchBound() *Bound {
	p.T.Helper()
	b := &Bound{plane: p, uids: map[string]struct{}{}}
	b.changed = sync.NewCond(&b.mutex)
	b.Stop = p.followPods("spec.nodeName!=", func(pod *v1.Pod) {
		b.mutex.Lock()
		defer b.mutex.Unlock()
		b.uids[string(pod.UID)] = struct{}{}
		b.changed.Broadcast()
	})
	return b
}

// Count is the number of pods that got a node.
func (b *Bound) Count() int {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	return len(b.uids)
}

// WaitFor returns as soon as count pods have a node.
func (b *Bound) WaitFor(count int, limit time.Duration) {
	b.plane.T.Helper()
	late := false
	timer := time.AfterFunc(limit, func() {
		b.mutex.Lock()
		defer b.mutex.Unlock()
		late = true
		b.changed.Broadcast()
	})
	defer timer.Stop()
	b.mutex.Lock()
	for len(b.uids) < count && !late {
		b.changed.Wait()
	}
	got := len(b.uids)
	b.mutex.Unlock()
	if got < count {
		b.plane.T.Fatalf("waited %s for %d pods to be bound: %d are", limit, count, got)
	}
}
