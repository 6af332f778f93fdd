// SPDX-License-Identifier: Apache-2.0
//
// A gang whose Bindings take time, on threads, looked at all the while: it is whole in the end, and
// nothing of it is given up once it has begun.
#include <atomic>
#include <chrono>
#include <memory>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "base/mutex.h"
#include "server/extender/extender.h"
#include "server/extender/gangs/table/gang_table.h"
#include "server/service/verbs.h"
#include "test/support/builders.h"
#include "test/support/wire_fixture.h"

namespace berth::test::gang_threads_test {
namespace {

using std::chrono::microseconds;
using std::chrono::seconds;

constexpr int kMembers = 200, kGpusOfANode = 8, kThreads = 8;

class Aborts final : public DecisionSink {
 public:
  void Record(const Decision&) override {}
  void Record(const GangNews& news) override {
    aborts += news.what == GangNews::What::kAborted ? 1 : 0;
  }
  std::atomic<int> aborts{0};
};

TEST(GangThreads, AGangIsWholeHoweverSlowlyItsBindingsGo) {
  SystemClock clock;
  ClusterState state;
  WaitingPods waiting;
  ScriptedBinder binder{[](const PodRequest& pod, const Placement&) -> Status {
    std::this_thread::sleep_for(microseconds(200 + pod.id.name.back() * 20));
    return {};
  }};
  Aborts sink;
  NodeDomains domains{{{"rack", {"rack"}}}};
  GangTable gangs{{state, waiting, domains}};
  Extender extender{{.state = state,
                     .binder = binder,
                     .sink = sink,
                     .clock = clock,
                     .domains = &domains,
                     .behind_scheduler = true,
                     .gangs = &gangs,
                     .waiting = &waiting},
                    {.engine = EngineOf("best-fit"),
                     .reservation_time = seconds(30),
                     .gangs = {{"berth"}, seconds(50)}}};
  std::vector<ClusterEvent> nodes;
  for (int i = 0; i * kGpusOfANode < kMembers; ++i) {
    nodes.push_back(NodeUpserted{ANode("n" + std::to_string(i)).Gpus(kGpusOfANode).Spec()});
  }
  ASSERT_TRUE(state.Apply(nodes).has_value());
  std::vector<PodRequest> members;
  for (int i = 0; i < kMembers; ++i) {
    members.push_back(APod("m" + std::to_string(i))
                          .Whole(1)
                          .Gang("berth:default/train")
                          .GangSize(kMembers)
                          .Request());
    waiting.Put({.pod = std::make_shared<const PodRequest>(members.back())});
  }
  const Extender::Moment now = extender.Now();
  const auto& snapshot = now.snapshot;
  std::vector<NodeIndex> all(snapshot->size());
  std::iota(all.begin(), all.end(), NodeIndex{0});
  std::vector<std::string> places;
  for (const PodRequest& pod : members) {
    const FilterAnswer answer = extender.Filter(now, pod, all);
    ASSERT_TRUE(answer.fits) << pod.id.name << ": " << answer.nowhere;
    const auto fits = std::ranges::find(answer.reasons, Reason::kFits) - answer.reasons.begin();
    places.emplace_back(snapshot->names().name(all[static_cast<std::size_t>(fits)]));
  }

  std::atomic<int> answered{0}, refused{0};
  std::atomic<bool> stops{false};
  {
    WorkerPool pool(kThreads, 2 * kMembers);
    extender.BindOn(InBackground(pool));
    std::thread looks([&] {
      while (!stops) extender.LookAtGangs();
    });
    for (int i = 0; i < kMembers; ++i) {
      const PodId& id = members[static_cast<std::size_t>(i)].id;
      const auto done = [&](const Status& bound) {
        refused += bound ? 0 : 1;
        ++answered;
      };
      EXPECT_TRUE(extender.Bind(
          {id.namespace_name, id.name, id.uid, places[static_cast<std::size_t>(i)], clock.Now()},
          done));
    }
    const Instant deadline = clock.Now() + seconds(40);
    while (answered < kMembers && clock.Now() < deadline) std::this_thread::yield();
    stops = true;
    looks.join();
  }
  EXPECT_EQ(answered, kMembers);
  EXPECT_EQ(refused, 0);
  EXPECT_EQ(sink.aborts, 0);
  EXPECT_EQ(state.BoundUids().size(), std::size_t{kMembers});
}

}  // namespace
}  // namespace berth::test::gang_threads_test
