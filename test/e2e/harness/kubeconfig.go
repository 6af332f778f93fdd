// SPDX-License-Identifier: Apache-2.0

package harness

import (
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// BerthUser is who Berth is to the API server, by certificate or by BerthToken; Grant gives it its rights.
const (
	BerthUser  = "berth"
	BerthToken = "token-of-berth"
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

// Kubeconfig writes a kubeconfig that reaches the API server at url (of a Proxy, for one) as user. caFile, where given,
// is the CA to believe in, instead of the right one.
func (p *Plane) Kubeconfig(name, url string, user clientcmdapi.AuthInfo, caFile ...string) string {
	p.T.Helper()
	cluster := &clientcmdapi.Cluster{Server: url, CertificateAuthority: p.CA.File}
	if len(caFile) > 0 {
		cluster.CertificateAuthority = caFile[0]
	}
	config := clientcmdapi.NewConfig()
	config.Clusters["e2e"] = cluster
	config.AuthInfos[name] = &user
	config.Contexts["e2e"] = &clientcmdapi.Context{Cluster: "e2e", AuthInfo: name}
	config.CurrentContext = "e2e"
	file := p.file(name + ".kubeconfig")
	if err := clientcmd.WriteToFile(*config, file); err != nil {
		p.T.Fatalf("%v", err)
	}
	return file
}

// Grant lets user do what rules say, in all namespaces.
func (p *Plane) Grant(user string, rules ...rbacv1.PolicyRule) {
	p.T.Helper()
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: user}, Rules: rules}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: user},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: user},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
	}
	rbac := p.Client.RbacV1()
	if _, err := rbac.ClusterRoles().Create(background(), role, metav1.CreateOptions{}); err != nil {
		p.T.Fatalf("%v", err)
	}
	if _, err := rbac.ClusterRoleBindings().Create(background(), binding, metav1.CreateOptions{}); err != nil {
		p.T.Fatalf("%v", err)
	}
}

// BerthRules are the rights that Berth needs, and no more.
var BerthRules = []rbacv1.PolicyRule{
	{APIGroups: []string{""}, Resources: []string{"nodes", "pods"}, Verbs: []string{"get", "list", "watch"}},
	{APIGroups: []string{""}, Resources: []string{"pods/binding"}, Verbs: []string{"create"}},
	{APIGroups: []string{"", "events.k8s.io"}, Resources: []string{"events"}, Verbs: []string{"create", "patch"}},
	{APIGroups: []string{"coordination.k8s.io"}, Resources: []string{"leases"},
		Verbs: []string{"get", "create", "update", "patch"}},
}
