// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"berth.dev/e2e/harness"
)

// query is an expression of an alert or of a panel, and the text beside it in which labels are shown.
type query struct {
	where, expr, text string
}

func alerts(t *testing.T) []query {
	t.Helper()
	var queries []query
	for _, group := range ruleGroups(t) {
		for _, rule := range group.Rules {
			if rule.Alert != "" {
				queries = append(queries, query{rule.Alert, rule.Expr, rule.Annotations["summary"] + rule.Annotations["description"]})
			}
		}
	}
	return queries
}

func panels(t *testing.T) []query {
	t.Helper()
	return append(panelsOf(t, "dashboard.json"), panelsOf(t, "dashboard-usage.json")...)
}

func panelsOf(t *testing.T, file string) []query {
	t.Helper()
	var dashboard struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr, LegendFormat string }
		}
	}
	text, err := os.ReadFile("manifests/monitoring/" + file)
	if err == nil {
		err = json.Unmarshal(text, &dashboard)
	}
	if err != nil {
		t.Fatal(err)
	}
	var queries []query
	for _, panel := range dashboard.Panels {
		for _, target := range panel.Targets {
			queries = append(queries, query{panel.Title, target.Expr, target.LegendFormat})
		}
	}
	return queries
}

// sample is the labels of one line of /metrics.
type sample map[string]string

var (
	lineOfMetrics = regexp.MustCompile(`(?m)^([a-z0-9_]+)(?:\{(.*)\})? [^ ]+$`)
	labelOfSample = regexp.MustCompile(`([a-z_]+)="((?:[^"\\]|\\.)*)"`)

	selector   = regexp.MustCompile(`\b(berth_[a-z0-9_]+)(?:\{([^}]*)\})?`)
	matcher    = regexp.MustCompile(`([a-z_]+)\s*(=~|!~|!=|=)\s*"([^"]*)"`)
	grouping   = regexp.MustCompile(`\b(?:by|on)\s*\(([^)]*)\)`)
	aggregated = regexp.MustCompile(`\b(?:sum|max|min|count|avg|group)\b`)
	// {{verb}} of Grafana, {{ $labels.verb }} of Prometheus.
	shown = regexp.MustCompile(`\{\{\s*(?:\$labels\.)?([a-z_]+)\s*\}\}`)
)

func samplesOf(text string) map[string][]sample {
	samples := map[string][]sample{}
	for _, line := range lineOfMetrics.FindAllStringSubmatch(text, -1) {
		labels := sample{}
		for _, label := range labelOfSample.FindAllStringSubmatch(line[2], -1) {
			labels[label[1]] = label[2]
		}
		samples[line[1]] = append(samples[line[1]], labels)
	}
	return samples
}

// What is on /metrics only once something has happened that the test does not make happen.
var onlyAfterAnEvent = map[string]string{
	`berth_kube_requests_total{code="5xx"}`: "the API server answered 5xx",
}

// Labels that Prometheus adds, or a collector of the series of several clusters; and DCGM's name of a GPU.
var ofTheScrape = []string{"instance", "job", "namespace", "cluster", "UUID"}

// problems are what is wrong with a query, given what is on /metrics.
func (q query) problems(samples map[string][]sample) []string {
	var wrong []string
	say := func(format string, args ...any) { wrong = append(wrong, q.where+": "+fmt.Sprintf(format, args...)) }
	known := map[string]bool{}
	for _, label := range ofTheScrape {
		known[label] = true
	}
	for _, use := range selector.FindAllStringSubmatch(q.expr, -1) {
		metric := use[1]
		if len(samples[metric]) == 0 {
			say("there is no %s", metric)
			continue
		}
		for _, labels := range samples[metric] {
			for label := range labels {
				known[label] = true
			}
		}
		for _, match := range matcher.FindAllStringSubmatch(use[2], -1) {
			if slices.Contains(ofTheScrape, match[1]) {
				continue
			}
			for _, value := range strings.Split(match[3], "|") {
				_, excused := onlyAfterAnEvent[fmt.Sprintf("%s{%s=%q}", metric, match[1], value)]
				if !excused && !hasSample(samples[metric], match[1], value) {
					say("no %s has %s=%q", metric, match[1], value)
				}
			}
		}
	}
	grouped := map[string]bool{}
	for _, group := range grouping.FindAllStringSubmatch(q.expr, -1) {
		for _, label := range strings.Split(group[1], ",") {
			label = strings.TrimSpace(label)
			grouped[label] = true
			if !known[label] {
				say("it groups by %s, which none of its metrics has", label)
			}
		}
	}
	left := known // what a summary can show
	if aggregated.MatchString(q.expr) {
		left = grouped
	}
	for _, show := range shown.FindAllStringSubmatch(q.text, -1) {
		if !left[show[1]] {
			say("it shows %s, which is not left", show[1])
		}
	}
	return wrong
}

// hasSample says whether a value, or one alternative of a pattern, is there.
func hasSample(samples []sample, label, value string) bool {
	pattern := regexp.MustCompile("^(?:" + value + ")$")
	return slices.ContainsFunc(samples, func(labels sample) bool {
		got, there := labels[label]
		return there && pattern.MatchString(got)
	})
}

