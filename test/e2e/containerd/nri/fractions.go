// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"github.com/containerd/nri/pkg/api"
	"k8s.io/apimachinery/pkg/api/resource"
)

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

// giveFractions does as kai-gpu-fractioning: a container for which annotations nvidia.com/container.NAME.gpu-memory.request
// or .limit of its pod ask for a share has the GPUs of .gpus.devices in NVIDIA_VISIBLE_DEVICES, and its memory in whole MiB
// beside them. As there by default, no container is created whose annotations cannot be read.
func giveFractions(pod *api.PodSandbox, container *api.Container) (*api.ContainerAdjustment, error) {
	annotations, prefix := pod.Annotations, "nvidia.com/container."+container.Name+"."
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
