// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"slices"
	"strings"
	"testing"
	"time"

	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"berth.dev/e2e/harness"
)

const (
	mig7g   = "nvidia.com/mig-7g.40gb"
	ofMIG   = "device.driver == 'gpu.nvidia.com' && device.attributes['gpu.nvidia.com'].type == 'mig'"
	byClass = "deviceclass.resource.kubernetes.io/"
)

// addClass makes a DeviceClass that an extended resource stands for; "" for none but that of its name.
func addClass(t *testing.T, plane *harness.Plane, name, extendedResource, selector string) {
	t.Helper()
	spec := resourcev1.DeviceClassSpec{
		Selectors: []resourcev1.DeviceSelector{{CEL: &resourcev1.CELDeviceSelector{Expression: selector}}}}
	if extendedResource != "" {
		spec.ExtendedResourceName = &extendedResource
	}
	_, err := plane.Client.ResourceV1().DeviceClasses().Create(t.Context(),
		&resourcev1.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: spec}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
}

// specialDevices are the devices of the claim that kube-scheduler made for a bound pod: "n0/gpu-0-mig-1g5gb-19-6".
func specialDevices(t *testing.T, plane *harness.Plane, name string) []string {
	t.Helper()
	status := plane.Pod(name).Status.ExtendedResourceClaimStatus
	if status == nil {
		t.Fatalf("pod %s has no claim for its extended resources", name)
	}
	claim, err := plane.Client.ResourceV1().ResourceClaims(harness.Namespace).Get(t.Context(), status.ResourceClaimName, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return devicesIn(claim.Status.Allocation)
}

// A pod that asks for a MIG device as a resource gets it from DRA: Berth chooses the node by what the device that
// kube-scheduler will take there costs, and counts it by the claim.
func TestMIGResourcesThatDRAGivesOutArePlacedByWhatTheyCost(t *testing.T) {
	needBerth(t)
	plane := harness.NewPlane(t)
	publishCut(t, plane, 2, 1)
	addClass(t, plane, "small", mig1g, ofMIG+" && "+ofProfile("1g.5gb"))
	addClass(t, plane, "large", mig7g, ofMIG+" && "+ofProfile("7g.40gb"))
	const strange = "device.attributes['gpu.nvidia.com'].productName.startsWith('NVIDIA A100')"
	addClass(t, plane, "strange", "nvidia.com/mig-2g.10gb", ofMIG+" && "+ofProfile("2g.10gb")+" && "+strange)
	allocate(t, plane, "there-before", "n1", "gpu-0-mig-1g5gb-19-6")
	berth := plane.StartBerth("")
	plane.StartScheduler(bindingMIG(t, berth, false, mig1g, mig7g)...)

	// By both names of the class, one or two devices: all go where a GPU is broken into, although first fit takes the
	// lowest start there.
	plane.CreatePods(harness.Pod("one", harness.Ask{mig1g: "1"}))
	plane.WaitBound(30 * time.Second)
	plane.CreatePods(harness.Pod("two", harness.Ask{mig1g: "2"}), harness.Pod("by-class", harness.Ask{byClass + "small": "1"}))
	plane.WaitBound(30 * time.Second)
	devices := []string{"n1/gpu-0-mig-1g5gb-19-6"}
	for _, name := range []string{"one", "two", "by-class"} {
		devices = append(devices, specialDevices(t, plane, name)...)
	}
	slices.Sort(devices)
	want := []string{"n1/gpu-0-mig-1g5gb-19-0", "n1/gpu-0-mig-1g5gb-19-1", "n1/gpu-0-mig-1g5gb-19-2",
		"n1/gpu-0-mig-1g5gb-19-3", "n1/gpu-0-mig-1g5gb-19-6"}
	if !slices.Equal(devices, want) {
		t.Errorf("want %v, got %v", want, devices)
	}
	if _, said := plane.Pod("one").Annotations[harness.DevicesAnnotation]; said {
		t.Error("want no devices written by Berth: the claim says them")
	}

	// The whole GPU that is left is bound while the claim for it holds it already.
	plane.CreatePods(harness.Pod("large", harness.Ask{mig7g: "1"}))
	plane.WaitBound(30 * time.Second)
	if got := specialDevices(t, plane, "large"); !slices.Equal(got, []string{"n0/gpu-0-mig-7g40gb-0-0"}) {
		t.Errorf("want the GPU that nobody broke into, got %v", got)
	}
	if got := plane.Pod("large").Annotations["berth.dev/decision"]; got == "" {
		t.Error("want the pod bound by Berth")
	}

	// One whose class Berth cannot read goes the way of kube-scheduler.
	plane.CreatePods(harness.Pod("left", harness.Ask{"nvidia.com/mig-2g.10gb": "1"}))
	plane.WaitBound(30 * time.Second)
	if err := contains(berth.Log(), "productName.startsWith"); err != nil {
		t.Error(err)
	}
	// Counted once each, by the claims.
	harness.Eventually(t, "the claims to be counted", 10*time.Second, func() error {
		for _, count := range []string{`berth_mig_devices{product="A100-40GB",profile="1g.5gb",state="taken"} 5`,
			`berth_mig_memory_units{product="A100-40GB",state="taken"} 15`, "berth_audit_double_grants 0"} {
			if err := contains(berth.Metrics(), count); err != nil {
				return err
			}
		}
		return nil
	})
	if strings.Contains(berth.Log(), "forbidden") {
		t.Errorf("Berth lacks a right:\n%s", berth.Log())
	}
}
