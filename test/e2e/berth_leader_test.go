// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"errors"
	"fmt"
	"os"
	"strconv"
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

// lease gives the holder of Berth's lease, and how often it has changed.
func lease(t *testing.T, plane *harness.Plane) string {
	t.Helper()
	lease, err := plane.Client.CoordinationV1().Leases("berth-system").Get(t.Context(), "berth", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprint(*lease.Spec.HolderIdentity, " ", *lease.Spec.LeaseTransitions)
}

// createBound creates nodes, and pods that have four GPUs of each of them, as Berth writes it: BERTH_E2E_BOUND pods in
// all, or none.
func createBound(t *testing.T, plane *harness.Plane) {
	t.Helper()
	count, _ := strconv.Atoi(os.Getenv("BERTH_E2E_BOUND"))
	var nodes []*v1.Node
	pods := harness.Pods("old", count, harness.Ask{harness.GPUResource: "1"})
	for i, pod := range pods {
		node := fmt.Sprintf("old-%05d", i/4)
		if i%4 == 0 {
			nodes = append(nodes, harness.Node(node, harness.GPUModel, 8))
		}
		pod.Namespace, pod.Spec.NodeName = "kube-public", node
		devices := `{"version":1,"node":%q,"containers":{%q:{"gpus":[{"index":%d,"milli":1000,"memory_mib":81920}]}}}`
		pod.Annotations = map[string]string{
			"berth.dev/devices": fmt.Sprintf(devices, node, pod.Spec.Containers[0].Name, i%4)}
	}
	plane.AddNodes(nodes...)
	plane.CreatePods(pods...)
}

// A process that is killed and started again in its place leads on; one that is started elsewhere, at the same address
// of the same host, waits until the lease has run out.
func TestABerthThatIsStartedAgainGoesOn(t *testing.T) {
	needBerth(t)
	plane := harness.NewPlane(t)
	plane.CreateNodes(64)
	createBound(t, plane)
	plane.GrantBerth()
	berth := plane.NewBerth("berth", plane.ServiceAccountKubeconfig("berth"), electLeader+"  leaseSeconds: 5\n")
	berth.Start()
	berth.WaitReady()
	held := lease(t, plane)
	bound := plane.WatchBound()
	plane.CreatePods(oneGPUEach("pod", manyPods)...)
	plane.StartScheduler(harness.ShippedExtenders(t, berth.URL)...)
	for part := 1; part <= 3; part++ {
		bound.WaitFor(part*manyPods/4, time.Minute)
		berth.Kill()
		start, api, etcd := time.Now(), plane.APIServer.CPU(), plane.Etcd.CPU()
		berth.Start()
		for berth.Ready() != nil && time.Since(start) < time.Minute {
			time.Sleep(5 * time.Millisecond)
		}
		t.Logf("ready %s after it was started; CPU of Berth %s, of the API server %s, of etcd %s", time.Since(start),
			berth.CPU(), plane.APIServer.CPU()-api, plane.Etcd.CPU()-etcd)
		berth.WaitReady()
		if now := lease(t, plane); now != held {
			t.Errorf("the lease changed from %s to %s", held, now)
		}
	}
	wantAllPlaced(t, plane)

	berth.Kill()
	berth.Env = append(berth.Env, "BERTH_RUNTIME_DIR="+t.TempDir())
	berth.Start()
	berth.WaitReady()
	if now := lease(t, plane); now == held {
		t.Errorf("%s: a process in another place led on", now)
	}
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
