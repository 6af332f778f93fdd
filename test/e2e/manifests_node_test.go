// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	v1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"berth.dev/e2e/harness"
)

const agentNamespace = "berth-node"

// agentFolder are the files of the component, which are applied one by one: the first has the namespace.
const (
	agentFolder     = "manifests/components/node/"
	openshiftFolder = "manifests/components/node-openshift/"
)

// fenced is a cluster with two nodes with a pod on each, and the rights and policies of components/node in force.
type fenced struct {
	*harness.Plane
	agent kubernetes.Interface // with the token of an agent on node n1
}

func startFenced(t *testing.T) fenced {
	t.Helper()
	c := fenced{Plane: harness.NewPlane(t)}
	c.AddNodes(harness.Node("n1", harness.GPUModel, 8), harness.Node("n2", harness.GPUModel, 8))
	for _, file := range []string{"namespace.yaml", "rbac.yaml", "networkpolicy.yaml", "policy.yaml"} {
		c.Kubectl("apply", "--filename="+agentFolder+file)
	}
	for _, node := range []string{"n1", "n2"} {
		pod := harness.Pod("on-"+node, nil)
		pod.Spec.NodeName = node
		c.CreatePods(pod)
	}
	c.agent = c.agentOn(t, "n1")
	harness.Eventually(t, "the policies to be in force", 30*time.Second, func() error {
		if c.annotateNode(t, "n2", "berth.dev/carries-out", "nvidia.com/gpu") == nil {
			return fmt.Errorf("an agent may write another node")
		}
		if err := c.create(t, given("first")); err == nil {
			return fmt.Errorf("anybody may write berth.dev/given")
		}
		return nil
	})
	return c
}

// agentOn is a client with the token that the kubelet would give an agent on that node.
func (c fenced) agentOn(t *testing.T, node string) kubernetes.Interface {
	t.Helper()
	return c.withToken(t, "agent-"+node, c.tokenOn(t, node))
}

