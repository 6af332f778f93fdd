// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"

	"berth.dev/e2e/harness"
)

// A convention by which pods name their gang.
type convention struct {
	name string
	join func(pod *v1.Pod, gang string, size int)
}

func annotate(pod *v1.Pod, key, value string) { pod.Annotations[key] = value }

var inBerthsWords = convention{"berth", func(pod *v1.Pod, gang string, size int) {
	annotate(pod, "berth.dev/gang", gang)
	annotate(pod, "berth.dev/gang-size", strconv.Itoa(size))
}}

var conventions = []convention{
	inBerthsWords,
	{"coscheduling", func(pod *v1.Pod, gang string, _ int) { pod.Labels["scheduling.x-k8s.io/pod-group"] = gang }},
	{"koordinator", func(pod *v1.Pod, gang string, size int) {
		annotate(pod, "gang.scheduling.koordinator.sh/name", gang)
		annotate(pod, "gang.scheduling.koordinator.sh/min-available", strconv.Itoa(size))
	}},
	{"labels", func(pod *v1.Pod, gang string, size int) {
		pod.Labels["pod-group.scheduling.sigs.k8s.io/name"] = gang
		pod.Labels["pod-group.scheduling.sigs.k8s.io/min-available"] = strconv.Itoa(size)
	}},
}

// aGang is its pods, each with so many GPUs.
func aGang(name string, size, gpus int, in convention) []*v1.Pod {
	pods := harness.Pods(name, size, harness.Ask{harness.GPUResource: strconv.Itoa(gpus)})
	for _, pod := range pods {
		pod.Labels = map[string]string{harness.GangLabel: name}
		in.join(pod, name, size)
	}
	return pods
}

// Gangs of four conventions contend for a cluster that holds some of them at a time, half of them created pod by pod in
// turns, with single pods beside them; kube-scheduler and Berth are killed on the way.
func TestGangsStartWholeThroughKills(t *testing.T) {
	const nodes, gangs, singles = 100, 50, 40
	plane := startCluster(t, nodes, podGroupDefinition)

	minimum := map[string]int{}
	var inTurns [][]*v1.Pod
	var atOnce []*v1.Pod
	for i := range gangs {
		name, size := fmt.Sprintf("gang%02d", i), 2+(i*i*7)%63
		in := conventions[i%len(conventions)]
		if in.name == "coscheduling" {
			apply(t, plane.Plane, fmt.Sprintf(podGroup, name, size))
		}
		minimum[name] = size
		if pods := aGang(name, size, 1+i%2, in); i%4 < 2 {
			inTurns = append(inTurns, pods)
		} else {
			atOnce = append(atOnce, pods...)
		}
	}
	never := aGang("never", nodes+1, 8, inBerthsWords)
	watched := plane.WatchGangs(minimum, time.Second)

	plane.CreatePods(never...)
	plane.CreatePods(atOnce...)
	plane.CreatePods(oneGPUEach("single", singles)...)
	for n := 0; len(inTurns) > 0; n++ {
		left := inTurns[:0]
		var next []*v1.Pod
		for _, pods := range inTurns {
			if next = append(next, pods[n]); len(pods) > n+1 {
				left = append(left, pods)
			}
		}
		plane.CreatePods(next...)
		inTurns = left
	}
	watched.WaitWhole(gangs/5, time.Minute)
	plane.berth.Kill()
	plane.berth.Start()
	watched.WaitWhole(2*gangs/5, time.Minute)
	plane.scheduler.Restart()
	plane.CheckGrants()
	watched.WaitWhole(gangs, 2*time.Minute)
	plane.CheckGrants()
	if bound := watched.Bound("never"); bound > 0 {
		t.Errorf("%d pods of a gang that cannot fit were bound", bound)
	}
	slowest, which := watched.SlowestStart()
	t.Logf("slowest from the first bound pod to the minimum: %s (%s, %d pods)", slowest, which, minimum[which])
	if slowest > 20*time.Second {
		t.Errorf("want at most 20 s across a kill, got %s", slowest)
	}
	wantNonePartial(t, plane.berth)
}

