// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Inside is a program on a Machine. Its Process is nsenter, which waits for it and ends as it does.
type Inside struct {
	*Process
	pid int
}

// find is nil once nsenter has started the program.
func (i *Inside) find() error {
	own := i.Process.Pid()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", own, own))
	if err != nil {
		return err
	}
	i.pid, err = strconv.Atoi(strings.TrimSpace(string(text)))
	return err
}

// Pid is the id of the program, outside of the machine.
func (i *Inside) Pid() int { return i.pid }

// Signal sends the program a signal.
func (i *Inside) Signal(signal syscall.Signal) { _ = syscall.Kill(i.pid, signal) }

// Kill ends the program at once and waits.
func (i *Inside) Kill() {
	if i.Running() {
		i.Signal(syscall.SIGKILL)
		i.Resume()
	}
	<-i.done
}

// Stop sends SIGTERM and waits; after a while it kills.
func (i *Inside) Stop() {
	if i.Running() {
		i.Signal(syscall.SIGTERM)
	}
	select {
	case <-i.done:
	case <-time.After(20 * time.Second):
		i.Kill()
	}
}

// Resume is the end of Signal(SIGSTOP): nsenter stops itself with the program.
func (i *Inside) Resume() {
	_ = i.cmd.Process.Signal(syscall.SIGCONT)
	i.Signal(syscall.SIGCONT)
}

// RSS is the memory that the program and its children hold, in bytes.
func (i *Inside) RSS() int64 {
	sum := int64(0)
	for _, pid := range family(i.pid) {
		text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
		if fields := strings.Fields(string(text)); len(fields) > 1 {
			pages, _ := strconv.ParseInt(fields[1], 10, 64)
			sum += pages * int64(os.Getpagesize())
		}
	}
	return sum
}

// CPU is the time that the program and its children have used.
func (i *Inside) CPU() time.Duration {
	sum := time.Duration(0)
	for _, pid := range family(i.pid) {
		sum += cpuOf(pid)
	}
	return sum
}

// Children are the processes that the program has started.
func (i *Inside) Children() []int { return family(i.pid)[1:] }

// family are a process and what it has started, and so on.
func family(pid int) []int {
	all := []int{pid}
	tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	for _, task := range tasks { // a child belongs to the thread that started it
		text, _ := os.ReadFile(task)
		for _, child := range strings.Fields(string(text)) {
			if number, err := strconv.Atoi(child); err == nil {
				all = append(all, family(number)...)
			}
		}
	}
	return all
}
