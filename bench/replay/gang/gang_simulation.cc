// SPDX-License-Identifier: Apache-2.0
#include "bench/replay/gang/gang_simulation.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <queue>
#include <string>
#include <utility>

#include "base/check.h"
#include "bench/replay/latency.h"
#include "bench/replay/time/event_trace.h"
#include "cluster/state/cluster_state.h"
#include "cluster/state/snapshot.h"

namespace berth::replay {
namespace {

constexpr double kMilliMsPerGpuHour = 1000.0 * 3'600'000.0;
constexpr Millis kNever = Millis::max();

std::size_t SizeOf(int members) {
  if (members == 1) return 0;
  if (members <= 8) return 1;
  return members <= 32 ? 2 : 3;
}

class GangSimulation {
 public:
  GangSimulation(const GangWorkload& workload, GangRule& rule)
      : workload_(workload), rule_(rule), domains_(GangLevels()) {
    std::vector<ClusterEvent> events;
    for (const NodeSpec& node : workload.nodes) events.emplace_back(NodeUpserted{node});
    BERTH_CHECK(state_.Apply(events).has_value());
  }

  Result<GangResult> Run() {
    while (true) {
      const Millis moment = NextMoment();
      if (moment >= workload_.horizon) break;
      AdvanceTo(moment);
      BERTH_TRY_STATUS(EndJobs());
      BERTH_TRY_STATUS(EndHolds());
      AddJobs();
      BERTH_TRY_STATUS(TryJobs());
    }
    AdvanceTo(workload_.horizon);
    for (const Waiting& waiting : waiting_) CountWait(*waiting.job, workload_.horizon);
    result_.served_gpu_hours = static_cast<double>(served_) / kMilliMsPerGpuHour;
    result_.held_gpu_hours = static_cast<double>(held_) / kMilliMsPerGpuHour;
    Summarize(result_);
    result_.trace = trace_.value();
    return std::move(result_);
  }

 private:
  struct Waiting {
    const GangJob* job = nullptr;
    std::vector<PodRequest> pods;
    std::vector<Placement> placements;  // of those that have a node
    std::vector<char> has_node;
    Millis hold_ends = kNever, not_before{0}, back_off{0};
    std::uint64_t tried_at = std::numeric_limits<std::uint64_t>::max();  // departures_ then
    int attempts = 0;

    [[nodiscard]] std::int64_t held_milli() const {
      std::int64_t sum = 0;
      for (std::size_t i = 0; i < pods.size(); ++i) {
        if (has_node[i] != 0) sum += MilliOf(pods[i].shape);
      }
      return sum;
    }
  };
  static std::int64_t MilliOf(const RequestShape& shape) {
    return std::int64_t{shape.gpu_count()} * shape.milli_per_gpu();
  }
  struct Running {
    Millis ends;
    std::size_t number;
    std::vector<std::string> uids;
    bool operator>(const Running& other) const {
      return std::pair(ends, number) > std::pair(other.ends, other.number);
    }
  };

  [[nodiscard]] Millis NextMoment() const {
    Millis next = kNever;
    if (next_job_ < workload_.jobs.size()) next = workload_.jobs[next_job_].at;
    if (!running_.empty()) next = std::min(next, running_.top().ends);
    for (const Waiting& waiting : waiting_) {
      next = std::min(next, waiting.hold_ends);
      if (waiting.not_before > now_) next = std::min(next, waiting.not_before);
    }
    return next;
  }

  void AdvanceTo(Millis moment) {
    for (const Waiting& waiting : waiting_) {
      held_ += waiting.held_milli() * (moment - now_).count();
    }
    now_ = moment;
  }

  Status Remove(const std::vector<std::string>& uids) {
    std::vector<ClusterEvent> events;
    for (const std::string& uid : uids) events.emplace_back(PodGone{uid});
    ++departures_;
    return state_.Apply(events);
  }

