// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"berth.dev/e2e/harness"
)

const clustersPage = "docs/clusters.md"

// agentRow matches a row of the table "The agent": the cluster, and its values.
var agentRow = regexp.MustCompile("(?m)^\\| ([^|]+) \\| `(node: \\{[^`]*\\})` \\|")

// rowOf is what the chart gives with the values of the row, and its DaemonSet.
func rowOf(t *testing.T, cluster string) (rendered, v1.PodSpec) {
	t.Helper()
	for _, row := range agentRow.FindAllStringSubmatch(fileText(t, clustersPage), -1) {
		if !strings.HasPrefix(row[1], cluster) {
			continue
		}
		var set map[string]any
		if err := yaml.UnmarshalStrict([]byte(row[2]), &set); err != nil {
			t.Fatalf("%s: %v", row[1], err)
		}
		values := valuesOf(t, variants[0])
		merge(values, set)
		objects := chartObjects(t, values, "berth-system")
		return objects, as[appsv1.DaemonSet](t, objects, "DaemonSet/berth-node").Spec.Template.Spec
	}
	t.Fatalf("%s has no row for %s", clustersPage, cluster)
	return nil, v1.PodSpec{}
}

// merge sets values as Helm does: maps are joined, all else is replaced.
func merge(values, set map[string]any) {
	for key, value := range set {
		inner, isMap := value.(map[string]any)
		if into, there := values[key].(map[string]any); there && isMap {
			merge(into, inner)
		} else {
			values[key] = value
		}
	}
}

func TestTheValuesOfEachKindOfClusterGiveWhatItNeeds(t *testing.T) {
	seLinux := func(_ rendered, pod v1.PodSpec) bool {
		options := pod.Containers[0].SecurityContext.SELinuxOptions
		return options != nil && options.Type == "container_device_plugin_t"
	}
	hasPath := func(path string) func(rendered, v1.PodSpec) bool {
		return func(_ rendered, pod v1.PodSpec) bool {
			return pod.Volumes[0].HostPath.Path == "/var/lib/kubelet/device-plugins" && pod.Volumes[1].HostPath.Path == path &&
				pod.Containers[0].VolumeMounts[1].MountPath == "/var/lib/kubelet/pod-resources"
		}
	}
	runtime := func(pod v1.PodSpec) bool { return pod.RuntimeClassName != nil && *pod.RuntimeClassName == "nvidia" }
	rows := map[string]func(rendered, v1.PodSpec) bool{
		"kubeadm":      hasPath("/var/lib/kubelet/pod-resources"),
		"GPU Operator": func(_ rendered, pod v1.PodSpec) bool { return runtime(pod) },
		"MIG devices": func(_ rendered, pod v1.PodSpec) bool {
			added := pod.Containers[0].SecurityContext.Capabilities.Add
			return runtime(pod) && slices.Equal(added, []v1.Capability{"SYS_ADMIN"}) && slices.Contains(pod.Containers[0].Env,
				v1.EnvVar{Name: "NVIDIA_MIG_MONITOR_DEVICES", Value: "all"})
		},
		"OpenShift": func(objects rendered, pod v1.PodSpec) bool {
			constraints, there := objects["SecurityContextConstraints/berth-node"]
			return there && seLinux(nil, pod) && admits(constraints, pod)
		},
		"SELinux":         seLinux,
		"k0s":             hasPath("/var/lib/k0s/kubelet/pod-resources"),
		"any `--root-dir": hasPath("ROOT/pod-resources"),
		"some of the GPU": func(_ rendered, pod v1.PodSpec) bool { return pod.NodeSelector["pool"] == "train" },
		"microk8s": func(objects rendered, _ v1.PodSpec) bool {
			policy := as[networkingv1.NetworkPolicy](t, objects, "NetworkPolicy/berth-node")
			return slices.ContainsFunc(policy.Spec.Egress[0].Ports, func(port networkingv1.NetworkPolicyPort) bool {
				return port.Port.IntValue() == 16443
			})
		},
	}
	for cluster, good := range rows {
		objects, pod := rowOf(t, cluster)
		secure := pod.Containers[0].SecurityContext
		if !good(objects, pod) {
			t.Errorf("%s: %s", cluster, marshal(t, pod))
		}
		// No row takes a right away from the other nodes, or gives one that it does not name.
		if *secure.AllowPrivilegeEscalation || !*secure.ReadOnlyRootFilesystem || *secure.RunAsUser != 0 ||
			!slices.Equal(secure.Capabilities.Drop, []v1.Capability{"ALL"}) || (cluster != "MIG devices" && len(secure.Capabilities.Add) > 0) {
			t.Errorf("%s: its rights are %+v", cluster, secure)
		}
	}
	if all := len(agentRow.FindAllString(fileText(t, clustersPage), -1)); all != len(rows) {
		t.Errorf("%s has %d rows, %d are tried", clustersPage, all, len(rows))
	}
}

