// SPDX-License-Identifier: Apache-2.0
//
// Gangs through the verbs of the Extender, on a clock that stands still: nodes and pods come and go
// as a test says, and kube-scheduler asks when it says so.
#pragma once

#include <chrono>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "bench/replay/time/sim_clock.h"
#include "server/extender/extender.h"
#include "server/extender/gangs/table/gang_table.h"
#include "test/support/builders.h"
#include "test/support/wire_fixture.h"

namespace berth::test::gang_world {

using std::chrono::milliseconds;
using std::chrono::seconds;
using Names = std::vector<std::string>;

class Woken final : public PodWaker {
 public:
  bool Wake(const PodId& pod) override {
    if (room == 0) return false;
    --room;
    names.push_back(pod.name);
    return true;
  }
  int room = 1'000'000;
  Names names;
};

class NewsSink final : public DecisionSink {
 public:
  void Record(const Decision&) override {}
  void Record(const GangNews& news) override { texts.push_back(news.text); }
  Names texts;
};

// What a refusal says.
inline std::string Text(Reason reason) { return std::string(TextOf(reason)); }
inline const std::string kIncomplete = Text(Reason::kGangIncomplete);
inline const std::string kNoRoom = Text(Reason::kGangNoRoom);

class GangWorld : public testing::Test {
 protected:
  GangWorld() {
    extender_.BindOn([this](std::function<void()> job) {
      jobs_.push_back(std::move(job));
      return true;
    });
  }

  void Apply(const ClusterEvent& event) {
    ASSERT_TRUE(state_.Apply(std::span(&event, 1)).has_value());
  }
  void Add(const ANode& node) { Apply(NodeUpserted{node.Spec()}); }
  static ANode InRack(const std::string& name, const std::string& rack, int gpus) {
    return ANode(name).Gpus(gpus).Labelled({{"rack", rack}});
  }

  static APod Member(const std::string& name, const std::string& gang = "train") {
    return APod(name).Whole(1).Gang("berth:default/" + gang).GangSize(3);
  }
  // The API server shows the pod.
  void Arrive(const APod& pod) {
    waiting_.Put({.pod = std::make_shared<const PodRequest>(pod.Request())});
  }
  void Arrive(const std::vector<APod>& pods) {
    for (const APod& pod : pods) Arrive(pod);
  }
  // And that kube-scheduler has found no node for it.
  void ArriveUnschedulable(const std::vector<APod>& pods) {
    for (const APod& pod : pods) {
      waiting_.Put(
          {.pod = std::make_shared<const PodRequest>(pod.Request()), .unschedulable = true});
    }
  }
  void Use(const GangTable::Settings& gangs) {
    extender_.Use(
        {.engine = EngineOf("best-fit"), .reservation_time = seconds(30), .gangs = gangs});
  }
  void Delete(const APod& pod) {
    Apply(PodGone{pod.Request().id.uid});
    waiting_.Remove(pod.Request().id.uid);
  }
  // The watch shows the pod on its node.
  void ShowBound(const APod& pod, const std::string& node, const std::vector<int>& gpus,
                 bool leaving = false) {
    PodBound bound{pod.Request(), pod.On(node, gpus)};
    bound.leaving = leaving;
    Apply(bound);
    waiting_.Remove(pod.Request().id.uid);
  }

  // The node that passes the filter; several: with a space between; none: why.
  std::string Filter(const APod& pod, const Names& offered = {}) {
    const auto snapshot = state_.Current();
    std::vector<NodeIndex> candidates(snapshot->size());
    std::iota(candidates.begin(), candidates.end(), NodeIndex{0});
    if (!offered.empty()) {
      candidates.clear();
      for (const std::string& name : offered) candidates.push_back(snapshot->names().Find(name));
    }
    const FilterAnswer answer = extender_.Filter(extender_.Now(), pod.Request(), candidates);
    if (!answer.fits) {
      return answer.nowhere.empty() ? Text(answer.reasons.front()) : answer.nowhere;
    }
    std::string fitting;
    for (std::size_t i = 0; i < candidates.size(); ++i) {
      if (answer.reasons[i] != Reason::kFits) continue;
      fitting += (fitting.empty() ? "" : " ") + std::string(snapshot->names().name(candidates[i]));
    }
    return fitting;
  }

