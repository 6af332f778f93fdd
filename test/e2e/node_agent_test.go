// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"

	"berth.dev/e2e/harness"
)

// agentCluster is a cluster of real nodes with berth-node, before Berth and kube-scheduler.
type agentCluster struct {
	cluster
	nodes map[string]*harness.Machine
	given *harness.Given
}

// opposite has a plugin whose own choice is never that of Berth, which takes the lowest of equal GPUs.
var opposite = []string{"-prefer", "last"}

// startAgentCluster starts one with a node of 8 GPUs for each name, in two islands of four.
func startAgentCluster(t *testing.T, options harness.MachineOptions, names ...string) agentCluster {
	t.Helper()
	if options.Pretended {
		needPretendedNodes(t)
	} else {
		needNodes(t)
	}
	needBerth(t)
	if missing := harness.AgentMissing(); missing != "" {
		t.Fatal(missing)
	}
	c := agentCluster{cluster: cluster{Plane: harness.NewPlane(t)}, nodes: map[string]*harness.Machine{}}
	options.Agent = true
	if options.PluginFlags == nil {
		options.PluginFlags = opposite
	}
	for _, name := range names {
		options.Name = name
		node := c.StartNode(options)
		node.Annotate("berth.dev/topology", harness.TwoQuads.Annotation())
		node.StartAgent()
		c.nodes[name] = node
	}
	for _, node := range c.nodes {
		node.WaitGPUs()
	}
	c.given = c.RecordGiven()
	c.berth = c.StartBerth("")
	c.scheduler = c.StartScheduler(harness.ShippedExtenders(t, c.berth.URL)...)
	return c
}

// checkPlanned fails the test unless each of so many pods with GPUs ran, on the very GPUs that Berth planned.
func (c agentCluster) checkPlanned(t *testing.T, count int) {
	t.Helper()
	var errs []error
	all := slices.DeleteFunc(c.given.All(), func(seen harness.GivenPod) bool {
		_, asks := seen.Pod.Spec.Containers[0].Resources.Limits[harness.GPUResource]
		return !asks
	})
	for _, seen := range all {
		if seen.Pod.Status.Phase == v1.PodFailed {
			errs = append(errs, fmt.Errorf("%s failed: %s %s", seen.Pod.Name, seen.Pod.Status.Reason, seen.Pod.Status.Message))
		} else {
			errs = append(errs, c.nodes[seen.Pod.Spec.NodeName].AsPlanned(seen.Pod, seen.GPUs))
		}
	}
	if err := errors.Join(errs...); err != nil || len(all) != count {
		t.Errorf("want %d pods as planned, saw %d: %v", count, len(all), err)
	}
}

// gpus is what a container asks for.
func gpus(count int) harness.Ask { return harness.Ask{harness.GPUResource: strconv.Itoa(count)} }

// waitEnded waits until every pod has ended.
func (c agentCluster) waitEnded(limit time.Duration) {
	c.T.Helper()
	harness.Eventually(c.T, "every pod to end", limit, func() error {
		pods, err := c.ListPods("status.phase!=Succeeded,status.phase!=Failed")
		if err == nil && len(pods) > 0 {
			err = fmt.Errorf("%d have not; %s: %s", len(pods), pods[0].Name, harness.WhyPending(&pods[0]))
		}
		return err
	})
}

// runOne runs the pod and deletes it.
func (c agentCluster) runOne(pod *v1.Pod) {
	c.T.Helper()
	c.CreatePods(pod)
	c.WaitPhase(pod.Name, 30*time.Second, v1.PodRunning, v1.PodFailed)
	c.DeletePods()
}

func TestNodeAgentGivesPodsOfEverySizeThePlannedGPUs(t *testing.T) {
	c := startAgentCluster(t, harness.MachineOptions{}, "a")
	for size := range 8 {
		c.runOne(harness.Work(fmt.Sprintf("size-%d", size+1), gpus(size+1)))
	}
	c.checkPlanned(t, 8)
}

func TestNodeAgentGivesEveryContainerThePlannedGPUs(t *testing.T) {
	c := startAgentCluster(t, harness.MachineOptions{}, "a")
	two := harness.Work("two-containers", gpus(2))
	two.Spec.Containers = append(two.Spec.Containers, harness.WorkContainer("second", gpus(3)))
	c.runOne(two)

	before := harness.Work("init-of-two", gpus(1))
	before.Spec.InitContainers = []v1.Container{harness.WorkContainer("first", gpus(2), "0.1")}
	before.Spec.Containers = append(before.Spec.Containers, harness.WorkContainer("second", gpus(1)))
	c.runOne(before)

	smaller := harness.Work("init-of-one", gpus(3))
	smaller.Spec.InitContainers = []v1.Container{harness.WorkContainer("first", gpus(1), "0.1")}
	c.runOne(smaller)

	always := v1.ContainerRestartPolicyAlways
	sidecar := harness.Work("sidecar", gpus(2))
	beside := harness.WorkContainer("beside", gpus(1))
	beside.RestartPolicy = &always
	sidecar.Spec.InitContainers = []v1.Container{beside}
	c.runOne(sidecar)
	c.checkPlanned(t, 4)
}

