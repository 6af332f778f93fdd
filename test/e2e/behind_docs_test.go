// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"berth.dev/e2e/harness"
)

// The manifests of docs/with-controllers.md, each on its own cluster: all of its pods run. It is full at first, and then
// nothing of them does.
func TestBehindControllersTheManifestsOfTheDocs(t *testing.T) {
	needControllers(t)
	page, err := os.ReadFile("docs/with-controllers.md")
	if err != nil {
		t.Fatal(err)
	}
	manifests := map[string]string{}
	for _, found := range regexp.MustCompile("(?s)```yaml\n# ([a-z]+).yaml\n(.*?)```").FindAllStringSubmatch(string(page), -1) {
		manifests[found[1]] = strings.ReplaceAll(found[2], "IMAGE", "none")
	}
	const nodes = 8
	for name, wants := range map[string]int{"job": 4, "cronjob": 4, "statefulset": 4, "jobset": 5, "lws": 8, "kueue": 4, "volcano": 4} {
		t.Run(name, func(t *testing.T) {
			if manifests[name] == "" {
				t.Fatalf("docs/with-controllers.md has no %s.yaml", name)
			}
			var controllers []harness.Controller
			switch name {
			case "jobset":
				controllers = append(controllers, jobSet)
			case "lws":
				controllers = append(controllers, lws)
			case "kueue":
				controllers = append(controllers, kueue)
			}
			c := startBehind(t, nodes, controllers...)
			c.fill(t, nodes)
			apply(t, c.Plane, manifests[name])
			if name == "cronjob" {
				c.Kubectl("patch", "cronjob", "nightly", "--patch={\"spec\": {\"suspend\": true}}") // it may be 2 o'clock
				c.Kubectl("create", "job", "now", "--from=cronjob/nightly")
			}
			time.Sleep(3 * time.Second)
			running := func() int {
				pods, err := c.ListPods("spec.nodeName!=")
				if err != nil {
					t.Fatal(err)
				}
				return len(pods)
			}
			if runs := running() - nodes; runs > 0 {
				t.Errorf("%d pods run on a full cluster", runs)
			}
			c.empty(t, nodes)
			harness.Eventually(t, "all pods to run", time.Minute, func() error {
				if runs := running(); runs != wants {
					return fmt.Errorf("%d of %d run; gangs: %s", runs, wants, c.berth.Page("/debug/gangs"))
				}
				return nil
			})
			c.check(t)
		})
	}
}
