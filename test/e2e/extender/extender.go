// SPDX-License-Identifier: Apache-2.0

// Package extender is the simplest scheduler extender in Go, on net/http and the types of upstream: a chain link for
// tests and, as the program stub, what any extender costs kube-scheduler.
package extender

import (
	"encoding/json"
	"net/http"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	extenderv1 "k8s.io/kube-scheduler/extender/v1"
)

// Extender answers /filter, /prioritize and /bind, with node names or whole nodes as it was asked. It behaves as
// upstream's own test extender: what cannot be decoded is 400, what fails is 200 with Error.
type Extender struct {
	// Accept is the filter; nil accepts every node.
	Accept func(node string) bool
	// Score is 0..10; nil scores 0.
	Score func(node string) int64
	// Client posts the Bindings.
	Client kubernetes.Interface
}

// ServeHTTP is the three verbs.
func (e *Extender) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	switch request.URL.Path {
	case "/filter":
		serve(w, request, e.filter)
	case "/prioritize":
		serve(w, request, e.prioritize)
	case "/bind":
		serve(w, request, func(args *extenderv1.ExtenderBindingArgs) any { return e.bind(request, args) })
	case "/readyz":
	default:
		http.NotFound(w, request)
	}
}

func serve[Args any](w http.ResponseWriter, request *http.Request, answer func(*Args) any) {
	args := new(Args)
	if err := json.NewDecoder(request.Body).Decode(args); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(answer(args))
}

func (e *Extender) accepts(node string) bool { return e.Accept == nil || e.Accept(node) }

func (e *Extender) filter(args *extenderv1.ExtenderArgs) any {
	result := &extenderv1.ExtenderFilterResult{FailedNodes: extenderv1.FailedNodesMap{}}
	for _, name := range names(args) {
		if !e.accepts(name) {
			result.FailedNodes[name] = "not accepted by this extender"
		}
	}
	if args.NodeNames != nil {
		kept := []string{}
		for _, name := range *args.NodeNames {
			if e.accepts(name) {
				kept = append(kept, name)
			}
		}
		result.NodeNames = &kept
		return result
	}
	result.Nodes = &v1.NodeList{}
	for _, node := range args.Nodes.Items {
		if e.accepts(node.Name) {
			result.Nodes.Items = append(result.Nodes.Items, node)
		}
	}
	return result
}

func (e *Extender) prioritize(args *extenderv1.ExtenderArgs) any {
	scores := extenderv1.HostPriorityList{}
	for _, name := range names(args) {
		score := int64(0)
		if e.Score != nil {
			score = e.Score(name)
		}
		scores = append(scores, extenderv1.HostPriority{Host: name, Score: score})
	}
	return scores
}

func (e *Extender) bind(request *http.Request, args *extenderv1.ExtenderBindingArgs) any {
	err := e.Client.CoreV1().Pods(args.PodNamespace).Bind(request.Context(), &v1.Binding{
		ObjectMeta: metav1.ObjectMeta{Namespace: args.PodNamespace, Name: args.PodName, UID: args.PodUID},
		Target:     v1.ObjectReference{Kind: "Node", Name: args.Node},
	}, metav1.CreateOptions{})
	if err != nil {
		return &extenderv1.ExtenderBindingResult{Error: err.Error()}
	}
	return &extenderv1.ExtenderBindingResult{}
}

func names(args *extenderv1.ExtenderArgs) []string {
	if args.NodeNames != nil {
		return *args.NodeNames
	}
	var all []string
	if args.Nodes != nil {
		for _, node := range args.Nodes.Items {
			all = append(all, node.Name)
		}
	}
	return all
}
