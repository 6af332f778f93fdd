// SPDX-License-Identifier: Apache-2.0

// Package page tests the live page in a real browser, in front of a Berth that watches a small API server of this
// process.
package page

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// Berth is a `berth serve` process.
type Berth struct {
	URL     string
	process *exec.Cmd
}

// StartBerth watches that API server; more is added to its configuration.
func StartBerth(folder, apiURL, more string) (*Berth, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	listen := listener.Addr().String()
	_ = listener.Close()
	config := filepath.Join(folder, "berth.yaml")
	kubeconfig := filepath.Join(folder, "kubeconfig")
	write := func(path, text string) {
		if err == nil {
			err = os.WriteFile(path, []byte(text), 0o600)
		}
	}
	write(config, "apiVersion: berth.dev/v1alpha1\nkind: BerthConfiguration\nserver: {listen: \""+listen+"\"}\n"+more)
	write(kubeconfig, fmt.Sprintf(`apiVersion: v1
kind: Config
current-context: c
clusters: [{name: c, cluster: {server: %q}}]
contexts: [{name: c, context: {cluster: c, user: u}}]
users: [{name: u, user: {}}]
`, apiURL))
	if err != nil {
		return nil, err
	}
	process := exec.Command(filepath.Join(os.Getenv("BERTH_BIN"), "berth"), "serve", "--config", config, "--kubeconfig", kubeconfig)
	if process.Stderr, err = os.Create(filepath.Join(folder, "berth.log")); err != nil {
		return nil, err
	}
	if err := process.Start(); err != nil {
		return nil, err
	}
	b := &Berth{URL: "http://" + listen, process: process}
	for range 600 {
		if answer, err := http.Get(b.URL + "/healthz"); err == nil {
			_ = answer.Body.Close()
			if answer.StatusCode == http.StatusOK {
				return b, nil
			}
		}
		time.Sleep(50 * time.Millisecond)
	}
	b.Stop()
	return nil, fmt.Errorf("berth does not answer, see %s", folder)
}

// Stop ends the process.
func (b *Berth) Stop() {
	_ = b.process.Process.Kill()
	_, _ = b.process.Process.Wait()
}
