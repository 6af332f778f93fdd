// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	configv1 "k8s.io/kube-scheduler/config/v1"
	"sigs.k8s.io/yaml"
)

// Scheduler is a kube-scheduler with a configuration of its own.
type Scheduler struct {
	*Process
	// Config may be changed before Restart.
	Config configv1.KubeSchedulerConfiguration

	plane *Plane
	port  int
}

// StartScheduler starts kube-scheduler with these extenders and waits until it is ready to schedule.
func (p *Plane) StartScheduler(extenders ...configv1.Extender) *Scheduler {
	p.T.Helper()
	everyNode := int32(100)
	no := false
	s := &Scheduler{plane: p, port: FreePort(p.T)}
	s.Config = configv1.KubeSchedulerConfiguration{
		TypeMeta:                 metav1.TypeMeta{APIVersion: "kubescheduler.config.k8s.io/v1", Kind: "KubeSchedulerConfiguration"},
		PercentageOfNodesToScore: &everyNode,
		Extenders:                extenders,
	}
	s.Config.ClientConnection.Kubeconfig = p.Kubeconfig("scheduler", p.Certificate("scheduler", "system:masters"))
	s.Config.ClientConnection.QPS, s.Config.ClientConnection.Burst = 10000, 10000
	s.Config.LeaderElection.LeaderElect = &no
	s.Restart()
	return s
}

// Restart starts the scheduler again with Config as it is now.
func (s *Scheduler) Restart() {
	t := s.plane.T
	t.Helper()
	if s.Process != nil {
		s.Stop()
	}
	text, err := yaml.Marshal(s.Config)
	if err != nil {
		t.Fatalf("%v", err)
	}
	file := s.plane.file("scheduler.yaml")
	writeFile(t, file, text)
	s.Process = StartProcess(t, s.plane.Dir, "kube-scheduler", Binary(t, "kube-scheduler"), append(s.plane.SchedulerFlags,
		"--config="+file, "--bind-address=127.0.0.1", fmt.Sprintf("--secure-port=%d", s.port),
		"--tls-cert-file="+s.plane.file("apiserver.crt"), "--tls-private-key-file="+s.plane.file("apiserver.key"),
		"--authentication-skip-lookup", "--authentication-kubeconfig="+s.Config.ClientConnection.Kubeconfig,
		"--authorization-kubeconfig="+s.Config.ClientConnection.Kubeconfig)...)
	Eventually(t, "kube-scheduler to be ready", 30*time.Second, func() error {
		if !s.Running() {
			t.Fatalf("kube-scheduler ended: %s", s.State())
		}
		return s.ready()
	})
}

func (s *Scheduler) ready() error {
	return okAt(withoutChecks(), fmt.Sprintf("https://%s/readyz", address(s.port)))
}
