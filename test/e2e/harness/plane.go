// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// Plane is a control plane of one test: etcd and kube-apiserver, and what is started in front of them.
type Plane struct {
	T      T
	Dir    string
	Client kubernetes.Interface
	// Admin is the kubeconfig of a member of system:masters.
	Admin string
	CA    *Authority

	Etcd, APIServer *Process
	// SchedulerFlags are given to each kube-scheduler beside its own.
	SchedulerFlags []string

	apiServerFlags    []string
	etcdPort, apiPort int
}

// Binary is a program of the control plane (BERTH_E2E_BINARIES names their folder), or one built with this one.
func Binary(t T, name string) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatalf("%v", err)
	}
	folder := os.Getenv("BERTH_E2E_BINARIES")
	for _, candidate := range []string{filepath.Join(filepath.Dir(self), name), filepath.Join(folder, name)} {
		if _, err := os.Stat(candidate); err == nil {
			return candidate
		}
	}
	t.Fatalf("no %s in BERTH_E2E_BINARIES=%q; `make e2e-binaries` builds it and prints the folder", name, folder)
	return ""
}

// KubernetesVersion is that of the control plane, as in "1.37.2".
func KubernetesVersion(t T) string {
	t.Helper()
	out, err := exec.Command(Binary(t, "kube-apiserver"), "--version").Output()
	version, found := strings.CutPrefix(strings.TrimSpace(string(out)), "Kubernetes v")
	if err != nil || !found {
		t.Fatalf("kube-apiserver --version: %v %q", err, out)
	}
	return version
}

// APIServiceIP is the address of the Service `kubernetes`, which pods find in KUBERNETES_SERVICE_HOST; nobody listens there
// but where a test does.
const APIServiceIP = "10.0.0.1"

// NewPlane starts etcd and the API server, with these flags beside its own, and waits until they answer. Admission that
// --enable-admission-plugins names is on.
func NewPlane(t T, apiServerFlags ...string) *Plane {
	t.Helper()
	dir := t.TempDir()
	p := &Plane{T: t, Dir: dir, CA: NewAuthority(t, dir, "ca"), apiServerFlags: apiServerFlags, etcdPort: FreePort(t), apiPort: FreePort(t)}
	p.CA.Issue(t, "apiserver")
	writeKey(t, p.file("service-account.key"), newKey(t))
	writeFile(t, p.file("tokens.csv"), []byte(tokenFile))
	p.startEtcd()
	p.Admin = p.Kubeconfig("admin", p.Certificate("admin", "system:masters"))
	p.Client = p.clientOf(p.Admin)
	p.StartAPIServer()
	return p
}

// URL is where the API server listens.
func (p *Plane) URL() string { return "https://" + p.Address() }

// Address is HOST:PORT of the API server.
func (p *Plane) Address() string { return address(p.apiPort) }

func (p *Plane) file(name string) string { return filepath.Join(p.Dir, name) }

func (p *Plane) startEtcd() {
	p.T.Helper()
	client := "http://" + address(p.etcdPort)
	peer := "http://" + address(FreePort(p.T))
	p.Etcd = StartProcess(p.T, p.Dir, "etcd", Binary(p.T, "etcd"),
		"--data-dir="+p.file("etcd"), "--unsafe-no-fsync", "--log-level=warn",
		"--listen-client-urls="+client, "--advertise-client-urls="+client,
		"--listen-peer-urls="+peer, "--initial-advertise-peer-urls="+peer, "--initial-cluster=default="+peer)
}

// Admission that needs controllers which are not here, or that costs time and concerns nothing under test.
// TaintNodesByCondition would taint every new node until a controller takes the taint away.
var admissionOff = []string{
	"CertificateApproval", "CertificateSigning", "CertificateSubjectRestriction", "DefaultIngressClass",
	"DefaultStorageClass", "DefaultTolerationSeconds", "LimitRanger", "MutatingAdmissionPolicy",
	"PersistentVolumeClaimResize", "PodSecurity", "ResourceQuota", "RuntimeClass", "ServiceAccount",
	"StorageObjectInUseProtection", "TaintNodesByCondition",
}

// disabled are those of admissionOff that the flags do not ask for.
func (p *Plane) disabled() string {
	asked := ""
	for _, flag := range p.apiServerFlags {
		if names, found := strings.CutPrefix(flag, "--enable-admission-plugins="); found {
			asked = names
		}
	}
	return strings.Join(slices.DeleteFunc(slices.Clone(admissionOff), func(name string) bool {
		return slices.Contains(strings.Split(asked, ","), name)
	}), ",")
}

// StartAPIServer starts kube-apiserver, also again after StopAPIServer: same port, same data.
func (p *Plane) StartAPIServer() {
	p.T.Helper()
	key := p.file("service-account.key")
	p.APIServer = StartProcess(p.T, p.Dir, "kube-apiserver", Binary(p.T, "kube-apiserver"), append(p.apiServerFlags,
		"--etcd-servers=http://"+address(p.etcdPort),
		"--bind-address=127.0.0.1", fmt.Sprintf("--secure-port=%d", p.apiPort), "--endpoint-reconciler-type=none",
		"--tls-cert-file="+p.file("apiserver.crt"), "--tls-private-key-file="+p.file("apiserver.key"),
		"--client-ca-file="+p.CA.File, "--token-auth-file="+p.file("tokens.csv"), "--authorization-mode=RBAC",
		"--service-account-issuer=https://kubernetes.default.svc", "--service-account-key-file="+key,
		"--service-account-signing-key-file="+key, "--service-cluster-ip-range=10.0.0.0/24",
		"--disable-admission-plugins="+p.disabled(), "--profiling=false")...)
	Eventually(p.T, "the API server to be ready", time.Minute, func() error {
		if !p.APIServer.Running() {
			p.T.Fatalf("kube-apiserver ended: %s", p.APIServer.State())
		}
		return p.get("/readyz")
	})
	Eventually(p.T, "the namespace default", time.Minute, func() error { return p.get("/api/v1/namespaces/default") })
}

// StopAPIServer ends kube-apiserver at once, as a crash would: connections break, nothing listens.
func (p *Plane) StopAPIServer() { p.APIServer.Kill() }

func (p *Plane) get(path string) error {
	return p.Client.CoreV1().RESTClient().Get().AbsPath(path).Do(background()).Error()
}

func (p *Plane) clientOf(kubeconfig string) kubernetes.Interface {
	p.T.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		p.T.Fatalf("%v", err)
	}
	config.QPS = -1 // no limit on our own side
	config.ContentType = "application/vnd.kubernetes.protobuf"
	config.WarningHandler = rest.NoWarnings{}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		p.T.Fatalf("%v", err)
	}
	return client
}

// Kubectl runs kubectl as admin and gives what it wrote.
func (p *Plane) Kubectl(args ...string) string {
	p.T.Helper()
	out, err := exec.Command(Binary(p.T, "kubectl"),
		append([]string{"--kubeconfig=" + p.Admin, "--cache-dir=" + p.file("kubectl")}, args...)...).CombinedOutput()
	if err != nil {
		p.T.Fatalf("kubectl %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}
