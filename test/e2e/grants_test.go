// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"

	"berth.dev/e2e/harness"
)

func granted(name string, ask harness.Ask, devices string) v1.Pod {
	pod := harness.Pod(name, ask)
	pod.Spec.NodeName = "n1"
	if devices != "" {
		pod.Annotations[harness.DevicesAnnotation] =
			`{"version":1,"node":"n1","containers":{"main":{"gpus":[` + devices + `]}}}`
		pod.Annotations[harness.VisibleDevicesAnnotation] = "GPU-n1-0"
	}
	return *pod
}

// The check that the other tests rely on finds what it is for.
func TestDoubleGrantsAreFound(t *testing.T) {
	one, share := harness.Ask{harness.GPUResource: "1"}, harness.Ask{harness.MilliResource: "600"}
	whole := `{"index":1,"milli":1000,"memory_mib":81920}`
	for _, c := range []struct {
		name string
		pods []v1.Pod
		want string
	}{
		{"nothing wrong", []v1.Pod{granted("a", one, whole), granted("b", share, `{"index":0,"milli":600}`), granted("c", nil, "")}, ""},
		{"a GPU twice", []v1.Pod{granted("a", one, whole), granted("b", one, whole)}, "GPU 1 of n1: 2000 milli"},
		{"shares beyond one GPU", []v1.Pod{granted("a", share, `{"index":0,"milli":600}`),
			granted("b", share, `{"index":0,"milli":600}`)}, "GPU 0 of n1: 1200 milli"},
		{"memory beyond the GPU", []v1.Pod{granted("a", share, `{"index":0,"milli":600,"memory_mib":81921}`)}, "81921 MiB"},
		{"a GPU that is not there", []v1.Pod{granted("a", one, `{"index":2,"milli":1000}`)}, "exists: false"},
		{"fewer than asked for", []v1.Pod{granted("a", harness.Ask{harness.GPUResource: "2"}, whole)}, "want 2 GPUs"},
		{"a share of one GPU that sees another", []v1.Pod{granted("a", share, `{"index":1,"milli":600}`)}, "want GPU-n1-1"},
		{"no annotation", []v1.Pod{granted("a", one, "")}, "has no annotation"},
	} {
		err := harness.GrantErrors([]v1.Node{*harness.Node("n1", "A100", 2)}, c.pods)
		if c.want == "" && err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		if c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: want %q, got %v", c.name, c.want, err)
		}
	}
}
