// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	networkingv1 "k8s.io/api/networking/v1"

	"berth.dev/e2e/harness"
)

// Another pod's address in the network of the test.
const strangerAddress = "192.0.2.20"

// The overlay with mutual TLS and NetworkPolicies, whose rules the kernel carries out here: who has the right gets through
// the API server to Berth's pages, and nobody else gets there.
func TestViewersGetInByARightInTheProductionOverlay(t *testing.T) {
	needBerth(t)
	if _, err := exec.LookPath("iptables"); err != nil {
		t.Skip("there is no iptables to carry out NetworkPolicies")
	}
	if !inOwnNetwork(t) {
		return
	}
	run(t, "ip", "addr", "add", strangerAddress+"/32", "dev", "lo")
	plane := harness.NewPlane(t, "--advertise-address="+podAddress)
	plane.CreateNodes(1)
	plane.GrantBerth()
	server, _ := certificates(t, plane)
	debug := net.JoinHostPort(podAddress, "8889")
	berth := berthWithTLS(t, plane, server, debug)
	addDebugService(t, plane)
	plane.Kubectl("apply", "--filename=manifests/components/viewers/rbac.yaml")
	_, ask := kubectlBerth(t)
	viewer := plane.Kubeconfig("ann", plane.Certificate("ann", "berth-viewers"))

	// As shipped it has nobody's address.
	enforce(t, render(t, "manifests/overlays/production"))
	out, err := ask(viewer, "top")
	if err == nil {
		t.Fatalf("the NetworkPolicy lets in the API server, whose address it does not have:\n%s", out)
	}
	wantParts(t, out, "berth: note: no answer from berth-system/berth for 5 s", "; a NetworkPolicy may keep the API server from Berth",
		"put the addresses of your API servers into berth-viewers")

	enforce(t, render(t, withAPIServer(t, podAddress)))
	if out, err := ask(viewer, "top"); err != nil || contains(out, harness.GPUModel) != nil {
		t.Errorf("a viewer: %v\n%s", err, out)
	}
	out, err = ask(plane.Kubeconfig("bob", plane.Certificate("bob")), "top")
	if err == nil || contains(out, "; ask an administrator for the group berth-viewers") != nil {
		t.Errorf("somebody who may not: %v\n%s", err, out)
	}
	// The pages ask nobody who they are: a pod's address is not let in.
	stranger := net.Dialer{Timeout: 2 * time.Second, LocalAddr: &net.TCPAddr{IP: net.ParseIP(strangerAddress)}}
	if connection, err := stranger.Dial("tcp", debug); err == nil {
		connection.Close()
		t.Error("another pod reaches the pages")
	}
	if berth.Metric("berth_ready") != 1 { // from the API server's address, as the viewer
		t.Error("the rules of this test let nobody in")
	}
}

// withAPIServer is an overlay of production as docs/commands.md has it.
func withAPIServer(t *testing.T, address string) string {
	t.Helper()
	folder := t.TempDir()
	text := "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources: [" +
		relative(t, folder, "manifests/overlays/production") + "]\npatches:\n- target: {kind: NetworkPolicy, name: berth-viewers}\n" +
		"  patch: '- {op: replace, path: /spec/ingress/0/from/0/ipBlock/cidr, value: " + address + "/32}'\n"
	if err := os.WriteFile(filepath.Join(folder, "kustomization.yaml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return folder
}

// enforce has the kernel drop what no NetworkPolicy lets through to the port of Berth's pages. The pods that selectors name
// are not there.
func enforce(t *testing.T, objects rendered) {
	t.Helper()
	run(t, "iptables", "-F", "INPUT")
	for name := range objects {
		if !strings.HasPrefix(name, "NetworkPolicy/") {
			continue
		}
		policy := as[networkingv1.NetworkPolicy](t, objects, name)
		if policy.Spec.PodSelector.MatchLabels["app.kubernetes.io/name"] != "berth" {
			continue
		}
		for _, rule := range policy.Spec.Ingress {
			for _, from := range rule.From {
				for _, port := range rule.Ports {
					if from.IPBlock != nil && !strings.Contains(from.IPBlock.CIDR, ":") {
						run(t, "iptables", "-A", "INPUT", "-d", podAddress, "-s", from.IPBlock.CIDR, "-p", "tcp", "--dport",
							strconv.Itoa(port.Port.IntValue()), "-j", "ACCEPT")
					}
				}
			}
		}
	}
	run(t, "iptables", "-A", "INPUT", "-d", podAddress, "-p", "tcp", "--dport", "8889", "-j", "DROP")
}

func run(t *testing.T, name string, arguments ...string) {
	t.Helper()
	if out, err := exec.Command(name, arguments...).CombinedOutput(); err != nil {
		t.Fatalf("%s %v: %v\n%s", name, arguments, err, out)
	}
}
