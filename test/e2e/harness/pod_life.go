// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"context"
	"encoding/json"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Annotations by which a pod tells Kubelets when it ends by itself; without one it runs until it is deleted. Containers
// are never started again, whatever the pod's restartPolicy.
const (
	RunsAnnotation  = "e2e.berth.dev/runs"  // a duration, then it succeeds
	FailsAnnotation = "e2e.berth.dev/fails" // a duration, then it fails with 1
)

// podLife is a pod that a kubelet has been given and that is still there.
type podLife struct {
	node string
	// What it keeps from other pods: none before it was admitted, or once it has ended.
	gpus int64
	// Told to end, within this time.
	end chan time.Duration
	// Its containers end by themselves, with this.
	exit  chan int32
	there context.Context
	gone  context.CancelFunc
}

// Ended says whether no container of the pod runs any more.
func Ended(pod *v1.Pod) bool {
	return pod.Status.Phase == v1.PodSucceeded || pod.Status.Phase == v1.PodFailed
}

// see takes note of a pod with a node: one that comes is started, one that is deleted ends.
func (k *Kubelets) see(pod *v1.Pod) {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	life := k.pods[pod.UID]
	if life == nil {
		life = &podLife{node: pod.Spec.NodeName, end: make(chan time.Duration, 1), exit: make(chan int32, 1)}
		life.there, life.gone = context.WithCancel(k.ctx)
		k.pods[pod.UID] = life
		if !Ended(pod) {
			go k.live(pod, life)
		}
	}
	if pod.DeletionTimestamp != nil {
		select {
		case life.end <- time.Duration(*pod.DeletionGracePeriodSeconds) * time.Second:
		default: // it was told before
		}
	}
}

// End has the containers of a pod end by themselves with this exit code.
func (k *Kubelets) End(uid types.UID, exitCode int32) {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	if life := k.pods[uid]; life != nil {
		select {
		case life.exit <- exitCode:
		default: // it has been told
		}
	}
}

// live is the pod from when its kubelet hears of it to its end.
func (k *Kubelets) live(pod *v1.Pod, life *podLife) {
	k.waitWhileSilent(life)
	if !k.admit(pod, life) {
		k.report(pod, life, v1.PodStatus{Phase: v1.PodFailed, Reason: "UnexpectedAdmissionError",
			Message: "Allocate failed due to requested number of devices unavailable for " + GPUResource})
		return
	}
	k.report(pod, life, statusOf(pod, v1.PodRunning, 0))
	told := false
	ends, exitCode := endOf(pod)
	select {
	case <-ends:
	case exitCode = <-life.exit:
	case grace := <-life.end:
		told, exitCode = true, 143
		time.Sleep(min(grace, time.Second)) // containers end within a second when they are asked to
	case <-life.there.Done():
		return
	}
	phase := v1.PodSucceeded
	if exitCode != 0 {
		phase = v1.PodFailed
	}
	k.waitWhileSilent(life)
	k.release(life)
	told = k.report(pod, life, statusOf(pod, phase, exitCode)) || told
	if told {
		k.remove(pod, life)
	}
}

// endOf is when the pod ends by itself, and with which exit code.
func endOf(pod *v1.Pod) (ends <-chan time.Time, exitCode int32) {
	text, fails := pod.Annotations[FailsAnnotation]
	if fails {
		exitCode = 1
	} else {
		text = pod.Annotations[RunsAnnotation]
	}
	if after, err := time.ParseDuration(text); err == nil {
		ends = time.After(after)
	}
	return ends, exitCode
}

func (k *Kubelets) waitWhileSilent(life *podLife) {
	for k.isSilent(life.node) && life.there.Err() == nil {
		time.Sleep(50 * time.Millisecond)
	}
}

func gpusAsked(pod *v1.Pod) int64 {
	sum := int64(0)
	for _, container := range pod.Spec.Containers {
		limit := container.Resources.Limits[GPUResource]
		sum += limit.Value()
	}
	return sum
}

// admit counts the GPUs of the node as the kubelet's device manager does: pods that have not ended keep theirs.
func (k *Kubelets) admit(pod *v1.Pod, life *podLife) bool {
	asked := gpusAsked(pod)
	node, err := k.plane.Client.CoreV1().Nodes().Get(k.ctx, life.node, metav1.GetOptions{})
	for ; err != nil && life.there.Err() == nil; time.Sleep(100 * time.Millisecond) {
		node, err = k.plane.Client.CoreV1().Nodes().Get(k.ctx, life.node, metav1.GetOptions{})
	}
	if err != nil {
		return true // the pod has gone, or the test is over
	}
	k.mutex.Lock()
	defer k.mutex.Unlock()
	used := int64(0)
	for _, other := range k.pods {
		if other.node == life.node {
			used += other.gpus
		}
	}
	if has := node.Status.Allocatable[GPUResource]; asked > 0 && used+asked > has.Value() {
		k.refused = append(k.refused, pod.Name+" on "+life.node)
		return false
	}
	life.gpus = asked
	return true
}

func (k *Kubelets) release(life *podLife) {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	life.gpus = 0
}

func statusOf(pod *v1.Pod, phase v1.PodPhase, exitCode int32) v1.PodStatus {
	now := metav1.Now()
	runs := phase == v1.PodRunning
	ready := v1.ConditionFalse
	if runs {
		ready = v1.ConditionTrue
	}
	status := v1.PodStatus{Phase: phase, StartTime: &now}
	for _, kind := range []v1.PodConditionType{v1.PodInitialized, v1.ContainersReady, v1.PodReady} {
		status.Conditions = append(status.Conditions, v1.PodCondition{Type: kind, Status: ready, LastTransitionTime: now})
	}
	for _, container := range pod.Spec.Containers {
		state := v1.ContainerState{Running: &v1.ContainerStateRunning{StartedAt: now}}
		if !runs {
			state = v1.ContainerState{Terminated: &v1.ContainerStateTerminated{ExitCode: exitCode, FinishedAt: now}}
		}
		status.ContainerStatuses = append(status.ContainerStatuses, v1.ContainerStatus{Name: container.Name,
			Image: container.Image, Ready: runs, Started: &runs, State: state})
	}
	return status
}

// report writes the pod's status, however long the API server is away, and says whether the pod is being deleted.
func (k *Kubelets) report(pod *v1.Pod, life *podLife, status v1.PodStatus) (told bool) {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": pod.UID}, "status": status})
	if err != nil {
		k.plane.T.Logf("status of %s: %v", pod.Name, err)
		return false
	}
	for ; life.there.Err() == nil; time.Sleep(100 * time.Millisecond) {
		now, err := k.plane.Client.CoreV1().Pods(pod.Namespace).Patch(life.there, pod.Name, types.StrategicMergePatchType, patch,
			metav1.PatchOptions{}, "status")
		if err == nil {
			return now.DeletionTimestamp != nil
		}
	}
	return false
}

// remove takes the pod out of the API, as a kubelet does once all containers of a deleted pod have ended.
func (k *Kubelets) remove(pod *v1.Pod, life *podLife) {
	options := metav1.NewDeleteOptions(0)
	options.Preconditions = &metav1.Preconditions{UID: &pod.UID}
	for ; life.there.Err() == nil; time.Sleep(100 * time.Millisecond) {
		if k.plane.Client.CoreV1().Pods(pod.Namespace).Delete(life.there, pod.Name, *options) == nil {
			return
		}
	}
}
