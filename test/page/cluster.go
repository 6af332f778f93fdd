// SPDX-License-Identifier: Apache-2.0

package page

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"time"
)

// Cluster is what an API server shows.
type Cluster struct {
	Nodes, Pods []Object
}

func (c *Cluster) node(name, model string, allocatable Object, labels map[string]string) Object {
	all := Object{"cpu": "128", "memory": "1Ti", "pods": "110"}
	for key, value := range allocatable {
		all[key] = value
	}
	own := Object{"kubernetes.io/hostname": name}
	if model != "" {
		own["nvidia.com/gpu.product"] = model
	}
	for key, value := range labels {
		own[key] = value
	}
	node := Object{
		"kind": "Node", "apiVersion": "v1",
		"metadata": Object{"name": name, "uid": "node-" + name, "labels": own, "annotations": Object{}, "resourceVersion": "1"},
		"spec":     Object{},
		"status": Object{
			"allocatable": all, "capacity": all,
			"conditions": []Object{{"type": "Ready", "status": "True"}},
		},
	}
	c.Nodes = append(c.Nodes, node)
	return node
}

func meta(object Object) Object { return object["metadata"].(Object) }

func pod(name string, requests Object, annotations Object) Object {
	container := Object{"name": "main", "image": "x", "resources": Object{"requests": requests, "limits": requests}}
	return Object{
		"kind": "Pod", "apiVersion": "v1",
		"metadata": Object{
			"name": name, "namespace": "team-a", "uid": "pod-" + name, "annotations": annotations, "labels": Object{},
			"resourceVersion": "1", "creationTimestamp": time.Now().Add(-3 * time.Hour).UTC().Format(time.RFC3339),
		},
		"spec":   Object{"containers": []Object{container}, "schedulerName": "default-scheduler"},
		"status": Object{"phase": "Pending"},
	}
}

func gpus(count int) Object {
	return Object{"cpu": "4", "memory": "16Gi", "nvidia.com/gpu": fmt.Sprint(count)}
}

// bound puts the pod on the node's GPUs; milli is of each, 1000 the whole.
func bound(p Object, node string, devices []int, milli int) Object {
	var grants []Object
	for _, device := range devices {
		grants = append(grants, Object{"index": device, "milli": milli})
	}
	record, _ := json.Marshal(Object{"version": 1, "node": node, "containers": Object{"main": Object{"gpus": grants}}})
	meta(p)["annotations"].(Object)["berth.dev/devices"] = string(record)
	p["spec"].(Object)["nodeName"] = node
	p["status"] = Object{"phase": "Running"}
	return p
}

func waiting(p Object, age time.Duration) Object {
	meta(p)["creationTimestamp"] = time.Now().Add(-age).UTC().Format(time.RFC3339)
	p["status"] = Object{"phase": "Pending", "conditions": []Object{
		{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}}}
	return p
}

func span(from, count int) []int {
	var devices []int
	for i := range count {
		devices = append(devices, from+i)
	}
	return devices
}

// EvilName is what a pod would be called by someone who tries the page.
const EvilName = `<img src=x onerror="document.title='run'">`

