// SPDX-License-Identifier: Apache-2.0

// Node is the first process of a node of the tests: in a mount and a PID namespace of its own it makes the machine look
// like one node's, and waits. What runs on the node is started into its namespaces, and ends with it.
//
//	node FOLDER CGROUP [numa]      FOLDER/kubelet becomes /var/lib/kubelet; FOLDER/ready appears
//	node -sweep PREFIX             removes cgroups PREFIX<pid>-... of processes that have ended
//	node -remove CGROUP            removes the cgroup of a node that has ended
package main

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
)

func main() {
	var err error
	switch {
	case len(os.Args) == 3 && os.Args[1] == "-sweep":
		sweep(os.Args[2])
		return
	case len(os.Args) == 3 && os.Args[1] == "-remove":
		remove(os.Args[2])
		return
	case len(os.Args) == 3 || len(os.Args) == 4 && os.Args[3] == "numa":
		err = prepare(os.Args[1], os.Args[2], len(os.Args) == 4)
	default:
		err = errors.New("usage: node FOLDER CGROUP [numa] | -sweep PREFIX | -remove CGROUP")
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(os.Args[1], "ready"), nil, 0o600)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "node:", err)
		os.Exit(1)
	}
	reap()
}

// reap takes the exit codes of what was left to the first process, such as the shims of containers, for ever.
func reap() {
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, syscall.SIGCHLD)
	for {
		for {
			pid, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil)
			if pid <= 0 || err != nil {
				break
			}
		}
		<-ended
	}
}

func prepare(folder, cgroup string, numa bool) error {
	// What is mounted here is seen nowhere else.
	if err := mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE); err != nil {
		return err
	}
	if err := mount("proc", "/proc", "proc", 0); err != nil {
		return err
	}
	kubelet := filepath.Join(folder, "kubelet")
	errs := []error{
		// Sockets and network namespaces of the runtime, links to the logs of containers.
		mount("tmpfs", "/run", "tmpfs", 0), mount("tmpfs", "/var/log", "tmpfs", 0),
		os.MkdirAll(kubelet, 0o755), os.MkdirAll("/var/lib/kubelet", 0o755),
		mount(kubelet, "/var/lib/kubelet", "", syscall.MS_BIND),
		mount("", "/var/lib/kubelet", "", syscall.MS_REC|syscall.MS_SHARED),
		makeCgroups(cgroup),
	}
	if numa {
		errs = append(errs, fakeNUMA(filepath.Join(folder, "numa")))
	}
	return errors.Join(errs...)
}

func mount(what, where, kind string, flags uintptr) error {
	if err := syscall.Mount(what, where, kind, flags, ""); err != nil {
		return fmt.Errorf("mount %s%s on %s: %w", kind, what, where, err)
	}
	return nil
}
