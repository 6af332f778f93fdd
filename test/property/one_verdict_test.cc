// SPDX-License-Identifier: Apache-2.0
//
// One verdict: what Berth says of a pod at one moment is the same for all who ask. In random
// worlds, a third of them clean and the others as people have them, with room that is offered,
// reserved, kept for pods that Berth moves or evicts others for, and freed by kube-scheduler's own
// evictions:
//   - as many nodes fit the pod in filter as in explain, and plan finds a place if and only if one
//     does, on a node that fits;
//   - where preempt lets kube-scheduler evict, the pod has its place once the victims are gone,
//     unless a pod of a higher priority took it. Nobody of its priority or below gets in before.
// BERTH_VERDICT_WORLDS (24): how many; each has some hundred questions. A failure prints the seed.
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <iostream>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "bench/replay/time/sim_clock.h"
#include "scoring/explain/other_limits.h"
#include "scoring/victims.h"
#include "server/extender/extender.h"
#include "server/extender/inquiry.h"
#include "test/support/bind_now.h"
#include "test/support/wire_fixture.h"
#include "test/support/worlds.h"

namespace berth::test::one_verdict_test {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;

struct Tally {
  int asks = 0, fitted = 0, evictions = 0, on_kept = 0, beside_others = 0, behind_line = 0;
};

class NoWaker final : public PodWaker {
 public:
  bool Wake(const PodId&) override { return true; }
};

class Driver {
 public:
  Driver(std::uint64_t seed, Tally& tally)
      : seed_(seed), tally_(tally), world_(seed, SizeOf(seed)), random_(world_.random()) {
    if (seed % 3 == 0) {
      const int nodes = random_.Between(3, 6);
      for (int i = 0; i < nodes; ++i) {
        Apply(NodeUpserted{ANode("n" + std::to_string(i)).Gpus(8).Spec()});
        if (is_full_) Fill("n" + std::to_string(i));
      }
    } else {
      world_.Populate(state_);
      world_.PutBudgets(budgets_);
      for (const PodRequest& pod : world_.waiting()) Comes(pod);
    }
  }

  void Run(int steps) {
    for (int step = 0; step < steps && !testing::Test::HasFailure(); ++step) {
      clock_.Advance(seconds(random_.Between(5, 60)));
      if (random_.Chance(is_full_ ? 3 : 30)) EndSomebody();
      if (random_.Chance(50) && waits_.size() < 12) Comes(NewPod());
      if (!is_full_ && random_.Chance(10)) KeepANode();
      if (random_.Chance(15)) OpenANode();
      extender_.LookAtEarmarks();
      if (is_full_) TryAll();
      if (!waits_.empty()) Ask(AnyWaiting());
    }
  }

 private:
  static WorldSize SizeOf(std::uint64_t seed) {
    return {.nodes = 3 + static_cast<int>(seed % 5), .waiting = 4, .shares = seed % 4 == 1};
  }

  void Apply(const ClusterEvent& event) { ASSERT_TRUE(state_.Apply(std::span(&event, 1))); }

  // All of the node's GPUs.
  void Fill(const std::string& node) {
    for (int gpu = 0; gpu < 8; gpu += 2) {
      APod pod("p" + std::to_string(serial_++));
      pod.Whole(2).Priority(random_.OneOf<int>({0, 0, 50}));
      Apply(PodBound{.pod = pod.Request(), .placement = pod.On(node, {gpu, gpu + 1})});
    }
  }

  PodRequest NewPod() {
    if (seed_ % 3 != 0) return world_.APod();
    APod pod("p" + std::to_string(serial_++));
    pod.Whole(random_.OneOf<int>({1, 1, 2, 2, 3, 4, 4, 6, 8}))
        .Priority(random_.OneOf<int>({0, 50, 100}));
    if (is_full_) {
      if (random_.Chance(40)) pod.Priority(100).NeverPreempts();
    } else if (random_.Chance(50)) {
      pod.EndsWithin(minutes(random_.Between(20, 220)));
    }
    return pod.Request();
  }

