// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"berth.dev/e2e/harness"
)

// TestStrangersDoWhatTheDocsSay has the readers of test/docs do what their pages say, one after the other, on one control
// plane with Berth. It has no kubelet and no controllers: what needs them is printed with the reason.
func TestStrangersDoWhatTheDocsSay(t *testing.T) {
	needBerth(t)
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip(err)
	}
	if !inOwnNetwork(t) {
		return
	}
	plane := harness.NewPlane(t, "--advertise-address="+podAddress)
	plane.AddNodes(harness.Node("n1", harness.GPUModel, 8), harness.Node("gpu-17", harness.GPUModel, 8), harness.Node("plain", "", 0),
		harness.Node("berth-control-plane", "", 0))
	debug := net.JoinHostPort(podAddress, "8889")
	berth := plane.StartBerth("server: {debugListen: \"" + debug + "\"}\n")
	plane.StartScheduler(harness.ShippedExtenders(t, berth.URL)...)
	addPodOfBerth(t, plane)
	plane.Kubectl("-n", "berth-system", "label", "pod", "berth-0", "app.kubernetes.io/name=berth", "berth.dev/leader=true")
	plane.Kubectl("apply", "-f", "manifests/base/namespace.yaml")
	plane.Kubectl("apply", "-k", "manifests/overlays/kind")

	path := "PATH=" + os.Getenv("BERTH_BIN") + ":" + filepath.Dir(harness.Binary(t, "kubectl")) + ":" + os.Getenv("PATH")
	for _, reader := range []string{"platform", "laptop", "researcher", "oncall", "contributor"} {
		command := exec.Command("python3", "test/docs/stranger.py", reader, "--berth", debug)
		command.Env = append(os.Environ(), path, "KUBECONFIG="+plane.Admin, "PYTHONDONTWRITEBYTECODE=1")
		out, err := command.CombinedOutput()
		t.Logf("%s", out)
		if err != nil {
			t.Errorf("%s: %v", reader, err)
		}
	}
}
