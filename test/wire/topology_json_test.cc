// SPDX-License-Identifier: Apache-2.0
#include "server/wire/node/topology_json.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "base/random.h"
#include "bench/machine_files/machine_file.h"
#include "bench/machine_files/show_topology.h"

namespace berth::wire::topology_json_test {
namespace {

constexpr const char* kText =
    "\tGPU0\tGPU1\tGPU2\tmlx5_0\tCPU Affinity\tNUMA Affinity\n"
    "GPU0\t X \tNV12\tSYS\tPIX\t0-23\t0\nGPU1\tNV12\t X \tSYS\tPIX\t0-23\t0\n"
    "GPU2\tSYS\tSYS\t X \tSYS\t24-47\t1\n";

std::string Refusal(const std::string& text) {
  const auto matrix = ParseTopologyFile(text);
  return matrix ? "no error" : matrix.error().message;
}

TEST(TopologyJson, PrintsTheKeysThatScriptsRead) {
  const auto json = nlohmann::json::parse(TopologyJson(*ParseTopologyFile(kText)));
  EXPECT_EQ(json, nlohmann::json::parse(R"({
    "gpus": ["GPU0", "GPU1", "GPU2"], "nics": ["mlx5_0"],
    "links": [["X", "NV12", "SYS"], ["NV12", "X", "SYS"], ["SYS", "SYS", "X"]],
    "gpu_nic": [["PIX"], ["PIX"], ["SYS"]], "cpu_affinity": ["0-23", "0-23", "24-47"],
    "numa_affinity": ["0", "0", "1"], "warnings": []})"));
}

TEST(TopologyJson, ReadsPcieRelationsBesideNvlinks) {
  const auto matrix = ParseTopologyFile(
      R"({"gpus": 3, "pcie": [["X","PHB",null],["PHB","X","SYS"],[null,"SYS","X"]],
          "nvlinks": [[0,2,1],[2,0,0],[1,0,0]]})");
  ASSERT_TRUE(matrix) << matrix.error().message;
  EXPECT_EQ(matrix->link(0, 1), (Link{LinkType::kPhb, LinkType::kNvlink, 2}));
  EXPECT_EQ(matrix->link(2, 0), (Link{LinkType::kUnknown, LinkType::kNvlink, 1}));
  EXPECT_EQ(matrix->link(1, 2), (Link{LinkType::kSys, LinkType::kUnknown, 0}));
  const auto again = ParseTopologyAnnotation(*TopologyAnnotation(*matrix));
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(again->cells, matrix->cells);
}

TEST(TopologyJson, TheAnnotationIsCompactAndReadsBack) {
  const LinkMatrix matrix = *ParseTopologyFile(kText);
  const std::string annotation = *TopologyAnnotation(matrix);
  EXPECT_EQ(annotation, R"({"version":1,"gpus":3,"cells":["NV12","SYS","PIX"],"links":"01/1",)"
                        R"("numa":["0","0","1"],"cpus":["0-23","0-23","24-47"],"nics":["mlx5_0"],)"
                        R"("nic_links":"2/2/1"})");
  for (const auto& again : {ParseTopologyAnnotation(annotation), ParseTopologyFile(annotation)}) {
    ASSERT_TRUE(again) << again.error().message;
    EXPECT_EQ(again->cells, matrix.cells);
    EXPECT_EQ(again->nics, matrix.nics);
    EXPECT_EQ(again->numa_affinity, matrix.numa_affinity);
    EXPECT_EQ(again->cpu_affinity, matrix.cpu_affinity);
  }
}

TEST(TopologyJson, TheAnnotationOfAMatrixWithoutItsLastRowsReadsBack) {
  const std::string text = "\tGPU0\tGPU1\tGPU2\nGPU0\tX\tNV4\tSYS\n";
  const LinkMatrix matrix = *ParseTopologyFile(text);
  EXPECT_FALSE(matrix.link(1, 2).known());
  const auto again = ParseTopologyAnnotation(*TopologyAnnotation(matrix));
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(again->cells, matrix.cells);
}

TEST(TopologyJson, RefusesWithPlaceAndReason) {
  const std::pair<std::string, std::string> cases[] = {
      {"", "want nvidia-smi topo -m, NCCL topology XML or JSON, got nothing"},
      {"{", "want JSON, got something else"},
      {R"({"gpus": 10000, "pcie": []})", "gpus: want 1..64, got 10000"},
      {R"({"gpus": 99999999999999999999, "pcie": []})", "gpus: want their number, got 1e+20"},
      {R"({"gpus": -1, "pcie": []})", "gpus: want 1..64, got -1"},
      {R"({"pcie": []})", "gpus: want their number, got nothing"},
      {R"({"gpus": 2})", "want pcie or nvlinks"},
      {R"({"gpus": 2, "pcies": []})", "pcies: unknown key"},
      {R"({"gpus": 2, "pcie": [["X","PHB"]]})", "pcie: want 2 rows"},
      {R"({"gpus": 2, "pcie": [["X","PHB"],["PHB"]]})", "pcie[1]: want 2 cells"},
      {R"({"gpus": 2, "pcie": [["X","fast"],["PHB","X"]]})",
       "pcie[0][1]: want PIX, PXB, PHB, NODE, SYS or null, got \"fast\""},
      {R"({"gpus": 2, "pcie": [["X",[[[]]]],["PHB","X"]]})",
       "pcie[0][1]: want PIX, PXB, PHB, NODE, SYS or null, got array"},
      {R"({"gpus": 2, "nvlinks": [[0,NaN],[0,0]]})", "want JSON, got something else"},
      {R"({"gpus": 2, "nvlinks": [[0,1e300],[0,0]]})", "nvlinks[0][1]: want 0..36, got 1e+300"},
      {R"({"gpus": 2, "nvlinks": [[0,37],[37,0]]})", "nvlinks[0][1]: want 0..36, got 37"},
      {R"({"gpus": 2, "nvlinks": [[1,0],[0,0]]})", "nvlinks[0][0]: want 0..0, got 1"},
      {R"({"gpus": 2, "nvlinks": [[0,2],[1,0]]})",
       "GPU1 to GPU0: want NV2, as GPU0 to GPU1 is, got NV1"},
      {R"({"version": 2, "gpus": 2})", "version: want 1, got 2"},
      {R"({"version": 1, "gpus": 2, "cells": ["NV4"], "links": ""})",
       "links: GPU0 to GPU1: want a digit that counts in cells"},
      {R"({"version": 1, "gpus": 2, "cells": ["NV4"], "links": "1"})",
       "links: GPU0 to GPU1: want a digit that counts in cells"},
      {R"({"version": 1, "gpus": 2, "cells": ["NV4"], "links": "00"})",
       "links: want no more than the GPUs have"},
      {R"({"version": 1, "gpus": 2, "cells": ["SYS+NV"], "links": "0"})",
       "cells[0]: want a link such as NV12, PIX or SYS+NV2, got \"SYS+NV\""}};
  for (const auto& [text, message] : cases) EXPECT_EQ(Refusal(text), message) << text;
  EXPECT_EQ(Refusal("{\"gpus\": 2, \"pcie\": [[0, " + std::string(400'000, '[') +
                    std::string(400'000, ']') + "], [0, 0]]}"),
            "pcie[0][1]: want PIX, PXB, PHB, NODE, SYS or null, got array");
}

TEST(TopologyJson, WithstandsWhateverIsDoneToItsInput) {
  const std::string inputs[] = {
      kText, *TopologyAnnotation(*ParseTopologyFile(kText)),
      R"({"gpus": 2, "pcie": [["X","PHB"],["PHB","X"]], "nvlinks": [[0,1],[1,0]]})",
      "<system><cpu numaid=\"0\" affinity=\"f\"><pci busid=\"a\" class=\"0x0302\"><gpu dev=\"0\">"
      "<nvlink target=\"b\" count=\"2\"/></gpu></pci><pci busid=\"b\" class=\"0x0302\"/></cpu>"
      "</system>",
      "| | GPU0 | GPU1 |\n|GPU0|X|SYS|\n|GPU1|SYS|X|\n"};
  Random random(11);
  for (int round = 0; round < 20'000; ++round) {
    std::string text = inputs[random.Below(std::size(inputs))];
    for (std::uint64_t edits = 1 + random.Below(4); edits > 0; --edits) {
      const std::size_t at = random.Below(text.size());
      const std::size_t from = random.Below(text.size());
      switch (random.Below(4)) {
        case 0:
          text[at] = static_cast<char>(random.Below(256));
          break;
        case 1:
          text.erase(at, random.Below(8) + 1);
          break;
        case 2:
          text.insert(at, text.substr(from, 1 + random.Below(20)));
          break;
        default:
          text.resize(at + 1);
      }
      if (text.empty()) text = " ";
    }
    const auto matrix = ParseTopologyFile(text);
    if (!matrix) {
      ASSERT_FALSE(matrix.error().message.empty());
      continue;
    }
    const auto again = ParseTopologyAnnotation(*TopologyAnnotation(*matrix));
    ASSERT_TRUE(again) << again.error().message << "\n" << text;
    ASSERT_EQ(again->cells, matrix->cells) << text;
  }
}

}  // namespace
}  // namespace berth::wire::topology_json_test
