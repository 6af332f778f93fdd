// SPDX-License-Identifier: Apache-2.0
//
// The catalogue, and row for row against the data file of BERTH_DATA, which was made independently
// of it, from what is printed. Of the H200 it knows no memory and infers the starts; since then a
// driver has said both (test/unit/server/published_slices_test.cc).
#include "topology/mig/mig_product.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "base/file.h"
#include "test/support/data_dir.h"

namespace berth::test::mig_catalog_test {
namespace {

using Json = nlohmann::json;

TEST(MigCatalogue, HasEveryProductOnceAndSaysWhereRowsAreFrom) {
  std::set<std::string> names;
  for (const MigProduct& product : MigCatalogue()) {
    EXPECT_TRUE(names.insert(product.name()).second) << product.name();
    EXPECT_EQ(FindMigProduct(product.name()), &product);
    for (const MigRow& row : product.rows()) EXPECT_FALSE(row.source.empty()) << product.name();
  }
  EXPECT_EQ(names.size(), 15U);
  EXPECT_EQ(FindMigProduct("A100"), nullptr);
}

TEST(MigCatalogue, ASameNameMeansAnotherSizeOnAnotherProduct) {
  const auto units = [](const char* product, const char* profile) {
    const MigProduct& found = *FindMigProduct(product);
    return found.row(*found.RowOf(*ParseMigProfile(profile))).memory_units;
  };
  EXPECT_EQ(units("A100-40GB", "1g.10gb"), 2);
  EXPECT_EQ(units("A100-80GB", "1g.10gb"), 1);
  EXPECT_EQ(units("H200-141GB", "1g.35gb"), 2);
  EXPECT_EQ(units("GB300-288GB", "1g.35gb"), 1);
  EXPECT_EQ(units("RTX-PRO-6000-BW-96GB", "1g.24gb"), 3);
}

TEST(MigProductOfLabel, TakesTheLongestNameThatTheLabelBeginsWith) {
  const std::pair<const char*, const char*> cases[] = {
      {"NVIDIA-A100-SXM4-40GB", "A100-40GB"},
      {"NVIDIA-A100-SXM4-40GB-MIG-1g.5gb", "A100-40GB"},
      {"NVIDIA-A100-80GB-PCIe-MIG-1g.10gb.me", "A100-80GB"},
      {"NVIDIA-A100-SXM4-80GB-MIG-INVALID", "A100-80GB"},
      {"NVIDIA-H100-NVL-SHARED", "H100-94GB"},
      {"NVIDIA-H100-80GB-HBM3-MIG-1g.10gb-SHARED", "H100-80GB"},
      {"NVIDIA-H800-PCIe", "H100-80GB"},
      {"NVIDIA-H800-NVL", "H100-94GB"},
      {"NVIDIA-H20", "H100-96GB-GH200-H20"},
      {"NVIDIA-H200", "H200-141GB"},
      {"NVIDIA-H200-NVL", "H200-141GB"},
      {"A100-SXM4-40GB", "A100-40GB"},
      {"A100-SXM4-40GB-MIG-1g.5gb", "A100-40GB"},
      {"NVIDIA-A30", "A30-24GB"}};
  for (const auto& [label, name] : cases) {
    ASSERT_NE(MigProductOfLabel(label), nullptr) << label;
    EXPECT_EQ(MigProductOfLabel(label)->name(), name) << label;
  }
  for (const char* label : {"", "NVIDIA", "NVIDIA-A100", "NVIDIA-A300", "NVIDIA-A10", "Tesla-T4",
                            "-MIG-1g.5gb", "NVIDIA-H2000"}) {
    EXPECT_EQ(MigProductOfLabel(label), nullptr) << label;
  }
  EXPECT_EQ(BareGpuProductLabel("NVIDIA-A30-MIG-1g.6gb-SHARED"), "NVIDIA-A30");
  EXPECT_EQ(BareGpuProductLabel("NVIDIA-A30-SHARED"), "NVIDIA-A30");
}

MigEngines EnginesOf(const Json& engines) {
  return {engines["decoders"], engines["encoders"], engines["jpeg"], engines["ofa"],
          engines["copy_engines"]};
}

constexpr std::string_view kAskedSince = "H200-141GB";

void ExpectRow(const MigProduct& product, const MigRow& row, const Json& told) {
  const std::string name = told["name"];
  SCOPED_TRACE(product.name() + " " + name);
  EXPECT_EQ(MigProfileName(row.profile), name);
  EXPECT_EQ(MigResourceName(row.profile), told["resource_mixed"]);
  EXPECT_EQ(row.profile.compute_slices, told["compute_slices"]);
  EXPECT_EQ(row.memory_units, told["placements"]["size"]);
  MigUnits starts = 0;
  for (const Json& start : told["placements"]["starts"]) starts |= MigUnits(1U << start.get<int>());
  EXPECT_EQ(row.starts, starts);
  EXPECT_EQ(row.max_instances, told["max_instances"]);
  EXPECT_EQ(row.once_per_gpu, !told["exclusive_group"].is_null());
  const Json& usable = told["memory_gib_usable"];
  if (!usable.is_null()) {
    constexpr double kPrinted = 0.005 * 1024;  // to a hundredth of a GiB
    EXPECT_NEAR(row.memory_mib, usable.get<double>() * 1024, kPrinted + 0.5);
  } else if (product.name() != kAskedSince) {
    EXPECT_EQ(row.memory_mib, 0);
  }
  if (product.engine_limited()) {
    EXPECT_EQ(row.engines, EnginesOf(told["engines"]));
  }
}

TEST(MigCatalogueData, EqualsTheDataFileRowForRow) {
  const auto file = DataDir() / "mig" / "mig_profiles.json";
  BERTH_NEEDS_DATA(file);
  const Json data = Json::parse(*ReadFile(file.string()));
  ASSERT_EQ(data["products"].size(), MigCatalogue().size());
  for (const Json& told : data["products"]) {
    const MigProduct* const product = FindMigProduct(told["id"].get<std::string>());
    ASSERT_NE(product, nullptr) << told["id"];
    EXPECT_EQ(product->compute_slices(), told["compute_slices"]);
    EXPECT_EQ(product->memory_units(), told["memory_slices"]);
    EXPECT_EQ(product->engine_limited(), told.value("engine_limited", false));
    if (product->engine_limited()) {
      EXPECT_EQ(product->engines(), EnginesOf(told["engine_totals"]));
    }
    for (const Json& label : told["gfd_products"]) {
      EXPECT_EQ(MigProductOfLabel(label.get<std::string>()), product) << label;
    }
    ASSERT_EQ(product->rows().size(), told["profiles"].size()) << product->name();
    for (std::size_t r = 0; r < product->rows().size(); ++r) {
      ExpectRow(*product, product->rows()[r], told["profiles"][r]);
    }
    if (!told.contains("alias_profiles")) continue;
    for (const auto& [other, name] : told["alias_profiles"].items()) {
      EXPECT_EQ(product->RowOf(*ParseMigProfile(other)),
                product->RowOf(*ParseMigProfile(name.get<std::string>())))
          << other;
    }
  }
}

}  // namespace
}  // namespace berth::test::mig_catalog_test
