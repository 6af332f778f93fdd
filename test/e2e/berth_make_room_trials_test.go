// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"berth.dev/e2e/harness"
)

func halfNodeSet(name string, checkpointed, guarded bool, grace int) string {
	return fmt.Sprintf(`
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: %s, namespace: default}
spec:
  serviceName: none
  replicas: 1
  selector: {matchLabels: {app: %[1]s}}`, name) + halfNodeTemplateOf(name, checkpointed, guarded, "Always", grace)
}

// roomTrial is one drawn cluster, each node half full with a pod of some controller, and a gang that needs some of the nodes whole.
type roomTrial struct {
	c       controlled
	minimum int // of guarded pods; 0: there is no budget
	broken  int // looks that saw fewer
}

// look counts the guarded pods that run.
func (r *roomTrial) look(t *testing.T) {
	guarded := 0
	for _, pod := range r.c.running(t) {
		if pod.Labels["guarded"] == "true" {
			guarded++
		}
	}
	if guarded < r.minimum {
		r.broken++
	}
}

// TestTrialsOfMakingRoom measures (make room-trials). Each trial reaches its goal, or is stopped with a reason, or has no plan.
func TestTrialsOfMakingRoom(t *testing.T) {
	trials, _ := strconv.Atoi(os.Getenv("BERTH_ROOM_TRIALS"))
	if trials == 0 {
		t.Skip("BERTH_ROOM_TRIALS says how many trials to make: make room-trials")
	}
	first, _ := strconv.Atoi(os.Getenv("BERTH_ROOM_SEED"))
	for seed := first; seed < first+trials; seed++ {
		t.Run(strconv.Itoa(seed), func(t *testing.T) { tryToMakeRoom(t, uint64(seed)) })
	}
}

func tryToMakeRoom(t *testing.T, seed uint64) {
	random := rand.New(rand.NewPCG(seed, 0))
	nodes, guards := 4+random.IntN(5), 0
	var objects []string
	for i := range nodes {
		name, checkpointed, guarded, grace := fmt.Sprintf("part-%d", i), random.IntN(10) < 6, random.IntN(10) < 4, 1+random.IntN(5)
		if guarded {
			guards++
		}
		switch random.IntN(3) {
		case 0:
			objects = append(objects, halfNodes(name, 1, checkpointed, guarded, grace))
		case 1:
			objects = append(objects, halfNodeSet(name, checkpointed, guarded, grace))
		default:
			if guarded {
				guards--
			}
			objects = append(objects, halfNodeJob(name))
		}
	}
	r := roomTrial{c: startMakingRoom(t, objects...)}
	if guards > 0 {
		r.minimum = guards - random.IntN(2)
		apply(t, r.c.Plane, fmt.Sprintf(`
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: guard, namespace: default}
spec: {minAvailable: %d, selector: {matchLabels: {guarded: "true"}}}
`, r.minimum))
	}
	before := r.c.running(t)
	size := 1 + random.IntN(nodes/2)
	apply(t, r.c.Plane, gangJob("train", size, named("train", size)))
	outcome := "no plan"
	for end := time.Now().Add(100 * time.Second); time.Now().Before(end); time.Sleep(500 * time.Millisecond) {
		r.look(t)
		metrics := r.c.berth.Metrics()
		if strings.Contains(metrics, `berth_room_plans_total{result="given_up"} 1`) {
			outcome = "given up"
			break
		}
		if strings.Contains(metrics, `berth_room_plans_total{result="done"} 1`) && r.c.runningOf(t, ofJob, "train") == size {
			outcome = "done"
			break
		}
	}
	events, beyond, evicted := r.c.eventTexts(), 0, 0
	after := r.c.running(t)
	for uid, pod := range before {
		if _, stays := after[uid]; stays {
			continue
		}
		evicted++
		if !strings.Contains(events, "default/"+pod.Name+" from ") {
			beyond++
		}
	}
	why := ""
	for _, line := range strings.Split(events, "\n") {
		if strings.HasPrefix(line, "RoomGivenUp") {
			why = line
		}
	}
	t.Logf("trial %d: %d nodes, gang of %d, %d guarded, budget %d: %s, %d evicted, %d beyond the plan, %d looks below the budget %s",
		seed, nodes, size, guards, r.minimum, outcome, evicted, beyond, r.broken, why)
	if beyond > 0 || r.broken > 0 || (outcome == "given up" && why == "") {
		t.Error("a promise was not kept")
	}
	if err := contains(r.c.berth.Page("/debug/snapshot"), "moves-here"); err == nil {
		harness.Eventually(t, "nothing to be held", 30*time.Second, func() error {
			if err := contains(r.c.berth.Page("/debug/snapshot"), "moves-here"); err == nil {
				return fmt.Errorf("a place is held")
			}
			return nil
		})
	}
	r.c.check(t)
}
