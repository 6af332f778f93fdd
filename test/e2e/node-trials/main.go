// SPDX-License-Identifier: Apache-2.0

// Node-trials measures on real kubelets what becomes of Berth's choice of GPUs: with berth-node, and with the device
// plugin alone.
//
//	node-trials admissions    random pods: how many got the planned GPUs, who was refused, what an admission takes
//	node-trials guard         berth-node is killed and stopped in random phases: who noticed, for how long
//	node-trials stream        pods that want links: the ring bandwidth of what their containers have
//	node-trials idle          memory and CPU time of berth-node when nothing happens
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"slices"
	"time"

	"berth.dev/e2e/harness"
)

// settings are those of the command line.
type settings struct {
	nodes, pods, faults int
	seed                uint64
	idle, longest       time.Duration
	agent, alone        bool
	pretended           bool
}

// arms are those of these that are wanted.
func (s settings) arms(all ...arm) []arm {
	return slices.DeleteFunc(all, func(a arm) bool { return a.agent && !s.agent || !a.agent && !s.alone })
}

// trial measures something and gives figures for JSON, and sentences.
type trial func(t harness.T, s settings) (any, []string)

var trials = map[string]trial{"admissions": admissions, "guard": guard, "stream": stream, "idle": idle}

func main() {
	var s settings
	flag.IntVar(&s.nodes, "nodes", 3, "real nodes, 8 GPUs each")
	flag.IntVar(&s.pods, "pods", 1000, "pods of each arm of admissions and stream")
	flag.IntVar(&s.faults, "faults", 100, "kills and hangs of guard")
	flag.Uint64Var(&s.seed, "seed", 1, "seed of all that is random")
	flag.DurationVar(&s.idle, "idle", 30*time.Second, "how long idle looks")
	flag.DurationVar(&s.longest, "longest", 12*time.Hour, "each arm of admissions makes no new pods after that time")
	flag.BoolVar(&s.agent, "agent", true, "measure berth-node too; admissions and stream can do without")
	flag.BoolVar(&s.alone, "alone", true, "measure the plugin without berth-node too")
	flag.BoolVar(&s.pretended, "pretended", false, "nodes whose runtime runs no containers: many pods at little cost")
	file := flag.String("json", "", "write the figures to this file")
	flag.Parse()
	run, known := trials[flag.Arg(0)]
	if !known || flag.NArg() != 1 {
		fmt.Fprintln(os.Stderr, "usage: node-trials [FLAGS] admissions | guard | stream | idle")
		os.Exit(2)
	}
	command := &harness.Command{}
	defer command.Close()
	missing := harness.BerthMissing()
	if s.pretended {
		missing += harness.PretendedNodesMissing()
	} else {
		missing += harness.NodesMissing()
	}
	if s.agent {
		missing += harness.AgentMissing()
	}
	if missing != "" {
		command.Fatalf("%s", missing)
	}
	figures, sentences := run(command, s)
	for _, sentence := range sentences {
		fmt.Println(sentence)
	}
	if *file != "" {
		text, _ := json.MarshalIndent(map[string]any{flag.Arg(0): figures}, "", "  ")
		if err := os.WriteFile(*file, append(text, '\n'), 0o644); err != nil {
			command.Fatalf("%v", err)
		}
	}
}
