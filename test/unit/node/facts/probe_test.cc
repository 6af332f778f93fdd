// SPDX-License-Identifier: Apache-2.0
#include "node/facts/probe.h"

#include <gtest/gtest.h>

#include <string>

#include "server/wire/node/agent_annotations.h"
#include "server/wire/node/mig_json.h"
#include "server/wire/node/topology_json.h"
#include "test/unit/node/facts/made_up_machine.h"

namespace berth::test::probe_test {
namespace {

using node::NodeFacts;

const std::string kUuids = "berth.dev/gpu-uuids", kTopology = "berth.dev/topology",
                  kMig = "berth.dev/mig", kModels = "berth.dev/gpu-models";

// Four GPUs in pairs by two NVLinks, a pair per NUMA node, one NIC beside each pair.
struct Pairs : MadeUpMachine {
  Pairs() {
    for (int i = 0; i < 4; ++i) {
      const std::string numa = std::to_string(i / 2), n = std::to_string(i);
      Device("pci0000:" + numa + "0/0000:" + numa + "0:01.0/0000:" + numa + "1:00.0/0000:" + numa +
                 "2:0" + n + ".0",
             "0000:" + numa + n + ":00.0", i / 2, i / 2 == 0 ? "0-7" : "8-15");
      nvml_ += "gpu GPU-" + n + " 00000000:" + numa + n + ":00.0\n";
    }
    for (const std::string numa : {"0", "1"}) {
      Device("pci0000:" + numa + "0/0000:" + numa + "0:01.0/0000:" + numa + "1:00.0/0000:" + numa +
                 "2:08.0",
             "0000:" + numa + "9:00.0", std::stoi(numa));
      Rdma("mlx5_" + numa, "0000:" + numa + "9:00.0");
    }
    nvml_ += "link 0 1 2\nlink 2 3 2\nnear 0 1 10\nnear 2 3 10\n";
    Describe(nvml_);
  }

  void Add(const std::string& lines) { Describe(nvml_ += lines); }

 private:
  std::string nvml_;
};

LinkMatrix MatrixOf(const NodeFacts& facts) {
  const auto found = facts.annotations.find(kTopology);
  if (found == facts.annotations.end()) return {};
  auto matrix = wire::ParseTopologyAnnotation(found->second);
  EXPECT_TRUE(matrix) << (matrix ? "" : matrix.error().message);
  return matrix ? *matrix : LinkMatrix();
}

std::string Cell(const LinkMatrix& matrix, int a, int b) {
  return a < matrix.device_count() ? LinkText(matrix.link(a, b)) : "none";
}

TEST(Probe, DescribesGpusLinksAndNicsAsBerthReadsThem) {
  const Pairs machine;
  const NodeFacts facts = machine.Probe();
  EXPECT_TRUE(facts.problems.empty()) << facts.problems[0];
  ASSERT_EQ(facts.gpus.size(), 4u);
  EXPECT_EQ(facts.gpus[2], (node::GpuFact{2, "GPU-2", "0000:12:00.0", 1}));
  EXPECT_EQ(facts.annotations.at(kUuids), "GPU-0,GPU-1,GPU-2,GPU-3");
  const LinkMatrix matrix = MatrixOf(facts);
  ASSERT_EQ(matrix.gpu_count(), 4);
  EXPECT_EQ(Cell(matrix, 0, 1), "NV2");
  EXPECT_EQ(matrix.link(0, 1).pcie, LinkType::kPix);
  EXPECT_EQ(Cell(matrix, 1, 2), "SYS");
  EXPECT_EQ(matrix.nics, (std::vector<std::string>{"mlx5_0", "mlx5_1"}));
  EXPECT_EQ(LinkText(matrix.gpu_nic(0, 0)), "PIX");
  EXPECT_EQ(LinkText(matrix.gpu_nic(0, 1)), "SYS");
  EXPECT_EQ(matrix.numa_affinity, (std::vector<std::string>{"0", "0", "1", "1"}));
  EXPECT_EQ(matrix.cpu_affinity[3], "8-15");
  EXPECT_FALSE(facts.annotations.contains(kMig));
}

// A workstation with three models.
struct Workstation : Pairs {
  Workstation() {
    Describe(lines_ + "is 1 24576 8 6 NVIDIA GeForce RTX 3090\n" +
             "is 2 24564 8 9 NVIDIA GeForce RTX 4090\n");
  }
  void Also(const std::string& lines) const {
    Describe(lines_ + "is 1 24576 8 6 NVIDIA GeForce RTX 3090\n" + lines);
  }

