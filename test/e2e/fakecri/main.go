// SPDX-License-Identifier: Apache-2.0

// Fakecri is a container runtime that runs nothing: a kubelet admits, starts and ends pods on it at next to no cost. It
// keeps sandboxes and containers as entries, and what it was told of them.
//
//	fakecri SOCKET
//
// A container ends as `work` would with its arguments: after so many seconds, or when it is stopped.
package main

import (
	"fmt"
	"net"
	"os"

	"google.golang.org/grpc"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// longestRequest is in bytes; a kubelet lists all it has in one message.
const longestRequest = 16 << 20

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: fakecri SOCKET")
		os.Exit(2)
	}
	_ = os.Remove(os.Args[1])
	listener, err := net.Listen("unix", os.Args[1])
	if err == nil {
		server := grpc.NewServer(grpc.MaxRecvMsgSize(longestRequest), grpc.MaxSendMsgSize(longestRequest))
		cri.RegisterRuntimeServiceServer(server, newRuntime())
		cri.RegisterImageServiceServer(server, images{})
		err = server.Serve(listener)
	}
	fmt.Fprintln(os.Stderr, "fakecri:", err)
	os.Exit(1)
}
