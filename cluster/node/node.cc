// SPDX-License-Identifier: Apache-2.0
#include "cluster/node/node.h"

#include <bit>
#include <variant>

#include "base/dns_name.h"
#include "cluster/node/given_grants.h"
#include "topology/gpu_vendor.h"

namespace berth {
namespace {

// Beyond any machine, and far from where sums and products of capacities overflow.
constexpr std::int64_t kMostGpuMemoryMib = std::int64_t{1} << 40;

// The part of a GPU that could still be given, in thousandths.
std::int64_t RoomOf(const GpuSpec& spec, const GpuFree& free) {
  std::int64_t milli = free.milli;
  if (spec.memory_mib > 0) {
    milli = std::min(milli, free.memory_mib * kMilliPerGpu / spec.memory_mib);
  }
  return std::max<std::int64_t>(milli, 0);
}

Status ShortOf(std::string_view what, std::int64_t wanted, std::int64_t free) {
  return Fail(Errc::kConflict, std::string(what) + ": want " + std::to_string(wanted) + ", free " +
                                   std::to_string(free));
}

// Whether the node has GPUs that the pod could have. Where it has none of its resource, a
// claim gives it others.
bool HasGpusFor(const NodeSpec& spec, const PodRequest& pod) {
  if (spec.IsOfOtherGpus(pod.shape)) return false;
  if (pod.device_class.empty()) return true;
  return spec.has_gpus() && spec.GivesGpusAs(pod.shape.gpu_resource);
}

// Whether the GPU that both claim counts for the one that was given it.
bool Outranks(const PodRecord& given, const PodRecord& other) {
  if (&given == &other) return false;
  if (given.evidence() != other.evidence()) return given.evidence() > other.evidence();
  return given.evidence() == Evidence::kAgent && given.pod.id.uid < other.pod.id.uid;
}

}  // namespace

Status Validate(const NodeSpec& spec) {
  // Names go unescaped into JSON answers, into paths of the API, and as keys into annotations.
  if (!IsDnsSubdomain(spec.name)) {
    return Invalid(".name: want a DNS-1123 name, got \"" + spec.name + "\"");
  }
  const auto check = [](std::string_view field, std::int64_t value, std::int64_t most) -> Status {
    if (value >= 0 && value <= most) return {};
    return Invalid("." + std::string(field) + ": want a capacity of 0.." + std::to_string(most) +
                   ", got " + std::to_string(value));
  };
  BERTH_TRY_STATUS(check("cpu_milli", spec.cpu_milli, kMostCpuMilli));
  BERTH_TRY_STATUS(check("memory_bytes", spec.memory_bytes, kMostMemoryBytes));
  BERTH_TRY_STATUS(check("ephemeral_bytes", spec.ephemeral_bytes.value_or(0), kMostMemoryBytes));
  if (spec.gpus.size() > kMaxGpusPerNode) {
    return Invalid(".gpus: want at most " + std::to_string(kMaxGpusPerNode) + " GPUs, got " +
                   std::to_string(spec.gpus.size()));
  }
  if (!spec.gpu_models.empty() && spec.gpu_models.size() != spec.gpus.size()) {
    return Invalid(".gpu_models: want those of " + std::to_string(spec.gpus.size()) +
                   " GPUs, got " + std::to_string(spec.gpu_models.size()));
  }
  if (spec.beside.links.known() &&
      spec.beside.links.matrix().gpus.size() != spec.beside.uuids.size()) {
    return Invalid(".beside: want links of " + std::to_string(spec.beside.uuids.size()) +
                   " GPUs, got " + std::to_string(spec.beside.links.matrix().gpus.size()));
  }
  for (const GpusByName& name : spec.by_claims) {
    for (const int gpu : name.order) {
      if (spec.FindGpu(gpu) != nullptr) continue;
      return Invalid(".by_claims: " + name.resource +
                     ": want the index of a GPU of the node, got " + std::to_string(gpu));
    }
  }
  if (spec.links.known() && spec.links.matrix().gpus.size() != spec.gpus.size()) {
    return Invalid(".links: want those of " + std::to_string(spec.gpus.size()) + " GPUs, got " +
                   std::to_string(spec.links.matrix().gpus.size()));
  }
  if (spec.places.count > 0 && !spec.gpus.empty()) {
    return Invalid(".places: want none beside GPUs, got " + std::to_string(spec.places.count));
  }
  BERTH_TRY_STATUS(check("places.count", spec.places.count, kMaxGpuPlaces));
  BERTH_TRY_STATUS(check("places.gpus", spec.places.gpus, spec.places.count));
  BERTH_TRY_STATUS(check("places.memory_mib", spec.places.memory_mib, kMostGpuMemoryMib));
  if (!spec.places.uuids.empty() && std::ssize(spec.places.uuids) != spec.places.gpus) {
    return Invalid(".places.uuids: want those of " + std::to_string(spec.places.gpus) +
                   " GPUs, got " + std::to_string(spec.places.uuids.size()));
  }
  for (const int gpu : spec.places.unwell) {
    if (gpu >= 0 && gpu < std::ssize(spec.places.uuids)) continue;
    return Invalid(".places.unwell: want the index of a GPU of `uuids`, got " +
                   std::to_string(gpu));
  }
  BERTH_TRY_STATUS(
      check("missing", spec.missing, std::ssize(spec.gpus) + std::int64_t{spec.places.count}));
  for (std::size_t i = 0; i < spec.gpus.size(); ++i) {
    BERTH_TRY_STATUS(check("gpus[" + std::to_string(i) + "].memory_mib", spec.gpus[i].memory_mib,
                           kMostGpuMemoryMib));
    BERTH_TRY_STATUS(check("gpus[" + std::to_string(i) + "].most_users", spec.gpus[i].most_users,
                           kMaxGpuPlaces));
  }
  return spec.mig.known() ? Validate(*spec.mig) : Status();
}

std::int64_t CoresPerGpu(const NodeSpec& spec) {
  const auto offered = static_cast<std::int64_t>(spec.gpus.size()) - spec.missing;
  const OtherResource* const cores =
      spec.others.empty() ? nullptr : FindOther(spec.others, CoresOf(spec.gpu_resource));
  if (cores == nullptr || offered <= 0 || cores->amount % offered != 0) return 0;
  return cores->amount / offered;
}

const std::string& NodeSpec::UuidOf(int index) const {
  static const std::string kNotKnown;
  const GpuSpec* const gpu = FindGpu(index);
  return gpu == nullptr ? kNotKnown : gpu->uuid;
}

Status CheckDevices(const Placement& placement, const NodeSpec& node) {
  const std::string where = "node " + node.name + ": ";
  for (const DeviceGrant& grant : placement.grants) {
    if (node.FindGpu(grant.gpu) != nullptr) continue;
    return Fail(Errc::kInternal, where + "want a node with GPU " + std::to_string(grant.gpu) +
                                     ", got one with " + std::to_string(node.gpus.size()) +
                                     " GPUs");
  }
  for (const MigGrant& grant : placement.mig) {
    const bool has = node.mig.known() && (!grant.exact() || SlotOf(*node.mig, grant));
    if (has) continue;
    return Fail(Errc::kInternal,
                where + "want a node with MIG device " + NameOf(grant) + ", got one without it");
  }
  for (const int gpu : placement.places_on) {
    if (gpu >= 0 && gpu < std::ssize(node.places.uuids)) continue;
    return Fail(Errc::kInternal, where + "want a node whose replicas are on GPU " +
                                     std::to_string(gpu) + ", got one without it");
  }
  return {};
}

void CloseGpu(NodeSpec& spec, GpuSpec& gpu, std::string_view said_by) {
  if (!gpu.healthy) return;
  gpu.healthy = false;
  spec.missing = std::max(spec.missing - 1, 0);
  if (spec.named_gpus_condition.empty()) spec.named_gpus_condition = said_by;
}

bool CloseNamed(NodeSpec& spec, std::string_view id, std::string_view said_by) {
  const auto gpu = std::ranges::find(spec.gpus, id, &GpuSpec::uuid);
  if (gpu != spec.gpus.end()) {
    CloseGpu(spec, *gpu, said_by);
    return true;
  }
  const auto of_places = std::ranges::find(spec.places.uuids, id);
  if (of_places != spec.places.uuids.end()) {
    GpuPlaces& places = spec.places;
    const auto index = static_cast<int>(of_places - places.uuids.begin());
    const auto at = std::ranges::lower_bound(places.unwell, index);
    if (at == places.unwell.end() || *at != index) places.unwell.insert(at, index);
    // The plugin withdraws some of its places, or all.
    const std::int64_t lost = std::ssize(places.unwell) * std::int64_t{places.each()};
    spec.missing = static_cast<int>(std::clamp<std::int64_t>(lost, spec.missing, places.count));
    if (spec.named_gpus_condition.empty()) spec.named_gpus_condition = said_by;
    return true;
  }
  const auto partitioned = spec.mig.known() ? std::ranges::find(spec.mig->gpus, id, &MigGpu::uuid)
                                            : std::vector<MigGpu>::const_iterator();
  if (spec.mig.known() && partitioned != spec.mig->gpus.end()) {
    if (spec.mig->allocator != MigAllocator::kBerth) return true;
    MigSpec closed = *spec.mig;
    closed.gpus[static_cast<std::size_t>(partitioned - spec.mig->gpus.begin())].offered = 0;
    spec.mig = NodeMig(std::move(closed));
    if (spec.named_gpus_condition.empty()) spec.named_gpus_condition = said_by;
    return true;
  }
  const auto device = spec.mig.known() ? spec.mig->FindNamed(id) : std::nullopt;
  if (!device || spec.mig->allocator != MigAllocator::kBerth) return device.has_value();
  MigSpec closed = *spec.mig;
  const MigSlot slot = *SlotOf(closed, *device);
  closed.gpus[slot.gpu].offered &= ~(MigSet{1} << slot.placement);
  spec.mig = NodeMig(std::move(closed));
  if (spec.named_gpus_condition.empty()) spec.named_gpus_condition = said_by;
  return true;
}

Node::Node(std::shared_ptr<const NodeSpec> spec, PodRecords pods, Claims claims)
    : spec_(std::move(spec)), pods_(std::move(pods)), claims_(std::move(claims)) {
  CountAll();
}

bool Node::IsHeldByClaim(const PodRequest& pod) const {
  return !spec_->by_claims.empty() && claims_ != nullptr &&
         std::ranges::any_of(*claims_,
                             [&pod](const ClaimedGpu& held) { return held.IsWholeOf(pod); });
}

const PodRecord* Node::FindPod(std::string_view uid) const {
  const auto at = PositionOf(pods_, uid);
  return at != pods_.end() && (*at)->pod.id.uid == uid ? at->get() : nullptr;
}

std::int64_t Node::PlacesOfClaims() const {
  std::int64_t lost = 0;
  ForEachGpu(claimed_places(), [&](int gpu) {
    if (std::ranges::find(spec_->places.unwell, gpu) != spec_->places.unwell.end()) return;
    const auto index = static_cast<std::size_t>(gpu);
    lost += spec_->places.each() - (index < places_on_.size() ? places_on_[index] : 0);
  });
  return lost;
}

std::int64_t Node::FreeOtherGpus(const OtherResource& other) const {
  std::int64_t free = other.amount;
  for (const auto& pod : pods_) {
    if (pod->pod.shape.gpu_resource == other.name) free -= pod->pod.shape.gpu_count();
  }
  return free;
}

std::int64_t Node::free_gpu_milli() const {
  std::int64_t total = 0;
  for (const GpuFree& gpu : gpus_) total += gpu.milli;
  return total;
}

Status Node::CanTake(const Placement& placement) const {
  if (placement.cpu_milli > 0 && placement.cpu_milli > free_cpu_milli_) {
    return ShortOf("cpu_milli", placement.cpu_milli, free_cpu_milli_);
  }
  if (placement.memory_bytes > 0 && placement.memory_bytes > free_memory_bytes_) {
    return ShortOf("memory_bytes", placement.memory_bytes, free_memory_bytes_);
  }
  if (placement.ephemeral_bytes > 0 && placement.ephemeral_bytes > free_ephemeral_bytes_) {
    return ShortOf("ephemeral_bytes", placement.ephemeral_bytes, free_ephemeral_bytes_);
  }
  int previous = -1;
  for (const DeviceGrant& grant : placement.grants) {
    const std::string name = "gpu " + std::to_string(grant.gpu);
    if (!Has(grant.gpu)) {
      return Fail(Errc::kConflict, name + ": the node has " + std::to_string(gpus_.size()));
    }
    if (grant.gpu <= previous) {
      return Fail(Errc::kConflict, name + ": want each GPU once and in ascending order");
    }
    previous = grant.gpu;
    const auto index = static_cast<std::size_t>(grant.gpu);
    if (!IsOpen(grant.gpu)) return Fail(Errc::kConflict, name + ": not healthy");
    if (grant.milli > gpus_[index].milli) {
      return ShortOf(name + " milli", grant.milli, gpus_[index].milli);
    }
    if (grant.memory_mib > 0 && grant.memory_mib > gpus_[index].memory_mib) {
      return ShortOf(name + " memory_mib", grant.memory_mib, gpus_[index].memory_mib);
    }
    if (!HasPlace(spec_->gpus[index], gpus_[index])) {
      return Fail(Errc::kConflict,
                  name + ": has its " + std::to_string(spec_->gpus[index].most_users) + " users");
    }
  }
  if (placement.places > 0 && placement.places > free_places()) {
    return ShortOf("places", placement.places, free_places());
  }
  std::vector<int> on = places_on_;
  for (const int gpu : placement.places_on) {
    const auto index = static_cast<std::size_t>(gpu);
    if (std::ranges::find(spec_->places.unwell, gpu) != spec_->places.unwell.end()) {
      return Fail(Errc::kConflict, "gpu " + std::to_string(gpu) + ": not healthy");
    }
    if ((claimed_places() & GpuBit(gpu)) != 0) {
      return Fail(Errc::kConflict, "gpu " + std::to_string(gpu) + ": held by a claim");
    }
    if (index < on.size() && ++on[index] <= spec_->places.each()) continue;
    return Fail(Errc::kConflict, "gpu " + std::to_string(gpu) + ": has all of its users");
  }
  if (placement.mig.empty()) return {};
  if (!spec_->mig.known()) return Fail(Errc::kConflict, "mig: the node has no MIG devices");
  return MigUse(mig_).TakeAll(*spec_->mig, placement.mig);
}

Status Node::CanTake(const Placement& placement, const PodRequest& pod) const {
  const GpuMask kept = pod.shape.is_share() ? KeptFrom(pod.shape) : 0;
  if ((GpusAmong(placement.grants, gpus_.size()) & kept) != 0) {
    return Fail(Errc::kConflict, "gpu: has pods that use its compute in another way");
  }
  if (placement.grants.empty() || !IsHeldByClaim(pod)) return CanTake(placement);
  Placement rest = placement;
  rest.grants.clear();
  return CanTake(rest);
}

void Node::Put(std::shared_ptr<const PodRecord> pod) {
  likeness_.Forget();
  Remove(pod->pod.id.uid);
  const auto at = PositionOf(pods_, pod->pod.id.uid);
  const PodRecord& added = **pods_.insert(at, std::move(pod));
  if (unattributed_ > 0 || IsAssumed(added) || IsGivenAnothers(added)) return CountAll();
  Count(added, 1);
  NoteGiven(added);
  if (spec_->missing > 0) FindClosed();
  if (!added.placement.mig.empty()) CountMig();
  if (added.state == PodState::kBound) {
    lowest_priority_ = std::min(lowest_priority_, added.pod.priority);
  }
}

void Node::Remove(std::string_view uid) {
  likeness_.Forget();
  const auto at = pods_.begin() + (PositionOf(pods_, uid) - pods_.cbegin());
  if (at == pods_.end() || (*at)->pod.id.uid != uid) return;
  const std::shared_ptr<const PodRecord> removed = std::move(*at);  // the UID may point into it
  pods_.erase(at);
  if (unattributed_ > 0 || IsAssumed(*removed)) return CountAll();
  Count(*removed, -1);
  if (removed->planned) FindGiven();
  if (spec_->missing > 0) FindClosed();
  if (!removed->placement.mig.empty()) CountMig();
  if (removed->pod.priority == lowest_priority_) FindLowestPriority();
}

void Node::FindLowestPriority() {
  lowest_priority_ = kNoPriority;
  for (const auto& pod : pods_) {
    if (pod->state == PodState::kBound) {
      lowest_priority_ = std::min(lowest_priority_, pod->pod.priority);
    }
  }
}

void Node::CountAll() {
  free_cpu_milli_ = spec_->cpu_milli;
  free_memory_bytes_ = spec_->memory_bytes;
  free_ephemeral_bytes_ = spec_->ephemeral_bytes.value_or(kNotTracked);
  gpus_.clear();
  gpus_.reserve(spec_->gpus.size());
  for (const GpuSpec& gpu : spec_->gpus) gpus_.push_back({.memory_mib = gpu.memory_mib});
  claimed_ = claims_ == nullptr ? 0 : HeldByClaims(*spec_, *claims_);
  ForEachGpu(claimed_, [this](int gpu) { gpus_[static_cast<std::size_t>(gpu)] = {.milli = 0}; });
  tenants_.clear();
  unattributed_ = 0;
  with_mode_ = 0;
  places_taken_ = 0;
  places_on_.assign(spec_->places.uuids.size(), 0);
  FindGiven();
  for (const auto& pod : pods_) Count(*pod, 1);
  for (const auto& pod : pods_) {
    if (unattributed_ == 0 || IsOverfull()) break;
    Assume(*pod);
  }
  FindClosed();
  CountMig();
  FindLowestPriority();
}

void Node::CountMig() {
  const auto claims = claims_ ? std::span(*claims_) : std::span<const ClaimedGpu>();
  mig_ = spec_->mig.known() ? MigUse(*spec_->mig, pods_, claims) : MigUse();
}

std::int64_t Node::MilliByCores(const PodRecord& pod) const {
  if (pod.pod.others == nullptr) return 0;
  const std::int64_t each = CoresPerGpu(*spec_);
  const OtherResource* const asked =
      each == 0 ? nullptr : FindOther(*pod.pod.others, CoresOf(spec_->gpu_resource));
  if (asked == nullptr) return 0;
  return std::min(asked->amount, kMaxGpusPerNode * each) * kMilliPerGpu / each;
}

bool Node::IsAssumed(const PodRecord& pod) const {
  if (MilliByCores(pod) > 0) return true;
  if (!pod.pod.shape.wants_gpu() || !HasGpusFor(*spec_, pod.pod)) return false;
  if (IsHeldByClaim(pod.pod)) return false;
  if (spec_->places.count > 0 && pod.pod.shape.mig() == nullptr)
    return false;  // a place has no name
  return pod.unattributed() ||
         std::ranges::any_of(pod.placement.grants,
                             [&](const DeviceGrant& grant) { return !HasOf(pod, grant); });
}

bool Node::HasOf(const PodRecord& pod, const DeviceGrant& grant) const {
  const GpuSpec* const gpu = spec_->FindGpu(grant.gpu);
  if (gpu == nullptr) return false;
  if (!spec_->by_claims.empty() && (claimed_ & GpuBit(grant.gpu)) != 0) {
    return IsHeldByClaim(pod.pod);
  }
  // Shares reach their GPU by another way than the kubelet's choice.
  if (given_.empty() || !std::holds_alternative<WholeGpus>(pod.pod.shape.gpus)) return true;
  const PodRecord* const given = given_[static_cast<std::size_t>(gpu - spec_->gpus.data())];
  return given == nullptr || !Outranks(*given, pod);
}

void Node::FindGiven() {
  given_.clear();
  for (const auto& pod : pods_) NoteGiven(*pod);
}

void Node::NoteGiven(const PodRecord& pod) {
  if (!pod.planned) return;
  given_.resize(gpus_.size());
  for (const DeviceGrant& grant : pod.placement.grants) {
    const GpuSpec* const gpu = spec_->FindGpu(grant.gpu);
    if (gpu == nullptr) continue;
    const PodRecord*& holder = given_[static_cast<std::size_t>(gpu - spec_->gpus.data())];
    if (holder == nullptr || Outranks(pod, *holder)) holder = &pod;
  }
}

// It was given a GPU, and the node counts a part of that GPU for another pod.
bool Node::IsGivenAnothers(const PodRecord& pod) const {
  return pod.planned != nullptr &&
         std::ranges::any_of(pod.placement.grants, [this](const DeviceGrant& grant) {
           const GpuSpec* const gpu = spec_->FindGpu(grant.gpu);
           return gpu != nullptr &&
                  !gpus_[static_cast<std::size_t>(gpu - spec_->gpus.data())].idle();
         });
}

bool Node::IsOverfull() const {
  return !gpus_.empty() &&
         std::ranges::all_of(gpus_, [](const GpuFree& gpu) { return gpu.milli < 0; });
}

// Unknown grants, or grants of GPUs that the spec does not have, or that others were given.
void Node::Assume(const PodRecord& pod) {
  if (!IsAssumed(pod)) return;
  const RequestShape& shape = pod.pod.shape;
  if (const auto milli = static_cast<int>(MilliByCores(pod)); milli > 0) {
    Take(AssumedGrants(shape, WholeGpus{milli / kMilliPerGpu}), 1);
    const int rest = milli % kMilliPerGpu;
    return rest > 0 ? Take(AssumedGrants(shape, GpuShare{.milli = rest}), 1) : void();
  }
  if (pod.unattributed()) {
    const bool cut = shape.mig() != nullptr && !(spec_->mig.known() && spec_->mig->single);
    if (cut) return;
    if (!shape.may_divide()) return Take(AssumedGrants(shape, shape.gpus), 1);
    for (const GpuStep& step : shape.gpu_steps) Take(AssumedGrants(shape, step.share), 1);
    return;
  }
  for (const DeviceGrant& grant : pod.placement.grants) {
    if (HasOf(pod, grant)) continue;
    GpuAsk ask = WholeGpus{1};
    if (shape.is_share()) ask = GpuShare{grant.milli, grant.memory_mib, grant.memory_milli};
    Take(AssumedGrants(shape, ask), 1);
  }
}

std::vector<DeviceGrant> Node::AssumedGrants(const RequestShape& shape, const GpuAsk& ask) const {
  const auto* const whole = std::get_if<WholeGpus>(&ask);
  const GpusByName* const name = FindByName(spec_->by_claims, shape.gpu_resource);
  if (whole == nullptr || name == nullptr) return AssumeGrants(spec_->gpus, gpus_, ask);
  GpuMask free = 0;
  for (std::size_t gpu = 0; gpu < gpus_.size(); ++gpu) {
    if (spec_->gpus[gpu].healthy && gpus_[gpu].idle()) free |= GpuBit(static_cast<int>(gpu));
  }
  const GpuMask first = FirstFree(*name, free, whole->count);
  if (first == 0) return AssumeGrants(spec_->gpus, gpus_, ask);
  std::vector<DeviceGrant> grants;
  ForEachGpu(first, [&](int gpu) {
    grants.push_back({gpu, kMilliPerGpu, spec_->gpus[static_cast<std::size_t>(gpu)].memory_mib});
  });
  return grants;
}

void Node::FindClosed() {
  closed_ = 0;
  for (std::size_t gpu = 0; gpu < gpus_.size(); ++gpu) {
    if (!spec_->gpus[gpu].healthy) closed_ |= GpuBit(static_cast<int>(gpu));
  }
  healthy_gpus_ = static_cast<int>(gpus_.size()) - std::popcount(closed_);
  if (spec_->missing == 0 || gpus_.empty()) return;
  healthy_gpus_ = std::max(healthy_gpus_ - spec_->missing, 0);
  const auto room = [this](int gpu) {
    return RoomOf(spec_->gpus[static_cast<std::size_t>(gpu)], gpus_[static_cast<std::size_t>(gpu)]);
  };
  for (std::int64_t left = std::int64_t{spec_->missing} * kMilliPerGpu; left > 0;) {
    int freest = -1;
    ForEachGpu(AllGpus(static_cast<int>(gpus_.size())) & ~closed_, [&](int gpu) {
      if (freest < 0 || room(gpu) >= room(freest)) freest = gpu;
    });
    if (freest < 0) return;
    closed_ |= GpuBit(freest);
    left -= room(freest);
  }
}

void Node::Count(const PodRecord& pod, int sign) {
  free_cpu_milli_ -= sign * pod.placement.cpu_milli;
  free_memory_bytes_ -= sign * pod.placement.memory_bytes;
  if (spec_->ephemeral_bytes) free_ephemeral_bytes_ -= sign * pod.placement.ephemeral_bytes;
  const bool held_by_claim = IsHeldByClaim(pod.pod);
  for (const DeviceGrant& grant : pod.placement.grants) {
    if (!held_by_claim && HasOf(pod, grant)) Take(std::span(&grant, 1), sign);
  }
  const RequestShape& shape = pod.pod.shape;
  if (MilliByCores(pod) > 0) unattributed_ += sign;
  if (!shape.wants_gpu()) return;
  if (shape.share_mode != ShareMode::kUnsaid) with_mode_ += sign;
  // If the node's allocator picks, only the profile of a device is known.
  const bool picks = spec_->mig.known() && spec_->mig->allocator != MigAllocator::kBerth;
  const bool by_name = shape.mig() != nullptr && shape.mig()->by_name();
  if (IsAssumed(pod) && !(by_name && picks)) unattributed_ += sign;
  if (spec_->places.count > 0 && !spec_->IsOfOtherGpus(shape)) {
    places_taken_ += sign * shape.gpu_count();
  }
  for (const int gpu : pod.placement.places_on) {
    const auto index = static_cast<std::size_t>(gpu);
    if (index < places_on_.size()) places_on_[index] += sign;
  }
  // MIG devices are beside the GPUs that tenants share.
  if (shape.mig() != nullptr || !pod.placement.mig.empty()) return;
  const int kind = shape.is_share() ? 0 : shape.gpu_count();
  auto entry = std::ranges::lower_bound(tenants_, kind, {}, &Tenants::gpus);
  if (entry == tenants_.end() || entry->gpus != kind) entry = tenants_.insert(entry, {kind, 0});
  entry->pods += sign;
  if (entry->pods == 0) tenants_.erase(entry);
}

void Node::Take(std::span<const DeviceGrant> grants, int sign) {
  for (const DeviceGrant& grant : grants) {
    const GpuSpec* const spec = spec_->FindGpu(grant.gpu);
    if (spec == nullptr) continue;
    GpuFree& gpu = gpus_[static_cast<std::size_t>(spec - spec_->gpus.data())];
    gpu.milli -= sign * grant.milli;
    gpu.memory_mib -= sign * grant.memory_mib;
    if (spec->most_users > 0) gpu.users += sign;
  }
}

bool operator==(const Node& a, const Node& b) {
  return *a.spec_ == *b.spec_ && a.free_cpu_milli_ == b.free_cpu_milli_ &&
         a.free_memory_bytes_ == b.free_memory_bytes_ &&
         a.free_ephemeral_bytes_ == b.free_ephemeral_bytes_ && a.gpus_ == b.gpus_ &&
         a.places_taken_ == b.places_taken_ && a.places_on_ == b.places_on_ &&
         a.tenants_ == b.tenants_ && a.mig_ == b.mig_;
}

}  // namespace berth
