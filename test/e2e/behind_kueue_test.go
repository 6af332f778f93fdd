// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"

	"berth.dev/e2e/harness"
)

// A queue with a quota of GPUs.
const kueueQueue = `
apiVersion: kueue.x-k8s.io/v1beta2
kind: ResourceFlavor
metadata: {name: gpus}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata: {name: gpus}
spec:
  namespaceSelector: {}
  resourceGroups:
  - coveredResources: [nvidia.com/gpu, cpu]
    flavors: [{name: gpus, resources: [{name: nvidia.com/gpu, nominalQuota: %d}, {name: cpu, nominalQuota: 1000}]}]
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: LocalQueue
metadata: {name: team, namespace: default}
spec: {clusterQueue: gpus}
`

const ofKueueGroup = "kueue.x-k8s.io/pod-group-name"

// kueueGroup are the pods of a group of Kueue, 8 GPUs each, that run for a while.
func kueueGroup(name string, size int, runs string) []*v1.Pod {
	pods := harness.Pods(name, size, harness.Ask{harness.GPUResource: "8"})
	for _, pod := range pods {
		pod.Labels = map[string]string{"kueue.x-k8s.io/queue-name": "team", ofKueueGroup: name}
		annotate(pod, "kueue.x-k8s.io/pod-group-total-count", strconv.Itoa(size))
		annotate(pod, harness.RunsAnnotation, runs)
		pod.Spec.RestartPolicy = v1.RestartPolicyNever
	}
	return pods
}

// Groups of plain pods on a full quota: each is admitted whole by Kueue and placed whole by Berth.
func TestBehindKueuePodGroupsStartWhole(t *testing.T) {
	const nodes, groups = 4, 6
	c := startBehind(t, nodes, kueue)
	apply(t, c.Plane, fmt.Sprintf(kueueQueue, nodes*8))
	minimum := map[string]int{}
	for i := range groups {
		minimum[fmt.Sprintf("group%d", i)] = 2 + i%3
	}
	watched := c.WatchGangsBy(func(pod *v1.Pod) (string, int) {
		return pod.Labels[ofKueueGroup], minimum[pod.Labels[ofKueueGroup]]
	})
	for name, size := range minimum {
		c.CreatePods(kueueGroup(name, size, "2s")...)
	}
	watched.WaitWhole(groups, 2*time.Minute)
	slowest, which := watched.SlowestStart()
	t.Logf("slowest from the first pod to the last: %s (%s)", slowest, which)
	c.check(t)
}

// Jobs that Kueue suspends and lets go when the quota allows.
func TestBehindKueueJobsStartWhole(t *testing.T) {
	const nodes, size = 4, 4
	c := startBehind(t, nodes, kueue)
	apply(t, c.Plane, fmt.Sprintf(kueueQueue, nodes*8))
	for i := range 3 {
		name := fmt.Sprintf("queued%d", i)
		apply(t, c.Plane, inQueue(gangJob(name, size, named(name, size), harness.RunsAnnotation+": 2s")))
	}
	for i := range 3 {
		c.waitComplete(t, fmt.Sprintf("queued%d", i), time.Minute)
	}
	c.check(t)
}

// inQueue is a Job in Kueue's queue.
func inQueue(job string) string {
	return strings.Replace(job, "namespace: default}", "namespace: default, labels: {kueue.x-k8s.io/queue-name: team}}", 1)
}
