// SPDX-License-Identifier: Apache-2.0
#include "server/dialects/dra/device_allotment.h"

#include <utility>

#include "scoring/priority.h"

namespace berth::dialects {
namespace {

std::vector<ClaimNode> NodesWithDevices(const DeviceOffers::ByNode& offers,
                                        const MigOffers::ByNode& mig, const Snapshot& snapshot,
                                        const ClaimNodes& nodes) {
  std::vector<ClaimNode> with_devices;
  for (std::size_t i = 0; i < nodes.names.size(); ++i) {
    const std::string& name = nodes.names[i];
    const auto devices = offers.find(name);
    if (devices == offers.end()) continue;
    ClaimNode& node = with_devices.emplace_back(ClaimNode{name, devices->second.get()});
    const NodeIndex index = snapshot.names().Find(name);
    if (index != kNoNode) node.node = &snapshot.node(index);
    const auto cut = mig.find(name);
    if (cut != mig.end()) node.mig = cut->second.get();
    if (!nodes.priorities.empty()) node.rank = kMaxPriority - nodes.priorities[i];
  }
  return with_devices;
}

// Which of its wants each request of the claim got.
std::vector<int> WantsGot(const ClaimChoice& choice, std::size_t claim, std::size_t requests) {
  std::vector<int> wants(requests);
  for (const ChosenDevice& device : choice.devices) {
    if (static_cast<std::size_t>(device.of.claim) != claim) continue;
    wants[static_cast<std::size_t>(device.of.request)] = device.of.option;
  }
  return wants;
}

}  // namespace

std::vector<DeviceName> DeviceAllotment::DevicesOf(std::size_t claim) const {
  std::vector<DeviceName> names;
  for (const ChosenDevice& device : devices) {
    if (static_cast<std::size_t>(device.of.claim) == claim) {
      names.emplace_back(device.pool, device.device);
    }
  }
  return names;
}

ClaimAllocation DeviceAllotment::AllocationOf(std::size_t claim, const DeviceClaim& asked) const {
  ClaimAllocation allocation{node, {}, configs[claim]};
  for (const ChosenDevice& device : devices) {
    if (static_cast<std::size_t>(device.of.claim) != claim) continue;
    const DeviceRequest& request = asked.requests[static_cast<std::size_t>(device.of.request)];
    const DeviceWant& want = request.wants[static_cast<std::size_t>(device.of.option)];
    allocation.results.push_back({&request, &want, device.driver, device.pool, device.device});
  }
  return allocation;
}

Result<DeviceAllotment> Allot(const std::vector<DeviceClaim>& claims,
                              const std::vector<int>& owners, const FindClass& find_class,
                              const DeviceOffers::ByNode& offers, const MigOffers::ByNode& mig,
                              const Snapshot& snapshot, const ClaimNodes& nodes) {
  BERTH_TRY(ClaimQuestion question, ClaimQuestion::Make(claims, find_class));
  question.OwnedBy(owners);
  if (question.WantsAllOfAnyDriver()) {
    return Invalid("it asks for all devices, and its selectors do not name their driver");
  }
  const auto with_devices = NodesWithDevices(offers, mig, snapshot, nodes);
  ClaimChoice choice = ChooseForClaims(question, with_devices, nodes.gpus);
  if (choice.end == SearchEnd::kUnknown) {
    return Invalid("it is not known which devices suit it, or takes too long to find out");
  }
  if (choice.end == SearchEnd::kError) return Invalid("a selector of it fails on a device");
  DeviceAllotment allotment;
  if (choice.end != SearchEnd::kFound) return allotment;
  allotment.node = with_devices[choice.node].name;
  for (std::size_t i = 0; i < claims.size(); ++i) {
    const auto wants = WantsGot(choice, i, claims[i].requests.size());
    allotment.configs.push_back(ConfigsOf(claims[i], wants, [&find_class](std::string_view name) {
      const auto found = find_class(name);
      return found ? found->configs : std::vector<DeviceConfig>();
    }));
  }
  allotment.devices = std::move(choice.devices);
  return allotment;
}

}  // namespace berth::dialects
