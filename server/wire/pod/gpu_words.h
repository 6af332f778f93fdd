// SPDX-License-Identifier: Apache-2.0
//
// GpuWords: the resource names by which pods ask for GPUs and nodes say how many they have: those
// of the configuration, and for the names that it does not have those of the catalogue of vendors
// (topology/gpu_vendor.h) and Berth's own.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "config/config.h"
#include "server/wire/pod/dialect.h"

namespace berth::wire {

struct GpuWord {
  // The other resource that it counts as, whose devices these are; empty: none but itself.
  std::string_view same_as = {};
  ResourceMeaning meaning = ResourceMeaning::kWholeGpus;  // never kIgnored
  std::int64_t factor = 1;                                // UnitFactor
  GpuRank rank = GpuRank::kPart;                          // of whole GPUs

  // The resource that asks by this name are counted as.
  [[nodiscard]] std::string_view CountedAs(std::string_view name) const {
    return same_as.empty() ? name : same_as;
  }
};

class GpuWords {
 public:
  explicit GpuWords(const std::vector<ResourceRule>& configured);

  // Nothing for a name that has nothing to do with GPUs, or is to be ignored.
  [[nodiscard]] std::optional<GpuWord> Find(std::string_view resource) const;
  // Whether the configuration says to ignore it, even if others read it.
  [[nodiscard]] bool IsIgnored(std::string_view resource) const {
    const auto found = configured_.find(resource);
    return found != configured_.end() && found->second.meaning == ResourceMeaning::kIgnored;
  }

 private:
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const {
      return std::hash<std::string_view>{}(text);
    }
  };
  using Rows = std::unordered_map<std::string, GpuWord, Hash, std::equal_to<>>;

  Rows configured_, known_;
};

// Picks the resource of a node to count: resources with a healthy GPU first,
// then by rank, then that with the most healthy GPUs, then the first by name. nullptr without any.
const DeviceCount* CountedOf(const std::vector<DeviceCount>& devices);

// Whether the devices of the resource are RDMA devices, beside which GPUs are wanted.
bool IsRdma(std::string_view resource);

}  // namespace berth::wire
