// SPDX-License-Identifier: Apache-2.0

// cel compares Berth's evaluator of device selectors with Kubernetes' own: random expressions on random devices, and the
// selectors that are published. It fails where the two say different things.
//
//	cel -verdicts build/release/bin/berth-cel-verdicts -expressions 100000
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"runtime"
	"sort"
	"strings"
	"sync"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	dracel "k8s.io/dynamic-resource-allocation/cel"
)

// Kubernetes' evaluator goes through maps in random order: an expression whose result depends on it has none.
const looks = 8

type question struct {
	Expression string   `json:"expression"`
	Devices    []device `json:"devices"`
}

type answer struct {
	Verdicts []string `json:"verdicts"`
	Costs    []uint64 `json:"costs"`
	Why      string   `json:"why"`
}

// compile has Kubernetes compile an expression. It panics on some: a list that begins with an item of unknown type that may
// be left out (cel-go 0.29.2, validator.go, Parameters()[0]).
func compile(expression string) (compiled dracel.CompilationResult, panicked bool) {
	defer func() { panicked = recover() != nil }()
	features := dracel.Features{EnableConsumableCapacity: true, EnableListTypeAttributes: true}
	return dracel.GetCompiler(features).CompileCELExpression(expression, dracel.Options{DisableCostEstimation: true}), false
}

// theirs is the verdict of Kubernetes, and what it cost.
func theirs(compiled dracel.CompilationResult, d dracel.Device) (verdict string, cost uint64) {
	if compiled.Error != nil {
		return "refused", 0
	}
	matches, details, err := compiled.DeviceMatches(context.Background(), d)
	if details != nil && details.ActualCost() != nil {
		cost = *details.ActualCost()
	}
	if err != nil {
		return "failed", cost
	}
	return fmt.Sprint(matches), cost
}

// steady says whether Kubernetes says the same every time.
func steady(compiled dracel.CompilationResult, d dracel.Device, verdict string) bool {
	for range looks {
		if again, _ := theirs(compiled, d); again != verdict {
			return false
		}
	}
	return true
}

type tally struct {
	pairs, evaluated, unsteady, disagreements int
	otherCost, refused                        int
	verdicts                                  map[string]int
	unsupported                               map[string]int
	shown                                     int
}

func newTally() *tally {
	return &tally{verdicts: map[string]int{}, unsupported: map[string]int{}}
}

func (t *tally) add(o *tally) {
	t.pairs += o.pairs
	t.evaluated += o.evaluated
	t.unsteady += o.unsteady
	t.disagreements += o.disagreements
	t.otherCost += o.otherCost
	t.refused += o.refused
	for k, v := range o.verdicts {
		t.verdicts[k] += v
	}
	for k, v := range o.unsupported {
		t.unsupported[k] += v
	}
}

var output sync.Mutex

// ask has Berth's evaluator answer one question after the other.
type asker struct {
	in  io.WriteCloser
	out *bufio.Reader
	cmd *exec.Cmd
}

func newAsker(program string) (*asker, error) {
	cmd := exec.Command(program)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	return &asker{in: in, out: bufio.NewReaderSize(out, 1<<20), cmd: cmd}, cmd.Start()
}

func (a *asker) ask(q question) (answer, error) {
	var got answer
	line, err := json.Marshal(q)
	if err != nil {
		return got, err
	}
	if _, err := a.in.Write(append(line, '\n')); err != nil {
		return got, err
	}
	reply, err := a.out.ReadBytes('\n')
	if err != nil {
		return got, fmt.Errorf("no answer to %q: %w", q.Expression, err)
	}
	return got, json.Unmarshal(reply, &got)
}

func (a *asker) close() error {
	a.in.Close()
	return a.cmd.Wait()
}

// compare asks both about one expression.
func compare(a *asker, expression string, devices []device, t *tally) (evaluated bool, err error) {
	got, err := a.ask(question{expression, devices})
	if err != nil {
		return false, err
	}
	compiled, panicked := compile(expression)
	evaluated = true
	if panicked || (compiled.Error != nil && got.Verdicts[0] != "refused") {
		t.refused += len(devices)
		return true, nil // no cluster has it: the API server refuses what does not compile
	}
	for i, d := range devices {
		t.pairs++
		if got.Verdicts[i] == "unsupported" {
			t.unsupported[got.Why]++
			evaluated = false
			continue
		}
		t.evaluated++
		want, cost := theirs(compiled, d.kubernetes())
		t.verdicts[want]++
		if got.Verdicts[i] == want {
			if want != "refused" && got.Costs[i] != cost {
				t.otherCost++
				if *showCosts && t.shown < 10 {
					t.shown++
					fmt.Printf("cost %d, want %d: %s\n", got.Costs[i], cost, expression)
				}
			}
			continue
		}
		if want != "refused" && !steady(compiled, d.kubernetes(), want) {
			t.unsteady++
			continue
		}
		t.disagreements++
		if t.shown < 10 {
			t.shown++
			output.Lock()
			why := got.Why
			if compiled.Error != nil {
				why += "; Kubernetes: " + strings.SplitN(compiled.Error.Detail, "\n", 2)[0]
			} else if _, _, err := compiled.DeviceMatches(context.Background(), d.kubernetes()); err != nil {
				why += "; Kubernetes: " + err.Error()
			}
			text, _ := json.Marshal(d)
			fmt.Printf("Berth %s, Kubernetes %s: %s\n  on %s\n  %s\n", got.Verdicts[i], want, expression, text, why)
			output.Unlock()
		}
	}
	return evaluated, nil
}

