// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

const cgroupRoot = "/sys/fs/cgroup"

// hierarchies are the folders that have a tree of cgroups each: one with cgroup v2, one per controller with v1.
func hierarchies() []string {
	if unified() {
		return []string{cgroupRoot}
	}
	entries, _ := os.ReadDir(cgroupRoot)
	var all []string
	for _, entry := range entries {
		if entry.IsDir() {
			all = append(all, filepath.Join(cgroupRoot, entry.Name()))
		}
	}
	return all
}

func unified() bool {
	_, err := os.Stat(filepath.Join(cgroupRoot, "cgroup.controllers"))
	return err == nil
}

// makeCgroups makes the cgroup under which the kubelet puts its pods.
func makeCgroups(name string) error {
	if unified() {
		if err := delegate(); err != nil {
			return err
		}
	}
	var errs []error
	for _, hierarchy := range hierarchies() {
		own := filepath.Join(hierarchy, name)
		errs = append(errs, os.MkdirAll(own, 0o755))
		// With v1 a new cpuset is empty, and nothing can run in it.
		for _, file := range []string{"cpuset.cpus", "cpuset.mems"} {
			if text, err := os.ReadFile(filepath.Join(hierarchy, file)); err == nil && !unified() {
				errs = append(errs, os.WriteFile(filepath.Join(own, file), text, 0o600))
			}
		}
	}
	return errors.Join(errs...)
}

// delegate has the children of the root be limited by every controller that the kubelet needs. Where this program is
// in a container of its own, the root must have no processes: they move into a child.
func delegate() error {
	const wanted = "+cpu +cpuset +memory +pids"
	control := filepath.Join(cgroupRoot, "cgroup.subtree_control")
	if os.WriteFile(control, []byte(wanted), 0o600) == nil {
		return nil
	}
	rest := filepath.Join(cgroupRoot, "berth-e2e-rest")
	if err := os.MkdirAll(rest, 0o755); err != nil {
		return err
	}
	processes, err := os.ReadFile(filepath.Join(cgroupRoot, "cgroup.procs"))
	if err != nil {
		return err
	}
	for _, pid := range strings.Fields(string(processes)) {
		_ = os.WriteFile(filepath.Join(rest, "cgroup.procs"), []byte(pid), 0o600)
	}
	return os.WriteFile(control, []byte(wanted), 0o600)
}

// sweep removes the cgroups that a test left which was killed; they have no processes any more.
func sweep(prefix string) {
	for _, hierarchy := range hierarchies() {
		left, _ := filepath.Glob(filepath.Join(hierarchy, prefix+"*"))
		for _, folder := range left {
			pid, _, _ := strings.Cut(strings.TrimPrefix(filepath.Base(folder), prefix), "-")
			if number, err := strconv.Atoi(pid); err == nil && syscall.Kill(number, 0) == syscall.ESRCH {
				removeCgroup(folder)
			}
		}
	}
}

// remove removes the cgroup of a node that has ended.
func remove(name string) {
	for _, hierarchy := range hierarchies() {
		removeCgroup(filepath.Join(hierarchy, name))
	}
}

func removeCgroup(folder string) {
	var folders []string
	_ = filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.IsDir() {
			folders = append(folders, path)
		}
		return nil
	})
	for _, path := range slices.Backward(folders) {
		if err := syscall.Rmdir(path); err != nil {
			fmt.Fprintln(os.Stderr, "node:", path, err)
		}
	}
}
