// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	configv1 "k8s.io/kube-scheduler/config/v1"
	"k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"
	"sigs.k8s.io/yaml"

	"berth.dev/e2e/harness"
)

// Where Berth is deployed: overlays; those that are added are found, and what they build on.
func deployments(t *testing.T) []string {
	t.Helper()
	overlays, err := filepath.Glob("manifests/overlays/*")
	if err != nil || len(overlays) < 3 {
		t.Fatalf("overlays: %v (%v)", overlays, err)
	}
	return append(overlays, "manifests/base")
}

// What somebody may apply, and what it builds on.
func kustomizations(t *testing.T) []string {
	t.Helper()
	return append(deployments(t), "manifests/monitoring", "manifests/replay", "manifests/replay/merge")
}

func TestEveryKustomizationBuilds(t *testing.T) {
	for _, folder := range kustomizations(t) {
		t.Run(folder, func(t *testing.T) {
			seen := map[string]bool{}
			objects := harness.Kustomize(t, folder)
			for _, object := range objects {
				// Of two versions of one API only one object comes out at the server.
				key := fmt.Sprintf("%s %s/%s", object.GroupVersionKind().GroupKind(), object.GetNamespace(), object.GetName())
				if seen[key] {
					t.Errorf("twice: %s", key)
				}
				seen[key] = true
			}
			if len(objects) == 0 {
				t.Error("it is empty")
			}
		})
	}
}

// Enough for the API server to know the kinds. What is in them is checked by TestMetricsOfAlertsAndDashboard.
const monitoringKinds = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: %[1]s.monitoring.coreos.com}
spec:
  group: monitoring.coreos.com
  scope: Namespaced
  names: {plural: %[1]s, kind: %[2]s}
  versions:
    - name: v1
      served: true
      storage: true
      schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
