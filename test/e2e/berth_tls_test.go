// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"testing"
	"time"

	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"berth.dev/e2e/harness"
)

// startedWith starts a Berth with rights, as user, believing in caFile where given.
func startedWith(t *testing.T, user func(*harness.Plane) clientcmdapi.AuthInfo, caFile func(*harness.Plane) string) *harness.Berth {
	t.Helper()
	needBerth(t)
	plane := harness.NewPlane(t)
	plane.CreateNodes(1)
	plane.Grant(harness.BerthUser, harness.BerthRules...)
	berth := plane.NewBerth("berth", plane.Kubeconfig("berth", plane.URL(), user(plane), caFile(plane)), "")
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
