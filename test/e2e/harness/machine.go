// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"
)

// MachineOptions say what a machine of StartNode is like. The zero value has 8 GPUs of NVIDIA's device plugin.
type MachineOptions struct {
	// Name is the name of the node.
	Name string
	// GPUs are what the plugin advertises, as fakegpu's -gpus takes them; "-" starts no plugin. "" is 8 GPUs.
	GPUs string
	// Replicas has the plugin offer each GPU so many times, as NVIDIA's does with time slicing; 0 is once.
	Replicas int
	// PluginFlags are given to fakegpu beside its own.
	PluginFlags []string
	// Agent has the plugin register with berth-node, which StartAgent starts, instead of the kubelet.
	Agent bool
	// Labels are given to the node beside those of its GPUs: NAME=VALUE, comma separated.
	Labels string
	// Kubelet is appended to the KubeletConfiguration.
	Kubelet string
	// Webhook has the kubelet ask the API server who asks it, and for what they have rights.
	Webhook bool
	// Address is an address of this machine at which the kubelet listens on the usual port, as manifests have it; in a
	// network of the test's own. "" is loopback, and a port that nobody else has.
	Address string
	// FakeNUMA has the machine show two NUMA nodes.
	FakeNUMA bool
	// Debian takes the installed containerd instead of the one that was built with the tests.
	Debian bool
	// Pretended has a runtime that runs no containers: the kubelet is real, and admits many pods at little cost.
	Pretended bool
}

// Machine is a node that runs containers: containerd (or a runtime that pretends), a kubelet and a device plugin of GPUs
// that do not exist, in a mount and a PID namespace of their own.
type Machine struct {
	MachineOptions
	Dir string
	// Containerd (none where the runtime is pretended), Kubelet, Plugin and Agent are its programs; each may be killed and
	// started again.
	Containerd, Kubelet, Plugin, AgentProcess *Inside
	// KubeletURL is where the kubelet answers: /configz, /pods.
	KubeletURL string

	plane      *Plane
	init       *Process
	cgroup     string
	number     int
	healthPort int
}

var machines struct {
	sync.Mutex
	started int
}

// cgroupPrefix, the process that started the node, its name.
const cgroupPrefix = "berth-e2e-"

// StartNode starts a machine and waits until its node is ready and its plugin serves.
func (p *Plane) StartNode(options MachineOptions) *Machine {
	p.T.Helper()
	m := p.StartMachine(options)
	m.StartKubelet()
	m.WaitReady()
	if m.GPUs != "-" {
		m.StartPlugin()
		if !m.Agent {
			m.WaitGPUs()
		}
	}
	return m
}

// StartMachine starts one with its runtime only.
func (p *Plane) StartMachine(options MachineOptions) *Machine {
	p.T.Helper()
	m := &Machine{MachineOptions: options, plane: p, Dir: p.file("node-" + options.Name), healthPort: FreePort(p.T)}
	machines.Lock()
	m.number = machines.started
	machines.started++
	machines.Unlock()
	listen := address(FreePort(p.T))
	if m.Address != "" {
		listen = net.JoinHostPort(m.Address, "10250")
	}
	m.KubeletURL = "https://" + listen
	m.cgroup = fmt.Sprintf("%s%d-%s", cgroupPrefix, os.Getpid(), options.Name)
	if err := os.MkdirAll(filepath.Join(m.Dir, "cni"), 0o755); err != nil {
		p.T.Fatalf("%v", err)
	}
	m.writeConfigs(listen)
	m.startInit()
	if m.Pretended {
		m.Start("fakecri", Binary(p.T, "fakecri"), m.runtimeSocket())
		m.waitFile(m.runtimeSocket())
		return m
	}
	m.Containerd = m.Start("containerd", m.binary("containerd"), "--config", m.file("containerd.toml"))
	m.ImportImage(ImageArchive(p.T, WorkImage, map[string]string{"/work": Binary(p.T, "work")}, "/work"))
	return m
}

// runtimeSocket is where the runtime listens, on the machine.
func (m *Machine) runtimeSocket() string {
	if m.Pretended {
		return "/run/fakecri.sock"
	}
	return "/run/containerd/containerd.sock"
}

