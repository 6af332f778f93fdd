// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	configv1 "k8s.io/kube-scheduler/config/v1"
	"sigs.k8s.io/yaml"
)

// Berth is a `berth serve` process in front of a control plane.
type Berth struct {
	*Process
	// Listen is HOST:PORT, the same whenever it is started, and URL the same with http:// in front.
	Listen, URL string
	// ConfigFile is the file of its BerthConfiguration.
	ConfigFile string
	// Env is what it finds in its environment beside ours: NAME=VALUE.
	Env []string

	plane  *Plane
	name   string
	args   []string
	client *http.Client
}

// BerthBinary is $BERTH_BIN/berth.
func BerthBinary() string { return filepath.Join(os.Getenv("BERTH_BIN"), "berth") }

// BerthMissing says why Berth cannot be run in front of an API server; empty when it can.
func BerthMissing() string {
	help, err := exec.Command(BerthBinary(), "serve", "--help").CombinedOutput()
	if err != nil {
		return fmt.Sprintf("BERTH_BIN=%q: %v", os.Getenv("BERTH_BIN"), err)
	}
	if !strings.Contains(string(help), "--kubeconfig") {
		return "this berth has no --kubeconfig"
	}
	return ""
}

// NewBerth prepares a Berth that talks to the API server with kubeconfig; config is a BerthConfiguration, or what
// follows its apiVersion and kind. It is not started.
func (p *Plane) NewBerth(name, kubeconfig, config string) *Berth {
	p.T.Helper()
	listen := address(FreePort(p.T))
	b := &Berth{Listen: listen, URL: "http://" + listen, ConfigFile: p.file(name + "-config/berth.yaml"), plane: p, name: name,
		client: http.DefaultClient}
	b.WriteConfig(config)
	b.args = []string{"serve", "--config", b.ConfigFile, "--kubeconfig", kubeconfig, "--listen", listen}
	return b
}

// WriteConfig replaces the configuration as the kubelet does with a mounted ConfigMap: the file is a link to
// ..data/berth.yaml, ..data is a link to the folder of the newest version, and that link is renamed into place.
func (b *Berth) WriteConfig(config string) {
	b.plane.T.Helper()
	if !strings.Contains(config, "apiVersion:") {
		config = "apiVersion: berth.dev/v1alpha1\nkind: BerthConfiguration\n" + config
	}
	folder := filepath.Dir(b.ConfigFile)
	version := "..version-" + strconv.FormatInt(time.Now().UnixNano(), 10)
	data := filepath.Join(folder, "..data")
	errs := []error{
		os.MkdirAll(filepath.Join(folder, version), 0o755),
		os.WriteFile(filepath.Join(folder, version, "berth.yaml"), []byte(config), 0o600),
		os.Symlink(version, data+".new"),
		os.Rename(data+".new", data),
	}
	if _, err := os.Lstat(b.ConfigFile); err != nil {
		errs = append(errs, os.Symlink("..data/berth.yaml", b.ConfigFile))
	}
	if err := errors.Join(errs...); err != nil {
		b.plane.T.Fatalf("%v", err)
	}
}

// StartBerth starts a Berth as BerthUser, with the rights of GrantBerth, and waits until it can decide.
func (p *Plane) StartBerth(config string) *Berth {
	p.T.Helper()
	p.GrantBerth()
	b := p.NewBerth("berth", p.BerthKubeconfig(p.URL(), p.Token()), config)
	b.Start()
	b.WaitReady()
	return b
}

// ExpectTLS is for a Berth whose configuration has a certificate of ca and asks for one: URL is https:// from now on,
// and the harness shows client.
func (b *Berth) ExpectTLS(ca *Authority, client KeyPair) {
	b.plane.T.Helper()
	pair, err := tls.LoadX509KeyPair(client.CertFile, client.KeyFile)
	if err != nil {
		b.plane.T.Fatalf("%v", err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(ca.cert)
	b.URL = "https://" + b.Listen
	b.client = &http.Client{Transport: &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: roots, Certificates: []tls.Certificate{pair}}}}
}

// Start starts the process, also again after Kill or Stop: same port, same place.
func (b *Berth) Start() {
	b.plane.T.Helper()
	place := b.plane.file(b.name + "-run")
	if err := os.MkdirAll(place, 0o700); err != nil {
		b.plane.T.Fatalf("%v", err)
	}
	env := append([]string{"BERTH_RUNTIME_DIR=" + place}, b.Env...)
	b.Process = StartProcess(b.plane.T, b.plane.Dir, b.name, "/usr/bin/env",
		slices.Concat(env, []string{BerthBinary()}, b.args)...)
}

// WaitReady waits until Berth has seen the cluster.
func (b *Berth) WaitReady() {
	b.plane.T.Helper()
	Eventually(b.plane.T, b.name+" to be ready", 30*time.Second, func() error {
		if !b.Running() {
			b.plane.T.Fatalf("%s ended: %s", b.name, b.State())
		}
		return b.Ready()
	})
}

// Ready is nil when Berth can decide, else why it cannot.
func (b *Berth) Ready() error { return okAt(b.client, b.URL+"/readyz") }

// Page is what Berth shows at a path.
func (b *Berth) Page(path string) string {
	b.plane.T.Helper()
	response, err := b.client.Get(b.URL + path)
	if err != nil {
		b.plane.T.Fatalf("%v", err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		b.plane.T.Fatalf("%s: %s %v", path, response.Status, err)
	}
	return string(text)
}

// Metrics is what /metrics shows.
func (b *Berth) Metrics() string { return b.Page("/metrics") }

// Metric is the sum of a metric over its labels; 0 where it is not there.
func (b *Berth) Metric(name string) float64 {
	b.plane.T.Helper()
	sum := 0.0
	for line := range strings.Lines(b.Metrics()) {
		rest, found := strings.CutPrefix(strings.TrimSpace(line), name)
		if found && (strings.HasPrefix(rest, "{") || strings.HasPrefix(rest, " ")) {
			value, _ := strconv.ParseFloat(rest[strings.LastIndexByte(rest, ' ')+1:], 64)
			sum += value
		}
	}
	return sum
}

// Planned are the pods that have a place by the plan of their gang and are not bound, with their nodes.
func (b *Berth) Planned() map[string]string {
	b.plane.T.Helper()
	var snapshot struct {
		Pods []struct{ Name, Node, State string } `json:"pods"`
	}
	if err := json.Unmarshal([]byte(b.Page("/debug/snapshot")), &snapshot); err != nil {
		b.plane.T.Fatalf("/debug/snapshot: %v", err)
	}
	planned := map[string]string{}
	for _, pod := range snapshot.Pods {
		if pod.State == "planned" {
			planned[pod.Name] = pod.Node
		}
	}
	return planned
}

// shippedConfig is what the documentation has users give kube-scheduler; run.sh and program.sh run everything at the top of the tree.
const shippedConfig = "manifests/scheduler/kube-scheduler-config.yaml"

// ShippedExtenders are the stanzas of manifests/scheduler, pointed at url.
func ShippedExtenders(t T, url string) []configv1.Extender {
	t.Helper()
	text, err := os.ReadFile(shippedConfig)
	if err != nil {
		t.Fatalf("%v", err)
	}
	var config configv1.KubeSchedulerConfiguration
	if err := yaml.Unmarshal(text, &config); err != nil {
		t.Fatalf("%s: %v", shippedConfig, err)
	}
	for i := range config.Extenders {
		config.Extenders[i].URLPrefix = url + "/extender"
	}
	return config.Extenders
}
