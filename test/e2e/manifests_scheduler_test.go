// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
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

// What the files name, and a test replaces.
const (
	shippedURL        = "http://berth.berth-system.svc:8888/"
	shippedTLSURL     = "https://berth.berth-system.svc:8888/"
	shippedKubeconfig = "/etc/kubernetes/scheduler.conf"
)

// makeCerts runs make-certs.sh as docs/install.md does, with a name for loopback.
func makeCerts(t *testing.T, plane *harness.Plane, action ...string) {
	t.Helper()
	command := exec.Command("manifests/components/mtls/make-certs.sh",
		append(action, "--dir", filepath.Join(plane.Dir, "certs"), "--san", "IP:127.0.0.1", "--apply")...)
	command.Env = append(os.Environ(), "KUBECONFIG="+plane.Admin,
		"PATH="+filepath.Dir(harness.Binary(t, "kubectl"))+":"+os.Getenv("PATH"))
	if out, err := command.CombinedOutput(); err != nil {
		t.Fatalf("make-certs.sh %v: %v\n%s", action, err, out)
	}
}

// mounted is a folder with the files of a Secret as it is now. They change together, as the kubelet does it: each file
// is a link into ..data, which is a link to the folder of the newest version.
func mounted(t *testing.T, plane *harness.Plane, secret string) string {
	t.Helper()
	got, err := plane.Client.CoreV1().Secrets("berth-system").Get(t.Context(), secret, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	folder := filepath.Join(plane.Dir, secret)
	version := ".." + got.ResourceVersion
	data := filepath.Join(folder, "..data")
	errs := []error{os.MkdirAll(filepath.Join(folder, version), 0o700)}
	for _, key := range secretKeys {
		errs = append(errs, os.WriteFile(filepath.Join(folder, version, key), got.Data[key], 0o600))
		if _, err := os.Lstat(filepath.Join(folder, key)); err != nil {
			errs = append(errs, os.Symlink(filepath.Join("..data", key), filepath.Join(folder, key)))
		}
	}
	errs = append(errs, os.Symlink(version, data+".new"), os.Rename(data+".new", data))
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	return folder
}

// certificates are the folders that make-certs.sh --apply fills in a cluster, by way of its Secrets.
func certificates(t *testing.T, plane *harness.Plane) (server, client string) {
	t.Helper()
	makeCerts(t, plane)
	return mounted(t, plane, "berth-server-tls"), mounted(t, plane, "berth-client-tls")
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
			[]string{shippedKubeconfig, own}},
		{"own-tls", "manifests/scheduler/kube-scheduler-config-tls.yaml", own, "kube-system/kube-scheduler",
			[]string{shippedKubeconfig, own, "/etc/kubernetes/berth/", certs + "/"}},
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
		shippedKubeconfig, kubeconfig, shippedURL, berth.URL+"/"), kubeconfig, "kube-system/kube-scheduler")

	plane.CreatePods(withAndWithoutGPUs("away")...)
	harness.Eventually(t, "the pod without GPUs to be placed", 30*time.Second, func() error {
		if pod := plane.Pod("away-no-gpu"); pod.Spec.NodeName == "" {
			return fmt.Errorf("it is not: %s", harness.WhyPending(pod))
		}
		return nil
	})
	// Nobody is evicted without Berth's consent, not even for a pod that asks for no GPU.
	fills := harness.Pod("fills-a-node", harness.Ask{v1.ResourceCPU: "95500m"})
	plane.CreatePods(fills)
	harness.Eventually(t, "one node to be full", 30*time.Second, func() error {
		if plane.Pod(fills.Name).Spec.NodeName == "" {
			return fmt.Errorf("the pod has no node")
		}
		return nil
	})
	high := harness.Pod("high", harness.Ask{v1.ResourceCPU: "96"})
	high.Spec.PriorityClassName = "high"
	plane.CreatePods(high)
	for _, name := range []string{"away-one-gpu", "away-share", "high"} {
		plane.WaitPending(name, 30*time.Second)
	}
	time.Sleep(5 * time.Second) // some more attempts
	for name, want := range map[string]bool{"away-no-gpu": true, fills.Name: true, "away-one-gpu": false, "away-share": false,
		"high": false} {
		if pod := plane.Pod(name); (pod.Spec.NodeName != "") != want || pod.DeletionTimestamp != nil {
			t.Errorf("%s: want a node: %v, got %q", name, want, pod.Spec.NodeName)
		}
	}
	plane.Kubectl("delete", "pod", "high", fills.Name)

	berth.Start()
	berth.WaitReady()
	plane.WaitBound(time.Minute)
	plane.CheckGrants()
}

