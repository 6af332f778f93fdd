// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"berth.dev/e2e/harness"
)

// runPodOf makes a pod of a Deployment, which runs and is ready: there are no controllers and no kubelets.
func runPodOf(t *testing.T, plane *harness.Plane, name string, change func(*v1.Pod)) {
	t.Helper()
	deployment, err := plane.Client.AppsV1().Deployments("berth-system").Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	template := deployment.Spec.Template
	template.Spec.NodeName, template.Spec.PriorityClassName = "n1", ""
	createRunning(t, plane, &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name + "-0", Namespace: "berth-system", Labels: template.Labels},
		Spec: template.Spec}, change)
}

func createRunning(t *testing.T, plane *harness.Plane, pod *v1.Pod, change func(*v1.Pod)) {
	t.Helper()
	if change != nil {
		change(pod)
	}
	pods := plane.Client.CoreV1().Pods(pod.Namespace)
	made, err := pods.Create(t.Context(), pod, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	now := metav1.Now()
	made.Status.Phase, made.Status.StartTime = v1.PodRunning, &now
	for _, kind := range []v1.PodConditionType{v1.PodReady, v1.PodScheduled} {
		made.Status.Conditions = append(made.Status.Conditions, v1.PodCondition{Type: kind, Status: v1.ConditionTrue, LastTransitionTime: now})
	}
	if _, err := pods.UpdateStatus(t.Context(), made, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// gpuPod holds a GPU of n1.
func gpuPod(name, scheduler string, annotations map[string]string) *v1.Pod {
	pod := harness.Pod(name, harness.Ask{harness.GPUResource: "1"})
	pod.Namespace, pod.Annotations = "default", annotations
	pod.Spec.SchedulerName, pod.Spec.NodeName = scheduler, "n1"
	return pod
}

func TestDoctorNamesTheCauseAndItsCure(t *testing.T) {
	needBerth(t)
	plane := harness.NewPlane(t)
	plane.AddNodes(harness.Node("n1", harness.GPUModel, 4), harness.Node("n2", harness.GPUModel, 4))
	folder, ask := kubectlBerth(t)
	// want asks doctor: it succeeds where nothing is wrong, and the first three lines have the parts.
	want := func(isWell bool, parts ...string) {
		t.Helper()
		out, err := ask(plane.Admin, "doctor")
		if (err == nil) != isWell {
			t.Errorf("doctor: %v, want it well: %v\n%s", err, isWell, out)
		}
		lines := strings.SplitAfterN(out, "\n", 4)
		wantParts(t, strings.Join(lines[:min(3, len(lines))], ""), parts...)
	}
	want(false, "wrong: Install Berth: `kubectl berth doctor --install` prints the steps")

	plane.Kubectl("apply", "-f", "manifests/install.yaml")
	runPodOf(t, plane, "berth", func(pod *v1.Pod) { pod.Labels["berth.dev/leader"] = "true" })
	want(false, "wrong: Register Berth with kube-scheduler (docs/install.md, step 4): no scheduler asks Berth")
	runPodOf(t, plane, "berth-scheduler", nil)
	createRunning(t, plane, gpuPod("by-berth", "berth-scheduler", map[string]string{"berth.dev/devices": "{}"}), nil)
	want(true, "note:  Install berth-node", "Nothing is wrong.")

	// The same of a file.
	listed := plane.Kubectl("get", "-A", "-o", "json",
		"nodes,pods,configmaps,leases,clusterroles,clusterrolebindings,validatingadmissionpolicybindings")
	file := filepath.Join(folder, "c.json")
	if err := os.WriteFile(file, []byte(listed), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := ask(plane.Admin, "doctor", "--cluster", file); err != nil || contains(out, "Nothing is wrong.") != nil {
		t.Errorf("of a file: %v\n%s", err, out)
	}
	if out, err := ask(plane.Admin, "doctor", "--install"); err != nil || contains(out, "scheduler: {kind: second}") != nil {
		t.Errorf("--install: %v\n%s", err, out)
	}

	createRunning(t, plane, gpuPod("beside", "default-scheduler", nil), nil)
	want(false, "on n1 GPU pods are of berth-scheduler and default-scheduler")
	plane.Kubectl("delete", "pod", "beside", "--force")
	plane.Kubectl("delete", "clusterrolebinding", "berth")
	want(false, "Apply manifests/base again: Berth may not list pods")
	plane.Kubectl("apply", "-f", "manifests/base/rbac.yaml")
	plane.Kubectl("patch", "node", "n2", "--subresource=status", "--type=merge", "-p",
		`{"status":{"capacity":{"amd.com/cpx_nps1":"8"},"allocatable":{"amd.com/cpx_nps1":"8"}}}`)
	want(false, "Add amd.com/cpx_nps1 to managedResources in the configuration of berth-system/berth-scheduler-0")

	// Who may not read nodes hears it from the API server; who may not read the rest learns what was not looked at.
	out, err := ask(plane.Kubeconfig("bob", plane.Certificate("bob")), "doctor")
	if err == nil || contains(out, `User "bob" cannot list resource "nodes"`) != nil {
		t.Errorf("without rights: %v\n%s", err, out)
	}
	plane.Kubectl("create", "clusterrole", "looks", "--verb=list", "--resource=nodes,pods")
	plane.Kubectl("create", "clusterrolebinding", "looks", "--clusterrole=looks", "--user=bob")
	out, _ = ask(plane.Kubeconfig("bob", plane.Certificate("bob")), "doctor")
	wantParts(t, out, "not looked at: ClusterRole, ClusterRoleBinding, ConfigMap, Lease, ValidatingAdmissionPolicyBinding")
}
