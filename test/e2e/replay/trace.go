// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"compress/gzip"
	"encoding/csv"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"berth.dev/e2e/harness"
)

// machine is a row of the trace's nodes.
type machine struct {
	name                string
	cpuMilli, memoryMiB int64
	gpus                int
	model               string
}

// task is a row of the trace's pods; milli is what it asks of each of its GPUs.
type task struct {
	name                string
	cpuMilli, memoryMiB int64
	gpus, milli         int64
	models              []string
}

func (t task) gpuMilli() int64 { return t.gpus * t.milli }

// trace is a cluster, and the tasks in the order in which they arrive.
type trace struct {
	machines []machine
	tasks    []task
	arrivals []task
}

// readTrace reads a trace of the folder (see the data's README) with the arrival order of a seed. As everywhere, the
// nodes get names whose order is the order of the seed: it decides ties.
func readTrace(folder, name string, seed int) (trace, error) {
	rows, err := readCSV(filepath.Join(folder, "openb_node_list_gpu_node.csv"))
	if err != nil {
		return trace{}, err
	}
	var t trace
	for _, row := range rows {
		t.machines = append(t.machines, machine{cpuMilli: number(row[1]), memoryMiB: number(row[2]),
			gpus: int(number(row[3])), model: row[4]})
	}
	if rows, err = readCSV(filepath.Join(folder, "openb_pod_list_"+name+".csv.gz")); err != nil {
		return trace{}, err
	}
	for _, row := range rows {
		read := task{name: row[0], cpuMilli: number(row[1]), memoryMiB: number(row[2]), gpus: number(row[3]),
			milli: number(row[4])}
		if len(row) > 5 && row[5] != "" {
			read.models = strings.Split(row[5], "|")
		}
		t.tasks = append(t.tasks, read)
	}
	slices.SortFunc(t.tasks, func(a, b task) int { return strings.Compare(a.name, b.name) })
	order, ranks, err := readOrder(filepath.Join(folder, "orders", name+".txt.gz"), seed)
	if err != nil {
		return trace{}, err
	}
	for i, rank := range ranks {
		t.machines[i].name = fmt.Sprintf("node-%05d", rank)
	}
	for n, index := range order {
		arrived := t.tasks[index]
		arrived.name = fmt.Sprintf("pod-%05d", n)
		t.arrivals = append(t.arrivals, arrived)
	}
	return t, nil
}

func open(path string) (io.ReadCloser, error) {
	file, err := os.Open(path)
	if err != nil || !strings.HasSuffix(path, ".gz") {
		return file, err
	}
	return gzip.NewReader(file)
}

// readCSV gives the rows below the header.
func readCSV(path string) ([][]string, error) {
	file, err := open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	rows, err := csv.NewReader(file).ReadAll()
	if err != nil || len(rows) < 2 {
		return nil, fmt.Errorf("%s: want a header and rows, got %d lines: %v", path, len(rows), err)
	}
	return rows[1:], nil
}

// readOrder finds "seed N ...", the indices of the tasks on the next line, and each node's rank on the one after it.
func readOrder(path string, seed int) (order, ranks []int, err error) {
	file, err := open(path)
	if err != nil {
		return nil, nil, err
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<24)
	for lines.Scan() {
		if strings.HasPrefix(lines.Text(), fmt.Sprintf("seed %d ", seed)) && lines.Scan() {
			order = numbers(lines.Text())
			lines.Scan()
			return order, numbers(lines.Text()), lines.Err()
		}
	}
	return nil, nil, fmt.Errorf("%s: no seed %d", path, seed)
}

func numbers(line string) []int {
	var all []int
	for _, field := range strings.Fields(line) {
		all = append(all, int(number(field)))
	}
	return all
}

func number(text string) int64 {
	value, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		panic(fmt.Sprintf("want a whole number, got %q", text))
	}
	return value
}

func (m machine) node() *v1.Node {
	node := harness.Node(m.name, m.model, m.gpus)
	for _, list := range []v1.ResourceList{node.Status.Capacity, node.Status.Allocatable} {
		list[v1.ResourceCPU] = *resource.NewMilliQuantity(m.cpuMilli, resource.DecimalSI)
		list[v1.ResourceMemory] = *resource.NewQuantity(m.memoryMiB<<20, resource.BinarySI)
		list[harness.MilliResource] = *resource.NewQuantity(int64(m.gpus)*1000, resource.DecimalSI)
	}
	return node
}

// podForBerth asks as a user of Berth does; podForScheduler asks for thousandths of a node's GPUs taken together,
// which is all that kube-scheduler alone can count. It lets a share lie across two GPUs, so it flatters.
func (t task) podForBerth() *v1.Pod {
	pod := t.pod()
	limits := pod.Spec.Containers[0].Resources.Limits
	switch {
	case t.gpus == 1 && t.milli < 1000:
		limits[harness.MilliResource] = *resource.NewQuantity(t.milli, resource.DecimalSI)
	case t.gpus > 0:
		limits[harness.GPUResource] = *resource.NewQuantity(t.gpus, resource.DecimalSI)
	}
	if len(t.models) > 0 {
		pod.Annotations["berth.dev/gpu-model"] = strings.Join(t.models, "|")
	}
	return pod
}

func (t task) podForScheduler() *v1.Pod {
	pod := t.pod()
	if t.gpus > 0 {
		pod.Spec.Containers[0].Resources.Limits[harness.MilliResource] = *resource.NewQuantity(t.gpuMilli(), resource.DecimalSI)
	}
	if len(t.models) > 0 {
		in := v1.NodeSelectorRequirement{Key: harness.ProductLabel, Operator: v1.NodeSelectorOpIn, Values: t.models}
		pod.Spec.Affinity = &v1.Affinity{NodeAffinity: &v1.NodeAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: &v1.NodeSelector{NodeSelectorTerms: []v1.NodeSelectorTerm{
				{MatchExpressions: []v1.NodeSelectorRequirement{in}}}}}}
	}
	return pod
}

func (t task) pod() *v1.Pod {
	pod := harness.Pod(t.name, nil)
	limits := pod.Spec.Containers[0].Resources.Limits
	limits[v1.ResourceCPU] = *resource.NewMilliQuantity(t.cpuMilli, resource.DecimalSI)
	limits[v1.ResourceMemory] = *resource.NewQuantity(t.memoryMiB<<20, resource.BinarySI)
	return pod
}
