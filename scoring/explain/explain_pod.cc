// SPDX-License-Identifier: Apache-2.0
#include "scoring/explain/explain_pod.h"

#include <algorithm>
#include <functional>
#include <string_view>
#include <utility>

#include "base/text.h"
#include "cluster/node/mig_use.h"
#include "scoring/admission.h"
#include "scoring/devices/device_picker.h"
#include "scoring/explain/claim_words.h"
#include "scoring/explain/other_limits.h"

namespace berth {
namespace {

constexpr std::string_view kSchedulers = "kube-scheduler alone chooses its node";
constexpr std::size_t kToldCounts = 2;

std::vector<ReasonCount> CountReasons(std::span<const Reason> reasons) {
  std::array<std::int64_t, static_cast<std::size_t>(Reason::kCount)> nodes{};
  for (const Reason reason : reasons) ++nodes[static_cast<std::size_t>(reason)];
  std::vector<ReasonCount> counts;
  for (std::size_t i = 1; i < nodes.size(); ++i) {
    if (nodes[i] > 0) counts.push_back({static_cast<Reason>(i), nodes[i]});
  }
  std::ranges::stable_sort(counts, std::greater<>(), &ReasonCount::nodes);
  return counts;
}

SchedulerCounts CountForScheduler(const Snapshot& snapshot, const PodRequest& pod) {
  SchedulerCounts counts;
  for (NodeIndex i = 0; i < snapshot.size(); ++i) {
    const Node& node = snapshot.node(i);
    const Reason admits = Admits(node.spec(), pod);
    const std::array<bool, std::size(SchedulerCounts::kChecks)> refuses = {
        !node.spec().ready,
        admits == Reason::kTaintNotTolerated,
        pod.constraints != nullptr && pod.constraints->selects() &&
            !SelectsNode(*pod.constraints, node.spec().name, node.spec().labels),
        pod.shape.cpu_milli > std::max<std::int64_t>(node.free_cpu_milli(), 0),
        pod.shape.memory_bytes > std::max<std::int64_t>(node.free_memory_bytes(), 0),
        pod.shape.ephemeral_bytes > std::max<std::int64_t>(node.free_ephemeral_bytes(), 0)};
    for (std::size_t c = 0; c < refuses.size(); ++c) counts.by_check[c] += refuses[c] ? 1 : 0;
    counts.any += std::ranges::count(refuses, true) > 0 ? 1 : 0;
  }
  return counts;
}

class Explaining {
 public:
  Explaining(Engine& engine, const PodToExplain& ask)
      : engine_(engine), ask_(ask), pod_(ask.pod), snapshot_(ask.snapshot) {
    told_.pod = pod_.id;
    told_.classes = pod_.classes;
    told_.shape = pod_.shape;
    const bool by_agent = pod_.shape.is_share() && !pod_.shape.share_agent.empty();
    for (NodeIndex node = 0; by_agent && node < snapshot_->size() && !told_.in_units; ++node) {
      const NodeSpec& spec = snapshot_->node(node).spec();
      told_.in_units = spec.unit_mib() > 1 && spec.share_agent == pod_.shape.share_agent;
    }
    told_.priority = pod_.priority;
    told_.refusal = pod_.refusal;
    told_.nodes = snapshot_->size();
  }

