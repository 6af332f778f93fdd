// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	configv1 "k8s.io/kube-scheduler/config/v1"
	"sigs.k8s.io/yaml"

	"berth.dev/e2e/harness"
)

const trainImage = "registry.example/train:v1"

// withImage is the node with a large image that it has pulled.
func withImage(node *v1.Node) *v1.Node {
	node.Status.Images = []v1.ContainerImage{{Names: []string{trainImage}, SizeBytes: 12 << 30}}
	return node
}

// trainer is a pod with one GPU and that image.
func trainer(name string) *v1.Pod {
	pod := harness.Pod(name, harness.Ask{harness.GPUResource: "1"})
	pod.Spec.Containers[0].Image = trainImage
	return pod
}

// The weight of Berth in every shipped configuration makes one of its levels count more than all that kube-scheduler's
// own plugins give a node, as the kube-scheduler of this run has them by default.
func TestShippedWeightOutweighsAllDefaultScoresTogether(t *testing.T) {
	plane := harness.NewPlane(t)
	kubeconfig := plane.Kubeconfig("scheduler", plane.Certificate("scheduler", "system:masters"))
	for _, file := range []string{"manifests/scheduler/kube-scheduler-config.yaml",
		"manifests/components/second-scheduler/config.yaml"} {
		oldNew := []string{shippedKubeconfig, kubeconfig}
		if strings.Contains(file, "second-scheduler") {
			oldNew = asPod(kubeconfig)
		}
		given := filepath.Join(plane.Dir, "given.yaml")
		if err := os.WriteFile(given, []byte(replaced(t, fileText(t, file), oldNew...)), 0o600); err != nil {
			t.Fatal(err)
		}
		whole := filepath.Join(plane.Dir, "whole.yaml")
		// It writes what it would go by, and ends.
		if out, err := exec.Command(harness.Binary(t, "kube-scheduler"), "--config="+given, "--write-config-to="+whole,
			"--secure-port=0", "--authentication-skip-lookup").CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", file, err, out)
		}
		var config configv1.KubeSchedulerConfiguration
		if err := yaml.Unmarshal([]byte(fileText(t, whole)), &config); err != nil {
			t.Fatal(err)
		}
		var most int64
		for _, plugin := range config.Profiles[0].Plugins.MultiPoint.Enabled {
			if plugin.Weight != nil {
				most += 100 * int64(*plugin.Weight)
			}
		}
		if level := 10 * config.Extenders[0].Weight; most < 1000 || level <= most {
			t.Errorf("%s: one level counts %d, all plugins together %d", file, level, most)
		}
	}
}

// A node in use, with busy CPUs, beside idle nodes that kube-scheduler would rather take, for each of its reasons and for
// all of them. The GPUs decide.
func TestGPUsAreMoreThanWhatKubeSchedulerPrefers(t *testing.T) {
	needBerth(t)
	plane := harness.NewPlane(t)
	used := harness.Node("used", harness.GPUModel, 8)
	used.Labels["zone"] = "a"
	plane.AddNodes(used)
	for i := range 3 {
		idle := withImage(harness.Node(fmt.Sprintf("idle-%d", i), harness.GPUModel, 8))
		idle.Labels["zone"] = "b"
		plane.AddNodes(idle)
	}
	selector := map[string]string{"app": "web"}
	if _, err := plane.Client.CoreV1().Services(harness.Namespace).Create(t.Context(), &v1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec: v1.ServiceSpec{Selector: selector,
			Ports: []v1.ServicePort{{Port: 80, TargetPort: intstr.FromInt32(80)}}},
	}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	berth := plane.StartBerth("")
	plane.StartScheduler(harness.ShippedExtenders(t, berth.URL)...)
	for _, pod := range harness.Pods("holder", 6, harness.Ask{harness.GPUResource: "1", v1.ResourceCPU: "13"}) {
		pod.Labels = selector
		pod.Spec.NodeSelector = map[string]string{"zone": "a"}
		plane.CreatePods(pod)
	}
	plane.WaitBound(30 * time.Second)

	temptations := map[string]func(*v1.Pod){
		"image": func(*v1.Pod) {},
		"affinity": func(pod *v1.Pod) {
			pod.Spec.Affinity = &v1.Affinity{NodeAffinity: &v1.NodeAffinity{
				PreferredDuringSchedulingIgnoredDuringExecution: []v1.PreferredSchedulingTerm{{Weight: 100,
					Preference: v1.NodeSelectorTerm{MatchExpressions: []v1.NodeSelectorRequirement{
						{Key: "zone", Operator: v1.NodeSelectorOpIn, Values: []string{"b"}}}}}}}}
		},
		"anti-affinity": func(pod *v1.Pod) {
			pod.Spec.Affinity = &v1.Affinity{PodAntiAffinity: &v1.PodAntiAffinity{
				PreferredDuringSchedulingIgnoredDuringExecution: []v1.WeightedPodAffinityTerm{{Weight: 100,
					PodAffinityTerm: v1.PodAffinityTerm{TopologyKey: v1.LabelHostname,
						LabelSelector: &metav1.LabelSelector{MatchLabels: selector}}}}}}
		},
		// kube-scheduler spreads the pods of a Service by default.
		"default-spreading": func(pod *v1.Pod) { pod.Labels = selector },
		"spreading": func(pod *v1.Pod) {
			pod.Labels = selector
			pod.Spec.TopologySpreadConstraints = []v1.TopologySpreadConstraint{{MaxSkew: 1,
				TopologyKey: v1.LabelHostname, WhenUnsatisfiable: v1.ScheduleAnyway,
				LabelSelector: &metav1.LabelSelector{MatchLabels: selector}}}
		},
	}
	try := func(name string, tempt ...func(*v1.Pod)) {
		pod := trainer(name)
		for _, change := range tempt {
			change(pod)
		}
		plane.CreatePods(pod)
		plane.WaitBound(30 * time.Second)
		if got := plane.Pod(name).Spec.NodeName; got != used.Name {
			t.Errorf("%s: the pod is on %s, want the node in use", name, got)
		}
		plane.Kubectl("delete", "pod", name)
	}
	for name, tempt := range temptations {
		try(name, tempt)
	}
	try("all", func(pod *v1.Pod) {
		temptations["affinity"](pod)
		near := pod.Spec.Affinity.NodeAffinity
		temptations["anti-affinity"](pod)
		pod.Spec.Affinity.NodeAffinity = near
		temptations["spreading"](pod)
	})
}

