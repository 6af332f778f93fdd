// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// Authority is a certificate authority made for one test.
type Authority struct {
	// File is its certificate, PEM.
	File string
	dir  string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// KeyPair names the PEM files of a certificate and its key.
type KeyPair struct {
	CertFile, KeyFile string
}

// NewAuthority makes a CA whose files are dir/name*.pem.
func NewAuthority(t T, dir, name string) *Authority {
	t.Helper()
	key := newKey(t)
	template := &x509.Certificate{
		SerialNumber:          big.NewInt(1),
		Subject:               pkix.Name{CommonName: name},
		NotBefore:             time.Now().Add(-time.Hour),
		NotAfter:              time.Now().Add(24 * time.Hour),
		IsCA:                  true,
		BasicConstraintsValid: true,
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatalf("CA %s: %v", name, err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatalf("CA %s: %v", name, err)
	}
	a := &Authority{File: filepath.Join(dir, name+".pem"), dir: dir, cert: cert, key: key}
	writePEM(t, a.File, "CERTIFICATE", der)
	return a
}

// Issue makes a certificate for loopback servers, for the Service of the API server, and for clients; user and groups are who a client is.
func (a *Authority) Issue(t T, user string, groups ...string) KeyPair {
	t.Helper()
	key := newKey(t)
	serial, err := rand.Int(rand.Reader, big.NewInt(1<<62))
	if err != nil {
		t.Fatalf("%v", err)
	}
	template := &x509.Certificate{
		SerialNumber: serial,
		Subject:      pkix.Name{CommonName: user, Organization: groups},
		NotBefore:    time.Now().Add(-time.Hour),
		NotAfter:     time.Now().Add(24 * time.Hour),
		KeyUsage:     x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		DNSNames:     []string{"localhost"},
		IPAddresses:  []net.IP{net.IPv4(127, 0, 0, 1), net.ParseIP(APIServiceIP)},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, key.Public(), a.key)
	if err != nil {
		t.Fatalf("certificate of %s: %v", user, err)
	}
	pair := KeyPair{CertFile: filepath.Join(a.dir, user+".crt"), KeyFile: filepath.Join(a.dir, user+".key")}
	writePEM(t, pair.CertFile, "CERTIFICATE", der)
	writeKey(t, pair.KeyFile, key)
	return pair
}

func newKey(t T) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatalf("%v", err)
	}
	return key
}

func writeKey(t T, file string, key *ecdsa.PrivateKey) {
	t.Helper()
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatalf("%v", err)
	}
	writePEM(t, file, "EC PRIVATE KEY", der)
}

func writePEM(t T, file, kind string, der []byte) {
	t.Helper()
	writeFile(t, file, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
}

func writeFile(t T, file string, content []byte) {
	t.Helper()
	if err := os.WriteFile(file, content, 0o600); err != nil {
		t.Fatalf("%v", err)
	}
}