  PodExplanation Explain() {
    FindPod();
    const std::vector<NodeIndex> nodes = UpTo<NodeIndex>(snapshot_->size());
    const Question question{.pod = pod_,
                            .candidates = nodes,
                            .group = ask_.group,
                            .behind_scheduler = ask_.behind_scheduler,
                            .guard = ask_.guard};
    const std::vector<Reason> reasons = ReasonsAnew(*snapshot_, question);
    std::vector<NodeIndex> fitting;
    int most_by_claim = 0;
    for (std::size_t i = 0; i < reasons.size(); ++i) {
      if (reasons[i] != Reason::kFits) continue;
      const Node& node = snapshot_->node(nodes[i]);
      if (GetsClaimOn(node, pod_)) {
        const int gpus = GpusByClaim(node);
        if (told_.by_claim++ == 0 || gpus > most_by_claim) told_.best_by_claim = node.spec().name;
        most_by_claim = std::max(most_by_claim, gpus);
        continue;
      }
      const std::string lack = is_schedulers_ ? "" : LackOf(node, pod_);
      if (!lack.empty()) {
        ++told_.lacking[lack];
      } else {
        fitting.push_back(nodes[i]);
      }
    }
    told_.fitting = fitting.size();
    FindKept(fitting);
    FindReserved();
    const std::vector<Reason> first = InOrder(question, reasons);
    told_.counts = CountReasons(first);
    told_.closed = CountClosed(*snapshot_, question, first);
    told_.open_counts = CountReasons(OfOpenNodes(question, first));
    told_.scheduler = CountForScheduler(*snapshot_, pod_);
    told_.models = SummarizeModels(*snapshot_);
    if (pod_.gang.empty() && pod_.refusal.empty() && !is_schedulers_) {
      const std::vector<int> pull = PullOn(*snapshot_, pod_, ask_.group, fitting);
      told_.best =
          ReportScores(engine_, ask_.snapshot, snapshot_, pod_, fitting, kToldNodes, on_, pull);
    }
    if (!told_.placed && fitting.empty() && told_.by_claim == 0 && pod_.refusal.empty()) {
      LookForRoom(question, reasons);
    }
    told_.line = told_.placed ? LineOfPlaced() : LineOfWaiting();
    told_.sentence = LineOf(told_.line, RoomBehind(pod_.id.full_name()));
    told_.advice = AdviceFor(fitting);
    return std::move(told_);
  }

 private:
  // Where the pod is; from then on the snapshot is without it.
  void FindPod() {
    for (NodeIndex i = 0; i < snapshot_->size() && on_ == kNoNode; ++i) {
      const PodRecord* const record = snapshot_->node(i).FindPod(pod_.id.uid);
      if (record == nullptr) continue;
      told_.placed = *record;
      on_ = i;
    }
    if (on_ == kNoNode) return;
    const auto leaves = [this](const PodRecord& pod) { return pod.pod.id.uid == pod_.id.uid; };
    snapshot_ = std::make_shared<const Snapshot>(
        snapshot_->With(on_, std::make_shared<const Node>(snapshot_->node(on_).Without(leaves))));
  }

  void FindKept(std::span<const NodeIndex> fitting) {
    if (ask_.reservations == nullptr || told_.placed) return;
    for (const NodeIndex node : fitting) {
      const EarmarkOwner* const owner = ask_.reservations->KeptFor(pod_, *snapshot_, node);
      if (owner == nullptr) continue;
      ++told_.kept;
      const Earmarks::OnNode* const on = ask_.reservations->earmarks().On(*snapshot_, node);
      const bool is_later = on != nullptr && owner == &on->awaiting && on->from &&
                            (!delays_at_ || *on->from > *delays_at_);
      if (is_later) delays_at_ = on->from;
      if (kept_for_.empty() || is_later) {
        kept_for_ = owner->gang.empty() ? owner->pod.full_name() : owner->gang.full_name();
      }
    }
  }

  void FindReserved() {
    if (ask_.reservations == nullptr || told_.placed) return;
    told_.reservation = ReservationOf(ask_.reservations->earmarks(), pod_);
  }

  [[nodiscard]] std::vector<Reason> InOrder(const Question& question,
                                            std::span<const Reason> reasons) const {
    std::vector<Reason> first;
    for (std::size_t i = 0; i < reasons.size(); ++i) {
      first.push_back(FirstInOrder(snapshot_->node(question.candidates[i]), pod_, reasons[i]));
    }
    return first;
  }

  [[nodiscard]] std::vector<Reason> OfOpenNodes(const Question& question,
                                                std::span<const Reason> reasons) const {
    std::vector<Reason> open;
    for (std::size_t i = 0; i < reasons.size(); ++i) {
      const Node& node = snapshot_->node(question.candidates[i]);
      if (ClosedBy(node, pod_) == Reason::kFits) open.push_back(reasons[i]);
    }
    return open;
  }

