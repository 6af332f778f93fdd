// SPDX-License-Identifier: Apache-2.0
#include "bench/replay/missing_models.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace berth::replay::missing_models_test {
namespace {

TraceTask NamedTask(const std::string& name, int gpus, const std::string& spec) {
  return {name, 1000, 1024, gpus, gpus == 0 ? 0 : 1000, spec};
}

TEST(MissingModels, CountsTasksThatNameThemAndTasksThatFitNowhere) {
  const Workload workload{
      "w",
      {{"a", 1000, 1024, 8, "T4"}, {"b", 1000, 1024, 0, "A10"}},
      {NamedTask("1", 1, "T4"), NamedTask("2", 1, "A10|T4"), NamedTask("3", 2, "A10"),
       NamedTask("4", 1, "t4"), NamedTask("5", 0, "H100"), NamedTask("6", 1, "")}};
  const auto missing = MissingModels(workload);
  ASSERT_EQ(missing.size(), 2U);
  EXPECT_EQ(missing[0].model, "A10") << "the node of that model has no GPU";
  EXPECT_EQ(missing[0].tasks, 2U);
  EXPECT_EQ(missing[0].stuck, 1U);
  EXPECT_EQ(missing[1].model, "t4");
  EXPECT_EQ(MissingModelsJson(workload).dump(),
            R"([{"model":"A10","tasks":2,"stuck":1},{"model":"t4","tasks":1,"stuck":1}])");
}

TEST(MissingModels, AreEmptyWhenEveryModelIsThere) {
  EXPECT_TRUE(MissingModels({"w", {{"a", 1, 1, 1, "T4"}}, {NamedTask("1", 1, "T4|T4")}}).empty());
  EXPECT_EQ(MissingModelsJson({"w", {}, {}}).dump(), "[]");
}

}  // namespace
}  // namespace berth::replay::missing_models_test
