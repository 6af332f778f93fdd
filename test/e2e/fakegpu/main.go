// SPDX-License-Identifier: Apache-2.0

// Fakegpu is a device plugin of GPUs that do not exist. It registers, serves and starts anew as the plugins of vendors
// do, and on demand it lies.
//
//	fakegpu -node NAME [-gpus 8] [-numa 0,0,1,1] [-kubelet-socket FILE] ...
//
// A GPU's ID is GPU-NAME-INDEX, that of a MIG device MIG-NAME-PROFILE-INDEX.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// folder is where the kubelet wants the sockets of plugins.
const folder = "/var/lib/kubelet/device-plugins"

func main() {
	node := flag.String("node", "", "name of the node; the devices are named after it")
	gpus := flag.String("gpus", "nvidia.com/gpu=8", "resources with their numbers of devices, comma separated; 8: nvidia.com/gpu=8")
	replicas := flag.Int("replicas", 1, "places per GPU, named ID::0, ID::1, ...")
	numa := flag.String("numa", "", "NUMA node of each GPU, comma separated; empty: the plugin says none")
	prefer := flag.String("prefer", "first", "how GPUs are preferred: none (no answer), first, last, nvidia (as its plugin)")
	links := flag.String("links", "", "islands of linked GPUs for -prefer nvidia, as 0-1,2-3")
	sick := flag.String("sick", "", "file with the IDs of devices that are not well; read again when it changes")
	calls := flag.String("calls", "", "append a JSON line per call to this file")
	lie := flag.String("lie", "", "vanish, duplicate, hang, many or error; see lies.go")
	socket := flag.String("kubelet-socket", os.Getenv("KUBELET_SOCKET"), "registration socket (env KUBELET_SOCKET); default "+folder+"/kubelet.sock")
	dir := flag.String("dir", folder, "where the plugin's own sockets are")
	flag.Parse()
	if *socket == "" {
		*socket = filepath.Join(folder, "kubelet.sock")
	}
	options := options{node: *node, replicas: *replicas, numa: strings.FieldsFunc(*numa, comma), prefer: *prefer, sick: *sick,
		lie: *lie, calls: newCallLog(*calls), links: parseLinks(*links)}
	var plugins []*plugin
	for _, part := range strings.FieldsFunc(*gpus, comma) {
		resource, number, found := strings.Cut(part, "=")
		if !found {
			resource, number = "nvidia.com/gpu", part
		}
		count, err := strconv.Atoi(number)
		if err != nil || *node == "" || flag.NArg() > 0 {
			fmt.Fprintln(os.Stderr, "usage: fakegpu -node NAME [-gpus RESOURCE=NUMBER,...] ...; see -help")
			os.Exit(2)
		}
		plugins = append(plugins, newPlugin(resource, count, *dir, options))
	}
	serve(plugins, *socket)
}

func comma(r rune) bool { return r == ',' || r == '\n' }

// serve starts all plugins, and again whenever somebody makes the registration socket anew: the kubelet removes the
// sockets of plugins when it starts. A link is looked at itself, not what it leads to: NVIDIA's plugin watches the folder.
func serve(plugins []*plugin, socket string) {
	var served os.FileInfo
	for ; ; time.Sleep(50 * time.Millisecond) {
		now, err := os.Lstat(socket)
		if err != nil || (served != nil && os.SameFile(now, served) && now.ModTime().Equal(served.ModTime())) {
			continue
		}
		served = now
		for _, p := range plugins {
			if err := p.restart(socket); err != nil {
				fmt.Fprintf(os.Stderr, "fakegpu: %s: %v; again in a moment\n", p.resource, err)
				served = nil
			}
		}
	}
}