  Status EndJobs() {
    while (!running_.empty() && running_.top().ends <= now_) {
      trace_.Add('e', Instant(now_), running_.top().number, 0);
      BERTH_TRY_STATUS(Remove(running_.top().uids));
      running_.pop();
    }
    return {};
  }

  Status EndHolds() {
    for (Waiting& waiting : waiting_) {
      if (waiting.hold_ends > now_) continue;
      std::vector<std::string> uids;
      for (std::size_t i = 0; i < waiting.pods.size(); ++i) {
        if (waiting.has_node[i] != 0) uids.push_back(waiting.pods[i].id.uid);
      }
      std::ranges::fill(waiting.has_node, 0);
      BERTH_TRY_STATUS(Remove(uids));
      waiting.hold_ends = kNever;
      waiting.not_before = now_ + waiting.back_off;
    }
    return {};
  }

  void AddJobs() {
    for (; next_job_ < workload_.jobs.size(); ++next_job_) {
      const GangJob& job = workload_.jobs[next_job_];
      if (job.at > now_) return;
      rule_.Hear(job, state_.Current());
      Waiting waiting;
      waiting.job = &job;
      const std::string name = "job-" + std::to_string(next_job_);
      for (const GangRole& role : job.roles) {
        for (int i = 0; i < role.count; ++i) {
          PodRequest pod;
          pod.id.name = name + "-" + std::to_string(waiting.pods.size());
          pod.id.namespace_name = "replay";
          pod.id.uid = pod.id.name;
          pod.shape = role.shape;
          if (job.members() > 1) pod.gang.id = {"", "replay", name};
          pod.gang.total = job.members();
          pod.domain = job.domain;
          waiting.pods.push_back(std::move(pod));
        }
      }
      waiting.placements.resize(waiting.pods.size());
      waiting.has_node.assign(waiting.pods.size(), 0);
      waiting_.push_back(std::move(waiting));
    }
  }

  Status TryJobs() {
    for (std::size_t i = 0; i < waiting_.size();) {
      BERTH_TRY(const bool started, Try(waiting_[i]));
      if (started) {
        waiting_.erase(waiting_.begin() + static_cast<std::ptrdiff_t>(i));
      } else {
        ++i;
      }
    }
    return {};
  }

  // Whether it started.
  Result<bool> Try(Waiting& waiting) {
    const GangJob& job = *waiting.job;
    const bool holds = waiting.hold_ends != kNever;
    if (waiting.not_before > now_ || waiting.tried_at == departures_) return false;
    const auto failed = failed_at_.find(job.kind);
    if (!holds && failed != failed_at_.end() && failed->second == departures_) return false;
    waiting.tried_at = departures_;
    ++result_.attempts;
    const auto snapshot = state_.Current();
    GangAttempt attempt = rule_.Try(snapshot, *domains_.Of(snapshot), job, waiting.pods,
                                    waiting.has_node, waiting.attempts);
    const auto had = static_cast<std::size_t>(std::ranges::count(waiting.has_node, 1));
    const bool complete = had + attempt.places.size() == waiting.pods.size();
    if (!complete && attempt.hold == Millis(0) && !holds) {
      ++waiting.attempts;
      waiting.not_before = now_ + attempt.back_off;
      if (attempt.back_off == Millis(0)) failed_at_[job.kind] = departures_;
      return false;
    }
    for (GangAttempt::Place& place : attempt.places) {
      BERTH_TRY_STATUS(Take(waiting, place));
    }
    if (complete) {
      Start(waiting);
    } else if (!holds) {
      ++waiting.attempts;
      waiting.hold_ends = now_ + attempt.hold;
      waiting.back_off = attempt.back_off;
    }
    return complete;
  }

