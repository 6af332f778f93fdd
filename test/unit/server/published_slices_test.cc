// SPDX-License-Identifier: Apache-2.0
//
// What NVIDIA's DRA driver 0.5 published about an H200 and an H100 (driver 580.159.04, each alone
// in a virtual machine whose PCI bus has no NUMA nodes), in three settings: plain, gate DynamicMIG,
// gate ConsumableShares. UUIDs are made up, all else is as it was published.
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "server/dialects/dra/device_claims.h"
#include "server/dialects/dra/device_class_json.h"
#include "test/support/build_paths.h"
#include "test/support/builders.h"
#include "test/support/read_text.h"
#include "test/support/wire_fixture.h"

namespace berth::test::published_slices_test {
namespace {

constexpr const char* kGpu = "nvidia.com/gpu";
constexpr const char* kOfGpus =
    "device.driver == 'gpu.nvidia.com' && device.attributes['gpu.nvidia.com'].type == 'gpu'";

struct Card {
  const char* name;
  const char* model;
  const char* uuid;
  const char* mig_product;
  std::int64_t memory_mib;      // as a whole GPU
  std::int64_t cut_memory_mib;  // the same where it can be cut
};
constexpr Card kCards[] = {
    {"h200", "NVIDIA-H200", "GPU-00000200-1111-2222-3333-444455556666", "H200-141GB", 143771,
     143360},
    {"h100", "NVIDIA-H100-80GB-HBM3", "GPU-00000100-1111-2222-3333-444455556666", "H100-80GB",
     81559, 81152},
};

Json ItemsOf(const std::string& name) {
  const auto path = SourceDir() + "/test/unit/server/slices/" + name + ".json";
  return Json::parse(ReadText(path)).at("items");
}

// A node, and only these slices say what it has.
class Published {
 public:
  explicit Published(const std::string& name, const std::string& selector = kOfGpus) {
    const ClusterEvent node = NodeUpserted{ANode("gpu-node").Spec()};
    EXPECT_TRUE(state_.Apply(std::span(&node, 1)));
    std::string problem;
    auto accepted = dialects::DecodeDeviceClass(
        PaddedText(Json{{"kind", "DeviceClass"},
                        {"metadata", {{"name", "gpu.nvidia.com"}}},
                        {"spec",
                         {{"extendedResourceName", kGpu},
                          {"selectors", Json::array({{{"cel", {{"expression", selector}}}}})}}}}
                       .dump()),
        problem);
    EXPECT_TRUE(accepted && problem.empty()) << problem;
    if (accepted) all_.classes().Put(*std::move(accepted));
    for (const Json& item : ItemsOf(name)) {
      auto slice = dialects::DecodeResourceSlice(PaddedText(item.dump()));
      EXPECT_TRUE(slice) << slice.error().message;
      if (!slice) continue;
      all_.slices().Put(*slice);
      slices_.push_back(*std::move(slice));
    }
  }

  [[nodiscard]] const NodeSpec& Node() {
    now_ = state_.Current();
    return now_->node(now_->names().Find("gpu-node")).spec();
  }
  [[nodiscard]] OfferedGpus Cuttable() const {
    const auto offers = offers_.Current();
    const auto found = offers->find("gpu-node");
    return found == offers->end() ? OfferedGpus() : *found->second;
  }
  [[nodiscard]] const std::vector<std::string>& told() const { return told_; }
  [[nodiscard]] std::vector<PublishedDevice> Devices() const {
    std::vector<PublishedDevice> devices;
    for (const auto& slice : slices_) {
      devices.insert(devices.end(), slice.published->devices.begin(),
                     slice.published->devices.end());
    }
    return devices;
  }

