// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"berth.dev/e2e/harness"
)

// commandsOf are the indented commands of a page that begin with kubectl or set a variable, as they stand; those that
// need a cluster with kubelets, or docker and kind, are left out.
func commandsOf(page string) string {
	elsewhere := regexp.MustCompile(`rollout|port-forward|kubectl berth`)
	var script []string
	goesOn := false
	for _, line := range strings.Split(page, "\n") {
		command, indented := strings.CutPrefix(line, "    ")
		starts := strings.HasPrefix(command, "kubectl ") || regexp.MustCompile(`^[A-Z]+=`).MatchString(command)
		if !indented || !(starts || goesOn) || elsewhere.MatchString(command) {
			goesOn = false
			continue
		}
		goesOn = strings.HasSuffix(command, `\`)
		script = append(script, command)
	}
	return strings.Join(script, "\n")
}

// What docs/start.md promises: the manifests apply, one pod gets GPUs, and Berth knows why the other waits.
func TestCommandsOfTheStartPage(t *testing.T) {
	needBerth(t)
	text, err := os.ReadFile("docs/start.md")
	if err != nil {
		t.Fatal(err)
	}
	page := string(text)
	plane := harness.NewPlane(t)
	plane.AddNodes(harness.Node("berth-control-plane", "", 0))
	berth := plane.StartBerth("")
	plane.StartScheduler(harness.ShippedExtenders(t, berth.URL)...)

	// The scheduler of the overlay is a pod, and nothing runs pods here: another one takes them.
	pods := regexp.MustCompile("(?s)```yaml\n(# pods.yaml\n.*?)```").FindStringSubmatch(page)
	if pods == nil {
		t.Fatal("the page has no pods.yaml")
	}
	const second = "  schedulerName: berth-scheduler\n"
	if count := strings.Count(pods[1], second); count != 2 {
		t.Errorf("want both pods to name the second scheduler, %d do", count)
	}
	file := filepath.Join(t.TempDir(), "pods.yaml")
	if err := os.WriteFile(file, []byte(strings.ReplaceAll(pods[1], second, "")), 0o600); err != nil {
		t.Fatal(err)
	}
	before, after, _ := strings.Cut(commandsOf(page), "kubectl apply -f pods.yaml")
	run := func(commands string) string {
		commands = strings.ReplaceAll(commands, "c.json", filepath.Join(filepath.Dir(file), "c.json")) // not into the checkout
		script := fmt.Sprintf("kubectl() { %q --kubeconfig=%q \"$@\"; }\nset -eu\n%s", harness.Binary(t, "kubectl"), plane.Admin, commands)
		out, err := exec.Command("bash", "-c", script).CombinedOutput()
		if err != nil {
			t.Fatalf("%v\n%s\n%s", err, commands, out)
		}
		return string(out)
	}
	if !strings.Contains(before, "overlays/kind") || !strings.Contains(before, "patch node") || !strings.Contains(after, "devices") {
		t.Fatalf("the page has other commands now: %s\n...\n%s", before, after)
	}
	run(before)
	run("kubectl apply -f " + file)
	harness.Eventually(t, "the GPUs of train", 30*time.Second, func() error {
		if devices := run(after); strings.Count(devices, "1000") < 6 {
			return fmt.Errorf("got %s", devices)
		}
		return nil
	})
	harness.Eventually(t, "the reason of large", 30*time.Second, func() error {
		out, err := exec.Command(harness.BerthBinary(), "explain", "pod", "default/large", "--server", berth.URL).CombinedOutput()
		if err != nil || !strings.Contains(string(out), "needs 4") || !strings.Contains(string(out), "2 of 8 GPUs idle") {
			return fmt.Errorf("%v: %s", err, out)
		}
		return nil
	})
}
