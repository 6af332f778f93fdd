// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	configv1 "k8s.io/kube-scheduler/config/v1"
	extenderv1 "k8s.io/kube-scheduler/extender/v1"
)

// dropping is an extender that takes a node out for the pods whose names begin so.
func dropping(t *testing.T, prefix, node string) configv1.Extender {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(answer http.ResponseWriter, request *http.Request) {
		var asked extenderv1.ExtenderArgs
		if err := json.NewDecoder(request.Body).Decode(&asked); err != nil || asked.NodeNames == nil {
			http.Error(answer, fmt.Sprintf("want names of nodes, got %v", err), http.StatusBadRequest)
			return
		}
		left, failed := []string{}, extenderv1.FailedNodesMap{}
		for _, name := range *asked.NodeNames {
			if name == node && strings.HasPrefix(asked.Pod.Name, prefix) {
				failed[name] = "has no licence"
				continue
			}
			left = append(left, name)
		}
		_ = json.NewEncoder(answer).Encode(extenderv1.ExtenderFilterResult{NodeNames: &left, FailedNodes: failed})
	}))
	t.Cleanup(server.Close)
	return configv1.Extender{URLPrefix: server.URL, FilterVerb: "filter", NodeCacheCapable: true,
		HTTPTimeout: metav1.Duration{Duration: 5 * time.Second}}
}

// Berth names a node, and an extender after it takes that node out, each time that kube-scheduler asks.
func TestAGangStartsOnOtherNodesThanOneThatAnotherExtenderTakesOut(t *testing.T) {
	plane := startCluster(t, 3)
	watched := plane.WatchGangs(map[string]int{"train": 2}, 0)
	node := firstNode(t, plane)
	plane.scheduler.Config.Extenders = append(plane.scheduler.Config.Extenders, dropping(t, "train-0000", node))
	plane.scheduler.Restart()

	plane.CreatePods(aGang("train", 2, 8, inBerthsWords)...)
	watched.WaitWhole(1, time.Minute)
	if on := plane.Pod("train-0000").Spec.NodeName; on == node {
		t.Errorf("want another node than %s", on)
	}
	plane.CheckGrants()
}

func firstNode(t *testing.T, plane cluster) string {
	t.Helper()
	nodes, err := plane.Client.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	if err != nil || len(nodes.Items) == 0 {
		t.Fatalf("want nodes, got %v", err)
	}
	return nodes.Items[0].Name
}

// onePerNode has each of the pods take the same port of its node.
func onePerNode(pods []*v1.Pod) []*v1.Pod {
	for _, pod := range pods {
		pod.Spec.HostNetwork = true
		pod.Spec.Containers[0].Ports = []v1.ContainerPort{{HostPort: 29500, ContainerPort: 29500}}
	}
	return pods
}

// Each has as many pods as there are nodes, and a node takes one of them: only one gang can run at a time.
func TestTwoGangsOfOnePodPerNodeRunOneAfterTheOther(t *testing.T) {
	const nodes = 8
	plane := startCluster(t, nodes)
	watched := plane.WatchGangs(map[string]int{"one": nodes, "two": nodes}, time.Second)
	one, two := onePerNode(aGang("one", nodes, 1, inBerthsWords)), onePerNode(aGang("two", nodes, 1, inBerthsWords))
	var inTurns []*v1.Pod
	for i := range nodes {
		inTurns = append(inTurns, one[i], two[i])
	}
	began := time.Now()
	plane.CreatePods(inTurns...)
	watched.WaitWhole(1, 20*time.Second)
	t.Logf("the first is whole after %s", time.Since(began))
	watched.WaitWhole(2, time.Minute)
	t.Logf("the second after %s", time.Since(began))
}
