// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"testing"
	"time"

	"berth.dev/e2e/harness"
)

const manyPods = 500

// halfwayThroughManyPods starts Berth behind a proxy to the API server, and 500 one-GPU pods on 500 GPUs; it returns in
// the middle of their binds.
func halfwayThroughManyPods(t *testing.T) (*harness.Plane, *harness.Berth, *harness.Proxy) {
	t.Helper()
	needBerth(t)
	plane := harness.NewPlane(t)
	plane.CreateNodes(64)
	plane.GrantBerth()
	proxy := harness.NewProxy(t, plane.Address())
	berth := plane.NewBerth("berth", plane.BerthKubeconfig("https://"+proxy.Address(), plane.Token()), "")
	berth.Start()
	berth.WaitReady()
	bound := plane.WatchBound()
	// All are there when the first is placed: else they may be placed as fast as they are created.
	plane.CreatePods(oneGPUEach("pod", manyPods)...)
	plane.StartScheduler(harness.ShippedExtenders(t, berth.URL)...)
	bound.WaitFor(manyPods/4, time.Minute)
	return plane, berth, proxy
}

func wantAllPlaced(t *testing.T, plane *harness.Plane) {
	t.Helper()
	plane.WaitBound(2 * time.Minute)
	plane.CheckGrants()
	if pods, err := plane.ListPods(""); err != nil || len(pods) != manyPods {
		t.Errorf("want %d pods, got %d (%v)", manyPods, len(pods), err)
	}
}

// wantHalfway fails a test whose fault came when there was nothing left to disturb.
func wantHalfway(t *testing.T, plane *harness.Plane) {
	t.Helper()
	if waiting, err := plane.ListPods("spec.nodeName="); err != nil || len(waiting) == 0 {
		t.Errorf("every pod was bound before the fault (%v)", err)
	}
}

func TestBerthKilledInTheMiddleOfBinds(t *testing.T) {
	plane, berth, _ := halfwayThroughManyPods(t)
	berth.Kill()
	wantHalfway(t, plane)
	berth.Start()
	wantAllPlaced(t, plane)
}

func TestBerthStoppedInTheMiddleOfBinds(t *testing.T) {
	plane, berth, _ := halfwayThroughManyPods(t)
	wantHalfway(t, plane) // before: while it drains it goes on placing
	berth.Stop()
	berth.Start()
	wantAllPlaced(t, plane)
}

func TestAPIServerAwayInTheMiddleOfBinds(t *testing.T) {
	plane, berth, _ := halfwayThroughManyPods(t)
	wantHalfway(t, plane) // before: binds go on as soon as the API server is back
	plane.StopAPIServer()
	time.Sleep(3 * time.Second)
	plane.StartAPIServer()
	wantAllPlaced(t, plane)
	if !berth.Running() {
		t.Errorf("Berth ended: %s", berth.State())
	}
}

func TestWatchesCutInTheMiddleOfBinds(t *testing.T) {
	plane, _, proxy := halfwayThroughManyPods(t)
	cut := proxy.Cut()
	wantHalfway(t, plane)
	for range 4 {
		time.Sleep(200 * time.Millisecond)
		cut += proxy.Cut()
	}
	if cut == 0 {
		t.Error("Berth had no connection to the API server")
	}
	wantAllPlaced(t, plane)
}

// What happens while nobody watches is seen afterwards: GPUs of pods that went are free again.
func TestDeletionsDuringACutAreSeen(t *testing.T) {
	plane, berth, _ := halfwayThroughManyPods(t)
	wantAllPlaced(t, plane)
	berth.Kill()
	plane.DeletePods()
	berth.Start()
	berth.WaitReady()
	plane.CreatePods(oneGPUEach("again", manyPods)...)
	wantAllPlaced(t, plane)
}
