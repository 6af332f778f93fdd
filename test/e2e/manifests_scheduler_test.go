// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"berth.dev/e2e/harness"
)

// replaced is text with what only a cluster has put in its place: old, new, old, new, ... Each old has to be there, or
// the test would run something else than what is shipped.
func replaced(t *testing.T, text string, oldNew ...string) string {
	t.Helper()
	for i := 0; i < len(oldNew); i += 2 {
		if err := contains(text, oldNew[i]); err != nil {
			t.Fatal(err)
		}
	}
	return strings.NewReplacer(oldNew...).Replace(text)
}

func fileText(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// The addresses in the files; the rest of the name of the Service is its namespace.
const (
	shippedURL     = "http://berth.berth-system.svc:8888/"
	shippedTLSURL  = "https://berth.berth-system.svc:8888/"
	shippedKubecfg = "/etc/kubernetes/scheduler.conf"
)

// certificates are the folders that make-certs.sh --apply fills in a cluster, by way of its Secrets.
func certificates(t *testing.T, plane *harness.Plane) (server, client string) {
	t.Helper()
	command := exec.Command("manifests/components/mtls/make-certs.sh", "--dir", filepath.Join(plane.Dir, "certs"),
		"--san", "IP:127.0.0.1", "--apply")
	command.Env = append(os.Environ(), "KUBECONFIG="+plane.Admin,
		"PATH="+filepath.Dir(harness.Binary(t, "kubectl"))+":"+os.Getenv("PATH"))
	if out, err := command.CombinedOutput(); err != nil {
		t.Fatalf("make-certs.sh: %v\n%s", err, out)
	}
	return mounted(t, plane, "berth-server-tls"), mounted(t, plane, "berth-client-tls")
}

// mounted is a folder with the files of a Secret, as the kubelet makes it.
func mounted(t *testing.T, plane *harness.Plane, secret string) string {
	t.Helper()
	got, err := plane.Client.CoreV1().Secrets("berth-system").Get(t.Context(), secret, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	folder := filepath.Join(plane.Dir, secret)
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, key := range secretKeys {
		if err := os.WriteFile(filepath.Join(folder, key), got.Data[key], 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return folder
}

func schedulerKubeconfig(plane *harness.Plane) string {
	return plane.Kubeconfig("scheduler", plane.Certificate("system:kube-scheduler"))
}

func TestSchedulerConfigurationsAreLoaded(t *testing.T) {
	plane := harness.NewPlane(t)
	plane.AddBerthNamespace()
	plane.Kubectl("apply", "-k", "manifests/overlays/kind") // the second scheduler's rights
	_, certs := certificates(t, plane)
	own := schedulerKubeconfig(plane)
	second := plane.ServiceAccountKubeconfig("berth-scheduler")
	for _, c := range []struct {
		name, file, kubeconfig, lease string
		oldNew                        []string
	}{
		{"own", "manifests/scheduler/kube-scheduler-config.yaml", own, "kube-system/kube-scheduler",
			[]string{shippedKubecfg, own}},
		{"own-tls", "manifests/scheduler/kube-scheduler-config-tls.yaml", own, "kube-system/kube-scheduler",
			[]string{shippedKubecfg, own, "/etc/kubernetes/berth/", certs + "/"}},
		{"second", "manifests/components/second-scheduler/config.yaml", second, "berth-system/berth-scheduler",
			asPod(second)},
		{"second-tls", "manifests/components/second-scheduler/config-tls.yaml", second, "berth-system/berth-scheduler",
			append(asPod(second), "/etc/berth-client-tls/", certs+"/")},
	} {
		scheduler := plane.StartSchedulerWith(c.name, replaced(t, fileText(t, c.file), c.oldNew...), c.kubeconfig, c.lease)
		if err := contains(strings.ToLower(scheduler.Log()), "forbidden"); err == nil {
			t.Errorf("%s lacks rights:\n%s", c.name, scheduler.Log())
		}
		scheduler.Stop()
		namespace, name, _ := strings.Cut(c.lease, "/")
		plane.Kubectl("delete", "lease", "--namespace="+namespace, name) // else the next one waits for it to run out
	}
}

// asPod is for a configuration that is read in a pod, where kube-scheduler needs no kubeconfig.
func asPod(kubeconfig string) []string {
	return []string{"\nleaderElection:\n", "\nclientConnection:\n  kubeconfig: " + kubeconfig + "\nleaderElection:\n"}
}

func TestWhileBerthIsAwayOnlyGPUPodsWait(t *testing.T) {
	needBerth(t)
	plane := harness.NewPlane(t)
	plane.CreateNodes(2)
	plane.AddPriorityClass("high", 1000)
	plane.GrantBerth()
	berth := plane.NewBerth("berth", plane.ServiceAccountKubeconfig("berth"), "")
	kubeconfig := schedulerKubeconfig(plane)
	plane.StartSchedulerWith("kube-scheduler", replaced(t, fileText(t, "manifests/scheduler/kube-scheduler-config.yaml"),
		shippedKubecfg, kubeconfig, shippedURL, berth.URL+"/"), kubeconfig, "kube-system/kube-scheduler")

	plane.CreatePods(withAndWithoutGPUs("away")...)
	harness.Eventually(t, "the pod without GPUs to be placed", 30*time.Second, func() error {
		if pod := plane.Pod("away-no-gpu"); pod.Spec.NodeName == "" {
			return fmt.Errorf("it is not: %s", harness.WhyPending(pod))
		}
		return nil
	})
	// Its room would be taken from pods without GPUs; even so nobody is evicted without Berth's consent.
	high := harness.Pod("high", harness.Ask{v1.ResourceCPU: "96"})
	high.Spec.PriorityClassName = "high"
	second := harness.Pod("other-node", harness.Ask{v1.ResourceCPU: "95"})
	plane.CreatePods(second)
	harness.Eventually(t, "both nodes to be used", 30*time.Second, func() error {
		if plane.Pod("other-node").Spec.NodeName == "" {
			return fmt.Errorf("it has no node")
		}
		return nil
	})
	plane.CreatePods(high)
	for _, name := range []string{"away-one-gpu", "away-share", "high"} {
		plane.WaitPending(name, 30*time.Second)
	}
	time.Sleep(5 * time.Second) // some more attempts
	for name, want := range map[string]bool{"away-no-gpu": true, "other-node": true, "away-one-gpu": false, "away-share": false,
		"high": false} {
		if pod := plane.Pod(name); (pod.Spec.NodeName != "") != want || pod.DeletionTimestamp != nil {
			t.Errorf("%s: want a node: %v, got %q", name, want, pod.Spec.NodeName)
		}
	}
	plane.Kubectl("delete", "pod", "high", "other-node")

	berth.Start()
	berth.WaitReady()
	plane.WaitBound(time.Minute)
	plane.CheckGrants()
}

func TestMutualTLSOfTheManifests(t *testing.T) {
	needBerth(t)
	plane := harness.NewPlane(t)
	plane.CreateNodes(2)
	plane.GrantBerth()
	server, client := certificates(t, plane)
	debug := harness.FreeAddress(t)
	berth := plane.NewBerth("berth", plane.ServiceAccountKubeconfig("berth"),
		replaced(t, configOfBerth(t, render(t, "manifests/overlays/production")), "/etc/berth-tls/", server+"/", "0.0.0.0:8889", debug))
	berth.AskAt(debug)
	berth.Start()
	berth.WaitReady()

	kubeconfig := schedulerKubeconfig(plane)
	plane.StartSchedulerWith("kube-scheduler", replaced(t, fileText(t, "manifests/scheduler/kube-scheduler-config-tls.yaml"),
		shippedKubecfg, kubeconfig, "/etc/kubernetes/berth/", client+"/", shippedTLSURL, "https://"+berth.Listen+"/"),
		kubeconfig, "kube-system/kube-scheduler")
	plane.CreatePods(withAndWithoutGPUs("pod")...)
	plane.WaitBound(30 * time.Second)
	plane.CheckGrants()

	wantPlainOnDebugListener(t, debug)
	wantTLSAlone(t, plane, berth, client)
	if berth.Metric("berth_http_tls_failures_total") == 0 {
		t.Error("no TLS failure was counted")
	}
}

// Where anybody in the cluster may be let in, nothing can be decided or bound.
func wantPlainOnDebugListener(t *testing.T, debug string) {
	t.Helper()
	for path, want := range map[string]int{"/readyz": 200, "/healthz": 200, "/metrics": 200, "/version": 200,
		"/debug/snapshot": 200, "/": 200} {
		if got := status(t, http.DefaultClient, http.MethodGet, "http://"+debug+path); got != want {
			t.Errorf("GET %s: want %d, got %d", path, want, got)
		}
	}
	for _, verb := range []string{"filter", "prioritize", "preempt", "bind"} {
		if got := status(t, http.DefaultClient, http.MethodPost, "http://"+debug+"/extender/"+verb); got != 404 {
			t.Errorf("POST %s: want 404, got %d", verb, got)
		}
	}
}

func status(t *testing.T, client *http.Client, method, url string) int {
	t.Helper()
	request, err := http.NewRequest(method, url, strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	response, err := client.Do(request)
	if err != nil {
		t.Errorf("%s: %v", url, err)
		return 0
	}
	response.Body.Close()
	return response.StatusCode
}

// wantTLSAlone checks that only who has a certificate of make-certs.sh is answered, and by the name of the Service.
func wantTLSAlone(t *testing.T, plane *harness.Plane, berth *harness.Berth, folder string) {
	t.Helper()
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM([]byte(fileText(t, filepath.Join(folder, "ca.crt")))) {
		t.Fatal("ca.crt cannot be read")
	}
	pair := func(crt, key string) []tls.Certificate {
		certificate, err := tls.LoadX509KeyPair(crt, key)
		if err != nil {
			t.Fatal(err)
		}
		return []tls.Certificate{certificate}
	}
	// The cluster's own CA: every kubelet has a certificate of it.
	kubelet := plane.CA.Issue(t, "system:node:node-0000", "system:nodes")
	for _, c := range []struct {
		name, url string
		shown     []tls.Certificate
		answered  bool
	}{
		{"certificate of make-certs.sh", "https://", pair(filepath.Join(folder, "tls.crt"), filepath.Join(folder, "tls.key")), true},
		{"no certificate", "https://", nil, false},
		{"certificate of the cluster", "https://", pair(kubelet.CertFile, kubelet.KeyFile), false},
		{"no TLS", "http://", nil, false},
	} {
		client := &http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{DisableKeepAlives: true,
			TLSClientConfig: &tls.Config{RootCAs: roots, ServerName: "berth.berth-system.svc", Certificates: c.shown}}}
		for _, path := range []string{"/healthz", "/extender/filter", "/debug/snapshot"} {
			response, err := client.Get(c.url + berth.Listen + path)
			if err == nil {
				response.Body.Close()
			}
			if (err == nil) != c.answered {
				t.Errorf("%s, %s: answered %v, want %v (%v)", c.name, path, err == nil, c.answered, err)
			}
			if err == nil && path == "/debug/snapshot" && response.StatusCode != 404 {
				t.Errorf("%s: the debug listener has %s, and so has this one: %s", c.name, path, response.Status)
			}
		}
	}
}