  void Comes(PodRequest pod) {
    if (!pod.gang.empty() || !pod.shape.wants_gpu()) return;
    auto request = std::make_shared<const PodRequest>(std::move(pod));
    waiting_.Put({.pod = request, .unschedulable = true, .created = clock_.Wall()});
    waits_.emplace(request->id.uid, std::move(request));
  }
  std::shared_ptr<const PodRequest> AnyWaiting() {
    auto at = waits_.begin();
    std::advance(at, random_.Between(0, static_cast<int>(waits_.size()) - 1));
    return at->second;
  }

  // As kube-scheduler does from time to time: who is refused stands in line.
  void TryAll() {
    std::vector<std::shared_ptr<const PodRequest>> all;
    for (const auto& [uid, pod] : waits_) all.push_back(pod);
    std::ranges::stable_sort(all, std::greater<>(), [](const auto& pod) { return pod->priority; });
    for (const auto& pod : all) {
      const std::vector<Reason> reasons = Filter(extender_.Now(), *pod);
      if (std::ranges::find(reasons, Reason::kFits) != reasons.end()) {
        Bind(*pod, reasons);
      } else {
        refused_.insert(pod->id.uid);
      }
    }
  }
  std::shared_ptr<const PodRequest> FirstWaiting() {
    return std::ranges::max_element(waits_, {},
                                    [](const auto& one) { return one.second->priority; })
        ->second;
  }

  void EndSomebody() {
    const auto snapshot = state_.Current();
    std::vector<std::string> uids;
    for (NodeIndex i = 0; i < snapshot->size(); ++i) {
      for (const auto& held : snapshot->node(i).pods()) {
        if (held->state == PodState::kBound) uids.push_back(held->pod.id.uid);
      }
    }
    if (!uids.empty()) Apply(PodGone{random_.OneOf(uids)});
  }

  // As makeRoom and dra.preempt do for a pod that waits.
  void KeepANode() {
    if (waits_.empty()) return;
    const auto pod = AnyWaiting();
    const auto snapshot = state_.Current();
    const auto node =
        static_cast<NodeIndex>(random_.Between(0, static_cast<int>(snapshot->size()) - 1));
    (void)rooms_.Put({.pod = pod->id,
                      .moves = random_.Chance(50),
                      .priority = pod->priority,
                      .node = std::string(snapshot->names().name(node)),
                      .since = clock_.Now()});
  }
  void OpenANode() {
    const auto rooms = rooms_.Current();
    if (!rooms->empty()) rooms_.Drop(rooms->begin()->first);
  }

  // One reason per node. kube-scheduler asks about the nodes that have what it counts itself; on
  // the others, too, it looks for victims.
  std::vector<Reason> Filter(const Extender::Moment& now, const PodRequest& pod) {
    std::vector<NodeIndex> candidates;
    for (NodeIndex i = 0; i < now.snapshot->size(); ++i) {
      if (LackOf(now.snapshot->node(i), pod).empty()) candidates.push_back(i);
    }
    const FilterAnswer answer = extender_.Filter(now, pod, candidates);
    std::vector<Reason> reasons(now.snapshot->size(), Reason::kGpusBusy);
    for (std::size_t i = 0; i < candidates.size(); ++i) reasons[candidates[i]] = answer.reasons[i];
    return reasons;
  }

  // It fits too where filter passes it over for another node: the pod came back from there often.
  static bool FitsThere(Reason reason) {
    return reason == Reason::kFits || reason == Reason::kBetterElsewhere;
  }

  void Ask(const std::shared_ptr<const PodRequest>& pod) {
    ++tally_.asks;
    // Filter takes up what changed; the others are asked at the same moment.
    (void)Filter(extender_.Now(), *pod);
    const Extender::Moment now = extender_.Now();
    const std::vector<Reason> reasons = Filter(now, *pod);
    const auto fits = static_cast<std::size_t>(std::ranges::count_if(reasons, FitsThere));
    const PodExplanation told = Inquiry(extender_, now).Explain(*pod);
    EXPECT_EQ(told.fitting - told.kept, fits) << Where(*pod) << told.sentence;
    EXPECT_EQ(told.sentence.starts_with("fits ") && !told.sentence.starts_with("fits none"),
              fits > 0)
        << Where(*pod) << told.sentence;
    const auto plan = Inquiry(extender_, now).WouldPlace(std::span(pod.get(), 1), {});
    ASSERT_TRUE(plan) << Where(*pod);
    const auto& place = plan->pods.front().placement;
    EXPECT_EQ(place.has_value(), fits > 0)
        << Where(*pod) << told.sentence << "; plan: " << (place ? "" : plan->whys.front().text);
    if (place) {
      EXPECT_TRUE(FitsThere(reasons[now.snapshot->names().Find(place->node)]))
          << Where(*pod) << place->node;
    }
    if (fits > 0) return Bind(*pod, reasons);
    refused_.insert(pod->id.uid);
    Preempt(now, pod, reasons);
  }

