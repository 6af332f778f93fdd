// SPDX-License-Identifier: Apache-2.0

package e2e

// manifests/install.yaml and the templates of manifests/helm are generated from the kustomizations. These tests fail
// where they are not what the kustomizations give, and write them anew where BERTH_WRITE is set:
//
//	BERTH_WRITE=1 BERTH_BIN=$PWD/build/release/bin test/e2e/run.sh TestInstallYamlIsCurrent     (or TestTheChartIsCurrent)

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"text/template"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"berth.dev/e2e/harness"
)

const (
	chart       = "manifests/helm/berth"
	installYaml = "manifests/install.yaml"
	// Of the policy berth-viewers, in place of the API servers' addresses (RFC 5737).
	nobodysCIDR = "192.0.2.1/32"
	// A kube-scheduler that is newer than the API server may wait for APIs that it does not serve, and place nothing.
	schedulerImage = `{{ with .Values.scheduler.image }}{{ printf "%q" . }}{{ else }}registry.k8s.io/kube-scheduler:v` +
		`{{ regexFind "[0-9]+[.][0-9]+[.][0-9]+" .Capabilities.KubeVersion.Version }}{{ end }}`
	generated = "# Generated from %s by test/e2e/manifests_install_test.go, which says how. Do not edit.\n"
)

func TestInstallYamlIsCurrent(t *testing.T) {
	text := fmt.Sprintf(generated, "overlays/single-file") +
		"# The image is called berth and is in no public registry: docs/install.md.\n"
	for i, object := range harness.Kustomize(t, "manifests/overlays/single-file") {
		if i > 0 {
			text += "---\n"
		}
		text += marshal(t, object.Object)
	}
	wantCurrent(t, installYaml, text)
}

func TestTheChartIsCurrent(t *testing.T) {
	templates := map[string]string{}
	for _, object := range mergedObjects(t) {
		file := "berth.yaml"
		if strings.Contains(object.key, "berth-scheduler") {
			file = "second-scheduler.yaml"
		}
		templates[file] += "---\n" + object.text
	}
	templates["node.yaml"] = nodeTemplate(t)
	templates["dra-claims.yaml"] = claimsTemplate(t)
	templates["keep-nodes.yaml"] = keepNodesTemplate(t)
	templates["monitoring.yaml"] = monitoringTemplate(t)
	for file, text := range templates {
		wantCurrent(t, filepath.Join(chart, "templates", file), fmt.Sprintf(generated, "manifests/")+text)
	}
	wantCurrent(t, chart+"/values.schema.json", schemaOfValues(t))
	version := strings.Fields(berth(t, "version"))[1]
	var about struct{ AppVersion, Version string }
	if err := yaml.Unmarshal([]byte(fileText(t, chart+"/Chart.yaml")), &about); err != nil {
		t.Fatal(err)
	}
	if about.AppVersion != version || about.Version != version {
		t.Errorf("Chart.yaml: want version and appVersion %s, got %s and %s", version, about.Version, about.AppVersion)
	}
}