// They ask for 26 of 32 GPUs: in whatever order they come, some node has room for the last one. (A pod of 3 fits nowhere
// only where every node has at most 2 idle, hence 24 taken.)
func TestNodeAgentKeepsTwentyPodsAtOnceApart(t *testing.T) {
	c := startAgentCluster(t, harness.MachineOptions{}, "a", "b", "c", "d")
	var pods []*v1.Pod
	for i, size := range []int{3, 3, 2, 2, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1} {
		pods = append(pods, harness.Work(fmt.Sprintf("p-%02d", i), gpus(size)))
	}
	rand.Shuffle(len(pods), func(i, j int) { pods[i], pods[j] = pods[j], pods[i] })
	c.CreatePods(pods...)
	c.WaitRunning(time.Minute)
	c.checkPlanned(t, len(pods))
}

// A stream of pods of all sizes through nodes whose runtime is pretended.
func TestNodeAgentGivesAStreamOfPodsThePlannedGPUs(t *testing.T) {
	c := startAgentCluster(t, harness.MachineOptions{Pretended: true}, "a", "b")
	const count = 60
	for i := range count {
		c.CreatePods(harness.Work(fmt.Sprintf("p-%02d", i), gpus(1+i*5%8), "0.1"))
	}
	c.waitEnded(2 * time.Minute)
	c.checkPlanned(t, count)
}

// Each pod needs what the one before it has left in the same moment.
func TestNodeAgentGivesGPUsThatWereFreedJustNow(t *testing.T) {
	c := startAgentCluster(t, harness.MachineOptions{}, "a")
	for i := range 16 {
		c.CreatePodsInOrder(harness.Work(fmt.Sprintf("p-%02d", i), gpus(1+i*5%8), "0.2"))
	}
	c.waitEnded(time.Minute)
	c.checkPlanned(t, 16)
}

// Four GPUs, each of them three times, by a plugin that gives the last ones first: pods get replicas of the GPUs with the
// fewest users, and the books say which.
func TestNodeAgentGivesReplicasOfThePlannedGPUs(t *testing.T) {
	c := startAgentCluster(t, harness.MachineOptions{GPUs: harness.GPUResource + "=4", Replicas: 3,
		Labels: "nvidia.com/gpu.replicas=3,nvidia.com/gpu.sharing-strategy=time-slicing,nvidia.com/gpu.count=4"}, "a")
	harness.Eventually(t, "the agent to be seen", 20*time.Second, func() error {
		return c.says("an agent gives containers the GPUs that Berth chooses", "explain", "node", "a")
	})
	var pods []*v1.Pod
	for i := range 9 {
		pods = append(pods, harness.Work(fmt.Sprintf("p-%d", i), gpus(1)))
	}
	two := harness.Work("two", gpus(1))
	two.Spec.Containers = append(two.Spec.Containers, harness.WorkContainer("second", gpus(1)))
	c.CreatePodsInOrder(append(pods, two)...)
	c.WaitRunning(time.Minute)
	c.checkPlanned(t, 10)
	users := map[string]int{}
	for _, seen := range c.given.All() {
		for _, ids := range seen.GPUs {
			for _, id := range ids {
				gpu, _, _ := strings.Cut(id, "::")
				users[gpu]++
			}
		}
	}
	if fmt.Sprint(users) != "map[GPU-a-0:3 GPU-a-1:3 GPU-a-2:3 GPU-a-3:2]" {
		t.Errorf("want 11 users spread over four GPUs, got %v", users)
	}
	wantMetric(t, c.cluster, "berth_pods_on_other_gpus", 0)
	wantParts(t, c.ask("explain", "pod", harness.Namespace+"/two"), "with 2 GPU replicas on GPU 1, GPU 2")
}

// MIG devices: Berth reads in the pod which one the kubelet picked, by the names that the node has for them.
func TestBooksHaveTheMIGDevicesThatTheKubeletGave(t *testing.T) {
	const small = "nvidia.com/mig-1g.5gb"
	c := startAgentCluster(t, harness.MachineOptions{GPUs: harness.GPUResource + "=1," + small + "=3"}, "a")
	node := c.nodes["a"]
	node.Annotate("berth.dev/mig", `{"product":"A100-40GB","gpus":[{"index":1,"instances":[`+
		`{"profile":"1g.5gb","start":0,"uuid":"MIG-a-1g.5gb-0"},{"profile":"1g.5gb","start":2,"uuid":"MIG-a-1g.5gb-1"},`+
		`{"profile":"1g.5gb","start":4,"uuid":"MIG-a-1g.5gb-2"}]}]}`)
	c.CreatePods(harness.Work("one", harness.Ask{small: "1"}))
	c.WaitRunning(30 * time.Second)
	harness.Eventually(t, "the device to be known", 20*time.Second, func() error {
		return c.says("with 1g.5gb at 4 of GPU 1", "explain", "pod", harness.Namespace+"/one")
	})
}