  void Bind(const PodRequest& pod, const std::vector<Reason>& reasons) {
    std::vector<NodeIndex> nodes;
    for (NodeIndex i = 0; i < reasons.size(); ++i) {
      if (reasons[i] == Reason::kFits) nodes.push_back(i);
    }
    const std::string node(state_.Current()->names().name(random_.OneOf(nodes)));
    if (!BindNow(extender_, {pod.id.namespace_name, pod.id.name, pod.id.uid, node})) return;
    const auto held = state_.FindPod(pod.id.uid);
    if (!held) return;
    ++tally_.fitted;
    PodLife life;
    life.started = clock_.Wall();
    const std::string uid = pod.id.uid;
    Apply(PodBound{.pod = held->pod, .placement = held->placement, .life = life});
    waiting_.Remove(uid);
    waits_.erase(uid);
  }

  // kube-scheduler: of the nodes whose verdict allows it, its own victims; then one of the nodes of
  // the answer.
  void Preempt(const Extender::Moment& now, const std::shared_ptr<const PodRequest>& pod,
               const std::vector<Reason>& reasons) {
    if (!pod->may_preempt) return;
    std::vector<NodeVictims> asked;
    const auto budgets = budgets_.Current();
    for (NodeIndex i = 0; i < now.snapshot->size(); ++i) {
      if (VerdictOf(reasons[i]) != Verdict::kUnschedulable) continue;
      auto victims = SchedulerVictims(now.snapshot->node(i), *pod, *budgets);
      if (!victims) continue;
      asked.push_back({std::string(now.snapshot->names().name(i)), std::move(victims->uids),
                       victims->pdb_violations});
    }
    if (asked.empty()) return;
    const auto agreed = extender_.Preempt(now, *pod, asked);
    if (agreed.empty()) return;
    ++tally_.evictions;
    tally_.behind_line += now.reservations.empty() && IsBehindOthers(*pod);
    const NodeVictims chosen =
        agreed[static_cast<std::size_t>(random_.Between(0, static_cast<int>(agreed.size()) - 1))];
    const NodeIndex index = now.snapshot->names().Find(chosen.node);
    tally_.on_kept += now.reservations.earmarks().On(*now.snapshot, index) != nullptr;
    bool was_taken = false;
    const std::set<std::string> refused_before = refused_;
    for (const std::string& uid : chosen.uids) {
      if (const PodRecord* held = now.snapshot->node(index).FindPod(uid)) {
        PodBound leaving{.pod = held->pod, .placement = held->placement, .life = held->life};
        leaving.leaving = true;
        Apply(leaving);
      }
    }
    for (const std::string& uid : chosen.uids) {
      Apply(PodGone{uid});
      clock_.Advance(seconds(1));
      if (random_.Chance(50)) extender_.LookAtEarmarks();
      if (random_.Chance(50)) was_taken |= OthersAsk(*pod, chosen.node, refused_before);
    }
    extender_.LookAtEarmarks();
    const Extender::Moment then = extender_.Now();
    const std::vector<Reason> after = Filter(then, *pod);
    if (was_taken) return;
    const auto* owner = then.reservations.KeptFor(*pod, *then.snapshot, index);
    const bool came_since = owner != nullptr && owner->priority > pod->priority &&
                            !refused_before.contains(owner->pod.uid);
    if (came_since) return;
    EXPECT_EQ(after[then.snapshot->names().Find(chosen.node)], Reason::kFits)
        << Where(*pod) << "evictions on " << chosen.node
        << " in vain: " << TextOf(after[then.snapshot->names().Find(chosen.node)])
        << KeptFor(then, *pod, chosen.node);
  }

