// SPDX-License-Identifier: Apache-2.0
#include "cluster/claims/shared_devices.h"

#include <algorithm>
#include <functional>
#include <string_view>

namespace berth {
namespace {

std::size_t HashOf(const ConsumedCounters& counters) {
  std::size_t hash = counters.size();
  for (const ConsumedCounter& used : counters) {
    hash = hash * 31 + std::hash<std::string_view>()(used.set);
    hash = hash * 31 + std::hash<std::string_view>()(used.counter);
    hash = hash * 31 + std::hash<std::int64_t>()(used.milli);
  }
  return hash;
}

template <class Domains>
std::size_t BytesOf(const Domains& domains) {
  std::size_t bytes = 0;
  for (const auto& domain : domains) {
    bytes += sizeof(domain) + domain.name.size() + domain.entries.size() * sizeof(void*) * 2;
  }
  return bytes;
}

}  // namespace

void SharedDevices::Share(PublishedSlice& slice) {
  constexpr int kMostAlike = 8;
  if (counters_.size() >= sweep_at_) {
    std::erase_if(counters_, [](const auto& entry) { return entry.second.expired(); });
    sweep_at_ = std::max<std::size_t>(1024, 2 * counters_.size());
  }
  for (PublishedDevice& device : slice.devices) {
    values_.Share(device.seen);
    if (device.consumes == nullptr) continue;
    const std::size_t hash = HashOf(*device.consumes);
    int compared = 0;
    bool is_known = false;
    auto [at, end] = counters_.equal_range(hash);
    for (; at != end && !is_known && compared < kMostAlike; ++at, ++compared) {
      const auto other = at->second.lock();
      is_known = other != nullptr && *other == *device.consumes;
      if (is_known) device.consumes = other;
    }
    if (!is_known && compared < kMostAlike) counters_.emplace(hash, device.consumes);
  }
  slice.devices.shrink_to_fit();
}

std::size_t OwnBytes(const PublishedSlice& slice) {
  std::size_t bytes = sizeof(slice) + slice.counters.size() * sizeof(ConsumedCounter);
  for (const PublishedDevice& device : slice.devices) {
    bytes += sizeof(device) + device.name.size() + device.taints.size() * sizeof(Taint);
    bytes += BytesOf(device.seen.attributes()) + BytesOf(device.seen.capacity());
  }
  return bytes;
}

}  // namespace berth
