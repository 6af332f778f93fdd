// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/dynamic-resource-allocation/cel"
	"k8s.io/dynamic-resource-allocation/structured"
	"k8s.io/utils/ptr"
)

// A random cluster of one node, and the claims of one pod.
type allocationCase struct {
	Node      string                      `json:"node"`
	Slices    []*resourcev1.ResourceSlice `json:"slices"`
	Classes   []*resourcev1.DeviceClass   `json:"classes"`
	Claims    []*resourcev1.ResourceClaim `json:"claims"`
	Allocated [][2]string                 `json:"allocated"`
	Parts     []usedPart                  `json:"parts"`
}

// What claims have together of a device that several may share.
type usedPart struct {
	pool, device string
	milli        map[string]int64 // by capacity, in thousandths
}

func (p usedPart) MarshalJSON() ([]byte, error) {
	return json.Marshal([]any{p.pool, p.device, p.milli})
}

func (p *usedPart) UnmarshalJSON(text []byte) error {
	return json.Unmarshal(text, &[]any{&p.pool, &p.device, &p.milli})
}

// One device of an answer.
type allocatedDevice struct {
	request, driver, pool, device string
	part                          map[string]int64 // nil: all of it
}

func (d *allocatedDevice) UnmarshalJSON(text []byte) error {
	return json.Unmarshal(text, &[]any{&d.request, &d.driver, &d.pool, &d.device, &d.part})
}

func (d allocatedDevice) equal(other allocatedDevice) bool {
	return d.request == other.request && d.driver == other.driver && d.pool == other.pool && d.device == other.device &&
		(d.part == nil) == (other.part == nil) && maps.Equal(d.part, other.part)
}

func sameDevices(a, b []allocatedDevice) bool { return slices.EqualFunc(a, b, allocatedDevice.equal) }

type allocationAnswer struct {
	End     string              `json:"end"`
	Results [][]allocatedDevice `json:"results"` // by claim
}

const allocatingNode = "node"

type caseMaker struct {
	*rand.Rand
	shares bool // devices have capacities, and several claims may have parts of some
}

func (r caseMaker) chance(percent int) bool { return r.IntN(100) < percent }

func (r caseMaker) device(pool, name, counters string) resourcev1.Device {
	text := func(text string) resourcev1.DeviceAttribute { return resourcev1.DeviceAttribute{StringValue: &text} }
	number := func(number int) resourcev1.DeviceAttribute {
		return resourcev1.DeviceAttribute{IntValue: ptr.To(int64(number))}
	}
	device := resourcev1.Device{Name: name, Attributes: map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{
		"type": text("gpu"), "model": text([]string{"a", "b"}[r.IntN(2)]), "uuid": text(pool + "/" + name),
		"driverVersion": {VersionValue: ptr.To(fmt.Sprintf("580.%d.0", r.IntN(2)))}}}
	if r.chance(10) {
		device.Attributes["type"] = text("mig")
	}
	if !r.chance(10) {
		device.Attributes["numaNode"] = number(r.IntN(2))
	}
	if !r.chance(10) {
		device.Attributes["resource.kubernetes.io/pcieRoot"] = text(fmt.Sprintf("pci%d", r.IntN(4)))
	}
	if r.chance(80) {
		device.Attributes["fast"] = resourcev1.DeviceAttribute{BoolValue: ptr.To(r.chance(50))}
	}
	if r.chance(15) {
		effects := []resourcev1.DeviceTaintEffect{resourcev1.DeviceTaintEffectNoSchedule, resourcev1.DeviceTaintEffectNoExecute}
		device.Taints = []resourcev1.DeviceTaint{{Key: "ill", Value: []string{"x", "y"}[r.IntN(2)], Effect: effects[r.IntN(2)]}}
	}
	if r.shares {
		r.share(&device)
	}
	if counters != "" {
		device.ConsumesCounters = []resourcev1.DeviceCounterConsumption{{CounterSet: counters,
			Counters: map[string]resourcev1.Counter{"memory": {Value: resource.MustParse(fmt.Sprintf("%dGi", 1+r.IntN(3)))}}}}
	}
	return device
}

