// SPDX-License-Identifier: Apache-2.0
//
// Room that Berth makes while everything else goes wrong: evictions are refused or their answers
// are lost, successors come late, elsewhere or never, nodes go, strangers come, the leader changes,
// the process is killed. Nobody is evicted beyond a plan, budgets are kept, one pod moves at a
// time, and in the end nothing is held.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "test/support/random_world.h"
#include "test/unit/server/room_world.h"

namespace berth::test::room_maker_property_test {
namespace {

using std::chrono::hours;
using std::chrono::seconds;

class Trial {
 public:
  // idle_nodes: to be kept; then no large pod waits.
  Trial(std::uint64_t seed, int idle_nodes) : random_(seed), chaos_(random_.Between(0, 3)) {
    config_ = RoomWorld::Acts();
    config_.moves_per_hour = 4;
    config_.moves_per_namespace = 3;
    config_.moves_per_node = 2;
    config_.idle_nodes = idle_nodes;
    std::vector<int> gpus;
    for (int i = random_.Between(3, 6); i > 0; --i) gpus.push_back(4);
    world_.emplace(gpus, config_);
    world_->evictor.answer = [this](const PodId& pod) { return Evict(pod); };
    for (std::size_t i = 0; i < gpus.size(); ++i) Fill("n" + std::to_string(i));
    for (int i = 0; i < 2 && idle_nodes == 0; ++i) {
      const APod big = APod("big" + std::to_string(i)).Whole(random_.Between(2, 4));
      world_->Waits(big);
      pending_.emplace(big.Request().id.uid, big.Request());
    }
  }

  void Run() {
    for (int i = 0; i < 120; ++i) Step(true);
    // No new plan; what is under way ends by itself.
    config_.after_minutes = 10'080;
    world_->maker->Use(config_);
    for (int i = 0; i < 300 && world_->maker->stats().left > 0; ++i) Step(false);
    for (int i = 0; i < 60; ++i) Step(false);
    EXPECT_EQ(world_->StillHeld(), "");
    Count();
  }
  int done = 0, given_up = 0, evicted = 0;

 private:
  void Fill(const std::string& node) {
    for (int gpu = 0; gpu < 4; ++gpu) {
      if (random_.Chance(45)) continue;
      APod pod = Named("p" + std::to_string(made_++));
      if (random_.Chance(15)) pod.Mobile(Mobility::kNoController);
      world_->Runs(pod, node, {gpu});
      pods_.emplace(pod.Request().id.uid, pod.Request());
    }
  }
  APod Named(const std::string& name) {
    APod pod = RoomWorld::Moves(name);
    pod.Namespace(random_.Chance(50) ? "default" : "other").Whole(1);
    return pod;
  }

  void Step(bool has_chaos) {
    SeeEvictions();
    if (has_chaos) Chaos();
    world_->clock.Advance(seconds(5));
    world_->maker->Look();
    Controllers();
    Scheduler();
  }

  PodEvictor::Outcome Evict(const PodId& pod) {
    std::string plan;
    for (const RoomNews& news : world_->sink.news) {
      if (news.what == RoomNews::What::kBegun) plan = news.text;
    }
    EXPECT_NE(plan.find(pod.full_name() + " from "), std::string::npos) << "beyond the plan";
    for (const std::string& before : ending_) {
      EXPECT_FALSE(world_->state.FindPod(before)) << "two pods at a time";
    }
    for (const auto& [successor, since] : homeless_) {
      EXPECT_GE(world_->clock.Now() - since, RoomRun::kComesWithin) << successor << " has no place";
    }
    const auto held = world_->state.FindPod(pod.uid);
    if (!held) {
      ADD_FAILURE() << "a pod that is not there";
      return PodEvictor::Outcome::kFailed;
    }
    if (chaos_ > 0 && random_.Chance(5 * chaos_)) return PodEvictor::Outcome::kBlocked;
    CheckBudgets(pod.namespace_name, held->placement.node);
    const bool answers = chaos_ == 0 || !random_.Chance(5 * chaos_);
    if (answers || random_.Chance(50)) {
      ending_.insert(pod.uid);
      unseen_.emplace(pod.uid, *held);
    }
    return answers ? PodEvictor::Outcome::kEvicted : PodEvictor::Outcome::kFailed;
  }

  // What the API server has done is seen a moment later.
  void SeeEvictions() {
    for (const auto& [uid, held] : unseen_) {
      if (!world_->state.FindPod(uid)) continue;
      PodBound ends{held.pod, held.placement, false};
      ends.leaving = true;
      ends.life.evicted = true;
      world_->Apply(ends);
    }
    unseen_.clear();
  }

  void CheckBudgets(const std::string& space, const std::string& node) {
    const Instant now = world_->clock.Now();
    std::erase_if(tried_, [now](const Tried& one) { return now - one.when >= hours(1); });
    tried_.push_back({space, node, now});
    EXPECT_LE(std::ssize(tried_), config_.moves_per_hour);
    const auto of = [this](auto same) { return std::ranges::count_if(tried_, same); };
    EXPECT_LE(of([&](const Tried& one) { return one.space == space; }),
              config_.moves_per_namespace);
    EXPECT_LE(of([&](const Tried& one) { return one.node == node; }), config_.moves_per_node);
  }

