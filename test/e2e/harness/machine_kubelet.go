// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// devicePlugins is the kubelet's folder of sockets, on the machine.
const devicePlugins = "/var/lib/kubelet/device-plugins"

// AgentSocket is where plugins register with berth-node instead of the kubelet.
const AgentSocket = devicePlugins + "/berth/kubelet.sock"

// StartKubelet starts the kubelet, also again after it was killed. WaitReady waits for it.
func (m *Machine) StartKubelet() {
	m.plane.T.Helper()
	labels := strings.Join([]string{ProductLabel + "=" + GPUModel, fmt.Sprintf("%s=%d", gpuMemoryLabel, 80*1024)}, ",")
	if m.Labels != "" {
		labels += "," + m.Labels
	}
	flags := []string{"--config=" + m.file("kubelet.yaml"), "--kubeconfig=" + m.plane.Admin, "--hostname-override=" + m.Name,
		"--node-labels=" + labels, "--v=2"}
	if m.Address != "" {
		flags = append(flags, "--node-ip="+m.Address)
	}
	m.Kubelet = m.Start("kubelet", Binary(m.plane.T, "kubelet"), flags...)
}

// RestartKubelet kills the kubelet, starts it and waits until it is healthy and, without an agent, the plugin serves it.
func (m *Machine) RestartKubelet() {
	m.plane.T.Helper()
	served := len(m.PluginCalls("ListAndWatch"))
	m.Kubelet.Kill()
	m.StartKubelet()
	m.WaitHealthy()
	if m.Plugin != nil && m.Plugin.Running() && !m.MachineOptions.Agent {
		Eventually(m.plane.T, "the plugin of "+m.Name+" to serve the new kubelet", 30*time.Second, func() error {
			if len(m.PluginCalls("ListAndWatch")) == served {
				return fmt.Errorf("nobody has asked for its devices again")
			}
			return nil
		})
	}
}

// WaitHealthy waits until the kubelet says that it is.
func (m *Machine) WaitHealthy() {
	m.plane.T.Helper()
	url := fmt.Sprintf("http://%s/healthz", address(m.healthPort))
	Eventually(m.plane.T, "the kubelet of "+m.Name, time.Minute, func() error {
		if !m.Kubelet.Running() {
			m.plane.T.Fatalf("the kubelet of %s ended: %s", m.Name, m.Kubelet.State())
		}
		return okAt(http.DefaultClient, url)
	})
}

// WaitReady waits until the node is Ready, and writes the UUIDs of its GPUs on it where no agent does.
func (m *Machine) WaitReady() {
	m.plane.T.Helper()
	m.WaitHealthy()
	Eventually(m.plane.T, m.Name+" to be ready", time.Minute, func() error {
		for _, condition := range m.Node().Status.Conditions {
			if condition.Type == v1.NodeReady && condition.Status == v1.ConditionTrue {
				return nil
			} else if condition.Type == v1.NodeReady {
				return fmt.Errorf("%s: %s", condition.Reason, condition.Message)
			}
		}
		return fmt.Errorf("it says nothing yet")
	})
}

// Node is the node as the API server has it; one without a name where there is none.
func (m *Machine) Node() *v1.Node {
	node, err := m.plane.Client.CoreV1().Nodes().Get(background(), m.Name, metav1.GetOptions{})
	if err != nil {
		return &v1.Node{}
	}
	return node
}

// Annotate sets an annotation of the node; "" takes it away.
func (m *Machine) Annotate(key, value string) {
	m.plane.T.Helper()
	var set any = value
	if value == "" {
		set = nil
	}
	patch, _ := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]any{key: set}}})
	_, err := m.plane.Client.CoreV1().Nodes().Patch(background(), m.Name, types.MergePatchType, patch, metav1.PatchOptions{})
	if err != nil {
		m.plane.T.Fatalf("annotate %s: %v", m.Name, err)
	}
}

// GPUID is the device ID of a GPU of the machine.
func (m *Machine) GPUID(index int) string { return fmt.Sprintf("GPU-%s-%d", m.Name, index) }