---
`

func TestEveryObjectIsTakenByTheAPIServer(t *testing.T) {
	plane := harness.NewPlane(t)
	plane.AddBerthNamespace()
	kinds := filepath.Join(plane.Dir, "kinds.yaml")
	text := fmt.Sprintf(monitoringKinds, "servicemonitors", "ServiceMonitor") +
		fmt.Sprintf(monitoringKinds, "prometheusrules", "PrometheusRule")
	if err := os.WriteFile(kinds, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	plane.Kubectl("apply", "-f", kinds)
	plane.Kubectl("wait", "--for=condition=Established", "--timeout=30s", "-f", kinds)

	for _, folder := range kustomizations(t) {
		t.Run(folder, func(t *testing.T) {
			count := len(harness.Kustomize(t, folder))
			out := plane.Kubectl("apply", "--dry-run=server", "--validate=strict", "-k", folder)
			taken := regexp.MustCompile(`(?m) \(server dry run\)$`).FindAllString(out, -1)
			if len(taken) != count || strings.Contains(out, "Warning") {
				t.Errorf("want %d objects without a warning, got\n%s", count, out)
			}
		})
	}
}

// rendered are the objects of a kustomization, by kind and name.
type rendered map[string]unstructured.Unstructured

func render(t *testing.T, folder string) rendered {
	t.Helper()
	objects := rendered{}
	for _, object := range harness.Kustomize(t, folder) {
		objects[object.GetKind()+"/"+object.GetName()] = object
	}
	return objects
}

// as decodes an object of the kustomization into a type of Kubernetes.
func as[Type any](t *testing.T, objects rendered, name string) Type {
	t.Helper()
	var typed Type
	object, there := objects[name]
	if !there {
		t.Fatalf("no %s", name)
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &typed); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return typed
}

// withAndWithoutGPUs are two pods; only the first can be placed without Berth.
func withAndWithoutGPUs(prefix string) []*v1.Pod {
	return []*v1.Pod{
		harness.Pod(prefix+"-no-gpu", nil),
		harness.Pod(prefix+"-one-gpu", harness.Ask{harness.GPUResource: "1"}),
		harness.Pod(prefix+"-share", harness.Ask{harness.MilliResource: "300", harness.MemoryResource: "8192"}),
	}
}

// configOfBerth is the berth.yaml of a kustomization.
func configOfBerth(t *testing.T, objects rendered) string {
	t.Helper()
	return as[v1.ConfigMap](t, objects, "ConfigMap/berth").Data["berth.yaml"]
}

// settings is the part of a BerthConfiguration that the manifests have to agree with.
type settings struct {
	Server struct {
		Listen, DebugListen string
		DrainSeconds        int64
		TLS                 struct{ CertificateFile, KeyFile, ClientCAFile string }
	}
}

func portOf(t *testing.T, listen string) int32 {
	t.Helper()
	var port int32
	if _, err := fmt.Sscanf(listen[strings.LastIndexByte(listen, ':')+1:], "%d", &port); err != nil {
		t.Fatalf("listen %q: %v", listen, err)
	}
	return port
}

// The keys of the Secrets that make-certs.sh writes.
var secretKeys = []string{"ca.crt", "tls.crt", "tls.key"}

// wantMounted checks that a file that a program has to read is there: a key of a ConfigMap or Secret, mounted as a
// folder (a subPath would not follow changes).
func wantMounted(t *testing.T, objects rendered, pod v1.PodSpec, file string) {
	t.Helper()
	for _, mount := range pod.Containers[0].VolumeMounts {
		if mount.MountPath != path.Dir(file) || mount.SubPath != "" || !mount.ReadOnly {
			continue
		}
		for _, volume := range pod.Volumes {
			if volume.Name != mount.Name {
				continue
			}
			if volume.Secret != nil && slices.Contains(secretKeys, path.Base(file)) {
				return
			}
			if volume.ConfigMap != nil {
				config := as[v1.ConfigMap](t, objects, "ConfigMap/"+volume.ConfigMap.Name)
				if _, there := config.Data[path.Base(file)]; there {
					return
				}
			}
		}
	}
	t.Errorf("nothing is mounted at %s", file)
}

// configArgument is the value of --config, in one argument or in two.
func configArgument(t *testing.T, container v1.Container) string {
	t.Helper()
	for i, arg := range container.Args {
		if value, found := strings.CutPrefix(arg, "--config="); found {
			return value
		}
		if arg == "--config" && i+1 < len(container.Args) {
			return container.Args[i+1]
		}
	}
	t.Fatalf("no --config in %v", container.Args)
	return ""
}

func berth(t *testing.T, args ...string) string {
	t.Helper()
	out, err := exec.Command(harness.BerthBinary(), args...).CombinedOutput()
	if err != nil {
		t.Errorf("berth %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// What a pod of Berth is started with is what this Berth reads, and ports are the same wherever they are written.
func TestDeploymentsFitTheirConfiguration(t *testing.T) {
	needBerth(t)
	for _, folder := range deployments(t) {
		t.Run(folder, func(t *testing.T) {
			objects := render(t, folder)
			wantBerthFits(t, objects)
			if _, there := objects["Deployment/berth-scheduler"]; there {
				wantSecondSchedulerFits(t, objects)
			}
			for name := range objects {
				if strings.HasPrefix(name, "Deployment/") {
					wantRestricted(t, objects, as[appsv1.Deployment](t, objects, name))
				}
			}
		})
	}
}

func wantBerthFits(t *testing.T, objects rendered) {
	t.Helper()
	deployment := as[appsv1.Deployment](t, objects, "Deployment/berth")
	pod := deployment.Spec.Template.Spec
	container := pod.Containers[0]

	help := berth(t, append(slices.Clone(container.Args[:1]), "--help")...)
	for _, arg := range container.Args[1:] {
		if strings.HasPrefix(arg, "--") {
			flag, _, _ := strings.Cut(arg, "=")
			if !regexp.MustCompile(`(?m)^\s+` + flag + `[ ,]`).MatchString(help) {
				t.Errorf("berth serve has no %s", flag)
			}
		}
	}
	wantMounted(t, objects, pod, configArgument(t, container))
	text := configOfBerth(t, objects)
	file := filepath.Join(t.TempDir(), "berth.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	berth(t, "config", "check", file)

	var config settings
	if err := yaml.Unmarshal([]byte(text), &config); err != nil {
		t.Fatal(err)
	}
	server := config.Server
	for _, file := range []string{server.TLS.CertificateFile, server.TLS.KeyFile, server.TLS.ClientCAFile} {
		if file != "" {
			wantMounted(t, objects, pod, file)
		}
	}
	// drainSeconds pass before idle connections are closed and again before busy ones are; then binds come to their end.
	const longestBind = 30
	needed := container.Lifecycle.PreStop.Sleep.Seconds + 2*server.DrainSeconds + longestBind
	if got := *pod.TerminationGracePeriodSeconds; got < needed {
		t.Errorf("terminationGracePeriodSeconds: want at least %d, got %d", needed, got)
	}
	wantPorts(t, objects, container, server.Listen, server.DebugListen)
}

// Probes and scrapes go to the debug listener where there is one, everything else to the other.
func wantPorts(t *testing.T, objects rendered, container v1.Container, listen, debugListen string) {
	t.Helper()
	service, debug := portOf(t, listen), portOf(t, listen)
	if debugListen != "" {
		debug = portOf(t, debugListen)
	}
	named := map[string]int32{}
	for _, port := range container.Ports {
		named[port.Name] = port.ContainerPort
	}
	for name, probe := range map[string]*v1.Probe{"startup": container.StartupProbe, "liveness": container.LivenessProbe,
		"readiness": container.ReadinessProbe} {
		if got := named[probe.HTTPGet.Port.StrVal]; got != debug {
			t.Errorf("%s probe: want port %d, got %d (%v)", name, debug, got, probe.HTTPGet.Port)
		}
	}
	wantPortsLead(t, objects, "Service/berth", map[string]int32{"http": service, "debug": debug}, named)
	wantPortsLead(t, objects, "Service/berth-metrics", map[string]int32{"metrics": debug}, named)
	if port := portNamed(as[v1.Service](t, objects, "Service/berth"), "http"); port != service {
		t.Errorf("Service/berth: kube-scheduler uses port %d, got %d", service, port)
	}
	wantLetIn(t, objects, service, debug)
	if strings.Contains(debugListen+listen, "127.0.0.1") {
		t.Error("a pod that listens on loopback is reached by nobody")
	}
}

// portNamed is the number of that port of the Service; 0: it has none.
func portNamed(service v1.Service, name string) int32 {
	for _, port := range service.Spec.Ports {
		if port.Name == name {
			return port.Port
		}
	}
	return 0
}

// wantPortsLead checks that the ports of the Service, by name, lead to those of the container.
func wantPortsLead(t *testing.T, objects rendered, name string, want, named map[string]int32) {
	t.Helper()
	ports := as[v1.Service](t, objects, name).Spec.Ports
	if len(ports) != len(want) {
		t.Errorf("%s: want %v, got %v", name, want, ports)
	}
	for _, port := range ports {
		if got := named[port.TargetPort.StrVal]; got != want[port.Name] {
			t.Errorf("%s: port %s: want %d of the container, got %d", name, port.Name, want[port.Name], got)
		}
	}
}

// wantLetIn checks the NetworkPolicies: schedulers reach the verbs, Prometheus the metrics, and neither anything else.
func wantLetIn(t *testing.T, objects rendered, service, debug int32) {
	t.Helper()
	want := map[string]int32{"app.kubernetes.io/name: berth-scheduler": service,
		"kubernetes.io/metadata.name: monitoring": debug, "addresses": service}
	for name := range objects {
		// TestViewersReachBerthThroughTheAPIServerAlone checks the way of viewers.
		if !strings.HasPrefix(name, "NetworkPolicy/") || name == "NetworkPolicy/berth-viewers" {
			continue
		}
		network := as[networkingv1.NetworkPolicy](t, objects, name)
		for _, rule := range network.Spec.Ingress {
			for _, from := range rule.From {
				who := "addresses"
				for _, selector := range []*metav1.LabelSelector{from.PodSelector, from.NamespaceSelector} {
					if selector == nil {
						continue
					}
					for key, value := range selector.MatchLabels {
						who = key + ": " + value
					}
				}
				if len(rule.Ports) != 1 || rule.Ports[0].Port.IntVal != want[who] {
					t.Errorf("%s lets %s to %v, want %d", name, who, rule.Ports, want[who])
				}
			}
		}
	}
}

func wantSecondSchedulerFits(t *testing.T, objects rendered) {
	t.Helper()
	pod := as[appsv1.Deployment](t, objects, "Deployment/berth-scheduler").Spec.Template.Spec
	file := configArgument(t, pod.Containers[0])
	wantMounted(t, objects, pod, file)
	for _, volume := range pod.Volumes {
		if volume.ConfigMap == nil {
			continue
		}
		text := as[v1.ConfigMap](t, objects, "ConfigMap/"+volume.ConfigMap.Name).Data[path.Base(file)]
		var config configv1.KubeSchedulerConfiguration
		if err := yaml.UnmarshalStrict([]byte(text), &config); err != nil {
			t.Fatal(err)
		}
		for _, extender := range config.Extenders {
			wantItsService(t, objects, extender)
			if tls := extender.TLSConfig; tls != nil {
				for _, file := range []string{tls.CAFile, tls.CertFile, tls.KeyFile} {
					wantMounted(t, objects, pod, file)
				}
			}
		}
	}
}

// wantItsService checks that the entry of the scheduler calls the Service, with TLS if and only if Berth has it.
func wantItsService(t *testing.T, objects rendered, extender configv1.Extender) {
	t.Helper()
	service := as[v1.Service](t, objects, "Service/berth")
	scheme := "http"
	if strings.Contains(configOfBerth(t, objects), "clientCaFile:") {
		scheme = "https"
	}
	want := fmt.Sprintf("%s://%s.%s.svc:%d/extender", scheme, service.Name, service.Namespace, portNamed(service, "http"))
	if extender.URLPrefix != want || (extender.TLSConfig != nil) != (scheme == "https") {
		t.Errorf("want %s, got %s (tlsConfig %v)", want, extender.URLPrefix, extender.TLSConfig)
	}
}

// wantRestricted is the admission that the labels of the namespace ask for: a pod that breaks it is never created.
func wantRestricted(t *testing.T, objects rendered, deployment appsv1.Deployment) {
	t.Helper()
	level := objects["Namespace/"+deployment.Namespace].Object["metadata"].(map[string]any)["labels"].(map[string]any)[api.EnforceLevelLabel]
	if level != string(api.LevelRestricted) {
		t.Errorf("the namespace enforces %v", level)
	}
	template := deployment.Spec.Template
	wantAdmitted(t, deployment.Name, template)
	selector := labels.SelectorFromSet(deployment.Spec.Selector.MatchLabels)
	if !selector.Matches(labels.Set(template.Labels)) {
		t.Errorf("%s: the selector does not match its pods", deployment.Name)
	}
}

func wantAdmitted(t *testing.T, name string, template v1.PodTemplateSpec) {
	t.Helper()
	evaluator, err := policy.NewEvaluator(policy.DefaultChecks(), nil)
	if err != nil {
		t.Fatal(err)
	}
	results := evaluator.EvaluatePod(api.LevelVersion{Level: api.LevelRestricted, Version: api.LatestVersion()},
		&template.ObjectMeta, &template.Spec)
	if result := policy.AggregateCheckResults(results); !result.Allowed {
		t.Errorf("%s: %s: %s", name, result.ForbiddenReason(), result.ForbiddenDetail())
	}
}

// Patches that comments of components show can be pasted. kustomize takes a patch in brackets for JSON, which YAML is not.
func TestPatchesInCommentsOfComponentsAreTaken(t *testing.T) {
	shown := regexp.MustCompile(`target: (\{[^}]*\}),?\s+patch: '([^']*)'`)
	components, err := filepath.Glob("manifests/components/*")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, component := range components {
		comments := strings.ReplaceAll(fileText(t, component+"/kustomization.yaml"), "\n#", "\n")
		for _, patch := range shown.FindAllStringSubmatch(comments, -1) {
			found++
			folder := withComponent(t, "manifests/base", component)
			file := filepath.Join(folder, "kustomization.yaml")
			text := fileText(t, file) + "patches:\n- target: " + patch[1] + "\n  patch: '" + patch[2] + "'\n"
			if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			render(t, folder) // fails the test where kustomize does not take it
		}
	}
	if found < 4 {
		t.Errorf("only %d patches were found", found)
	}
}

