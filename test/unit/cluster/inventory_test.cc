// SPDX-License-Identifier: Apache-2.0
#include "cluster/node/inventory.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <random>
#include <string>

namespace berth::inventory_test {
namespace {

enum class Said { kAbsent, kAgrees, kFewer };
constexpr std::array kEach = {Said::kAbsent, Said::kAgrees, Said::kFewer};

// Of a node with that many GPUs and devices; what contradicts says a quarter of it.
std::int64_t NumberOf(Said said, std::int64_t gpus) {
  if (said == Said::kAbsent) return 0;
  return said == Said::kAgrees ? gpus : gpus / 4;
}

// Every source absent, agreeing or contradicting, with and without replicas that are said: whole
// GPUs come out only where no source that knows all GPUs knows fewer, and none says that they are
// shared; and where GFD's count alone is smaller, only if a better source agrees with the devices.
TEST(Inventory, HasAnOutcomeForEveryCombinationOfEvidence) {
  int combinations = 0, whole = 0, contradictions = 0;
  for (const Said uuids : kEach) {
    for (const Said registered : kEach) {
      for (const Said machine : kEach) {
        for (const Said labelled : kEach) {
          for (const bool shared : {false, true}) {
            for (const std::int64_t replicas : {0, 1, 4}) {
              for (const bool one_product : {false, true}) {
                GpuEvidence said{.resource = "nvidia.com/gpu", .devices = 8};
                said.uuids = NumberOf(uuids, 8);
                said.registered = NumberOf(registered, 8);
                said.machine = NumberOf(machine, 8);
                said.labelled = NumberOf(labelled, 8);
                said.shared = shared;
                said.replicas = replicas;
                said.of_one_product = one_product;
                const GpuInventory found = TakeInventory(said);
                const bool any_fewer =
                    uuids == Said::kFewer || registered == Said::kFewer || machine == Said::kFewer;
                const bool any_agrees = uuids == Said::kAgrees || registered == Said::kAgrees ||
                                        machine == Said::kAgrees;
                const bool label_decides = labelled == Said::kFewer && !any_agrees;
                const bool is_shared = shared || replicas > 1;
                const bool want_whole = !is_shared && !any_fewer && !label_decides;
                const std::string where = "combination " + std::to_string(combinations++);
                EXPECT_EQ(found.whole, want_whole) << where;
                if (found.whole) {
                  EXPECT_EQ(found.gpus, 8) << where;
                  EXPECT_EQ(found.contradiction, "") << where;
                  ++whole;
                }
                EXPECT_LE(found.gpus, 8) << where;
                // Two sources that know all GPUs and say different numbers.
                const std::int64_t by_replicas = replicas > 1 ? 2 : 0;
                const bool differ = any_fewer && any_agrees;
                if (differ && !is_shared) {
                  EXPECT_NE(found.contradiction, "") << where;
                }
                if (!found.contradiction.empty()) {
                  ++contradictions;
                  EXPECT_NE(found.contradiction.find("8 nvidia.com/gpu"), std::string::npos);
                  EXPECT_NE(found.contradiction.find("berth.dev/gpu-uuids"), std::string::npos);
                }
                if (by_replicas > 0) {
                  EXPECT_LE(found.gpus, by_replicas) << where;
                }
              }
            }
          }
        }
      }
    }
  }
  EXPECT_EQ(combinations, 972);
  EXPECT_GT(whole, 40);
  EXPECT_GT(contradictions, 40);
}

struct Row {
  const char* what;
  GpuEvidence said;
  bool whole;
  std::int64_t gpus;
  bool contradicts;
};

TEST(Inventory, DecidesByTheMostTrustedSource) {
  const std::array rows = {
      Row{"devices alone", {.devices = 4}, true, 4, false},
      Row{"three models, three UUIDs",
          {.devices = 3, .uuids = 3, .replicas = 1, .labelled = 1, .of_one_product = true},
          true,
          3,
          false},
      Row{"three models or three replicas",
          {.devices = 3, .replicas = 1, .labelled = 1, .of_one_product = true},
          false,
          1,
          true},
      Row{"two of one model and one of another",
          {.devices = 3, .labelled = 2, .of_one_product = true},
          true,
          3,
          false},
      Row{"the count of another vendor is of all", {.devices = 20, .labelled = 2}, false, 2, false},
      Row{"one UUID, four devices", {.devices = 4, .uuids = 1}, false, 1, false},
      Row{"one fell off the bus", {.devices = 8, .uuids = 7}, true, 8, false},
      Row{"a machine with one GPU", {.devices = 4, .machine = 1}, false, 1, false},
      Row{"a machine with 2 GPUs and 3 devices", {.devices = 3, .machine = 2}, false, 2, true},
      Row{"some GPUs of a machine are offered", {.devices = 4, .machine = 8}, true, 4, false},
      Row{"the same, and GFD sees one",
          {.devices = 4, .machine = 8, .labelled = 1, .of_one_product = true},
          false,
          1,
          true},
      Row{"UUIDs against the machine type",
          {.devices = 4, .uuids = 4, .machine = 1},
          false,
          1,
          true},
      Row{"replicas", {.devices = 16'384, .replicas = 16'384, .labelled = 1}, false, 1, false},
      Row{"replicas against UUIDs", {.devices = 16, .uuids = 2, .replicas = 4}, false, 2, true},
      Row{"replicas of a part of the machine's GPUs",
          {.devices = 8, .replicas = 4, .machine = 4},
          false,
          2,
          false},
      Row{"shared, nobody says how",
          {.devices = 16, .shared = true, .labelled = 4},
          false,
          4,
          false},
      Row{"shared by as many as there are GPUs",
          {.devices = 8, .shared = true, .labelled = 8},
          false,
          0,
          false},
      Row{"MIG devices", {.devices = 56, .labelled = 56, .parts = true}, true, 56, false},
      Row{"more MIG devices than a mask holds",
          {.devices = 112, .labelled = 112, .parts = true},
          true,
          112,
          false},
      Row{"shared MIG devices",
          {.devices = 112, .replicas = 2, .labelled = 56, .parts = true},
          false,
          56,
          false},
      Row{"65 devices and no word", {.devices = 65}, false, 0, true},
      Row{"a virtual node of 128 GPUs", {.devices = 128, .labelled = 128}, true, 128, false},
  };
  for (const Row& row : rows) {
    const GpuInventory found = TakeInventory(row.said);
    EXPECT_EQ(found.whole, row.whole) << row.what;
    EXPECT_EQ(found.gpus, row.gpus) << row.what;
    EXPECT_EQ(!found.contradiction.empty(), row.contradicts) << row.what << found.contradiction;
  }
}

// Nodes as they can be, and what is said of them: some sources are silent, GFD counts one model and
// may not know the plugin's configuration. One of them at least sees the GPUs.
TEST(Inventory, NeverHasMoreWholeGpusThanThereAre) {
  std::mt19937 random(7);
  const auto draw = [&random](int low, int high) {
    return std::uniform_int_distribution<int>(low, high)(random);
  };
  int too_many = 0, whole = 0, lost = 0;
  for (int node = 0; node < 100'000; ++node) {
    const int gpus = draw(1, 16), each = draw(0, 2) == 0 ? draw(2, 10) : 1;
    GpuEvidence said{.resource = "nvidia.com/gpu", .devices = std::int64_t{gpus} * each};
    if (draw(0, 1) == 1) said.uuids = draw(0, 9) == 0 && gpus > 1 ? gpus - 1 : gpus;
    if (draw(0, 3) == 0) said.registered = gpus;
    if (draw(0, 2) == 0) said.machine = gpus;
    if (draw(0, 1) == 1) {
      said.of_one_product = true;
      said.labelled = draw(0, 3) == 0 ? draw(1, gpus) : gpus;
      said.replicas = draw(0, 2) == 0 ? 1 : each;  // 1: it does not know the configuration
    }
    const bool somebody_sees =
        said.uuids + said.registered + said.machine + said.labelled > 0 || said.replicas > 1;
    if (!somebody_sees) continue;
    const GpuInventory found = TakeInventory(said);
    if (!found.whole) {
      lost += each == 1 ? 1 : 0;
      continue;
    }
    ++whole;
    too_many += found.gpus > gpus ? 1 : 0;
  }
  EXPECT_EQ(too_many, 0);
  EXPECT_GT(whole, 30'000);
  EXPECT_LT(lost, 6'000) << "whole GPUs that nobody gets whole: GFD's count alone is smaller";
}

}  // namespace
}  // namespace berth::inventory_test
