// SPDX-License-Identifier: Apache-2.0

// Nri stands in for the NRI plugin of NVIDIA's container toolkit: when a container is created, it adds the CDI devices
// that the annotations nvidia.cdi.k8s.io/... of its pod name. It ends when containerd does.
//
//	nri SOCKET
package main

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/containerd/nri/pkg/api"
	nri "github.com/containerd/nri/pkg/plugin"
	"github.com/containerd/nri/pkg/stub"
)

type plugin struct{}

// CreateContainer is called by containerd for each container.
func (plugin) CreateContainer(_ context.Context, pod *api.PodSandbox, container *api.Container) (*api.ContainerAdjustment, []*api.ContainerUpdate, error) {
	adjustment := &api.ContainerAdjustment{}
	if names, said := nri.GetEffectiveAnnotation(pod, "nvidia.cdi.k8s.io", container.Name); said {
		fmt.Println(pod.Namespace, pod.Name, container.Name, names)
		for _, name := range strings.Split(names, ",") {
			adjustment.AddCDIDevice(&api.CDIDevice{Name: name})
		}
	}
	return adjustment, nil, nil
}

func run() error {
	if len(os.Args) != 2 {
		return fmt.Errorf("usage: nri SOCKET")
	}
	s, err := stub.New(plugin{}, stub.WithSocketPath(os.Args[1]), stub.WithPluginName("nri"), stub.WithPluginIdx("10"))
	if err != nil {
		return err
	}
	return s.Run(context.Background())
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
