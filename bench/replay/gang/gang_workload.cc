// SPDX-License-Identifier: Apache-2.0
#include "bench/replay/gang/gang_workload.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <tuple>
#include <utility>

#include "base/random.h"
#include "bench/replay/text.h"

namespace berth::replay {
namespace {

constexpr int kBlocks = 2, kRacksPerBlock = 4, kNodesPerRack = 8, kGpusPerNode = 8;
constexpr int kNodes = kBlocks * kRacksPerBlock * kNodesPerRack;
constexpr int kMostGpus = kNodes * kGpusPerNode / 2;  // of one job
constexpr std::int64_t kGib = std::int64_t{1} << 30;
constexpr std::int64_t kGpuMib = 80'000;

std::vector<NodeSpec> Fleet() {
  std::vector<NodeSpec> nodes;
  for (std::size_t i = 0; i < kNodes; ++i) {
    NodeSpec node;
    node.name = "node-" + Padded(i, kNodes);
    node.cpu_milli = 128'000;
    node.memory_bytes = 1024 * kGib;
    node.gpu_model = "H100";
    node.gpus.assign(kGpusPerNode, GpuSpec{"", kGpuMib, true});
    const std::size_t rack = i / kNodesPerRack;
    node.labels = {{"block", "b" + std::to_string(rack / kRacksPerBlock)},
                   {"rack", "r" + std::to_string(rack % kRacksPerBlock)}};
    nodes.push_back(std::move(node));
  }
  return nodes;
}

struct WorkerClass {
  int least, most;
  double jobs;
};
constexpr std::array<WorkerClass, 4> kWorkers = {
    {{1, 1, 427'584}, {2, 8, 30'535}, {9, 32, 7'169}, {33, 128, 1'432}}};

// Within the classes from `first` to before `last`.
int DrawWorkers(Random& random, std::size_t first, std::size_t last) {
  double all = 0;
  for (std::size_t c = first; c < last; ++c) all += kWorkers[c].jobs;
  double left = random.Unit() * all;
  std::size_t c = first;
  for (; c + 1 < last && left >= kWorkers[c].jobs; ++c) left -= kWorkers[c].jobs;
  const double low = kWorkers[c].least, high = kWorkers[c].most + 1;
  return std::clamp(static_cast<int>(low * std::pow(high / low, random.Unit())), kWorkers[c].least,
                    kWorkers[c].most);
}

int DrawGpus(Random& random, int workers) {
  constexpr std::array<int, 5> kGpus = {1, 1, 2, 4, 8};  // equal chances
  int gpus = kGpus[random.Below(kGpus.size())];
  while (gpus > 1 && gpus * workers > kMostGpus) gpus /= 2;
  return gpus;
}

RequestShape Asking(const GpuAsk& gpus, std::int64_t cpus) {
  RequestShape shape;
  shape.gpus = gpus;
  shape.cpu_milli = cpus * 1000;
  shape.memory_bytes = cpus * 4 * kGib;
  return shape;
}
RequestShape OfWhole(int gpus) { return Asking(WholeGpus{gpus}, gpus * 12); }

GangJob Published(Random& random) {
  const int workers = DrawWorkers(random, 0, kWorkers.size());
  GangJob job;
  job.roles = {{OfWhole(DrawGpus(random, workers)), workers}};
  job.domain.preferred = 1;
  return job;
}

GangJob Racks(Random& random) {
  GangJob job;
  // A gang has 33 GPUs in the mean, a single 3: a gang in twelve jobs.
  if (random.Below(12) != 0) {
    job.roles = {{OfWhole(DrawGpus(random, 1)), 1}};
    return job;
  }
  job.roles = {{OfWhole(kGpusPerNode), DrawWorkers(random, 1, 2)}};
  job.domain.required = 1;
  return job;
}

GangJob Roles(Random& random) {
  GangJob job;
  if (random.Below(6) != 0) {
    job.roles = {{OfWhole(DrawGpus(random, 1)), 1}};
    return job;
  }
  job.roles = {{Asking(WholeGpus{2}, 64), 1}, {OfWhole(3), DrawWorkers(random, 1, 3)}};
  job.domain.required = 0;
  return job;
}

GangJob Shares(Random& random) {
  GangJob job;
  const bool is_whole = random.Below(3) == 0;
  const int workers = DrawWorkers(random, random.Below(4) == 0 ? 1 : 0, is_whole ? 2 : 3);
  const int milli = random.Below(2) == 0 ? 500 : 300;
  job.roles = {
      {is_whole ? OfWhole(DrawGpus(random, workers)) : Asking(GpuShare{milli, 0}, 4), workers}};
  job.domain.preferred = 1;
  return job;
}

struct Named {
  std::string_view name;
  GangJob (*draw)(Random&);
};
constexpr std::array<Named, 4> kWorkloads = {
    {{"published", Published}, {"racks", Racks}, {"roles", Roles}, {"shares", Shares}}};

// The mean of many, of a seed of its own: the rate of arrivals does not depend on the draw.
double MeanDemandMilli(GangJob (*draw)(Random&)) {
  constexpr int kDraws = 20'000;
  Random random(7);
  double sum = 0;
  for (int i = 0; i < kDraws; ++i) sum += static_cast<double>(draw(random).gpu_milli());
  return sum / kDraws;
}

using Kind = std::tuple<std::vector<std::pair<RequestShape, int>>, bool>;
Kind KindOf(const GangJob& job) {
  Kind kind;
  for (const GangRole& role : job.roles) std::get<0>(kind).emplace_back(role.shape, role.count);
  std::get<1>(kind) = job.domain.required.has_value();
  return kind;
}

}  // namespace

int GangJob::members() const {
  int sum = 0;
  for (const GangRole& role : roles) sum += role.count;
  return sum;
}

std::int64_t GangJob::gpu_milli() const {
  std::int64_t sum = 0;
  for (const GangRole& role : roles) {
    sum += std::int64_t{role.count} * role.shape.gpu_count() * role.shape.milli_per_gpu();
  }
  return sum;
}

const TopologyLevels& GangLevels() {
  static const TopologyLevels levels = {{"block", {"block"}}, {"rack", {"rack"}}};
  return levels;
}

std::vector<std::string_view> GangWorkloadNames() {
  std::vector<std::string_view> names;
  for (const Named& workload : kWorkloads) names.push_back(workload.name);
  return names;
}

Result<GangWorkload> DrawGangWorkload(const std::string& name, const GangOptions& options) {
  const auto named = std::ranges::find(kWorkloads, name, &Named::name);
  if (named == kWorkloads.end()) {
    std::string known;
    for (const Named& workload : kWorkloads) known += " " + std::string(workload.name);
    return Invalid("workloads: want some of" + known + ", got \"" + name + "\"");
  }
  GangWorkload workload{name, Fleet(), {}, {}};
  const double horizon_ms = options.hours * 3'600'000, mean_ms = options.mean_lifetime_s * 1000;
  workload.horizon = Millis(static_cast<std::int64_t>(horizon_ms));
  const LifetimeLaw law(Lifetimes::kLogNormal, Millis(static_cast<std::int64_t>(mean_ms)));
  const double capacity = double{kNodes} * kGpusPerNode * kMilliPerGpu;
  const double per_ms = options.load * capacity / (MeanDemandMilli(named->draw) * mean_ms);
  Random random(options.seed);
  std::map<Kind, std::size_t> kinds;
  for (double at = 0;;) {
    at += -std::log(1.0 - random.Unit()) / per_ms;
    if (at >= horizon_ms) return workload;
    GangJob job = named->draw(random);
    job.at = Millis(static_cast<std::int64_t>(at));
    job.runs = law.Draw(random);
    job.kind = kinds.try_emplace(KindOf(job), kinds.size()).first->second;
    workload.jobs.push_back(std::move(job));
  }
}

}  // namespace berth::replay
