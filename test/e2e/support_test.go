// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"berth.dev/e2e/harness"
)

// contains is nil when part is in text.
func contains(text, part string) error {
	if strings.Contains(text, part) {
		return nil
	}
	return fmt.Errorf("no %q in\n%s", part, text)
}

// oneGPUEach are count pods that fill the nodes one GPU at a time and need next to no CPU.
func oneGPUEach(prefix string, count int) []*v1.Pod {
	pods := harness.Pods(prefix, count, harness.Ask{harness.GPUResource: "1"})
	for _, pod := range pods {
		pod.Spec.Containers[0].Resources.Limits[v1.ResourceCPU] = resource.MustParse("100m")
	}
	return pods
}
