// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// NodesMissing says why no node can run containers here; empty when it can.
func NodesMissing() string {
	if _, err := containerdBinary("containerd", false); err != nil {
		return err.Error()
	}
	if _, err := lookPath("runc"); err != nil {
		return err.Error()
	}
	if cniFolder() == "" {
		return "no network plugin ptp in /usr/lib/cni or /opt/cni/bin: install containernetworking-plugins"
	}
	return PretendedNodesMissing()
}

// PretendedNodesMissing says why there can be no node here whose runtime is pretended; empty when there can.
func PretendedNodesMissing() string {
	if os.Getuid() != 0 {
		return "nodes need root"
	}
	if _, err := lookPath("nsenter"); err != nil {
		return err.Error()
	}
	return namespacesMissing()
}

// namespacesMissing tries what the first process of a node does.
func namespacesMissing() string {
	dir, err := os.MkdirTemp("", "berth-e2e-overlay-")
	if err != nil {
		return err.Error()
	}
	defer os.RemoveAll(dir)
	for _, name := range []string{"lower", "upper", "work", "all"} {
		_ = os.Mkdir(filepath.Join(dir, name), 0o755)
	}
	try := exec.Command("/bin/sh", "-c", `mount --make-rprivate / && mount -t overlay overlay `+
		`-o lowerdir=lower,upperdir=upper,workdir=work all && d=$(ls -d /sys/fs/cgroup/memory /sys/fs/cgroup | head -n 1) `+
		`&& mkdir -p "$d/$NAME" && rmdir "$d/$NAME"`)
	try.Dir = dir
	try.Env = append(os.Environ(), "NAME=berth-e2e-try-"+strconv.Itoa(os.Getpid())) // tests run beside each other
	try.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS | syscall.CLONE_NEWPID}
	if output, err := try.CombinedOutput(); err != nil {
		return fmt.Sprintf("no namespaces, overlays or cgroups here: %v: %s", err, strings.TrimSpace(string(output)))
	}
	return ""
}

// lookPath finds a program of the system's, also where PATH lacks the folders of root.
func lookPath(name string) (string, error) {
	for _, folder := range append(filepath.SplitList(os.Getenv("PATH")), "/usr/sbin", "/sbin", "/usr/bin") {
		path := filepath.Join(folder, name)
		if info, err := os.Stat(path); err == nil && !info.IsDir() {
			return path, nil
		}
	}
	return "", fmt.Errorf("no %s is installed", name)
}

// containerdBinary is a program of the containerd that was built with the tests, where it was and may be used.
func containerdBinary(name string, debian bool) (string, error) {
	if folder := os.Getenv("BERTH_E2E_CONTAINERD"); folder != "" && !debian {
		return filepath.Join(folder, name), nil
	}
	return lookPath(name)
}

func cniFolder() string {
	for _, folder := range []string{"/usr/lib/cni", "/opt/cni/bin"} {
		if _, err := os.Stat(filepath.Join(folder, "ptp")); err == nil {
			return folder
		}
	}
	return ""
}

// writeConfigs writes those of containerd, of its network and of the kubelet, which listens on this HOST:PORT.
func (m *Machine) writeConfigs(listen string) {
	m.plane.T.Helper()
	write := func(name, text string) { writeFile(m.plane.T, m.file(name), []byte(text)) }
	if !m.Pretended {
		write("containerd.toml", fmt.Sprintf(containerdConfig, m.Dir, WorkImage, cniFolder()))
		write("cni/10-e2e.conflist", fmt.Sprintf(networkConfig, m.network(), m.file("ipam")))
	}
	host, port, _ := net.SplitHostPort(listen)
	mode := map[bool]string{false: "AlwaysAllow", true: "Webhook"}[m.Webhook]
	write("kubelet.yaml",
		fmt.Sprintf(kubeletConfig, m.cgroup, host, port, m.healthPort, !m.Webhook, m.Webhook, mode, m.runtimeSocket(), !m.Pretended)+
			m.MachineOptions.Kubelet)
}

// network is a subnet that no other machine of any test here has: by a port, which is ours alone.
func (m *Machine) network() string {
	return (&net.IPNet{IP: net.IPv4(10, byte(128+m.healthPort>>13&63), byte(m.healthPort>>5), byte(m.healthPort<<3)),
		Mask: net.CIDRMask(29, 32)}).String()
}

// containerd 2 reads this version of the file too, as does Debian's.
const containerdConfig = `version = 2
root = "%[1]s/containerd"
state = "/run/containerd"
[grpc]
  address = "/run/containerd/containerd.sock"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "%[2]s"
  disable_apparmor = true
  restrict_oom_score_adj = true
  enable_cdi = true
  cdi_spec_dirs = ["/run/cdi"]
  enable_unprivileged_ports = false
  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = "overlayfs"
    default_runtime_name = "runc"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"
      [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
        SystemdCgroup = false
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "%[3]s"
    conf_dir = "%[1]s/cni"
[plugins."io.containerd.internal.v1.opt"]
  path = "%[1]s/opt"
`

const networkConfig = `{"cniVersion": "0.4.0", "name": "e2e", "plugins": [
  {"type": "ptp", "ipMasq": false, "ipam": {"type": "host-local", "subnet": %q, "dataDir": %q, "routes": [{"dst": "0.0.0.0/0"}]}}]}
`

// The kubelet's own limits are out of the way: the machine is shared with other tests.
const kubeletConfig = `apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
failCgroupV1: false
cgroupDriver: cgroupfs
cgroupRoot: /%[1]s
enforceNodeAllocatable: []
address: %[2]s
port: %[3]s
healthzPort: %[4]d
healthzBindAddress: 127.0.0.1
readOnlyPort: 0
authentication: {anonymous: {enabled: %[5]v}, webhook: {enabled: %[6]v}}
authorization: {mode: %[7]s}
containerRuntimeEndpoint: unix://%[8]s
cgroupsPerQOS: %[9]v
podLogsDir: /var/log/pods
volumePluginDir: /var/lib/kubelet/volume-plugins
resolvConf: ""
makeIPTablesUtilChains: false
failSwapOn: false
evictionHard: {memory.available: 50Mi, nodefs.available: 1%%, nodefs.inodesFree: 1%%, imagefs.available: 1%%}
imageGCHighThresholdPercent: 100
maxPods: 250
kubeAPIQPS: 200
kubeAPIBurst: 400
`