// share gives the device capacities, most of them with a policy.
func (r caseMaker) share(device *resourcev1.Device) {
	quantity := func(text string) *resource.Quantity { return ptr.To(resource.MustParse(text)) }
	memory := resourcev1.DeviceCapacity{Value: *quantity([]string{"40Gi", "80Gi"}[r.IntN(2)])}
	if r.chance(70) {
		memory.RequestPolicy = &resourcev1.CapacityRequestPolicy{Default: quantity([]string{"10Gi", "40Gi"}[r.IntN(2)]),
			ValidRange: &resourcev1.CapacityRequestPolicyRange{Min: quantity("5Gi")}}
		if r.chance(50) {
			memory.RequestPolicy.ValidRange.Step = quantity("5Gi")
		}
		if r.chance(30) {
			memory.RequestPolicy.ValidRange.Max = quantity("40Gi")
		}
	}
	device.Capacity = map[resourcev1.QualifiedName]resourcev1.DeviceCapacity{"memory": memory}
	if r.chance(50) {
		device.Capacity["cores"] = resourcev1.DeviceCapacity{Value: *quantity("100"), RequestPolicy: &resourcev1.CapacityRequestPolicy{
			Default: quantity("25"), ValidValues: []resource.Quantity{*quantity("25"), *quantity("50"), *quantity("100")}}}
	}
	if r.chance(70) {
		device.AllowMultipleAllocations = ptr.To(true)
	}
}

func (r caseMaker) capacity() *resourcev1.CapacityRequirements {
	if !r.shares || r.chance(40) {
		return nil
	}
	asked := map[resourcev1.QualifiedName]resource.Quantity{}
	if r.chance(80) {
		asked["memory"] = resource.MustParse([]string{"3Gi", "10Gi", "17Gi", "25000Mi", "38Gi", "80Gi"}[r.IntN(6)])
	}
	if r.chance(30) {
		asked["cores"] = resource.MustParse([]string{"20", "50", "62.5", "100"}[r.IntN(4)])
	}
	return &resourcev1.CapacityRequirements{Requests: asked}
}

func (r caseMaker) slices(pool string) []*resourcev1.ResourceSlice {
	var made []*resourcev1.ResourceSlice
	count := 1 + r.IntN(2)
	var sets []string
	if r.chance(30) {
		sets = []string{"s0", "s1"}
	}
	add := func(name string, spec resourcev1.ResourceSliceSpec) {
		spec.Driver, spec.NodeName = gpuDriver, ptr.To(allocatingNode)
		spec.Pool = resourcev1.ResourcePool{Name: pool, Generation: 2}
		made = append(made, &resourcev1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: spec})
	}
	number := 0
	for i := range count {
		var devices []resourcev1.Device
		for range 1 + r.IntN(5) {
			counters := ""
			if sets != nil && r.chance(70) {
				counters = sets[r.IntN(2)]
			}
			devices = append(devices, r.device(pool, fmt.Sprintf("gpu-%d", number), counters))
			number++
		}
		r.Shuffle(len(devices), func(a, b int) { devices[a], devices[b] = devices[b], devices[a] })
		add(fmt.Sprintf("%s-%c", pool, 'z'-i), resourcev1.ResourceSliceSpec{Devices: devices})
	}
	if sets != nil {
		var shared []resourcev1.CounterSet
		for _, set := range sets {
			shared = append(shared, resourcev1.CounterSet{Name: set,
				Counters: map[string]resourcev1.Counter{"memory": {Value: resource.MustParse(fmt.Sprintf("%dGi", 2+r.IntN(6)))}}})
		}
		add(pool+"-counters", resourcev1.ResourceSliceSpec{SharedCounters: shared})
	}
	total := int64(len(made))
	if r.chance(4) {
		total++ // one is still to come
	}
	for _, slice := range made {
		slice.Spec.Pool.ResourceSliceCount = total
	}
	if r.chance(5) { // what is left of the generation before
		old := made[0].DeepCopy()
		old.Name, old.Spec.Pool.Generation = pool+"-old", 1
		made = append(made, old)
	}
	r.Shuffle(len(made), func(a, b int) { made[a], made[b] = made[b], made[a] })
	return made
}

