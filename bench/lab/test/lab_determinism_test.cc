// SPDX-License-Identifier: Apache-2.0
//
// The simulations of the lab: with the same seed, ten runs beside each other end alike.
#include <gtest/gtest.h>

#include <cstdint>

#include "bench/lab/classes/class_simulation.h"
#include "bench/lab/shares/share_simulation.h"
#include "test/support/deterministic.h"

namespace berth::replay::lab_determinism_test {
namespace {

using test::ExpectDeterministic;
using test::RunEnd;

TEST(Determinism, OfShares) {
  for (const char* policy : {"berth", "hami-binpack", "fluid"}) {
    SCOPED_TRACE(policy);
    ExpectDeterministic([policy](std::uint64_t seed) {
      const ShareOptions options{.load = 1.1, .hours = 2, .seed = seed, .fleet = {{2, 4, 40'960}}};
      const ShareWorkload workload = DrawShareWorkload("whole", options).value();
      const ShareResult result = SimulateShares(workload, policy, seed).value();
      return RunEnd{result.trace, result.served_gpu_hours};
    });
  }
}

TEST(Determinism, OfClasses) {
  ExpectDeterministic([](std::uint64_t seed) {
    const ClassWorkload workload = DrawClassWorkload({.hours = 2, .seed = seed}).value();
    const ClassPolicy policy = ClassPolicyNamed("classes", BerthWithExample()).value();
    const ClassResult result = SimulateClasses(workload, policy, seed).value();
    return RunEnd{result.trace, result.back().served_gpu_hours};
  });
}

}  // namespace
}  // namespace berth::replay::lab_determinism_test
