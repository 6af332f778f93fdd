// SPDX-License-Identifier: Apache-2.0
#include "topology/gpu_vendor.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "topology/links/wiring.h"

namespace berth::gpu_vendor_test {
namespace {

TEST(GpuVendors, HaveRowsWithSourcesAndEachNameOnce) {
  std::set<std::string> names;
  EXPECT_EQ(GpuVendors().front().name, kNvidiaVendor);
  for (const GpuVendor& vendor : GpuVendors()) {
    EXPECT_FALSE(vendor.resources.empty()) << vendor.name;
    for (const GpuResource& row : vendor.resources) {
      EXPECT_TRUE(row.name.starts_with(std::string(vendor.domain) + "/")) << row.name;
      EXPECT_FALSE(row.source.empty()) << row.name;
      EXPECT_TRUE(names.insert(std::string(row.name) + (row.family ? "*" : "")).second) << row.name;
      if (row.family) continue;
      EXPECT_EQ(FindGpuResource(row.name), &row);
      EXPECT_FALSE(IsPart(row, row.name));
    }
  }
}

TEST(GpuVendors, AreFoundByTheDomainOfAResource) {
  EXPECT_EQ(VendorOf("amd.com/cpx_nps4"), "amd");
  EXPECT_EQ(VendorOf("gpu.intel.com/xe"), "intel");
  EXPECT_EQ(VendorOf("iluvatar.ai/gpu"), "iluvatar");
  EXPECT_EQ(VendorOf("vendor.com/thing"), "vendor.com");
  EXPECT_EQ(VendorOf("cpu"), "");
  EXPECT_EQ(VendorOf(""), "");
  EXPECT_EQ(FindGpuVendor("vendor.com/thing"), nullptr);
  EXPECT_EQ(FindGpuVendor("amd.com"), nullptr) << "a domain is no resource";
}

TEST(GpuFamilies, SayThePartAndItsMemory) {
  struct Row {
    const char* resource;
    bool part;
    std::int64_t mib;
  };
  for (const Row& row : std::initializer_list<Row>{
           {"huawei.com/Ascend910B3", false, 0},
           {"huawei.com/Ascend910B4-1", false, 0},
           {"huawei.com/Ascend950PR", false, 0},
           {"huawei.com/Ascend910-16c", true, 17476},
           {"huawei.com/Ascend310P-4c.3cpu", true, 12288},
           {"huawei.com/Ascend910-5c.1cpu.8g", true, 8192},
           {"huawei.com/Ascend310P-3c", true, 0},
           {"amd.com/spx_nps1", false, 0},
           {"amd.com/dpx_nps2", true, 0},
           {"hygon.com/dcu-share-30c-16g", true, 16384},
           {"cambricon.com/mlu590", false, 0},
           {"cambricon.com/mlu370.mim-2m.8gb", true, 8192},
       }) {
    const GpuResource* const found = FindGpuResource(row.resource);
    ASSERT_NE(found, nullptr) << row.resource;
    EXPECT_EQ(IsPart(*found, row.resource), row.part) << row.resource;
    EXPECT_EQ(PartMemoryMib(row.resource), row.mib) << row.resource;
  }
}

TEST(GpuFamilies, SayTheChipWhereOneIsCalledSo) {
  const auto chip = [](const char* resource) {
    return std::string(ChipOf(*FindGpuVendor(resource), resource));
  };
  EXPECT_EQ(chip("huawei.com/Ascend910B4-1"), "Ascend910B4-1");
  EXPECT_EQ(chip("huawei.com/Ascend910"), "") << "its own plugin calls a 910B3 so too";
  EXPECT_EQ(chip("huawei.com/Ascend910B3-10c.3cpu.16g"), "");
  EXPECT_EQ(chip("huawei.com/ascend-1980"), "");
  EXPECT_EQ(chip("amd.com/gpu"), "");
}

TEST(Partitions, AreAsManyAsTheProductHasDies) {
  EXPECT_EQ(PartsPerGpu("", "AMD_Instinct_MI300X_OAM"), 1);
  EXPECT_EQ(PartsPerGpu("spx_nps1", ""), 1);
  EXPECT_EQ(PartsPerGpu("qpx_nps2", ""), 4);
  EXPECT_EQ(PartsPerGpu("cpx_nps4", "AMD_Instinct_MI300X_OAM"), 8);
  EXPECT_EQ(PartsPerGpu("cpx_nps1", "AMD_Instinct_MI300A"), 6);
  EXPECT_EQ(PartsPerGpu("cpx_nps1", "AMD_Instinct_MI308X"), 4);
  EXPECT_EQ(PartsPerGpu("cpx_nps1", "AMD_Instinct_MI999"), 0);
  EXPECT_EQ(PartsPerGpu("zpx_nps1", "AMD_Instinct_MI300X"), 0);
  EXPECT_EQ(PartitioningOf("amd.com/cpx_nps4"), "cpx_nps4");
  EXPECT_EQ(PartitioningOf("amd.com/gpu"), "");
}

TEST(Labels, OfMemoryAndCountsAreReadOrNot) {
  EXPECT_EQ(MemoryLabelMib("65536"), 65536);
  EXPECT_EQ(MemoryLabelMib("192G"), 196608);
  EXPECT_EQ(MemoryLabelMib("64GB"), 65536);
  EXPECT_EQ(MemoryLabelMib("16384MiB"), 16384);
  for (const char* wrong : {"", "G", "-1", "64T", "1.5G", "9223372036854775807G"}) {
    EXPECT_EQ(MemoryLabelMib(wrong), 0) << wrong;
  }
  EXPECT_EQ(CountOfNumbers("0.1.2"), 3);
  EXPECT_EQ(CountOfNumbers("8"), 1) << "the one of that number";
  for (const char* wrong : {"", "-1", "0..1", "0.1.", "a.b", "card0.card1"}) {
    EXPECT_EQ(CountOfNumbers(wrong), 0) << wrong;
  }
}

TEST(ProductsOfOtherVendors, AreKnownWithAndWithoutTheVendor) {
  EXPECT_EQ(CataloguedMemoryMib("AMD_Instinct_MI300X_OAM"), 196608);
  EXPECT_EQ(CataloguedMemoryMib("Ascend910B4"), 32768);
  EXPECT_EQ(CataloguedMemoryMib("910B4"), 32768);
  EXPECT_EQ(CataloguedMemoryMib("AMD_Instinct_MI999"), 0);
  EXPECT_EQ(CataloguedMemoryMib("AMD_Radeon_8060S_Graphics"), 0);
  EXPECT_TRUE(LinksOfProduct("Ascend910B4-1", 8));
  EXPECT_FALSE(LinksOfProduct("910B", 8)) << "the first generation had one of that name";
  EXPECT_FALSE(LinksOfProduct("Ascend910B3", 4));
}

}  // namespace
}  // namespace berth::gpu_vendor_test