func selecting(expressions ...string) []resourcev1.DeviceSelector {
	var selectors []resourcev1.DeviceSelector
	for _, expression := range expressions {
		selectors = append(selectors, resourcev1.DeviceSelector{CEL: &resourcev1.CELDeviceSelector{Expression: expression}})
	}
	return selectors
}

func (r caseMaker) selectors() []resourcev1.DeviceSelector {
	attribute := "device.attributes['gpu.nvidia.com']"
	all := []string{
		attribute + ".model == 'a'", attribute + ".model == 'b'", attribute + ".type == 'gpu'", attribute + ".type != 'mig'",
		// These fail on a device without the attribute.
		attribute + ".numaNode == 1", attribute + ".numaNode >= 0", "device.attributes['resource.kubernetes.io'].pcieRoot != 'pci0'",
		attribute + ".fast",
	}
	switch r.IntN(10) {
	case 0, 1, 2, 3, 4:
		return nil
	case 5, 6, 7:
		return selecting(all[r.IntN(4)])
	case 8:
		return selecting(all[r.IntN(len(all))])
	default:
		return selecting(all[r.IntN(4)] + " && " + all[r.IntN(len(all))])
	}
}

func (r caseMaker) want() resourcev1.DeviceSubRequest {
	want := resourcev1.DeviceSubRequest{DeviceClassName: []string{"gpu", "any", "mig"}[min(r.IntN(10)/4, 2)],
		AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: int64(1 + r.IntN(5)/2), Selectors: r.selectors(), Capacity: r.capacity()}
	if r.chance(8) {
		want.AllocationMode, want.Count = resourcev1.DeviceAllocationModeAll, 0
	}
	if r.chance(1) {
		want.Count = 31
	}
	if r.chance(15) {
		want.Tolerations = []resourcev1.DeviceToleration{{Operator: resourcev1.DeviceTolerationOpExists}}
	} else if r.chance(15) {
		want.Tolerations = []resourcev1.DeviceToleration{{Key: "ill", Operator: resourcev1.DeviceTolerationOpEqual, Value: "x",
			Effect: resourcev1.DeviceTaintEffectNoSchedule}}
	}
	return want
}

func (r caseMaker) claim(name string) *resourcev1.ResourceClaim {
	claim := &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{
		Name: name, Namespace: "ns", UID: "u", ResourceVersion: "1"}}
	var names []string
	for i := range 1 + r.IntN(3) {
		request := resourcev1.DeviceRequest{Name: fmt.Sprintf("r%d", i)}
		names = append(names, request.Name)
		if r.chance(25) {
			for k := range 1 + r.IntN(3) {
				want := r.want()
				want.Name = fmt.Sprintf("s%d", k)
				names = append(names, request.Name+"/"+want.Name)
				request.FirstAvailable = append(request.FirstAvailable, want)
			}
		} else {
			want := r.want()
			request.Exactly = &resourcev1.ExactDeviceRequest{DeviceClassName: want.DeviceClassName, Selectors: want.Selectors,
				AllocationMode: want.AllocationMode, Count: want.Count, Tolerations: want.Tolerations, Capacity: want.Capacity}
		}
		claim.Spec.Devices.Requests = append(claim.Spec.Devices.Requests, request)
	}
	attributes := []resourcev1.FullyQualifiedName{
		"gpu.nvidia.com/numaNode", "resource.kubernetes.io/pcieRoot", "gpu.nvidia.com/model", "gpu.nvidia.com/driverVersion", "gpu.nvidia.com/fast"}
	for r.chance(30) {
		constraint := resourcev1.DeviceConstraint{}
		attribute := attributes[r.IntN(len(attributes))]
		if r.chance(70) {
			constraint.MatchAttribute = &attribute
		} else {
			constraint.DistinctAttribute = &attribute
		}
		for _, name := range names {
			if r.chance(30) {
				constraint.Requests = append(constraint.Requests, name)
			}
		}
		claim.Spec.Devices.Constraints = append(claim.Spec.Devices.Constraints, constraint)
	}
	return claim
}

