// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"testing"
	"time"

	"berth.dev/e2e/harness"
)

func TestConfigurationIsReloadedUnderLoad(t *testing.T) {
	plane, berth, _ := halfwayThroughManyPods(t)
	for i := range 20 {
		berth.WriteConfig(fmt.Sprintf("profile: %s\n", []string{"best-fit", "fragmentation-gradient"}[i%2]))
		time.Sleep(50 * time.Millisecond)
	}
	wantHalfway(t, plane)
	wantAllPlaced(t, plane)
	if !berth.Running() {
		t.Errorf("Berth ended: %s", berth.State())
	}
}

func TestAConfigurationThatIsWrongLeavesTheOldOne(t *testing.T) {
	plane, berth, _ := halfwayThroughManyPods(t)
	berth.WriteConfig("profile: no-such-profile\n")
	harness.Eventually(t, "the log to name the profile", 30*time.Second, func() error {
		return contains(berth.Log(), "no-such-profile")
	})
	wantAllPlaced(t, plane)
	if err := berth.Ready(); err != nil {
		t.Error(err)
	}
}
