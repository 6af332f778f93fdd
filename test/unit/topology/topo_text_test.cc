// SPDX-License-Identifier: Apache-2.0
#include "bench/machine_files/topo_text.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace berth::topo_text_test {
namespace {

using Texts = std::vector<std::string>;

LinkMatrix Parsed(const std::string& text) {
  auto matrix = ParseTopoText(text);
  EXPECT_TRUE(matrix) << matrix.error().message << "\n" << text;
  return matrix ? *std::move(matrix) : LinkMatrix{};
}

std::string Refusal(const std::string& text) {
  const auto matrix = ParseTopoText(text);
  return matrix ? "no error" : matrix.error().message;
}

Texts Row(const LinkMatrix& matrix, int gpu) {
  Texts row;
  for (int b = 0; b < matrix.device_count(); ++b) row.push_back(LinkText(matrix.link(gpu, b)));
  return row;
}

TEST(TopoText, ReadsTheTextAsNvidiaSmiPrintsIt) {
  const LinkMatrix matrix = Parsed(
      "\x1b[4m\tGPU0\tGPU1\tNIC0\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\x1b[0m\n"
      "GPU0\t X \tNV12\tPIX\t0-23,48-71\t0\t\tN/A\n"
      "GPU1\tNV12\t X \tSYS\t\t1\t\tN/A\n"
      "NIC0\tPIX\tSYS\t X \t\t\t\t\n\n"
      "Legend:\n\n  X    = Self\n  NV#  = Connection traversing a bonded set of # NVLinks\n\n"
      "NIC Legend:\n\n  NIC0: mlx5_gdr_0\n");
  EXPECT_EQ(matrix.gpus, (Texts{"GPU0", "GPU1"}));
  EXPECT_EQ(matrix.nics, Texts{"NIC0"});
  EXPECT_EQ(matrix.nic_devices, Texts{"mlx5_gdr_0"});
  EXPECT_EQ(Row(matrix, 0), (Texts{"?", "NV12", "PIX"}));
  EXPECT_EQ(matrix.cpu_affinity, (Texts{"0-23,48-71", ""}));
  EXPECT_EQ(matrix.numa_affinity, (Texts{"0", "1"}));
  EXPECT_EQ(matrix.warnings, Texts{"ansi"});
}

TEST(TopoText, ReadsGluedNamesAndCells) {
  const LinkMatrix matrix = Parsed(
      "        GPU0GPU1    NIC7NIC8  CPU Affinity    NUMA Affinity\n"
      "GPU0     X      SYSSYS  NODE    0-3   0\n"
      "GPU1    SYS      X      PIXNODE 4-7   1\n");
  EXPECT_EQ(Row(matrix, 0), (Texts{"?", "SYS", "SYS", "NODE"}));
  EXPECT_EQ(Row(matrix, 1), (Texts{"SYS", "?", "PIX", "NODE"}));
  EXPECT_EQ(matrix.numa_affinity, (Texts{"0", "1"}));
  EXPECT_EQ(matrix.warnings, (Texts{"glued-cells", "glued-header"}));
}

TEST(TopoText, ReadsAffinityColumnsWhereOneIsMissingOrGluedToTheOther) {
  const LinkMatrix matrix = Parsed(
      "        GPU0    GPU1    GPU2    CPU Affinity    NUMA Affinity   GPU NUMA ID\n"
      "GPU0     X      PHB     PHB     0-45,92-1370                    N/A\n"
      "GPU1    PHB      X      PHB                     1               N/A\n"
      "GPU2    PHB     PHB      X      6,14,22,30      0,2-17          N/A\n");
  EXPECT_EQ(matrix.cpu_affinity, (Texts{"0-45,92-137", "", "6,14,22,30"}));
  EXPECT_EQ(matrix.numa_affinity, (Texts{"0", "1", "0,2-17"}));
}

TEST(TopoText, ReadsCommentsMarkdownAndOldWords) {
  EXPECT_EQ(Row(Parsed("#\tGPU0\tGPU1\tCPU Affinity\n#GPU0\t X \tSOC\t0\n#GPU1\tSOC\t X \t1\n"), 0),
            (Texts{"?", "SYS"}));
  const LinkMatrix markdown = Parsed(
      "| CPU Affinity | NUMA Affinity |        | GPU0 | GPU1 | mlx5_0 |\n"
      "|--------------|---------------|--------|------|------|--------|\n"
      "| 24-31,56-63  | 3             | GPU0   | X    | NV4  | SYS    |\n"
      "| 16-23,48-55  | 2             | GPU1   | NV4  | X    | PHB    |\n"
      "|              |               | mlx5_0 | SYS  | PHB  | X      |\n");
  EXPECT_EQ(Row(markdown, 1), (Texts{"NV4", "?", "PHB"}));
  EXPECT_EQ(markdown.numa_affinity, (Texts{"3", "2"}));
  EXPECT_EQ(markdown.warnings, Texts{"markdown-table"});
  EXPECT_EQ(Row(Parsed("  GPU0  GPU1\nGPU0   0   XGMI\nGPU1   XGMI  0\n"), 0),
            (Texts{"?", "XGMI"}));
}

TEST(TopoText, CompletesMissingRowsBySymmetryAndSaysSo) {
  const LinkMatrix matrix = Parsed("      GPU0  GPU1  GPU2  mlx5_0\nGPU0   X    NV6   NV6   PIX\n");
  EXPECT_EQ(Row(matrix, 1), (Texts{"NV6", "?", "?", "?"}));
  EXPECT_EQ(matrix.warnings, Texts{"rows-missing: GPU1 GPU2"});
}

TEST(TopoText, NotesThatTheDriverRefusesPeerAccess) {
  const LinkMatrix matrix = Parsed(
      "\tGPU0\tGPU1\nGPU0\t X \tPHB\nGPU1\tPHB\t X \n# nvidia-smi topo -p2p rw\n"
      " \tGPU0\tGPU1\t\n GPU0\tX\tGNS\t\n GPU1\tGNS\tX\t\n");
  EXPECT_EQ(matrix.warnings, Texts{"no-peer-access: GNS in the p2p row of GPU0"});
}

TEST(TopoText, ErrorsNameLineAndCellAndWhatWasWanted) {
  const std::string wanted = "want X, NV#, PIX, PXB, PHB, NODE, SYS, SOC, XGMI, XL or HCCS, got ";
  const std::pair<std::string, std::string> cases[] = {
      {"", "want a line with GPU0 GPU1 ..., got none"},
      {"nonsense\n", "want a line with GPU0 GPU1 ..., got none"},
      {"\tGPU0\tGPU1\n", "want a row of each GPU below line 1"},
      {"\tGPU0\tGPU1\nGPU0\tX\tNaN\n", "line 2, GPU0 to GPU1: " + wanted + "\"NaN\""},
      {"\tGPU0\tGPU1\nGPU0\tX\tNV\n", "line 2, GPU0 to GPU1: " + wanted + "\"NV\""},
      {"\tGPU0\tGPU1\nGPU0\tX\tNV0\n", "line 2, GPU0 to GPU1: " + wanted + "\"NV0\""},
      {"\tGPU0\tGPU1\nGPU0\tX\tNV99\n", "line 2, GPU0 to GPU1: " + wanted + "\"NV99\""},
      {"\tGPU0\tGPU1\nGPU0\tX\n", "line 2, GPU0 to GPU1: " + wanted + "nothing"},
      {"\tGPU0\tGPU1\nGPU0\tX\tX\n", "line 2, GPU0 to GPU1: want a link, got \"X\""},
      {"\tGPU0\tGPU1\nGPU0\tSYS\tX\n", "line 2, GPU0 to GPU0: want X, got \"SYS\""},
      {"\tGPU0\tGPU1\nGPU0\tX\tNV2\nGPU1\tNV1\tX\n",
       "line 3, GPU1 to GPU0: want NV2, as GPU0 to GPU1 is, got NV1"},
      {"\tGPU0\tGPU1\nGPU0\tX\tNV2\nGPU0\tX\tNV2\n",
       "line 3: row GPU0 is there twice, first in line 2"},
      {"\tGPU0\tGPU1\nGPU0\tX\tNV2\nGPU7\tNV2\tX\n",
       "line 3: row GPU7 is none of the 2 devices of line 1"},
      {"\tGPU0\tCPU Affinity\nGPU0\tX\tall\n",
       "line 2, affinity of GPU0: want a list such as 0-19,40-59, got \"all\""}};
  for (const auto& [text, message] : cases) EXPECT_EQ(Refusal(text), message) << text;
}

TEST(TopoText, RefusesWhatIsTooLarge) {
  std::string header;
  for (int gpu = 0; gpu < 10'000; ++gpu) header += "\tGPU" + std::to_string(gpu);
  EXPECT_EQ(Refusal(header + "\nGPU0\tX\n"), "line 1: want at most 64 GPUs, got 10000");
  EXPECT_EQ(Refusal(std::string(kMaxTopologyBytes + 1, ' ')),
            "want at most 1048576 bytes, got 1048577");
}

TEST(NumaNodeOf, IsTheNodeOfTheCpusWhereOneIsNamed) {
  EXPECT_EQ(NumaNodeOf("3"), 3);
  EXPECT_EQ(NumaNodeOf("0,2-17"), 0);
  for (const char* unknown : {"", "N/A", "0-7", "-1", "99999999999"}) {
    EXPECT_EQ(NumaNodeOf(unknown), std::nullopt) << unknown;
  }
}

}  // namespace
}  // namespace berth::topo_text_test