func (r caseMaker) make() *allocationCase {
	class := func(name string, expressions ...string) *resourcev1.DeviceClass {
		return &resourcev1.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: resourcev1.DeviceClassSpec{Selectors: selecting(expressions...)}}
	}
	made := &allocationCase{Node: allocatingNode, Classes: []*resourcev1.DeviceClass{
		class("gpu", "device.driver == 'gpu.nvidia.com' && device.attributes['gpu.nvidia.com'].type == 'gpu'"),
		class("any", "device.driver == 'gpu.nvidia.com'"),
		class("mig", "device.driver == 'gpu.nvidia.com'", "device.attributes['gpu.nvidia.com'].type == 'mig'")},
		Allocated: [][2]string{}, Parts: []usedPart{}}
	for _, pool := range []string{"q", "p"}[:1+r.IntN(2)] {
		made.Slices = append(made.Slices, r.slices(pool)...)
	}
	busy, given := r.IntN(40), map[[2]string]bool{}
	for _, slice := range made.Slices {
		for _, device := range slice.Spec.Devices {
			name := [2]string{slice.Spec.Pool.Name, device.Name}
			if !r.chance(busy) || given[name] { // an old slice may have it too
				continue
			}
			given[name] = true
			if ptr.Deref(device.AllowMultipleAllocations, false) && r.chance(80) {
				part := usedPart{slice.Spec.Pool.Name, device.Name, map[string]int64{}}
				for name := range device.Capacity {
					part.milli[string(name)] = int64(r.IntN(5)) * map[resourcev1.QualifiedName]int64{"memory": 10 << 30, "cores": 25}[name] * 1000
				}
				made.Parts = append(made.Parts, part)
			} else {
				made.Allocated = append(made.Allocated, name)
			}
		}
	}
	for i := range 1 + max(0, r.IntN(6)-3) {
		made.Claims = append(made.Claims, r.claim(fmt.Sprintf("c%d", i)))
	}
	return made
}

type classList []*resourcev1.DeviceClass

func (l classList) List() ([]*resourcev1.DeviceClass, error) { return l, nil }
func (l classList) Get(name string) (*resourcev1.DeviceClass, error) {
	for _, class := range l {
		if class.Name == name {
			return class, nil
		}
	}
	return nil, fmt.Errorf("no class %s", name)
}

var celCache = cel.NewCache(256, cel.Features{EnableConsumableCapacity: true})

