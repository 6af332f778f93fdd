// SPDX-License-Identifier: Apache-2.0
#include "scoring/explain/gpu_use.h"

#include <algorithm>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "scoring/explain/node_access.h"
#include "scoring/registry.h"

namespace berth {

namespace {

// Empty: of none.
std::string_view OwnerOf(const PodRequest& pod, Owner by) {
  if (by == Owner::kNamespace) return pod.id.namespace_name;
  return pod.classes.empty() ? std::string_view() : std::string_view(pod.classes.front());
}

void Add(const PodRecord& record, const GpuPlaces& places, GpuUse& use) {
  use.gpus += GpusHeld(record, places);
  for (const auto& [profile, devices] : MigHeld(record)) use.mig_devices += devices;
  ++use.pods;
}

bool Holds(const PodRecord& record) {
  return record.pod.shape.wants_gpu() && record.state != PodState::kPlanned;
}

}  // namespace

double GpusHeld(const PodRecord& record, const GpuPlaces& places) {
  if (record.placement.places > 0) {
    const double part = places.gpus > 0 ? double(places.gpus) / places.count : 1;
    return record.placement.places * part;
  }
  if (record.unattributed()) return record.pod.shape.gpu_count();
  double gpus = 0;
  for (const DeviceGrant& grant : record.placement.grants) {
    gpus += grant.milli / double{kMilliPerGpu};
  }
  return gpus;
}

std::vector<std::pair<MigProfile, std::int64_t>> MigHeld(const PodRecord& record) {
  std::vector<std::pair<MigProfile, std::int64_t>> held;
  for (const MigGrant& grant : record.placement.mig) held.emplace_back(grant.profile, 1);
  const MigSlices* const asked = record.pod.shape.mig();
  if (!held.empty() || asked == nullptr) return held;
  for (const MigWant& want : asked->wants) {
    if (want.profile) held.emplace_back(*want.profile, want.count);
  }
  return held;
}

std::vector<OwnerUse> UseByOwner(const Snapshot& snapshot, Owner by) {
  std::vector<OwnerUse> uses;
  std::unordered_map<std::string_view, std::size_t> known;  // keys are of the snapshot
  std::vector<NodeIndex> last;                              // by use: the node counted last
  for (NodeIndex i = 0; i < snapshot.size(); ++i) {
    const Node& node = snapshot.node(i);
    for (const auto& pod : node.pods()) {
      const std::string_view owner = OwnerOf(pod->pod, by);
      if (owner.empty() || !Holds(*pod)) continue;
      const auto [at, is_new] = known.try_emplace(owner, uses.size());
      if (is_new) {
        uses.push_back({.name = std::string(owner), .use = {}});
        last.push_back(kNoNode);
      }
      OwnerUse& use = uses[at->second];
      Add(*pod, node.spec().places, use.use);
      use.nodes += last[at->second] != i;
      last[at->second] = i;
    }
  }
  std::ranges::sort(uses, [](const OwnerUse& a, const OwnerUse& b) {
    return a.use.gpus != b.use.gpus ? a.use.gpus > b.use.gpus : a.name < b.name;
  });
  return uses;
}

std::vector<NodeUse> UseByNode(const Snapshot& snapshot, Owner by, std::string_view name) {
  std::vector<NodeUse> uses;
  if (name.empty()) return uses;
  for (NodeIndex i = 0; i < snapshot.size(); ++i) {
    const Node& node = snapshot.node(i);
    GpuUse use;
    for (const auto& pod : node.pods()) {
      if (Holds(*pod) && OwnerOf(pod->pod, by) == name) Add(*pod, node.spec().places, use);
    }
    if (use.pods > 0) uses.push_back({node.spec().name, use});
  }
  return uses;
}

GpuHolders HoldersFor(const Snapshot& snapshot, const PodRequest& pod, std::size_t most) {
  GpuHolders holders;
  for (NodeIndex i = 0; i < snapshot.size(); ++i) {
    const Node& node = snapshot.node(i);
    const bool is_open = node.spec().ready && ClosedBy(node, pod) == Reason::kFits;
    if (!is_open || FirstObjection(AtItsBest(node), pod.shape) != Reason::kFits) continue;
    for (const auto& held : node.pods()) {
      const bool is_own = !pod.gang.empty() && held->pod.gang.id == pod.gang.id;
      const auto gpus = static_cast<int>(std::max<std::ptrdiff_t>(
          {std::ssize(held->placement.grants) + std::ssize(held->placement.mig),
           held->pod.shape.gpu_count(), held->placement.places}));
      if (is_own || gpus == 0) continue;
      holders.most.push_back({held->pod.id.full_name(), node.spec().name, gpus});
    }
  }
  holders.pods = holders.most.size();
  const auto order = [](const GpuHolder& one) { return std::tuple(-one.gpus, one.pod); };
  const auto end = holders.most.begin() + std::ssize(holders.most);
  const auto last =
      holders.most.begin() + static_cast<std::ptrdiff_t>(std::min(most, holders.most.size()));
  std::ranges::partial_sort(holders.most.begin(), last, end, {}, order);
  holders.most.erase(last, end);
  return holders;
}

}  // namespace berth