// What the monitoring looks for is there: the Service by its labels and the port by its name.
func TestServiceMonitorFindsBerth(t *testing.T) {
	object, err := json.Marshal(render(t, "manifests/monitoring")["ServiceMonitor/berth"].Object["spec"])
	if err != nil {
		t.Fatal(err)
	}
	var monitor struct {
		Selector  struct{ MatchLabels map[string]string }
		Endpoints []struct{ Port, Path string }
	}
	if err := json.Unmarshal(object, &monitor); err != nil {
		t.Fatal(err)
	}
	for _, folder := range []string{"manifests/base", "manifests/overlays/production"} {
		objects := render(t, folder)
		var found []v1.Service
		for name := range objects {
			if !strings.HasPrefix(name, "Service/") {
				continue
			}
			service := as[v1.Service](t, objects, name)
			if labels.SelectorFromSet(monitor.Selector.MatchLabels).Matches(labels.Set(service.Labels)) {
				found = append(found, service)
			}
		}
		if len(found) != 1 || found[0].Spec.Ports[0].Name != monitor.Endpoints[0].Port || !found[0].Spec.PublishNotReadyAddresses {
			t.Errorf("%s: want one Service with every replica and a port %s, got %v", folder, monitor.Endpoints[0].Port, found)
		}
	}
}
