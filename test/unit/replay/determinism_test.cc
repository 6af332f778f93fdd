// SPDX-License-Identifier: Apache-2.0
//
// The simulations themselves are deterministic: with the same seed, ten runs beside each other see
// the same events at the same times, and end with the same figures.
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "bench/replay/gang/gang_simulation.h"
#include "bench/replay/session.h"
#include "test/support/deterministic.h"

namespace berth::replay::determinism_test {
namespace {

using std::chrono::minutes;

using test::ExpectDeterministic;
using test::RunEnd;

TEST(Determinism, OfStreamsOfATrace) {
  for (const char* policy : {"expected-waste", "best-fit", "random"}) {
    SCOPED_TRACE(policy);
    ExpectDeterministic([policy](std::uint64_t seed) {
      Workload workload = GenerateWorkload(seed, 400);
      workload.nodes.resize(40);
      const Arrivals arrivals = DrawArrivals(workload.nodes, workload.tasks, seed, 1);
      const StreamOptions options{1.3, Lifetimes::kLogNormal, minutes(10), minutes(10)};
      const Stream stream = DrawStream(workload.nodes, workload.tasks, options, seed).value();
      const SimulationResult result =
          RunTimedSession(workload, arrivals, stream, PolicyNamed(policy).value(), seed, {})
              .value();
      return RunEnd{result.trace, result.idle_gpu_hours_waiting};
    });
  }
}

TEST(Determinism, OfGangs) {
  for (const char* rule : {"berth", "greedy"}) {
    SCOPED_TRACE(rule);
    ExpectDeterministic([rule](std::uint64_t seed) {
      const GangWorkload workload = DrawGangWorkload("roles", {.hours = 1, .seed = seed}).value();
      std::vector<std::shared_ptr<const Node>> nodes;
      for (const NodeSpec& node : workload.nodes) {
        nodes.push_back(std::make_shared<const Node>(std::make_shared<const NodeSpec>(node)));
      }
      const auto made = MakeGangRule(rule, Snapshot(nodes)).value();
      const GangResult result = SimulateGangs(workload, *made).value();
      return RunEnd{result.trace, result.served_gpu_hours};
    });
  }
}

}  // namespace
}  // namespace berth::replay::determinism_test