  void LookForRoom(const Question& question, std::span<const Reason> reasons) {
    Question with_kept{question};
    with_kept.reservations = ask_.reservations;
    for (NearNode& near : NearNodes(*snapshot_, with_kept, reasons, kToldNodes)) {
      NodeReport facts = ReportOf(snapshot_->node(near.node));
      told_.nearest.push_back({std::move(near), std::move(facts)});
    }
    const bool has_way = !told_.nearest.empty() && !told_.nearest[0].near.ways.empty();
    if (told_.nodes > 1 && !has_way) {
      told_.never = NeverInPool(*snapshot_, question);
    }
    told_.preemption = ask_.said.room.empty()
                           ? OutlookOf({*snapshot_, pod_, ask_.group, ask_.limits,
                                        ask_.said.nominated, ask_.reservations})
                           : RoomMade();
    if (!told_.preemption->helps) {
      told_.rollout = FindRolloutBlock(*snapshot_, pod_, ask_.said.replica_set);
    }
    // A group that starts whole has room made for it as a whole (gang_checked.h).
    if (!pod_.gang.empty()) told_.preemption->text.insert(0, "for this pod alone: ");
    const auto alone = std::make_shared<const PodRequest>(pod_);
    told_.recuts = AdviseNodes(*snapshot_, std::span(&alone, 1));
  }

  [[nodiscard]] PreemptionOutlook RoomMade() const {
    const PodSaid& said = ask_.said;
    const auto count = static_cast<std::int64_t>(said.evicted.size());
    PreemptionOutlook outlook{.helps = true, .under_way = true};
    outlook.node = said.room;
    outlook.victims = said.evicted;
    outlook.text =
        "under way: Berth evicted for it on " + said.room + ": " + Join(said.evicted, " ");
    outlook.brief = "Berth evicted " + CountText(count, "pod") + " on " +
                    ShortName(said.room, 2 * kShortName) + " for it";
    return outlook;
  }

  [[nodiscard]] std::vector<LinePart> LineOfWaiting() const {
    if (!pod_.refusal.empty()) return {{"the pod must be changed: " + pod_.refusal}};
    if (told_.nodes == 0) return {{"no node is known"}};
    if (is_schedulers_) return {{OfSchedulerAlone(pod_)}};
    const auto nodes = static_cast<std::int64_t>(told_.nodes);
    if (AwaitsReserved(told_)) {
      return {{TextOf(*told_.reservation)},
              {ProvisoOf(*told_.reservation), 1, ", "},
              {CostOf(*told_.reservation), 2}};
    }
    if (IsPassedOver(told_)) {
      const auto fits = static_cast<std::int64_t>(told_.fitting);
      if (delays_at_) return {{"passed over: it would delay " + kept_for_}, {ShortEnough(), 1}};
      return {{"waits its turn: " + kept_for_ + " has waited longer"},
              {"the room on " + CountText(fits, "node") + " is kept for it", 1}};
    }
    if (told_.fitting > 0) {
      std::vector<LinePart> line = {
          {"fits " + std::to_string(told_.fitting) + " of " + CountText(nodes, "node") + " now"}};
      if (!told_.best.empty()) line.push_back(BestPart());
      AddByClaim(1, line);
      const std::vector<std::string> beside = NotJudgedOf(pod_);
      if (!beside.empty()) line.push_back({"Berth does not judge: " + Join(beside, ", "), 1});
      return line;
    }
    if (told_.by_claim > 0) {
      std::vector<LinePart> line = {{"fits no node that Berth judges"}};
      AddByClaim(0, line);
      line.push_back(BestPart());
      return line;
    }
    if (told_.lacking.empty()) return LineOfNowhere();
    std::int64_t lacking = 0;
    for (const auto& [what, count] : told_.lacking) lacking += count;
    std::vector<LinePart> line = {{"has the GPUs, CPU and memory that it needs on " +
                                   CountText(lacking, "node") + ", but " +
                                   TextOfLacks(told_.lacking, *ask_.snapshot)}};
    const bool has_way = !told_.nearest.empty() && !told_.nearest[0].near.ways.empty();
    if (!has_way || pod_.gang.minimum.value_or(1) > 1) return line;
    std::vector<LinePart> with_nearest = line;
    AddNearest(1, with_nearest);
    // No node is named where its cure has no place in the line.
    const std::string told = LineOf(with_nearest, RoomBehind(pod_.id.full_name()));
    return told.find("; fits ") == std::string::npos ? line : with_nearest;
  }

