// SPDX-License-Identifier: Apache-2.0
//
// VersionNeeds: what a pod needs of the driver and of the GPUs of its node, at least. Nodes say
// theirs in the labels of GPU Feature Discovery:
//
//   driver       nvidia.com/cuda.driver-version.major .minor .revision
//   CUDA         nvidia.com/cuda.runtime-version.major .minor: the newest that the driver runs
//   capability   nvidia.com/gpu.compute.major .minor, of the GPUs
//
// or in the older nvidia.com/cuda.driver.major .minor .rev and nvidia.com/cuda.runtime.major .minor
// (NVIDIA/k8s-device-plugin v0.17, docs/gpu-feature-discovery). A node that does not say a version
// is none that is known to have it.
#pragma once

#include <array>
#include <compare>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "cluster/values/labels.h"

namespace berth {

struct Version {
  int major = 0, minor = 0, revision = 0;
  friend auto operator<=>(const Version&, const Version&) = default;
};

// "550", "550.54" or "550.54.15". Error: kInvalidArgument "want ..., got TEXT".
Result<Version> ParseVersion(std::string_view text);
std::string TextOf(const Version& version);  // without a revision of 0

enum class Versioned { kDriver, kCuda, kCapability };
inline constexpr std::size_t kVersionedCount = 3;

// nullopt: the node does not say it, or not as a number.
std::optional<Version> VersionOf(const Labels& labels, Versioned what);

struct VersionNeeds {
  std::array<std::optional<Version>, kVersionedCount> least;  // by Versioned
  [[nodiscard]] bool any() const;
  // The first need that the node does not meet.
  [[nodiscard]] std::optional<Versioned> Unmet(const Labels& labels) const;
  friend bool operator==(const VersionNeeds&, const VersionNeeds&) = default;
};

}  // namespace berth