// SomeOfEverything is a cluster in which each state that the page knows occurs.
func SomeOfEverything() Cluster {
	var c Cluster
	for i := range 24 {
		name := fmt.Sprintf("h100-%02d", i)
		zone, leaf := fmt.Sprintf("eu-1%c", 'a'+i/12), fmt.Sprintf("leaf-%d", i/6+1)
		c.node(name, "NVIDIA-H100-80GB-HBM3", Object{"nvidia.com/gpu": "8"},
			map[string]string{"topology.kubernetes.io/zone": zone, "network.topology.nvidia.com/leaf": leaf,
				"nvidia.com/cuda.driver-version.major": "570", "nvidia.com/cuda.driver-version.minor": "86",
				"nvidia.com/cuda.driver-version.revision": "15", "nvidia.com/cuda.runtime-version.major": "12",
				"nvidia.com/cuda.runtime-version.minor": "8"})
	}
	for i := range 12 {
		c.node(fmt.Sprintf("a100-%02d", i), "NVIDIA-A100-SXM4-40GB", Object{"nvidia.com/gpu": "8"},
			map[string]string{"topology.kubernetes.io/zone": "eu-1a", "network.topology.nvidia.com/leaf": fmt.Sprintf("leaf-%d", i/6+5)})
	}
	for i := range 4 {
		c.node(fmt.Sprintf("mig-%d", i), "NVIDIA-A100-SXM4-40GB", Object{"nvidia.com/mig-3g.20gb": "4", "nvidia.com/mig-1g.5gb": "12"},
			map[string]string{"topology.kubernetes.io/zone": "eu-1b", "nvidia.com/mig.strategy": "mixed", "nvidia.com/gpu.count": "4",
				"nvidia.com/mig-3g.20gb.count": "4", "nvidia.com/mig-1g.5gb.count": "12"})
	}
	for i := range 3 {
		c.node(fmt.Sprintf("l4-%d", i), "NVIDIA-L4", Object{"nvidia.com/gpu": "16"},
			map[string]string{"topology.kubernetes.io/zone": "eu-1b", "nvidia.com/gpu.replicas": "4", "nvidia.com/gpu.count": "4",
				"nvidia.com/gpu.sharing-strategy": "time-slicing"})
	}
	c.node("cpu-only", "", Object{}, nil)
	c.Nodes[3]["spec"] = Object{"unschedulable": true, "taints": []Object{{"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}}}
	c.Nodes[5]["status"].(Object)["conditions"] = []Object{{"type": "Ready", "status": "False"}}
	sick := c.Nodes[7]["status"].(Object)
	sick["allocatable"] = Object{"cpu": "128", "memory": "1Ti", "pods": "110", "nvidia.com/gpu": "7"}
	c.Nodes[9]["status"].(Object)["allocatable"].(Object)["cpu"] = "16500m"

	add := func(p Object) { c.Pods = append(c.Pods, p) }
	random := rand.New(rand.NewPCG(1, 2))
	for i := range 24 {
		node := fmt.Sprintf("h100-%02d", i)
		for at := 0; at < 8; {
			size := []int{1, 1, 2, 4}[random.IntN(4)]
			if at+size <= 8 && random.IntN(10) < 7 && !(i == 7 && at+size > 6) {
				p := pod(fmt.Sprintf("train-%02d-%d", i, at), gpus(size), Object{})
				if i%8 == 2 {
					meta(p)["annotations"].(Object)["berth.dev/gang"] = "llm-pretrain"
					meta(p)["annotations"].(Object)["berth.dev/gang-size"] = "3"
				}
				if i%3 == 1 {
					meta(p)["namespace"] = "team-b"
				}
				add(bound(p, node, span(at, size), 1000))
			}
			at += size
		}
	}
	for i := range 8 {
		node := fmt.Sprintf("a100-%02d", i)
		for gpu := range 8 {
			for part := range random.IntN(4) {
				p := pod(fmt.Sprintf("notebook-%d-%d-%d", i, gpu, part), Object{"cpu": "1", "memory": "4Gi", "berth.dev/gpu-milli": "300"}, Object{})
				meta(p)["namespace"] = "lab"
				add(bound(p, node, []int{gpu}, 300))
			}
		}
	}
	for i := range 10 {
		p := pod(fmt.Sprintf("slice-%d", i), Object{"cpu": "1", "memory": "4Gi", []string{"nvidia.com/mig-3g.20gb", "nvidia.com/mig-1g.5gb"}[i%2]: "1"}, Object{})
		p["spec"].(Object)["nodeName"] = fmt.Sprintf("mig-%d", i%3)
		p["status"] = Object{"phase": "Running"}
		add(p)
	}
	for i := range 14 {
		p := pod(fmt.Sprintf("infer-%d", i), gpus(1), Object{})
		p["spec"].(Object)["nodeName"] = fmt.Sprintf("l4-%d", i%2)
		p["status"] = Object{"phase": "Running"}
		add(p)
	}
	for i := range 4 {
		p := pod(fmt.Sprintf("big-%d", i), gpus(8), Object{})
		add(waiting(p, time.Duration(5+i)*time.Hour))
		p["spec"].(Object)["nodeSelector"] = Object{"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3"}
	}
	for i := range 3 {
		p := pod(fmt.Sprintf("sweep-%d", i), gpus(4), Object{"berth.dev/gang": "sweep", "berth.dev/gang-size": "6"})
		meta(p)["namespace"] = "team-b"
		add(waiting(p, 12*time.Minute))
	}
	add(waiting(pod("too-big", gpus(64), Object{}), 26*time.Hour))
	add(waiting(pod("wrong-words", gpus(1), Object{"berth.dev/link": "sideways"}), 7*time.Minute))
	gated := waiting(pod("gated", gpus(2), Object{}), time.Hour)
	gated["spec"].(Object)["schedulingGates"] = []Object{{"name": "example.com/quota"}}
	add(gated)
	add(waiting(pod(EvilName, gpus(64), Object{}), 2*time.Minute))
	return c
}

// EightPlainNodes have nothing on them.
func EightPlainNodes() Cluster {
	var c Cluster
	for i := range 8 {
		c.node(fmt.Sprintf("gpu-%d", i), "NVIDIA-A100-SXM4-80GB", Object{"nvidia.com/gpu": "8"}, nil)
	}
	return c
}

// Large has so many nodes of 8 GPUs, most of them held, in four zones and leaves of 32 nodes, with names as a cloud
// gives them.
func Large(nodes, waitingPods int) Cluster {
	var c Cluster
	random := rand.New(rand.NewPCG(3, 4))
	const letters = "bcdfghjklmnpqrstvwxz2456789"
	suffix := func(n int) string {
		text := make([]byte, n)
		for i := range text {
			text[i] = letters[random.IntN(len(letters))]
		}
		return string(text)
	}
	models := []string{"NVIDIA-H100-80GB-HBM3", "NVIDIA-A100-SXM4-80GB", "NVIDIA-H200", "NVIDIA-L40S"}
	for i := range nodes {
		pool := i * 12 / nodes
		name := fmt.Sprintf("gke-prod-pool-%02d-%s-%s", pool, suffix(8), suffix(4))
		model := models[pool%len(models)]
		c.node(name, model, Object{"nvidia.com/gpu": "8"}, map[string]string{
			"topology.kubernetes.io/zone": fmt.Sprintf("europe-west4-%c", 'a'+pool%4), "network.topology.nvidia.com/leaf": fmt.Sprintf("leaf-%03d", i/32)})
		for at := 0; at < 8; {
			size := []int{1, 1, 2, 4, 8}[random.IntN(5)]
			if at+size > 8 {
				continue
			}
			if random.IntN(100) < 85 {
				p := pod(fmt.Sprintf("job-%05d-%d", i, at), gpus(size), Object{})
				if size == 1 && random.IntN(5) == 0 {
					milli := 100 * (1 + random.IntN(9))
					p = pod(meta(p)["name"].(string), Object{"cpu": "1", "memory": "4Gi", "berth.dev/gpu-milli": fmt.Sprint(milli)}, Object{})
					c.Pods = append(c.Pods, bound(p, name, span(at, 1), milli))
					at += size
					continue
				}
				if random.IntN(4) == 0 {
					meta(p)["annotations"].(Object)["berth.dev/gang"] = fmt.Sprintf("gang-%d", i/4)
					meta(p)["annotations"].(Object)["berth.dev/gang-size"] = "2"
				}
				c.Pods = append(c.Pods, bound(p, name, span(at, size), 1000))
			}
			at += size
		}
	}
	for i := range waitingPods {
		p := pod(fmt.Sprintf("waits-%05d", i), gpus([]int{1, 2, 4, 8}[i%4]), Object{})
		p["spec"].(Object)["nodeSelector"] = Object{"topology.kubernetes.io/zone": "nowhere"}
		c.Pods = append(c.Pods, waiting(p, time.Duration(i)*time.Second))
	}
	return c
}
