// SPDX-License-Identifier: Apache-2.0
#include "scoring/claims/claim_room.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "base/text.h"

namespace berth {
namespace {

// The pools that publish a device of that name; all are of one driver.
std::vector<const DevicePool*> PoolsWith(const NodeDevices& devices, const std::string& name) {
  std::vector<const DevicePool*> pools;
  for (const DevicePool& pool : devices.pools) {
    const bool has = std::ranges::any_of(pool.slices, [&name](const auto& slice) {
      return std::ranges::find(slice->devices, name, &PublishedDevice::name) !=
             slice->devices.end();
    });
    if (has) pools.push_back(&pool);
  }
  return pools;
}

}  // namespace

std::vector<HeldByPod> WholeGpusByPod(const Node& node, const ClaimEnds& ends) {
  if (node.claims() == nullptr) return {};
  std::map<std::string, std::vector<const PodRecord*>, std::less<>> users;  // of a claim
  for (const auto& held : node.pods()) {
    for (const std::string& claim : held->pod.claims) {
      users[held->pod.id.namespace_name + "/" + claim].push_back(held.get());
    }
  }
  std::map<std::string_view, std::vector<const ClaimedGpu*>> by_pod;
  for (const ClaimedGpu& device : *node.claims()) {
    if (!device.profile.empty()) continue;
    if (ends && ends(device)) {
      by_pod[""].push_back(&device);
      continue;
    }
    if (!device.pod.empty()) {
      const PodRecord* const made_for = node.FindPod(device.pod);
      const bool is_its =
          made_for != nullptr && made_for->pod.made_claim != 0 && device.IsWholeOf(made_for->pod);
      if (is_its) by_pod[device.pod].push_back(&device);
      continue;
    }
    const auto of = users.find(device.claim);
    if (of == users.end() || of->second.size() != 1) continue;
    const PodRecord& pod = *of->second.front();
    if (!pod.pod.shape.wants_gpu()) by_pod[pod.pod.id.uid].push_back(&device);
  }
  std::vector<HeldByPod> held;
  for (auto& [uid, devices] : by_pod) held.push_back({uid, std::move(devices)});
  return held;
}

Result<ClaimRoom> ClaimRoom::Make(std::vector<DeviceClaim> claims, const FindClass& find_class,
                                  std::shared_ptr<const DeviceOffers::ByNode> offers,
                                  const RequestShape& pod) {
  std::optional<RequestShape> shape = WholeGpusOf(claims, find_class, pod);
  if (!shape) return Invalid("its claims do not ask for a number of whole GPUs");
  BERTH_TRY(ClaimQuestion question, ClaimQuestion::Make(std::move(claims), find_class));
  return ClaimRoom(std::move(question), std::move(offers), *std::move(shape));
}

bool ClaimRoom::Publishes(const Node& node) const { return offers_->contains(node.spec().name); }

bool ClaimRoom::Has(const Node& node, const Node& left, const ClaimEnds& ends) {
  const auto devices = offers_->find(node.spec().name);
  if (devices == offers_->end()) return false;
  if (steps_left_ <= 0) {
    ran_out_ = true;
    return false;
  }
  std::set<DeviceName> taken = devices->second->taken;
  for (const HeldByPod& held : WholeGpusByPod(node, ends)) {
    if (left.FindPod(held.uid) != nullptr) continue;
    for (const ClaimedGpu* const device : held.devices) {
      const auto pools = PoolsWith(*devices->second, device->device);
      if (pools.size() == 1) taken.erase({pools.front()->name, device->device});
    }
  }
  const NodeQuestion asked = question_.On(devices->second->pools, taken);
  const PickedDevices picked = FirstFit(asked.question);
  steps_left_ -= picked.steps + asked.prepared + kStepsOfOne;
  ran_out_ = ran_out_ || picked.end == SearchEnd::kUnknown;
  return picked.end == SearchEnd::kFound;
}

}  // namespace berth
