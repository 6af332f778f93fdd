// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Links are those between the GPUs of a machine: islands of linked GPUs, the fastest kind of link first.
type Links struct {
	GPUs  int
	Kinds []LinkKind
}

// LinkKind is a kind of link: its cell in NVIDIA's matrix, its speed, and who has it.
type LinkKind struct {
	Cell    string
	GBps    int
	Islands [][]int
}

// Slowest is what GPUs have between each other where no island has both.
var Slowest = LinkKind{Cell: "SYS", GBps: 20}

// Between is the link of two GPUs.
func (l Links) Between(a, b int) LinkKind {
	for _, kind := range l.Kinds {
		for _, island := range kind.Islands {
			if slices.Contains(island, a) && slices.Contains(island, b) {
				return kind
			}
		}
	}
	return Slowest
}

// Annotation is berth.dev/topology of such a machine; its first half of GPUs is one NUMA node's.
func (l Links) Annotation() string {
	cells := map[string]int{}
	var rows, numa []string
	for a := range l.GPUs {
		row := ""
		for b := a + 1; b < l.GPUs; b++ {
			cell := l.Between(a, b).Cell
			if _, known := cells[cell]; !known {
				cells[cell] = len(cells)
			}
			row += fmt.Sprint(cells[cell])
		}
		rows = append(rows, row)
		numa = append(numa, fmt.Sprint(2*a/l.GPUs))
	}
	names := slices.SortedFunc(maps.Keys(cells), func(a, b string) int { return cells[a] - cells[b] })
	text, _ := json.Marshal(map[string]any{"version": 1, "gpus": l.GPUs, "cells": names,
		"links": strings.Join(rows[:len(rows)-1], "/"), "numa": numa})
	return string(text)
}

// Ring is the speed of the best ring through these GPUs: that of its slowest link. 0 for fewer than two.
func (l Links) Ring(gpus []int) int {
	if len(gpus) < 2 {
		return 0
	}
	return l.ring(gpus[0], gpus[0], gpus[1:], 1<<30)
}

// ring goes on from a GPU through all that are left, back to the first.
func (l Links) ring(first, from int, left []int, slowest int) int {
	if len(left) == 0 {
		return min(slowest, l.Between(from, first).GBps)
	}
	best := 0
	for i, next := range left {
		rest := slices.Concat(left[:i], left[i+1:])
		best = max(best, l.ring(first, next, rest, min(slowest, l.Between(from, next).GBps)))
	}
	return best
}

// TwoQuads are two islands of four GPUs.
var TwoQuads = Links{GPUs: 8, Kinds: []LinkKind{{Cell: "NV12", GBps: 300, Islands: [][]int{{0, 1, 2, 3}, {4, 5, 6, 7}}}}}