  // With what it may go until what it would delay begins; "": with nothing.
  [[nodiscard]] std::string ShortEnough() const {
    const PodEnds& ends = ask_.reservations->earmarks().ends();
    const bool is_believed = ends.Believes(pod_);
    const bool completes = pod_.series != 0;  // others' templates may have no deadline
    if (!completes && !is_believed) return "";
    Duration left = *delays_at_ - ends.now() - PodEnds::kStart;
    if (completes) left -= std::chrono::seconds(pod_.grace_seconds);
    const auto in_seconds = std::chrono::floor<std::chrono::seconds>(left);
    const auto in_minutes = std::chrono::floor<std::chrono::minutes>(left);
    if (in_seconds.count() <= 0) return "";
    const std::string word = "berth.dev/expected-duration", deadline = "activeDeadlineSeconds";
    const std::string most =
        in_minutes < std::chrono::minutes(10) ? std::to_string(in_seconds.count()) + " s"
        : in_minutes < kHoursFrom             ? AboutText(in_minutes)
                                  : AboutText(std::chrono::floor<std::chrono::hours>(in_minutes));
    return "it may go with " +
           (!completes    ? word
            : is_believed ? deadline + " or " + word
                          : deadline) +
           " of at most " + most;
  }

  [[nodiscard]] LinePart BestPart() const {
    const std::string& best =
        told_.best.empty() ? told_.best_by_claim : snapshot_->node(told_.best[0].node).spec().name;
    const bool is_former =
        !told_.best.empty() && std::ranges::binary_search(ask_.group.former, told_.best[0].node);
    const std::string why = is_former ? ", where its predecessor ran" : "";
    return {"best is " + best + why, 1, ", ", "best is " + ShortName(best, kShortName)};
  }

  // The cure first: what will happen by itself, or has to happen on the nearest node.
  [[nodiscard]] std::vector<LinePart> LineOfNowhere() const {
    std::vector<LinePart> line = {{told_.nodes == 1
                                       ? "does not fit the only node"
                                       : "fits none of " + std::to_string(told_.nodes) + " nodes"}};
    // What helps one pod does not help its group.
    const bool starts_alone = pod_.gang.minimum.value_or(1) <= 1;
    const bool is_preempting = starts_alone && told_.preemption && told_.preemption->helps;
    if (is_preempting) line.push_back({told_.preemption->brief, 0, "; "});
    if (told_.rollout) AddRollout(*told_.rollout, line);
    const bool has_nearest = starts_alone && !told_.nearest.empty();
    const bool is_never = starts_alone && !told_.never.empty();
    if (is_never) line.push_back({told_.never});
    if (has_nearest && !is_never) AddNearest(is_preempting || told_.rollout ? 1 : 0, line);
    if (!told_.recuts.empty()) {
      line.push_back({"idle node " + told_.recuts[0].node + " would take it if repartitioned to " +
                          told_.recuts[0].advice.config,
                      1});
    }
    std::vector<std::string> reasons = CountTexts(told_);
    if (is_never) {  // with the counts of the nodes that are open
      reasons = {told_.never == SelectedNowhere(pod_) ? std::string() : told_.closed.text};
    } else if (has_nearest && reasons.size() == 1) {
      return line;  // it is that of the nearest
    }
    for (std::size_t i = 0; i < std::min(kToldCounts, reasons.size()); ++i) {
      const int rank = static_cast<int>(i) + (has_nearest || is_preempting ? 2 : 0);
      line.push_back({reasons[i], rank, i == 0 ? "; " : ", "});
    }
    return line;
  }

  static void AddRollout(const RolloutBlock& rollout, std::vector<LinePart>& line) {
    const auto keeps = [](const std::string& pod, const std::string& node) {
      return "its Deployment keeps " + pod + " on " + node + " until it runs";
    };
    line.push_back({keeps(rollout.old_pod, rollout.node), 0, "; ",
                    keeps("an old pod", ShortName(rollout.node, kShortName))});
    line.push_back({"set maxSurge: 0", 0, ": "});
    line.push_back({"maxUnavailable: 1", 1, ", "});
  }

