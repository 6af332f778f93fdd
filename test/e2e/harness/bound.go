// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"context"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
)

// Bound counts pods as they get their node. It reads a watch, so that counting costs the API server little.
type Bound struct {
	plane *Plane
	stop  context.CancelFunc

	mutex   sync.Mutex
	changed *sync.Cond
	uids    map[string]struct{}
}

// WatchBound counts from now on, pods that are bound already included.
func (p *Plane) WatchBound() *Bound {
	p.T.Helper()
	ctx, stop := context.WithCancel(background())
	b := &Bound{plane: p, stop: stop, uids: map[string]struct{}{}}
	b.changed = sync.NewCond(&b.mutex)
	go b.read(ctx)
	return b
}

// read watches again whenever the API server ends a watch, as it does with a reader that is slow for a moment. Each
// watch begins with the pods that are there.
func (b *Bound) read(ctx context.Context) {
	for ; ctx.Err() == nil; time.Sleep(10 * time.Millisecond) {
		w, err := b.plane.Client.CoreV1().Pods(Namespace).Watch(ctx, metav1.ListOptions{FieldSelector: "spec.nodeName!="})
		if err != nil {
			continue
		}
		for event := range w.ResultChan() {
			if pod, isPod := event.Object.(*v1.Pod); isPod && event.Type != watch.Deleted {
				b.mutex.Lock()
				b.uids[string(pod.UID)] = struct{}{}
				b.changed.Broadcast()
				b.mutex.Unlock()
			}
		}
	}
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

// Stop ends the counting.
func (b *Bound) Stop() { b.stop() }
