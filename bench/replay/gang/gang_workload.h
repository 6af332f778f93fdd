// SPDX-License-Identifier: Apache-2.0
//
// Streams of jobs, most of them gangs, on a fleet of blocks and racks; drawn from a seed.
//
// How many workers a job has follows the published shares of Alibaba's cluster-trace-v2026-spot-gpu
// (466,867 jobs; Duan et al., ASPLOS'26; summary of sultanul-ovi, MIT): one worker 91.6 %, 2 to 8
// 30,535 jobs, 9 to 32 7,169, 33 to 128 1,432; within a class the logarithm is uniform. What a
// worker asks for, how long it runs and how busy the fleet is are assumptions, all said here:
// 1, 2, 4 or 8 GPUs (40, 20, 20, 20 %; fewer where the job would be larger than half of the fleet),
// log-normal running times, Poisson arrivals. Workloads differ from this in what they are named
// after.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "bench/replay/time/stream.h"
#include "cluster/node/node.h"
#include "cluster/values/pod_request.h"
#include "topology/domains/domain_tree.h"

namespace berth::replay {

// So many members of one shape.
struct GangRole {
  RequestShape shape;
  int count = 1;
};

struct GangJob {
  std::vector<GangRole> roles;
  DomainAsk domain;
  Millis at{0};
  Millis runs{0};
  std::size_t kind = 0;  // jobs of one kind ask for the same
  [[nodiscard]] int members() const;
  [[nodiscard]] std::int64_t gpu_milli() const;
};

struct GangWorkload {
  std::string name;
  std::vector<NodeSpec> nodes;
  std::vector<GangJob> jobs;  // by time
  Millis horizon{0};
};

// block, rack.
const TopologyLevels& GangLevels();

struct GangOptions {
  double load = 0.9;  // mean GPU demand / GPU capacity, > 0
  double hours = 24;
  double mean_lifetime_s = 3600;
  std::uint64_t seed = 1;
};

//   published   the shares above; a gang would like to be in one rack
//   racks       half of the demand gangs of 2 to 8 workers with 8 GPUs that must be in one rack
//   roles       gangs with a head (2 GPUs, much CPU) and workers with 3 GPUs, in one block
//   shares      gangs of workers with half or three tenths of a GPU beside whole GPUs
std::vector<std::string_view> GangWorkloadNames();
// Same seed, same workload. Error: kInvalidArgument naming those there are.
Result<GangWorkload> DrawGangWorkload(const std::string& name, const GangOptions& options);

}  // namespace berth::replay