 private:
  const std::string lines_ =
      "name NVIDIA GeForce RTX 3080\ngpu GPU-a 0:01:00.0\ngpu GPU-b 0:02:00.0\n"
      "gpu GPU-c 0:03:00.0\nis 0 10240 8 6 NVIDIA GeForce RTX 3080\n";
};

TEST(Probe, SaysWhatEachGpuIsWhereTheyDiffer) {
  const Workstation machine;
  const NodeFacts facts = machine.Probe();
  EXPECT_TRUE(facts.problems.empty()) << facts.problems[0];
  EXPECT_EQ(facts.annotations.at(kModels),
            R"([{"uuid":"GPU-a","model":"NVIDIA-GeForce-RTX-3080","memory_mib":10240,)"
            R"("compute_capability":"8.6"},{"uuid":"GPU-b","model":"NVIDIA-GeForce-RTX-3090",)"
            R"("memory_mib":24576,"compute_capability":"8.6"},{"uuid":"GPU-c",)"
            R"("model":"NVIDIA-GeForce-RTX-4090","memory_mib":24564,)"
            R"("compute_capability":"8.9"}])");
  const auto read = wire::ParseGpuKinds(facts.annotations.at(kModels));
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->at(2).capability, 8009);
}

TEST(Probe, OfGpusThatAreAlikeSaysNothingMore) {
  const Pairs machine;
  EXPECT_FALSE(machine.Probe().annotations.contains(kModels));
}

TEST(Probe, OfAGpuThatDoesNotSayWhatItIsPublishesNoModels) {
  const Workstation machine;
  machine.Also("is 2 0 8 9 NVIDIA GeForce RTX 4090\n");
  const NodeFacts facts = machine.Probe();
  EXPECT_TRUE(facts.annotations.contains(kUuids));
  EXPECT_FALSE(facts.annotations.contains(kModels));
  ASSERT_EQ(facts.problems.size(), 1U);
  EXPECT_EQ(facts.problems[0], "NVML: GPU 2 does not say its name or its memory");
}

TEST(Probe, SaysTheWholeMemoryOfGpusThatArePartitioned) {
  const Workstation machine;
  machine.Also("is 2 81920 8 0 NVIDIA A100-SXM4-80GB\nmode 2\nmig 2 0 1g.10gb MIG-a\n");
  const NodeFacts facts = machine.Probe();
  EXPECT_EQ(facts.annotations.at(kUuids), "GPU-a,GPU-b");
  const auto read = wire::ParseGpuKinds(facts.annotations.at(kModels));
  ASSERT_TRUE(read) << read.error().message;
  ASSERT_EQ(read->size(), 3U);
  EXPECT_EQ(read->at(2).uuid, "GPU-c");
  EXPECT_EQ(read->at(2).memory_mib, 81920);
  machine.Also("is 2 0 8 0 NVIDIA A100-SXM4-80GB\nmode 2\nmig 2 0 1g.10gb MIG-a\n");
  const NodeFacts hidden = machine.Probe();  // the memory of such a GPU takes a right
  EXPECT_TRUE(hidden.problems.empty()) << hidden.problems[0];
  EXPECT_EQ(wire::ParseGpuKinds(hidden.annotations.at(kModels)).value().size(), 2U);
}

TEST(Probe, CountsLinksThroughASwitchAndOnlyActiveOnes) {
  MadeUpMachine machine;
  machine.Describe(
      "gpu GPU-0 0:01:00.0\ngpu GPU-1 0:02:00.0\ngpu GPU-2 0:03:00.0\n"
      "switch 0 18\nswitch 1 18\nswitch 2 18\ndown 2 0\ndown 2 5\n");
  const LinkMatrix matrix = MatrixOf(machine.Probe());
  EXPECT_EQ(Cell(matrix, 0, 1), "NV18");
  EXPECT_EQ(Cell(matrix, 0, 2), "NV16");
}

TEST(Probe, OfAnOldDriverPublishesNoLinksRatherThanHalfOfThem) {
  const Pairs machine;
  const NodeFacts facts = machine.Probe("fake_nvml_old");
  EXPECT_EQ(facts.gpus.size(), 4u);
  EXPECT_TRUE(facts.annotations.contains(kUuids));
  EXPECT_FALSE(facts.annotations.contains(kTopology));
  ASSERT_EQ(facts.problems.size(), 1u);
  EXPECT_EQ(facts.problems[0], "NVML: this driver does not say which NVLinks there are");
}

TEST(Probe, OfALostGpuKeepsTheNumbersOfTheOthersAndPublishesNoLists) {
  Pairs machine;
  machine.Describe("gpu GPU-0 0:01:00.0\nfail nvmlDeviceGetUUID 15\n");
  NodeFacts facts = machine.Probe();
  EXPECT_TRUE(facts.gpus.empty());
  EXPECT_TRUE(facts.annotations.empty());
  EXPECT_EQ(facts.problems[0], "NVML: GPU 0: GPU is lost");
}

TEST(Probe, WhereLinksFailPublishesTheGpusWithoutThem) {
  Pairs machine;
  machine.Add("fail nvmlDeviceGetNvLinkState 15\n");
  const NodeFacts facts = machine.Probe();
  EXPECT_TRUE(facts.annotations.contains(kUuids));
  EXPECT_FALSE(facts.annotations.contains(kTopology));
  EXPECT_EQ(facts.problems[0], "NVML: GPU 0: state of NVLink 0: GPU is lost");
}

TEST(Probe, WhereEveryCallFailsSaysSoAndTakesTheKernelsWord) {
  Pairs machine;
  machine.Add("fail * 9\n");
  EXPECT_TRUE(machine.Probe().gpus.empty());
  machine.Write("proc/driver/nvidia/gpus/0000:02:00.0/information",
                "Model: \t\t NVIDIA H100\nGPU UUID: \t GPU-z\n");
  machine.Write("proc/driver/nvidia/gpus/0000:01:00.0/information",
                "IRQ: 5\nGPU UUID: \t GPU-y\nVideo BIOS: ??.??\n");
  const NodeFacts facts = machine.Probe();
  EXPECT_EQ(facts.annotations.at(kUuids), "GPU-y,GPU-z");
  EXPECT_FALSE(facts.annotations.contains(kTopology));
  EXPECT_EQ(facts.problems[0],
            "NVML: start: Driver Not Loaded: NVLinks and MIG devices are not known");
}

TEST(Probe, OfADriverThatHasNotLookedYetPublishesNoUuids) {
  const MadeUpMachine machine;
  machine.Write("proc/driver/nvidia/gpus/0000:01:00.0/information",
                "GPU UUID: \t GPU-" + std::string(8, '?') + "-1\n");
  const NodeFacts facts = machine.Probe("");
  EXPECT_TRUE(facts.gpus.empty());
  EXPECT_TRUE(facts.annotations.empty());
}

TEST(Probe, DescribesMigDevicesByGpuProfileAndStart) {
  Pairs machine;
  machine.Add("mode 2\nmig 2 4 3g.40gb MIG-a\nmig 2 0 1g.10gb MIG-b\n");
  const NodeFacts facts = machine.Probe();
  EXPECT_TRUE(facts.problems.empty()) << facts.problems[0];
  ASSERT_EQ(facts.mig.size(), 2u);
  EXPECT_EQ(facts.mig[0], (node::MigFact{2, "3g.40gb", 4, "MIG-a"}));
  // The GPUs that are given whole are counted without it.
  EXPECT_EQ(facts.annotations.at(kUuids), "GPU-0,GPU-1,GPU-3");
  EXPECT_EQ(facts.gpus[2].index, 2);
  EXPECT_EQ(Cell(MatrixOf(facts), 0, 1), "NV2");
  EXPECT_EQ(Cell(MatrixOf(facts), 0, 2), "SYS");
  MigLibrary library;
  const auto json = wire::Json::parse(facts.annotations.at(kMig), nullptr, false);
  const auto mig = wire::ReadMig(json, "mig", "", library);
  ASSERT_TRUE(mig) << mig.error().message;
  ASSERT_EQ(mig->gpus.size(), 1u);
  EXPECT_EQ(mig->gpus[0].index, 2);
  EXPECT_EQ(mig->gpus[0].uuid, "GPU-2");
  EXPECT_EQ(mig->knowledge, MigKnowledge::kExact);
  EXPECT_EQ(mig->product->name(), "A100-80GB");
  EXPECT_EQ(mig->FindNamed("MIG-b"),
            (MigGrant{.gpu = 2, .start = 0, .profile = ParseMigProfile("1g.10gb").value()}));
}

TEST(Probe, OfMigDevicesThatItMayNotSeePublishesNone) {
  Pairs machine;
  machine.Add("mode 2\n");
  const NodeFacts facts = machine.Probe();
  EXPECT_FALSE(facts.annotations.contains(kMig));
  EXPECT_EQ(facts.problems[0], "NVML shows no MIG devices, though GPUs are partitioned");
}

TEST(Probe, WhereAMigDeviceDoesNotSayItsPlacePublishesNone) {
  Pairs machine;
  machine.Add("mode 2\nmig 2 4 3g.40gb MIG-a\nfail nvmlGpuInstanceGetInfo 3\n");
  const NodeFacts facts = machine.Probe();
  EXPECT_FALSE(facts.annotations.contains(kMig));
  EXPECT_EQ(facts.problems[0],
            "NVML: MIG devices of GPU 2: device 0 does not say its id, profile or place");
}

TEST(Probe, OfAMachineWithoutGpusSaysSo) {
  const MadeUpMachine machine;
  const NodeFacts facts = machine.Probe();
  EXPECT_TRUE(facts.annotations.empty());
  EXPECT_EQ(facts.problems, (std::vector<std::string>{"no GPU of NVIDIA or AMD was found"}));
}

TEST(Probe, DescribesAtMost64Gpus) {
  const MadeUpMachine machine;
  std::string many;
  for (int i = 0; i < 65; ++i) many += "gpu GPU-" + std::to_string(i) + " 0:01:00.0\n";
  machine.Describe(many);
  const NodeFacts facts = machine.Probe();
  EXPECT_TRUE(facts.gpus.empty());
  EXPECT_EQ(facts.problems[0], "NVML: want at most 64 GPUs, got 65: none is described");
}

TEST(Probe, OfALibraryThatCrashesEndsItsProcess) {
  const MadeUpMachine machine;
  machine.Describe("crash nvmlInit_v2\n");
  EXPECT_DEATH((void)machine.Probe(), "");
}

// --- AMD ---

// Two cards with an xGMI link of two, as the kernel's module describes them.
struct Xgmi : MadeUpMachine {
  Xgmi() {
    Write(kNodes + "0/properties", "cpu_cores_count 64\nsimd_count 0\n");
    Gpu("1", "0x41", 41 << 8);
    Gpu("2", "0x42", 42 << 8);
    Write(kNodes + "1/io_links/0/properties", "type 2\nnode_from 1\nnode_to 0\n");
    Write(kNodes + "1/io_links/1/properties",
          "type 11\nnode_from 1\nnode_to 2\nmin_bandwidth 50000\nmax_bandwidth 100000\n");
    Device("pci0000:20/0000:20:01.0", "0000:29:00.0", 0);
    Device("pci0000:60/0000:60:01.0", "0000:2a:00.0", 1);
  }
  void Gpu(const std::string& node, const std::string&, int location) const {
    Write(kNodes + node + "/properties", "simd_count 304\nvendor_id 4098\ndomain 0\nlocation_id " +
                                             std::to_string(location) + "\n");
  }
  static inline const std::string kNodes = "sys/class/kfd/kfd/topology/nodes/";
};

TEST(Probe, DescribesAmdGpusByTheNamesOfTheirPlugin) {
  const Xgmi machine;
  const NodeFacts facts = machine.Probe("");
  EXPECT_EQ(facts.annotations.at(kUuids), "0000:29:00.0,0000:2a:00.0");
  const LinkMatrix matrix = MatrixOf(facts);
  EXPECT_EQ(matrix.link(0, 1).fabric, LinkType::kXgmi);
  EXPECT_EQ(matrix.link(0, 1).fabric_links, 2);
  EXPECT_EQ(matrix.link(1, 0).pcie, LinkType::kSys);
  EXPECT_EQ(facts.gpus[1].numa, 1);
}

TEST(Probe, OfPartitionedAmdGpusDescribesNone) {
  const Xgmi machine;
  machine.Gpu("3", "", (42 << 8) + 1);
  const NodeFacts facts = machine.Probe("");
  EXPECT_TRUE(facts.gpus.empty());
  EXPECT_EQ(facts.problems[0], "AMD GPUs: the GPUs are partitioned: none is described");
}

}  // namespace
}  // namespace berth::test::probe_test
