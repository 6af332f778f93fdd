// SPDX-License-Identifier: Apache-2.0

// Fractions stands in for the NRI plugin of kai-gpu-fractioning: a container for which annotations
// nvidia.com/container.NAME.gpu-memory.request or .limit of its pod ask for a share has the GPUs of .gpus.devices in
// NVIDIA_VISIBLE_DEVICES, and its memory in whole MiB beside them. As that plugin by default, it lets no container be
// created whose annotations it cannot read. It ends when containerd does.
//
//	fractions SOCKET
package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/containerd/nri/pkg/api"
	"github.com/containerd/nri/pkg/stub"
	"k8s.io/apimachinery/pkg/api/resource"
)

type plugin struct{}

// mibOf is an amount of memory in MiB, rounded up; "" where none is said.
func mibOf(annotations map[string]string, key string) (string, error) {
	text, said := annotations[key]
	if !said {
		return "", nil
	}
	quantity, err := resource.ParseQuantity(text)
	if err != nil || quantity.Value() < 1<<20 {
		return "", fmt.Errorf("annotation %s: want a quantity of 1Mi or more, got %q", key, text)
	}
	return strconv.FormatInt((quantity.Value()-1)>>20+1, 10), nil
}

func adjust(annotations map[string]string, container string) (*api.ContainerAdjustment, error) {
	prefix := "nvidia.com/container." + container + "."
	request, err := mibOf(annotations, prefix+"gpu-memory.request")
	if err != nil {
		return nil, err
	}
	limit, err := mibOf(annotations, prefix+"gpu-memory.limit")
	if err != nil {
		return nil, err
	}
	if request == "" && limit == "" {
		return nil, nil
	}
	mode, said := annotations[prefix+"gpu-compute.mode"]
	if mode = strings.TrimSpace(mode); said && mode != "time-slicing" && mode != "sm-sharing" {
		return nil, fmt.Errorf("annotation %sgpu-compute.mode: want time-slicing or sm-sharing, got %q", prefix, mode)
	}
	adjustment := &api.ContainerAdjustment{}
	// What is not said is as the other.
	adjustment.AddEnv("NVIDIA_GPU_MEMORY_REQUESTS", cmp.Or(request, limit))
	adjustment.AddEnv("NVIDIA_GPU_MEMORY_LIMITS", cmp.Or(limit, request))
	if devices := strings.TrimSpace(annotations[prefix+"gpus.devices"]); devices != "" {
		adjustment.AddEnv("NVIDIA_VISIBLE_DEVICES", devices)
	}
	return adjustment, nil
}

// CreateContainer is called by containerd for each container.
func (plugin) CreateContainer(_ context.Context, pod *api.PodSandbox, container *api.Container) (*api.ContainerAdjustment, []*api.ContainerUpdate, error) {
	adjustment, err := adjust(pod.Annotations, container.Name)
	fmt.Println(pod.Namespace, pod.Name, container.Name, adjustment, err)
	return adjustment, nil, err
}

func run() error {
	if len(os.Args) != 2 {
		return fmt.Errorf("usage: fractions SOCKET")
	}
	s, err := stub.New(plugin{}, stub.WithSocketPath(os.Args[1]), stub.WithPluginName("gpu-fractioning"), stub.WithPluginIdx("10"))
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
