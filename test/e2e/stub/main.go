// SPDX-License-Identifier: Apache-2.0

// Stub is an extender that accepts every node, scores them all alike and binds: what the protocol costs before anything
// is decided.
package main

import (
	"flag"
	"log"
	"net"
	"net/http"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"berth.dev/e2e/extender"
)

func main() {
	kubeconfig := flag.String("kubeconfig", "", "how to reach the API server")
	listen := flag.String("listen", "127.0.0.1:0", "HOST:PORT")
	flag.Parse()
	config, err := clientcmd.BuildConfigFromFlags("", *kubeconfig)
	if err != nil {
		log.Fatal(err)
	}
	config.QPS = -1 // kube-scheduler sets the pace
	config.ContentType = "application/vnd.kubernetes.protobuf"
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		log.Fatal(err)
	}
	listener, err := net.Listen("tcp", *listen)
	if err != nil {
		log.Fatal(err)
	}
	log.Printf("stub: listening on http://%s", listener.Addr())
	server := http.Server{
		Handler:           &extender.Extender{Score: func(string) int64 { return 5 }, Client: client},
		ReadHeaderTimeout: 10 * time.Second,
		IdleTimeout:       2 * time.Minute, // longer than kube-scheduler keeps an idle connection
	}
	log.Fatal(server.Serve(listener))
}
