// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/clientcmd"

	"berth.dev/e2e/harness"
)

const (
	nriLabel  = "berth.dev/nri"
	nriVendor = "k8s.device-plugin.nvidia.com"
	nriOfMain = "nvidia.cdi.k8s.io/container.main"
	nriPolicy = "annotation %s: want it from Berth alone"
)

// nriCluster is one with a node whose NRI plugin runs, the policy of components/nri in force, and a tenant who may do
// all that concerns pods and Deployments in his namespace.
type nriCluster struct {
	controlled
	tenant, admin typedcorev1.PodInterface
	deployments   kubernetes.Interface
}

func startWithNri(t *testing.T) nriCluster {
	t.Helper()
	c := nriCluster{controlled: startControlled(t, 0)}
	node := harness.Node("t4", harness.GPUModel, 2)
	node.Labels[nriLabel] = nriVendor
	c.AddNodes(node)
	c.Kubectl("apply", "--filename=manifests/components/nri/policy.yaml")
	pods := []string{"pods", "pods/status", "pods/resize", "pods/ephemeralcontainers"}
	rules := []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: pods, Verbs: []string{"*"}},
		{APIGroups: []string{"apps"}, Resources: []string{"deployments"}, Verbs: []string{"*"}}}
	c.allow(t, "tenant", rules)
	c.admin = c.Client.CoreV1().Pods(harness.Namespace)
	c.deployments = c.as(t, "tenant")
	c.tenant = c.deployments.CoreV1().Pods(harness.Namespace)
	harness.Eventually(t, "the policy to be in force", 30*time.Second, func() error {
		if _, err := c.tenant.Create(t.Context(), naming("first", nriOfMain), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}); err == nil {
			return fmt.Errorf("a pod that names a device is taken")
		}
		return nil
	})
	return c
}

// as is a client with the certificate of that user.
func (c nriCluster) as(t *testing.T, user string) kubernetes.Interface {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", c.Kubeconfig(user, c.Certificate(user)))
	if err != nil {
		t.Fatal(err)
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// allow gives a user these rights in the namespace of the tests.
func (c nriCluster) allow(t *testing.T, user string, rules []rbacv1.PolicyRule) {
	t.Helper()
	meta := metav1.ObjectMeta{Name: user}
	rbac := c.Client.RbacV1()
	if _, err := rbac.Roles(harness.Namespace).Create(t.Context(), &rbacv1.Role{ObjectMeta: meta, Rules: rules}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	binding := &rbacv1.RoleBinding{ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: user},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: user}}}
	if _, err := rbac.RoleBindings(harness.Namespace).Create(t.Context(), binding, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// naming is a pod without GPUs that names a device by the annotation.
func naming(name, key string) *v1.Pod {
	pod := harness.Pod(name, nil)
	pod.Annotations[key] = nriVendor + "/gpu=GPU-t4-0"
	return pod
}

func sharing(name string) *v1.Pod {
	return harness.Pod(name, harness.Ask{harness.MilliResource: "300"})
}

// wantRefused fails unless the policy refused it for that annotation.
func wantRefused(t *testing.T, what string, err error, key string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), fmt.Sprintf(nriPolicy, key)) {
		t.Errorf("%s: want it refused for %s, got %v", what, key, err)
	}
}

// nriOf are the annotations of the NRI plugin on a pod.
func (c nriCluster) nriOf(t *testing.T, name string) map[string]string {
	t.Helper()
	found := map[string]string{}
	for key, value := range c.Pod(name).Annotations {
		if strings.HasPrefix(key, "nvidia.cdi.k8s.io") {
			found[key] = value
		}
	}
	return found
}

func TestBerthAloneNamesTheDevicesOfTheNriPlugin(t *testing.T) {
	c := startWithNri(t)
	t.Run("in the Binding of a share", c.berthNames)
	t.Run("not the tenant who creates a pod", c.tenantCreates)
	t.Run("not his Deployment", c.tenantDeploys)
	t.Run("not the tenant who changes a pod", c.tenantChanges)
	t.Run("not somebody else who binds", c.othersBind)
	t.Run("but NVIDIA's operator for its own pods", c.operatorNames)
	t.Run("and only while the node says that the plugin runs", c.pluginGoes)
	policy := c.Kubectl("get", "validatingadmissionpolicy", "berth-nri", "-o", "jsonpath={.status.typeChecking}")
	if strings.Contains(policy, "warning") {
		t.Errorf("its expressions are not of one type: %s", policy)
	}
}

