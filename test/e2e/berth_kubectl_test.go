// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd/api"

	"berth.dev/e2e/harness"
)

// The API server proxies to no loopback address. This one is of a network of the test's own (RFC 5737), which also has
// that of the Service of the API server.
const (
	podAddress   = "192.0.2.10"
	ownNetwork   = "BERTH_E2E_OWN_NETWORK"
	enterNetwork = `ip link set lo up && for a in ` + podAddress + ` ` + harness.APIServiceIP +
		`; do ip addr add $a/32 dev lo; done && exec "$0" "$@"`
)

// inOwnNetwork runs the test in a network namespace in which this machine has these addresses, and says whether this is it.
func inOwnNetwork(t *testing.T) bool {
	t.Helper()
	if os.Getenv(ownNetwork) != "" {
		return true
	}
	if out, err := exec.Command("unshare", "--net", "sh", "-c", "ip link set lo up").CombinedOutput(); err != nil {
		t.Skipf("no network namespace can be made here (root, and iproute2, are needed): %v %s", err, out)
	}
	command := exec.Command("unshare", "--net", "sh", "-c", enterNetwork, os.Args[0], "-test.v", "-test.run=^"+t.Name()+"$")
	command.Env = append(os.Environ(), ownNetwork+"=1")
	out, err := command.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	t.Logf("%s", out)
	return false
}

