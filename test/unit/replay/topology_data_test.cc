// SPDX-License-Identifier: Apache-2.0
//
// The matrices and allocation cases of real machines in BERTH_DATA/topologies.
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "base/file.h"
#include "bench/machine_files/machine_file.h"
#include "bench/machine_files/show_topology.h"
#include "bench/rules/choice_policy.h"
#include "server/wire/node/topology_json.h"
#include "test/support/data_dir.h"
#include "topology/links/gpu_links.h"

namespace berth::test::topology_data_test {
namespace {

using replay::ChoicePolicy;
using replay::ChoiceRequest;
using Json = nlohmann::json;

std::filesystem::path Folder() { return DataDir() / "topologies"; }
Json Index(const char* file) { return Json::parse(*ReadFile((Folder() / file).string())); }

GpuMask MaskOf(const Json& gpus) {
  GpuMask mask = 0;
  for (const Json& gpu : gpus) mask |= GpuMask{1} << gpu.get<int>();
  return mask;
}

// nvidia-best-effort of "best_effort", and so on.
ChoicePolicy PolicyOf(std::string name) {
  for (char& c : name) c = c == '_' ? '-' : c;
  return *replay::ParseChoicePolicy("nvidia-" + name);
}

TEST(TopologyData, EveryMatrixReadsAsItsIndexSays) {
  BERTH_NEEDS_DATA(Folder());
  int read = 0;
  for (const Json& want : Index("index.json")) {
    const std::string name = want["name"];
    const auto matrix = ParseTopologyFile(*ReadFile((Folder() / (name + ".txt")).string()));
    ASSERT_TRUE(matrix) << name << ": " << matrix.error().message;
    const Json found = Json::parse(TopologyJson(*matrix));
    EXPECT_EQ(found["links"], want["gpu_matrix"]) << name;
    for (const char* key : {"gpus", "nics", "gpu_nic", "cpu_affinity", "numa_affinity"}) {
      EXPECT_EQ(found[key], want[key]) << name << ": " << key;
    }
    std::set<std::string> warnings;  // ours has some with details more
    for (const std::string warning : found["warnings"]) {
      if (warning.find(':') == std::string::npos) warnings.insert(warning);
    }
    EXPECT_EQ(warnings, want["warnings"].get<std::set<std::string>>()) << name;
    ++read;
  }
  EXPECT_GT(read, 60);
}

TEST(TopologyData, EveryNcclTopologyReadsOrSaysWhyNot) {
  BERTH_NEEDS_DATA(Folder());
  for (const Json& want : Index("nccl_xml/index.json")) {
    const std::string file = want["file"];
    const auto matrix = ParseTopologyFile(*ReadFile((Folder() / "nccl_xml" / file).string()));
    const int gpus = want["summary"].is_object() ? want["summary"]["gpus"].get<int>() : 0;
    EXPECT_EQ(matrix ? matrix->gpu_count() : 0, gpus) << file;
    EXPECT_TRUE(matrix || matrix.error().message.starts_with("want ")) << file;
  }
}

TEST(TopologyData, TheFourNumberingsOfTheCubeMeshShareTheirTable) {
  BERTH_NEEDS_DATA(Folder());
  WiringTables tables;
  for (const char* name : {"dgx1_v100_no_nic", "dgx1_v100_4ib", "v100_cubemesh_hugectr_box",
                           "v100_cubemesh_alibaba_ecs"}) {
    const auto matrix =
        ParseTopologyFile(*ReadFile((Folder() / (std::string(name) + ".txt")).string()));
    ASSERT_TRUE(matrix) << name;
    const WiringSets sets = tables.SetsOf(WiringOf(*matrix));
    EXPECT_EQ(sets.quality(sets.Choose(0xFF, 2)), kPerfect) << name;
  }
  EXPECT_LT(tables.kinds(), 4u);
}

class AllocatorCases : public testing::Test {
 protected:
  void SetUp() override {
    BERTH_NEEDS_DATA(Folder());
    cases_ = Index("gpuallocator_cases.json");
    for (const auto& [name, topology] : cases_["topologies"].items()) {
      auto matrix = ParseTopologyFile(topology.dump());
      ASSERT_TRUE(matrix) << name << ": " << matrix.error().message;
      matrices_[name] = *std::move(matrix);
    }
  }
  GpuMask Chosen(const Json& topology, const Json& policy, const ChoiceRequest& request) {
    const LinkMatrix& matrix = matrices_.at(topology.get<std::string>());
    return ChooseGpus(matrix, tables_.SetsOf(WiringOf(matrix)), PolicyOf(policy), request).gpus;
  }

  Json cases_;
  std::map<std::string, LinkMatrix> matrices_;
  WiringTables tables_;
};

TEST_F(AllocatorCases, SingleChoicesAreThoseOfGoGpuallocator) {
  for (const char* list : {"upstream_single", "derived_single"}) {
    for (const Json& asked : cases_[list]) {
      const ChoiceRequest request{MaskOf(asked["available"]), MaskOf(asked["required"]),
                                  asked["size"]};
      EXPECT_EQ(Chosen(asked["topology"], asked["policy"], request), MaskOf(asked["expected"]))
          << asked.dump();
    }
  }
}

TEST_F(AllocatorCases, SequencesAreThoseOfGoGpuallocator) {
  for (const Json& sequence : cases_["upstream_sequences"]) {
    const LinkMatrix& matrix = matrices_.at(sequence["topology"].get<std::string>());
    GpuMask free = (GpuMask{1} << matrix.gpu_count()) - 1;
    for (const Json& step : sequence["steps"]) {
      const GpuMask chosen =
          Chosen(sequence["topology"], sequence["policy"], {free, 0, step["size"]});
      EXPECT_EQ(chosen, MaskOf(step["expected"])) << sequence["id"] << step.dump();
      free &= ~chosen;
    }
  }
}

}  // namespace
}  // namespace berth::test::topology_data_test