  // rank: of the cure.
  void AddNearest(int rank, std::vector<LinePart>& line) const {
    constexpr std::size_t kToldWays = 2, kShortLack = 60;
    const NearNode& near = told_.nearest[0].near;
    const std::string& name = snapshot_->node(near.node).spec().name;
    line.push_back({"nearest is " + name, rank, "; ", "nearest is " + ShortName(name, kShortName)});
    line.push_back(
        {near.lack, rank + (told_.recuts.empty() ? 1 : 2), ": ", Shortened(near.lack, kShortLack)});
    for (std::size_t i = 0; i < std::min(kToldWays, near.ways.size()); ++i) {
      const WayIn& way = near.ways[i];
      const auto pods = static_cast<std::int64_t>(way.pods.size());
      const char* const end = pods == 1 ? " of its pods ends" : " of its pods end";
      const bool is_of_node = way.code == "node_ready" || way.code == "gpus_well";
      const std::string shorter = way.code == "node_and_pods" ? "once the node has changed and " +
                                                                    std::to_string(pods) + end
                                  : pods > 0   ? "when " + std::to_string(pods) + end
                                  : is_of_node ? "once the node has changed"
                                               : "if the pod is changed";
      line.push_back(i == 0 ? LinePart{"fits " + way.text, rank, "; ", "fits " + shorter}
                            : LinePart{"or " + way.text, rank + 4, ", "});
    }
  }

  [[nodiscard]] std::string AdviceFor(std::span<const NodeIndex> fitting) const {
    const auto is_plan = [this](NodeIndex node) {
      return IsPlanOnly(snapshot_->node(node).spec(), pod_.shape);
    };
    std::string where;
    if (told_.placed) {
      if (is_plan(on_)) where = snapshot_->node(on_).spec().name;
    } else if (const auto plans = std::ranges::count_if(fitting, is_plan); plans > 0) {
      where = std::to_string(plans) + " of " + CountText(std::ssize(fitting), "fitting node");
    }
    if (where.empty()) return "";
    return "install berth-node to make the choice of GPUs certain: the device plugin makes it on " +
           where;
  }

  void AddByClaim(int rank, std::vector<LinePart>& line) const {
    if (told_.by_claim == 0) return;
    const auto nodes = static_cast<std::int64_t>(told_.by_claim);
    const std::string decides = "kube-scheduler decides by DRA";
    const std::string where =
        " on " + CountText(nodes, "node") + " without " + pod_.shape.gpu_resource;
    line.push_back({decides + " (DeviceClass " + pod_.device_class + ")" + where, rank, "; ",
                    decides + " on " + CountText(nodes, "node")});
  }

  static std::string DevicesText(const Placement& placement) {
    const auto replicas =
        std::max<std::ptrdiff_t>(placement.places, std::ssize(placement.places_on));
    std::string text = ListDevices(DevicesOf(placement), replicas);
    return text.empty() ? AskText(NoGpu{}) : text;
  }

  // How that differs from the plan.
  [[nodiscard]] std::string GivenText(const PodRecord& record) const {
    if (record.on_other_gpus()) {
      Placement plan;
      SetDevices(*record.planned, plan);
      return std::string("(planned: ") + DevicesText(plan) + "; " +
             (record.evidence() == Evidence::kKubelet ? "the kubelet" : "the device plugin") +
             (plan.mig.empty() ? " gave other GPUs)" : " gave other MIG devices)");
    }
    if (on_ == kNoNode) return "";
    const Node& node = snapshot_->node(on_);
    for (const DeviceGrant& grant : record.placement.grants) {
      if (node.spec().FindGpu(grant.gpu) == nullptr || node.HasOf(record, grant)) continue;
      return "(planned; another pod was given " + TextOf(grant) + ")";
    }
    return "";
  }

