// SPDX-License-Identifier: Apache-2.0
#include "server/extender/gangs/roster/gang_claims.h"

#include <algorithm>
#include <optional>
#include <unordered_set>
#include <utility>

#include "scoring/gangs/gang_plan.h"

namespace berth {
namespace {

std::string NameOf(const PodRequest& pod, const std::string& claim) {
  return FullName(pod.id.namespace_name, claim);
}

}  // namespace

ClaimState GangClaims::StateOf(const PodRequest& pod) const {
  // A pod that has GPUs of a device plugin too is bound by Berth, and its claims come before that.
  if (pod.claims.empty() || pod.claims.size() > kMostPodClaims || pod.shape.wants_gpu()) {
    return ClaimState::kNone;
  }
  ClaimState state = ClaimState::kAllocated;
  for (const std::string& claim : pod.claims) {
    const std::optional<KnownClaim> known = open_.Find(NameOf(pod, claim));
    if (known && known->allocated) continue;
    if (known && known->asks == nullptr) return ClaimState::kNone;
    if (!known) {
      state = ClaimState::kUnseen;
    } else if (state == ClaimState::kAllocated) {
      state = ClaimState::kOpen;
    }
  }
  return state;
}

std::string GangClaims::NodeOf(const PodRequest& pod) const {
  for (const std::string& claim : pod.claims) {
    const std::optional<KnownClaim> known = open_.Find(NameOf(pod, claim));
    if (known && known->allocated && !known->node.empty()) return known->node;
  }
  return "";
}

GangDevices::Claims GangClaims::OpenOf(const PodRequest& pod) const {
  GangDevices::Claims claims;
  for (const std::string& name : pod.claims) {
    const std::optional<KnownClaim> known = open_.Find(NameOf(pod, name));
    if (known && known->asks != nullptr) claims.push_back(known->asks);
  }
  return claims;
}

Result<ClaimRoom> GangClaims::RoomOf(const PodRequest& pod) const {
  if (StateOf(pod) != ClaimState::kOpen) return Invalid("it has no claims without devices");
  if (devices_.in_part()) return Invalid("not all devices of the cluster are kept");
  // The others have devices of one node: room anywhere else is none.
  if (!NodeOf(pod).empty()) return Invalid("some of its claims have devices");
  std::vector<DeviceClaim> claims;
  for (const auto& asks : OpenOf(pod)) claims.push_back(*asks);
  const auto find_class = [this](std::string_view name) { return classes_.Named(name); };
  return ClaimRoom::Make(std::move(claims), find_class, devices_.Current(), pod.shape);
}

bool GangClaims::AreSeparate(std::span<const std::shared_ptr<const PodRequest>> members) {
  std::unordered_set<std::string_view> names;
  for (const auto& pod : members) {
    for (const std::string& claim : pod->claims) {
      if (!claim.empty() && !names.insert(claim).second) return false;
    }
  }
  return names.size() <= kMostTogether;
}

Result<GangClaims::Needs> GangClaims::NeedsOf(
    std::span<const std::shared_ptr<const PodRequest>> members, const Snapshot& snapshot) const {
  Needs needs;
  std::vector<GangDevices::Claims> kinds;
  for (const auto& pod : members) {
    needs.kinds.push_back(kNoClaims);
    if (StateOf(*pod) != ClaimState::kOpen) continue;
    GangDevices::Claims claims = OpenOf(*pod);
    const auto same = std::ranges::find_if(kinds, [&claims](const GangDevices::Claims& kind) {
      return std::ranges::equal(kind, claims,
                                [](const auto& a, const auto& b) { return a == b || *a == *b; });
    });
    needs.kinds.back() = static_cast<int>(same - kinds.begin());
    if (same == kinds.end()) kinds.push_back(std::move(claims));
  }
  if (kinds.empty()) return needs;
  if (devices_.in_part()) return Invalid("not all devices of the cluster are kept");
  const auto find_class = [this](std::string_view name) { return classes_.Named(name); };
  BERTH_TRY(GangDevices devices,
            GangDevices::Make(kinds, find_class, *devices_.Current(), snapshot));
  needs.devices = std::make_unique<GangDevices>(std::move(devices));
  return needs;
}

}  // namespace berth
