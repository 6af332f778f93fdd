// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"

	"berth.dev/e2e/harness"
)

// startNodeWithNri is a machine with 2 GPUs whose containerd gives containers the devices that the annotations name.
func startNodeWithNri(t *testing.T) (cluster, *harness.Machine, *harness.Inside) {
	t.Helper()
	return startNodeWithPlugin(t, "cdi", "label", "node", "t4", nriLabel+"="+harness.CdiVendor)
}

// startNodeWithPlugin is the same for an NRI plugin, and for how kubectl has the node say that the plugin is there.
func startNodeWithPlugin(t *testing.T, name string, says ...string) (cluster, *harness.Machine, *harness.Inside) {
	t.Helper()
	needBerth(t)
	needNodes(t)
	c := cluster{Plane: harness.NewPlane(t)}
	machine := c.StartNode(harness.MachineOptions{Name: "t4", GPUs: "2"})
	machine.WriteCdi()
	plugin := machine.StartNri(name)
	c.Kubectl(says...)
	c.berth = c.StartBerth("")
	c.scheduler = c.StartScheduler(harness.ShippedExtenders(t, c.berth.URL)...)
	return c, machine, plugin
}

// wantSeen waits until a container has written which GPU it has; "" is none.
func wantSeen(t *testing.T, machine *harness.Machine, pod, container, want string) {
	t.Helper()
	harness.Eventually(t, fmt.Sprintf("%s/%s to have GPU %q", pod, container, want), 30*time.Second, func() error {
		log, err := machine.Log(pod, container)
		if err == nil && (log == "" || strings.TrimSpace(log) != want) {
			err = fmt.Errorf("it wrote %q", log)
		}
		return err
	})
}

// The GPU that Berth chose for a share is in its container without a variable, a runtime class or a device plugin, and
// in no container beside it.
func TestNodeGivesAContainerTheGpuOfItsShare(t *testing.T) {
	c, machine, _ := startNodeWithNri(t)
	for name, milli := range map[string]string{"small": "300", "large": "800"} {
		pod := harness.Work(name, harness.Ask{harness.MilliResource: milli})
		pod.Spec.Containers = append(pod.Spec.Containers, harness.WorkContainer("beside", nil))
		c.CreatePods(pod)
	}
	c.WaitRunning(time.Minute)
	seen := map[string]bool{}
	for _, name := range []string{"small", "large"} {
		devices, err := harness.DevicesOf(c.Pod(name))
		if err != nil {
			t.Fatal(err)
		}
		id := machine.GPUID(devices.Containers["main"].GPUs[0].Index)
		seen[id] = true
		wantSeen(t, machine, name, "main", id)
		wantSeen(t, machine, name, "beside", "")
	}
	if len(seen) != 2 {
		t.Errorf("300 and 800 thousandths are on one GPU: %v", seen)
	}
}

// A container that the runtime creates while the plugin is away has no GPU. One that cannot work so and ends has it when
// the kubelet creates it anew.
func TestNodeGivesAContainerItsGpuWhenTheNriPluginIsBack(t *testing.T) {
	c, machine, plugin := startNodeWithNri(t)
	plugin.Kill()
	pod := harness.Work("early", harness.Ask{harness.MilliResource: "300"}, "1", "1")
	pod.Spec.RestartPolicy = v1.RestartPolicyAlways
	c.CreatePods(pod)
	c.WaitBound(30 * time.Second)
	wantSeen(t, machine, "early", "main", "")
	machine.StartNri("cdi")
	wantSeen(t, machine, "early", "main", machine.GPUID(0))
}

// Where the label names another vendor than the CDI specification, the container does not start, and the pod says why.
func TestNodeNamesTheCdiDeviceThatItDoesNotHave(t *testing.T) {
	c, _, _ := startNodeWithNri(t)
	c.Kubectl("label", "--overwrite", "node", "t4", nriLabel+"=nvidia.com")
	harness.Eventually(t, "Berth to name devices of that vendor", 30*time.Second, func() error {
		c.CreatePods(harness.Work("wrong", harness.Ask{harness.MilliResource: "300"}))
		c.WaitBound(30 * time.Second)
		written := c.Pod("wrong").Annotations[nriOfMain]
		if strings.HasPrefix(written, "nvidia.com/gpu=") {
			return nil
		}
		c.Kubectl("delete", "pod", "wrong", "--force")
		return fmt.Errorf("it wrote %q", written)
	})
	harness.Eventually(t, "the pod to say what is wrong", 30*time.Second, func() error {
		events := c.Kubectl("get", "events", "--field-selector=involvedObject.name=wrong", "-o", "jsonpath={.items[*].message}")
		return contains(events, "unresolvable CDI devices nvidia.com/gpu=GPU-t4-0")
	})
}

// Shares whose memory NVIDIA's driver limits: containers of one compute mode come onto one GPU, those of another onto
// another, and each has the GPU that Berth chose, also when its container is created anew.
func TestNodeGivesFractionsTheGpuThatBerthNames(t *testing.T) {
	c, machine, plugin := startNodeWithPlugin(t, "fractions", "patch", "node", "t4", "--subresource=status", "--type=strategic", "-p",
		`{"status":{"conditions":[{"type":"gpu-fractioning.nvidia.com/Ready","status":"True"}]}}`)
	share := func(name, request, mode string, args ...string) *v1.Pod {
		pod := harness.Work(name, harness.Ask{"berth.dev/gpu-memory-mib": "0"}, args...)
		pod.Annotations[fractionOfMain] = request
		pod.Annotations["nvidia.com/container.main.gpu-compute.mode"] = mode
		pod.Spec.Containers = append(pod.Spec.Containers, harness.WorkContainer("beside", nil))
		return pod
	}
	of := map[string]string{}
	gpuOf := func(name string) string {
		c.WaitRunning(time.Minute)
		devices, err := harness.DevicesOf(c.Pod(name))
		if err != nil {
			t.Fatal(err)
		}
		of[name] = machine.GPUID(devices.Containers["main"].GPUs[0].Index)
		wantSeen(t, machine, name, "main", of[name])
		wantSeen(t, machine, name, "beside", "")
		return of[name]
	}
	for _, pod := range []*v1.Pod{share("one", "30Gi", "time-slicing"), share("two", "30Gi", "time-slicing"), share("other", "10Gi", "sm-sharing")} {
		c.CreatePods(pod)
		gpuOf(pod.Name)
	}
	if of["one"] != of["two"] || of["one"] == of["other"] {
		t.Errorf("want one and two on one GPU, and other, which shares in another way, on the other: %v", of)
	}
	// A GPU with 60 of 80 GiB taken, and one of the other mode.
	full := share("full", "30Gi", "time-slicing")
	c.CreatePods(full)
	harness.Eventually(t, "the pod for which no GPU has room to be refused", 30*time.Second, func() error {
		return contains(c.Kubectl("describe", "pod", "full"), "FailedScheduling")
	})
	c.Kubectl("delete", "pod", "full", "two", "--force")
	// Without the plugin a container sees no GPU; made anew beside it, it has its own.
	plugin.Kill()
	again := share("again", "30Gi", "time-slicing", "1", "1")
	again.Spec.RestartPolicy = v1.RestartPolicyAlways
	c.CreatePods(again)
	c.WaitBound(30 * time.Second)
	wantSeen(t, machine, "again", "main", "")
	machine.StartNri("fractions")
	wantSeen(t, machine, "again", "main", of["one"])
}
