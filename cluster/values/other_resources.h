// SPDX-License-Identifier: Apache-2.0
//
// OtherResources: amounts of what Berth gives to nobody and kube-scheduler counts: the devices of
// other plugins ("rdma/hca") and huge pages. A node has them, pods ask for them; plans count them
// (scoring/explain/other_limits.h).
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace berth {

struct OtherResource {
  std::string name;         // as Kubernetes has it
  std::int64_t amount = 0;  // >= 0; of huge pages bytes
  friend auto operator<=>(const OtherResource&, const OtherResource&) = default;
};
using OtherResources = std::vector<OtherResource>;  // sorted by name, each once

// Of one pod, and of one node. Others are left out.
inline constexpr std::size_t kMostOtherResources = 32;
inline constexpr std::size_t kMostOtherNameBytes = 317;  // a domain, and a name in it
// Sums over thousands of pods cannot overflow.
inline constexpr std::int64_t kMostOtherAmount = std::int64_t{1} << 52;

// nullptr: it is not there.
inline const OtherResource* FindOther(const OtherResources& all, std::string_view name) {
  const auto at = std::ranges::lower_bound(all, name, {}, &OtherResource::name);
  return at == all.end() || at->name != name ? nullptr : &*at;
}

// Its amount there, 0 at first; nullptr where there is no room for it.
inline std::int64_t* AmountOf(OtherResources& all, std::string_view name) {
  const auto at = std::ranges::lower_bound(all, name, {}, &OtherResource::name);
  if (at != all.end() && at->name == name) return &at->amount;
  if (all.size() >= kMostOtherResources || name.size() > kMostOtherNameBytes) return nullptr;
  return &all.insert(at, {std::string(name), 0})->amount;
}

// Whether it is one of them, unless Berth reads it: an extended resource, which has a domain that
// is not Kubernetes' own, or huge pages.
inline bool IsExtendedResource(std::string_view name) {
  const std::size_t domain = name.find('/');
  return domain != std::string_view::npos && !name.substr(0, domain).ends_with("kubernetes.io");
}
inline bool IsOtherResource(std::string_view name) {
  return IsExtendedResource(name) || name.starts_with("hugepages-");
}

}  // namespace berth
