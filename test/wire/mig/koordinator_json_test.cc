// SPDX-License-Identifier: Apache-2.0
#include "server/dialects/koordinator/koordinator_dialect.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

namespace berth::wire::koordinator_json_test {
namespace {

using dialects::DecodeKoordinatorDevice;
using dialects::KoordinatorDevice;
using dialects::KoordinatorGpu;
using dialects::LinksOfKoordinator;
using Object = nlohmann::json;

Object Gpu(int minor, int numa, const std::string& pcie) {
  return {{"type", "gpu"},
          {"id", "GPU-" + std::to_string(minor)},
          {"minor", minor},
          {"health", true},
          {"resources", {{"koordinator.sh/gpu-core", "100"}}},
          {"topology",
           {{"socketID", 0}, {"nodeID", numa}, {"pcieID", pcie}, {"busID", "0000:1f:00.0"}}}};
}

Object DeviceOf(const std::vector<Object>& gpus) {
  return {{"kind", "Device"}, {"metadata", {{"name", "n1"}}}, {"spec", {{"devices", gpus}}}};
}

// Two under one switch, one in their NUMA node, one in another.
Object FourGpus() {
  return DeviceOf({Gpu(3, 1, "p2"),
                   Gpu(0, 0, "p0"),
                   Gpu(1, 0, "p0"),
                   Gpu(2, 0, "p1"),
                   {{"type", "rdma"}, {"id", "0000:09:00.0"}, {"minor", 0}}});
}

std::string Row(const LinkMatrix& matrix, int gpu) {
  std::string row;
  for (int other = 0; other < matrix.gpu_count(); ++other) {
    row += other == gpu ? "X " : LinkText(matrix.link(gpu, other)) + " ";
  }
  return row;
}

TEST(KoordinatorDevice, SaysWhereTheGpusArePluggedIn) {
  const auto device = DecodeKoordinatorDevice(PaddedText(FourGpus().dump()));
  ASSERT_TRUE(device) << device.error().message;
  EXPECT_EQ(device->name, "n1");
  ASSERT_EQ(device->gpus.size(), 4U);
  EXPECT_EQ(device->gpus[3], (KoordinatorGpu{"GPU-3", 1, "p2", true, 0}));
  const auto links = LinksOfKoordinator(*device, "NVIDIA-L40S");
  ASSERT_TRUE(links);
  EXPECT_EQ(Row(*links, 0), "X PXB NODE SYS ");
  EXPECT_EQ(Row(*links, 1), "PXB X NODE SYS ");
  EXPECT_EQ(Row(*links, 3), "SYS SYS SYS X ");
  EXPECT_EQ(links->numa_affinity, (std::vector<std::string>{"0", "0", "0", "1"}));
}

TEST(KoordinatorDevice, NvlinksAreThoseOfTheProduct) {
  const auto device = DecodeKoordinatorDevice(PaddedText(FourGpus().dump()));
  const auto links = LinksOfKoordinator(*device, "NVIDIA-H100-80GB-HBM3");
  ASSERT_TRUE(links);
  EXPECT_EQ(Row(*links, 0), "X NV6 NV6 NV6 ");
  EXPECT_EQ(links->link(0, 1).pcie, LinkType::kPxb);
  EXPECT_EQ(links->numa_affinity[3], "1");
}

TEST(KoordinatorDevice, WithoutThePlaceOfEveryGpuThereAreNoLinks) {
  Object device = FourGpus();
  device["spec"]["devices"][1].erase("topology");
  EXPECT_FALSE(
      LinksOfKoordinator(*DecodeKoordinatorDevice(PaddedText(device.dump())), "NVIDIA-L40S"));
  device = FourGpus();
  device["spec"]["devices"][1]["topology"]["nodeID"] = -1;
  EXPECT_FALSE(
      LinksOfKoordinator(*DecodeKoordinatorDevice(PaddedText(device.dump())), "NVIDIA-L40S"));
  EXPECT_FALSE(LinksOfKoordinator(*DecodeKoordinatorDevice(PaddedText(DeviceOf({}).dump())), ""));
  // The same switch is nothing where it is not said, and nothing across NUMA nodes.
  const auto apart =
      DecodeKoordinatorDevice(PaddedText(DeviceOf({Gpu(0, 0, ""), Gpu(1, 0, "")}).dump()));
  EXPECT_EQ(Row(*LinksOfKoordinator(*apart, ""), 0), "X NODE ");
}

TEST(KoordinatorDevice, WhatCannotBeReadIsAnErrorWithItsPlace) {
  const auto error = [](const Object& device) {
    const auto read = DecodeKoordinatorDevice(PaddedText(device.dump()));
    return read ? "none" : read.error().message;
  };
  EXPECT_EQ(error(7), "file: want an object");
  EXPECT_EQ(error(Object::object()), "metadata.name: want a name, got none");
  EXPECT_EQ(error(DeviceOf({Gpu(0, 0, "a"), Gpu(2, 0, "a")})),
            "spec.devices: want GPUs with the minors 0, 1, 2, ... each once, got 2 in place of 1");
  EXPECT_EQ(error(DeviceOf({Gpu(0, 0, "a"), Gpu(0, 0, "a")})),
            "spec.devices: want GPUs with the minors 0, 1, 2, ... each once, got 0 in place of 1");
  EXPECT_EQ(error(DeviceOf({Gpu(64, 0, "a")})), "spec.devices[0].minor: want 0..63, got 64");
  Object device = FourGpus();
  device["spec"]["devices"][0].erase("minor");
  EXPECT_EQ(error(device), "spec.devices[0].minor: want a number, got none");
  device = FourGpus();
  device["spec"]["devices"][0]["topology"]["nodeID"] = "0";
  EXPECT_EQ(error(device), "spec.devices[0].topology.nodeID: want an integer, got string");
}

}  // namespace
}  // namespace berth::wire::koordinator_json_test
