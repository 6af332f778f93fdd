// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"k8s.io/kube-openapi/pkg/validation/strfmt"
	"k8s.io/kube-openapi/pkg/validation/validate"
	"sigs.k8s.io/yaml"
)

// What Helm checks values by: manifests/helm/values.schema.json, with the schema of the configuration in it.
const (
	schemaSource = "manifests/helm/values.schema.json"
	configSchema = "docs/berth-configuration.schema.json"
)

func readJSON(t *testing.T, file string) map[string]any {
	t.Helper()
	object := map[string]any{}
	if err := json.Unmarshal([]byte(fileText(t, file)), &object); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	return object
}

func properties(schema any) map[string]any {
	return schema.(map[string]any)["properties"].(map[string]any)
}

// schemaOfValues is values.schema.json of the chart. What the chart writes itself is no value.
func schemaOfValues(t *testing.T) string {
	t.Helper()
	schema, config := readJSON(t, schemaSource), readJSON(t, configSchema)
	server := properties(config)["server"]
	for _, name := range []string{"listen", "debugListen", "tls"} {
		delete(properties(server), name)
	}
	for _, name := range []string{"apiVersion", "kind", "server"} {
		delete(properties(config), name)
	}
	delete(config, "$schema")
	properties(schema)["config"], properties(schema)["server"] = config, server
	text, err := json.MarshalIndent(schema, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return string(text) + "\n"
}

// ofKubernetes changes the schema to the draft that Kubernetes' own checker knows.
func ofKubernetes(schema any) any {
	switch schema := schema.(type) {
	case map[string]any:
		if bound, is := schema["exclusiveMinimum"].(float64); is {
			schema["minimum"], schema["exclusiveMinimum"] = bound, true
		}
		for key := range schema {
			schema[key] = ofKubernetes(schema[key])
		}
	case []any:
		for i := range schema {
			schema[i] = ofKubernetes(schema[i])
		}
	}
	return schema
}

func checkerOfValues(t *testing.T) *validate.SchemaValidator {
	t.Helper()
	text, err := json.Marshal(ofKubernetes(readJSON(t, chart+"/values.schema.json")))
	if err != nil {
		t.Fatal(err)
	}
	var schema spec.Schema
	if err := json.Unmarshal(text, &schema); err != nil {
		t.Fatal(err)
	}
	return validate.NewSchemaValidator(&schema, nil, "values", strfmt.Default)
}

func TestTheChartRefusesValuesThatItDoesNotKnow(t *testing.T) {
	checker := checkerOfValues(t)
	for _, v := range variants {
		if err := checker.Validate(valuesOf(t, v)).AsError(); err != nil {
			t.Errorf("%+v: %v", v, err)
		}
	}
	for _, c := range []struct{ set, why string }{
		{"{replica: 3}", "replica"},
		{"{replicas: '3'}", "replicas"},
		{"{replicas: 0}", "replicas"},
		{"{image: ''}", "image"},
		{"{tls: {mode: mtls}}", "mode"},
		{"{scheduler: {kind: third}}", "kind"},
		{"{scheduler: {replica: 1}}", "replica"},
		{"{node: {enable: true}}", "enable"},
		{"{node: {enabled: 'true'}}", "enabled"},
		{"{config: {nodesToScor: 7}}", "nodesToScor"},
		{"{config: {logLevel: loud}}", "logLevel"},
		{"{server: {listen: '0.0.0.0:1'}}", "listen"},
		{"{imagePullSecrets: [regcred]}", "imagePullSecrets"},
		{"{podAnnotations: {a: 1}}", "podAnnotations"},
		{"{controlPlaneCIDRs: 10.0.0.0/8}", "controlPlaneCIDRs"},
		{"{controlPlaneCIDRs: [10.0.0.0]}", "controlPlaneCIDRs"},
		{"{monitoring: {alerts: true}}", "alerts"},
	} {
		values := map[string]any{}
		if err := yaml.Unmarshal([]byte(c.set), &values); err != nil {
			t.Fatal(err)
		}
		if err := checker.Validate(values).AsError(); err == nil || !strings.Contains(err.Error(), c.why) {
			t.Errorf("%s: want an error that names %s, got %v", c.set, c.why, err)
		}
	}
}

// Each value is in the schema, and each name of the schema has a default that readers find in values.yaml.
func TestTheSchemaOfTheChartHasEveryValue(t *testing.T) {
	schema := readJSON(t, schemaSource)
	delete(properties(schema), "global") // Helm's own
	var compare func(path string, schema, values any)
	compare = func(path string, schema, values any) {
		inner, closed := schema.(map[string]any)["properties"].(map[string]any)
		if !closed {
			return
		}
		named, given := slices.Sorted(maps.Keys(inner)), slices.Sorted(maps.Keys(values.(map[string]any)))
		if !slices.Equal(named, given) {
			t.Errorf("%s: the schema has %v, values.yaml %v", path, named, given)
			return
		}
		for _, name := range named {
			compare(path+"."+name, inner[name], values.(map[string]any)[name])
		}
	}
	compare("values", schema, map[string]any(valuesOf(t, variants[0])))
}

func TestTheChartGivesMonitoringWhereItIsAskedFor(t *testing.T) {
	values := valuesOf(t, variants[0])
	without := chartObjects(t, values, "berth-system")
	monitoring := values["monitoring"].(map[string]any)
	for _, name := range []string{"serviceMonitor", "alerts"} {
		monitoring[name].(map[string]any)["enabled"] = true
	}
	got := chartObjects(t, values, "berth-system")
	for _, object := range monitoringObjects(t) {
		key := keyOf(object)
		if _, there := without[key]; there {
			t.Errorf("%s is there although nobody asked for it", key)
		}
		if want, is := marshal(t, object.Object), marshal(t, got[key].Object); want != is {
			t.Errorf("%s: want\n%s\ngot\n%s", key, want, is)
		}
		delete(got, key)
	}
	if len(got) != len(without) {
		t.Errorf("it has more: %v", slices.Collect(maps.Keys(got)))
	}
	monitoring["serviceMonitor"].(map[string]any)["labels"] = map[string]any{"release": "prometheus"}
	monitoring["alerts"].(map[string]any)["enabled"] = false
	got = chartObjects(t, values, "gpu")
	monitor := got["ServiceMonitor/berth"]
	if _, alerts := got["PrometheusRule/berth"]; alerts || monitor.GetLabels()["release"] != "prometheus" || monitor.GetNamespace() != "gpu" {
		t.Errorf("the values are not used: alerts %v, %+v", alerts, monitor)
	}
}

func TestThePodsOfTheChartAreAsTheValuesSay(t *testing.T) {
	values := valuesOf(t, variant{"second", false})
	values["node"].(map[string]any)["enabled"] = true
	values["imagePullSecrets"] = []any{map[string]any{"name": "regcred"}}
	values["podAnnotations"] = map[string]any{"example.com/team": "gpu"}
	onSystem := map[string]any{"nodeAffinity": map[string]any{"requiredDuringSchedulingIgnoredDuringExecution": map[string]any{
		"nodeSelectorTerms": []any{map[string]any{"matchExpressions": []any{
			map[string]any{"key": "pool", "operator": "In", "values": []any{"system"}}}}}}}}
	values["affinity"] = onSystem
	if err := checkerOfValues(t).Validate(values).AsError(); err != nil {
		t.Error(err)
	}
	objects := chartObjects(t, values, "gpu")
	pods := map[string]v1.PodTemplateSpec{
		"berth":           as[appsv1.Deployment](t, objects, "Deployment/berth").Spec.Template,
		"berth-scheduler": as[appsv1.Deployment](t, objects, "Deployment/berth-scheduler").Spec.Template,
		"berth-node":      as[appsv1.DaemonSet](t, objects, "DaemonSet/berth-node").Spec.Template,
	}
	for name, pod := range pods {
		if got := fmt.Sprintf("%v %s", pod.Spec.ImagePullSecrets, pod.Annotations["example.com/team"]); got != "[{regcred}] gpu" {
			t.Errorf("%s: got %s", name, got)
		}
	}
	if pods["berth"].Annotations["kubectl.kubernetes.io/default-container"] != "berth" {
		t.Errorf("annotations of the chart are gone: %v", pods["berth"].Annotations)
	}
	ofBerth, ofScheduler := pods["berth"].Spec.Affinity, pods["berth-scheduler"].Spec.Affinity
	if ofBerth.PodAntiAffinity != nil || ofBerth.NodeAffinity == nil || ofScheduler.PodAntiAffinity == nil || ofScheduler.NodeAffinity != nil {
		t.Errorf("want the value for Berth alone, got %v and %v", ofBerth, ofScheduler)
	}
}

// The classes of the chart are those of overlays/aks, whose configuration is else that of mutual TLS; own ones take their place.
func TestThePresetOfWorkloadClassesIsOne(t *testing.T) {
	parsed := func(text string) map[string]any {
		t.Helper()
		config := map[string]any{}
		if err := yaml.UnmarshalStrict([]byte(text), &config); err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		return config
	}
	ofChart := func(set func(values map[string]any)) any {
		t.Helper()
		values := valuesOf(t, variant{"second", true})
		set(values)
		return parsed(configOfBerth(t, chartObjects(t, values, "berth-system")))["workloadClasses"]
	}
	aks := parsed(fileText(t, "manifests/overlays/aks/config/berth.yaml"))
	preset := aks["workloadClasses"]
	if preset == nil || marshal(t, preset) != marshal(t, ofChart(func(values map[string]any) { values["workloadClassPreset"] = true })) {
		t.Errorf("want the same classes in overlays/aks and in the chart")
	}
	if classes := ofChart(func(map[string]any) {}); classes != nil {
		t.Errorf("want no class without the value, got %v", classes)
	}
	own := []any{map[string]any{"name": "mine"}}
	if got := ofChart(func(values map[string]any) {
		values["workloadClassPreset"], values["config"] = true, map[string]any{"workloadClasses": own}
	}); marshal(t, got) != marshal(t, own) {
		t.Errorf("want the classes of the values, got %v", got)
	}
	text := fileText(t, "manifests/overlays/aks/config/berth.yaml")
	shown := "    " + strings.ReplaceAll(strings.TrimSuffix(text[strings.Index(text, "workloadClasses:"):], "\n"), "\n", "\n    ")
	if !strings.Contains(fileText(t, "docs/workload-classes.md"), shown) {
		t.Errorf("docs/workload-classes.md does not show them")
	}
	delete(aks, "workloadClasses")
	if tls := parsed(fileText(t, "manifests/components/mtls/config/berth.yaml")); marshal(t, tls) != marshal(t, aks) {
		t.Errorf("the rest of overlays/aks: want %v, got %v", tls, aks)
	}
}
