// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Process is a program that ends with this one, however that ends.
type Process struct {
	name string
	cmd  *exec.Cmd
	log  string
	done chan struct{}
}

// The kernel sends the death signal when the *thread* that started the child ends, so one thread that lives as long as
// the program starts them all.
var starts = make(chan func())

func init() {
	go func() {
		runtime.LockOSThread()
		for start := range starts {
			start()
		}
	}()
}

// StartProcess runs path with its output appended to dir/name.log. A test that fails prints the end of that log.
func StartProcess(t T, dir, name, path string, args ...string) *Process {
	t.Helper()
	return startProcess(t, dir, name, &syscall.SysProcAttr{}, path, args...)
}

func startProcess(t T, dir, name string, attributes *syscall.SysProcAttr, path string, args ...string) *Process {
	t.Helper()
	p := &Process{name: name, log: filepath.Join(dir, name+".log"), done: make(chan struct{})}
	file, err := os.OpenFile(p.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatalf("%v", err)
	}
	defer file.Close()
	p.cmd = exec.Command(path, args...)
	p.cmd.Stdout, p.cmd.Stderr = file, file
	attributes.Pdeathsig = syscall.SIGKILL
	p.cmd.SysProcAttr = attributes
	started := make(chan error)
	starts <- func() { started <- p.cmd.Start() }
	if err := <-started; err != nil {
		t.Fatalf("start %s: %v", name, err)
	}
	go func() {
		_ = p.cmd.Wait()
		close(p.done)
	}()
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("--- the end of the log of %s (%s):\n%s", name, p.State(), p.logTail(40))
		}
		p.Kill()
	})
	return p
}

// Stop sends SIGTERM and waits; after a while it kills.
func (p *Process) Stop() {
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.done:
	case <-time.After(20 * time.Second):
		p.Kill()
	}
}

// Kill sends SIGKILL and waits.
func (p *Process) Kill() {
	_ = p.cmd.Process.Kill()
	<-p.done
}

// Running is false once the process has ended.
func (p *Process) Running() bool {
	select {
	case <-p.done:
		return false
	default:
		return true
	}
}

// State is "running", or how the process ended.
func (p *Process) State() string {
	if p.Running() {
		return "running"
	}
	return p.cmd.ProcessState.String()
}

// Pid is the id of the process.
func (p *Process) Pid() int { return p.cmd.Process.Pid }

// CPU is the user and system time that the process has used so far.
func (p *Process) CPU() time.Duration {
	if !p.Running() {
		return p.cmd.ProcessState.UserTime() + p.cmd.ProcessState.SystemTime()
	}
	return cpuOf(p.Pid())
}

// cpuOf is the user and system time that a process has used; 0 where there is none.
func cpuOf(pid int) time.Duration {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	// The name, field 2, may contain spaces: count from its closing bracket. Fields 14 and 15, in ticks of 10 ms.
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	user, _ := strconv.Atoi(fields[11])
	system, _ := strconv.Atoi(fields[12])
	return time.Duration(user+system) * 10 * time.Millisecond
}

// Log is all that the process, and those of the same name before it, have written.
func (p *Process) Log() string {
	text, _ := os.ReadFile(p.log)
	return string(text)
}

func (p *Process) logTail(lines int) string {
	all := strings.Split(strings.TrimRight(p.Log(), "\n"), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}
