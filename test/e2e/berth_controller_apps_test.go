// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"testing"
	"time"

	"berth.dev/e2e/harness"
)

const ofApp = "app"

const deployment = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: serve, namespace: default}
spec:
  replicas: %d
  strategy: {rollingUpdate: {maxSurge: 0, maxUnavailable: 1}}
  selector: {matchLabels: {app: serve}}
  template:
    metadata: {labels: {app: serve}, annotations: {version: "%d"}}
    spec:
      terminationGracePeriodSeconds: 1
      containers: [{name: main, image: none, resources: {limits: {nvidia.com/gpu: 8}}}]
`

// Each replica that ends makes room for one: a gang that waits for more does not take it, and is whole once there is.
func TestARollingUpdateOnAFullClusterBesideAGangThatWaits(t *testing.T) {
	const nodes = 4
	c := startControlled(t, nodes)
	apply(t, c.Plane, fmt.Sprintf(deployment, nodes, 1))
	c.Kubectl("rollout", "status", "deployment/serve", "--timeout=60s")
	apply(t, c.Plane, gangJob("train", 2, named("train", 2)))
	apply(t, c.Plane, fmt.Sprintf(deployment, nodes, 2))
	start := time.Now()
	c.Kubectl("rollout", "status", "deployment/serve", "--timeout=120s")
	t.Logf("%d replicas were replaced in %s", nodes, time.Since(start))
	if runs := c.runningOf(t, ofJob, "train"); runs > 0 {
		t.Errorf("%d pods of the gang run on a full cluster", runs)
	}
	c.Kubectl("scale", "deployment/serve", "--replicas=2")
	c.waitRunning(t, ofJob, "train", 2, time.Minute)
	c.check(t)
}

const statefulSet = `
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: %[1]s, namespace: default}
spec:
  replicas: 3
  serviceName: %[1]s
  podManagementPolicy: %[2]s
  selector: {matchLabels: {app: %[1]s}}
  template:
    metadata: {labels: {app: %[1]s}, annotations: {%[3]s}}
    spec:
      terminationGracePeriodSeconds: 1
      containers: [{name: main, image: none, resources: {limits: {nvidia.com/gpu: 8}}}]
`

// Without a gang both orders run; as a gang only that which makes all pods at once, and the other one gets an Event that says how.
func TestStatefulSetsAsGangs(t *testing.T) {
	c := startControlled(t, 3)
	apply(t, c.Plane, fmt.Sprintf(statefulSet, "plain", "OrderedReady", ""))
	c.waitRunning(t, ofApp, "plain", 3, 30*time.Second)
	c.Kubectl("delete", "statefulset", "plain")
	apply(t, c.Plane, fmt.Sprintf(statefulSet, "parallel", "Parallel", named("parallel", 3)))
	c.waitRunning(t, ofApp, "parallel", 3, 40*time.Second)
	c.Kubectl("delete", "pod", "parallel-1", "--wait=false")
	c.waitRunning(t, ofApp, "parallel", 2, 10*time.Second)
	c.waitRunning(t, ofApp, "parallel", 3, 30*time.Second)
	c.Kubectl("delete", "statefulset", "parallel")

	apply(t, c.Plane, fmt.Sprintf(statefulSet, "ordered", "OrderedReady", named("ordered", 3)))
	harness.Eventually(t, "the cure to be said", 30*time.Second, func() error {
		return c.says("podManagementPolicy: Parallel", "explain", "pod", "default/ordered-0")
	})
	if runs := c.runningOf(t, ofApp, "ordered"); runs > 0 {
		t.Errorf("%d of three pods run", runs)
	}
	c.check(t)
}