  [[nodiscard]] std::vector<LinePart> LineOfPlaced() {
    const PodRecord& record = *told_.placed;
    const std::string& node = record.placement.node;
    const std::string is = record.state == PodState::kBound      ? "is on "
                           : record.state == PodState::kReserved ? "is being bound to "
                                                                 : "is planned for ";
    told_.devices = HasUnknownGpus(record) ? AskText(pod_.shape) + ", devices unknown"
                                           : DevicesText(record.placement);
    const std::string claimed = ClaimedText(snapshot_->node(on_), pod_);
    if (!claimed.empty()) told_.devices = claimed;
    std::vector<LinePart> line = {
        {is + node, 0, "; ", is + ShortName(node, kShortName)},
        {"with " + told_.devices, 0, " ",
         "with " + (claimed.empty() ? AskText(pod_.shape) : "GPUs by claims")},
        {GivenText(record), 1, " "}};
    if (is_schedulers_) {
      line.push_back({std::string(kSchedulers), 1, ": "});
    } else if (GetsClaimOn(snapshot_->node(on_), pod_)) {
      line.push_back({"kube-scheduler gave them by DRA (DeviceClass " + pod_.device_class + ")", 1,
                      ": ", "kube-scheduler gave them by DRA"});
    } else if (told_.fitting == 0) {
      line.push_back({"it would fit no node now", 1});
    } else {
      AddRank(line);
    }
    return line;
  }

  void AddRank(std::vector<LinePart>& line) const {
    const auto own = std::ranges::find(told_.best, on_, &ScoredNode::node);
    if (own == told_.best.end()) return;
    line.push_back({"scored now, it ranks " + std::to_string(own->place) + " of " +
                        CountText(told_.fitting, "fitting node"),
                    2});
    const auto other = std::ranges::find_if(
        told_.best, [this](const ScoredNode& scored) { return scored.node != on_; });
    if (other == told_.best.end()) return;
    line.push_back({(own->place <= other->place ? "before " : "behind ") +
                        snapshot_->node(other->node).spec().name,
                    2, ", "});
    line.push_back({CompareText(*own, *other), 3, " "});
  }

  // "(gpu-packing 90 against 70)", of the scorers that tell the two apart.
  static std::string CompareText(const ScoredNode& own, const ScoredNode& other) {
    std::string text;
    for (std::size_t i = 0; i < std::min(own.parts.size(), other.parts.size()); ++i) {
      if (own.parts[i].score == other.parts[i].score) continue;
      text += (text.empty() ? "(" : ", ") + own.parts[i].scorer + " " +
              std::to_string(own.parts[i].score) + " against " +
              std::to_string(other.parts[i].score);
    }
    return text.empty() ? "" : text + ")";
  }

  Engine& engine_;
  const PodToExplain& ask_;
  const PodRequest& pod_;
  std::shared_ptr<const Snapshot> snapshot_;
  // Every node "fits" it: Berth has no say.
  const bool is_schedulers_ =
      ask_.behind_scheduler && AsksForNothingOfOurs(pod_) && !IsTurnedAway(pod_, ask_.guard);
  std::optional<WallTime> delays_at_;  // what it would delay begins at the latest; empty: nothing
  std::string kept_for_;               // the last of these, or the first for whom room is kept
  NodeIndex on_ = kNoNode;
  PodExplanation told_;
};

}  // namespace

std::vector<std::string> CountTexts(const PodExplanation& told) {
  const bool any_open = !told.open_counts.empty();
  std::vector<ReasonCount> counts;
  for (const ReasonCount& count : any_open ? told.open_counts : told.counts) {
    const auto same = std::ranges::find(counts, TextOf(count.reason),
                                        [](const ReasonCount& one) { return TextOf(one.reason); });
    if (same == counts.end()) {
      counts.push_back(count);
    } else {
      same->nodes += count.nodes;
    }
  }
  std::ranges::stable_sort(counts, std::greater<>(), &ReasonCount::nodes);
  std::vector<std::string> texts;
  if (any_open && !told.closed.text.empty()) texts.push_back(told.closed.text);
  for (const ReasonCount& count : counts) texts.push_back(TextOf(count.reason, count.nodes));
  return texts;
}

PodExplanation ExplainPod(Engine& engine, const PodToExplain& ask) {
  return Explaining(engine, ask).Explain();
}

}  // namespace berth