// kubernetesAllocates is what Kubernetes' own allocator says.
func kubernetesAllocates(t *testing.T, asked *allocationCase) allocationAnswer {
	t.Helper()
	features := structured.Features{AdminAccess: true, ConsumableCapacity: true, DeviceBindingAndStatus: true, DeviceTaints: true,
		FractionalCapacityRange: true, PartitionableDevices: true, PrioritizedList: true}
	state := structured.AllocatedState{AllocatedDevices: sets.New[structured.DeviceID](),
		AllocatedSharedDeviceIDs: sets.New[structured.SharedDeviceID](), AggregatedCapacity: structured.NewConsumedCapacityCollection()}
	for _, device := range asked.Allocated {
		state.AllocatedDevices.Insert(structured.MakeDeviceID(gpuDriver, device[0], device[1]))
	}
	for _, part := range asked.Parts {
		capacity := map[resourcev1.QualifiedName]resource.Quantity{}
		for name, milli := range part.milli {
			capacity[resourcev1.QualifiedName(name)] = *resource.NewMilliQuantity(milli, resource.DecimalSI)
		}
		state.AggregatedCapacity.Insert(structured.NewDeviceConsumedCapacity(structured.MakeDeviceID(gpuDriver, part.pool, part.device), capacity))
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second) // as kube-scheduler's DRASchedulerFilterTimeout
	defer cancel()
	allocator, err := structured.NewAllocator(ctx, features, state, classList(asked.Classes), asked.Slices, celCache)
	if err != nil {
		t.Fatal(err)
	}
	results, err := allocator.Allocate(ctx, &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: asked.Node}}, asked.Claims)
	return answerOf(results, err)
}

func answerOf(results []resourcev1.AllocationResult, err error) allocationAnswer {
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return allocationAnswer{End: "unknown"}
	case err != nil && errors.Is(err, structured.ErrFailedAllocationOnNode):
		return allocationAnswer{End: "none"}
	case err != nil:
		return allocationAnswer{End: "error"}
	case results == nil:
		return allocationAnswer{End: "none"}
	}
	answer := allocationAnswer{End: "found"}
	for _, result := range results {
		devices := []allocatedDevice{}
		for _, device := range result.Devices.Results {
			got := allocatedDevice{request: device.Request, driver: device.Driver, pool: device.Pool, device: device.Device}
			if device.ShareID != nil {
				got.part = map[string]int64{}
				for name, much := range device.ConsumedCapacity {
					got.part[string(name)] = much.MilliValue()
				}
			}
			devices = append(devices, got)
		}
		answer.Results = append(answer.Results, devices)
	}
	return answer
}

// pinned is the case with claims that accept nothing but what they have in the answer.
func pinned(asked *allocationCase, answer allocationAnswer) *allocationCase {
	pinned := *asked
	pinned.Claims = nil
	for i, claim := range asked.Claims {
		got := map[string][]string{} // UUIDs by request
		for _, device := range answer.Results[i] {
			got[device.request] = append(got[device.request], strconv.Quote(device.pool+"/"+device.device))
		}
		pin := func(name string, selectors []resourcev1.DeviceSelector) []resourcev1.DeviceSelector {
			return append(selecting("device.attributes['gpu.nvidia.com'].uuid in ["+strings.Join(got[name], ", ")+"]"), selectors...)
		}
		claim = claim.DeepCopy()
		for k := range claim.Spec.Devices.Requests {
			request := &claim.Spec.Devices.Requests[k]
			if request.Exactly != nil {
				request.Exactly.Selectors = pin(request.Name, request.Exactly.Selectors)
			}
			request.FirstAvailable = slices.DeleteFunc(request.FirstAvailable, func(want resourcev1.DeviceSubRequest) bool {
				return got[request.Name+"/"+want.Name] == nil
			})
			for l := range request.FirstAvailable {
				want := &request.FirstAvailable[l]
				want.Selectors = pin(request.Name+"/"+want.Name, want.Selectors)
			}
		}
		pinned.Claims = append(pinned.Claims, claim)
	}
	return &pinned
}

// How often each request got a device.
func perRequest(answer allocationAnswer) map[string]int {
	counts := map[string]int{}
	for i, claim := range answer.Results {
		for _, device := range claim {
			counts[fmt.Sprintf("%d/%s", i, device.request)]++
		}
	}
	return counts
}

type berthsAnswer struct {
	Unread      string // why Berth does not read a claim
	First, Best allocationAnswer
}