func wantCurrent(t *testing.T, file, text string) {
	t.Helper()
	if os.Getenv("BERTH_WRITE") != "" {
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if fileText(t, file) != text {
		t.Errorf("%s is not what the kustomizations give: write it anew", file)
	}
}

// How Berth can be installed by the chart.
type variant struct {
	scheduler string // "own", "second"
	tls       bool
}

var variants = []variant{{"own", false}, {"own", true}, {"second", false}, {"second", true}}

// objects are what kustomize makes of it, without the namespace: that is Helm's.
func (v variant) objects(t *testing.T) []unstructured.Unstructured {
	t.Helper()
	components := []string{"two-replicas"}
	if v.tls {
		// Without TLS the pages are on the port of the verbs, which are not for viewers.
		components = append(components, "mtls", "viewers")
	}
	if v.scheduler == "second" {
		components = append(components, "second-scheduler")
		if v.tls {
			components = append(components, "second-scheduler-tls")
		}
	}
	folder := t.TempDir()
	text := "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources: [" + relative(t, folder, "manifests/base") +
		"]\ncomponents:\n"
	for _, component := range components {
		text += "- " + relative(t, folder, "manifests/components/"+component) + "\n"
	}
	if err := os.WriteFile(filepath.Join(folder, "kustomization.yaml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(harness.Kustomize(t, folder), func(object unstructured.Unstructured) bool {
		return object.GetKind() == "Namespace" || (v.scheduler == "second" && object.GetName() == "berth-control-plane")
	})
}

func relative(t *testing.T, from, to string) string {
	t.Helper()
	to, err := filepath.Abs(to)
	if err == nil {
		to, err = filepath.Rel(from, to)
	}
	if err != nil {
		t.Fatal(err)
	}
	return to
}

func keyOf(object unstructured.Unstructured) string { return object.GetKind() + "/" + object.GetName() }

func marshal(t *testing.T, object any) string {
	t.Helper()
	text, err := yaml.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

type templateOf struct{ key, text string }

// mergedObjects is a template of each object of any variant, but for the configuration, which is written by hand. It takes
// them to differ by TLS alone where they are there; TestTheChartGivesTheObjectsOfTheKustomizations finds where they do not.
func mergedObjects(t *testing.T) []templateOf {
	t.Helper()
	texts := map[string]map[variant]string{}
	var keys []string
	for _, v := range slices.Backward(variants) { // the last has most
		for _, object := range v.objects(t) {
			key := keyOf(object)
			if key == "ConfigMap/berth" {
				continue
			}
			if texts[key] == nil {
				texts[key] = map[variant]string{}
				keys = append(keys, key)
			}
			texts[key][v] = withValues(t, object)
		}
	}
	var merged []templateOf
	for _, key := range keys {
		of := texts[key]
		var text string
		var with []string
		for _, scheduler := range []string{"own", "second"} {
			if plain, tls := of[variant{scheduler, false}], of[variant{scheduler, true}]; plain+tls != "" {
				text, with = mergeLines(plain, tls), append(with, scheduler)
			}
		}
		if len(with) == 1 {
			text = fmt.Sprintf("{{- if eq .Values.scheduler.kind %q }}\n%s{{- end }}\n", with[0], text)
		}
		merged = append(merged, templateOf{key, text})
	}
	return merged
}

// withValues is the object with actions where the chart has values.
func withValues(t *testing.T, object unstructured.Unstructured) string {
	t.Helper()
	tokens := map[string]string{"berth-system": "{{ .Release.Namespace }}"}
	set := func(token, action string, path ...string) {
		if _, there, _ := unstructured.NestedFieldNoCopy(object.Object, path...); !there {
			t.Fatalf("%s has no %v", keyOf(object), path)
		}
		if err := unstructured.SetNestedField(object.Object, token, path...); err != nil {
			t.Fatal(err)
		}
		tokens[token] = action
	}
	switch keyOf(object) {
	case "Deployment/berth", "Deployment/berth-scheduler":
		values := ".Values"
		if object.GetName() == "berth-scheduler" {
			values = ".Values.scheduler"
		}
		set("TOKEN_REPLICAS", "{{ "+values+".replicas }}", "spec", "replicas")
		tokens["TOKEN_IMAGE"] = `{{ printf "%q" ` + values + ".image }}"
		if object.GetName() == "berth-scheduler" {
			tokens["TOKEN_IMAGE"] = schedulerImage
		}
		maps.Copy(tokens, podWithValues(t, object, values, values+".affinity"))
	case "NetworkPolicy/berth":
		tokens["kubernetes.io/metadata.name: monitoring"] = "kubernetes.io/metadata.name: {{ .Values.monitoringNamespace }}"
	case "NetworkPolicy/berth-control-plane":
		rules, _, _ := unstructured.NestedSlice(object.Object, "spec", "ingress")
		rules[0].(map[string]any)["from"] = "TOKEN_FROM"
		if err := unstructured.SetNestedSlice(object.Object, rules, "spec", "ingress"); err != nil {
			t.Fatal(err)
		}
		tokens["from: TOKEN_FROM"] = "from:\n    {{- range .Values.controlPlaneCIDRs }}\n    - ipBlock:\n        cidr: {{ . }}\n    {{- end }}"
	case "NetworkPolicy/berth-viewers":
		address := "    - ipBlock:\n        cidr: " + nobodysCIDR + "\n"
		if !strings.Contains(marshal(t, object.Object), address) {
			t.Fatalf("%s has no %s", keyOf(object), nobodysCIDR)
		}
		tokens[address] = "    {{- range .Values.viewers.apiServerCIDRs }}\n    - ipBlock:\n        cidr: {{ . }}\n    {{- end }}\n"
	case "RoleBinding/berth-viewers":
		subjects, _, _ := unstructured.NestedSlice(object.Object, "subjects")
		subjects[0].(map[string]any)["name"] = "TOKEN_GROUP"
		if err := unstructured.SetNestedSlice(object.Object, subjects, "subjects"); err != nil {
			t.Fatal(err)
		}
		tokens["TOKEN_GROUP"] = `{{ printf "%q" .Values.viewers.group }}`
	}
	text := marshal(t, object.Object)
	for _, token := range slices.Sorted(maps.Keys(tokens)) {
		text = strings.ReplaceAll(text, token, tokens[token])
	}
	if strings.Contains(text, "TOKEN_") {
		t.Fatalf("%s: a token was left:\n%s", keyOf(object), text)
	}
	return text
}

// podWithValues has the pod template of the object have tokens, and gives their actions; values is where the image and the
// resources are, affinity the value in place of the object's own, "" for none. Pull secrets and annotations are those of
// all pods of the chart; the agent of GPU nodes has its own rules for where it runs.
func podWithValues(t *testing.T, object unstructured.Unstructured, values, affinity string) map[string]string {
	t.Helper()
	tokens := map[string]string{"resources: TOKEN_RESOURCES": "resources: {{- toYaml " + values + ".resources | nindent 10 }}"}
	template, _, _ := unstructured.NestedMap(object.Object, "spec", "template")
	pod, metadata := template["spec"].(map[string]any), template["metadata"].(map[string]any)
	optional := func(in map[string]any, field, value, otherwise string) {
		token := "TOKEN_OPTIONAL_" + strings.ToUpper(field)
		in[field] = token
		tokens["      "+field+": "+token] = "      {{- with " + value + " }}\n      " + field + ": {{- toYaml . | nindent 8 }}\n" +
			otherwise + "      {{- end }}"
	}
	container := pod["containers"].([]any)[0].(map[string]any)
	container["image"], container["resources"] = "TOKEN_IMAGE", "TOKEN_RESOURCES"
	optional(pod, "imagePullSecrets", ".Values.imagePullSecrets", "")
	if affinity != "" {
		own := strings.ReplaceAll(strings.TrimSuffix(marshal(t, pod["affinity"]), "\n"), "\n", "\n        ")
		optional(pod, "affinity", affinity, "      {{- else }}\n      affinity:\n        "+own+"\n")
		optional(pod, "nodeSelector", ".Values.nodeSelector", "")
		optional(pod, "tolerations", ".Values.tolerations", "")
	}
	if annotations, there := metadata["annotations"].(map[string]any); there {
		annotations["TOKEN_MORE"] = ""
		tokens[`        TOKEN_MORE: ""`] = "        {{- with .Values.podAnnotations }}\n        {{- toYaml . | nindent 8 }}\n        {{- end }}"
	} else {
		optional(metadata, "annotations", ".Values.podAnnotations", "")
	}
	if err := unstructured.SetNestedMap(object.Object, template, "spec", "template"); err != nil {
		t.Fatal(err)
	}
	return tokens
}

// monitoringObjects are those that the Prometheus operator reads.
func monitoringObjects(t *testing.T) []unstructured.Unstructured {
	t.Helper()
	return slices.DeleteFunc(harness.Kustomize(t, "manifests/monitoring"),
		func(object unstructured.Unstructured) bool { return object.GetKind() == "ConfigMap" })
}

// monitoringTemplate is a template of them. What Prometheus replaces in alerts is not Helm's.
func monitoringTemplate(t *testing.T) string {
	t.Helper()
	text := ""
	for _, object := range monitoringObjects(t) {
		value := map[string]string{"ServiceMonitor": ".Values.monitoring.serviceMonitor", "PrometheusRule": ".Values.monitoring.alerts"}[object.GetKind()]
		if value == "" {
			t.Fatalf("no value has %s", keyOf(object))
		}
		if err := unstructured.SetNestedField(object.Object, "", "metadata", "labels", "TOKEN_MORE"); err != nil {
			t.Fatal(err)
		}
		body := strings.ReplaceAll(marshal(t, object.Object), "{{", `{{ "{{" }}`)
		body = strings.ReplaceAll(body, "berth-system", "{{ .Release.Namespace }}")
		body = strings.ReplaceAll(body, "runbook: "+alertsPage,
			"{{ with .Values.monitoring.alerts.runbookUrl }}runbook_url: {{ . }}{{ else }}runbook: "+alertsPage+"{{ end }}")
		body = strings.Replace(body, `    TOKEN_MORE: ""`, "    {{- with "+value+".labels }}\n    {{- toYaml . | nindent 4 }}\n    {{- end }}", 1)
		body = strings.ReplaceAll(body, "runbook: "+alertsPage,
			"{{ with .Values.monitoring.alerts.runbookUrl }}runbook_url: {{ . }}{{ else }}runbook: "+alertsPage+"{{ end }}")
		text += "{{- if " + value + ".enabled }}\n---\n" + body + "{{- end }}\n"
	}
	return text
}

// nodeObjects are those of components/node, with its namespace.
func nodeObjects(t *testing.T) []unstructured.Unstructured {
	t.Helper()
	base := render(t, "manifests/base")
	return slices.DeleteFunc(harness.Kustomize(t, withComponent(t, "manifests/base", "manifests/components/node")),
		func(object unstructured.Unstructured) bool {
			same, there := base[keyOf(object)]
			return there && same.GetNamespace() == object.GetNamespace()
		})
}

// nodeTemplate is a template of the objects of components/node.
func nodeTemplate(t *testing.T) string {
	t.Helper()
	text := "{{- if .Values.node.enabled }}\n"
	tokens := map[string]string{
		"TOKEN_IMAGE":                           `{{ printf "%q" .Values.image }}`,
		"        - TOKEN_ARGS\n":                "        {{- range .Values.node.args }}\n        - {{ printf \"%q\" . }}\n        {{- end }}\n",
		"      runtimeClassName: TOKEN_RUNTIME": "      {{- with .Values.node.runtimeClassName }}\n      runtimeClassName: {{ . }}\n      {{- end }}",
		"        - name: TOKEN_ENV\n":           "        {{- with .Values.node.env }}\n        {{- toYaml . | nindent 8 }}\n        {{- end }}\n",
		"securityContext: TOKEN_SECURITY":       "securityContext: {{- toYaml .Values.node.securityContext | nindent 10 }}",
		"      nodeSelector: TOKEN_SELECTOR":    "      {{- with .Values.node.nodeSelector }}\n      nodeSelector: {{- toYaml . | nindent 8 }}\n      {{- end }}",
		"TOKEN_PLUGINS":                         "{{ .Values.node.devicePlugins }}",
		"TOKEN_PODS":                            "{{ .Values.node.podResources }}",
	}
	for _, object := range nodeObjects(t) {
		if object.GetKind() == "DaemonSet" {
			maps.Copy(tokens, podWithValues(t, object, ".Values.node", ""))
			pod, _, _ := unstructured.NestedMap(object.Object, "spec", "template", "spec")
			pod["runtimeClassName"], pod["nodeSelector"] = "TOKEN_RUNTIME", "TOKEN_SELECTOR"
			for i, token := range []string{"TOKEN_PLUGINS", "TOKEN_PODS"} {
				pod["volumes"].([]any)[i].(map[string]any)["hostPath"].(map[string]any)["path"] = token
			}
			container := pod["containers"].([]any)[0].(map[string]any)
			container["env"] = append(container["env"].([]any), map[string]any{"name": "TOKEN_ENV"})
			container["securityContext"] = "TOKEN_SECURITY"
			container["args"] = append(container["args"].([]any), "TOKEN_ARGS")
			if err := unstructured.SetNestedMap(object.Object, pod, "spec", "template", "spec"); err != nil {
				t.Fatal(err)
			}
		}
		text += "---\n" + marshal(t, object.Object)
	}
	for token, action := range tokens {
		if !strings.Contains(text, token) {
			t.Fatalf("no %q in\n%s", token, text)
		}
		text = strings.ReplaceAll(text, token, action)
	}
	constraints := harness.Kustomize(t, withComponent(t, withComponent(t, "manifests/base", agentFolder), openshiftFolder))
	at := slices.IndexFunc(constraints, func(object unstructured.Unstructured) bool { return object.GetKind() == "SecurityContextConstraints" })
	return text + "{{- if .Values.node.openshift }}\n---\n" + marshal(t, constraints[at].Object) + "{{- end }}\n{{- end }}\n"
}

// claimObjects are those of components/dra-claims: the policy, and the templates of a namespace.
func claimObjects(t *testing.T) []unstructured.Unstructured {
	return objectsIn(t, "manifests/components/dra-claims", "policy.yaml", "templates.yaml")
}

// keepNodesTemplate is a template of components/keep-nodes.
func keepNodesTemplate(t *testing.T) string {
	t.Helper()
	text := ""
	for _, object := range objectsIn(t, "manifests/components/keep-nodes", "rbac.yaml", "policy.yaml") {
		text += "---\n" + withValues(t, object)
	}
	return "{{- if .Values.keepNodes.enabled }}\n" + text + "{{- end }}\n"
}

func objectsIn(t *testing.T, folder string, files ...string) []unstructured.Unstructured {
	t.Helper()
	var objects []unstructured.Unstructured
	for _, file := range files {
		for _, part := range regexp.MustCompile(`(?m)^---\n`).Split(fileText(t, folder+"/"+file), -1) {
			var object unstructured.Unstructured
			if err := yaml.UnmarshalStrict([]byte(part), &object.Object); err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			objects = append(objects, object)
		}
	}
	return objects
}

// claimsTemplate is a template of them: the policy once, the templates in each namespace.
func claimsTemplate(t *testing.T) string {
	t.Helper()
	policy, templates := "", ""
	for _, object := range claimObjects(t) {
		if object.GetKind() == "ResourceClaimTemplate" {
			object.SetNamespace("TOKEN_NAMESPACE")
			templates += "---\n" + strings.ReplaceAll(marshal(t, object.Object), "TOKEN_NAMESPACE", "{{ . }}")
		} else {
			policy += "---\n" + marshal(t, object.Object)
		}
	}
	return "{{- if .Values.draClaims.enabled }}\n" + policy + "{{- range .Values.draClaims.namespaces }}\n" + templates + "{{- end }}\n{{- end }}\n"
}

func TestTheChartGivesTheNodeAgentWhereItIsAskedFor(t *testing.T) {
	values := valuesOf(t, variants[0])
	without := chartObjects(t, values, "berth-system")
	values["node"].(map[string]any)["enabled"] = true
	got := chartObjects(t, values, "berth-system")
	for _, object := range nodeObjects(t) {
		key := keyOf(object)
		if _, there := without[key]; there {
			t.Errorf("%s is there although node.enabled is false", key)
		}
		if want, is := marshal(t, object.Object), marshal(t, got[key].Object); want != is {
			t.Errorf("%s: want\n%s\ngot\n%s", key, want, is)
		}
		delete(got, key)
	}
	if len(got) != len(without) {
		t.Errorf("it has more: %v", slices.Collect(maps.Keys(got)))
	}
	node := values["node"].(map[string]any)
	if _, there := got["SecurityContextConstraints/berth-node"]; there {
		t.Error("it has an object of OpenShift on other clusters")
	}
	node["runtimeClassName"], node["args"] = "nvidia", []any{"--lift-numa"}
	daemon := as[appsv1.DaemonSet](t, chartObjects(t, values, "gpu"), "DaemonSet/berth-node")
	pod := daemon.Spec.Template.Spec
	if pod.RuntimeClassName == nil || *pod.RuntimeClassName != "nvidia" || !slices.Contains(pod.Containers[0].Args, "--lift-numa") ||
		daemon.Namespace != "berth-node" {
		t.Errorf("the values are not used: %+v", pod)
	}
}

// mergeLines is a template of both texts: plain without TLS, with it the other. What they share is there once.
func mergeLines(plain, tls string) string {
	a, b := strings.SplitAfter(plain, "\n"), strings.SplitAfter(tls, "\n")
	common := make([][]int, len(a)+1) // the length of the longest sequence that a[i:] and b[j:] share
	for i := range common {
		common[i] = make([]int, len(b)+1)
	}
	for i := len(a) - 1; i >= 0; i-- {
		for j := len(b) - 1; j >= 0; j-- {
			if a[i] == b[j] {
				common[i][j] = common[i+1][j+1] + 1
			} else {
				common[i][j] = max(common[i+1][j], common[i][j+1])
			}
		}
	}
	var text, without, with strings.Builder
	flush := func() {
		switch {
		case without.Len() > 0 && with.Len() > 0:
			fmt.Fprintf(&text, "{{- if eq .Values.tls.mode \"none\" }}\n%s{{- else }}\n%s{{- end }}\n", without.String(), with.String())
		case without.Len() > 0:
			fmt.Fprintf(&text, "{{- if eq .Values.tls.mode \"none\" }}\n%s{{- end }}\n", without.String())
		case with.Len() > 0:
			fmt.Fprintf(&text, "{{- if ne .Values.tls.mode \"none\" }}\n%s{{- end }}\n", with.String())
		}
		without.Reset()
		with.Reset()
	}
	for i, j := 0, 0; i < len(a) || j < len(b); {
		switch {
		case i < len(a) && j < len(b) && a[i] == b[j]:
			flush()
			text.WriteString(a[i])
			i, j = i+1, j+1
		case j == len(b) || (i < len(a) && common[i+1][j] >= common[i][j+1]):
			without.WriteString(a[i])
			i++
		default:
			with.WriteString(b[j])
			j++
		}
	}
	flush()
	return text.String()
}

// valuesOf are the values of the chart by which it gives the variant: the defaults, and what a user would set.
func valuesOf(t *testing.T, v variant) map[string]any {
	t.Helper()
	values := map[string]any{}
	if err := yaml.Unmarshal([]byte(fileText(t, chart+"/values.yaml")), &values); err != nil {
		t.Fatal(err)
	}
	values["image"] = "berth"
	values["viewers"].(map[string]any)["apiServerCIDRs"] = []any{nobodysCIDR}
	values["scheduler"].(map[string]any)["kind"] = v.scheduler
	values["tls"].(map[string]any)["mode"] = map[bool]string{false: "none", true: "own"}[v.tls]
	return values
}

// What Helm hears from the API server: the version that the kustomizations name, as clouds write it.
var apiServerVersion = "v1.36.3-gke.1036000"

func TestTheSecondSchedulerOfTheChartHasTheVersionOfTheApiServer(t *testing.T) {
	defer func(before string) { apiServerVersion = before }(apiServerVersion)
	values := valuesOf(t, variant{"second", false})
	image := func() string {
		deployment := as[appsv1.Deployment](t, chartObjects(t, values, "berth-system"), "Deployment/berth-scheduler")
		return deployment.Spec.Template.Spec.Containers[0].Image
	}
	for version, tag := range map[string]string{"v1.33.4-eks-99d6cc0": "v1.33.4", "v1.31.0": "v1.31.0", "v1.37.2+k3s1": "v1.37.2"} {
		apiServerVersion = version
		if want, got := "registry.k8s.io/kube-scheduler:"+tag, image(); got != want {
			t.Errorf("API server %s: want %s, got %s", version, want, got)
		}
	}
	values["scheduler"].(map[string]any)["image"] = "example.com/kube-scheduler:v1.32.1"
	if got := image(); got != "example.com/kube-scheduler:v1.32.1" {
		t.Errorf("the value is not used: %s", got)
	}
}

// execute renders as Helm does, with those of its functions that the chart uses.
func execute(t *testing.T, name, text string, values map[string]any, namespace string) string {
	t.Helper()
	indent := func(spaces int, text string) string {
		pad := strings.Repeat(" ", spaces)
		return pad + strings.ReplaceAll(text, "\n", "\n"+pad)
	}
	functions := template.FuncMap{
		"toYaml":    func(value any) string { return strings.TrimSuffix(marshal(t, value), "\n") },
		"nindent":   func(spaces int, text string) string { return "\n" + indent(spaces, text) },
		"regexFind": func(pattern, text string) string { return regexp.MustCompile(pattern).FindString(text) },
	}
	parsed, err := template.New(name).Option("missingkey=zero").Funcs(functions).Parse(text)
	var out bytes.Buffer
	if err == nil {
		err = parsed.Execute(&out, map[string]any{
			"Values": values, "Release": map[string]any{"Name": "berth", "Namespace": namespace},
			"Capabilities": map[string]any{"KubeVersion": map[string]any{"Version": apiServerVersion}},
		})
	}
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return out.String()
}

// chartObjects is what `helm template` gives.
func chartObjects(t *testing.T, values map[string]any, namespace string) rendered {
	t.Helper()
	files, err := filepath.Glob(chart + "/templates/*.yaml")
	if err != nil || len(files) < 3 {
		t.Fatalf("templates: %v %v", files, err)
	}
	objects := rendered{}
	for _, file := range files {
		for _, part := range regexp.MustCompile(`(?m)^---\n`).Split(execute(t, file, fileText(t, file), values, namespace), -1) {
			var object unstructured.Unstructured
			if err := yaml.UnmarshalStrict([]byte(part), &object.Object); err != nil {
				t.Fatalf("%s: %v\n%s", file, err, part)
			}
			if len(object.Object) == 0 {
				continue
			}
			if _, twice := objects[keyOf(object)]; twice {
				t.Errorf("%s is there twice", keyOf(object))
			}
			objects[keyOf(object)] = object
		}
	}
	return objects
}

// parsedConfig is the ConfigMap with the configuration as values, so that comments do not count.
func parsedConfig(t *testing.T, object unstructured.Unstructured) map[string]any {
	t.Helper()
	text, _, _ := unstructured.NestedString(object.Object, "data", "berth.yaml")
	config := map[string]any{}
	if err := yaml.UnmarshalStrict([]byte(text), &config); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	object = *object.DeepCopy()
	if err := unstructured.SetNestedMap(object.Object, config, "data", "berth.yaml"); err != nil {
		t.Fatal(err)
	}
	return object.Object
}

func TestTheChartGivesTheObjectsOfTheKustomizations(t *testing.T) {
	for _, v := range variants {
		t.Run(fmt.Sprintf("%s, TLS %v", v.scheduler, v.tls), func(t *testing.T) {
			got := chartObjects(t, valuesOf(t, v), "berth-system")
			for _, object := range v.objects(t) {
				key := keyOf(object)
				want, is := object.Object, got[key].Object
				if key == "ConfigMap/berth" {
					want, is = parsedConfig(t, object), parsedConfig(t, got[key])
				}
				if wantText, isText := marshal(t, want), marshal(t, is); !reflect.DeepEqual(wantText, isText) {
					t.Errorf("%s: want\n%s\ngot\n%s", key, wantText, isText)
				}
				delete(got, key)
			}
			if len(got) > 0 {
				t.Errorf("it has more: %v", slices.Collect(maps.Keys(got)))
			}
		})
	}
}

func TestTheValuesOfTheChartAreUsed(t *testing.T) {
	values := valuesOf(t, variant{"own", true})
	values["image"], values["replicas"] = "example.com/berth:1", 3.0
	values["nodeSelector"] = map[string]any{"pool": "system"}
	values["controlPlaneCIDRs"] = []any{"192.0.2.2/32"}
	values["viewers"] = map[string]any{"group": "research", "apiServerCIDRs": []any{"192.0.2.3/32", "2001:db8::1/128"}}
	values["config"] = map[string]any{"profile": "fragmentation-gradient", "nodesToScore": 7.0}
	values["tls"].(map[string]any)["mode"] = "certManager"
	objects := chartObjects(t, values, "gpu")
	text := ""
	for _, object := range objects {
		text += marshal(t, object.Object)
	}
	for _, want := range []string{"image: example.com/berth:1\n", "replicas: 3\n", "pool: system\n", "cidr: 192.0.2.2/32\n",
		"cidr: 192.0.2.3/32\n", "cidr: 2001:db8::1/128\n", "name: research\n",
		"profile: fragmentation-gradient\n", "nodesToScore: 7\n", "kind: Certificate\n", "berth.gpu.svc\n", "secretName: berth-server-tls\n"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	if strings.Contains(text, "berth-system") {
		t.Error("berth-system is there although the namespace is another")
	}
	// What Berth reads of it, and what it mounts, is there.
	config := configOfBerth(t, objects)
	file := filepath.Join(t.TempDir(), "berth.yaml")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	berth(t, "config", "check", file)
}
