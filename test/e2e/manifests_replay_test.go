// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	v1 "k8s.io/api/core/v1"

	"berth.dev/e2e/harness"
)

// The script of a Job's container, run as a pod would run it, but with /replay in a folder of the test.
func runScript(t *testing.T, objects rendered, job batchv1.Job, folder string, index int) {
	t.Helper()
	container := job.Spec.Template.Spec.Containers[0]
	script := strings.ReplaceAll(container.Args[0], "/replay/", folder+"/")
	command := exec.Command(container.Command[0], append(slices.Clone(container.Command[1:]), script)...)
	command.Env = append(os.Environ(), "PATH="+filepath.Dir(harness.BerthBinary())+":"+os.Getenv("PATH"),
		"JOB_COMPLETION_INDEX="+strconv.Itoa(index))
	for _, source := range container.EnvFrom {
		for key, value := range as[v1.ConfigMap](t, objects, "ConfigMap/"+source.ConfigMapRef.Name).Data {
			command.Env = append(command.Env, key+"="+value)
		}
	}
	for _, variable := range container.Env {
		command.Env = append(command.Env, variable.Name+"="+variable.Value)
	}
	command.Env = append(command.Env, "SEEDS=1") // be quick
	if out, err := command.CombinedOutput(); err != nil {
		t.Fatalf("%s, index %d: %v\n%s", job.Name, index, err, out)
	}
}

func shardsOf(job batchv1.Job) string {
	for _, variable := range job.Spec.Template.Spec.Containers[0].Env {
		if variable.Name == "SHARDS" {
			return variable.Value
		}
	}
	return ""
}

// The Jobs do in a cluster what they do here: every index writes its part, and the parts become the report.
func TestReplayJobsWriteTheReport(t *testing.T) {
	if _, err := os.Stat(filepath.Join(filepath.Dir(harness.BerthBinary()), "berth-replay")); err != nil {
		t.Fatal(err)
	}
	objects := render(t, "manifests/replay")
	replay := as[batchv1.Job](t, objects, "Job/berth-replay")
	merge := as[batchv1.Job](t, render(t, "manifests/replay/merge"), "Job/berth-replay-merge")
	shards, err := strconv.Atoi(shardsOf(replay))
	if err != nil || shardsOf(merge) != shardsOf(replay) || int(*replay.Spec.Completions) != shards ||
		*replay.Spec.CompletionMode != batchv1.IndexedCompletion {
		t.Errorf("want SHARDS and completions to agree, got %q, %q and %d (%s)", shardsOf(replay), shardsOf(merge),
			*replay.Spec.Completions, *replay.Spec.CompletionMode)
	}

	folder := t.TempDir()
	traces := filepath.Join(folder, "traces")
	if err := os.Mkdir(traces, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"nodes.csv": "sn,cpu_milli,memory_mib,gpu,model\nn1,64000,262144,4,T4\n",
		"some.csv":  "name,cpu_milli,memory_mib,num_gpu,gpu_milli\na,4000,1024,1,500\nb,4000,1024,2,1000\n",
	} {
		if err := os.WriteFile(filepath.Join(traces, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for index := range shards {
		runScript(t, objects, replay, folder, index)
	}
	runScript(t, objects, merge, folder, 0)
	page, err := os.ReadFile(filepath.Join(folder, "report", "report.html"))
	if err != nil || !regexp.MustCompile(`"policy":"spreading"`).Match(page) {
		t.Errorf("report.html: %v, %d bytes", err, len(page))
	}

	for _, job := range []batchv1.Job{replay, merge} {
		wantAdmitted(t, job.Name, job.Spec.Template)
		for _, container := range job.Spec.Template.Spec.Containers {
			for resource := range container.Resources.Requests {
				if resource != v1.ResourceCPU && resource != v1.ResourceMemory {
					t.Errorf("%s asks for %s", job.Name, resource)
				}
			}
		}
	}
}