func (c nriCluster) berthNames(t *testing.T) {
	c.CreatePods(sharing("share"), harness.Pod("whole", harness.Ask{harness.GPUResource: "1"}))
	c.WaitBound(30 * time.Second)
	devices, err := harness.DevicesOf(c.Pod("share"))
	if err != nil {
		t.Fatal(err)
	}
	want := fmt.Sprintf("%s/gpu=GPU-t4-%d", nriVendor, devices.Containers["main"].GPUs[0].Index)
	if got := c.nriOf(t, "share"); len(got) != 1 || got[nriOfMain] != want {
		t.Errorf("want %s=%s, got %v", nriOfMain, want, got)
	}
	if got := c.nriOf(t, "whole"); len(got) != 0 {
		t.Errorf("a pod with whole GPUs has its devices from the device plugin, and names %v", got)
	}
}

func (c nriCluster) tenantCreates(t *testing.T) {
	for i, key := range []string{nriOfMain, "nvidia.cdi.k8s.io/pod", "nvidia.cdi.k8s.io", "nvidia.cdi.k8s.io/container.other"} {
		_, err := c.tenant.Create(t.Context(), naming(fmt.Sprintf("thief-%d", i), key), metav1.CreateOptions{})
		wantRefused(t, "create", err, key)
	}
	with := sharing("thief-who-asks")
	with.Annotations["nvidia.cdi.k8s.io/pod"] = "nvidia.com/gpu=all"
	_, err := c.tenant.Create(t.Context(), with, metav1.CreateOptions{})
	wantRefused(t, "create with a share", err, "nvidia.cdi.k8s.io/pod")
	named := naming("thief-on-a-node", nriOfMain)
	named.Spec.NodeName = "t4"
	_, err = c.tenant.Create(t.Context(), named, metav1.CreateOptions{})
	wantRefused(t, "create on a node", err, nriOfMain)
}

func (c nriCluster) tenantDeploys(t *testing.T) {
	labels := map[string]string{"app": "thief"}
	pod := naming("", nriOfMain)
	pod.Spec.TerminationGracePeriodSeconds = nil
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "thief"}, Spec: appsv1.DeploymentSpec{
		Selector: &metav1.LabelSelector{MatchLabels: labels},
		Template: v1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels, Annotations: pod.Annotations}, Spec: pod.Spec}}}
	if _, err := c.deployments.AppsV1().Deployments(harness.Namespace).Create(t.Context(), deployment, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	harness.Eventually(t, "the Deployment to say why it has no pods", 30*time.Second, func() error {
		return contains(c.Kubectl("get", "deployment", "thief", "-o", "jsonpath={.status.conditions}"), fmt.Sprintf(nriPolicy, nriOfMain))
	})
	if pods := c.podsOf(t, "app", "thief"); len(pods) > 0 {
		t.Errorf("it made %d pods", len(pods))
	}
}

