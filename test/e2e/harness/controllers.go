// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Controller is a controller of somebody else that makes pods, and how it is run.
type Controller struct {
	// Name is its folder below BERTH_E2E_CONTROLLERS: its program and, in config, what it has applied to a cluster.
	Name string
	// Config is its configuration file without what all have (controllerConfig).
	Config string
	// CRDs and Webhooks are folders of config for kustomize.
	CRDs, Webhooks string
	// FindsCertificates is a folder that it wants to find its certificate in, whatever Config says; "" for none.
	FindsCertificates string
}

// ControllersMissing says why those controllers cannot be run; empty when they can.
func ControllersMissing() string {
	if os.Getenv("BERTH_E2E_CONTROLLERS") == "" {
		return "JobSet, LWS and Kueue are not built: make e2e-controllers builds them and runs this test"
	}
	return ""
}

const controllerConfig = `
kind: Configuration
webhook: %s
health: {healthProbeBindAddress: %q}
metrics: {bindAddress: "0"}
leaderElection: {leaderElect: false}
internalCertManagement: {enable: false}
`

// StartController applies what a controller needs, starts it and waits until its webhooks answer.
func (p *Plane) StartController(c Controller) *Process {
	p.T.Helper()
	folder := filepath.Join(os.Getenv("BERTH_E2E_CONTROLLERS"), c.Name)
	certificates := p.file(c.Name + "-certificates")
	if err := os.MkdirAll(certificates, 0o755); err != nil {
		p.T.Fatalf("%v", err)
	}
	authority := NewAuthority(p.T, certificates, "ca")
	authority.Issue(p.T, "tls")
	webhook, probe := FreePort(p.T), FreePort(p.T)
	config := p.file(c.Name + ".yaml")
	webhooks := fmt.Sprintf("{host: 127.0.0.1, port: %d, certDir: %q}", webhook, certificates)
	writeFile(p.T, config, fmt.Appendf([]byte(c.Config), controllerConfig, webhooks, address(probe)))

	var objects []unstructured.Unstructured
	for _, kustomization := range []string{c.CRDs, c.Webhooks} {
		objects = append(objects, Kustomize(p.T, filepath.Join(folder, "config", kustomization))...)
	}
	objects = slices.DeleteFunc(objects, func(object unstructured.Unstructured) bool { return object.GetKind() == "Service" })
	p.applyWebhooks(c.Name, objects, "https://"+address(webhook), authority.File)

	kubeconfig := p.Kubeconfig(c.Name, p.Certificate(c.Name, "system:masters"))
	command := []string{filepath.Join(folder, c.Name), "--config=" + config}
	if c.FindsCertificates != "" {
		command = withFolder(p.T, c.FindsCertificates, certificates, command)
	}
	process := StartProcess(p.T, p.Dir, c.Name, "/usr/bin/env",
		append([]string{"KUBECONFIG=" + kubeconfig, "POD_NAMESPACE=default"}, command...)...)
	Eventually(p.T, c.Name+" to be ready", time.Minute, func() error {
		if !process.Running() {
			p.T.Fatalf("%s ended: %s", c.Name, process.State())
		}
		connection, err := net.Dial("tcp", address(webhook))
		if err == nil {
			err = errors.Join(connection.Close(), okAt(http.DefaultClient, "http://"+address(probe)+"/readyz"))
		}
		return err
	})
	return process
}

// applyWebhooks applies objects whose webhooks are served at url.
func (p *Plane) applyWebhooks(name string, objects []unstructured.Unstructured, url, caFile string) {
	p.T.Helper()
	ca, err := os.ReadFile(caFile)
	if err != nil {
		p.T.Fatalf("%v", err)
	}
	var text []byte
	for _, object := range objects {
		leadTo(object.Object, url, base64.StdEncoding.EncodeToString(ca))
		if strings.HasSuffix(object.GetKind(), "WebhookConfiguration") {
			object.SetName(name + "-" + object.GetName())
		}
		json, err := object.MarshalJSON()
		if err != nil {
			p.T.Fatalf("%v", err)
		}
		text = fmt.Appendf(text, "%s\n---\n", json)
	}
	file := p.file(name + "-objects.yaml")
	writeFile(p.T, file, text)
	p.Kubectl("apply", "--server-side", "--filename="+file)
	for _, object := range objects {
		if object.GetKind() == "CustomResourceDefinition" {
			p.waitServed(object)
		}
	}
}

// waitServed waits until the API server serves the versions of a definition.
func (p *Plane) waitServed(definition unstructured.Unstructured) {
	p.T.Helper()
	group, _, _ := unstructured.NestedString(definition.Object, "spec", "group")
	plural, _, _ := unstructured.NestedString(definition.Object, "spec", "names", "plural")
	versions, _, _ := unstructured.NestedSlice(definition.Object, "spec", "versions")
	for _, version := range versions {
		fields, _ := version.(map[string]any)
		path := fmt.Sprintf("/apis/%s/%s/%s", group, fields["name"], plural)
		if fields["served"] == true {
			Eventually(p.T, path+" to be served", 30*time.Second, func() error { return p.get(path) })
		}
	}
}

// leadTo makes each clientConfig in value, which names a Service, one that names url.
func leadTo(value any, url, ca string) {
	switch value := value.(type) {
	case []any:
		for _, item := range value {
			leadTo(item, url, ca)
		}
	case map[string]any:
		for key, item := range value {
			config, _ := item.(map[string]any)
			if service, is := config["service"].(map[string]any); is && key == "clientConfig" {
				value[key] = map[string]any{"url": fmt.Sprint(url, service["path"]), "caBundle": ca}
				continue
			}
			leadTo(item, url, ca)
		}
	}
}

// withFolder has command find the files of from in folder, below /etc, where nobody else sees them.
func withFolder(t T, folder, from string, command []string) []string {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Fatalf("a file system that one process sees: root is needed")
	}
	const script = `mount -t tmpfs none /etc && mkdir -p "$0" && cp "$1"/tls.* "$0" && shift && exec "$@"`
	return slices.Concat([]string{"unshare", "--mount", "sh", "-c", script, folder, from}, command)
}