  void Bind(const APod& pod, const std::string& node) {
    const PodId& id = pod.Request().id;
    const auto done = [this, name = id.name](const Status& bound) {
      answers_[name] = bound ? "bound" : bound.error().message;
    };
    const auto waits = [this, name = id.name] { return !gone_.contains(name); };
    ASSERT_TRUE(
        extender_.Bind({id.namespace_name, id.name, id.uid, node, clock_.Now()}, done, waits));
    RunJobs();
  }
  // Whom kube-scheduler may evict for the pod, of the nodes that it asks about: "n: a b; m: c".
  std::string Preempt(const APod& pod, const Names& asked) {
    std::vector<NodeVictims> nodes;
    for (const std::string& name : asked) nodes.push_back({name, {}});
    std::string text;
    for (const NodeVictims& node : extender_.Preempt(extender_.Now(), pod.Request(), nodes)) {
      text += (text.empty() ? "" : "; ") + node.node + ":";
      for (const std::string& uid : node.uids) text += " " + uid.substr(4);
    }
    return text;
  }
  // Filter, and bind to what it says.
  void Place(const APod& pod) {
    const std::string node = Filter(pod);
    ASSERT_NE(state_.Current()->names().Find(node), kNoNode)
        << pod.Request().id.name << ": " << node;
    Bind(pod, node);
  }
  void RunJobs() {
    while (!jobs_.empty()) {
      const auto job = std::move(jobs_.front());
      jobs_.pop_front();
      job();
    }
  }
  void Pass(Duration time) {
    clock_.Advance(time);
    extender_.LookAtGangs();
    RunJobs();
  }

  // The first gang, once it was found out why it waits.
  GangView View() {
    Pass(Duration::zero());
    return gangs_.Views(clock_.Now()).at(0);
  }
  [[nodiscard]] std::string AnswerTo(const std::string& name) const {
    const auto answer = answers_.find(name);
    return answer == answers_.end() ? "" : answer->second;
  }
  [[nodiscard]] std::string StateOf(const std::string& gang = "train") const {
    for (const GangView& view : gangs_.Views(clock_.Now())) {
      if (view.id.name == gang) return std::string(view.state);
    }
    return "";
  }
  [[nodiscard]] std::int64_t Free(const std::string& node) const {
    const auto snapshot = state_.Current();
    return snapshot->node(snapshot->names().Find(node)).free_gpu_milli();
  }

  SimClock clock_;
  ClusterState state_;
  WaitingPods waiting_;
  std::deque<std::function<void()>> jobs_;
  std::map<std::string, std::string> answers_;
  std::set<std::string> gone_;          // whose client does not wait any more
  Names bound_;                         // Bindings in their order
  std::map<std::string, Errc> refuse_;  // Bindings, by the pod's name
  ScriptedBinder binder_{[this](const PodRequest& pod, const Placement&) -> Status {
    if (const auto refused = refuse_.find(pod.id.name); refused != refuse_.end()) {
      return Fail(refused->second, "refused by the API server");
    }
    bound_.push_back(pod.id.name);
    return {};
  }};
  NewsSink sink_;
  Woken waker_;
  NodeDomains domains_{{{"rack", {"rack"}}}};
  DeviceRooms rooms_;
  PodGroups groups_;
  GangTable gangs_{{state_, waiting_, domains_, &groups_, nullptr, &rooms_}};
  Extender extender_{{.state = state_,
                      .binder = binder_,
                      .sink = sink_,
                      .clock = clock_,
                      .domains = &domains_,
                      .behind_scheduler = true,
                      .gangs = &gangs_,
                      .waiting = &waiting_,
                      .waker = &waker_,
                      .rooms = &rooms_},
                     {.engine = EngineOf("best-fit"),
                      .reservation_time = seconds(30),
                      .gangs = {{"berth", "kubernetes"}, seconds(50)}}};
  const APod a_ = Member("a"), b_ = Member("b"), c_ = Member("c"), d_ = Member("d");
};

}  // namespace berth::test::gang_world
