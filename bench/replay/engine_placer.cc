// SPDX-License-Identifier: Apache-2.0
#include "bench/replay/engine_placer.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/check.h"

namespace berth::replay {
namespace {

std::vector<ClusterEvent> EventsOf(const std::vector<NodeSpec>& nodes) {
  std::vector<ClusterEvent> events;
  for (const NodeSpec& node : nodes) events.emplace_back(NodeUpserted{node});
  return events;
}

}  // namespace

EnginePlacer::EnginePlacer(Engine& engine, const std::vector<ClusterEvent>& cluster,
                           std::uint64_t seed, LearnedMix* mix, Serving serving)
    : engine_(engine),
      mix_(mix),
      nodes_to_score_(serving.nodes_to_score),
      classes_(std::move(serving.classes)),
      earmarks_(serving.earmarks),
      domains_(std::move(serving.levels)),
      ties_(*engine.profile(), seed) {
  if (serving.scheduler) scheduler_.emplace(0, seed, *serving.scheduler);
  BERTH_CHECK(state_.Apply(cluster).has_value());
  all_.resize(state_.Current()->size());
  std::iota(all_.begin(), all_.end(), NodeIndex{0});
}

EnginePlacer::EnginePlacer(Engine& engine, const std::vector<NodeSpec>& nodes, std::uint64_t seed,
                           LearnedMix* mix, Serving serving)
    : EnginePlacer(engine, EventsOf(nodes), seed, mix, std::move(serving)) {}

Result<std::optional<Placement>> EnginePlacer::Place(const PodRequest& pod) {
  Hear(pod);
  BERTH_TRY([[maybe_unused]] const std::optional<NodeIndex> node, Put(pod));
  return last_;
}

const PodRequest& EnginePlacer::WithWishes(const PodRequest& pod) {
  if (classes_.empty() || pod.classes.empty() || !pod.shape.wants_gpu()) return pod;
  const auto found = classes_.find(pod.classes.front());
  if (found == classes_.end() || pod.shape.nodes == found->second) return pod;
  with_wishes_ = pod;
  with_wishes_.shape.nodes = found->second;
  return with_wishes_;
}

void EnginePlacer::Hear(const PodRequest& pod) {
  if (mix_ == nullptr) return;
  mix_->Observe(WithWishes(pod).shape);
  engine_.Follow(state_.Current());
}

GroupPlaces EnginePlacer::GroupOf(const std::shared_ptr<const Snapshot>& snapshot,
                                  const PodRequest& pod) {
  if (domains_.levels().empty() || !NeedsGroup(pod)) return {};
  GroupPlaces group{domains_.Of(snapshot), {}};
  if (!pod.gang.empty()) group.members = MembersOn(*snapshot, pod, state_.GangNodes(pod.gang.id));
  return group;
}

Judgement EnginePlacer::Look(const PodRequest& asked, Instant now) {
  const PodRequest& pod = WithWishes(asked);
  const std::shared_ptr<const Snapshot> snapshot = state_.Current();
  Question question{.pod = pod, .candidates = all_, .group = GroupOf(snapshot, pod)};
  if (earmarks_ && line_.size() > 0) {
    question.reservations = ReservationsNow(now);
  }
  Judgement judged = Judge(engine_, snapshot, question);
  if (nodes_to_score_ != 0 && pod.shape.wants_gpu() && !waiting_.contains(pod.id.uid)) {
    Shortlist(engine_, snapshot, pod, nodes_to_score_, judged);
  }
  return judged;
}

NodeIndex EnginePlacer::Choose(const std::shared_ptr<const Snapshot>& snapshot,
                               const RequestShape& shape, const Judgement& judged) {
  if (scheduler_) {
    const std::vector<std::uint8_t> none(judged.fitting.size());
    return scheduler_->Choose(*snapshot, shape, judged.fitting, none);
  }
  const auto priorities = engine_.Prioritize(snapshot, shape, judged.fitting, judged.pull);
  const std::uint8_t highest = *std::ranges::max_element(priorities);
  std::vector<NodeIndex> best;
  for (std::size_t i = 0; i < priorities.size(); ++i) {
    if (priorities[i] == highest) best.push_back(judged.fitting[i]);
  }
  return best[ties_.Pick(best.size())];
}

Result<std::optional<NodeIndex>> EnginePlacer::Put(const PodRequest& asked, Instant now,
                                                   WallTime arrived, Duration ran) {
  const PodRequest& pod = WithWishes(asked);
  const std::shared_ptr<const Snapshot> snapshot = state_.Current();
  last_.reset();
  const Judgement judged = Look(pod, now);
  if (judged.fitting.empty()) {
    was_kept_away_ =
        std::ranges::find(judged.reasons, Reason::kKeptForWaiting) != judged.reasons.end();
    if (earmarks_) StandInLine(pod, now, arrived);
    if (nodes_to_score_ != 0) waiting_.insert(pod.id.uid);
    return std::nullopt;
  }
  const NodeIndex node = Choose(snapshot, pod.shape, judged);
  BERTH_TRY_STATUS(PutOn(pod, node));
  if (pod.expected_seconds > 0 || pod.deadline_seconds > 0 || pod.series != 0) {
    PodLife life{.started = WallTime(now.time_since_epoch()) - ran};  // as the watch would say it
    life.completes = true;
    const ClusterEvent bound = PodBound{.pod = pod, .placement = *last_, .life = life};
    BERTH_TRY_STATUS(state_.Apply({&bound, 1}));
  }
  waiting_.erase(pod.id.uid);
  line_.Leave(pod.id.uid);
  return node;
}

Status EnginePlacer::PutOn(const PodRequest& pod, NodeIndex node) {
  const std::shared_ptr<const Snapshot> snapshot = state_.Current();
  const auto placement = PlaceInGroup(engine_, snapshot, pod, GroupOf(snapshot, pod), node);
  BERTH_CHECK(placement.has_value());
  BERTH_TRY_STATUS(state_.Reserve(pod, *placement, Instant::max()));
  BERTH_TRY_STATUS(state_.Confirm(pod.id.uid));
  last_ = *placement;
  return {};
}

void EnginePlacer::StandInLine(const PodRequest& pod, Instant now, WallTime arrived) {
  line_.Stand({{std::make_shared<const PodRequest>(WithWishes(pod))}, arrived}, state_.Current(),
              now);
}

Status EnginePlacer::Take(std::span<const PodPlacement> pods) {
  for (const PodPlacement& one : pods) Remove(one.pod.id.uid);
  for (const PodPlacement& one : pods) {
    BERTH_TRY_STATUS(state_.Reserve(one.pod, one.placement, Instant::max()));
    BERTH_TRY_STATUS(state_.Confirm(one.pod.id.uid));
    line_.Leave(one.pod.id.uid);
    last_ = one.placement;
  }
  return {};
}

const Reservations* EnginePlacer::ReservationsNow(Instant now) {
  if (!earmarks_) return nullptr;
  line_.Look(state_.Current(), *earmarks_, {now, WallTime(now.time_since_epoch())});
  reservations_ = Reservations(line_.earmarks());
  return &reservations_;
}

void EnginePlacer::Remove(const std::string& uid) {
  const ClusterEvent gone = PodGone{uid};
  BERTH_CHECK(state_.Apply({&gone, 1}).has_value());
  waiting_.erase(uid);
}

}  // namespace berth::replay
