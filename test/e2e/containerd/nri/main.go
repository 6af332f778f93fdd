// SPDX-License-Identifier: Apache-2.0

// Nri stands in for an NRI plugin that gives containers GPUs when they are created. It ends when containerd does.
//
//	nri cdi SOCKET          that of NVIDIA's container toolkit
//	nri fractions SOCKET    that of kai-gpu-fractioning
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

// plugin says what a container is given; nil is nothing. With an error it is not created.
type plugin func(*api.PodSandbox, *api.Container) (*api.ContainerAdjustment, error)

var plugins = map[string]plugin{"cdi": giveCdi, "fractions": giveFractions}

// giveCdi adds the CDI devices that the annotations nvidia.cdi.k8s.io/... of the pod name.
func giveCdi(pod *api.PodSandbox, container *api.Container) (*api.ContainerAdjustment, error) {
	adjustment := &api.ContainerAdjustment{}
	if names, said := nri.GetEffectiveAnnotation(pod, "nvidia.cdi.k8s.io", container.Name); said {
		for _, name := range strings.Split(names, ",") {
			adjustment.AddCDIDevice(&api.CDIDevice{Name: name})
		}
	}
	return adjustment, nil
}

// CreateContainer is called by containerd for each container.
func (give plugin) CreateContainer(_ context.Context, pod *api.PodSandbox, container *api.Container) (*api.ContainerAdjustment, []*api.ContainerUpdate, error) {
	adjustment, err := give(pod, container)
	fmt.Println(pod.Namespace, pod.Name, container.Name, adjustment, err)
	return adjustment, nil, err
}

func run() error {
	if len(os.Args) != 3 || plugins[os.Args[1]] == nil {
		return fmt.Errorf("usage: nri cdi|fractions SOCKET")
	}
	s, err := stub.New(plugins[os.Args[1]], stub.WithSocketPath(os.Args[2]), stub.WithPluginName(os.Args[1]), stub.WithPluginIdx("10"))
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
