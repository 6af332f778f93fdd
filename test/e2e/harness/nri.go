// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// CdiVendor is the vendor of the CDI devices that NVIDIA's device plugin describes.
const CdiVendor = "k8s.device-plugin.nvidia.com"

// nriSocket is where containerd listens for NRI plugins, on the machine.
const nriSocket = "/var/run/nri/nri.sock"

// WriteCdi writes the CDI specification of the machine's GPUs as NVIDIA's device plugin does, by UUID: a container with
// one of them has it in NVIDIA_VISIBLE_DEVICES.
func (m *Machine) WriteCdi() {
	m.plane.T.Helper()
	type object = map[string]any
	var devices []object
	for _, id := range strings.Split(m.uuids(), ",") {
		devices = append(devices, object{"name": id, "containerEdits": object{"env": []string{"NVIDIA_VISIBLE_DEVICES=" + id}}})
	}
	text, _ := json.Marshal(object{"cdiVersion": "0.6.0", "kind": CdiVendor + "/gpu", "devices": devices})
	folder := m.Path("/run/cdi")
	if err := os.MkdirAll(folder, 0o755); err != nil {
		m.plane.T.Fatalf("%v", err)
	}
	writeFile(m.plane.T, filepath.Join(folder, "gpus.json"), text)
}

// StartNri starts the stand-in for an NRI plugin, also again after it was killed: "cdi" or "fractions" (containerd/nri).
func (m *Machine) StartNri(plugin string) *Inside {
	m.plane.T.Helper()
	Eventually(m.plane.T, "containerd on "+m.Name+" to take NRI plugins", 30*time.Second, func() error {
		_, err := os.Stat(m.Path("/run/nri/nri.sock"))
		return err
	})
	return m.Start(plugin, m.binary("nri"), plugin, nriSocket)
}

// Log is what a container of a pod on the machine has written, as the kubelet has it.
func (m *Machine) Log(pod, container string) (string, error) {
	response, err := withoutChecks().Get(fmt.Sprintf("%s/containerLogs/%s/%s/%s", m.KubeletURL, Namespace, pod, container))
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("log of %s/%s: %s: %s", pod, container, response.Status, text)
	}
	return string(text), err
}