func TestMetricsOfAlertsAndDashboard(t *testing.T) {
	needBerth(t)
	plane := harness.NewPlane(t)
	plane.CreateNodes(4)
	cut := harness.Node("node-mig", harness.GPUModel, 0)
	cut.Labels[harness.ProductLabel] = harness.GPUModel
	cut.Labels["nvidia.com/cuda.driver-version.major"] = "580"
	cut.Status.Allocatable["nvidia.com/mig-1g.10gb"] = resource.MustParse("7")
	sick := harness.Node("node-sick", "", 0)
	sick.Status.Conditions = append(sick.Status.Conditions, v1.NodeCondition{Type: "XIDErrors", Status: v1.ConditionTrue})
	plane.AddNodes(cut, sick)
	plane.AddBerthNamespace()
	plane.Kubectl("apply", "-k", "manifests/base")
	config := render(t, "manifests/base")
	berth := plane.NewBerth("berth", plane.ServiceAccountKubeconfig("berth"),
		configOfBerth(t, config)+"\nmetrics: {byNamespace: true, byGpu: true}\nworkloadClasses: [{name: all}]\n")
	isPod(t, plane, berth, "berth-0")
	berth.Start()
	berth.WaitReady()
	plane.StartScheduler(harness.ShippedExtenders(t, berth.URL)...)
	plane.CreatePods(append(withAndWithoutGPUs("pod"), harness.Pod("slice", harness.Ask{"nvidia.com/mig-1g.10gb": "1"}))...)
	plane.CreatePods(harness.Pod("linked", harness.Ask{harness.GPUResource: "2"}))
	plane.WaitBound(30 * time.Second)
	give(t, plane, "linked", v1.ResourceHealthStatusHealthy, 6, 7)
	past := harness.Pod("past-berth", harness.Ask{harness.GPUResource: "1"})
	past.Spec.NodeName = "node-0003"
	plane.CreatePods(past, harness.Pod("too-large", harness.Ask{harness.GPUResource: "9"}))

	// The gauges of the books follow what happens.
	for name, want := range map[string]float64{"berth_pods_without_devices": 1, "berth_reservations": 0, "berth_nodes": 6,
		"berth_ready": 1, "berth_leader": 1, "berth_pods_with_given_gpus": 1, "berth_leader_labelled": 1, "berth_gpus": 32} {
		harness.Eventually(t, name, 15*time.Second, func() error {
			if got := berth.Metric(name); len(samplesOf(berth.Metrics())[name]) == 0 || got != want {
				return fmt.Errorf("want %g, got %g", want, got)
			}
			return nil
		})
	}

	text := berth.Metrics()
	checkMetricsPage(t, text)
	samples := samplesOf(text)
	used := map[string]bool{}
	for _, q := range slices.Concat(alerts(t), panels(t), records(t)) {
		for _, wrong := range q.problems(samples) {
			t.Error(wrong)
		}
		for _, use := range selector.FindAllStringSubmatch(q.expr, -1) {
			used[familyOf(use[1])] = true
		}
	}
	for _, name := range slices.Sorted(maps.Keys(samples)) {
		if strings.HasPrefix(name, "berth_") && !used[familyOf(name)] {
			t.Errorf("%s is on /metrics and in no alert or panel", name)
		}
	}
}

// The histogram that a series belongs to; any other series is its own family.
func familyOf(series string) string {
	for _, part := range []string{"_bucket", "_sum", "_count"} {
		series = strings.TrimSuffix(series, part)
	}
	return series
}

// The check above finds what it is for.
func TestQueriesOfMetricsThatAreNotThereAreFound(t *testing.T) {
	samples := samplesOf("# HELP berth_a_total x\nberth_a_total{verb=\"bind\",code=\"2xx\"} 3\nberth_b 1\n")
	for _, c := range []struct{ expr, text, want string }{
		{`sum by (verb) (rate(berth_a_total{code="2xx"}[5m]))`, "{{ $labels.verb }}", ""},
		{`berth_a_total > 0 and on (instance) berth_b == 1`, "{{verb}} {{instance}}", ""},
		{`sum by (cluster, verb) (rate(berth_a_total{cluster=~"$cluster"}[5m]))`, "{{verb}}", ""},
		{`berth_c > 0`, "", "there is no berth_c"},
		{`berth_b{verb="bind"}`, "", `no berth_b has verb="bind"`},
		{`rate(berth_a_total{code=~"2..|403"}[5m])`, "", `code="403"`},
		{`sum by (model) (berth_b)`, "", "groups by model"},
		{`sum(berth_a_total)`, "{{verb}}", "it shows verb"},
	} {
		got := strings.Join(query{"it", c.expr, c.text}.problems(samples), "; ")
		if (c.want == "") != (got == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s: want %q, got %q", c.expr, c.want, got)
		}
	}
}

func TestEveryAlertIsOnThePageOfAlerts(t *testing.T) {
	text, err := os.ReadFile("docs/alerts.md")
	if err != nil {
		t.Fatal(err)
	}
	var inGuide, names []string
	for _, heading := range regexp.MustCompile(`(?m)^### (Berth[A-Za-z]+)$`).FindAllStringSubmatch(string(text), -1) {
		inGuide = append(inGuide, heading[1])
	}
	for _, alert := range alerts(t) {
		names = append(names, alert.where)
		if !strings.Contains(alert.text, " ") {
			t.Errorf("%s has no text", alert.where)
		}
		// A runbook sends nobody to an alert that is not there.
		for _, other := range regexp.MustCompile(`\bBerth[A-Z][A-Za-z]+`).FindAllString(alert.text, -1) {
			inGuide = append(inGuide, other)
		}
	}
	slices.Sort(names)
	slices.Sort(inGuide)
	inGuide = slices.Compact(inGuide)
	if !slices.Equal(names, inGuide) {
		t.Errorf("alerts: %v\non the page and in runbooks: %v", names, inGuide)
	}
}
