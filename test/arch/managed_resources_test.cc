// SPDX-License-Identifier: Apache-2.0
//
// kube-scheduler asks Berth to bind the pods that ask for a resource which its configuration names,
// and for no others. So the configurations that are shipped name all that the catalogue of vendors
// has in full, which are counted by kube-scheduler too, and Berth's own, which are not.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "test/support/build_paths.h"
#include "test/support/read_text.h"
#include "topology/gpu_vendor.h"

namespace berth::test::managed_resources_test {
namespace {

constexpr std::string_view kManaged = "managedResources:";
constexpr std::string_view kNameKey = "- name: ";

// "nvidia.com/gpu false" per row of each list that the file has, one list after the other.
std::vector<std::vector<std::string>> ManagedLists(const std::string& file) {
  std::vector<std::vector<std::string>> lists;
  const std::string text = ReadText(SourceDir() + "/" + file);
  std::size_t begin = 0;
  for (std::size_t end = 0; begin < text.size(); begin = end + 1) {
    end = std::min(text.find('\n', begin), text.size());
    std::string_view line = std::string_view(text).substr(begin, end - begin);
    line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
    if (line == kManaged) {
      lists.emplace_back();
    } else if (!lists.empty() && line.starts_with(kNameKey)) {
      lists.back().emplace_back(line.substr(kNameKey.size()));
    } else if (!lists.empty() && line.starts_with("ignoredByScheduler: ")) {
      lists.back().back() += line.substr(line.find(' '));
    } else if (!lists.empty() && !line.starts_with('#')) {
      break;
    }
  }
  return lists;
}

std::vector<std::string> WhatIsKnown() {
  std::vector<std::string> rows;
  for (const GpuVendor& vendor : GpuVendors()) {
    for (const GpuResource& resource : vendor.resources) {
      if (!resource.family) rows.push_back(std::string(resource.name) + " false");
    }
  }
  rows.emplace_back("berth.dev/gpu-milli true");
  rows.emplace_back("berth.dev/gpu-memory-mib true");
  return rows;
}

TEST(ManagedResources, AreWhatTheCatalogueNamesInFull) {
  for (const char* file :
       {"manifests/scheduler/kube-scheduler-config.yaml",
        "manifests/scheduler/kube-scheduler-config-tls.yaml",
        "manifests/components/second-scheduler/config.yaml",
        "manifests/components/second-scheduler/config-tls.yaml", "manifests/install.yaml",
        "manifests/helm/berth/templates/second-scheduler.yaml"}) {
    const auto lists = ManagedLists(file);
    ASSERT_FALSE(lists.empty()) << file;
    for (const auto& list : lists) EXPECT_EQ(list, WhatIsKnown()) << file;
  }
}

TEST(VendorsPage, HasEveryResourceAndLabelOfTheCatalogue) {
  const std::string page = ReadText(SourceDir() + "/docs/vendors.md");
  const auto has = [&page](std::string_view text) { return page.find(text) != std::string::npos; };
  for (const GpuVendor& vendor : GpuVendors()) {
    EXPECT_TRUE(has("| `" + std::string(vendor.name) + "` |")) << vendor.name;
    for (const GpuResource& resource : vendor.resources) {
      EXPECT_FALSE(resource.source.empty()) << resource.name;
      // Of the partitions of one vendor two stand for all.
      const bool shown = has("`" + std::string(resource.name)) || resource.name.ends_with("_nps");
      EXPECT_TRUE(shown) << resource.name;
    }
    for (const auto labels : {vendor.model_labels, vendor.memory_labels}) {
      EXPECT_TRUE(has(labels.front())) << vendor.name;
      EXPECT_TRUE(labels.front().empty() || !vendor.labels_source.empty()) << vendor.name;
    }
    EXPECT_TRUE(vendor.count_label.empty() || vendor.name == kNvidiaVendor ||
                has(vendor.count_label))
        << vendor.name;
  }
}

}  // namespace
}  // namespace berth::test::managed_resources_test
