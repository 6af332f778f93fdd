// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"fmt"
	"time"
)

// StartControllerManager starts kube-controller-manager with all its controllers: those of Jobs, CronJobs, StatefulSets,
// Deployments, ResourceClaims and nodes, the garbage collectors of objects and of pods. A node whose kubelet is silent
// (see Kubelets) is not ready after 8 s instead of Kubernetes' 50, and its pods are deleted at once.
func (p *Plane) StartControllerManager() *Process {
	p.T.Helper()
	kubeconfig := p.Kubeconfig("controller-manager", p.Certificate("system:kube-controller-manager", "system:masters"))
	port := FreePort(p.T)
	process := StartProcess(p.T, p.Dir, "kube-controller-manager", Binary(p.T, "kube-controller-manager"),
		"--kubeconfig="+kubeconfig, "--authentication-kubeconfig="+kubeconfig, "--authorization-kubeconfig="+kubeconfig,
		"--authentication-skip-lookup", "--leader-elect=false", "--kube-api-qps=1000", "--kube-api-burst=1000",
		"--bind-address=127.0.0.1", fmt.Sprintf("--secure-port=%d", port),
		"--tls-cert-file="+p.file("apiserver.crt"), "--tls-private-key-file="+p.file("apiserver.key"),
		"--root-ca-file="+p.CA.File, "--service-account-private-key-file="+p.file("service-account.key"),
		"--node-monitor-period=1s", "--node-monitor-grace-period=8s", "--node-startup-grace-period=20s",
		"--node-eviction-rate=10")
	Eventually(p.T, "kube-controller-manager to be ready", time.Minute, func() error {
		if !process.Running() {
			p.T.Fatalf("kube-controller-manager ended: %s", process.State())
		}
		return okAt(withoutChecks(), fmt.Sprintf("https://%s/healthz", address(port)))
	})
	return process
}
