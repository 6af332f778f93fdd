// SPDX-License-Identifier: Apache-2.0
#include "cluster/claims/device_offers.h"

#include <iterator>

namespace berth {
namespace {

// A claim may ask for devices of several pools that are alike, so that it matters which of their
// own attributes are: nobody compares these over pools.
std::optional<Digest> LikenessOf(const NodeDevices& node) {
  if (node.pools.size() != 1) return std::nullopt;
  Digester digester;
  digester.Add(node.pools.front().likeness.high);
  digester.Add(node.pools.front().likeness.low);
  for (const auto& [pool, device] : node.taken) digester.Add(device);
  return digester.digest();
}

}  // namespace

std::shared_ptr<const DeviceOffers::ByNode> DeviceOffers::Current() const {
  const MutexLock lock(mutex_);
  return current_;
}

void DeviceOffers::Put(std::vector<std::pair<std::string, NodeDevices>> nodes) {
  const MutexLock lock(mutex_);
  std::shared_ptr<ByNode> next;  // copied when the first node changes
  for (auto& [name, devices] : nodes) {
    const auto known = put_.find(name);
    if (known == put_.end() ? devices.pools.empty() : known->second->IsSame(devices)) continue;
    if (!next) next = std::make_shared<ByNode>(*current_);
    if (devices.pools.empty()) {
      put_.erase(known);
    } else {
      devices.likeness = LikenessOf(devices);
      put_.insert_or_assign(name, std::make_shared<const NodeDevices>(std::move(devices)));
    }
    Publish(name, *next);
  }
  if (next) current_ = std::move(next);
}

void DeviceOffers::Publish(const std::string& node, ByNode& next) const {
  const auto put = put_.find(node);
  if (put == put_.end()) {
    next.erase(node);
    return;
  }
  std::shared_ptr<NodeDevices> with_holds;
  for (const auto& [claim, held] : holds_) {
    if (held.node != node) continue;
    if (!with_holds) with_holds = std::make_shared<NodeDevices>(*put->second);
    with_holds->taken.insert(held.devices.begin(), held.devices.end());
  }
  if (with_holds) with_holds->likeness = LikenessOf(*with_holds);
  next.insert_or_assign(node, with_holds ? Devices(std::move(with_holds)) : put->second);
}

Status DeviceOffers::Hold(const ByNode& chosen_from, const std::vector<ClaimHold>& holds,
                          Instant now, Instant until) {
  const MutexLock lock(mutex_);
  for (const ClaimHold& hold : holds) {
    const auto there_is = current_->find(hold.node);
    const auto before = chosen_from.find(hold.node);
    if (there_is == current_->end() || before == chosen_from.end() ||
        there_is->second != before->second) {
      return Fail(Errc::kConflict, "the devices of node " + hold.node + " have changed");
    }
  }
  auto next = std::make_shared<ByNode>(*current_);
  for (auto held = holds_.begin(); held != holds_.end();) {
    held = held->second.until <= now ? Drop(held, *next) : std::next(held);
  }
  for (const ClaimHold& hold : holds) {
    if (const auto held = holds_.find(hold.claim); held != holds_.end()) Drop(held, *next);
  }
  for (const ClaimHold& hold : holds) {
    holds_.insert_or_assign(hold.claim, Held{hold.node, hold.devices, until});
  }
  for (const ClaimHold& hold : holds) Publish(hold.node, *next);
  current_ = std::move(next);
  return {};
}

DeviceOffers::Holds::iterator DeviceOffers::Drop(Holds::iterator held, ByNode& next) {
  const std::string node = held->second.node;
  const auto after = holds_.erase(held);
  Publish(node, next);
  return after;
}

void DeviceOffers::Release(std::string_view claim) {
  const MutexLock lock(mutex_);
  const auto held = holds_.find(claim);
  if (held == holds_.end()) return;
  auto next = std::make_shared<ByNode>(*current_);
  Drop(held, *next);
  current_ = std::move(next);
}

}  // namespace berth
