// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// Kustomize is what `kubectl apply -k folder` would apply.
func Kustomize(t T, folder string) []unstructured.Unstructured {
	t.Helper()
	command := exec.Command(Binary(t, "kubectl"), "kustomize", folder)
	var errors strings.Builder
	command.Stderr = &errors
	text, err := command.Output()
	if err != nil || errors.Len() > 0 { // it warns of fields that will go
		t.Fatalf("kubectl kustomize %s: %v\n%s", folder, err, errors.String())
	}
	objects, err := decodeObjects(string(text))
	if err != nil {
		t.Fatalf("kubectl kustomize %s: %v", folder, err)
	}
	return objects
}

func decodeObjects(text string) ([]unstructured.Unstructured, error) {
	var objects []unstructured.Unstructured
	decoder := utilyaml.NewYAMLOrJSONDecoder(strings.NewReader(text), 4096)
	for {
		var object unstructured.Unstructured
		if err := decoder.Decode(&object.Object); errors.Is(err, io.EOF) {
			return objects, nil
		} else if err != nil {
			return nil, err
		}
		if len(object.Object) > 0 {
			objects = append(objects, object)
		}
	}
}

// AddBerthNamespace creates the namespace of the manifests, as the first step of docs/install.md does.
func (p *Plane) AddBerthNamespace() {
	p.T.Helper()
	p.Kubectl("apply", "-f", "manifests/base/namespace.yaml")
}

// ServiceAccountKubeconfig is a kubeconfig with a token of this service account of the manifests: what a pod of it is
// to the API server.
func (p *Plane) ServiceAccountKubeconfig(name string) string {
	p.T.Helper()
	request, err := p.Client.CoreV1().ServiceAccounts(berthNamespace).CreateToken(background(), name,
		&authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		p.T.Fatalf("token of %s: %v", name, err)
	}
	return p.kubeconfig("service-account-"+name, clientcmdapi.Cluster{Server: p.URL(), CertificateAuthority: p.CA.File},
		berthNamespace, clientcmdapi.AuthInfo{Token: request.Status.Token})
}

// AskAt is for a Berth that answers the harness somewhere else than at its --listen: there, in plain HTTP.
func (b *Berth) AskAt(listen string) {
	b.URL = "http://" + listen
	b.client = http.DefaultClient
}

// FreeAddress is HOST:PORT on loopback that nobody listens on.
func FreeAddress(t T) string {
	t.Helper()
	return address(FreePort(t))
}

// StartSchedulerWith starts kube-scheduler with a configuration as it is, and waits until it is ready and, where
// lease names one ("" for none; NAMESPACE/NAME), leads. kubeconfig is how it checks who asks it.
func (p *Plane) StartSchedulerWith(name, configuration, kubeconfig, lease string) *Process {
	p.T.Helper()
	file := p.file(name + ".yaml")
	if err := os.WriteFile(file, []byte(configuration), 0o600); err != nil {
		p.T.Fatalf("%v", err)
	}
	asked := &Scheduler{plane: p, port: FreePort(p.T)}
	asked.Process = StartProcess(p.T, p.Dir, name, Binary(p.T, "kube-scheduler"), "--config="+file,
		"--bind-address=127.0.0.1", fmt.Sprintf("--secure-port=%d", asked.port),
		"--authentication-kubeconfig="+kubeconfig, "--authorization-kubeconfig="+kubeconfig)
	Eventually(p.T, name+" to be ready and to lead", 30*time.Second, func() error {
		if !asked.Running() {
			p.T.Fatalf("%s ended: %s", name, asked.State())
		}
		if err := asked.ready(); err != nil || lease == "" {
			return err
		}
		return p.held(lease)
	})
	return asked.Process
}

// held is nil once somebody holds the lease NAMESPACE/NAME.
func (p *Plane) held(lease string) error {
	namespace, name, _ := strings.Cut(lease, "/")
	got, err := p.Client.CoordinationV1().Leases(namespace).Get(background(), name, metav1.GetOptions{})
	if err == nil && (got.Spec.HolderIdentity == nil || *got.Spec.HolderIdentity == "") {
		err = fmt.Errorf("nobody holds %s", lease)
	}
	return err
}