func wantNonePartial(t *testing.T, berth *harness.Berth) {
	t.Helper()
	harness.Eventually(t, "no gang to be partial", 30*time.Second, func() error {
		if partial := berth.Metric("berth_gangs_partial"); partial != 0 {
			return fmt.Errorf("%v are", partial)
		}
		return nil
	})
}

// Members that were refused before the last one came sleep, and nothing else happens in the cluster that would wake them.
func TestAGangInAnIdleClusterStartsWhenItsLastMemberComes(t *testing.T) {
	wantWholeWithItsLastMember(t, startCluster(t, 4), 10*time.Second)
}

// wantWholeWithItsLastMember creates the four members of a gang one after the other.
func wantWholeWithItsLastMember(t *testing.T, plane cluster, limit time.Duration) {
	t.Helper()
	pods := aGang("train", 4, 8, inBerthsWords)
	watched := plane.WatchGangs(map[string]int{"train": 4}, 0)
	for i, pod := range pods {
		if i > 0 {
			time.Sleep(time.Second)
		}
		plane.CreatePods(pod)
	}
	last := time.Now()
	watched.WaitWhole(1, limit)
	t.Logf("whole %s after its last member came", time.Since(last))
	plane.CheckGrants()
}

func TestAGangThatDoesNotFitHoldsNothingAndStartsWhenItDoes(t *testing.T) {
	plane := startCluster(t, 2)
	first := harness.Pod("first", harness.Ask{harness.GPUResource: "8"})
	plane.CreatePods(first)
	plane.WaitBound(30 * time.Second)
	watched := plane.WatchGangs(map[string]int{"pair": 2}, 0)
	plane.CreatePods(aGang("pair", 2, 8, inBerthsWords)...)
	harness.Eventually(t, "the reason", 30*time.Second, func() error {
		return contains(harness.WhyPending(plane.Pod("pair-0000")), "no room for all pods of the gang")
	})
	single := harness.Pod("single", harness.Ask{harness.GPUResource: "8"})
	plane.CreatePods(single)
	harness.Eventually(t, "a pod of no gang to get the room", 30*time.Second, func() error {
		if plane.Pod("single").Spec.NodeName == "" {
			return fmt.Errorf("it waits")
		}
		return nil
	})
	plane.Kubectl("delete", "pod", "first", "single", "--wait=false")
	watched.WaitWhole(1, 30*time.Second)
	plane.CheckGrants()
}

// What holds no GPU waits with the others, and starts with them.
func TestAMemberWithoutGPUsStartsWithTheOthers(t *testing.T) {
	plane := startCluster(t, 2)
	launcher := harness.Pod("launcher", nil)
	launcher.Labels = map[string]string{harness.GangLabel: "mpi"}
	inBerthsWords.join(launcher, "mpi", 3)
	workers := aGang("worker", 2, 8, inBerthsWords)
	for _, pod := range workers {
		pod.Labels[harness.GangLabel] = "mpi"
		inBerthsWords.join(pod, "mpi", 3)
	}
	watched := plane.WatchGangs(map[string]int{"mpi": 3}, 0)
	// The launcher comes second: a pod without GPUs waits only for members with GPUs that are there.
	for _, pod := range []*v1.Pod{workers[0], launcher} {
		plane.CreatePods(pod)
		harness.Eventually(t, "the reason", 30*time.Second, func() error {
			return contains(harness.WhyPending(plane.Pod(pod.Name)), "the pod's gang")
		})
	}
	if bound := watched.Bound("mpi"); bound > 0 {
		t.Errorf("%d pods of three were bound before the others came", bound)
	}
	plane.CreatePods(workers[1])
	watched.WaitWhole(1, 30*time.Second)
	plane.CheckGrants()
}

// A gang of a thousand pods comes together though kube-scheduler brings its pods one by one for seconds.
func TestAGangOfAThousandIsWhole(t *testing.T) {
	const nodes, members = 130, 1000
	plane := startCluster(t, nodes)
	watched := plane.WatchGangs(map[string]int{"large": members}, 0)
	plane.CreatePods(aGang("large", members, 1, inBerthsWords)...)
	last := time.Now()
	watched.WaitWhole(1, 2*time.Minute)
	t.Logf("whole %s after its last pod was created", time.Since(last))
	plane.CheckGrants()
}
