// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"testing"

	v1 "k8s.io/api/core/v1"

	"berth.dev/e2e/harness"
)

// The controllers of test/e2e/controllers, as their manifests install them but for certificates and leases.
var (
	jobSet = harness.Controller{Name: "jobset", Config: "apiVersion: config.jobset.x-k8s.io/v1alpha1\n",
		CRDs: "components/crd", Webhooks: "components/webhook"}
	// Its own gangs are off. With them it writes a PodGroup of Volcano for each group.
	lws     = harness.Controller{Name: "lws", Config: "apiVersion: config.lws.x-k8s.io/v1alpha1\n", CRDs: "crd", Webhooks: "webhook"}
	lwsGang = harness.Controller{Name: "lws", CRDs: "crd", Webhooks: "webhook",
		Config: lws.Config + "gangSchedulingManagement: {schedulerProvider: volcano}\n"}
	kueue = harness.Controller{Name: "kueue", CRDs: "components/crd", Webhooks: "components/webhook",
		FindsCertificates: "/etc/kueue/metrics/certs", Config: `
apiVersion: config.kueue.x-k8s.io/v1beta2
featureGates: {VisibilityOnDemand: false}
integrations: {frameworks: [batch/job, pod]}
`}
)

// needControllers skips the test where the controllers are not built.
func needControllers(t *testing.T) {
	t.Helper()
	if missing := harness.ControllersMissing(); missing != "" {
		t.Skip(missing)
	}
}

// startBehind is a cluster whose pods these controllers make, beside those of Kubernetes.
func startBehind(t *testing.T, nodes int, controllers ...harness.Controller) controlled {
	t.Helper()
	needControllers(t)
	c := startControlled(t, nodes, volcanoPodGroupDefinition)
	for _, controller := range controllers {
		c.StartController(controller)
	}
	return c
}

// byLabels tells gangs of so many pods apart by two labels; a pod without the first is of none.
func byLabels(size int, first, second string) func(*v1.Pod) (string, int) {
	return func(pod *v1.Pod) (string, int) {
		if pod.Labels[first] == "" {
			return "", 0
		}
		return pod.Labels[first] + "/" + pod.Labels[second], size
	}
}

// Volcano's PodGroup, the part that its users write.
const volcanoPodGroupDefinition = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: podgroups.scheduling.volcano.sh}
spec:
  group: scheduling.volcano.sh
  scope: Namespaced
  names: {plural: podgroups, singular: podgroup, kind: PodGroup, listKind: PodGroupList}
  versions:
  - name: v1beta1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, x-kubernetes-preserve-unknown-fields: true}}}}
`