// tokenOn is that token.
func (c fenced) tokenOn(t *testing.T, node string) string {
	t.Helper()
	pod := harness.Pod("berth-node-"+node, nil)
	pod.Namespace, pod.Spec.NodeName, pod.Spec.ServiceAccountName = agentNamespace, node, "berth-node"
	created, err := c.Client.CoreV1().Pods(agentNamespace).Create(t.Context(), pod, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return c.token(t, &authenticationv1.BoundObjectReference{Kind: "Pod", APIVersion: "v1", Name: created.Name, UID: created.UID})
}

func (c fenced) token(t *testing.T, bound *authenticationv1.BoundObjectReference) string {
	t.Helper()
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{BoundObjectRef: bound}}
	token, err := c.Client.CoreV1().ServiceAccounts(agentNamespace).CreateToken(t.Context(), "berth-node", request, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return token.Status.Token
}

func (c fenced) withToken(t *testing.T, name, token string) kubernetes.Interface {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", c.Kubeconfig(name, clientcmdapi.AuthInfo{Token: token}))
	if err != nil {
		t.Fatal(err)
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// metadata is a merge patch of an object's metadata.
func metadata(t *testing.T, field string, value any) []byte {
	t.Helper()
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{field: value}})
	if err != nil {
		t.Fatal(err)
	}
	return patch
}

func (c fenced) patchNode(t *testing.T, node string, patch []byte) error {
	_, err := c.agent.CoreV1().Nodes().Patch(t.Context(), node, types.MergePatchType, patch, metav1.PatchOptions{})
	return err
}

func (c fenced) annotateNode(t *testing.T, node, key string, value any) error {
	t.Helper()
	return c.patchNode(t, node, metadata(t, "annotations", map[string]any{key: value}))
}

func (c fenced) annotatePod(t *testing.T, by kubernetes.Interface, pod, key string, value any) error {
	t.Helper()
	patch := metadata(t, "annotations", map[string]any{key: value})
	_, err := by.CoreV1().Pods(harness.Namespace).Patch(t.Context(), pod, types.MergePatchType, patch, metav1.PatchOptions{})
	return err
}

func (c fenced) create(t *testing.T, pod *v1.Pod) error {
	t.Helper()
	_, err := c.Client.CoreV1().Pods(pod.Namespace).Create(t.Context(), pod, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	return err
}

func given(name string) *v1.Pod {
	pod := harness.Pod(name, nil)
	pod.Annotations["berth.dev/given"] = `{"version":1}`
	return pod
}

// wantDenied fails unless the error has that text; "" = no error.
func wantDenied(t *testing.T, what string, err error, why string) {
	t.Helper()
	if (err == nil) != (why == "") || (err != nil && !strings.Contains(err.Error(), why)) {
		t.Errorf("%s: want %q, got %v", what, why, err)
	}
}

func TestTheNodeAgentWritesItsOwnNodeAndNothingElse(t *testing.T) {
	c := startFenced(t)
	for _, key := range []string{"carries-out", "kubelet", "gpu-health", "gpu-uuids", "topology", "mig", "gpu-models"} {
		wantDenied(t, key, c.annotateNode(t, "n1", "berth.dev/"+key, "x"), "")
		wantDenied(t, key, c.annotateNode(t, "n1", "berth.dev/"+key, nil), "")
	}
	wantDenied(t, "another node", c.annotateNode(t, "n2", "berth.dev/topology", "x"), `it is on node "n1", and this is node "n2"`)
	wantDenied(t, "another annotation", c.annotateNode(t, "n1", "example.com/a", "x"), "annotation example.com/a: want berth-node to write")
	wantDenied(t, "another of Berth's", c.annotateNode(t, "n1", "berth.dev/price", "0"), "annotation berth.dev/price")
	c.Kubectl("annotate", "node", "n1", "example.com/b=x")
	wantDenied(t, "the removal of another", c.annotateNode(t, "n1", "example.com/b", nil), "annotation example.com/b")
	wantDenied(t, "a label", c.patchNode(t, "n1", metadata(t, "labels", map[string]any{"pool": "x"})), "annotations alone")
	wantDenied(t, "a finalizer", c.patchNode(t, "n1", metadata(t, "finalizers", []string{"example.com/x"})), "annotations alone")
	wantDenied(t, "a taint", c.patchNode(t, "n1", []byte(`{"spec":{"unschedulable":true}}`)), "annotations alone")

	wantDenied(t, "given", c.annotatePod(t, c.agent, "on-n1", "berth.dev/given", `{"version":1}`), "")
	wantDenied(t, "given elsewhere", c.annotatePod(t, c.agent, "on-n2", "berth.dev/given", "{}"), `it is on node "n1", and this is node "n2"`)
	wantDenied(t, "a plan", c.annotatePod(t, c.agent, "on-n1", "berth.dev/devices", "{}"), "annotation berth.dev/devices")
	for reason, why := range map[string]string{"DeviceGivenTwice": "", "Killing": "want berth-node to write Events DeviceGivenTwice"} {
		event := &v1.Event{ObjectMeta: metav1.ObjectMeta{Name: strings.ToLower(reason)}, Reason: reason, Type: v1.EventTypeWarning,
			InvolvedObject: v1.ObjectReference{Kind: "Pod", Namespace: harness.Namespace, Name: "on-n1"}}
		_, err := c.agent.CoreV1().Events(harness.Namespace).Create(t.Context(), event, metav1.CreateOptions{})
		wantDenied(t, reason, err, why)
	}
	// A token that is of no pod names no node.
	c.agent = c.withToken(t, "no-pod", c.token(t, nil))
	wantDenied(t, "a token of no node", c.annotateNode(t, "n1", "berth.dev/topology", "x"), `it is on node ""`)
	for _, name := range []string{"berth-node-annotations", "berth-node-pods", "berth-given", "berth-decision", "berth-node-events"} {
		policy := c.Kubectl("get", "validatingadmissionpolicy", name, "-o", "jsonpath={.status.typeChecking}")
		if strings.Contains(policy, "warning") {
			t.Errorf("the expressions of %s are not of one type: %s", name, policy)
		}
	}
}

func TestNobodyButTheNodeAgentSaysWhatAPodWasGiven(t *testing.T) {
	c := startFenced(t)
	const why = "annotation berth.dev/given: want it from berth-node alone"
	wantDenied(t, "a pod that says it", c.create(t, given("says")), why)
	wantDenied(t, "another pod", c.create(t, harness.Pod("quiet", nil)), "")
	wantDenied(t, "a pod that is changed", c.annotatePod(t, c.Client, "on-n1", "berth.dev/given", "{}"), why)
	waiting := harness.Pod("waiting", nil)
	waiting.Spec.SchedulerName = "nobody"
	c.CreatePods(waiting)
	bind := &v1.Binding{ObjectMeta: metav1.ObjectMeta{Name: "waiting", Annotations: map[string]string{"berth.dev/given": "{}"}},
		Target: v1.ObjectReference{Kind: "Node", Name: "n1"}}
	wantDenied(t, "a Binding", c.Client.CoreV1().Pods(harness.Namespace).Bind(t.Context(), bind, metav1.CreateOptions{}), why)

	wantDenied(t, "the agent", c.annotatePod(t, c.agent, "on-n1", "berth.dev/given", `{"version":1}`), "")
	wantDenied(t, "its removal", c.annotatePod(t, c.Client, "on-n1", "berth.dev/given", nil), why)
	wantDenied(t, "another annotation of that pod", c.annotatePod(t, c.Client, "on-n1", "example.com/a", "x"), "")
	// The kubelet writes the status of a pod that has it.
	pod := c.Pod("on-n1")
	pod.Status.Phase = v1.PodRunning
	_, err := c.Client.CoreV1().Pods(harness.Namespace).UpdateStatus(t.Context(), pod, metav1.UpdateOptions{})
	wantDenied(t, "its status", err, "")
}

func TestNobodyButABindingSaysThatBerthBoundAPod(t *testing.T) {
	c := startFenced(t)
	const why = "annotation berth.dev/decision: want it from a Binding alone"
	forged := harness.Pod("forged", nil)
	forged.Spec.NodeName = "n1"
	forged.Annotations = map[string]string{"berth.dev/devices": "{}"}
	wantDenied(t, "a plan of one's own, which counts for nothing", c.create(t, forged), "")
	forged.Annotations["berth.dev/decision"] = "0123456789abcdef"
	harness.Eventually(t, "the policy to be in force", 30*time.Second, func() error {
		if c.create(t, forged) == nil {
			return fmt.Errorf("anybody may write berth.dev/decision")
		}
		return nil
	})
	wantDenied(t, "a pod that says it", c.create(t, forged), why)
	wantDenied(t, "a pod that is changed", c.annotatePod(t, c.Client, "on-n1", "berth.dev/decision", "x"), why)
	waiting := harness.Pod("waiting", nil)
	waiting.Spec.SchedulerName = "nobody"
	c.CreatePods(waiting)
	bind := &v1.Binding{ObjectMeta: metav1.ObjectMeta{Name: "waiting", Annotations: map[string]string{"berth.dev/decision": "x",
		"berth.dev/devices": "{}"}}, Target: v1.ObjectReference{Kind: "Node", Name: "n1"}}
	wantDenied(t, "a Binding", c.Client.CoreV1().Pods(harness.Namespace).Bind(t.Context(), bind, metav1.CreateOptions{}), "")
	wantDenied(t, "its removal", c.annotatePod(t, c.Client, "waiting", "berth.dev/decision", nil), why)
	wantDenied(t, "another plan", c.annotatePod(t, c.Client, "waiting", "berth.dev/devices", `{"version":1}`),
		"annotation berth.dev/devices: want it as Berth bound the pod")
	wantDenied(t, "another annotation of that pod", c.annotatePod(t, c.Client, "waiting", "example.com/a", "x"), "")
	pod := c.Pod("waiting")
	pod.Status.Phase = v1.PodRunning
	_, err := c.Client.CoreV1().Pods(harness.Namespace).UpdateStatus(t.Context(), pod, metav1.UpdateOptions{})
	wantDenied(t, "its status", err, "")
}

// All that berth-node asks the API server and the kubelet for.
var usedByAgent = []string{"get /nodes", "patch /nodes", "get /nodes/configz", "list /pods", "watch /pods", "patch /pods", "create /events"}

func TestRightsOfTheNodeAgentAreWhatItUses(t *testing.T) {
	objects := render(t, withComponent(t, "manifests/base", agentFolder))
	rules := as[rbacv1.ClusterRole](t, objects, "ClusterRole/berth-node").Rules
	wantNoMore(t, rules, usedByAgent)
	for _, used := range usedByAgent {
		verb, resource, _ := strings.Cut(used, " /")
		there := false
		for _, rule := range rules {
			there = there || (rule.Resources[0] == resource && strings.Contains(strings.Join(rule.Verbs, " "), verb))
		}
		if !there {
			t.Errorf("berth-node may not %s", used)
		}
	}
	pod := as[appsv1.DaemonSet](t, objects, "DaemonSet/berth-node").Spec.Template.Spec
	if pod.HostNetwork || pod.HostPID || pod.HostIPC {
		t.Error("the agent is in a namespace of the host")
	}
	secure := pod.Containers[0].SecurityContext
	if (secure.Privileged != nil && *secure.Privileged) || *secure.AllowPrivilegeEscalation || !*secure.ReadOnlyRootFilesystem ||
		len(secure.Capabilities.Drop) != 1 || len(secure.Capabilities.Add) != 0 {
		t.Errorf("the agent has more rights than it needs: %+v", secure)
	}
	namespace := objects["Namespace/berth-system"]
	if namespace.GetLabels()["pod-security.kubernetes.io/enforce"] != "restricted" {
		t.Error("berth-system is open for the agent's sake")
	}
}

func TestThePodsOfTheNodeAgentAreCritical(t *testing.T) {
	plane := harness.NewPlane(t)
	for _, file := range []string{"namespace.yaml", "rbac.yaml", "networkpolicy.yaml", "daemonset.yaml"} {
		plane.Kubectl("apply", "--filename="+agentFolder+file)
	}
	daemon, err := plane.Client.AppsV1().DaemonSets(agentNamespace).Get(t.Context(), "berth-node", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	// The controller would create this pod.
	pod := &v1.Pod{ObjectMeta: daemon.Spec.Template.ObjectMeta, Spec: daemon.Spec.Template.Spec}
	pod.Name = "berth-node-x"
	made, err := plane.Client.CoreV1().Pods(agentNamespace).Create(t.Context(), pod, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if made.Spec.Priority == nil || *made.Spec.Priority < 2_000_000_000 {
		t.Errorf("priority: %v", made.Spec.Priority)
	}
}
