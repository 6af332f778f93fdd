// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	configv1 "k8s.io/kube-scheduler/config/v1"

	"berth.dev/e2e/harness"
)

const (
	mig1g, mig3g, mig4g = "nvidia.com/mig-1g.5gb", "nvidia.com/mig-3g.20gb", "nvidia.com/mig-4g.20gb"

	migStateLabel = "nvidia.com/mig.config.state"
	// Two GPUs, each cut into a half and quarters of the other one.
	halfAndFour = `{"gpus": [
		{"index": 0, "instances": [{"profile": "3g.20gb", "start": 4}, {"profile": "1g.5gb", "count": 4}]},
		{"index": 1, "instances": [{"profile": "3g.20gb", "start": 4}, {"profile": "1g.5gb", "count": 4}]}]}`
)

// migNode is a node with two A100-40GB that have been cut, as mig-manager, GPU Feature Discovery and the device plugin
// (strategy mixed) show it.
func migNode(name, annotation string, devices harness.Ask) *v1.Node {
	node := harness.Node(name, "NVIDIA-A100-SXM4-40GB", 0)
	for key, value := range map[string]string{harness.ProductLabel: "NVIDIA-A100-SXM4-40GB", "nvidia.com/gpu.count": "2",
		"nvidia.com/gpu.replicas": "0", "nvidia.com/mig.strategy": "mixed", migStateLabel: "success"} {
		node.Labels[key] = value
	}
	node.Annotations = map[string]string{"berth.dev/mig": annotation}
	for name, count := range devices {
		node.Labels[string(name)+".count"] = count
		node.Status.Capacity[name] = resource.MustParse(count)
	}
	node.Status.Allocatable = node.Status.Capacity.DeepCopy()
	return node
}

// bindingMIG are the shipped stanzas, with these profiles added to what Berth binds.
func bindingMIG(t *testing.T, berth *harness.Berth, onlyBerthCounts bool, profiles ...string) []configv1.Extender {
	t.Helper()
	extenders := harness.ShippedExtenders(t, berth.URL)
	for i := range extenders {
		for _, name := range profiles {
			if extenders[i].BindVerb != "" {
				extenders[i].ManagedResources = append(extenders[i].ManagedResources,
					configv1.ExtenderManagedResource{Name: name, IgnoredByScheduler: onlyBerthCounts})
			}
		}
	}
	return extenders
}

// migOf are the MIG devices of a bound pod: "1g.5gb", or "3g.20gb at 4 of GPU 0" where Berth picked the device.
func migOf(t *testing.T, pod *v1.Pod) []string {
	t.Helper()
	devices, err := harness.DevicesOf(pod)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, device := range devices.Containers["main"].MIG {
		text := device.Profile
		if device.GPU != nil && device.Start != nil {
			text = fmt.Sprintf("%s at %d of GPU %d", device.Profile, *device.Start, *device.GPU)
		}
		all = append(all, text)
	}
	return all
}

