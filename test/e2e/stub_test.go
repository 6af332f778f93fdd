// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"testing"
	"time"

	"berth.dev/e2e/harness"
)

func TestPodsArePlacedThroughTheStub(t *testing.T) {
	plane := harness.NewPlane(t)
	plane.CreateNodes(10)
	stub := plane.StartStub()
	plane.StartScheduler(stub.Extenders()...)
	plane.CreatePods(harness.Pods("pod", 50, harness.Ask{harness.GPUResource: "1"})...)
	plane.WaitBound(30 * time.Second)
	if stub.CPU() == 0 {
		t.Error("the stub has done nothing")
	}
}