 private:
  ClusterState state_;
  MigOffers offers_;
  DeviceClasses classes_;
  DeviceOffers devices_;
  OpenClaims open_;
  std::vector<std::string> told_;
  dialects::DeviceClaims all_{
      {state_, offers_, classes_, devices_, open_},
      true,
      [this](std::string_view, std::string_view object, const std::string& why) {
        told_.push_back(std::string(object) + ": " + why);
      }};
  std::vector<dialects::ResourceSlice> slices_;
  std::shared_ptr<const Snapshot> now_;
};

std::int64_t MemoryMib(const PublishedDevice& device) {
  for (const auto& entry : device.seen.capacity().at(0).entries) {
    if (entry->id == "memory") return entry->value.AsInteger().value_or(0) >> 20;
  }
  return 0;
}

TEST(PublishedSlices, AreANodeWithItsGpu) {
  for (const Card& card : kCards) {
    for (const auto& [setting, memory] :
         {std::pair("-plain", card.memory_mib), {"-mig", card.cut_memory_mib}}) {
      SCOPED_TRACE(std::string(card.name) + setting);
      Published published(std::string(card.name) + setting);
      const NodeSpec& node = published.Node();
      EXPECT_EQ(node.gpu_model, card.model);
      ASSERT_EQ(node.gpus.size(), 1U);
      EXPECT_EQ(node.gpus[0], (GpuSpec{card.uuid, memory, true}));
      EXPECT_TRUE(node.GivesGpusAs(kGpu));
      EXPECT_FALSE(node.links.known() && node.links.knows_numa()) << "none is published";
      EXPECT_EQ(published.told(), std::vector<std::string>());
    }
  }
}

// Each attribute by a selector that demands it.
TEST(PublishedSlices, SelectorsSeeWhatTheDriverSaysOfADevice) {
  const std::string own = "device.attributes['gpu.nvidia.com'].";
  const std::string kubernetes = "device.attributes['resource.kubernetes.io'].";
  const auto accepts = [](const std::string& condition) {
    return !Published("h200-plain", std::string(kOfGpus) + " && " + condition).Node().gpus.empty();
  };
  for (const std::string& condition :
       {own + "productName == 'NVIDIA H200'", own + "architecture == 'Hopper'",
        own + "brand == 'Nvidia'", own + "addressingMode == 'None'",
        own + "driverVersion.compareTo(semver('580.159.4')) == 0",
        own + "cudaDriverVersion.isGreaterThan(semver('12.9.0'))",
        own + "cudaComputeCapability.compareTo(semver('9.0.0')) == 0",
        kubernetes + "pciBusID == '0000:00:06.0'", kubernetes + "pcieRoot == 'pci0000:00'",
        std::string("device.capacity['gpu.nvidia.com'].memory == quantity('143771Mi')"),
        std::string("!('numaNode' in device.attributes['gpu.nvidia.com'])")}) {
    EXPECT_TRUE(accepts(condition)) << condition;
  }
  EXPECT_FALSE(accepts(own + "driverVersion.isGreaterThan(semver('580.159.4'))"));
  EXPECT_FALSE(accepts(kubernetes + "pcieRoot == 'pci0000:01'"));
}

TEST(PublishedSlices, OfDynamicMigAreEveryPlacementOfTheCatalogue) {
  for (const Card& card : kCards) {
    SCOPED_TRACE(card.name);
    const Published published(std::string(card.name) + "-mig");
    const OfferedGpus gpus = published.Cuttable();
    ASSERT_EQ(gpus.size(), 1U);
    const MigProduct& product = *gpus[0].product;
    EXPECT_EQ(product.name(), card.mig_product);
    EXPECT_EQ(gpus[0].uuid, card.uuid);
    EXPECT_EQ(gpus[0].offered, product.AllPlacements());
    int instances = 0;
    for (const PublishedDevice& device : published.Devices()) {
      const cel::AttributeValue* const profile = device.seen.attribute("gpu.nvidia.com", "profile");
      if (profile == nullptr) continue;  // the whole GPU
      ++instances;
      const auto row = product.RowOf(*ParseMigProfile(std::get<std::string>(*profile)));
      ASSERT_TRUE(row) << device.name;
      EXPECT_EQ(MemoryMib(device), product.row(*row).memory_mib) << device.name;
    }
    EXPECT_EQ(instances, static_cast<int>(product.placements().size()));
  }
}

TEST(PublishedSlices, OfGpusThatSeveralClaimsMayShareAreLeftToKubeScheduler) {
  Published published("h200-shares");
  EXPECT_TRUE(published.Node().gpus.empty());
  EXPECT_TRUE(published.Cuttable().empty());
  ASSERT_EQ(published.told().size(), 1U);
  EXPECT_NE(published.told()[0].find("kube-scheduler alone"), std::string::npos)
      << published.told()[0];
}

}  // namespace
}  // namespace berth::test::published_slices_test