// berthWithTLS starts the Berth of overlays/production; the harness asks its debug listener.
func berthWithTLS(t *testing.T, plane *harness.Plane, server, debug string) *harness.Berth {
	t.Helper()
	berth := plane.NewBerth("berth", plane.ServiceAccountKubeconfig("berth"),
		replaced(t, configOfBerth(t, render(t, "manifests/overlays/production")), "/etc/berth-tls/", server+"/", "0.0.0.0:8889", debug))
	berth.AskAt(debug)
	berth.Start()
	berth.WaitReady()
	return berth
}

func TestMutualTLSOfTheManifests(t *testing.T) {
	needBerth(t)
	plane := harness.NewPlane(t)
	plane.CreateNodes(2)
	plane.GrantBerth()
	server, client := certificates(t, plane)
	debug := harness.FreeAddress(t)
	berth := berthWithTLS(t, plane, server, debug)

	kubeconfig := schedulerKubeconfig(plane)
	plane.StartSchedulerWith("kube-scheduler", replaced(t, fileText(t, "manifests/scheduler/kube-scheduler-config-tls.yaml"),
		shippedKubeconfig, kubeconfig, "/etc/kubernetes/berth/", client+"/", shippedTLSURL, "https://"+berth.Listen+"/"),
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

// tlsClient believes in the CAs of a folder and shows a certificate, if any. It asks for the name of the Service.
func tlsClient(t *testing.T, folder string, shown ...tls.Certificate) *http.Client {
	t.Helper()
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM([]byte(fileText(t, filepath.Join(folder, "ca.crt")))) {
		t.Fatal("ca.crt cannot be read")
	}
	return &http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{DisableKeepAlives: true,
		TLSClientConfig: &tls.Config{RootCAs: roots, ServerName: "berth.berth-system.svc", Certificates: shown}}}
}

func certificate(t *testing.T, crt, key string) tls.Certificate {
	t.Helper()
	loaded, err := tls.LoadX509KeyPair(crt, key)
	if err != nil {
		t.Fatal(err)
	}
	return loaded
}

// schedulerAsOf is a client with the files that are in the folder now, whatever comes into it later: kube-scheduler
// reads them at its start.
func schedulerAsOf(t *testing.T, folder string) *http.Client {
	t.Helper()
	return tlsClient(t, folder, certificate(t, filepath.Join(folder, "tls.crt"), filepath.Join(folder, "tls.key")))
}

// The steps of "a new CA" in docs/tls.md; in between, each client that was restarted as they say is answered.
func TestCertificatesAreRenewedAsTheGuideSays(t *testing.T) {
	needBerth(t)
	plane := harness.NewPlane(t)
	plane.GrantBerth()
	server, client := certificates(t, plane)
	berth := berthWithTLS(t, plane, server, harness.FreeAddress(t))
	health := "https://" + berth.Listen + "/healthz"
	first := schedulerAsOf(t, client)
	scheduler := first
	for i, step := range [][]string{{"--new-ca"}, {}, {"--drop-old-ca"}} {
		makeCerts(t, plane, step...)
		mounted(t, plane, "berth-server-tls")
		harness.Eventually(t, "Berth to read the files", time.Minute, func() error {
			if got := strings.Count(berth.Log(), "certificate_reloaded"); got != i+1 {
				return fmt.Errorf("it did %d times, want %d", got, i+1)
			}
			return nil
		})
		if got := status(t, scheduler, http.MethodGet, health); got != 200 {
			t.Errorf("step %v, scheduler not restarted: %d", step, got)
		}
		mounted(t, plane, "berth-client-tls")
		scheduler = schedulerAsOf(t, client)
		if got := status(t, scheduler, http.MethodGet, health); got != 200 {
			t.Errorf("step %v, scheduler restarted: %d", step, got)
		}
	}
	if response, err := first.Get(health); err == nil {
		response.Body.Close()
		t.Error("the old certificate is still good")
	}
	if contains(berth.Log(), "certificate_refused") == nil {
		t.Error("Berth refused a certificate")
	}
}

// wantTLSAlone checks that only who has a certificate of make-certs.sh is answered, and by the name of the Service.
func wantTLSAlone(t *testing.T, plane *harness.Plane, berth *harness.Berth, folder string) {
	t.Helper()
	// The cluster's own CA: every kubelet has a certificate of it.
	kubelet := plane.CA.Issue(t, "system:node:node-0000", "system:nodes")
	for _, c := range []struct {
		name, url string
		shown     []tls.Certificate
		answered  bool
	}{
		{"certificate of make-certs.sh", "https://",
			[]tls.Certificate{certificate(t, filepath.Join(folder, "tls.crt"), filepath.Join(folder, "tls.key"))}, true},
		{"no certificate", "https://", nil, false},
		{"certificate of the cluster", "https://", []tls.Certificate{certificate(t, kubelet.CertFile, kubelet.KeyFile)}, false},
		{"no TLS", "http://", nil, false},
	} {
		client := tlsClient(t, folder, c.shown...)
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
