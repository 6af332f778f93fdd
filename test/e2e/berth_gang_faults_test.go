// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"berth.dev/e2e/harness"
)

const startLabel = "e2e.berth.dev/starts"

// createHeld creates a gang of 8 GPUs per pod and returns when Berth has planned all of it and holds every bind but
// that of the last pod: kube-scheduler, and it alone, keeps this one back until letLastCome is called.
func createHeld(t *testing.T, c cluster, name string, size int) {
	t.Helper()
	pods := aGang(name, size, 8, inBerthsWords)
	pods[size-1].Spec.Affinity = &v1.Affinity{PodAffinity: &v1.PodAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: []v1.PodAffinityTerm{{
			LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{startLabel: name}},
			TopologyKey:   harness.ProductLabel, // the same for all nodes
		}}}}
	c.CreatePods(pods...)
	waitHeld(t, c, size)
}

// waitHeld waits for what createHeld returns with, and gives the node that each pod has by the plan.
func waitHeld(t *testing.T, c cluster, size int) map[string]string {
	t.Helper()
	var planned map[string]string
	harness.Eventually(t, "all to be planned and held but the last", 30*time.Second, func() error {
		planned = c.berth.Planned()
		if held := int(c.berth.Metric("berth_binds_held")); held != size-1 || len(planned) != size {
			return fmt.Errorf("%d of %d are held; planned: %v", held, size, planned)
		}
		return nil
	})
	return planned
}

func letLastCome(c cluster, gang string) {
	pod := harness.Pod(gang+"-starts", nil)
	pod.Labels = map[string]string{startLabel: gang}
	c.CreatePods(pod)
}

// wantWholeSoon lets the last pod of a held gang come, and wants all of it to run.
func wantWholeSoon(t *testing.T, c cluster, gang string, watched *harness.Gangs, count int) {
	t.Helper()
	if bound := watched.Bound(gang); bound > 0 {
		t.Errorf("%d pods were bound before the last one came", bound)
	}
	start := time.Now()
	letLastCome(c, gang)
	watched.WaitWhole(count, 30*time.Second)
	t.Logf("whole %s after what kept its last pod back has gone", time.Since(start))
	c.CheckGrants()
}