  void Controllers() {
    for (auto uid = ending_.begin(); uid != ending_.end();) {
      if (!random_.Chance(ends_)) {
        ++uid;
        continue;
      }
      world_->Apply(PodGone{*uid});
      const PodRequest pod = pods_.at(*uid);
      pods_.erase(*uid);
      uid = ending_.erase(uid);
      if (chaos_ > 0 && random_.Chance(3 * chaos_)) continue;  // its controller makes none
      PodRequest next = pod;
      next.id.name = "p" + std::to_string(made_++);
      next.id.uid = "uid-" + next.id.name;
      world_->waiting.Put(
          {.pod = std::make_shared<const PodRequest>(next), .created = world_->clock.Wall()});
      pending_.emplace(next.id.uid, next);
      homeless_.emplace(next.id.uid, world_->clock.Now());
    }
  }

  void Scheduler() {
    for (auto pod = pending_.begin(); pod != pending_.end();) {
      const std::vector<std::string> fits =
          random_.Chance(50) ? world_->Filter(pod->second) : std::vector<std::string>();
      if (fits.empty() || !world_->Bind(pod->second, random_.OneOf(fits))) {
        ++pod;
        continue;
      }
      pods_.emplace(pod->first, pod->second);
      homeless_.erase(pod->first);
      pod = pending_.erase(pod);
    }
  }

  void Chaos() {
    const auto happens = [this] {
      return chaos_ > 0 && random_.Chance(chaos_) && random_.Chance(40);
    };
    if (happens()) {  // a pod that no Berth was asked about
      const auto snapshot = world_->state.Current();
      const auto node =
          static_cast<NodeIndex>(random_.Between(0, static_cast<int>(snapshot->size()) - 1));
      const APod stranger = Named("stranger" + std::to_string(made_++));
      world_->Runs(stranger, std::string(snapshot->names().name(node)), {random_.Between(0, 3)});
      pods_.emplace(stranger.Request().id.uid, stranger.Request());
    }
    if (happens()) {  // a pod comes that asks Berth
      const APod pod = Named("small" + std::to_string(made_++));
      world_->Waits(pod);
      pending_.emplace(pod.Request().id.uid, pod.Request());
    }
    if (happens() && !pending_.empty()) {
      world_->waiting.Remove(pending_.begin()->first);
      world_->Apply(PodGone{pending_.begin()->first});
      homeless_.erase(pending_.begin()->first);
      pending_.erase(pending_.begin());
    }
    if (happens() && world_->state.Current()->size() > 2) {
      world_->Apply(NodeRemoved{std::string(world_->state.Current()->names().name(0))});
    }
    if (happens()) world_->maker->LetGo();
    if (happens()) {
      Count();
      world_->StartMaker(config_);
      EXPECT_EQ(world_->StillHeld(), "");
      tried_.clear();     // a new process counts anew...
      homeless_.clear();  // ...and does not know whose successors those are that wait
    }
  }

  void Count() {
    const RoomMaker::Stats stats = world_->maker->stats();
    done += static_cast<int>(stats.done);
    given_up += static_cast<int>(stats.given_up);
    evicted += static_cast<int>(stats.evicted);
  }

  struct Tried {
    std::string space, node;
    Instant when;
  };

  RandomWorld random_;
  const int chaos_;
  const int ends_ = random_.Chance(50) ? 50 : 10;  // of a hundred, at each step: pods that end
  MakeRoomConfig config_;
  std::optional<RoomWorld> world_;
  int made_ = 0;
  std::map<std::string, PodRequest> pods_;     // that have a node
  std::map<std::string, PodRequest> pending_;  // that wait for one
  std::set<std::string> ending_;
  std::map<std::string, PodRecord> unseen_;  // of these, those that the books do not know to end
  std::map<std::string, Instant> homeless_;  // successors of evicted pods, without a place
  std::vector<Tried> tried_;
};

struct Sums {
  int done = 0, given_up = 0, evicted = 0;
};
Sums RunAll(std::uint64_t trials, int idle_nodes) {
  Sums sums;
  for (std::uint64_t seed = 0; seed < trials; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Trial trial(seed, idle_nodes);
    trial.Run();
    if (testing::Test::HasFailure()) return sums;
    sums.done += trial.done;
    sums.given_up += trial.given_up;
    sums.evicted += trial.evicted;
  }
  return sums;
}

TEST(RoomMakerProperty, KeepsItsPromisesForIdleNodesToo) {
  const Sums sums = RunAll(100, 1);
  EXPECT_GT(sums.done, 20);
  EXPECT_GT(sums.given_up, 5);
}

TEST(RoomMakerProperty, KeepsItsPromisesWhateverGoesWrong) {
  const auto [done, given_up, evicted] = RunAll(150, 0);
  RecordProperty("done", done);
  RecordProperty("given_up", given_up);
  RecordProperty("evicted", evicted);
  // The trials have to be worth something.
  EXPECT_GT(done, 50);
  EXPECT_GT(given_up, 20);
  EXPECT_GT(evicted, 80);
}

}  // namespace
}  // namespace berth::test::room_maker_property_test
