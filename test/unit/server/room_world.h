// SPDX-License-Identifier: Apache-2.0
//
// A cluster in which RoomMaker moves pods: the books, kube-scheduler, the controllers and the API
// server's Eviction, each as a test wants it.
#pragma once

#include <algorithm>
#include <chrono>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "bench/replay/time/sim_clock.h"
#include "server/planners/moves/room_maker.h"
#include "test/support/bind_now.h"
#include "test/support/builders.h"
#include "test/support/wire_fixture.h"

namespace berth::test {

class RoomWorld {
 public:
  using Names = std::vector<std::string>;

  // Nodes "n0", "n1", ... with so many GPUs.
  explicit RoomWorld(const std::vector<int>& gpus, MakeRoomConfig config = Acts()) {
    for (std::size_t i = 0; i < gpus.size(); ++i) {
      Apply(NodeUpserted{ANode("n" + std::to_string(i)).Gpus(gpus[i]).Spec()});
    }
    (void)Filter(APod("anybody").Whole(1).Request());  // the scheduler asks this Berth
    StartMaker(std::move(config));
  }

  static MakeRoomConfig Acts() {
    MakeRoomConfig config;
    config.mode = MakeRoomMode::kAct;
    config.after_minutes = 0;
    return config;
  }

  // A new process: what was in memory is gone.
  void StartMaker(MakeRoomConfig config) {
    maker.reset();
    Contents planned;
    for (const PodRecord& pod : state.Everything().pods) {
      if (pod.state == PodState::kPlanned) planned.push_back(pod.pod.id.uid);
    }
    (void)state.Unplan(planned);
    const auto kept = rooms.Current();
    for (const auto& [node, room] : *kept) rooms.Drop(node);
    maker = std::make_unique<RoomMaker>(RoomMaker::Parts{.run = {.state = state,
                                                                 .waiting = waiting,
                                                                 .extender = extender,
                                                                 .rooms = rooms,
                                                                 .holds = holds,
                                                                 .evictor = evictor,
                                                                 .waker = waker,
                                                                 .sink = sink,
                                                                 .clock = clock,
                                                                 .budgets = &budgets}},
                                        std::move(config));
  }

  void Apply(const ClusterEvent& event) { ASSERT_TRUE(state.Apply(std::span(&event, 1))); }

  // A pod of one GPU, and of a controller of its own.
  static APod Moves(const std::string& name) {
    APod pod(name);
    pod.Whole(1).Mobile(Mobility::kMoves).Controller("c-" + name);
    return pod;
  }
  void Runs(const APod& pod, const std::string& node, const std::vector<int>& gpus) {
    Apply(PodBound{pod.Request(), APod(pod).On(node, gpus), false});
  }
  void Ends(const std::string& name) { Apply(PodGone{"uid-" + name}); }

  // kube-scheduler found no node for it, an hour ago.
  void Waits(const APod& pod) {
    waiting.Put({.pod = std::make_shared<const PodRequest>(pod.Request()),
                 .unschedulable = true,
                 .created = clock.Wall() - std::chrono::hours(1)});
  }
  void Gone(const std::string& name) {
    waiting.Remove("uid-" + name);
    Ends(name);
  }

  // The nodes that fit the pod, by name.
  Names Filter(const PodRequest& pod) {
    const Extender::Moment now = extender.Now();
    std::vector<NodeIndex> all(now.snapshot->size());
    std::iota(all.begin(), all.end(), NodeIndex{0});
    const FilterAnswer answer = extender.Filter(now, pod, all);
    Names fits;
    for (const NodeIndex node : all) {
      if (answer.reasons[node] == Reason::kFits)
        fits.emplace_back(now.snapshot->names().name(node));
    }
    return fits;
  }
  Status Bind(const PodRequest& pod, const std::string& node) {
    Status bound = BindNow(extender, {pod.id.namespace_name, pod.id.name, pod.id.uid, node});
    if (bound) waiting.Remove(pod.id.uid);
    return bound;
  }
  // Its controller makes it, and kube-scheduler asks for a node. The nodes that fit.
  Names Comes(const APod& pod) {
    waiting.Put(
        {.pod = std::make_shared<const PodRequest>(pod.Request()), .created = clock.Wall()});
    return Filter(pod.Request());
  }

  // As many seconds, with a look in each.
  void After(int seconds) {
    for (int i = 0; i < seconds; ++i) {
      clock.Advance(std::chrono::seconds(1));
      maker->Look();
    }
  }
  [[nodiscard]] std::string NodeOf(const std::string& name) const {
    const auto held = state.FindPod("uid-" + name);
    return held ? held->placement.node : "";
  }
  // "": nothing is held or kept for anybody.
  [[nodiscard]] std::string StillHeld() const {
    if (!rooms.Current()->empty()) return "a room";
    for (const PodRecord& pod : state.Everything().pods) {
      if (pod.state == PodState::kPlanned) return pod.pod.id.full_name();
    }
    return "";
  }

  class ScriptedEvictor final : public PodEvictor {
   public:
    Outcome Evict(const PodId& pod) override {
      asked.push_back(pod.name);
      return answer ? answer(pod) : Outcome::kEvicted;
    }
    Names asked;
    std::function<Outcome(const PodId& pod)> answer;  // empty: evicted
  };
  class CountingWaker final : public PodWaker {
   public:
    bool Wake(const PodId& pod) override {
      woken.push_back(pod.name);
      return true;
    }
    Names woken;
  };
  class NewsSink final : public DecisionSink {
   public:
    void Record(const Decision&) override {}
    void Record(const RoomNews& got) override { news.push_back(got); }
    std::vector<RoomNews> news;
    // That of the last news.
    [[nodiscard]] std::string text() const { return news.empty() ? "" : news.back().text; }
    [[nodiscard]] std::optional<RoomNews::What> what() const {
      return news.empty() ? std::nullopt : std::optional(news.back().what);
    }
  };

  SimClock clock;
  ClusterState state;
  WaitingPods waiting;
  DisruptionBudgets budgets;
  ScriptedBinder binder;
  NewsSink sink;
  DeviceRooms rooms;
  MoveHolds holds{state};
  ScriptedEvictor evictor;
  CountingWaker waker;
  Extender extender{{.state = state,
                     .binder = binder,
                     .sink = sink,
                     .clock = clock,
                     .budgets = &budgets,
                     .behind_scheduler = true,
                     .waiting = &waiting,
                     .rooms = &rooms,
                     .moves = &holds},
                    {.engine = EngineOf("best-fit"), .reservation_time = std::chrono::seconds(30)}};
  std::unique_ptr<RoomMaker> maker;

 private:
  using Contents = std::vector<std::string>;
};

}  // namespace berth::test
