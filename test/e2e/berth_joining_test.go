// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"berth.dev/e2e/harness"
)

// daemon is a pod as the DaemonSet controller makes it for a node: for that node alone, whatever state it is in.
func daemon(name, node string, ask harness.Ask) *v1.Pod {
	pod := harness.Pod(name, ask)
	pod.Spec.Affinity = &v1.Affinity{NodeAffinity: &v1.NodeAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: &v1.NodeSelector{NodeSelectorTerms: []v1.NodeSelectorTerm{{
			MatchFields: []v1.NodeSelectorRequirement{
				{Key: "metadata.name", Operator: v1.NodeSelectorOpIn, Values: []string{node}}},
		}}}}}
	pod.Spec.Tolerations = []v1.Toleration{{Operator: v1.TolerationOpExists}}
	return pod
}

// What makes a node ready - its network, kube-proxy, the GPU driver - are pods that kube-scheduler places on it before.
func TestANodeThatJoinsGetsThePodsThatMakeItReady(t *testing.T) {
	plane := startCluster(t, 1)
	joining := harness.Node("joining", harness.GPUModel, 8)
	joining.Status.Conditions[0].Status = v1.ConditionFalse
	plane.AddNodes(joining)
	plane.CreatePods(daemon("network", "joining", nil))
	plane.WaitBound(10 * time.Second)

	// Also where every pod is bound by Berth, and whole nodes are sent.
	for i := range plane.scheduler.Config.Extenders {
		plane.scheduler.Config.Extenders[i].ManagedResources = nil
		plane.scheduler.Config.Extenders[i].NodeCacheCapable = false
	}
	plane.scheduler.Restart()
	plane.CreatePods(daemon("gpu-driver", "joining", nil))
	plane.WaitBound(10 * time.Second)

	// A pod with GPUs waits until the node is ready.
	plane.CreatePods(daemon("gpu", "joining", harness.Ask{harness.GPUResource: "1"}))
	if why := plane.WaitPending("gpu", 10*time.Second); contains(why, "node(s) not ready") != nil {
		t.Errorf("want the node's state as the reason, got %q", why)
	}
	nodes := plane.Client.CoreV1().Nodes()
	ready, err := nodes.Get(context.Background(), "joining", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	ready.Status.Conditions[0].Status = v1.ConditionTrue
	if _, err := nodes.UpdateStatus(context.Background(), ready, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	plane.WaitBound(10 * time.Second)
	plane.CheckGrants()
}
