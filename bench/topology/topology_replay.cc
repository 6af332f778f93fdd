// SPDX-License-Identifier: Apache-2.0
#include "bench/topology/topology_replay.h"

#include <algorithm>
#include <bit>
#include <chrono>
#include <cmath>
#include <optional>
#include <queue>

#include "base/random.h"
#include "base/text.h"
#include "topology/links/gpu_links.h"

namespace berth::replay {
namespace {

struct Job {
  int size = 1;
  double arrives = 0, lasts = 0;
};

std::vector<Job> DrawJobs(const TopologyReplayOptions& options, int gpus, std::uint64_t seed) {
  double shares = 0, mean_size = 0;
  for (const auto& [size, share] : options.mix) {
    shares += share;
    mean_size += share * size;
  }
  mean_size /= shares;
  Random random(seed);
  const auto exponential = [&random] { return -std::log(1 - random.Unit()); };
  std::vector<Job> jobs(static_cast<std::size_t>(options.jobs));
  double now = 0;
  for (Job& job : jobs) {
    now += exponential() * mean_size / (options.load * gpus);  // a job lasts 1 on average
    job.arrives = now;
    job.lasts = exponential();
    double draw = random.Unit() * shares;
    for (const auto& [size, share] : options.mix) {
      job.size = size;
      if ((draw -= share) < 0) break;
    }
  }
  return jobs;
}

class Machine {
 public:
  Machine(const LinkMatrix& matrix, const WiringSets& sets, ChoicePolicy policy)
      : matrix_(matrix), sets_(sets), table_(*sets.table()) {
    score_.policy = policy;
  }

  Status Run(const std::vector<Job>& jobs) {
    const GpuMask all = AllGpus(matrix_.gpu_count());
    GpuMask free = all;
    std::vector<GpuMask> tenants;
    using JobEnd = std::pair<double, GpuMask>;
    std::priority_queue<JobEnd, std::vector<JobEnd>, std::greater<>> running;
    double now = 0;
    for (const Job& job : jobs) {
      now = std::max(now, job.arrives);
      while (!running.empty() && (running.top().first <= now || std::popcount(free) < job.size)) {
        now = std::max(now, running.top().first);
        free |= running.top().second;
        std::erase(tenants, running.top().second);
        running.pop();
      }
      BERTH_TRY(const GpuMask set, Choose({free, 0, job.size, tenants}));
      free &= ~set;
      tenants.push_back(set);
      running.emplace(now + job.lasts, set);
    }
    return {};
  }

  TopologyScore Score() const {
    TopologyScore score = score_;
    const auto jobs = static_cast<double>(std::max<std::int64_t>(score.jobs, 1));
    score.mean_ring_ratio /= jobs;
    score.share_below_half /= jobs;
    score.numa_span_ratio /= jobs;
    score.decision_us /= static_cast<double>(std::max<std::int64_t>(choices_, 1));
    return score;
  }

 private:
  Result<GpuMask> Choose(const ChoiceRequest& request) {
    const int size = request.size;
    const auto begin = std::chrono::steady_clock::now();
    const Choice choice = ChooseGpus(matrix_, sets_, score_.policy, request);
    const std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - begin;
    score_.decision_us += took.count();
    ++choices_;
    if (choice.gpus == 0) return Invalid(choice.reason);
    if (size < 2) return choice.gpus;
    const GpuMask set = sets_.ToTable(choice.gpus);
    const double ratio = double(table_.ring(set)) / table_.best_ring(size);
    ++score_.jobs;
    score_.mean_ring_ratio += ratio;
    score_.share_below_half += ratio < 0.5 ? 1 : 0;
    score_.numa_span_ratio += double(table_.wiring().LeastSpan(size)) / sets_.span(choice.gpus);
    return choice.gpus;
  }

  const LinkMatrix& matrix_;
  const WiringSets& sets_;
  const SetTable& table_;
  TopologyScore score_;  // sums while it runs
  std::int64_t choices_ = 0;
};

Status CheckMix(const TopologyReplayOptions& options, int gpus) {
  if (gpus > kMaxTableGpus) {
    return Invalid("want a machine of at most " + std::to_string(kMaxTableGpus) + " GPUs, got " +
                   std::to_string(gpus));
  }
  for (const auto& [size, share] : options.mix) {
    if (size <= gpus) continue;
    return Invalid("--mix: want sizes up to " + std::to_string(gpus) +
                   ", which the machine has, got " + std::to_string(size));
  }
  return {};
}

}  // namespace

Result<std::vector<TopologyScore>> ReplayTopology(const LinkMatrix& matrix, const Wiring& wiring,
                                                  const TopologyReplayOptions& options) {
  BERTH_TRY_STATUS(CheckMix(options, matrix.gpu_count()));
  SizeMix mix;
  mix.share = {};
  for (const auto& [size, share] : options.mix) mix.share[static_cast<std::size_t>(size)] += share;
  WiringTables tables(mix);
  const WiringSets sets = tables.SetsOf(wiring);
  std::vector<TopologyScore> scores;
  for (const ChoicePolicy policy : options.policies) {
    Machine machine(matrix, sets, policy);
    for (int i = 0; i < options.seeds; ++i) {
      const std::uint64_t seed = options.first_seed + static_cast<std::uint64_t>(i);
      BERTH_TRY_STATUS(machine.Run(DrawJobs(options, matrix.gpu_count(), seed)));
    }
    scores.push_back(machine.Score());
  }
  return scores;
}

Result<std::vector<std::pair<int, double>>> ParseSizeMix(std::string_view text) {
  std::vector<std::pair<int, double>> mix;
  while (!text.empty()) {
    const std::string_view piece = text.substr(0, text.find(','));
    const std::size_t colon = std::min(piece.find(':'), piece.size());
    const auto size = ParseInt(piece.substr(0, colon), 1, kMaxGpus);
    const auto share = ParseInt(piece.substr(std::min(colon + 1, piece.size())), 1, 1'000'000);
    if (!size || !share) {
      return Invalid("want SIZE:SHARE such as 2:25, got \"" + std::string(piece) + "\"");
    }
    mix.emplace_back(static_cast<int>(*size), static_cast<double>(*share));
    text.remove_prefix(std::min(piece.size() + 1, text.size()));
  }
  if (mix.empty()) return Invalid("want SIZE:SHARE,..., got nothing");
  return mix;
}

}  // namespace berth::replay
