// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"berth.dev/e2e/harness"
)

// What Berth asks of a Node, and whether the policy lets it.
var ofNodes = map[string]bool{
	`{"metadata":{"annotations":{"karpenter.sh/do-not-disrupt":"true","cluster-autoscaler.kubernetes.io/scale-down-disabled":"true","berth.dev/holds-node":"karpenter.sh/do-not-disrupt"}}}`: true,
	`{"metadata":{"annotations":{"karpenter.sh/do-not-disrupt":null,"berth.dev/holds-node":null}}}`:                                                                                          true,
	`{"metadata":{"annotations":{"example.com/a":"b"}}}`:      false,
	`{"metadata":{"annotations":{"example.com/is":null}}}`:    false,
	`{"metadata":{"annotations":null}}`:                       false,
	`{"metadata":{"labels":{"zone":"b"}}}`:                    false,
	`{"metadata":{"finalizers":["example.com/f"]}}`:           false,
	`{"spec":{"unschedulable":true}}`:                         false,
	`{"spec":{"taints":[{"key":"a","effect":"NoSchedule"}]}}`: false,
}

func TestBerthMayWriteThreeAnnotationsOfANode(t *testing.T) {
	plane := harness.NewPlane(t)
	plane.GrantBerth()
	plane.Kubectl("apply", "--filename=manifests/components/keep-nodes/rbac.yaml", "--filename=manifests/components/keep-nodes/policy.yaml")
	plane.AddNodes(harness.Node("n", harness.GPUModel, 2))
	if _, err := plane.Client.CoreV1().Nodes().Patch(t.Context(), "n", types.MergePatchType,
		[]byte(`{"metadata":{"annotations":{"example.com/is":"there"}}}`), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	config, err := clientcmd.BuildConfigFromFlags("", plane.Kubeconfig("berth", plane.Token()))
	if err != nil {
		t.Fatal(err)
	}
	berth, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	ask := func(patch string) error {
		_, err := berth.CoreV1().Nodes().Patch(t.Context(), "n", types.MergePatchType, []byte(patch), metav1.PatchOptions{})
		return err
	}
	tries := 0
	harness.Eventually(t, "the policy to be in force", 30*time.Second, func() error {
		tries++ // another value each time: a patch that changes nothing is no concern of the policy
		err := ask(fmt.Sprintf(`{"metadata":{"annotations":{"example.com/a":"try %d"}}}`, tries))
		if err == nil || !strings.Contains(err.Error(), "berth-keep-nodes") {
			return fmt.Errorf("the policy is not in force: %v", err)
		}
		return nil
	})
	for patch, allowed := range ofNodes {
		if err := ask(patch); (err == nil) != allowed {
			t.Errorf("%s: want allowed %t, got %v", patch, allowed, err)
		}
	}
}

func TestTheChartKeepsNodesWhereItIsAskedTo(t *testing.T) {
	values := valuesOf(t, variants[0])
	without := chartObjects(t, values, "berth-system")
	values["keepNodes"] = map[string]any{"enabled": true}
	got := chartObjects(t, values, "berth-system")
	for _, object := range objectsIn(t, "manifests/components/keep-nodes", "rbac.yaml", "policy.yaml") {
		key := keyOf(object)
		if _, there := without[key]; there {
			t.Errorf("%s is there although keepNodes.enabled is false", key)
		}
		if !reflect.DeepEqual(object.Object, got[key].Object) {
			t.Errorf("%s: want\n%s\ngot\n%s", key, marshal(t, object.Object), marshal(t, got[key].Object))
		}
	}
}
