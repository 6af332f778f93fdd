// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"net/http"
	"time"

	configv1 "k8s.io/kube-scheduler/config/v1"
)

// Stub is a process of the program stub.
type Stub struct {
	*Process
	URL string
}

// StartStub starts the stub and waits until it answers.
func (p *Plane) StartStub() *Stub {
	p.T.Helper()
	listen := address(FreePort(p.T))
	s := &Stub{URL: "http://" + listen}
	s.Process = StartProcess(p.T, p.Dir, "stub", Binary(p.T, "stub"), "--kubeconfig="+p.Admin, "--listen="+listen)
	Eventually(p.T, "the stub to answer", 10*time.Second, func() error { return okAt(http.DefaultClient, s.URL+"/readyz") })
	return s
}

// Extenders is its stanza: all verbs that it has, for every pod.
func (s *Stub) Extenders() []configv1.Extender {
	return []configv1.Extender{{URLPrefix: s.URL, FilterVerb: "filter", PrioritizeVerb: "prioritize", BindVerb: "bind",
		Weight: 1, NodeCacheCapable: true}}
}
