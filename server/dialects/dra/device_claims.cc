// SPDX-License-Identifier: Apache-2.0
#include "server/dialects/dra/device_claims.h"

#include <algorithm>
#include <array>
#include <tuple>
#include <utility>

#include "scoring/mig/mig_tables.h"

namespace berth::dialects {
namespace {

// The device as the newest slice that has it describes it; nullptr: none has.
const GpuDevice* FindDevice(const std::map<std::string, ResourceSlice>& slices,
                            const std::string& name) {
  const GpuDevice* newest = nullptr;
  std::int64_t generation = 0;
  for (const auto& [slice_name, slice] : slices) {
    if (newest != nullptr && slice.generation <= generation) continue;
    const auto at = std::ranges::lower_bound(slice.devices, name, {}, &GpuDevice::name);
    if (at == slice.devices.end() || at->name != name) continue;
    newest = &*at;
    generation = slice.generation;
  }
  return newest;
}

// Those of the pool's newest generation: older slices are on their way out.
std::vector<const GpuDevice*> NewestDevices(const std::map<std::string, ResourceSlice>& slices) {
  std::int64_t newest = 0;
  for (const auto& [name, slice] : slices) newest = std::max(newest, slice.generation);
  std::vector<const GpuDevice*> devices;
  for (const auto& [name, slice] : slices) {
    if (slice.generation != newest) continue;
    for (const GpuDevice& device : slice.devices) devices.push_back(&device);
  }
  return devices;
}

// device: nullptr where no slice has it.
ClaimedGpu Describe(const std::string& claim, const std::string& name, const GpuDevice* device) {
  if (device == nullptr) return {claim, name, "", GpuIndexIn(name), "", -1};
  return {claim, name, device->uuid, device->index, device->profile, device->start};
}

}  // namespace

DeviceClaims::DeviceClaims(const Tables& tables, bool chooses, const kube::OnUnreadable& report,
                           std::size_t most_published)
    : state_(tables.state),
      offers_(tables.offers),
      devices_(tables.devices),
      open_(tables.open),
      chooses_(chooses),
      most_published_(most_published),
      classes_(tables.classes),
      unknown_("resourceclaims", report),
      unknown_pools_("resourceslices", report),
      overlapping_("resourceclaims", report),
      uncounted_("resourceslices", report),
      beyond_("resourceslices", report) {}

void DeviceClaims::Put(std::vector<ResourceSlice> slices, bool replace) {
  const MutexLock lock(mutex_);
  Nodes changed;
  if (replace) {
    while (!pool_of_slice_.empty()) DropSlice(pool_of_slice_.begin()->first, changed);
  }
  for (ResourceSlice& slice : slices) {
    DropSlice(slice.name, changed);
    if (slice.devices.empty() && slice.published == nullptr) continue;  // of another driver
    slice.published = Kept(slice);
    const std::string pool = slice.pool;
    pool_of_slice_.emplace(slice.name, pool);
    const std::string name = slice.name;
    pools_[pool].slices.insert_or_assign(name, std::move(slice));
    pools_[pool].offers.reset();
    RehomePool(pool, changed);
  }
  PublishSlices(changed);
}

std::shared_ptr<const PublishedSlice> DeviceClaims::Kept(const ResourceSlice& slice) {
  if (!chooses_ || slice.published == nullptr) return slice.published;
  if (std::ranges::all_of(slice.published->devices, IsWholeGpu)) return slice.published;
  const std::size_t bytes = OwnBytes(*slice.published);
  if (all_published_ + bytes <= most_published_) {
    all_published_ += bytes;
    published_bytes_.emplace(slice.name, bytes);
    return slice.published;
  }
  auto kept = std::make_shared<PublishedSlice>(WholeGpusOf(*slice.published));
  kept->in_part = true;
  beyond_.Add(slice.name, "want less than " + std::to_string(kMostPublished >> 20) +
                              " MiB of devices in all, got more; kube-scheduler alone gives the "
                              "devices of this node to claims");
  return kept;
}

void DeviceClaims::Put(std::vector<ResourceClaim> claims, bool replace) {
  const MutexLock lock(mutex_);
  Nodes changed;
  if (replace) {
    while (!pools_of_claim_.empty()) DropClaim(pools_of_claim_.begin()->first, changed);
  }
  OpenClaims::Shown shown;
  std::vector<std::string> allocated;
  for (ResourceClaim& claim : claims) {
    const std::string name = FullName(claim.namespace_name, claim.name);
    DropClaim(name, changed);
    KnownClaim known{
        .version = claim.version, .allocated = claim.allocated, .asks = std::move(claim.asks)};
    if (!claim.devices.empty()) known.made_for = claim.devices.front().pod;
    for (ClaimedDevice& held : claim.devices) {
      pools_of_claim_[name].insert(held.pool);
      const std::string pool = held.pool;
      pools_[pool].claims[name].push_back(std::move(held));
      RehomePool(pool, changed);
      known.node = pools_[pool].node;
    }
    if (known.allocated) allocated.push_back(name);
    shown.emplace_back(name, std::move(known));
  }
  Publish(changed);
  open_.Put(std::move(shown), replace);
  for (const std::string& name : allocated) {
    // What it has is seen now; not if it had that before what is held for it.
    if (const auto known = open_.Find(name); known && known->allocated) devices_.Release(name);
  }
}

void DeviceClaims::Remove(std::type_identity<ResourceSlice>, const std::string& name) {
  const MutexLock lock(mutex_);
  Nodes changed;
  DropSlice(name, changed);
  PublishSlices(changed);
}

void DeviceClaims::Remove(std::type_identity<ResourceClaim>, const std::string& name) {
  const MutexLock lock(mutex_);
  Nodes changed;
  open_.Remove(name);
  DropClaim(name, changed);
  Publish(changed);
  devices_.Release(name);
}

void DeviceClaims::Put(std::vector<DeviceClass> classes, bool replace) {
  if (replace) {
    classes_.Reset(std::move(classes));
  } else {
    for (DeviceClass& added : classes) classes_.Put(std::move(added));
  }
  FollowClasses();
}

void DeviceClaims::Remove(std::type_identity<DeviceClass>, const std::string& name) {
  classes_.Remove(name);
  FollowClasses();
}

void DeviceClaims::FollowClasses() {
  const MutexLock lock(mutex_);
  std::map<std::string, DeviceClass> whole = classes_.WholeByName();
  if (whole != whole_) {
    matches_.clear();
    for (const auto& [resource, each] : whole) {
      if (auto match = ClassMatch::Of(each.selectors)) {
        matches_.push_back({resource, *std::move(match)});
      }
    }
    // A node is shown by the name that pods use: the other one every class has.
    std::stable_partition(matches_.begin(), matches_.end(), [](const MatchByName& match) {
      return !match.resource.starts_with(kDeviceClassPrefix);
    });
    whole_ = std::move(whole);
    PublishGpus(AllNodes());
  }
  std::vector<MigProfile> by_name = classes_.Profiles();
  if (by_name == by_name_) return;
  by_name_ = std::move(by_name);
  Publish(AllNodes());
}

void DeviceClaims::Put(std::vector<DeviceTaintRule> rules, bool replace) {
  const MutexLock lock(mutex_);
  Nodes changed;
  std::map<std::string, DeviceTaintRule> before;
  if (replace) before.swap(rules_);
  for (DeviceTaintRule& rule : rules) {
    auto known = (replace ? before : rules_).extract(rule.name);
    // Its status is written far more often than what it says.
    const bool is_same = !known.empty() && known.mapped() == rule;
    if (!known.empty() && !is_same) AddTainted(known.mapped(), changed);
    if (!is_same) AddTainted(rule, changed);
    std::string name = rule.name;
    rules_.insert_or_assign(std::move(name), std::move(rule));
  }
  for (const auto& [name, gone] : before) AddTainted(gone, changed);
  PublishSlices(changed);
}

void DeviceClaims::Remove(std::type_identity<DeviceTaintRule>, const std::string& name) {
  const MutexLock lock(mutex_);
  const auto gone = rules_.extract(name);
  Nodes changed;
  if (!gone.empty()) AddTainted(gone.mapped(), changed);
  PublishSlices(changed);
}

void DeviceClaims::AddTainted(const DeviceTaintRule& rule, Nodes& nodes) const {
  if (!rule.taint || !rule.selects) return;
  if (!rule.pool) return nodes.merge(AllNodes());
  if (const auto pool = pools_.find(*rule.pool); pool != pools_.end()) {
    nodes.insert(pool->second.node);
  }
}

void DeviceClaims::PublishSlices(const Nodes& nodes) {
  for (const std::string& node : nodes) gathered_.erase(node);
  devices_.NoteInPart(beyond_.count() > 0);
  PublishGpus(nodes);
  Publish(nodes);
}

DeviceClaims::Nodes DeviceClaims::AllNodes() const {
  Nodes all;
  for (const auto& [node, pools] : pools_on_node_) all.insert(node);
  return all;
}

// name: by value, since that of the caller may be the entry's.
void DeviceClaims::DropSlice(std::string name, Nodes& changed) {
  const auto known = pool_of_slice_.find(name);
  if (known == pool_of_slice_.end()) return;
  const std::string pool = known->second;
  pool_of_slice_.erase(known);
  beyond_.Remove(name);
  if (const auto bytes = published_bytes_.find(name); bytes != published_bytes_.end()) {
    all_published_ -= bytes->second;
    published_bytes_.erase(bytes);
  }
  pools_[pool].slices.erase(name);
  pools_[pool].offers.reset();
  RehomePool(pool, changed);
}

void DeviceClaims::DropClaim(std::string name, Nodes& changed) {
  unknown_.Remove(name);
  const auto known = pools_of_claim_.find(name);
  if (known == pools_of_claim_.end()) return;
  const std::set<std::string> pools = std::move(known->second);
  pools_of_claim_.erase(known);
  for (const std::string& pool : pools) {
    pools_[pool].claims.erase(name);
    RehomePool(pool, changed);
  }
}

void DeviceClaims::RehomePool(const std::string& pool_name, Nodes& changed) {
  const auto entry = pools_.find(pool_name);
  Pool& pool = entry->second;
  const std::string before = pool.node;
  pool.node = pool_name.substr(pool_name.find(':') + 1);  // a driver may stand before it
  for (const auto& [name, slice] : pool.slices) {
    if (!slice.node.empty()) pool.node = slice.node;
  }
  if (!before.empty()) {
    changed.insert(before);
    const auto on_node = pools_on_node_.find(before);
    on_node->second.erase(pool_name);
    if (on_node->second.empty()) pools_on_node_.erase(on_node);
  }
  changed.insert(pool.node);
  if (pool.slices.empty() && pool.claims.empty()) {
    pools_.erase(entry);
    unknown_pools_.Remove(pool_name);
  } else {
    pools_on_node_[pool.node].insert(pool_name);
  }
}

void DeviceClaims::Publish(const Nodes& nodes) {
  std::vector<ClusterEvent> events;
  std::vector<std::pair<std::string, OfferedGpus>> offers;
  std::vector<std::pair<std::string, NodeDevices>> devices;
  for (const std::string& node : nodes) {
    std::vector<ClaimedGpu> once;
    std::vector<ClaimedGpu> claimed = ClaimedOn(node, once);
    OfferedGpus offered = OfferedOn(node);
    NoteCollisions(node, once, TakeClaimed(once, offered));
    NodeMig mig = MigByExtendedResources(offered, by_name_);
    if (mig.known()) (void)MigTablesOf(mig->product);  // here, and not when the first pod is placed
    events.emplace_back(GpusClaimed{node, std::move(claimed)});
    events.emplace_back(GpusOffered{node, std::move(mig)});
    offers.emplace_back(node, std::move(offered));
    if (chooses_) devices.emplace_back(node, DevicesOn(node));
  }
  if (!events.empty()) (void)state_.Apply(events);  // nothing in it that could be invalid
  offers_.Put(std::move(offers));
  devices_.Put(std::move(devices));
}

NodeDevices DeviceClaims::DevicesOn(const std::string& node) {
  NodeDevices on_node{PoolsOn(node), {}};
  const auto in_part = [](const DevicePool& pool) {
    return std::ranges::any_of(pool.slices, [](const auto& slice) { return slice->in_part; });
  };
  if (std::ranges::any_of(on_node.pools, in_part)) return {};
  for (const std::string& pool_name : PoolNamesOn(node)) {
    for (const auto& [claim, devices] : pools_.find(pool_name)->second.claims) {
      for (const ClaimedDevice& device : devices) {
        DeviceName name = {pool_name, device.device};
        if (device.shared) {
          AddUses(on_node.parts[std::move(name)], device.part);
        } else {
          on_node.taken.insert(std::move(name));
        }
      }
    }
  }
  return on_node;
}

const std::set<std::string>& DeviceClaims::PoolNamesOn(const std::string& node) const {
  static const std::set<std::string> kNone;
  const auto pools = pools_on_node_.find(node);
  return pools == pools_on_node_.end() ? kNone : pools->second;
}

void DeviceClaims::PublishGpus(const Nodes& nodes) {
  std::vector<ClusterEvent> events;
  for (const std::string& node : nodes) {
    FoundGpus found = ReadWholeGpus(PoolsOn(node), matches_, links_);
    uncounted_.Note(node, found.problem);
    for (const std::string& pool : PoolNamesOn(node)) {
      if (pool.find(':') == std::string::npos) continue;
      for (const GpuDevice* const device : NewestDevices(pools_.find(pool)->second.slices))
        ++found.gpus.of_drivers[device->product];
    }
    events.emplace_back(SliceGpusOffered{node, std::move(found.gpus)});
  }
  if (!events.empty()) (void)state_.Apply(events);  // nothing in it that could be invalid
}

const DevicePools& DeviceClaims::PoolsOn(const std::string& node) {
  const auto [known, is_new] = gathered_.try_emplace(node);
  if (is_new) known->second = Gather(node);
  if (!known->second.empty()) return known->second;
  gathered_.erase(known);
  static const DevicePools kNone;
  return kNone;
}

DevicePools DeviceClaims::Gather(const std::string& node) const {
  std::vector<std::shared_ptr<const PublishedSlice>> slices;
  for (const std::string& pool_name : PoolNamesOn(node)) {
    for (const auto& [name, slice] : pools_.find(pool_name)->second.slices) {
      // One of several nodes leaves its pool incomplete: what kube-scheduler takes is not known.
      const bool is_of_node = slice.published != nullptr && slice.published->node == node;
      if (is_of_node) slices.push_back(slice.published);
    }
  }
  std::vector<DeviceTaintRule> rules;
  for (const auto& [name, rule] : rules_) {
    if (rule.taint && rule.selects) rules.push_back(rule);
  }
  return WithRules(GatherPools(std::move(slices)), rules);
}

OfferedGpus DeviceClaims::OfferedOn(const std::string& node) {
  OfferedGpus offered;
  for (const std::string& pool_name : PoolNamesOn(node)) {
    Pool& pool = pools_.find(pool_name)->second;
    if (!pool.offers) {
      FoundOffers found = ReadMigOffers(pool_name, NewestDevices(pool.slices));
      unknown_pools_.Note(pool_name, found.problem);
      pool.offers = std::move(found.gpus);
    }
    offered.insert(offered.end(), pool.offers->begin(), pool.offers->end());
  }
  return offered;
}

void DeviceClaims::NoteCollisions(const std::string& node, std::span<const ClaimedGpu> claimed,
                                  std::span<const ClaimedGpu* const> overlapping) {
  std::vector<Collision> collisions = PartsBeyond(node);
  const auto note = [&](const ClaimedGpu& one, const ClaimedGpu& other) {
    if (one.claim == other.claim) return false;
    collisions.push_back({node, one.claim, one.device, other.claim, other.device});
    return true;
  };
  std::map<std::tuple<std::string_view, std::string_view, int>, const ClaimedGpu*> devices;
  for (const ClaimedGpu& held : claimed) {
    const auto [known, is_new] = devices.try_emplace({held.device, held.uuid, held.index}, &held);
    if (!is_new) note(*known->second, held);
  }
  for (const ClaimedGpu* const held : overlapping) {
    if (devices.at({held->device, held->uuid, held->index}) != held) continue;  // noted
    const OfferedGpus free = OfferedOn(node);
    for (const ClaimedGpu& other : claimed) {
      OfferedGpus both = free;
      if (!TakeClaimed(std::array{other, *held}, both).empty() && note(other, *held)) break;
    }
  }
  std::set<std::string> before;
  for (const Collision& each : collisions_on_node_[node]) before.insert(each.other);
  for (const Collision& each : collisions) {
    const std::string why = each.beyond.empty()
                                ? "another claim has a part of it"
                                : "claims have more of its " + each.beyond + " than there is";
    overlapping_.Add(each.other, "device " + each.other_device + " of node " + node + ": " + why);
    before.erase(each.other);
  }
  for (const std::string& claim : before) overlapping_.Remove(claim);
  collisions_on_node_[node] = std::move(collisions);
  if (collisions_on_node_[node].empty()) collisions_on_node_.erase(node);
}

// A claim that is too much does not count for the next ones: it is enough to take back one of two.
std::vector<DeviceClaims::Collision> DeviceClaims::PartsBeyond(const std::string& node) {
  using Sharer = std::pair<const std::string*, const CapacityUses*>;  // a claim and its part
  std::vector<Collision> found;
  for (const DevicePool& pool : PoolsOn(node)) {
    std::map<std::string_view, std::vector<Sharer>> sharers;  // by device
    for (const auto& [claim, devices] : pools_.find(pool.name)->second.claims) {
      for (const ClaimedDevice& device : devices) {
        if (device.shared) sharers[device.device].emplace_back(&claim, &device.part);
      }
    }
    for (const auto& [name, all] : sharers) {
      const PublishedDevice* const device = pool.Find(name);
      if (device == nullptr) continue;
      std::vector<Sharer> have;
      CapacityUses uses;
      for (const Sharer& sharer : all) {
        CapacityUses with = uses;
        AddUses(with, *sharer.second);
        const auto beyond =
            std::ranges::find_if(device->capacities(), [&with](const DeviceCapacity& capacity) {
              return capacity.is_exact && with[capacity.name] > capacity.there_is;
            });
        if (beyond == device->capacities().end() || have.empty()) {
          uses = std::move(with);
          have.push_back(sharer);
          continue;
        }
        const Sharer& largest = *std::ranges::max_element(have, {}, [&beyond](const Sharer& one) {
          const auto use = one.second->find(beyond->name);
          return use == one.second->end() ? 0 : use->second;
        });
        found.push_back({node, *largest.first, device->name, *sharer.first, device->name,
                         beyond->name.substr(beyond->name.find('/') + 1)});
      }
    }
  }
  return found;
}

std::vector<DeviceClaims::Collision> DeviceClaims::collisions() const {
  const MutexLock lock(mutex_);
  std::vector<Collision> all;
  for (const auto& [node, on_node] : collisions_on_node_) {
    all.insert(all.end(), on_node.begin(), on_node.end());
  }
  return all;
}

std::vector<ClaimedGpu> DeviceClaims::ClaimedOn(const std::string& node,
                                                std::vector<ClaimedGpu>& once) {
  std::vector<ClaimedGpu> claimed;
  for (const std::string& pool_name : PoolNamesOn(node)) {
    const Pool& pool = pools_.find(pool_name)->second;
    std::set<std::string_view> shared;
    for (const auto& [claim, devices] : pool.claims) {
      std::string problem;
      for (const ClaimedDevice& device : devices) {
        const std::string& name = device.device;
        ClaimedGpu gpu = Describe(claim, name, FindDevice(pool.slices, name));
        gpu.pod = device.pod;
        gpu.shared = device.shared;
        for (const auto& [capacity, milli] : device.part) {
          if (std::int64_t* const part = AmountOf(gpu.parts, capacity)) *part = milli;
        }
        if (name.find('/') != std::string::npos) {  // of another driver
          claimed.push_back(std::move(gpu));
        } else if (gpu.uuid.empty() && gpu.index < 0) {
          problem = "device " + name + " of pool " + pool_name +
                    ": want a ResourceSlice that says its GPU, or a name like gpu-0, got neither";
        } else {
          if (!device.shared || shared.insert(name).second) once.push_back(gpu);
          claimed.push_back(std::move(gpu));
        }
      }
      unknown_.Note(claim, problem);
    }
  }
  return claimed;
}

}  // namespace berth::dialects
