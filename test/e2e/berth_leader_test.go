// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"errors"
	"fmt"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"berth.dev/e2e/harness"
)

// The configuration of Berth that elects a leader.
const electLeader = "leaderElection:\n  enabled: true\n"

// ready waits until exactly one of them is ready, as a Service sees them, and gives its index.
func ready(t *testing.T, berths []*harness.Berth) int {
	t.Helper()
	leader := -1
	harness.Eventually(t, "one Berth of two to be ready", time.Minute, func() error {
		var who []int
		for i, berth := range berths {
			if berth.Running() && berth.Ready() == nil {
				who = append(who, i)
			}
		}
		if len(who) != 1 {
			return fmt.Errorf("ready: %v", who)
		}
		leader = who[0]
		return nil
	})
	return leader
}

// The Service: a proxy whose target is the Berth that is ready.
func TestLeadershipIsHandedOverInTheMiddleOfBinds(t *testing.T) {
	needBerth(t)
	plane := harness.NewPlane(t)
	plane.CreateNodes(64)
	plane.GrantBerth()
	kubeconfig := plane.BerthKubeconfig(plane.URL(), plane.Token())
	var berths []*harness.Berth
	for _, name := range []string{"berth-a", "berth-b"} {
		berth := plane.NewBerth(name, kubeconfig, electLeader)
		berth.Start()
		berths = append(berths, berth)
	}
	leader := ready(t, berths)
	service := harness.NewProxy(t, berths[leader].Listen)
	bound := plane.WatchBound()
	plane.CreatePods(oneGPUEach("pod", manyPods)...)
	plane.StartScheduler(harness.ShippedExtenders(t, "http://"+service.Address())...)
	bound.WaitFor(manyPods/4, time.Minute)

	berths[leader].Kill()
	wantHalfway(t, plane)
	next := ready(t, berths)
	if next == leader {
		t.Fatalf("%d leads again", next)
	}
	service.Target(berths[next].Listen)
	wantAllPlaced(t, plane)
}

// The pods of Berth that the Service of the manifests selects.
func selected(t *testing.T, plane *harness.Plane) []string {
	t.Helper()
	service := as[v1.Service](t, render(t, "manifests/base"), "Service/berth")
	pods, err := plane.Client.CoreV1().Pods(service.Namespace).List(t.Context(),
		metav1.ListOptions{LabelSelector: labels.FormatLabels(service.Spec.Selector)})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, pod := range pods.Items {
		names = append(names, pod.Name)
	}
	return names
}

// isPod makes a pod of the Deployment, an object without a kubelet, and tells Berth that it is that.
func isPod(t *testing.T, plane *harness.Plane, berth *harness.Berth, name string) {
	t.Helper()
	deployment := as[appsv1.Deployment](t, render(t, "manifests/base"), "Deployment/berth")
	template := deployment.Spec.Template
	pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: deployment.Namespace, Labels: template.Labels},
		Spec: template.Spec}
	pod.Spec.PriorityClassName, pod.Spec.SchedulerName = "", "nobody"
	if _, err := plane.Client.CoreV1().Pods(pod.Namespace).Create(t.Context(), pod, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	berth.Env = []string{"BERTH_POD_NAME=" + name}
}

func TestTheServiceFollowsTheLeaderAndAStandbyIsReady(t *testing.T) {
	needBerth(t)
	plane := harness.NewPlane(t)
	plane.CreateNodes(1)
	plane.GrantBerth()
	kubeconfig := plane.ServiceAccountKubeconfig("berth")
	berths := map[string]*harness.Berth{}
	for _, name := range []string{"berth-a", "berth-b"} {
		berths[name] = plane.NewBerth(name, kubeconfig, electLeader)
		isPod(t, plane, berths[name], name)
	}
	// leads waits until the Service selects one of them alone, and the other is ready too or does not run.
	leads := func(after string) string {
		leader := ""
		harness.Eventually(t, "the Service to lead to one Berth, "+after, time.Minute, func() error {
			names := selected(t, plane)
			var errs []error
			for _, berth := range berths {
				if berth.Process != nil && berth.Running() {
					errs = append(errs, berth.Ready())
				}
			}
			if len(names) != 1 {
				errs = append(errs, fmt.Errorf("selected: %v", names))
			} else {
				leader = names[0]
			}
			return errors.Join(errs...)
		})
		if err := contains(berths[leader].Page("/readyz"), "ok"); err != nil {
			t.Errorf("%s: %v", leader, err)
		}
		return leader
	}
	berths["berth-a"].Start()
	if leader := leads("which is alone"); leader != "berth-a" {
		t.Fatalf("%s leads", leader)
	}
	berths["berth-b"].Start()
	leads("and a standby")
	if err := contains(berths["berth-b"].Page("/readyz"), "standby"); err != nil {
		t.Error(err)
	}
	if got := berths["berth-a"].Metric("berth_leader_labelled") - berths["berth-b"].Metric("berth_leader_labelled"); got != 1 {
		t.Errorf("berth_leader_labelled differs by %g", got)
	}

	berths["berth-a"].Kill()
	harness.Eventually(t, "the other to be selected, beside the dead one", time.Minute, func() error {
		if names := selected(t, plane); len(names) != 2 {
			return fmt.Errorf("selected: %v", names)
		}
		return berths["berth-b"].Ready()
	})
	// Its container starts anew, in the pod that has the label still.
	berths["berth-a"].Start()
	if leader := leads("after the first one was started again"); leader != "berth-b" {
		t.Errorf("%s leads", leader)
	}
	berths["berth-b"].Stop()
	plane.Kubectl("delete", "pod", "berth-b", "--namespace=berth-system")
	if leader := leads("after it was handed over"); leader != "berth-a" {
		t.Errorf("%s leads", leader)
	}
	wantNobodyRefused(t, plane)
}
