// SPDX-License-Identifier: Apache-2.0
//
// Training, inference and batch on a fleet of several machine types; drawn from a seed.
//
// What is asked for, on what, and what it costs is an assumption, all of it said here and in
// docs/replay.md. The fleet, in an order drawn from the seed, all GPUs of one model:
//
//   nodes  GPUs  family  price of a GPU-hour  traits
//      16     8  rdma    4                    rdma, nvlink, nvswitch, nvme
//      24     4  plain   3                    every other one: nvme
//      16     4  spot    1                    spot; every other one: nvme
//
// The pods, by class; sizes and replicas with equal chances:
//
//   class      GPUs             replicas  runs in the mean  what a reclaim leaves of its work
//   training   4, 8                    1               8 h  all until the last full hour
//   inference  0.25, 0.5, 1, 1      2..6              24 h  all (a service has nothing to lose)
//   batch      1, 1, 2                 1            30 min  nothing
//
// Replicas come together and run equally long. Arrivals of each class are Poisson, independent of
// the other classes, running times log-normal (time/stream.h), and at the start as many pods come
// as if the stream had always run. The cloud reclaims each spot node at Poisson times: its
// pods end, and an empty node replaces it at once. CPU and memory are never scarce.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "bench/replay/time/stream.h"
#include "cluster/node/node.h"
#include "cluster/values/pod_request.h"

namespace berth::replay {

constexpr std::size_t kWorkClasses = 3;
constexpr std::array<std::string_view, kWorkClasses> kWorkClassNames = {"training", "inference",
                                                                        "batch"};
constexpr std::size_t kFamilies = 3;
// As traits of nodes.
constexpr std::array<std::string_view, kFamilies> kFamilyTraits = {"family=rdma", "family=plain",
                                                                   "family=spot"};
constexpr std::size_t kRdmaFamily = 0, kSpotFamily = 2;

template <class Value>
using PerWorkClass = std::array<Value, kWorkClasses>;

struct ClassOptions {
  double load = 1.0;  // GPUs asked for in the mean over GPUs of the fleet, > 0
  double hours = 96;
  std::uint64_t seed = 1;
  PerWorkClass<double> parts = {50, 30, 20};  // of the GPUs asked for, in any unit, >= 0
  double reclaims_per_day = 0.5;              // of each spot node, >= 0
};

struct ClassPod {
  std::size_t work = 0;  // of kWorkClassNames
  std::size_t kind = 0;  // of ClassWorkload::kinds
  Millis at{0};
  Millis runs{0};
};

struct Reclaim {
  std::size_t node = 0;  // of ClassWorkload::nodes
  Millis at{0};
};

struct ClassWorkload {
  std::vector<NodeSpec> nodes;        // by name
  std::vector<std::size_t> families;  // per node, of kFamilyTraits
  std::vector<RequestShape> kinds;    // each once, without wishes
  std::vector<ClassPod> pods;         // by time
  std::size_t primed = 0;             // the first so many stand for what was running before
  std::vector<Reclaim> reclaims;      // by time
  Millis horizon{0};
};

// Same seed, same workload. Error: kInvalidArgument for parts that are all 0, or more than
// kMostArrivals pods.
Result<ClassWorkload> DrawClassWorkload(const ClassOptions& options);

// What of the work of a pod is kept when its node is reclaimed after it has run so long.
Millis KeptAfter(std::size_t work, Millis ran);

// GPUs that a pod takes: the whole ones, or the part of one.
double GpusTaken(const RequestShape& shape);

}  // namespace berth::replay
