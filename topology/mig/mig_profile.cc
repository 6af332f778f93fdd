// SPDX-License-Identifier: Apache-2.0
#include "topology/mig/mig_profile.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "base/check.h"

namespace berth {
namespace {

// Far above any product; small enough that sums of them never overflow.
constexpr int kMaxComputeSlices = 64;
constexpr int kMaxMemoryGb = 99'999;

struct ExtensionName {
  MigExtension extension;
  std::string_view name;      // in a profile
  std::string_view resource;  // in a resource
};
constexpr std::array<ExtensionName, 5> kExtensions = {{{MigExtension::kNone, "", ""},
                                                       {MigExtension::kMe, "+me", ".me"},
                                                       {MigExtension::kMeAll, "+me.all", ".me.all"},
                                                       {MigExtension::kNoMe, "-me", "-me"},
                                                       {MigExtension::kGfx, "+gfx", ".gfx"}}};

const ExtensionName& NameOf(MigExtension extension) {
  return *std::ranges::find(kExtensions, extension, &ExtensionName::extension);
}

// Takes a number from 1 to `high`, written without leading zeros, and `unit` behind it.
std::optional<int> TakeNumber(std::string_view& text, std::string_view unit, int high) {
  int value = 0;
  std::size_t digits = 0;
  for (; digits < text.size() && text[digits] >= '0' && text[digits] <= '9'; ++digits) {
    value = value * 10 + (text[digits] - '0');
    if (value == 0 || value > high) return std::nullopt;
  }
  if (digits == 0 || !text.substr(digits).starts_with(unit)) return std::nullopt;
  text.remove_prefix(digits + unit.size());
  return value;
}

std::optional<MigProfile> Parse(std::string_view text, std::string_view ExtensionName::*column) {
  MigProfile profile;
  if (const auto instance = TakeNumber(text, "c.", kMaxComputeSlices)) {
    profile.instance_slices = *instance;
  }
  const auto slices = TakeNumber(text, "g.", kMaxComputeSlices);
  if (!slices || profile.instance_slices > *slices) return std::nullopt;
  profile.compute_slices = *slices;
  if (profile.instance_slices == *slices) profile.instance_slices = 0;
  const auto memory = TakeNumber(text, "gb", kMaxMemoryGb);
  if (!memory) return std::nullopt;
  profile.memory_gb = *memory;
  const auto extension = std::ranges::find(kExtensions, text, column);
  if (extension == kExtensions.end()) return std::nullopt;
  profile.extension = extension->extension;
  return profile;
}

std::string SizeName(const MigProfile& profile) {
  return std::to_string(profile.compute_slices) + "g." + std::to_string(profile.memory_gb) + "gb";
}

}  // namespace

Result<MigProfile> ParseMigProfile(std::string_view text) {
  if (const auto profile = Parse(text, &ExtensionName::name)) return *profile;
  return Invalid("want a MIG profile such as 1g.5gb, 1g.10gb+me or 1c.2g.10gb, got \"" +
                 std::string(text) + "\"");
}

std::string MigProfileName(const MigProfile& profile) {
  const std::string instance =
      profile.instance_slices > 0 ? std::to_string(profile.instance_slices) + "c." : "";
  return instance + SizeName(profile) + std::string(NameOf(profile.extension).name);
}

Result<MigResource> ParseMigResource(std::string_view name) {
  constexpr std::string_view kShared = ".shared";
  if (name.starts_with(kMigResourcePrefix)) {
    std::string_view text = name.substr(kMigResourcePrefix.size());
    MigResource resource;
    resource.shared = text.ends_with(kShared);
    if (resource.shared) text.remove_suffix(kShared.size());
    const auto profile = Parse(text, &ExtensionName::resource);
    // "2c.2g.10gb" reads as a profile without C, and is no resource all the same.
    if (profile && text.find('c') == std::string_view::npos) {
      resource.profile = *profile;
      return resource;
    }
  }
  return Invalid(
      "want a resource such as nvidia.com/mig-1g.5gb or nvidia.com/mig-1g.5gb.me, got \"" +
      std::string(name) + "\"");
}

std::string MigResourceName(const MigProfile& profile, bool shared) {
  BERTH_CHECK(profile.instance_slices == 0);
  return std::string(kMigResourcePrefix) + SizeName(profile) +
         std::string(NameOf(profile.extension).resource) + (shared ? ".shared" : "");
}

}  // namespace berth