// tenantChanges tries all ways to change the annotations of his own pod, which Berth has bound.
func (c nriCluster) tenantChanges(t *testing.T) {
	before := c.nriOf(t, "share")[nriOfMain]
	patch := func(key, value string) string { return fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, key, value) }
	for _, key := range []string{nriOfMain, "nvidia.cdi.k8s.io/pod"} {
		_, err := c.tenant.Patch(t.Context(), "share", types.MergePatchType, []byte(patch(key, "nvidia.com/gpu=all")), metav1.PatchOptions{})
		wantRefused(t, "merge patch", err, key)
		applied := `{"apiVersion":"v1","kind":"Pod",` + patch(key, "nvidia.com/gpu=all")[1:]
		_, err = c.tenant.Patch(t.Context(), "share", types.ApplyPatchType, []byte(applied), metav1.PatchOptions{FieldManager: "thief", Force: yes()})
		wantRefused(t, "apply", err, key)
		_, err = c.tenant.Patch(t.Context(), "share", types.MergePatchType, []byte(patch(key, "nvidia.com/gpu=all")), metav1.PatchOptions{}, "status")
		wantRefused(t, "patch of the status", err, key)
	}
	pod := c.Pod("share")
	pod.Annotations["nvidia.cdi.k8s.io"] = "nvidia.com/gpu=all"
	_, err := c.tenant.Update(t.Context(), pod, metav1.UpdateOptions{})
	wantRefused(t, "update", err, "nvidia.cdi.k8s.io")
	// These subresources leave annotations as they are, whether they take the request or not.
	for subresource, body := range map[string]string{
		"resize":              `"spec":{"containers":[{"name":"main","resources":{"limits":{"cpu":"1"},"requests":{"cpu":"1"}}}]}`,
		"ephemeralcontainers": `"spec":{"ephemeralContainers":[{"name":"look","image":"none","terminationMessagePolicy":"File"}]}`} {
		text := strings.TrimSuffix(patch(nriOfMain, "nvidia.com/gpu=all"), "}") + "," + body + "}"
		_, err := c.tenant.Patch(t.Context(), "share", types.StrategicMergePatchType, []byte(text), metav1.PatchOptions{}, subresource)
		t.Logf("%s: %v", subresource, err)
	}
	if got := c.nriOf(t, "share"); len(got) != 1 || got[nriOfMain] != before {
		t.Errorf("want %q as Berth wrote it, got %v", before, got)
	}
	// What changes something else passes, a kubelet's status too.
	for text, subresources := range map[string][]string{`{"metadata":{"labels":{"a":"b"}}}`: nil, patch("example.com/a", "b"): nil,
		`{"status":{"phase":"Running"}}`: {"status"}} {
		if _, err := c.tenant.Patch(t.Context(), "share", types.MergePatchType, []byte(text), metav1.PatchOptions{}, subresources...); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func yes() *bool {
	value := true
	return &value
}

// Who else may create Bindings may bind pods, but not give them devices by it.
func (c nriCluster) othersBind(t *testing.T) {
	c.allow(t, "binder", []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"pods/binding", "bindings"}, Verbs: []string{"create"}}})
	pod := harness.Pod("bound-by-others", nil)
	pod.Spec.SchedulerName = "nobody"
	c.CreatePods(pod)
	bind := func(annotations map[string]string) error {
		return c.as(t, "binder").CoreV1().Pods(harness.Namespace).Bind(t.Context(), &v1.Binding{
			ObjectMeta: metav1.ObjectMeta{Name: pod.Name, Annotations: annotations},
			Target:     v1.ObjectReference{Kind: "Node", Name: "t4"}}, metav1.CreateOptions{})
	}
	wantRefused(t, "bind", bind(map[string]string{nriOfMain: "nvidia.com/gpu=all"}), nriOfMain)
	older := c.as(t, "binder").CoreV1().RESTClient().Post().Namespace(harness.Namespace).Resource("bindings").Body(&v1.Binding{
		ObjectMeta: metav1.ObjectMeta{Name: pod.Name, Annotations: map[string]string{nriOfMain: "nvidia.com/gpu=all"}},
		Target:     v1.ObjectReference{Kind: "Node", Name: "t4"}}).Do(t.Context()).Error()
	wantRefused(t, "bind by the older resource", older, nriOfMain)
	if err := bind(map[string]string{"example.com/a": "b"}); err != nil {
		t.Errorf("a Binding that names no devices: %v", err)
	}
}

func (c nriCluster) operatorNames(t *testing.T) {
	space := &v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "gpu-operator"}}
	if _, err := c.Client.CoreV1().Namespaces().Create(t.Context(), space, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	pod := naming("device-plugin", nriOfMain)
	pod.Namespace = space.Name
	harness.Eventually(t, "a pod of the operator to be taken", 20*time.Second, func() error {
		_, err := c.Client.CoreV1().Pods(space.Name).Create(t.Context(), pod, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return err
	})
}

func (c nriCluster) pluginGoes(t *testing.T) {
	c.Kubectl("label", "node", "t4", nriLabel+"-")
	harness.Eventually(t, "Berth to write no devices for the plugin", 30*time.Second, func() error {
		c.CreatePods(sharing("later"))
		c.WaitBound(30 * time.Second)
		got := c.nriOf(t, "later")
		if visible := c.Pod("later").Annotations[harness.VisibleDevicesAnnotation]; !strings.HasPrefix(visible, "GPU-t4-") {
			t.Errorf("want %s as before, got %q", harness.VisibleDevicesAnnotation, visible)
		}
		if err := c.admin.Delete(t.Context(), "later", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		c.WaitGone("later", 20*time.Second)
		if len(got) > 0 {
			return fmt.Errorf("it still writes %v", got)
		}
		return nil
	})
}
