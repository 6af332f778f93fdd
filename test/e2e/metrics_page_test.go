// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// docs/metrics.md is made of what /metrics says of itself, and of the alerts and panels that use it.

// family is a row of the page.
type family struct {
	name, kind, meaning    string
	labels, alerts, panels []string
}

var describedLine = regexp.MustCompile(`(?m)^# (HELP|TYPE) (berth_[a-z0-9_]+) (.*)$`)

// familiesOf are those of a text of /metrics, by name.
func familiesOf(text string, alerts, panels []query) map[string]*family {
	families := map[string]*family{}
	for _, line := range describedLine.FindAllStringSubmatch(text, -1) {
		if families[line[2]] == nil {
			families[line[2]] = &family{name: line[2]}
		}
		if line[1] == "HELP" {
			families[line[2]].meaning = line[3]
		} else {
			families[line[2]].kind = line[3]
		}
	}
	of := func(series string) *family {
		if own := families[series]; own != nil {
			return own
		}
		return families[familyOf(series)]
	}
	for series, samples := range samplesOf(text) {
		row := of(series)
		if row == nil {
			continue
		}
		for _, labels := range samples {
			for label := range labels {
				if label != "le" {
					row.labels = append(row.labels, label)
				}
			}
		}
	}
	used := func(queries []query, add func(*family, string)) {
		for _, q := range queries {
			for _, use := range selector.FindAllStringSubmatch(q.expr, -1) {
				if row := of(use[1]); row != nil {
					add(row, q.where)
				}
			}
		}
	}
	used(alerts, func(row *family, name string) { row.alerts = append(row.alerts, name) })
	used(panels, func(row *family, name string) { row.panels = append(row.panels, name) })
	return families
}

const metricsPageHead = `# Metrics

Every metric of ` + "`/metrics`" + ` that is Berth's own: its type, its labels, what it means, and which alert and which panel of the
dashboards use it. [Monitoring](monitoring.md) says what to do for each alert. Some metrics have series only when there is something
to count: GPUs by vendor, gangs, MIG devices. A test makes this page of a running Berth and compares.

| metric | type | labels | meaning | alerts | panels |
|---|---|---|---|---|---|
`

var pageRow = regexp.MustCompile("(?m)^\\| `(berth_[a-z0-9_]+)` \\| [a-z]+ \\| ([^|]*) \\|")

// metricsPage is the page; labels that an older one knows stay, because not every series is there at all times.
func metricsPage(families map[string]*family, older string) string {
	for _, row := range pageRow.FindAllStringSubmatch(older, -1) {
		if own := families[row[1]]; own != nil && row[2] != "" {
			own.labels = append(own.labels, strings.Split(row[2], ", ")...)
		}
	}
	var page strings.Builder
	page.WriteString(metricsPageHead)
	list := func(names []string) string {
		slices.Sort(names)
		return strings.Join(slices.Compact(names), ", ")
	}
	for _, name := range slices.Sorted(maps.Keys(families)) {
		row := families[name]
		meaning := strings.ReplaceAll(row.meaning, "|", "\\|")
		fmt.Fprintf(&page, "| `%s` | %s | %s | %s | %s | %s |\n", name, row.kind, list(row.labels), meaning, list(row.alerts),
			list(row.panels))
	}
	return page.String()
}

// checkMetricsPage compares docs/metrics.md with a text of /metrics.
func checkMetricsPage(t *testing.T, text string) {
	t.Helper()
	const path, made = "docs/metrics.md", "build/metrics.md"
	older, _ := os.ReadFile(path)
	page := metricsPage(familiesOf(text, alerts(t), panels(t)), string(older))
	if page == string(older) {
		return
	}
	if err := os.MkdirAll(filepath.Dir(made), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(made, []byte(page), 0o644); err != nil {
		t.Fatal(err)
	}
	t.Errorf("%s is not of this Berth: copy %s there", path, made)
}

func TestMetricsPageHasARowPerFamily(t *testing.T) {
	text := "# HELP berth_a_seconds How long\n# TYPE berth_a_seconds histogram\nberth_a_seconds_bucket{verb=\"bind\",le=\"1\"} 3\n" +
		"berth_a_seconds_count{verb=\"bind\"} 3\n# HELP berth_b_total This | that\n# TYPE berth_b_total counter\nberth_b_total 1\n"
	families := familiesOf(text, []query{{"BerthSlow", "rate(berth_a_seconds_bucket[5m]) > 1", ""}},
		[]query{{"Calls", "berth_b_total", ""}, {"Time", "sum(berth_a_seconds_sum)", ""}})
	page := metricsPage(families, "| `berth_b_total` | counter | code | x | | |\n")
	for _, row := range []string{
		"| `berth_a_seconds` | histogram | verb | How long | BerthSlow | Time |\n",
		"| `berth_b_total` | counter | code | This \\| that |  | Calls |\n",
	} {
		if !strings.HasPrefix(page, metricsPageHead) || !strings.Contains(page, row) {
			t.Errorf("want %q, got %q", row, page)
		}
	}
}
