// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"berth.dev/e2e/harness"
)

func annotations(t *testing.T, plane *harness.Plane, node string) map[string]string {
	t.Helper()
	found, err := plane.Client.CoreV1().Nodes().Get(t.Context(), node, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return found.Annotations
}

// askKubelet is what the kubelet answers to a GET with that token.
func askKubelet(t *testing.T, node *harness.Machine, path, token string) (int, string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, node.KubeletURL+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	client := http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	response, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(body)
}

// The right to nodes/configz is enough for the kubelet's policies, and gives nothing else of it.
func TestNodeKubeletShowsItsConfigurationToTheAgent(t *testing.T) {
	needNodes(t)
	c := fenced{Plane: harness.NewPlane(t)}
	node := c.StartNode(harness.MachineOptions{Name: "a", GPUs: "-", Webhook: true, Kubelet: "topologyManagerPolicy: best-effort\n"})
	for _, file := range []string{"namespace.yaml", "rbac.yaml", "policy.yaml"} {
		c.Kubectl("apply", "--filename="+agentFolder+file)
	}
	token := c.tokenOn(t, "a")
	harness.Eventually(t, "the agent to have its rights", 20*time.Second, func() error {
		code, body := askKubelet(t, node, "/configz", token)
		if code != http.StatusOK || !strings.Contains(body, `"topologyManagerPolicy":"best-effort"`) {
			return fmt.Errorf("%d: %s", code, body)
		}
		return nil
	})
	for _, path := range []string{"/pods", "/run/default/p/main", "/logs/", "/metrics"} {
		if code, _ := askKubelet(t, node, path, token); code != http.StatusForbidden {
			t.Errorf("GET %s: want 403, got %d", path, code)
		}
	}
	if code, _ := askKubelet(t, node, "/configz", ""); code != http.StatusUnauthorized {
		t.Errorf("want 401 without a token, got %d", code)
	}
}

// What the agent finds on a machine with an invented NVML is on its Node, in the words that Berth reads.
func TestNodeAgentDescribesItsNode(t *testing.T) {
	needNodes(t)
	driver := filepath.Join(os.Getenv("BERTH_BIN"), "fake_nvml")
	if _, err := os.Stat(driver); err != nil {
		t.Skip("SKIPPED: no invented NVML: " + err.Error())
	}
	plane := harness.NewPlane(t)
	file := filepath.Join(plane.Dir, "nvml")
	t.Setenv("FAKE_NVML", file)
	node := plane.StartNode(harness.MachineOptions{Name: "a", Agent: true, Kubelet: "topologyManagerPolicy: best-effort\n"})
	machine, uuids := "", []string{}
	for gpu := range 8 {
		uuids = append(uuids, node.GPUID(gpu))
		machine += fmt.Sprintf("gpu %s 00000000:%02x:00.0\nswitch %d 18\n", node.GPUID(gpu), 16+gpu, gpu)
	}
	if err := os.WriteFile(file, []byte(machine), 0o600); err != nil {
		t.Fatal(err)
	}
	node.StartAgent("--driver-root", driver)
	said := func() map[string]string { return annotations(t, plane, "a") }
	harness.Eventually(t, "the Node to be described", 60*time.Second, func() error {
		for _, key := range []string{"berth.dev/carries-out", "berth.dev/kubelet", "berth.dev/gpu-uuids", "berth.dev/topology"} {
			if said()[key] == "" {
				return fmt.Errorf("no %s in %v", key, said())
			}
		}
		return nil
	})
	if got := said()["berth.dev/carries-out"]; got != harness.GPUResource {
		t.Errorf("carries out %q", got)
	}
	if got, want := said()["berth.dev/gpu-uuids"], strings.Join(uuids, ","); got != want {
		t.Errorf("UUIDs: want %s, got %s", want, got)
	}
	var kubelet map[string]string
	if err := json.Unmarshal([]byte(said()["berth.dev/kubelet"]), &kubelet); err != nil || kubelet["topologyManagerPolicy"] != "best-effort" {
		t.Errorf("kubelet: %v %v", kubelet, err)
	}
	if got := said()["berth.dev/topology"]; !strings.Contains(got, "NV18") {
		t.Errorf("links: %s", got)
	}
	// What somebody else writes in place of the links stays.
	plane.Kubectl("annotate", "--overwrite", "node", "a", "berth.dev/topology=mine")
	time.Sleep(2 * time.Second)
	if got := said()["berth.dev/topology"]; got != "mine" {
		t.Errorf("want the value of people to stay, got %s", got)
	}
}