// waitFile waits for a file of the machine.
func (m *Machine) waitFile(file string) {
	m.plane.T.Helper()
	Eventually(m.plane.T, file+" on "+m.Name, 30*time.Second, func() error {
		if m.Containerd != nil && !m.Containerd.Running() {
			m.plane.T.Fatalf("containerd on %s ended: %s", m.Name, m.Containerd.logTail(5))
		}
		_, err := os.Stat(m.Path(file))
		return err
	})
}

func (m *Machine) file(name string) string { return filepath.Join(m.Dir, name) }

// startInit starts the first process of the namespaces, and removes what killed tests have left.
func (m *Machine) startInit() {
	t := m.plane.T
	t.Helper()
	node := Binary(t, "node")
	_ = exec.Command(node, "-sweep", cgroupPrefix).Run()
	t.Cleanup(func() { _ = exec.Command(node, "-remove", m.cgroup).Run() })
	args := []string{m.Dir, m.cgroup}
	if m.FakeNUMA {
		args = append(args, "numa")
	}
	attributes := &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS | syscall.CLONE_NEWPID}
	m.init = startProcess(t, m.plane.Dir, m.Name+"-init", attributes, node, args...)
	Eventually(t, m.Name+" to have its namespaces", 10*time.Second, func() error {
		if !m.init.Running() {
			t.Fatalf("the node %s ended: %s: %s", m.Name, m.init.State(), m.init.Log())
		}
		_, err := os.Stat(m.file("ready"))
		return err
	})
}

// Start starts a program on the machine; its log is NODE-NAME.log in the folder of the plane.
func (m *Machine) Start(name, path string, args ...string) *Inside {
	m.plane.T.Helper()
	return m.startWith(nil, name, path, args...)
}

// startWith is Start with this environment, NAME=VALUE, beside ours.
func (m *Machine) startWith(env []string, name, path string, args ...string) *Inside {
	m.plane.T.Helper()
	all := append(m.enter(), "/usr/bin/env", "PATH="+filepath.Dir(path)+":/usr/sbin:/usr/bin:/sbin:/bin")
	all = append(append(append(all, env...), path), args...)
	process := StartProcess(m.plane.T, m.plane.Dir, m.Name+"-"+name, all[0], all[1:]...)
	inside := &Inside{Process: process}
	Eventually(m.plane.T, name+" to start on "+m.Name, 10*time.Second, func() error {
		if !process.Running() {
			m.plane.T.Fatalf("%s on %s ended: %s: %s", name, m.Name, process.State(), process.logTail(5))
		}
		return inside.find()
	})
	return inside
}

func (m *Machine) enter() []string {
	return []string{"/usr/bin/nsenter", fmt.Sprintf("--target=%d", m.init.Pid()), "--mount", "--pid", "--"}
}

// Run runs a program on the machine and gives what it writes to stdout; the test fails if the program does.
func (m *Machine) Run(input []byte, path string, args ...string) string {
	m.plane.T.Helper()
	all := append(append(m.enter(), path), args...)
	command := exec.Command(all[0], all[1:]...)
	var output, errors bytes.Buffer
	command.Stdin, command.Stdout, command.Stderr = bytes.NewReader(input), &output, &errors
	if err := command.Run(); err != nil {
		m.plane.T.Fatalf("%s %s on %s: %v: %s", path, strings.Join(args, " "), m.Name, err, errors.String())
	}
	return output.String()
}

// Path is where a file of the machine is found from outside.
func (m *Machine) Path(file string) string { return fmt.Sprintf("/proc/%d/root%s", m.init.Pid(), file) }

// Kill ends everything on the machine at once, as when it loses its power.
func (m *Machine) Kill() { m.init.Kill() }

// Images are the names of the images that the machine has.
func (m *Machine) Images() string {
	m.plane.T.Helper()
	return m.Run(nil, m.binary("ctr"), "--namespace=k8s.io", "images", "ls", "--quiet")
}

// ImportImage gives the machine an image of ImageArchive, or another that containerd takes.
func (m *Machine) ImportImage(archive []byte) {
	m.plane.T.Helper()
	m.waitFile(m.runtimeSocket())
	m.Run(archive, m.binary("ctr"), "--namespace=k8s.io", "images", "import", "-")
}

// binary is a program of containerd.
func (m *Machine) binary(name string) string {
	m.plane.T.Helper()
	path, err := containerdBinary(name, m.Debian)
	if err != nil {
		m.plane.T.Fatalf("%v", err)
	}
	return path
}
