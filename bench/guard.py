#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Holds this build's speed and packing against an earlier build's, measured in turn in the same run.

    guard.py BASE_BIN HEAD_BIN [--rounds N] [--limit RATIO] [--data DIR]

BASE_BIN and HEAD_BIN are folders with berth-load, berth-micro and berth-replay. Each time is the least of N rounds,
base and head alternating, so that what else the machine does counts little. A measure over the limit is measured again
with three times the rounds before it counts. Ends with 1 if one is still over it, or if a trace is packed worse.
A measure that the base does not have yet is named and left out.
"""
import argparse
import json
import os
import re
import subprocess
import sys

# berth-micro's benchmarks, CPU time: a decision, an explanation, the plan of a gang, victims, an unchanged node.
MICRO = [
    "BM_Engine_Decision/expected_waste/4/iterations:20000",
    "BM_Engine_Decision/best_fit/4/iterations:20000",
    "BM_DecideOverLinkedNodes/best_fit_links/4/iterations:5000",
    "BM_Shares_Decision/by_both/iterations:10000",
    "BM_Gang_PlanWarm/members:1000/gpus:1/classes:1",
    "Explain/eight_gpus",
    "Preempt/four_of_eight",
    "FilterFull/some_of_lower_priority",
    "BM_StatusAgain/1",
]
TRACES = ["default", "gpushare100", "gpuspec33", "multigpu50"]
MOST_LOST = 0.3  # points of all GPUs that a trace may lose: what equal settings differ by


def output_of(command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def micro_times(folder):
    """{benchmark: CPU time in ns}, of those that the folder's program has."""
    pattern = "|".join(f"^{re.escape(name)}$" for name in MICRO)
    text = output_of([f"{folder}/berth-micro", f"--benchmark_filter={pattern}", "--benchmark_format=json",
                      "--benchmark_min_time=0.2"])
    to_ns = {"ns": 1, "us": 1e3, "ms": 1e6, "s": 1e9}
    return {run["name"]: run["cpu_time"] * to_ns[run["time_unit"]] for run in json.loads(text)["benchmarks"]}


def load_ratios(folder):
    """Filter and prioritize of 5,000 nodes over HTTP, as a multiple of a bare server's time in the same process."""
    text = output_of([f"{folder}/berth-load", "--rounds", "200"])
    found = re.search(r"^berth / bare Beast, sums of p50: ([0-9.]+)$", text, re.M)
    return {"filter and prioritize over HTTP / bare server": float(found.group(1))} if found else {}


def least_of(measure, folders, rounds):
    """[{name: least value} of each folder], in turn."""
    least = [{} for _ in folders]
    for _ in range(rounds):
        for values, folder in zip(least, folders):
            for name, value in measure(folder).items():
                values[name] = min(value, values.get(name, value))
    return least


def slower(measure, folders, rounds, limit):
    """Prints base, head and their ratio of everything measured; returns the names over the limit."""
    base, head = least_of(measure, folders, rounds)
    over = [name for name, value in head.items() if name in base and value > limit * base[name]]
    if over:
        print(f"over the limit, once more with {3 * rounds} rounds: {', '.join(over)}", flush=True)
        base, head = least_of(measure, folders, 3 * rounds)
        over = [name for name, value in head.items() if name in base and value > limit * base[name]]
    for name, value in head.items():
        if name not in base:
            print(f"{name:66} the base does not have it")
            continue
        print(f"{name:66} {base[name]:12.6g} {value:12.6g}   x{value / base[name]:.2f}"
              f"{'   SLOWER' if name in over else ''}", flush=True)
    return over


def packed(folder, data, trace):
    """GPUs allocated in %, when pods for 130 % have arrived."""
    openb = f"{data}/openb"
    text = output_of([f"{folder}/berth-replay", "run", "--nodes", f"{openb}/openb_node_list_gpu_node.csv", "--tasks",
                      f"{openb}/openb_pod_list_{trace}.csv.gz", "--order", f"{openb}/orders/{trace}.txt.gz",
                      "--seed", "42", "--policy", "expected-waste", "--json", "-"])
    return json.loads(text[text.index("{"):])["allocated_at_130"]


def worse_packed(folders, data):
    if not os.path.isdir(f"{data}/openb"):
        print(f"packing was not compared: there is no {data}/openb (set BERTH_DATA)")
        return []
    worse = []
    for trace in TRACES:
        base, head = (packed(folder, data, trace) for folder in folders)
        if head < base - MOST_LOST:
            worse.append(trace)
        print(f"{'GPUs allocated, %, ' + trace:66} {base:12.2f} {head:12.2f}   {head - base:+.2f}"
              f"{'   WORSE' if trace in worse else ''}", flush=True)
    return worse


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("base")
    parser.add_argument("head")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--limit", type=float, default=1.15, help="head may take so much of base's time")
    parser.add_argument("--data", default=os.environ.get("BERTH_DATA", "../shared/data"))
    asked = parser.parse_args()
    folders = [asked.base, asked.head]
    print(f"{'':66} {'base':>12} {'head':>12}   (ns, or as named; least of {asked.rounds})")
    over = [name for measure in (micro_times, load_ratios) for name in slower(measure, folders, asked.rounds, asked.limit)]
    worse = worse_packed(folders, asked.data)
    if over or worse:
        sys.exit(f"bench guard: slower than {asked.limit} x base: {over or 'none'}; packed worse: {worse or 'none'}")
    print(f"bench guard: nothing slower than {asked.limit} x base, nothing packed worse")


if __name__ == "__main__":
    main()
