// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
)

// Kubelets play the kubelets of all nodes: they renew the nodes' leases, count GPUs when a pod comes as a kubelet does,
// and have pods run and end (see RunsAnnotation).
type Kubelets struct {
	plane *Plane
	ctx   context.Context

	mutex   sync.Mutex
	silent  map[string]bool
	pods    map[types.UID]*podLife
	refused []string
}

// StartKubelets plays them from now on, for nodes that come later too.
func (p *Plane) StartKubelets() *Kubelets {
	p.T.Helper()
	ctx, stop := context.WithCancel(background())
	k := &Kubelets{plane: p, ctx: ctx, silent: map[string]bool{}, pods: map[types.UID]*podLife{}}
	p.T.Cleanup(stop)
	go k.everySecond(k.renewLeases)
	go k.everySecond(k.followPods)
	return k
}

// Silence has the kubelet of a node do nothing any more, as when the machine has died.
func (k *Kubelets) Silence(node string) {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	k.silent[node] = true
}

// Revive is the end of Silence: the node says that it is ready.
func (k *Kubelets) Revive(node string) {
	k.mutex.Lock()
	delete(k.silent, node)
	k.mutex.Unlock()
	k.plane.T.Helper()
	Eventually(k.plane.T, node+" to be ready", 30*time.Second, func() error {
		_, err := k.plane.Client.CoreV1().Nodes().Patch(background(), node, types.StrategicMergePatchType,
			[]byte(`{"status": {"conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady"}]}}`),
			metav1.PatchOptions{}, "status")
		return err
	})
}

// CheckRefused fails the test if a kubelet had fewer GPUs than its pods asked for.
func (k *Kubelets) CheckRefused() {
	k.plane.T.Helper()
	k.mutex.Lock()
	defer k.mutex.Unlock()
	if len(k.refused) > 0 {
		k.plane.T.Fatalf("kubelets refused %d pods: %v", len(k.refused), k.refused[:min(5, len(k.refused))])
	}
}

func (k *Kubelets) everySecond(do func()) {
	for ; k.ctx.Err() == nil; time.Sleep(time.Second) {
		do()
	}
}

func (k *Kubelets) isSilent(node string) bool {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	return k.silent[node]
}

// renewLeases says for each node that its kubelet lives. What fails is tried again a second later.
func (k *Kubelets) renewLeases() {
	nodes, err := k.plane.Client.CoreV1().Nodes().List(k.ctx, metav1.ListOptions{})
	if err != nil {
		return
	}
	alive := slices.DeleteFunc(nodes.Items, func(node v1.Node) bool { return k.isSilent(node.Name) })
	_ = inParallel(alive, func(node v1.Node) error {
		leases := k.plane.Client.CoordinationV1().Leases(v1.NamespaceNodeLease)
		now, seconds := metav1.NowMicro(), int32(40)
		patch := fmt.Appendf(nil, `{"spec": {"renewTime": %q}}`, now.UTC().Format(metav1.RFC3339Micro))
		_, err := leases.Patch(k.ctx, node.Name, types.MergePatchType, patch, metav1.PatchOptions{})
		if apierrors.IsNotFound(err) {
			_, err = leases.Create(k.ctx, &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: node.Name},
				Spec: coordinationv1.LeaseSpec{HolderIdentity: &node.Name, LeaseDurationSeconds: &seconds, RenewTime: &now}},
				metav1.CreateOptions{})
		}
		return err
	})
}

// followPods follows the pods that have a node until the API server ends the watch.
func (k *Kubelets) followPods() {
	pods := k.plane.Client.CoreV1().Pods(Namespace)
	list, err := pods.List(k.ctx, metav1.ListOptions{FieldSelector: "spec.nodeName!="})
	if err != nil {
		return
	}
	k.forgetAllBut(list.Items)
	for _, pod := range list.Items {
		k.see(&pod)
	}
	changes, err := pods.Watch(k.ctx, metav1.ListOptions{FieldSelector: "spec.nodeName!=", ResourceVersion: list.ResourceVersion})
	if err != nil {
		return
	}
	for event := range changes.ResultChan() {
		pod, isPod := event.Object.(*v1.Pod)
		if isPod && event.Type == watch.Deleted {
			k.forget(pod.UID)
		} else if isPod {
			k.see(pod)
		}
	}
}

func (k *Kubelets) forgetAllBut(pods []v1.Pod) {
	there := map[types.UID]bool{}
	for _, pod := range pods {
		there[pod.UID] = true
	}
	k.mutex.Lock()
	defer k.mutex.Unlock()
	for uid, life := range k.pods {
		if !there[uid] {
			life.gone()
			delete(k.pods, uid)
		}
	}
}

func (k *Kubelets) forget(uid types.UID) {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	if life := k.pods[uid]; life != nil {
		life.gone()
		delete(k.pods, uid)
	}
}
