// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"

	"berth.dev/e2e/harness"
)

// runMore runs three pods, one after the other.
func (c agentCluster) runMore(prefix string) {
	c.T.Helper()
	for i := range 3 {
		pod := harness.Work(fmt.Sprintf("%s-%d", prefix, i), gpus(2+i))
		c.CreatePods(pod)
		c.WaitPhase(pod.Name, 30*time.Second, v1.PodRunning, v1.PodFailed)
		c.DeletePod(pod.Name)
	}
}

// waitCarries waits until the node says that the agent carries the choice out, or that it does not.
func waitCarries(t *testing.T, node *harness.Machine, want string) {
	t.Helper()
	harness.Eventually(t, fmt.Sprintf("berth.dev/carries-out of %s to be %q", node.Name, want), 30*time.Second, func() error {
		if got := node.Node().Annotations["berth.dev/carries-out"]; got != want {
			return fmt.Errorf("it is %q", got)
		}
		return nil
	})
}

func TestNodeAgentServesAgainWhenItsWorkerWasKilledOrHangs(t *testing.T) {
	c := startAgentCluster(t, harness.MachineOptions{}, "a")
	node := c.nodes["a"]
	stays := harness.Work("stays", gpus(1))
	c.CreatePods(stays)
	c.WaitPhase("stays", 30*time.Second, v1.PodRunning)
	for i, signal := range []syscall.Signal{syscall.SIGKILL, syscall.SIGSTOP} {
		for _, worker := range node.AgentProcess.Children() {
			_ = syscall.Kill(worker, signal)
		}
		time.Sleep(3 * time.Second) // a worker that hangs is found after two
		// A pod without GPUs and one with: the node admits both while nobody chooses.
		name := fmt.Sprintf("meanwhile-%d", i)
		node.WaitGPUs()
		c.CreatePods(harness.Work(name+"-plain", nil), harness.Work(name, gpus(1)))
		c.WaitPhase(name+"-plain", 30*time.Second, v1.PodRunning)
		c.WaitPhase(name, 30*time.Second, v1.PodRunning)
		c.DeletePod(name)
	}
	if pod := c.Pod("stays"); pod.Status.Phase != v1.PodRunning || pod.Status.ContainerStatuses[0].RestartCount > 0 {
		t.Errorf("the running pod was touched: %+v", pod.Status)
	}
}

// NVIDIA's plugin, and fakegpu as it does, keeps a reader for each stream that ended, which swallows a change of health; and
// it forgets at its start which GPUs were sick.
func TestNodeAgentLosesNoSickGPUWhereItIsRestarted(t *testing.T) {
	c := startAgentCluster(t, harness.MachineOptions{Pretended: true}, "a")
	node := c.nodes["a"]
	waitCarries(t, node, harness.GPUResource)
	var sick []string
	for i := range 4 {
		if i%2 == 0 {
			for _, worker := range node.AgentProcess.Children() {
				_ = syscall.Kill(worker, syscall.SIGKILL)
			}
		} else {
			node.AgentProcess.Stop()
			node.StartAgent()
		}
		time.Sleep(3 * time.Second) // until the plugin has started anew
		waitCarries(t, node, harness.GPUResource)
		sick = append(sick, node.GPUID(i))
		node.Sick(sick...)
		node.WaitGPUs(8 - len(sick))
		harness.Eventually(t, "the node to name the sick GPUs", 30*time.Second, func() error {
			if got := node.Node().Annotations["berth.dev/gpu-health"]; got != strings.Join(sick, ",") {
				return fmt.Errorf("after restart %d it names %q", i, got)
			}
			return nil
		})
	}
}

// beside is the agent's note of how the kubelet has the plugin beside it; empty where it has not.
func beside(node *harness.Machine) string {
	text, _ := os.ReadFile(node.Path("/var/lib/kubelet/device-plugins/berth/run/plugins"))
	_, note, _ := strings.Cut(string(text), " direct=")
	return note
}

// waitBeside waits until the kubelet has another plugin beside the agent than that of the note.
func waitBeside(t *testing.T, node *harness.Machine, before string) {
	t.Helper()
	harness.Eventually(t, "the kubelet to have the plugin directly too", time.Minute, func() error {
		if now := beside(node); now == "" || now == before {
			return fmt.Errorf("the note is %q", now)
		}
		return nil
	})
}

// From Kubernetes 1.37 on the kubelet has the plugin beside the agent, and goes on with it in the same moment.
func TestNodeAgentThatDiesTakesNoGPUsAway(t *testing.T) {
	c := startAgentCluster(t, harness.MachineOptions{Pretended: true}, "a")
	node := c.nodes["a"]
	var major, minor int
	version := node.Node().Status.NodeInfo.KubeletVersion
	if _, _ = fmt.Sscanf(version, "v%d.%d", &major, &minor); major == 1 && minor < 37 {
		t.Skipf("SKIPPED: kubelets keep several plugins of a resource from 1.37 on; this one is %s", version)
	}
	waitBeside(t, node, "")
	waitCarries(t, node, harness.GPUResource)
	c.runMore("before")
	for i := range 3 {
		stop, away := make(chan struct{}), make(chan time.Duration, 1)
		go func() { away <- node.WatchDevices(8, stop) }()
		for _, worker := range node.AgentProcess.Children() {
			_ = syscall.Kill(worker, syscall.SIGKILL)
		}
		c.CreatePods(harness.Work(fmt.Sprintf("meanwhile-%d", i), gpus(1), "0.1"))
		c.WaitPhase(fmt.Sprintf("meanwhile-%d", i), 30*time.Second, v1.PodSucceeded)
		time.Sleep(2 * time.Second) // until a new worker has come
		waitCarries(t, node, harness.GPUResource)
		close(stop)
		if lacked := <-away; lacked > 0 {
			t.Errorf("after kill %d the kubelet lacked GPUs for %s", i, lacked)
		}
	}
	c.runMore("after")
	for _, seen := range c.given.All() {
		if strings.HasPrefix(seen.Pod.Name, "before") || strings.HasPrefix(seen.Pod.Name, "after") {
			if err := node.AsPlanned(seen.Pod, seen.GPUs); err != nil {
				t.Error(err)
			}
		}
	}
}

