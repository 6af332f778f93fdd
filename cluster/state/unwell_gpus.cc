// SPDX-License-Identifier: Apache-2.0
#include "cluster/state/unwell_gpus.h"

#include <algorithm>
#include <span>

namespace berth {
namespace {

constexpr std::string_view kSaidBy = "status of pods";

bool SaysUnwell(const PodRecords& pods, const std::string& id) {
  return std::ranges::any_of(
      pods, [&id](const auto& pod) { return pod->given != nullptr && pod->given->IsUnwell(id); });
}

// Whether that text in a status stands for the device with that name in its ResourceSlice: it is
// "driver/pool/NAME", or the name of a CDI device, which ends in it.
// (Kubernetes 1.37, pkg/kubelet/cm, buildResourceHealth.)
bool StandsFor(std::string_view id, std::string_view device) {
  id = id.substr(id.find_last_of("/=") + 1);
  if (device.empty() || !id.ends_with(device)) return false;
  id.remove_suffix(device.size());
  return id.empty() || id.ends_with('-');
}

// The UUIDs of the GPUs that claims hold as a whole and that go by that text.
std::set<std::string> GpusBehind(const std::string& id, const NodeSpec& said,
                                 const Node::Claims& claims) {
  std::set<std::string> uuids;
  if (claims == nullptr) return uuids;
  for (const ClaimedGpu& held : *claims) {
    if (!held.profile.empty() || !StandsFor(id, held.device)) continue;
    ForEachGpu(HeldByClaims(said, std::span(&held, 1)),
               [&](int gpu) { uuids.insert(said.UuidOf(gpu)); });
  }
  uuids.erase("");
  return uuids;
}

// What the status of a pod says of the devices of its claims.
void HearOfClaims(const PodRecord& pod, const NodeSpec& said, const Node::Claims& claims,
                  std::set<std::string>& unwell) {
  if (pod.given == nullptr) return;
  for (const std::string& id : pod.given->claimed) {
    for (const std::string& uuid : GpusBehind(id, said, claims)) {
      if (pod.given->IsUnwell(id)) {
        unwell.insert(uuid);
      } else {
        unwell.erase(uuid);
      }
    }
  }
}

}  // namespace

bool UnwellGpus::Hear(const std::string& node, const GivenDevices* before, const GivenDevices* now,
                      const NodeSpec* spec) {
  const auto known = by_node_.find(node);
  if (known == by_node_.end()) {
    if (now == nullptr || now->unwell.empty()) return false;
    Entry entry{.ids = {now->unwell.begin(), now->unwell.end()}, .said = nullptr};
    if (spec != nullptr) entry.said = std::make_shared<const NodeSpec>(*spec);
    by_node_.emplace(node, std::move(entry));
    return true;
  }
  if (now == nullptr) return before != nullptr && !before->unwell.empty();
  std::set<std::string>& ids = known->second.ids;
  const std::set<std::string> was = ids;
  bool well = false;  // a claim's device, by what is said now
  for (const auto* const names : {&now->ids, &now->mig, &now->claimed}) {
    for (const std::string& id : *names) {
      if (now->IsUnwell(id)) {
        ids.insert(id);
      } else {
        ids.erase(id);
        well = well || names == &now->claimed;
      }
    }
  }
  return ids != was || (well && !known->second.claimed.empty());
}

void UnwellGpus::Close(NodeSpec& said, const PodRecords& pods, const Node::Claims& claims) {
  const auto known = by_node_.find(said.name);
  if (known == by_node_.end()) return;
  Entry& entry = known->second;
  if (said.missing == 0) {
    std::erase_if(entry.ids, [&pods](const std::string& id) { return !SaysUnwell(pods, id); });
  }
  for (const auto& pod : pods) HearOfClaims(*pod, said, claims, entry.claimed);
  if (entry.ids.empty() && entry.claimed.empty()) {
    by_node_.erase(known);
    return;
  }
  entry.said = std::make_shared<const NodeSpec>(said);
  for (const auto* const names : {&entry.ids, &entry.claimed}) {
    for (const std::string& id : *names) (void)CloseNamed(said, id, kSaidBy);
  }
}

void UnwellGpus::ForgetClaimed(std::string_view node) {
  const auto known = by_node_.find(node);
  if (known != by_node_.end()) known->second.claimed.clear();
}

const NodeSpec& UnwellGpus::SaidOf(const NodeSpec& spec) const {
  const auto known = by_node_.find(spec.name);
  const bool has = known != by_node_.end() && known->second.said != nullptr;
  return has ? *known->second.said : spec;
}

void UnwellGpus::Forget(std::string_view node) {
  const auto known = by_node_.find(node);
  if (known != by_node_.end()) by_node_.erase(known);
}

}  // namespace berth
