// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"berth.dev/e2e/harness"
)

func TestConfigurationIsReloadedUnderLoad(t *testing.T) {
	plane, berth, _ := halfwayThroughManyPods(t)
	for i := range 20 { // Berth looks once a second
		berth.WriteConfig(fmt.Sprintf("profile: %s\n", []string{"expected-waste", "fragmentation-gradient"}[i%2]))
		time.Sleep(250 * time.Millisecond)
	}
	wantAllPlaced(t, plane)
	harness.Eventually(t, "the last one to be read", 5*time.Second, func() error {
		if berth.Metric("berth_config_reloads_total") == 0 {
			return errors.New("nothing was reloaded")
		}
		return nil
	})
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