// startAllocating starts the program that says what Berth would allocate. What it returns asks it, and returns the question too.
func startAllocating(t *testing.T) func(asked any) (line []byte, got berthsAnswer) {
	t.Helper()
	program := filepath.Join(os.Getenv("BERTH_BIN"), "berth-allocate-devices")
	if _, err := os.Stat(program); os.Getenv("BERTH_BIN") == "" || err != nil {
		t.Skip("berth-allocate-devices is not built: BERTH_BIN is the folder of the programs")
	}
	command := exec.CommandContext(t.Context(), program)
	stdin, err := command.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	command.Stderr = os.Stderr
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	answers := bufio.NewReader(stdout)
	t.Cleanup(func() {
		_ = stdin.Close()
		_ = command.Wait()
	})
	return func(asked any) (line []byte, got berthsAnswer) {
		line, err := json.Marshal(asked)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := stdin.Write(append(line, '\n')); err != nil {
			t.Fatal(err)
		}
		text, err := answers.ReadBytes('\n')
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(text, &got); err != nil {
			t.Fatalf("%v: %s", err, text)
		}
		return line, got
	}
}

// Berth's first fit is what Kubernetes' allocator takes, and its best set one that it could have taken. Set
// BERTH_ALLOCATION_CASES and BERTH_ALLOCATION_SEED for more than the few of every day.
func TestDevicesAsKubernetesAllocatorTakesThem(t *testing.T) {
	ask := startAllocating(t)
	number := func(name string, otherwise int) int {
		if read, err := strconv.Atoi(os.Getenv(name)); err == nil {
			return read
		}
		return otherwise
	}
	cases, seed := number("BERTH_ALLOCATION_CASES", 1000), number("BERTH_ALLOCATION_SEED", 1)
	ends := map[string]int{}
	var different, unread, infeasible int
	for i := range cases {
		asked := caseMaker{rand.New(rand.NewPCG(uint64(seed), uint64(i))), i%2 == 1}.make()
		line, got := ask(asked)
		want := kubernetesAllocates(t, asked)
		ends[want.End]++
		tell := func(what string, answer allocationAnswer) {
			if different+infeasible+unread <= 5 {
				t.Logf("seed %d, case %d: %s\nwant %v\ngot  %v\n%s", seed, i, what, want, answer, line)
			}
		}
		if got.Unread != "" {
			unread++
			tell(got.Unread, got.First)
			continue
		}
		if got.First.End != want.End || want.End == "found" && !slices.EqualFunc(want.Results, got.First.Results, sameDevices) {
			different++
			tell("another first fit", got.First)
		}
		if want.End != "found" {
			continue
		}
		counts, best := perRequest(want), perRequest(got.Best)
		same := len(counts) == len(best)
		for request, count := range counts {
			same = same && best[request] == count
		}
		if got.Best.End != "found" || !same || kubernetesAllocates(t, pinned(asked, got.Best)).End != "found" {
			infeasible++
			tell("a best set that cannot be had", got.Best)
		}
	}
	t.Logf("%d cases of seed %d: %v; %d other first fits, %d best sets that cannot be had, %d unread", cases, seed, ends, different,
		infeasible, unread)
	if different*1000 > cases || infeasible > 0 || unread > 0 {
		t.Errorf("want at most one other first fit in 1,000, every best set to be one, and all claims read")
	}
	for _, end := range []string{"found", "none", "error"} {
		if ends[end]*50 < cases {
			t.Errorf("want some of each end, got %v", ends)
		}
	}
}

// One case of the tests of Kubernetes' allocator (allocator/cases.sh).
type ownCase struct {
	Name     string
	Features []string
	allocationCase
	Results []resourcev1.AllocationResult
	Error   string
}

// The alpha features of 1.37: Berth does not know them.
var alphaFeatures = []string{"DRAListTypeAttributes", "DRADeviceCompatibilityGroups", "DRADerivedAttributes", "DRAOptionalNodeOperations"}

const (
	malformedPool = "a malformed pool, which only a broken driver publishes"
	sharedPool    = "a pool of several nodes, left to kube-scheduler"
)

