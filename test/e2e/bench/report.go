// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
)

// Report is all that a run has measured.
type Report struct {
	Nodes                    int       `json:"nodes"`
	Pods                     int       `json:"pods"`
	PercentageOfNodesToScore int       `json:"percentage_of_nodes_to_score"`
	Rounds                   []Round   `json:"rounds"`
	Summary                  []Summary `json:"summary"`
}

// Round is one placing of all pods.
type Round struct {
	Arm             string             `json:"arm"`
	PodsPerSecond   float64            `json:"pods_per_second"`
	CPUMillisPerPod map[string]float64 `json:"cpu_ms_per_pod"`
}

// Summary is the medians over the rounds of an arm. Ratio is the median of the ratios to the scheduler alone in the
// same round: neighbours in time share what else the machine was doing. CPURatio is what that ratio would be if nobody
// ever waited for anything but a core: the CPU of all processes for a pod with the scheduler alone, by that of the arm.
type Summary struct {
	Arm             string             `json:"arm"`
	PodsPerSecond   float64            `json:"pods_per_second"`
	Ratio           float64            `json:"ratio_to_none"`
	RatioMin        float64            `json:"ratio_min"`
	RatioMax        float64            `json:"ratio_max"`
	CPURatio        float64            `json:"cpu_ratio_to_none"`
	CPUMillisPerPod map[string]float64 `json:"cpu_ms_per_pod"`
}

// cpu is that of all processes, in milliseconds per pod.
func (round Round) cpu() float64 {
	all := 0.0
	for _, used := range round.CPUMillisPerPod {
		all += used
	}
	return all
}

var processNames = []string{"etcd", "kube-apiserver", "kube-scheduler", "extender"}

func (r *Report) of(arm string, figure func(Round) float64) []float64 {
	var figures []float64
	for _, round := range r.Rounds {
		if round.Arm == arm {
			figures = append(figures, figure(round))
		}
	}
	return figures
}

func (r *Report) summarize() {
	speed := func(round Round) float64 { return round.PodsPerSecond }
	alone, aloneCPU := r.of("none", speed), r.of("none", Round.cpu)
	for _, arm := range []string{"none", "stub", "berth"} {
		speeds := r.of(arm, speed)
		if len(speeds) == 0 {
			continue
		}
		var ratios, cpuRatios []float64
		for i, used := range r.of(arm, Round.cpu) {
			ratios = append(ratios, speeds[i]/alone[i])
			cpuRatios = append(cpuRatios, aloneCPU[i]/used)
		}
		summary := Summary{Arm: arm, PodsPerSecond: median(speeds), Ratio: median(ratios),
			RatioMin: slices.Min(ratios), RatioMax: slices.Max(ratios), CPURatio: median(cpuRatios),
			CPUMillisPerPod: map[string]float64{}}
		for _, name := range processNames {
			summary.CPUMillisPerPod[name] = median(r.of(arm, func(round Round) float64 { return round.CPUMillisPerPod[name] }))
		}
		r.Summary = append(r.Summary, summary)
	}
}

func (r *Report) print(out io.Writer) {
	fmt.Fprintf(out, "%d nodes, %d one-GPU pods, percentageOfNodesToScore %d, %d rounds; medians\n\n", r.Nodes, r.Pods,
		r.PercentageOfNodesToScore, len(r.of("none", func(Round) float64 { return 0 })))
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(table, "extender\tpods/s\tratio\t(min - max)\tby CPU\t")
	for _, name := range processNames {
		fmt.Fprintf(table, "%s ms/pod\t", name)
	}
	fmt.Fprintln(table)
	for _, s := range r.Summary {
		fmt.Fprintf(table, "%s\t%.1f\t%.2f\t(%.2f - %.2f)\t%.2f\t", s.Arm, s.PodsPerSecond, s.Ratio, s.RatioMin, s.RatioMax, s.CPURatio)
		for _, name := range processNames {
			fmt.Fprintf(table, "%.2f\t", s.CPUMillisPerPod[name])
		}
		fmt.Fprintln(table)
	}
	_ = table.Flush()
}

func median(figures []float64) float64 {
	sorted := slices.Sorted(slices.Values(figures))
	middle := len(sorted) / 2
	if len(sorted)%2 == 1 {
		return sorted[middle]
	}
	return (sorted[middle-1] + sorted[middle]) / 2
}
