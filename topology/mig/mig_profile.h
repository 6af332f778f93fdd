// SPDX-License-Identifier: Apache-2.0
//
// MigProfile: what kind of MIG device, as NVIDIA names it.
//
//   [Cc.]Gg.Mgb[EXTENSION]     1g.5gb   1g.10gb+me   1g.24gb+me.all   1g.24gb-me   1c.2g.10gb
//
// G compute slices, M gigabytes of memory as the name rounds them, and the media engines that it
// has in addition to (+) or less than (-) the usual ones of its size. C, if present, is a compute
// instance with C of the G slices. The number of memory slices behind a name depends on the product
// (mig_product.h): 1g.10gb takes two of an A100-40GB and one of an A100-80GB.
//
// As resources of Kubernetes (NVIDIA device plugin v0.20, strategy mixed) profiles are named
// nvidia.com/mig-PROFILE with '+' written as '.', and with .shared behind it where time slicing
// renames it. Those with C are no resources.
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace berth {

enum class MigExtension : std::uint8_t { kNone, kMe, kMeAll, kNoMe, kGfx };

struct MigProfile {
  int compute_slices = 0;  // G
  int memory_gb = 0;       // M: a name, not a size
  MigExtension extension = MigExtension::kNone;
  int instance_slices = 0;  // C; 0: the compute instance fills the GPU instance

  friend auto operator<=>(const MigProfile&, const MigProfile&) = default;
};

// C equal to G is the profile without C. Error: kInvalidArgument "want a MIG profile such as
// 1g.5gb, 1g.10gb+me or 1c.2g.10gb, got TEXT".
Result<MigProfile> ParseMigProfile(std::string_view text);

// The name that ParseMigProfile reads back as the same profile.
std::string MigProfileName(const MigProfile& profile);

inline constexpr std::string_view kMigResourcePrefix = "nvidia.com/mig-";

struct MigResource {
  MigProfile profile;
  bool shared = false;  // one of several users of the slice: never packing capacity
  friend bool operator==(const MigResource&, const MigResource&) = default;
};

// Of a name that begins with kMigResourcePrefix. Error: kInvalidArgument "want a resource such as
// nvidia.com/mig-1g.5gb or nvidia.com/mig-1g.5gb.me, got NAME".
Result<MigResource> ParseMigResource(std::string_view name);

// Requires: profile.instance_slices == 0.
std::string MigResourceName(const MigProfile& profile, bool shared = false);

}  // namespace berth
