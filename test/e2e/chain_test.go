// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	configv1 "k8s.io/kube-scheduler/config/v1"

	"berth.dev/e2e/extender"
	"berth.dev/e2e/harness"
)

// link starts an extender that accepts these machines and prefers one of them, 10 to 1, inner times.
func link(t *testing.T, plane *harness.Plane, preferred string, inner int64, accepted ...string) string {
	e := &extender.Extender{
		Accept: func(node string) bool { return slices.Contains(accepted, node) },
		Score: func(node string) int64 {
			if node == preferred {
				return 10 * inner
			}
			return inner
		},
		Client: plane.Client,
	}
	server := httptest.NewServer(e)
	t.Cleanup(server.Close)
	return server.URL
}

const barResource = v1.ResourceName("foo.com/bar")

// The chain of upstream's test/integration/scheduler/extender: whole nodes and names in one chain, a resource that no
// node has, and the Binding posted by the second.
func upstreamChain(t *testing.T, plane *harness.Plane) []configv1.Extender {
	return []configv1.Extender{
		{URLPrefix: link(t, plane, "machine2", 1, "machine1", "machine2", "machine3"),
			FilterVerb: "filter", PrioritizeVerb: "prioritize", Weight: 3},
		{URLPrefix: link(t, plane, "machine3", 1, "machine2", "machine3", "machine5"),
			FilterVerb: "filter", PrioritizeVerb: "prioritize", BindVerb: "bind", Weight: 4,
			ManagedResources: []configv1.ExtenderManagedResource{{Name: string(barResource), IgnoredByScheduler: true}}},
		{URLPrefix: link(t, plane, "machine2", 5, "machine1", "machine2", "machine3"),
			FilterVerb: "filter", PrioritizeVerb: "prioritize", Weight: 10, NodeCacheCapable: true},
	}
}

func fiveMachines(plane *harness.Plane) {
	for _, name := range []string{"machine1", "machine2", "machine3", "machine4", "machine5"} {
		plane.AddNodes(harness.Node(name, "", 0))
	}
}

func wantOnMachine2(t *testing.T, plane *harness.Plane, ask harness.Ask) {
	t.Helper()
	plane.CreatePods(harness.Pod("extender-test-pod", ask))
	plane.WaitBound(30 * time.Second)
	if node := plane.Pod("extender-test-pod").Spec.NodeName; node != "machine2" {
		t.Errorf("want machine2, got %s", node)
	}
}

func TestUpstreamsThreeExtendersAgreeOnMachine2(t *testing.T) {
	plane := harness.NewPlane(t)
	fiveMachines(plane)
	plane.StartScheduler(upstreamChain(t, plane)...)
	wantOnMachine2(t, plane, harness.Ask{barResource: "1"})
}
