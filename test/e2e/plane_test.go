// SPDX-License-Identifier: Apache-2.0

// Package e2e tests Berth against the control plane of Kubernetes: etcd, kube-apiserver, kube-scheduler. Each test has
// its own.
package e2e

import (
	"testing"
	"time"

	"berth.dev/e2e/harness"
)

func TestSchedulerAlonePlacesAPod(t *testing.T) {
	plane := harness.NewPlane(t)
	plane.CreateNodes(3)
	plane.StartScheduler()
	plane.CreatePods(harness.Pod("a", harness.Ask{harness.GPUResource: "1"}))
	plane.WaitBound(20 * time.Second)
}

func TestSchedulerSaysWhyAPodDoesNotFit(t *testing.T) {
	plane := harness.NewPlane(t)
	plane.CreateNodes(3)
	plane.StartScheduler()
	plane.CreatePods(harness.Pod("too-big", harness.Ask{harness.GPUResource: "9"}))
	want := "0/3 nodes are available: 3 Insufficient nvidia.com/gpu."
	if why := plane.WaitPending("too-big", 20*time.Second); len(why) < len(want) || why[:len(want)] != want {
		t.Errorf("got %q, want it to begin with %q", why, want)
	}
}

func TestPlaneKeepsItsPodsWhenTheAPIServerRestarts(t *testing.T) {
	plane := harness.NewPlane(t)
	plane.CreateNodes(1)
	plane.StartScheduler()
	plane.CreatePods(harness.Pods("before", 3, harness.Ask{harness.GPUResource: "1"})...)
	plane.WaitBound(20 * time.Second)
	plane.StopAPIServer()
	plane.StartAPIServer()
	plane.CreatePods(harness.Pods("after", 3, harness.Ask{harness.GPUResource: "1"})...)
	plane.WaitBound(60 * time.Second)
	if pods, err := plane.ListPods(""); err != nil || len(pods) != 6 {
		t.Errorf("want 6 pods, got %d (%v)", len(pods), err)
	}
}
