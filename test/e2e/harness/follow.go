// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"context"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
)

// followPods has see called, by one goroutine, with each pod that a field selector admits ("" for all): those that are
// there, and whenever one comes or changes, until stop is called or the test ends. It watches again whenever the API
// server ends a watch, as it does with a reader that is slow for a moment; each watch begins with the pods that are
// there.
func (p *Plane) followPods(fields string, see func(*v1.Pod)) (stop func()) {
	ctx, stop := context.WithCancel(background())
	p.T.Cleanup(stop)
	go func() {
		for ; ctx.Err() == nil; time.Sleep(10 * time.Millisecond) {
			w, err := p.Client.CoreV1().Pods(Namespace).Watch(ctx, metav1.ListOptions{FieldSelector: fields})
			if err != nil {
				continue
			}
			for event := range w.ResultChan() {
				if pod, isPod := event.Object.(*v1.Pod); isPod && event.Type != watch.Deleted {
					see(pod)
				}
			}
		}
	}()
	return stop
}