// admits says whether the constraints let the pod in, by the fields that the pod uses.
func admits(constraints unstructured.Unstructured, pod v1.PodSpec) bool {
	strategy := func(field string) string {
		value, _, _ := unstructured.NestedString(constraints.Object, field, "type")
		return value
	}
	flag := func(field string) bool { return constraints.Object[field] == true }
	users, _, _ := unstructured.NestedStringSlice(constraints.Object, "users")
	volumes, _, _ := unstructured.NestedStringSlice(constraints.Object, "volumes")
	profiles, _, _ := unstructured.NestedStringSlice(constraints.Object, "seccompProfiles")
	for _, volume := range pod.Volumes {
		if volume.HostPath == nil || !slices.Contains(volumes, "hostPath") || !flag("allowHostDirVolumePlugin") {
			return false
		}
	}
	secure := pod.Containers[0].SecurityContext
	return strategy("runAsUser") == "RunAsAny" && strategy("seLinuxContext") == "RunAsAny" && slices.Contains(volumes, "projected") &&
		slices.Equal(users, []string{"system:serviceaccount:" + agentNamespace + ":" + pod.ServiceAccountName}) &&
		secure.SeccompProfile.Type == v1.SeccompProfileTypeRuntimeDefault && slices.Contains(profiles, "runtime/default") &&
		!flag("allowPrivilegedContainer") && !flag("allowHostNetwork") && !flag("allowHostPID") && !flag("allowHostIPC")
}

// The API server checks what a pod template may say: SYS_ADMIN beside allowPrivilegeEscalation, options of SELinux, paths.
func TestTheAgentOfEachKindOfClusterIsTakenByTheAPIServer(t *testing.T) {
	plane := harness.NewPlane(t)
	plane.Kubectl("apply", "--filename="+agentFolder+"namespace.yaml")
	for _, row := range agentRow.FindAllStringSubmatch(fileText(t, clustersPage), -1) {
		objects, _ := rowOf(t, row[1])
		daemon := as[appsv1.DaemonSet](t, objects, "DaemonSet/berth-node")
		_, err := plane.Client.AppsV1().DaemonSets(agentNamespace).Create(t.Context(), &daemon,
			metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}, FieldValidation: metav1.FieldValidationStrict})
		if err != nil {
			t.Errorf("%s: %v", row[1], err)
		}
	}
}

// By kustomize OpenShift's parts are a component of their own.
func TestTheComponentForOpenShiftGivesWhatTheChartGives(t *testing.T) {
	folder := withComponent(t, withComponent(t, "manifests/base", agentFolder), openshiftFolder)
	objects := render(t, folder)
	chart, pod := rowOf(t, "OpenShift")
	if want, is := marshal(t, chart["SecurityContextConstraints/berth-node"].Object),
		marshal(t, objects["SecurityContextConstraints/berth-node"].Object); want != is {
		t.Errorf("the chart gives\n%s\nthe component\n%s", want, is)
	}
	own := as[appsv1.DaemonSet](t, objects, "DaemonSet/berth-node").Spec.Template.Spec
	if want, is := marshal(t, pod.Containers[0].SecurityContext), marshal(t, own.Containers[0].SecurityContext); want != is {
		t.Errorf("the chart gives\n%s\nthe component\n%s", want, is)
	}
}
