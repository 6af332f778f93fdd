// SPDX-License-Identifier: Apache-2.0
//
// What /debug/gangs and /metrics show of gangs.
#include <chrono>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "server/pages/metrics_parts.h"
#include "server/why/explain_json.h"
#include "test/support/metrics_lines.h"

namespace berth::test::gang_pages_test {
namespace {

std::vector<GangView> TwoGangs() {
  return {{.id = GangId::Of("berth:ml/train"),
           .state = "waiting",
           .minimum = 4,
           .total = 5,
           .placed = 0,
           .waiting = 5,
           .planned = 0,
           .held = 0,
           .age = std::chrono::milliseconds(12'500),
           .why = "3 of 4 members fit in rack a"},
          {.id = GangId::Of("kueue:ml/tune"),
           .state = "begun",
           .minimum = 2,
           .total = {},
           .placed = 1,
           .waiting = 1,
           .planned = 1,
           .held = 7,
           .age = std::chrono::seconds(3),
           .why = ""}};
}

TEST(GangsJson, HasAnEntryPerGang) {
  EXPECT_EQ(wire::EncodeGangs(TwoGangs()), R"([
 {
  "gang": "berth:ml/train",
  "state": "waiting",
  "minimum": 4,
  "total": 5,
  "placed": 0,
  "waiting": 5,
  "planned": 0,
  "held": 0,
  "age_seconds": 12.5,
  "why": "3 of 4 members fit in rack a"
 },
 {
  "gang": "kueue:ml/tune",
  "state": "begun",
  "minimum": 2,
  "total": null,
  "placed": 1,
  "waiting": 1,
  "planned": 1,
  "held": 7,
  "age_seconds": 3.0,
  "why": ""
 }
])");
}

TEST(GangMetrics, CountGangsByStateAndTheBindsThatWait) {
  const std::string text = Written(AddGangMetrics, TwoGangs());
  ExpectLines(
      text, {"berth_gangs{state=\"waiting\"} 1", "berth_gangs{state=\"begun\"} 1",
             "berth_gangs{state=\"whole\"} 0", "berth_gang_oldest_seconds{state=\"waiting\"} 12.5",
             "berth_gangs_partial 1", "berth_binds_held 7"});
}

}  // namespace
}  // namespace berth::test::gang_pages_test
