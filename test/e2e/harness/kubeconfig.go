// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"os"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// BerthUser is who Berth is to the API server, by certificate or by BerthToken: the service account of manifests/base.
const (
	BerthUser      = "system:serviceaccount:" + berthNamespace + ":berth"
	BerthToken     = "token-of-berth"
	berthNamespace = "berth-system"
	// token,user,uid,groups
	tokenFile = BerthToken + "," + BerthUser + ",1\n"
)

// Certificate is a client certificate that the API server takes.
func (p *Plane) Certificate(user string, groups ...string) clientcmdapi.AuthInfo {
	p.T.Helper()
	pair := p.CA.Issue(p.T, user, groups...)
	return clientcmdapi.AuthInfo{ClientCertificate: pair.CertFile, ClientKey: pair.KeyFile}
}

// Token is the bearer token of BerthUser.
func (p *Plane) Token() clientcmdapi.AuthInfo { return clientcmdapi.AuthInfo{Token: BerthToken} }

// Kubeconfig writes a kubeconfig that reaches the API server as user.
func (p *Plane) Kubeconfig(name string, user clientcmdapi.AuthInfo) string {
	p.T.Helper()
	return p.NamespacedKubeconfig(name, "", user)
}

// NamespacedKubeconfig is Kubeconfig with this namespace in its context.
func (p *Plane) NamespacedKubeconfig(name, namespace string, user clientcmdapi.AuthInfo) string {
	p.T.Helper()
	return p.kubeconfig(name, clientcmdapi.Cluster{Server: p.URL(), CertificateAuthority: p.CA.File}, namespace, user)
}

// BerthKubeconfig writes one for Berth, with the API server at url (of a Proxy, for one), in the namespace of
// manifests/base. caFile, where given, is the CA to believe in, instead of the right one.
func (p *Plane) BerthKubeconfig(url string, user clientcmdapi.AuthInfo, caFile ...string) string {
	p.T.Helper()
	cluster := clientcmdapi.Cluster{Server: url, CertificateAuthority: p.CA.File}
	if len(caFile) > 0 {
		cluster.CertificateAuthority = caFile[0]
	}
	return p.kubeconfig("berth", cluster, berthNamespace, user)
}

func (p *Plane) kubeconfig(name string, cluster clientcmdapi.Cluster, namespace string, user clientcmdapi.AuthInfo) string {
	p.T.Helper()
	config := clientcmdapi.NewConfig()
	config.Clusters["e2e"] = &cluster
	config.AuthInfos[name] = &user
	config.Contexts["e2e"] = &clientcmdapi.Context{Cluster: "e2e", AuthInfo: name, Namespace: namespace}
	config.CurrentContext = "e2e"
	file, err := os.CreateTemp(p.Dir, name+"-*.kubeconfig")
	if err != nil {
		p.T.Fatalf("%v", err)
	}
	defer file.Close()
	if err := clientcmd.WriteToFile(*config, file.Name()); err != nil {
		p.T.Fatalf("%v", err)
	}
	return file.Name()
}

// GrantBerth gives BerthUser the rights that manifests/base ships, and no more. Its Lease is as a Berth leaves it that
// was stopped: where there is none, a Berth waits for 15 s before it leads.
func (p *Plane) GrantBerth() {
	p.T.Helper()
	args := []string{"apply"}
	for _, file := range []string{"namespace", "serviceaccount", "rbac"} {
		args = append(args, "--filename=manifests/base/"+file+".yaml")
	}
	p.Kubectl(args...)
	nobody, released := "", int32(1)
	now := metav1.NowMicro()
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: "berth"}, Spec: coordinationv1.LeaseSpec{
		HolderIdentity: &nobody, LeaseDurationSeconds: &released, AcquireTime: &now, RenewTime: &now}}
	_, err := p.Client.CoordinationV1().Leases(berthNamespace).Create(background(), lease, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		p.T.Fatalf("%v", err)
	}
}