// Cases in which Berth says something else, and may.
var ownCasesThatDiffer = map[string]string{
	"partitionable-devices-counter-quantities-are-not-modified":                       "counters beyond 2^63",
	"partitionable-devices-device-counter-consumption-references-unknown-counter-set": malformedPool,
	"partitionable-devices-same-counter-set-name-in-different-resource-slices":        malformedPool,
	"allocation-mode-all-with-multi-host-resource-pool":                               sharedPool,
	"different-resourceslices-in-pool-can-target-different-nodes":                     sharedPool,
	"partitionable-devices-devices-consume-counter-set-in-different-nodes":            sharedPool,
	"partitionable-devices-devices-on-different-nodes-consume-same-counter-set":       sharedPool,
	"with-distinct-constraints-unknown-type-attribute":                                "an attribute without a value, which the API server refuses",
}

// Where Kubernetes' allocator is asked what its own tests ask it, Berth's first fit is the same, or Berth leaves it to it.
func TestKubernetesAllocatorsOwnCases(t *testing.T) {
	ask := startAllocating(t)
	making := exec.CommandContext(t.Context(), "test/e2e/allocator/cases.sh")
	if _, err := os.Stat(making.Path); err != nil {
		making = exec.CommandContext(t.Context(), "./allocator/cases.sh")
	}
	making.Stderr = os.Stderr
	path, err := making.Output()
	if err != nil {
		t.Skipf("the cases cannot be made: %v", err)
	}
	text, err := os.ReadFile(strings.TrimSpace(string(path)))
	if err != nil {
		t.Fatal(err)
	}
	count := map[string]int{}
	for line := range strings.Lines(string(text)) {
		var own ownCase
		if err := json.Unmarshal([]byte(line), &own); err != nil {
			t.Fatal(err)
		}
		ofNode := !slices.ContainsFunc(own.Slices, func(slice *resourcev1.ResourceSlice) bool { return slice.Spec.NodeName == nil })
		switch {
		case slices.ContainsFunc(own.Features, func(feature string) bool { return slices.Contains(alphaFeatures, feature) }):
			count["skipped: an alpha feature"]++
			continue
		case strings.Contains(own.Name, "disabled") || strings.Contains(own.Name, "without-feature-gate"):
			count["skipped: a gate that is on by default is off"]++
			continue
		case strings.Contains(own.Error, "context "):
			count["skipped: interrupted on purpose"]++
			continue
		case !ofNode:
			count["left to kube-scheduler: slices not of one node"]++
			continue
		}
		for i, claim := range own.Claims { // what an API server adds
			claim.APIVersion, claim.Kind, claim.ResourceVersion = "resource.k8s.io/v1", "ResourceClaim", "1"
			claim.UID = types.UID(strconv.Itoa(i))
		}
		_, got := ask(own.allocationCase)
		want := answerOf(own.Results, nil)
		if own.Error != "" {
			want.End = "error"
		}
		end := got.First.End
		if strings.Contains(own.Error, "invalid resource pools") && end == "none" {
			end = "error" // on this node nothing is to be had; others are tried
		}
		switch {
		case got.Unread != "":
			count["left to kube-scheduler: a claim that Berth does not read"]++
		case end == "unknown":
			count["left to kube-scheduler: not known"]++
		case end == want.End && (end != "found" || slices.EqualFunc(want.Results, got.First.Results, sameDevices)):
			count["the same"]++
		case ownCasesThatDiffer[own.Name] != "":
			count["another: "+ownCasesThatDiffer[own.Name]]++
		default:
			t.Errorf("%s: want %+v %s, got %+v\n%s", own.Name, want, own.Error, got.First, line)
		}
	}
	t.Log(count)
	if count["the same"] < 140 {
		t.Errorf("want at least 140 cases with the same answer, got %d", count["the same"])
	}
}
