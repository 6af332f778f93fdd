// SPDX-License-Identifier: Apache-2.0

package e2e

// docs/alerts.md and manifests/monitoring/rules.yml are made of manifests/monitoring/alerts.yaml. These tests fail where
// they are not, and write them anew where BERTH_WRITE is set:
//
//	BERTH_WRITE=1 BERTH_BIN=$PWD/build/release/bin test/e2e/run.sh 'TestAlertsPageIsCurrent|TestRulesFileIsCurrent'

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

const (
	alertsYaml = "manifests/monitoring/alerts.yaml"
	alertsPage = "docs/alerts.md"
)

type ruleGroup struct {
	Name  string
	Rules []struct {
		Alert, Record, Expr, For string
		Labels, Annotations      map[string]string
	}
}

func ruleGroups(t *testing.T) []ruleGroup {
	t.Helper()
	var rules struct{ Spec struct{ Groups []ruleGroup } }
	if err := yaml.Unmarshal([]byte(fileText(t, alertsYaml)), &rules); err != nil {
		t.Fatal(err)
	}
	return rules.Spec.Groups
}

// records are the recording rules.
func records(t *testing.T) []query {
	t.Helper()
	var queries []query
	for _, group := range ruleGroups(t) {
		for _, rule := range group.Rules {
			if rule.Record != "" {
				queries = append(queries, query{rule.Record, rule.Expr, ""})
			}
		}
	}
	return queries
}

// The labels that are left are those of the name: cluster_namespace_verb:berth_calls:rate5m.
func TestRecordsAreNamedAfterTheirLabels(t *testing.T) {
	levelOf := regexp.MustCompile(`^(cluster_namespace[a-z_]*):(berth_[a-z_]+):[a-z0-9_]+$`)
	all := records(t)
	if len(all) == 0 {
		t.Error("there are no recording rules")
	}
	for _, record := range all {
		name := levelOf.FindStringSubmatch(record.where)
		if name == nil {
			t.Errorf("%s is not LABELS:METRIC:OPERATION", record.where)
			continue
		}
		outer := strings.Split(grouping.FindStringSubmatch(record.expr)[1], ",")
		for i := range outer {
			outer[i] = strings.TrimSpace(outer[i])
		}
		outer = slices.DeleteFunc(outer, func(label string) bool { return label == "le" }) // histogram_quantile takes it
		if got := strings.Join(outer, "_"); got != name[1] {
			t.Errorf("%s: the labels of the expression are %s", record.where, got)
		}
	}
}

const rulesHead = `# Generated from alerts.yaml by test/e2e/manifests_alerts_test.go, which says how. Do not edit.
# For a Prometheus without the operator: name this file under rule_files in its configuration.
`

// TestRulesFileIsCurrent compares the rules for Prometheus itself with those for its operator.
func TestRulesFileIsCurrent(t *testing.T) {
	_, groups, found := strings.Cut(fileText(t, alertsYaml), "\nspec:\n")
	if !found {
		t.Fatalf("%s has no spec", alertsYaml)
	}
	text := rulesHead
	for _, line := range strings.Split(strings.TrimSuffix(groups, "\n"), "\n") {
		text += strings.TrimPrefix(line, "  ") + "\n"
	}
	wantCurrent(t, "manifests/monitoring/rules.yml", text)

	var plain struct{ Groups []ruleGroup }
	if err := yaml.UnmarshalStrict([]byte(text), &plain); err != nil {
		t.Fatal(err)
	}
	if got, want := fmt.Sprint(plain.Groups), fmt.Sprint(ruleGroups(t)); got != want {
		t.Errorf("want %s, got %s", want, got)
	}
}

const alertsHead = `# Alerts

One heading per alert: what is wrong, what to do, and the expression. Deleting the leader's pod is always safe: all state of Berth is
in the API server. Made by a test from ` + "`manifests/monitoring/alerts.yaml`" + `; [Monitoring](monitoring.md) says how to install them.

| severity | means | answer |
|---|---|---|
| critical | no GPU pod starts, or two pods may get the same GPU | now |
| warning | pods wait, run worse, or will do so if nobody acts | today |
| info | users notice nothing yet | when it suits |
`

