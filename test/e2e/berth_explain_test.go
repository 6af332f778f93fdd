// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"berth.dev/e2e/harness"
)

// ask is what `berth ARGUMENTS --server URL` prints.
func (c cluster) ask(arguments ...string) string {
	c.T.Helper()
	out, err := c.answer(arguments)
	for tries := 0; tries < 50 && err != nil && strings.Contains(err.Error(), " is not known"); tries++ {
		time.Sleep(200 * time.Millisecond) // Berth's watch is yet to bring it
		out, err = c.answer(arguments)
	}
	if err != nil {
		c.T.Fatalf("%v", err)
	}
	return out
}

// says is ask for one who waits: that a controller is yet to make the object is no answer yet.
func (c cluster) says(part string, arguments ...string) error {
	out, err := c.answer(arguments)
	if err != nil {
		return err
	}
	return contains(out, part)
}

func (c cluster) answer(arguments []string) (string, error) {
	out, err := exec.Command(harness.BerthBinary(), append(arguments, "--server", c.berth.URL)...).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("berth %s: %v\n%s", strings.Join(arguments, " "), err, out)
	}
	return string(out), nil
}

func wantParts(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if err := contains(text, part); err != nil {
			t.Error(err)
		}
	}
}

func on(node string) map[string]string { return map[string]string{"kubernetes.io/hostname": node} }

func TestPodsThatWaitAreExplained(t *testing.T) {
	c := startCluster(t, 3)
	held := harness.Pod("held", harness.Ask{harness.GPUResource: "4"})
	held.Spec.NodeSelector = on("node-0000")
	c.CreatePods(held)
	c.WaitBound(30 * time.Second)

	whole := harness.Pod("whole", harness.Ask{harness.GPUResource: "8"})
	whole.Spec.NodeSelector = on("node-0000")
	// kube-scheduler asks nobody about this one: its own filters leave no node.
	nowhere := harness.Pod("nowhere", harness.Ask{harness.GPUResource: "1"})
	nowhere.Spec.NodeSelector = map[string]string{"zone": "nowhere"}
	c.CreatePods(whole, nowhere)
	c.WaitPending("whole", 30*time.Second)
	c.WaitPending("nowhere", 30*time.Second)

	wantParts(t, c.ask("explain", "pod", "default/whole"),
		"default/whole: fits none of 3 nodes; nearest is node-0000: 4 of 8 GPUs idle, needs 8",
		"fits when default/held ends")
	wantParts(t, c.ask("explain", "pod", "default/nowhere"), "fits none of 3 nodes", "fits without the node selector zone")
	wantParts(t, c.ask("explain", "pod", "default/held"), "default/held: is on node-0000 with GPU 0, GPU 1, GPU 2, GPU 3")
	wantParts(t, c.ask("top"), "8 GPUs", "1 GPU ", "8 on node-0001")
	wantParts(t, c.ask("explain", "node", "node-0000"), "held by default/held")

	// The same sentences, where `kubectl describe pod` shows them, once each.
	for _, pod := range []string{"whole", "nowhere"} {
		harness.Eventually(t, "the Event of "+pod, 40*time.Second, func() error {
			messages := c.events(t, pod, "WaitsForGpus")
			if len(messages) == 0 {
				return fmt.Errorf("there is none")
			}
			return c.says(messages[0], "explain", "pod", "default/"+pod)
		})
	}
	time.Sleep(7 * time.Second)
	if messages := c.events(t, "whole", "WaitsForGpus"); len(messages) != 1 {
		t.Errorf("want one Event for one cause, got %q", messages)
	}
	if messages := c.events(t, "held", "WaitsForGpus"); len(messages) != 0 {
		t.Errorf("a pod that runs waits: %q", messages)
	}
}

// events are the messages of the Events of that reason on the pod.
func (c cluster) events(t *testing.T, pod, reason string) []string {
	t.Helper()
	events, err := c.Client.CoreV1().Events(harness.Namespace).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var messages []string
	for _, event := range events.Items {
		if event.InvolvedObject.Name == pod && event.Reason == reason {
			messages = append(messages, event.Message)
		}
	}
	return messages
}

func TestAPlanIsWhatHappensThen(t *testing.T) {
	c := startCluster(t, 3)
	held := harness.Pod("held", harness.Ask{harness.GPUResource: "4"})
	c.CreatePods(held)
	c.WaitBound(30 * time.Second)
	before := c.berth.Page("/debug/snapshot")

	file := filepath.Join(t.TempDir(), "job.yaml")
	job := `{apiVersion: batch/v1, kind: Job, metadata: {name: train}, spec: {parallelism: 3, template: {spec: {containers:
  [{name: main, image: none, resources: {limits: {nvidia.com/gpu: "8"}}}]}}}}
`
	if err := os.WriteFile(file, []byte(job), 0o644); err != nil {
		t.Fatal(err)
	}
	wantParts(t, c.ask("plan", "-f", file), "Job default/train: 2 of 3 pods fit", "fits when default/held ends")
	wantParts(t, c.ask("plan", "-f", file, "--add-nodes", "1", "--like", "node-0002"), "3 of 3 pods fit")
	if after := c.berth.Page("/debug/snapshot"); after != before {
		t.Errorf("a plan changed what Berth knows:\n%s\n%s", before, after)
	}

	c.CreatePods(harness.Pods("train", 3, harness.Ask{harness.GPUResource: "8"})...)
	harness.Eventually(t, "two of the three to be bound", 30*time.Second, func() error {
		waiting, err := c.ListPods("spec.nodeName=")
		if err == nil && len(waiting) != 1 {
			err = fmt.Errorf("%d wait", len(waiting))
		}
		return err
	})
	c.AddNodes(harness.Node("node-0003", harness.GPUModel, 8))
	c.WaitBound(30 * time.Second)
}
