// SPDX-License-Identifier: Apache-2.0

package main

import (
	"math/bits"
	"slices"
	"strconv"
	"strings"

	api "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
)

// parseLinks reads islands such as "0-1,2-3,0-1-2-3": two GPUs are linked the better the more islands have both.
func parseLinks(text string) [][]int {
	var islands [][]int
	for _, part := range strings.FieldsFunc(text, comma) {
		var island []int
		for _, number := range strings.Split(part, "-") {
			gpu, _ := strconv.Atoi(number)
			island = append(island, gpu)
		}
		islands = append(islands, island)
	}
	return islands
}

// choose prefers as -prefer says.
func (p *plugin) choose(request *api.ContainerPreferredAllocationRequest) []string {
	free := slices.Clone(request.AvailableDeviceIDs)
	slices.SortFunc(free, func(a, b string) int { return p.index(a) - p.index(b) })
	size := int(request.AllocationSize)
	if size < 1 || size > len(free) {
		return nil
	}
	if p.prefer == "nvidia" && len(free) <= 16 {
		if ids := p.bestEffort(free, request.MustIncludeDeviceIDs, size); ids != nil {
			return ids
		}
	}
	if p.prefer == "last" {
		slices.Reverse(free)
	}
	chosen := slices.Clone(request.MustIncludeDeviceIDs)
	for _, id := range free {
		if len(chosen) < size && !slices.Contains(chosen, id) {
			chosen = append(chosen, id)
		}
	}
	return chosen
}

// bestEffort is the rule of NVIDIA's plugin: all free GPUs are cut into sets of this size so that the links within sets
// are the best in sum (one set may stay short); of these sets the best one that has what is required. nil: there is none.
func (p *plugin) bestEffort(free, required []string, size int) []string {
	s := search{size: size, memo: map[uint32]partition{}}
	must := uint32(0)
	for i, id := range free {
		if slices.Contains(required, id) {
			must |= 1 << i
		}
		var row []int
		for _, other := range free {
			row = append(row, p.linked(p.index(id), p.index(other)))
		}
		s.scores = append(s.scores, row)
	}
	best, chosen := -1, uint32(0)
	for _, set := range s.best(1<<len(free)-1, (size-len(free)%size)%size).sets {
		if bits.OnesCount32(set) == size && set&must == must && s.score(set) > best {
			best, chosen = s.score(set), set
		}
	}
	var ids []string
	for i, id := range free {
		if chosen>>i&1 == 1 {
			ids = append(ids, id)
		}
	}
	return ids
}

func (p *plugin) linked(a, b int) int {
	score := 0
	for _, island := range p.links {
		if a != b && slices.Contains(island, a) && slices.Contains(island, b) {
			score++
		}
	}
	return score
}

// search finds the best partition; sets are masks of positions.
type search struct {
	size   int
	scores [][]int
	memo   map[uint32]partition // by what is left; whether the short set was taken follows from its number
}

type partition struct {
	score int
	sets  []uint32
}

// best cuts what is left; the set that lacks `short` members is taken when short is 0.
func (s *search) best(left uint32, short int) partition {
	if left == 0 {
		return partition{}
	}
	if known, there := s.memo[left]; there {
		return known
	}
	best := partition{score: -1}
	try := func(set uint32, short int) {
		rest := s.best(left&^set, short)
		if score := s.score(set) + rest.score; rest.score >= 0 && score > best.score {
			best = partition{score, append([]uint32{set}, rest.sets...)}
		}
	}
	first := left & -left
	s.visit(first, left&^first, s.size-1, func(set uint32) { try(set, short) })
	if short > 0 {
		s.visit(first, left&^first, s.size-short-1, func(set uint32) { try(set, 0) })
	}
	s.memo[left] = best
	return best
}

// visit calls do for set with each choice of count more of left.
func (s *search) visit(set, left uint32, count int, do func(uint32)) {
	if count == 0 {
		do(set)
		return
	}
	for ; left != 0; left &= left - 1 {
		next := left & -left
		s.visit(set|next, left&^next, count-1, do)
	}
}

func (s *search) score(set uint32) int {
	score := 0
	for a := range s.scores {
		for b := range a {
			if set>>a&1 == 1 && set>>b&1 == 1 {
				score += s.scores[a][b]
			}
		}
	}
	return score
}