var (
	verdicts    = flag.String("verdicts", "build/release/bin/berth-cel-verdicts", "Berth's evaluator")
	expressions = flag.Int("expressions", 100000, "random expressions")
	perEach     = flag.Int("devices", 3, "random devices for each of them")
	seed        = flag.Uint64("seed", 1, "of the random numbers")
	published   = flag.String("published", "test/e2e/cel/published.txt", "the published selectors")
	showCosts   = flag.Bool("costs", false, "show expressions whose cost differs")
)

// random compares random expressions, with as many processes as there are processors.
func random() (*tally, error) {
	workers := runtime.GOMAXPROCS(0)
	tallies := make([]*tally, workers)
	failures := make([]error, workers)
	var all sync.WaitGroup
	for w := range workers {
		all.Add(1)
		go func() {
			defer all.Done()
			t := newTally()
			tallies[w] = t
			a, err := newAsker(*verdicts)
			if err != nil {
				failures[w] = err
				return
			}
			for i := w; i < *expressions; i += workers {
				// Each expression has random numbers of its own, so that one can be looked at alone.
				g := &generator{Rand: rand.New(rand.NewPCG(*seed, uint64(i)))}
				devices := make([]device, *perEach)
				for j := range devices {
					devices[j] = g.device()
				}
				if _, err := compare(a, g.expression(), devices, t); err != nil {
					failures[w] = err
					return
				}
			}
			failures[w] = a.close()
		}()
	}
	all.Wait()
	sum := newTally()
	for w := range workers {
		if failures[w] != nil {
			return nil, failures[w]
		}
		sum.add(tallies[w])
	}
	return sum, nil
}

// selectors compares those of the file: one a line, # begins a comment.
func selectors() (all, evaluated int, t *tally, err error) {
	text, err := os.ReadFile(*published)
	if err != nil {
		return 0, 0, nil, err
	}
	a, err := newAsker(*verdicts)
	if err != nil {
		return 0, 0, nil, err
	}
	t = newTally()
	for i, line := range strings.Split(string(text), "\n") {
		if line = strings.TrimSpace(line); line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		g := &generator{Rand: rand.New(rand.NewPCG(*seed, uint64(i)))}
		devices := []device{publishedDevice()}
		for range 20 {
			devices = append(devices, g.device())
		}
		all++
		known, err := compare(a, strings.ReplaceAll(line, `\n`, "\n"), devices, t)
		if err != nil {
			return 0, 0, nil, err
		}
		if known {
			evaluated++
		} else {
			fmt.Println("not evaluated:", line)
		}
	}
	return all, evaluated, t, a.close()
}

func (t *tally) print(what string) {
	fmt.Printf("%s: %d disagreements in %d evaluated of %d (%.1f%%); %d depend on the order of a map; the cost differs in %d\n",
		what, t.disagreements, t.evaluated, t.pairs, 100*float64(t.evaluated)/float64(max(t.pairs, 1)), t.unsteady, t.otherCost)
	fmt.Printf("  Kubernetes refuses %d more\n", t.refused)
	fmt.Println("  Kubernetes:", t.verdicts)
	reasons := make([]string, 0, len(t.unsupported))
	for why := range t.unsupported {
		reasons = append(reasons, why)
	}
	sort.Slice(reasons, func(i, j int) bool { return t.unsupported[reasons[i]] > t.unsupported[reasons[j]] })
	for _, why := range reasons[:min(len(reasons), 12)] {
		fmt.Printf("  not evaluated, %d: %s\n", t.unsupported[why], why)
	}
}

func run() error {
	flag.Parse()
	all, evaluated, t, err := selectors()
	if err != nil {
		return err
	}
	t.print("published selectors")
	fmt.Printf("  %d of %d published selectors are evaluated\n", evaluated, all)
	if 100*evaluated < 95*all {
		return fmt.Errorf("%d of %d published selectors are evaluated, want 95%%", evaluated, all)
	}
	sum, err := random()
	if err != nil {
		return err
	}
	sum.print(fmt.Sprintf("%d random expressions, seed %d", *expressions, *seed))
	if n := sum.disagreements + t.disagreements; n > 0 {
		return fmt.Errorf("%d disagreements", n)
	}
	return nil
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "cel:", err)
		os.Exit(1)
	}
}

// quantityOf is for texts that are quantities.
func quantityOf(text string) resourceapi.DeviceCapacity {
	return resourceapi.DeviceCapacity{Value: resource.MustParse(text)}
}