func TestPodsGetMIGDevicesOfTheDevicePlugin(t *testing.T) {
	needBerth(t)
	plane := harness.NewPlane(t)
	cut := harness.Ask{mig1g: "8", mig3g: "2"}
	changing := migNode("changing", halfAndFour, cut)
	changing.Labels[migStateLabel] = "pending"
	plane.AddNodes(migNode("n0", halfAndFour, cut), migNode("n1", halfAndFour, cut), changing)
	berth := plane.StartBerth("")
	plane.StartScheduler(bindingMIG(t, berth, false, mig1g, mig3g)...)

	small := harness.Pods("small", 8, harness.Ask{mig1g: "1"})
	plane.CreatePods(small[0]) // alone: kube-scheduler asks for the next pod before it has the first one bound
	plane.WaitBound(30 * time.Second)
	plane.CreatePods(small[1:]...)
	plane.WaitBound(30 * time.Second)
	node := plane.Pod("small-0000").Spec.NodeName
	for _, pod := range small {
		bound := plane.Pod(pod.Name)
		if got := migOf(t, bound); !slices.Equal(got, []string{"1g.5gb"}) { // which one is for the kubelet to say
			t.Errorf("pod %s: want a 1g.5gb, got %v", pod.Name, got)
		}
		if bound.Spec.NodeName != node {
			t.Errorf("want one node filled, so that the other can be cut anew: %s is on %s, the first on %s", pod.Name,
				bound.Spec.NodeName, node)
		}
	}

	big := harness.Pods("big", 4, harness.Ask{mig3g: "1"})
	plane.CreatePods(append(big, harness.Pod("both", harness.Ask{mig1g: "4"}))...)
	plane.WaitBound(30 * time.Second)
	if got := migOf(t, plane.Pod("both")); !slices.Equal(got, []string{"1g.5gb", "1g.5gb", "1g.5gb", "1g.5gb"}) {
		t.Errorf("want four 1g.5gb, got %v", got)
	}
	for _, pod := range big {
		if got := migOf(t, plane.Pod(pod.Name)); !slices.Equal(got, []string{"3g.20gb"}) {
			t.Errorf("pod %s: want a 3g.20gb, got %v", pod.Name, got)
		}
	}
	for _, want := range []string{`{product="A100-40GB",profile="1g.5gb",state="taken"} 12`,
		`{product="A100-40GB",profile="3g.20gb",state="taken"} 4`} {
		if err := contains(berth.Metrics(), "berth_mig_devices"+want); err != nil {
			t.Error(err)
		}
	}

	// What is left is on the node that is being changed.
	plane.CreatePods(harness.Pod("waits", harness.Ask{mig3g: "1"}))
	why := plane.WaitPending("waits", 30*time.Second)
	if err := contains(why, "1 node(s) had a MIG configuration change in progress"); err != nil {
		t.Error(err)
	}
	harness.Eventually(t, "the reason to be in the pod's event", 10*time.Second, func() error {
		return contains(plane.Kubectl("get", "events", "--field-selector=involvedObject.name=waits"), why)
	})
	plane.Kubectl("label", "node", "changing", migStateLabel+"=success", "--overwrite")
	harness.Eventually(t, "Berth to hear of it", 10*time.Second, func() error {
		if troubled := berth.Metric("berth_mig_troubled_nodes"); troubled != 0 {
			return fmt.Errorf("%g nodes are in trouble", troubled)
		}
		return nil
	})
	// kube-scheduler may have tried the pod again before Berth did: any event makes it try once more.
	plane.Kubectl("label", "node", "n0", "changed=true")
	plane.WaitBound(60 * time.Second)
	if got := plane.Pod("waits").Spec.NodeName; got != "changing" {
		t.Errorf("want the node that has been changed, got %s", got)
	}
}

// Where GPUs are cut when a pod comes, Berth says where, and in such an order that the large profiles still fit.
func TestGPUsAreCutWhereLargeProfilesStillFit(t *testing.T) {
	needBerth(t)
	plane := harness.NewPlane(t)
	plane.AddNodes(migNode("n0", `{"partitioning": "dynamic", "gpus": [{"index": 0}, {"index": 1}]}`, nil))
	berth := plane.StartBerth("")
	plane.StartScheduler(bindingMIG(t, berth, true, mig1g, mig3g, mig4g)...)
	var all []string
	for _, pods := range [][]*v1.Pod{harness.Pods("small", 3, harness.Ask{mig1g: "1"}), harness.Pods("four", 2, harness.Ask{mig4g: "1"}),
		harness.Pods("three", 1, harness.Ask{mig3g: "1"})} {
		plane.CreatePods(pods...)
		plane.WaitBound(30 * time.Second)
		for _, pod := range pods {
			all = append(all, migOf(t, plane.Pod(pod.Name))...)
		}
	}
	slices.Sort(all)
	// The small ones share a half in which no 4g.20gb can begin.
	want := []string{"1g.5gb at 4 of GPU 0", "1g.5gb at 5 of GPU 0", "1g.5gb at 6 of GPU 0", "3g.20gb at 4 of GPU 1",
		"4g.20gb at 0 of GPU 0", "4g.20gb at 0 of GPU 1"}
	if !slices.Equal(all, want) {
		t.Errorf("want\n%s\ngot\n%s", strings.Join(want, "\n"), strings.Join(all, "\n"))
	}
}