func TestThePluginOfKubectlAsksThroughTheAPIServer(t *testing.T) {
	needBerth(t)
	if !inOwnNetwork(t) {
		return
	}
	plane := harness.NewPlane(t, "--advertise-address="+podAddress)
	plane.AddNodes(harness.Node("n1", harness.GPUModel, 4), harness.Node("n2", harness.GPUModel, 4))
	berth := plane.StartBerth("server: {debugListen: \"" + net.JoinHostPort(podAddress, "8889") + "\"}\n")
	plane.StartScheduler(harness.ShippedExtenders(t, berth.URL)...)
	addDebugService(t, plane)
	plane.Kubectl("apply", "--filename=manifests/components/viewers/rbac.yaml")
	plane.CreatePods(harness.Pod("large", harness.Ask{harness.GPUResource: "8"}))
	plane.WaitPending("large", 30*time.Second)

	folder, ask := kubectlBerth(t)
	viewer := plane.Kubeconfig("ann", execUser(t, folder, plane.Certificate("ann", "berth-viewers")))
	for _, arguments := range [][]string{{"explain", "pod", "default/large"}, {"explain", "pod", "large"},
		{"explain", "pod", "large", "-n", "default"}} {
		out, err := ask(viewer, arguments...)
		if err != nil {
			t.Fatalf("%v: %v\n%s", arguments, err, out)
		}
		wantParts(t, out, "default/large: fits none of 2 nodes")
	}
	job := filepath.Join(folder, "job.yaml")
	manifest := "{apiVersion: v1, kind: Pod, metadata: {name: p}, spec: {containers: [{name: m, resources: {limits: {nvidia.com/gpu: \"4\"}}}]}}\n"
	if err := os.WriteFile(job, []byte(manifest), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := ask(viewer, "plan", "-f", job); err != nil || contains(out, "Pod default/p: fits") != nil {
		t.Errorf("plan: %v\n%s", err, out)
	}
	lab := plane.NamespacedKubeconfig("lab", "lab", plane.Certificate("lee", "berth-viewers"))
	if out, err := ask(lab, "plan", "-f", job); err != nil || contains(out, "Pod lab/p: fits") != nil {
		t.Errorf("plan in the namespace of the context: %v\n%s", err, out)
	}
	// Words of Berth and of the API server arrive as they are.
	out, err := ask(viewer, "explain", "pod", "default/none")
	if err == nil || contains(out, "berth: berth-system/berth: pod default/none is not known") != nil {
		t.Errorf("a pod that is not there: %v\n%s", err, out)
	}
	out, err = ask(plane.Kubeconfig("bob", plane.Certificate("bob")), "top")
	if err == nil || contains(out, `User "bob" cannot get resource "services/proxy"`) != nil ||
		contains(out, "; ask an administrator for the group berth-viewers") != nil {
		t.Errorf("somebody who may not: %v\n%s", err, out)
	}
	// The API server does not get through to Berth.
	berth.Kill()
	out, err = ask(viewer, "top")
	if err == nil || contains(out, "; a NetworkPolicy may keep the API server from Berth") != nil {
		t.Errorf("no way to Berth: %v\n%s", err, out)
	}
	plane.Kubectl("-n", "berth-system", "delete", "endpoints,endpointslices", "--all")
	harness.Eventually(t, "the Service to lead nowhere", 20*time.Second, func() error {
		out, _ := ask(viewer, "top")
		return contains(out, "; no pod of Berth leads there")
	})
}

// kubectlBerth is kubectl with the plugin, for the user of a kubeconfig, and a folder that is the user's home.
func kubectlBerth(t *testing.T) (folder string, ask func(user string, arguments ...string) (string, error)) {
	t.Helper()
	folder = t.TempDir()
	plugin := filepath.Join(folder, "kubectl-berth")
	if err := os.Symlink(harness.BerthBinary(), plugin); err != nil {
		t.Fatal(err)
	}
	path := "PATH=" + folder + ":" + filepath.Dir(harness.Binary(t, "kubectl")) + ":" + os.Getenv("PATH")
	return folder, func(user string, arguments ...string) (string, error) {
		command := exec.Command("kubectl", append([]string{"berth"}, arguments...)...)
		command.Env = append(os.Environ(), path, "KUBECONFIG="+user, "HOME="+folder)
		command.Path = harness.Binary(t, "kubectl")
		out, err := command.CombinedOutput()
		return string(out), err
	}
}

// addDebugService makes the Service of manifests/base lead to podAddress, as if a pod of Berth had it.
func addDebugService(t *testing.T, plane *harness.Plane) {
	t.Helper()
	services := plane.Client.CoreV1()
	service := &v1.Service{ObjectMeta: metav1.ObjectMeta{Name: "berth"}, Spec: v1.ServiceSpec{ClusterIP: "None",
		Ports: []v1.ServicePort{{Name: "debug", Port: 8889}}}}
	if _, err := services.Services("berth-system").Create(t.Context(), service, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	addPodOfBerth(t, plane)
}

// addPodOfBerth makes a pod berth-0 with podAddress, to which the Service berth leads.
func addPodOfBerth(t *testing.T, plane *harness.Plane) {
	t.Helper()
	services := plane.Client.CoreV1()
	pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "berth-0"}, Spec: v1.PodSpec{NodeName: "n1",
		Containers: []v1.Container{{Name: "berth", Image: "none"}}}}
	pod, err := services.Pods("berth-system").Create(t.Context(), pod, metav1.CreateOptions{})
	if err == nil {
		pod.Status.PodIP, pod.Status.PodIPs = podAddress, []v1.PodIP{{IP: podAddress}}
		_, err = services.Pods("berth-system").UpdateStatus(t.Context(), pod, metav1.UpdateOptions{})
	}
	if err != nil {
		t.Fatal(err)
	}
	reference := &v1.ObjectReference{Kind: "Pod", Namespace: "berth-system", Name: "berth-0"}
	//lint:ignore SA1019 what the API server's proxy reads before 1.37, which reads slices
	endpoints := &v1.Endpoints{ObjectMeta: metav1.ObjectMeta{Name: "berth"}, Subsets: []v1.EndpointSubset{{
		Addresses: []v1.EndpointAddress{{IP: podAddress, TargetRef: reference}}, Ports: []v1.EndpointPort{{Name: "debug", Port: 8889}}}}}
	if _, err := services.Endpoints("berth-system").Create(t.Context(), endpoints, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	name, port := "debug", int32(8889)
	slice := &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Name: "berth-0", Labels: map[string]string{discoveryv1.LabelServiceName: "berth"}},
		AddressType: discoveryv1.AddressTypeIPv4,
		Endpoints:   []discoveryv1.Endpoint{{Addresses: []string{podAddress}, TargetRef: reference}},
		Ports:       []discoveryv1.EndpointPort{{Name: &name, Port: &port}}}
	slices := plane.Client.DiscoveryV1().EndpointSlices("berth-system")
	if _, err := slices.Create(t.Context(), slice, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// execUser is who gets the certificate from a program, as kubeconfigs of clouds have it.
func execUser(t *testing.T, folder string, user api.AuthInfo) api.AuthInfo {
	t.Helper()
	text := func(file string) string {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		return string(content)
	}
	const version = "client.authentication.k8s.io/v1"
	credential, err := json.Marshal(map[string]any{"apiVersion": version, "kind": "ExecCredential", "status": map[string]string{
		"clientCertificateData": text(user.ClientCertificate), "clientKeyData": text(user.ClientKey)}})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(folder, "credential.json")
	if err := os.WriteFile(file, credential, 0o600); err != nil {
		t.Fatal(err)
	}
	return api.AuthInfo{Exec: &api.ExecConfig{APIVersion: version, Command: "cat", Args: []string{file},
		InteractiveMode: api.NeverExecInteractiveMode}}
}
