// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"bytes"
	"crypto/tls"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
)

// InFrontOfAPIServer is the URL of a server that passes requests on to the API server, each after before has returned
// for it. before may wait; it is to return when the context of its request ends, and that request is then dropped.
func (p *Plane) InFrontOfAPIServer(before func(*http.Request)) string {
	p.T.Helper()
	target, err := url.Parse(p.URL())
	if err != nil {
		p.T.Fatalf("%v", err)
	}
	pair := p.CA.Issue(p.T, "interceptor")
	certificate, err := tls.LoadX509KeyPair(pair.CertFile, pair.KeyFile)
	if err != nil {
		p.T.Fatalf("%v", err)
	}
	proxy := httputil.NewSingleHostReverseProxy(target)
	proxy.FlushInterval = -1 // watches
	proxy.Transport = &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, ForceAttemptHTTP2: true}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// The context ends with the client's connection only once the body has been read.
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		before(r)
		if r.Context().Err() == nil {
			proxy.ServeHTTP(w, r)
		}
	}))
	server.TLS = &tls.Config{Certificates: []tls.Certificate{certificate}}
	server.StartTLS()
	p.T.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	return server.URL
}