var (
	valueInText = regexp.MustCompile(`\{\{ \$value[^}]*\}\}`)
	labelInText = regexp.MustCompile(`\{\{ \$labels\.([a-z_]+) \}\}`)
	alertInText = regexp.MustCompile(`\bBerth[A-Z][A-Za-z]+`)
	pageInText  = regexp.MustCompile(`\(?\bdocs/([a-z-]+\.md)\)?`)
)

// spoken is a text of an alert as it stands on the page.
func spoken(text string) string {
	text = valueInText.ReplaceAllString(text, "N")
	text = labelInText.ReplaceAllStringFunc(text, func(label string) string {
		return strings.ToUpper(labelInText.FindStringSubmatch(label)[1])
	})
	text = alertInText.ReplaceAllStringFunc(text, func(name string) string {
		return fmt.Sprintf("[%s](#%s)", name, strings.ToLower(name))
	})
	return pageInText.ReplaceAllStringFunc(text, func(page string) string {
		name := pageInText.FindStringSubmatch(page)[1]
		return fmt.Sprintf("([%s](%s))", titleOf(name), name)
	})
}

// titleOf is what a page of docs/ is called.
func titleOf(name string) string {
	text, err := os.ReadFile("docs/" + name)
	if err != nil {
		return err.Error()
	}
	title, _, _ := strings.Cut(string(text), "\n")
	return strings.TrimPrefix(title, "# ")
}

func TestAlertsPageIsCurrent(t *testing.T) {
	page, severities := alertsHead, map[string]bool{"critical": true, "warning": true, "info": true}
	for _, group := range ruleGroups(t) {
		heading := strings.TrimPrefix(group.Name, "berth-")
		page += fmt.Sprintf("\n## %s%s\n", strings.ToUpper(heading[:1]), heading[1:])
		for _, rule := range group.Rules {
			expr := "\n```promql\n" + strings.TrimSpace(rule.Expr) + "\n```\n"
			if rule.Record != "" {
				page += "\n### " + rule.Record + "\n" + expr
				continue
			}
			if !severities[rule.Labels["severity"]] {
				t.Errorf("%s has the severity %q", rule.Alert, rule.Labels["severity"])
			}
			// Where an alert leads to is its heading.
			if want, got := alertsPage+"#"+strings.ToLower(rule.Alert), rule.Annotations["runbook"]; got != want {
				t.Errorf("%s: want the runbook %s, got %q", rule.Alert, want, got)
			}
			after := ""
			if rule.For != "" {
				after = ", after " + rule.For
			}
			page += fmt.Sprintf("\n### %s\n\n%s%s: %s\n\n%s\n%s", rule.Alert, rule.Labels["severity"], after,
				spoken(rule.Annotations["summary"]), spoken(rule.Annotations["description"]), expr)
		}
	}
	wantCurrent(t, alertsPage, page)
}

func TestTextsOfAlertsAreSpoken(t *testing.T) {
	for text, want := range map[string]string{
		"{{ $value | humanize }} of {{ $labels.resource }}": "N of RESOURCE",
		"See BerthSlow (docs/tls.md).":                      "See [BerthSlow](#berthslow) ([Certificates](tls.md)).",
	} {
		if got := spoken(text); got != want {
			t.Errorf("want %q, got %q", want, got)
		}
	}
}

// The link of an alert that Alertmanager and Grafana show is there once the pages have an address.
func TestTheChartLinksAlertsToTheSite(t *testing.T) {
	for address, want := range map[string]string{
		"":                                       "runbook: docs/alerts.md#berthabsent\n",
		"https://docs.example/berth/alerts.html": "runbook_url: https://docs.example/berth/alerts.html#berthabsent\n",
	} {
		values := valuesOf(t, variant{"own", true})
		alerts := values["monitoring"].(map[string]any)["alerts"].(map[string]any)
		alerts["enabled"], alerts["runbookUrl"] = true, address
		text := marshal(t, chartObjects(t, values, "gpu")["PrometheusRule/berth"].Object)
		if strings.Count(text, "runbook") != strings.Count(text, "alert: ") || !strings.Contains(text, want) {
			t.Errorf("%q: want %q, got\n%s", address, want, text)
		}
	}
}
