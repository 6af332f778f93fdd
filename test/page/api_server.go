// SPDX-License-Identifier: Apache-2.0

package page

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"time"
)

// Object is a Kubernetes object as JSON.
type Object = map[string]any

// APIServer is as much of an API server as Berth needs to see nodes and pods: lists, watches that tell what Change
// brings, and a place to write events to.
type APIServer struct {
	*httptest.Server
	mu      sync.Mutex
	objects map[string][]Object // by path
	watches map[string][]watch
	version int // of the last change
	done    chan struct{}
}

type watch struct {
	events chan Object
	ended  <-chan struct{}
}

// NewAPIServer serves these.
func NewAPIServer(cluster Cluster) *APIServer {
	s := &APIServer{
		objects: map[string][]Object{"/api/v1/nodes": cluster.Nodes, "/api/v1/pods": cluster.Pods},
		watches: map[string][]watch{},
		version: 1,
		done:    make(chan struct{}),
	}
	s.Server = httptest.NewServer(http.HandlerFunc(s.answer))
	return s
}

// Stop ends the watches, then the server.
func (s *APIServer) Stop() {
	close(s.done)
	s.Server.CloseClientConnections()
	s.Server.Close()
}

// Change tells those who watch the path of an event: ADDED, MODIFIED or DELETED.
func (s *APIServer) Change(path, kind string, object Object) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.version++
	object["metadata"].(Object)["resourceVersion"] = fmt.Sprint(s.version)
	for _, watch := range s.watches[path] {
		select {
		case watch.events <- Object{"type": kind, "object": object}:
		case <-watch.ended:
		case <-s.done:
		}
	}
}

func (s *APIServer) answer(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	objects, known := s.objects[r.URL.Path]
	switch {
	case r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/events"):
		w.WriteHeader(http.StatusCreated)
		_, _ = w.Write([]byte(`{"kind":"Event","apiVersion":"v1"}`))
	case strings.HasSuffix(r.URL.Path, "/leases/berth"): // somebody else's, renewed for ever
		_ = json.NewEncoder(w).Encode(Object{"kind": "Lease", "apiVersion": "coordination.k8s.io/v1",
			"metadata": Object{"name": "berth", "namespace": "default", "uid": "lease", "resourceVersion": time.Now().String()},
			"spec": Object{"holderIdentity": "another", "leaseDurationSeconds": 15, "leaseTransitions": 1,
				"acquireTime": "2026-01-01T00:00:00.000000Z", "renewTime": time.Now().UTC().Format("2006-01-02T15:04:05.000000Z")}})
	case !known:
		w.WriteHeader(http.StatusNotFound)
		_, _ = w.Write([]byte(`{"kind":"Status","apiVersion":"v1","status":"Failure","code":404,"reason":"NotFound"}`))
	case r.URL.Query().Get("watch") != "":
		s.watch(w, r)
	default:
		list := Object{"kind": "List", "apiVersion": "v1", "metadata": Object{"resourceVersion": "1"}, "items": objects}
		_ = json.NewEncoder(w).Encode(list)
	}
}

func (s *APIServer) watch(w http.ResponseWriter, r *http.Request) {
	events := make(chan Object)
	s.mu.Lock()
	s.watches[r.URL.Path] = append(s.watches[r.URL.Path], watch{events, r.Context().Done()})
	s.mu.Unlock()
	w.(http.Flusher).Flush()
	for {
		select {
		case event := <-events:
			_ = json.NewEncoder(w).Encode(event)
			w.(http.Flusher).Flush()
		case <-s.done:
			return
		case <-r.Context().Done():
			return
		}
	}
}
