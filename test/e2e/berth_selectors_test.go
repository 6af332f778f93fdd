// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// A short form of `make cel`: Berth's evaluator of device selectors and Kubernetes' own say the same.
func TestSelectorsAreEvaluatedAsByKubernetes(t *testing.T) {
	own, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	compare := exec.Command(filepath.Join(filepath.Dir(own), "cel"), "-expressions", "5000",
		"-verdicts", filepath.Join(os.Getenv("BERTH_BIN"), "berth-cel-verdicts"))
	output, err := compare.CombinedOutput()
	t.Logf("%s", output)
	if err != nil {
		t.Error(err)
	}
}
