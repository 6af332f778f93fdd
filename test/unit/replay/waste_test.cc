// SPDX-License-Identifier: Apache-2.0
#include "bench/replay/waste.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "test/support/builders.h"

namespace berth::replay::waste_test {
namespace {

using test::ANode;
using test::APod;

struct Case {
  std::string description;
  std::vector<TraceTask> tasks;
  ANode node;
  IdleByCause want;  // model, slots, gaps, cpu, memory, usable
};

TraceTask Task(int cores, int gpus, int milli, const std::string& models = "",
               std::int64_t memory_mib = 1) {
  return {"t", cores * 1000, memory_mib, gpus, milli, models};
}

TEST(WasteMeter, PutsIdleGpuUnderTheFirstCause) {
  // Two GPUs idle, one 70 % free.
  const ANode node =
      ANode("n").Model("T4").Cpu(64).MemoryGib(4).Gpus(3).Holding(APod("a").Share(300), {0});
  for (const Case& c : std::vector<Case>{
           {"another model", {Task(1, 1, 1000, "P100")}, node, {2.7, 0, 0, 0, 0, 0}},
           {"more GPUs than are idle", {Task(1, 3, 1000)}, node, {0, 2, 0.7, 0, 0, 0}},
           {"too few cores", {Task(65, 1, 1000)}, node, {0, 0, 0, 2.7, 0, 0}},
           {"too little memory", {Task(1, 1, 1000, "", 5000)}, node, {0, 0, 0, 0, 2.7, 0}},
           {"a whole GPU fits", {Task(1, 2, 1000)}, node, {0, 0, 0.7, 0, 0, 2}},
           {"a share fits everywhere", {Task(1, 1, 700)}, node, {0, 0, 0, 0, 0, 2.7}},
           {"a share fits idle GPUs only", {Task(1, 1, 701)}, node, {0, 0, 0.7, 0, 0, 2}},
           {"a share that none has free",
            {Task(1, 1, 701)},
            ANode("n").Gpus(1).Holding(APod("a").Share(300), {0}),
            {0, 0, 0.7, 0, 0, 0}},
           {"the mean over the tasks; those without GPU do not count",
            {Task(1, 1, 1000, "P100"), Task(1, 3, 1000), Task(65, 1, 1000), Task(1, 1, 700),
             Task(99, 0, 0)},
            node,
            {0.675, 0.5, 0.175, 0.675, 0, 0.675}},
           {"no task with a GPU", {Task(1, 0, 0)}, node, {}}}) {
    const IdleByCause idle =
        WasteMeter(c.tasks).Measure(Snapshot({std::make_shared<const Node>(c.node.Build())}));
    for (std::size_t cause = 0; cause < kIdleCauses; ++cause) {
      EXPECT_NEAR(idle[cause], c.want[cause], 1e-12)
          << c.description << ": " << kIdleCauseNames[cause];
    }
  }
}

}  // namespace
}  // namespace berth::replay::waste_test
