// SPDX-License-Identifier: Apache-2.0

// Package harness runs a Kubernetes control plane without nodes on loopback, and what is tested against it: etcd,
// kube-apiserver, kube-scheduler, Berth or another extender. It serves the tests, the benchmark and the demo.
package harness

import (
	"fmt"
	"os"
	"slices"
)

// T is the part of *testing.T that the harness needs, so that commands can use it too. What fails ends the test, and
// whatever was started ends with it.
type T interface {
	Helper()
	Cleanup(func())
	TempDir() string
	Failed() bool
	Logf(format string, args ...any)
	Fatalf(format string, args ...any)
}

// Command is the T of a program: it logs to stderr, and Fatalf cleans up and exits.
type Command struct {
	// Keep leaves the folders of TempDir; they are named in the log.
	Keep     bool
	cleanups []func()
	failed   bool
}

// Helper is for T; a command has no test lines to point at.
func (c *Command) Helper() {}

// Cleanup registers what Close does, last in first out.
func (c *Command) Cleanup(f func()) { c.cleanups = append(c.cleanups, f) }

// Failed says whether Fatalf was called.
func (c *Command) Failed() bool { return c.failed }

// TempDir is a new folder, removed by Close.
func (c *Command) TempDir() string {
	dir, err := os.MkdirTemp("", "berth-e2e-")
	if err != nil {
		c.Fatalf("%v", err)
	}
	c.Cleanup(func() {
		if !c.Keep {
			_ = os.RemoveAll(dir)
		}
	})
	return dir
}

// Logf writes to stderr.
func (c *Command) Logf(format string, args ...any) { fmt.Fprintf(os.Stderr, format+"\n", args...) }

// Fatalf logs, cleans up and exits with 1.
func (c *Command) Fatalf(format string, args ...any) {
	c.failed = true
	c.Logf(format, args...)
	c.Close()
	os.Exit(1)
}

// Close does the cleanups.
func (c *Command) Close() {
	cleanups := slices.Backward(c.cleanups)
	c.cleanups = nil
	for _, f := range cleanups {
		f()
	}
}