func TestAPlannedNodeThatIsDeletedIsReplaced(t *testing.T) {
	const size = 3
	c := startCluster(t, size+2)
	watched := c.WatchGangs(map[string]int{"train": size}, 0)
	createHeld(t, c, "train", size)
	for _, of := range []struct{ whom, pod string }{
		{"the pod that has not come", "train-0002"}, {"a pod that is held", "train-0000"}} {
		node := c.berth.Planned()[of.pod]
		start := time.Now()
		if err := c.Client.CoreV1().Nodes().Delete(t.Context(), node, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		harness.Eventually(t, "a plan without that node", 30*time.Second, func() error {
			planned := c.berth.Planned()
			if len(planned) < size || slices.Contains(slices.Collect(maps.Values(planned)), node) {
				return fmt.Errorf("planned: %v", planned)
			}
			return nil
		})
		t.Logf("the node of %s was deleted: planned anew after %s", of.whom, time.Since(start))
		waitHeld(t, c, size)
		t.Logf("held again after %s", time.Since(start))
	}
	wantWholeSoon(t, c, "train", watched, 1)
}

func TestAHeldPodThatIsDeletedIsReplacedAndNothingStaysHeld(t *testing.T) {
	const size = 3
	c := startCluster(t, size+1)
	watched := c.WatchGangs(map[string]int{"train": size}, 0)
	createHeld(t, c, "train", size)
	start := time.Now()
	c.Kubectl("delete", "pod", "train-0000", "--wait=false")
	wantNothingHeld(t, c)
	t.Logf("nothing is held any more %s after a held pod was deleted", time.Since(start))
	replacement := aGang("train", size+1, 8, inBerthsWords)[size]
	inBerthsWords.join(replacement, "train", size)
	c.CreatePods(replacement)
	waitHeld(t, c, size)
	wantWholeSoon(t, c, "train", watched, 1)

	c.DeletePods()
	createHeld(t, c, "gone", size)
	start = time.Now()
	c.DeletePods()
	wantNothingHeld(t, c)
	t.Logf("nothing is held any more %s after all pods were deleted", time.Since(start))
	c.CreatePods(harness.Pods("single", size+1, harness.Ask{harness.GPUResource: "8"})...)
	c.WaitBound(30 * time.Second)
	c.CheckGrants()
}

func wantNothingHeld(t *testing.T, c cluster) {
	t.Helper()
	harness.Eventually(t, "nothing to be held", 30*time.Second, func() error {
		if held, planned := c.berth.Metric("berth_binds_held"), c.berth.Planned(); held+float64(len(planned)) > 0 {
			return fmt.Errorf("%g binds are, planned: %v", held, planned)
		}
		return nil
	})
}

func TestKubeSchedulerKilledWhileBindsAreHeld(t *testing.T) {
	const size = 3
	c := startCluster(t, size+1)
	watched := c.WatchGangs(map[string]int{"train": size}, 0)
	createHeld(t, c, "train", size)
	planned := c.berth.Planned()
	c.scheduler.Kill()
	harness.Eventually(t, "the binds of a client that has gone to be let go", 10*time.Second, func() error {
		if held := c.berth.Metric("berth_binds_held"); held > 0 {
			return fmt.Errorf("%g are held", held)
		}
		return nil
	})
	start := time.Now()
	c.scheduler.Restart()
	if again := waitHeld(t, c, size); !maps.Equal(again, planned) {
		t.Errorf("want the plan to stay, %v, got %v", planned, again)
	}
	t.Logf("held again %s after kube-scheduler was started", time.Since(start))
	wantWholeSoon(t, c, "train", watched, 1)
}

// Berth cannot wake its members one by one: it refuses a bind that is held, and kube-scheduler then looks at all of them.
func TestAGangInAnIdleClusterStartsWithoutTheRightToWake(t *testing.T) {
	c := startCluster(t, 4)
	roles := c.Client.RbacV1().ClusterRoles()
	role, err := roles.Get(t.Context(), "berth", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for i, rule := range role.Rules {
		if slices.Equal(rule.Resources, []string{"pods/status"}) {
			role.Rules = slices.Delete(role.Rules, i, i+1)
			break
		}
	}
	if _, err := roles.Update(t.Context(), role, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	wantWholeWithItsLastMember(t, c, 30*time.Second)
	if err := contains(c.berth.Log(), "wake_refused"); err != nil {
		t.Error(err)
	}
}

// A member of a pair of Berths: what it says to the API server passes here.
type candidate struct {
	*harness.Berth
	bindings  atomic.Int64 // that have come
	mostBinds atomic.Int64 // that pass; the others wait
	cut       chan struct{}
}

func (c *candidate) before(r *http.Request) {
	waits := strings.HasSuffix(r.URL.Path, "/binding") && c.bindings.Add(1) > c.mostBinds.Load()
	select {
	case <-c.cut:
		waits = true
	default:
	}
	if waits {
		<-r.Context().Done()
	}
}

// leadingPair are two Berths and a Service in front of that which leads: it comes first.
func leadingPair(t *testing.T, plane *harness.Plane) (leader, other *candidate, service *harness.Proxy) {
	t.Helper()
	plane.GrantBerth()
	var pair []*candidate
	var berths []*harness.Berth
	for _, name := range []string{"berth-a", "berth-b"} {
		c := &candidate{cut: make(chan struct{})}
		c.mostBinds.Store(1 << 30)
		kubeconfig := plane.BerthKubeconfig(plane.InFrontOfAPIServer(c.before), plane.Token())
		c.Berth = plane.NewBerth(name, kubeconfig, electLeader+"  leaseSeconds: 5\n")
		c.Start()
		pair, berths = append(pair, c), append(berths, c.Berth)
	}
	first := ready(t, berths)
	return pair[first], pair[1-first], harness.NewProxy(t, berths[first].Listen)
}

// Some pods of a gang are bound when the leader loses its lease: the next one finishes what has begun.
func wantWholeAcrossAHandOver(t *testing.T, fault func(leader *candidate)) {
	needBerth(t)
	const size, before = 12, 4
	plane := harness.NewPlane(t)
	plane.CreateNodes(size + 2)
	leader, other, service := leadingPair(t, plane)
	plane.StartScheduler(harness.ShippedExtenders(t, "http://"+service.Address())...)
	watched := plane.WatchGangs(map[string]int{"train": size}, 0)
	leader.mostBinds.Store(before)
	plane.CreatePods(aGang("train", size, 8, inBerthsWords)...)
	harness.Eventually(t, "some of the Bindings", 30*time.Second, func() error {
		if came := leader.bindings.Load(); came <= before || watched.Bound("train") < before {
			return fmt.Errorf("%d came, %d are there", came, watched.Bound("train"))
		}
		return nil
	})

	start := time.Now()
	fault(leader)
	harness.Eventually(t, "the other Berth to lead", time.Minute, other.Ready)
	service.Target(other.Listen)
	took := time.Since(start)
	if bound := watched.Bound("train"); bound != before {
		t.Errorf("want %d pods bound when another one leads, got %d", before, bound)
	}
	watched.WaitWhole(1, time.Minute)
	slowest, _ := watched.SlowestStart()
	t.Logf("another one leads after %s; from the first bound pod to the last: %s", took, slowest)
	if slowest > 20*time.Second {
		t.Errorf("want at most 20 s across a hand-over, got %s", slowest)
	}
	plane.CheckGrants()
	wantNonePartial(t, other.Berth)
}

func TestALeaderKilledWhileAGangCommits(t *testing.T) {
	wantWholeAcrossAHandOver(t, func(leader *candidate) { leader.Kill() })
}

func TestALeaderCutOffWhileAGangCommits(t *testing.T) {
	wantWholeAcrossAHandOver(t, func(leader *candidate) { close(leader.cut) })
}