  Status Take(Waiting& waiting, GangAttempt::Place& place) {
    const PodRequest& pod = waiting.pods[place.member];
    BERTH_TRY_STATUS(state_.Reserve(pod, place.placement, Instant::max()));
    BERTH_TRY_STATUS(state_.Confirm(pod.id.uid));
    waiting.has_node[place.member] = 1;
    trace_.Add('p', Instant(now_), place.member,
               state_.Current()->names().Find(place.placement.node));
    waiting.placements[place.member] = std::move(place.placement);
    return {};
  }

  void Start(const Waiting& waiting) {
    const GangJob& job = *waiting.job;
    trace_.Add('s', Instant(now_ + job.runs), started_, job.kind);
    Running running{now_ + job.runs, started_++, {}};
    for (const PodRequest& pod : waiting.pods) running.uids.push_back(pod.id.uid);
    running_.push(std::move(running));
    CountWait(job, now_);
    CountPairs(waiting);
    ++result_.sizes[SizeOf(job.members())].placed;
    if (job.members() > 1) ++result_.sizes.back().placed;
    const Millis until = std::min(now_ + job.runs, workload_.horizon);
    served_ += job.gpu_milli() * (until - now_).count();
  }

  void CountWait(const GangJob& job, Millis until) {
    const double wait_s = static_cast<double>((until - job.at).count()) / 1000;
    result_.waits_s[SizeOf(job.members())].push_back(wait_s);
    if (job.members() > 1) result_.waits_s.back().push_back(wait_s);
  }

  void CountPairs(const Waiting& waiting) {
    const auto snapshot = state_.Current();
    const auto tree = domains_.Of(snapshot);
    std::map<TopologyDomain, std::int64_t> in_rack;
    for (const Placement& placement : waiting.placements) {
      const NodeIndex node = snapshot->names().Find(placement.node);
      ++in_rack[tree->DomainOf(node, GangLevels().size() - 1)];
    }
    const auto members = static_cast<std::int64_t>(waiting.pods.size());
    const std::int64_t pairs = members * (members - 1) / 2;
    std::int64_t within = 0;
    for (const auto& [rack, pods] : in_rack) within += pods * (pods - 1) / 2;
    result_.pairs += pairs;
    result_.cross_pairs += pairs - within;
  }

  const GangWorkload& workload_;
  GangRule& rule_;
  NodeDomains domains_;
  ClusterState state_;
  Millis now_{0};
  std::size_t next_job_ = 0, started_ = 0;
  std::vector<Waiting> waiting_;  // in the order of arrival
  std::priority_queue<Running, std::vector<Running>, std::greater<>> running_;
  std::uint64_t departures_ = 0;
  std::map<std::size_t, std::uint64_t> failed_at_;  // by kind of job
  std::int64_t served_ = 0, held_ = 0;              // GPU compute in thousandths * ms
  EventTrace trace_;
  GangResult result_;
};

}  // namespace

Result<GangResult> SimulateGangs(const GangWorkload& workload, GangRule& rule) {
  return GangSimulation(workload, rule).Run();
}

void Add(const GangResult& run, GangResult& sum) {
  for (std::size_t s = 0; s < kGangSizes; ++s) {
    sum.sizes[s].placed += run.sizes[s].placed;
    sum.waits_s[s].insert(sum.waits_s[s].end(), run.waits_s[s].begin(), run.waits_s[s].end());
  }
  sum.served_gpu_hours += run.served_gpu_hours;
  sum.held_gpu_hours += run.held_gpu_hours;
  sum.pairs += run.pairs;
  sum.cross_pairs += run.cross_pairs;
  sum.attempts += run.attempts;
}

void Summarize(GangResult& result) {
  for (std::size_t s = 0; s < kGangSizes; ++s) {
    const LatencySummary waits = Summarize(result.waits_s[s]);
    GangSizeResult& size = result.sizes[s];
    size.arrived = static_cast<std::int64_t>(result.waits_s[s].size());
    size.wait_mean_s = waits.mean;
    size.wait_p50_s = waits.p50;
    size.wait_p99_s = waits.p99;
  }
}

}  // namespace berth::replay