// What a class prefers is weighed against GPUs alone, not against images and idle CPUs.
func TestWorkloadClassesAreMoreThanWhatKubeSchedulerPrefers(t *testing.T) {
	needBerth(t)
	plane := harness.NewPlane(t)
	plane.AddNodes(withImage(harness.Node("plain", harness.GPUModel, 8)))
	rdma := harness.Node("rdma", harness.GPUModel, 8)
	rdma.Labels["feature.node.kubernetes.io/rdma.capable"] = "true"
	plane.AddNodes(rdma)
	berth := plane.StartBerth("workloadClasses:\n- {name: training, labels: [workload=training], prefer: [{trait: rdma}]}\n")
	plane.StartScheduler(harness.ShippedExtenders(t, berth.URL)...)
	busy := harness.Pod("busy", harness.Ask{harness.GPUResource: "1", v1.ResourceCPU: "70"})
	busy.Spec.NodeName = rdma.Name
	plane.CreatePods(busy)
	for i := range 3 {
		pod := trainer(fmt.Sprintf("train-%d", i))
		pod.Labels = map[string]string{"workload": "training"}
		plane.CreatePods(pod)
		plane.WaitBound(30 * time.Second)
		if got := plane.Pod(pod.Name).Spec.NodeName; got != rdma.Name {
			t.Errorf("%s is on %s, want the node with RDMA", pod.Name, got)
		}
	}
}

// Among nodes that are alike for GPUs the second scheduler goes by the image, however busy the CPUs beside it are.
func TestTheSecondSchedulerGoesByTheImageAmongNodesThatAreAlike(t *testing.T) {
	needBerth(t)
	plane := harness.NewPlane(t)
	plane.AddBerthNamespace()
	plane.Kubectl("apply", "-k", "manifests/overlays/kind") // the second scheduler's rights
	plane.AddNodes(harness.Node("a", harness.GPUModel, 8), withImage(harness.Node("b", harness.GPUModel, 8)),
		harness.Node("c", harness.GPUModel, 8))
	busy := harness.Pod("busy", harness.Ask{v1.ResourceCPU: "40"})
	busy.Spec.NodeName = "b"
	plane.CreatePods(busy)
	berth := plane.StartBerth("")
	second := plane.ServiceAccountKubeconfig("berth-scheduler")
	plane.StartSchedulerWith("second", replaced(t, fileText(t, "manifests/components/second-scheduler/config.yaml"),
		append(asPod(second), shippedURL, berth.URL+"/")...), second, "berth-system/berth-scheduler")
	pod := trainer("train")
	pod.Spec.SchedulerName = "berth-scheduler"
	plane.CreatePods(pod)
	plane.WaitBound(30 * time.Second)
	if got := plane.Pod(pod.Name).Spec.NodeName; got != "b" {
		t.Errorf("the pod is on %s, want b, which has its image", got)
	}
}
