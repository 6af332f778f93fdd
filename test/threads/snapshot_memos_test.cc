// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <memory>
#include <thread>
#include <vector>

#include "cluster/state/snapshot.h"
#include "scoring/groups/group_domains.h"
#include "test/support/builders.h"

namespace berth::test::snapshot_memos_test {
namespace {

// Memos work without their lock. A node flaps between racks: requests of both moments ask at once.
TEST(SnapshotMemos, AnswerEachThreadForItsOwnSnapshot) {
  const auto in_racks = [](const char* first, const char* second, int gpus) {
    return SnapshotOf({ANode("n1").Gpus(gpus).Labelled({{"rack", first}}),
                       ANode("n2").Gpus(8).Labelled({{"rack", second}})});
  };
  const std::array snapshots = {in_racks("r1", "r1", 8), in_racks("r1", "r2", 4)};
  const std::array<std::vector<int>, 2> rooms = {{{8, 8}, {4, 8}}};
  NodeDomains domains{{{"rack", {"rack"}}}};
  GangRoom room;
  const RequestShape one_gpu = APod("p").Whole(1).Request().shape;
  std::atomic<int> wrong = 0;
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (std::size_t i = 0; i < 500; ++i) {
        const std::size_t moment = (t + i / 3) % 2;
        if (domains.Of(snapshots[moment])->CountNamed(0) != moment + 1) ++wrong;
        if (room.Of(snapshots[moment], one_gpu) != rooms[moment]) ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

}  // namespace
}  // namespace berth::test::snapshot_memos_test