  std::string KeptFor(const Extender::Moment& now, const PodRequest& pod, const std::string& node) {
    const auto* owner =
        now.reservations.KeptFor(pod, *now.snapshot, now.snapshot->names().Find(node));
    if (owner == nullptr) return "";
    return "; kept for " + owner->pod.uid + " of priority " + std::to_string(owner->priority);
  }

  // Another pod is tried while the victims leave. Returns whether one of a higher priority went to
  // that node. In full worlds all have been tried of late: one that stood in line then was to go
  // there before anybody was evicted for this pod.
  bool OthersAsk(const PodRequest& pod, const std::string& node,
                 const std::set<std::string>& in_line) {
    const auto other = is_full_ ? FirstWaiting() : AnyWaiting();
    if (other->id.uid == pod.id.uid) return false;
    ++tally_.beside_others;
    const std::vector<Reason> reasons = Filter(extender_.Now(), *other);
    if (std::ranges::none_of(reasons, [](Reason r) { return r == Reason::kFits; })) {
      refused_.insert(other->id.uid);
      return false;
    }
    Bind(*other, reasons);
    const auto held = state_.FindPod(other->id.uid);
    return held && held->placement.node == node && other->priority > pod.priority &&
           !(is_full_ && in_line.contains(other->id.uid));
  }

  bool IsBehindOthers(const PodRequest& pod) const {
    return std::ranges::any_of(refused_, [&](const std::string& uid) {
      const auto other = waits_.find(uid);
      return other != waits_.end() && other->second->priority > pod.priority;
    });
  }

  std::string Where(const PodRequest& pod) {
    return "seed " + std::to_string(seed_) + ", question " + std::to_string(tally_.asks) + ", " +
           pod.id.full_name() + " of priority " + std::to_string(pod.priority) + ": ";
  }

  const std::uint64_t seed_;
  // Nothing can be kept for those in line, until kube-scheduler evicts for one of them.
  const bool is_full_ = seed_ % 6 == 0;
  Tally& tally_;
  World world_;
  RandomWorld& random_;
  SimClock clock_;
  ClusterState state_;
  WaitingPods waiting_;
  DisruptionBudgets budgets_;
  DeviceRooms rooms_;
  ScriptedBinder binder_;
  SilentSink sink_;
  NoWaker waker_;
  Extender extender_{{.state = state_,
                      .binder = binder_,
                      .sink = sink_,
                      .clock = clock_,
                      .budgets = &budgets_,
                      .watches_arrivals = true,
                      .behind_scheduler = true,
                      .waiting = &waiting_,
                      .waker = &waker_,
                      .rooms = &rooms_},
                     {.engine = EngineOf("best-fit"),
                      .reservation_time = seconds(30),
                      .earmarks = EarmarkLimits{}}};
  std::map<std::string, std::shared_ptr<const PodRequest>> waits_;
  std::set<std::string> refused_;  // UIDs: these stand in line
  int serial_ = 0;
};

TEST(OneVerdict, FilterExplainPlanAndPreemptSayTheSame) {
  const char* const asked = std::getenv("BERTH_VERDICT_WORLDS");
  const int worlds = asked == nullptr ? 24 : std::atoi(asked);
  Tally tally;
  for (int seed = 1; seed <= worlds && !HasFailure(); ++seed) {
    Driver(static_cast<std::uint64_t>(seed), tally).Run(150);
  }
  RecordProperty("questions", tally.asks);
  RecordProperty("evictions", tally.evictions);
  EXPECT_GT(tally.fitted, worlds);
  EXPECT_GT(tally.evictions, worlds / 2);
  EXPECT_GT(tally.beside_others, 0);
  EXPECT_GT(tally.behind_line, worlds / 6) << "evictions behind a line for which nothing is kept";
  std::cout << tally.asks << " questions, " << tally.evictions << " evictions agreed on, "
            << tally.on_kept << " of them where something is kept\n";
}

}  // namespace
}  // namespace berth::test::one_verdict_test