// GPUIndex is the index of a GPU by its device ID, of a place on it too; -1 for what is none of its GPUs.
func (m *Machine) GPUIndex(id string) int {
	device, _, _ := strings.Cut(id, "::")
	for index := range 64 {
		if m.GPUID(index) == device {
			return index
		}
	}
	return -1
}

// StartPlugin starts the device plugin, also again after it was killed.
func (m *Machine) StartPlugin() {
	m.plane.T.Helper()
	args := []string{"-node", m.Name, "-sick", m.file("sick"), "-calls", m.file("calls")}
	if m.GPUs != "" {
		args = append(args, "-gpus", m.GPUs)
	}
	if m.MachineOptions.Agent {
		args = append(args, "-kubelet-socket", AgentSocket)
	}
	if m.Replicas > 0 {
		args = append(args, "-replicas", strconv.Itoa(m.Replicas))
	}
	m.Plugin = m.Start("fakegpu", Binary(m.plane.T, "fakegpu"), append(args, m.PluginFlags...)...)
	m.Annotate(UUIDsAnnotation, m.uuids())
}

func (m *Machine) uuids() string {
	number := 8
	for _, part := range strings.Split(m.GPUs, ",") {
		_, _ = fmt.Sscanf(strings.TrimPrefix(part, GPUResource+"="), "%d", &number)
	}
	var all []string
	for i := range number {
		all = append(all, m.GPUID(i))
	}
	return strings.Join(all, ",")
}

// Sick has the plugin say that these devices, and no others, are not well.
func (m *Machine) Sick(ids ...string) {
	m.plane.T.Helper()
	if err := os.WriteFile(m.file("sick"), []byte(strings.Join(ids, "\n")), 0o600); err != nil {
		m.plane.T.Fatalf("%v", err)
	}
}

// WaitGPUs waits until the node offers as many GPUs as it has; number, where given, says how many.
func (m *Machine) WaitGPUs(number ...int) {
	m.plane.T.Helper()
	want := int64((strings.Count(m.uuids(), ",") + 1) * max(m.Replicas, 1))
	if len(number) > 0 {
		want = int64(number[0])
	}
	Eventually(m.plane.T, fmt.Sprintf("%s to offer %d GPUs", m.Name, want), time.Minute, func() error {
		offered := m.Node().Status.Allocatable[GPUResource]
		if offered.Value() != want {
			return fmt.Errorf("it offers %d", offered.Value())
		}
		return nil
	})
}

// PluginCall is one that the plugin has answered.
type PluginCall struct {
	At        time.Time `json:"at"`
	Call      string    `json:"call"`
	Resource  string    `json:"resource"`
	Available []string  `json:"available"`
	Must      []string  `json:"must"`
	Size      int       `json:"size"`
	IDs       []string  `json:"ids"`
	Failed    string    `json:"failed"`
}

// PluginCalls are those so far of this kind, in order.
func (m *Machine) PluginCalls(kind string) []PluginCall {
	text, _ := os.ReadFile(m.file("calls"))
	var calls []PluginCall
	for line := range strings.Lines(string(text)) {
		var call PluginCall
		if json.Unmarshal([]byte(line), &call) == nil && call.Call == kind {
			calls = append(calls, call)
		}
	}
	return calls
}

// AgentBinary is $BERTH_BIN/berth-node.
func AgentBinary() string { return filepath.Join(os.Getenv("BERTH_BIN"), "berth-node") }

// AgentMissing says why no agent can be run; empty when it can.
func AgentMissing() string {
	if _, err := os.Stat(AgentBinary()); err != nil {
		return fmt.Sprintf("BERTH_BIN=%q: %v", os.Getenv("BERTH_BIN"), err)
	}
	return ""
}

// StartAgent starts berth-node, also again after it was killed, with these flags beside its own.
func (m *Machine) StartAgent(flags ...string) {
	m.plane.T.Helper()
	args := append([]string{"--node-name", m.Name, "--kubeconfig", m.plane.Admin, "--kubelet-url", m.KubeletURL}, flags...)
	m.AgentProcess = m.Start("berth-node", AgentBinary(), args...)
}
