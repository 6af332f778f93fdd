// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"testing"
	"time"

	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	configv1 "k8s.io/kube-scheduler/config/v1"

	"berth.dev/e2e/harness"
)

// Berth and the API server.

// startedWith starts a Berth with rights, as user, believing in caFile where given.
func startedWith(t *testing.T, user func(*harness.Plane) clientcmdapi.AuthInfo, caFile func(*harness.Plane) string) *harness.Berth {
	t.Helper()
	needBerth(t)
	plane := harness.NewPlane(t)
	plane.CreateNodes(1)
	plane.GrantBerth()
	berth := plane.NewBerth("berth", plane.BerthKubeconfig(plane.URL(), user(plane), caFile(plane)), "")
	berth.Start()
	return berth
}

func rightCA(plane *harness.Plane) string { return plane.CA.File }

func otherCA(plane *harness.Plane) string {
	return harness.NewAuthority(plane.T, plane.Dir, "other-ca").File
}

func token(plane *harness.Plane) clientcmdapi.AuthInfo { return plane.Token() }

func wantNeverReady(t *testing.T, berth *harness.Berth) {
	t.Helper()
	for range 50 {
		if berth.Ready() == nil {
			t.Fatal("Berth is ready")
		}
		time.Sleep(100 * time.Millisecond)
	}
}

func TestClientCertificateIsTaken(t *testing.T) {
	startedWith(t, func(plane *harness.Plane) clientcmdapi.AuthInfo {
		return plane.Certificate(harness.BerthUser)
	}, rightCA).WaitReady()
}

func TestTokenIsTaken(t *testing.T) { startedWith(t, token, rightCA).WaitReady() }

func TestAPIServerOfAnotherCAIsRefused(t *testing.T) {
	berth := startedWith(t, token, otherCA)
	wantNeverReady(t, berth)
	if err := contains(berth.Log(), "certificate"); err != nil {
		t.Error(err)
	}
}

func TestClientCertificateOfAnotherCAIsRefused(t *testing.T) {
	berth := startedWith(t, func(plane *harness.Plane) clientcmdapi.AuthInfo {
		pair := harness.NewAuthority(plane.T, plane.T.TempDir(), "stranger").Issue(plane.T, harness.BerthUser)
		return clientcmdapi.AuthInfo{ClientCertificate: pair.CertFile, ClientKey: pair.KeyFile}
	}, rightCA)
	wantNeverReady(t, berth)
}

func TestUnknownTokenIsRefused(t *testing.T) {
	berth := startedWith(t, func(*harness.Plane) clientcmdapi.AuthInfo {
		return clientcmdapi.AuthInfo{Token: "of-nobody"}
	}, rightCA)
	wantNeverReady(t, berth)
	if err := contains(berth.Log(), "401"); err != nil {
		t.Error(err)
	}
}

// kube-scheduler and Berth.

// scheduledOverTLS starts a Berth that asks kube-scheduler for a certificate of the plane's CA, a kube-scheduler that
// shows one of ca, and a pod.
func scheduledOverTLS(t *testing.T, ca func(*harness.Plane) *harness.Authority) *harness.Plane {
	t.Helper()
	needBerth(t)
	plane := harness.NewPlane(t)
	plane.CreateNodes(1)
	plane.GrantBerth()
	own := plane.CA.Issue(t, "berth-server")
	berth := plane.NewBerth("berth", plane.BerthKubeconfig(plane.URL(), plane.Token()), fmt.Sprintf(
		"server:\n  tls:\n    certificateFile: %s\n    keyFile: %s\n    clientCaFile: %s\n", own.CertFile, own.KeyFile, plane.CA.File))
	berth.ExpectTLS(plane.CA, plane.CA.Issue(t, "test"))
	berth.Start()
	berth.WaitReady()
	shown := ca(plane).Issue(t, "scheduler-of-berth")
	stanzas := harness.ShippedExtenders(t, berth.URL)
	for i := range stanzas {
		stanzas[i].EnableHTTPS = true
		stanzas[i].TLSConfig = &configv1.ExtenderTLSConfig{CAFile: plane.CA.File, CertFile: shown.CertFile, KeyFile: shown.KeyFile}
	}
	plane.StartScheduler(stanzas...)
	plane.CreatePods(harness.Pod("pod", harness.Ask{harness.GPUResource: "1"}))
	return plane
}

func TestSchedulerWithACertificateIsServed(t *testing.T) {
	plane := scheduledOverTLS(t, func(plane *harness.Plane) *harness.Authority { return plane.CA })
	plane.WaitBound(30 * time.Second)
	plane.CheckGrants()
}

func TestSchedulerWithACertificateOfAnotherCAIsRefused(t *testing.T) {
	plane := scheduledOverTLS(t, func(plane *harness.Plane) *harness.Authority {
		return harness.NewAuthority(plane.T, plane.Dir, "stranger")
	})
	why := plane.WaitPending("pod", 30*time.Second)
	if err := contains(why, "tls"); err != nil {
		t.Error(err)
	}
}
