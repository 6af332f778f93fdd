// SPDX-License-Identifier: Apache-2.0
#include "bench/machine_files/nccl_xml.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace berth::nccl_xml_test {
namespace {

using Texts = std::vector<std::string>;

std::string Gpu(const std::string& bus, const std::string& inside) {
  return "<pci busid=\"" + bus + "\" class=\"0x030200\">" + inside + "</pci>";
}
std::string Bridge(const std::string& bus, const std::string& inside) {
  return "<pci busid=\"" + bus + "\" class=\"0x060400\">" + inside + "</pci>";
}
std::string System(const std::string& inside) {
  return "<system version=\"1\"><cpu numaid=\"1\" affinity=\"00000001,0000000f\">" + inside +
         "</cpu></system>";
}

std::string Refusal(const std::string& text) {
  const auto matrix = ParseNcclXml(text);
  return matrix ? "no error" : matrix.error().message;
}

Texts Row(const LinkMatrix& matrix, int gpu) {
  Texts row;
  for (int b = 0; b < matrix.device_count(); ++b) row.push_back(LinkText(matrix.link(gpu, b)));
  return row;
}

TEST(NcclXml, TakesRelationsFromTheTree) {
  const auto matrix = ParseNcclXml(
      "<system><cpu numaid=\"0\" affinity=\"0000000f\">" +
      Bridge("s",
             Bridge("b", Gpu("1", "") + Gpu("2", "")) + Gpu("3", "") +
                 "<pci busid=\"n\" class=\"0x020700\"><nic><net name=\"mlx5_0\"/></nic></pci>") +
      Gpu("4", "") + "</cpu><cpu numaid=\"1\" affinity=\"00000001,000000f0\">" + Gpu("5", "") +
      "</cpu></system>");
  ASSERT_TRUE(matrix) << matrix.error().message;
  EXPECT_EQ(matrix->nics, Texts{"mlx5_0"});
  EXPECT_EQ(Row(*matrix, 0), (Texts{"?", "PIX", "PXB", "PHB", "SYS", "PXB"}));
  EXPECT_EQ(matrix->numa_affinity, (Texts{"0", "0", "0", "0", "1"}));
  EXPECT_EQ(matrix->cpu_affinity[0], "0-3");
  EXPECT_EQ(matrix->cpu_affinity[4], "4-7,32");
  EXPECT_EQ(matrix->warnings, Texts{"no-fabric-listed"});
}

TEST(NcclXml, ReadsNvlinksBetweenGpusAndThroughSwitches) {
  const std::string to_switch = "<nvlink target=\"f:0\" count=\"9\" tclass=\"0x068000\"/>";
  const auto matrix = ParseNcclXml(System(
      Gpu("a", "<gpu dev=\"1\">" + to_switch + to_switch + "</gpu>") +
      Gpu("b", "<gpu dev=\"0\">" + to_switch + "</gpu>") +
      Gpu("c", "<gpu dev=\"2\"><nvlink target=\"d\" count=\"4\" tclass=\"0x030200\"/></gpu>") +
      Gpu("d", "<gpu dev=\"3\"><nvlink target=\"c\" count=\"4\" tclass=\"0x030200\"/></gpu>")));
  ASSERT_TRUE(matrix) << matrix.error().message;
  EXPECT_EQ(Row(*matrix, 0), (Texts{"?", "NV9", "PHB", "PHB"}));
  EXPECT_EQ(Row(*matrix, 2), (Texts{"PHB", "PHB", "?", "NV4"}));
}

TEST(NcclXml, RefusesWithAReason) {
  std::string deep, many;
  for (int i = 0; i < 100; ++i) deep += "<pci busid=\"b\" class=\"0x060400\">";
  for (int i = 0; i < 10'000; ++i) many += Gpu(std::to_string(i), "");
  const std::pair<std::string, std::string> cases[] = {
      {"<graphs/>", "want <system>, got <graphs>"},
      {"<system/>", "want a pci of class 0x03 or 0x12, a GPU, got none"},
      {System(many), "want at most 64 GPUs, got more"},
      {System(Gpu("a", "<gpu dev=\"NaN\"/>")),
       "pci a: gpu.dev: want an integer from 0 to 1000000, got \"NaN\""},
      {System(Gpu("a", "<gpu dev=\"0\"><nvlink target=\"b\" count=\"99\"/></gpu>")),
       "pci a: nvlink.count: want an integer from 0 to 36, got \"99\""},
      {System(Gpu("a", "<gpu><nvlink target=\"b\" count=\"2\"/></gpu>") +
              Gpu("b", "<gpu><nvlink target=\"a\" count=\"1\"/></gpu>")),
       "GPU1 to GPU0: want NV2, as GPU0 to GPU1 is, got NV1"}};
  for (const auto& [text, message] : cases) EXPECT_EQ(Refusal(text), message);
  EXPECT_NE(Refusal(System(deep)), "no error");
  EXPECT_TRUE(Refusal("<system>").starts_with("offset "));
}

}  // namespace
}  // namespace berth::nccl_xml_test