func TestNodeAgentGoesOnAfterRestartsOfPluginAndKubelet(t *testing.T) {
	c := startAgentCluster(t, harness.MachineOptions{}, "a")
	node := c.nodes["a"]
	c.runMore("before")
	before := beside(node)
	node.Plugin.Kill()
	node.StartPlugin()
	node.WaitGPUs()
	if before != "" { // a kubelet of 1.37 asks the plugin itself for the moment in which it connects to it
		waitBeside(t, node, before)
	}
	c.runMore("plugin")
	node.RestartKubelet()
	node.WaitGPUs()
	// To the first pods that it sees, a new kubelet does not give what pods before it had, and may be gone.
	c.CreatePods(harness.Work("plain", nil))
	c.WaitPhase("plain", 30*time.Second, v1.PodRunning)
	c.DeletePod("plain")
	c.runMore("kubelet")
	c.checkPlanned(t, 9)
}

// An upgrade: the old agent hands the plugin back, the new one takes it again; pods that come meanwhile run.
func TestNodeAgentIsReplacedWithoutARefusal(t *testing.T) {
	c := startAgentCluster(t, harness.MachineOptions{}, "a")
	node := c.nodes["a"]
	waitCarries(t, node, harness.GPUResource)
	node.AgentProcess.Stop()
	node.WaitGPUs()
	waitCarries(t, node, "")
	c.CreatePods(harness.Work("meanwhile", gpus(1)))
	c.WaitPhase("meanwhile", 30*time.Second, v1.PodRunning)
	node.StartAgent()
	waitCarries(t, node, harness.GPUResource)
	node.WaitGPUs()
	c.CreatePods(harness.Work("after", gpus(3)))
	c.WaitPhase("after", 30*time.Second, v1.PodRunning)
	for _, seen := range c.given.All() {
		if seen.Pod.Name == "after" {
			if err := node.AsPlanned(seen.Pod, seen.GPUs); err != nil {
				t.Error(err)
			}
		}
	}
}

// Each hand-back leaves the kubelet with a plugin that it asks and whose end it notices, as the first one did.
func TestNodeAgentIsReplacedAgainAndAgain(t *testing.T) {
	c := startAgentCluster(t, harness.MachineOptions{}, "a")
	node := c.nodes["a"]
	run := func(name string) {
		t.Helper()
		c.CreatePods(harness.Work(name, gpus(2)))
		c.WaitPhase(name, 30*time.Second, v1.PodRunning)
		c.DeletePod(name)
	}
	for i := range 4 {
		waitCarries(t, node, harness.GPUResource)
		run(fmt.Sprintf("with-%d", i))
		node.AgentProcess.Stop()
		run(fmt.Sprintf("without-%d", i))
		if i == 2 {
			node.Plugin.Kill()
			node.WaitGPUs(0)
			node.StartPlugin()
			node.WaitGPUs()
			run("new-plugin")
		}
		node.StartAgent()
	}
	waitCarries(t, node, harness.GPUResource)
	node.Plugin.Kill()
	node.WaitGPUs(0)
	node.StartPlugin()
	node.WaitGPUs()
	run("last")
}

// The first of these plugins lies in its list, the others do not answer: the node runs pods without GPUs all the time.
func TestNodeAgentSurvivesPluginsThatLie(t *testing.T) {
	c := startAgentCluster(t, harness.MachineOptions{}, "a")
	node := c.nodes["a"]
	for _, lie := range []string{"duplicate", "many", "vanish", "error", "hang"} {
		node.Plugin.Kill()
		node.PluginFlags = append([]string{"-lie", lie}, opposite...)
		node.StartPlugin()
		time.Sleep(time.Second) // the kubelet refuses a pod while it closes its connection to the plugin before
		c.CreatePods(harness.Work("gpu-"+lie, gpus(1)))
		time.Sleep(time.Second)
		c.CreatePods(harness.Work("plain-"+lie, nil))
		c.WaitPhase("plain-"+lie, time.Minute, v1.PodRunning)
		if pod := c.Pod("gpu-" + lie); pod.Spec.NodeName != "" && lie != "error" && lie != "hang" {
			c.WaitPhase(pod.Name, time.Minute, v1.PodRunning)
		}
		c.DeletePod("gpu-" + lie)
	}
	node.Plugin.Kill()
	node.PluginFlags = opposite
	node.StartPlugin()
	node.WaitGPUs()
	// After two pods that were refused Berth binds none there for a while, and is right: the kubelet is asked past it.
	after := harness.Work("after", gpus(8))
	after.Spec.NodeName = "a"
	c.CreatePods(after)
	c.WaitPhase("after", time.Minute, v1.PodRunning)
}
