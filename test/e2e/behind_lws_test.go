// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"

	"berth.dev/e2e/harness"
)

const (
	ofLWS      = "leaderworkerset.sigs.k8s.io/name"
	ofLWSGroup = "leaderworkerset.sigs.k8s.io/group-key"
)

// leaderWorkerSet has groups of a size, 8 GPUs for each pod.
func leaderWorkerSet(name, startup string, groups, size int) string {
	return fmt.Sprintf(`
apiVersion: leaderworkerset.x-k8s.io/v1
kind: LeaderWorkerSet
metadata: {name: %s, namespace: default}
spec:
  replicas: %d
  startupPolicy: %s
  leaderWorkerTemplate:
    size: %d
    workerTemplate:
      spec:
        terminationGracePeriodSeconds: 1
        containers: [{name: main, image: none, resources: {requests: {nvidia.com/gpu: 8}, limits: {nvidia.com/gpu: 8}}}]
`, name, groups, startup, size)
}

func byLWSGroup(size int) func(*v1.Pod) (string, int) { return byLabels(size, ofLWS, ofLWSGroup) }

// There is room for one group and a half: one starts, and the other holds nothing of the rest, whichever controller makes its pods
// when.
func TestBehindLWSGroupsStartWhole(t *testing.T) {
	const nodes, groups, size = 5, 2, 3
	for _, startup := range []string{"LeaderCreated", "LeaderReady"} {
		t.Run(startup, func(t *testing.T) {
			c := startBehind(t, nodes, lwsGang)
			watched := c.WatchGangsBy(byLWSGroup(size))
			apply(t, c.Plane, leaderWorkerSet("serve", startup, groups, size))
			watched.WaitWhole(1, 40*time.Second)
			time.Sleep(3 * time.Second)
			if part := watched.InPart(); len(part) > 0 {
				t.Errorf("run in part beside a whole group: %v", part)
			}
			c.AddNodes(harness.Node("one-more", harness.GPUModel, 8))
			watched.WaitWhole(groups, 40*time.Second)
			c.check(t)
		})
	}
}
