// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
)

const nodesFolder = "/sys/devices/system/node"

// fakeNUMA has the machine seem to have two NUMA nodes, each with half of its CPUs and with all of its memory: the
// kubelet reads them from this folder.
func fakeNUMA(folder string) error {
	memory, err := os.ReadFile(nodesFolder + "/node0/meminfo")
	if err != nil {
		return err
	}
	cpus := runtime.NumCPU()
	if cpus < 2 {
		return errors.New("two NUMA nodes need two CPUs")
	}
	var errs []error
	write := func(name, text string) {
		file := filepath.Join(folder, name)
		errs = append(errs, os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, []byte(text+"\n"), 0o600))
	}
	for node, half := range [][2]int{{0, cpus / 2}, {cpus / 2, cpus}} {
		name := fmt.Sprintf("node%d/", node)
		write(name+"meminfo", strings.ReplaceAll(string(memory), "Node 0", fmt.Sprintf("Node %d", node)))
		write(name+"cpulist", fmt.Sprintf("%d-%d", half[0], half[1]-1))
		write(name+"distance", []string{"10 20", "20 10"}[node])
		errs = append(errs, os.MkdirAll(filepath.Join(folder, name, "hugepages"), 0o755))
		for cpu := half[0]; cpu < half[1]; cpu++ {
			errs = append(errs, os.Symlink(fmt.Sprintf("../../cpu/cpu%d", cpu), filepath.Join(folder, name, fmt.Sprintf("cpu%d", cpu))))
		}
	}
	for _, file := range []string{"online", "possible", "has_cpu", "has_memory", "has_normal_memory"} {
		write(file, "0-1")
	}
	return errors.Join(append(errs, mount(folder, nodesFolder, "", syscall.MS_BIND))...)
}
