// SPDX-License-Identifier: Apache-2.0
#include "scoring/explain/gpu_use.h"

#include <algorithm>
#include <bit>
#include <functional>
#include <map>
#include <optional>
#include <tuple>
#include <unordered_map>

#include "scoring/devices/device_picker.h"
#include "scoring/explain/node_access.h"
#include "scoring/explain/other_limits.h"
#include "scoring/groups/group_domains.h"
#include "scoring/registry.h"
#include "topology/mig/mig_product.h"

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

void AddDriver(ModelSummary& summary, const NodeSpec& spec) {
  const std::optional<Version> driver = VersionOf(spec.labels, Versioned::kDriver);
  if (!driver) return;
  auto& drivers = summary.drivers;
  const auto at =
      std::ranges::lower_bound(drivers, *driver, std::greater<>(), &std::pair<Version, int>::first);
  if (at != drivers.end() && at->first == *driver) {
    ++at->second;
  } else {
    drivers.insert(at, {*driver, 1});
  }
}

void AddTo(ModelSummary& summary, const Node& node) {
  const NodeSpec& spec = node.spec();
  AddDriver(summary, spec);
  const auto gpus = static_cast<int>(std::ssize(spec.gpus));
  ++summary.nodes;
  summary.gpus += gpus;
  const bool is_broken = !spec.gpu_condition.empty() || spec.refuses_gpu_pods;
  summary.out_of_order += is_broken ? gpus : node.unhealthy_gpus();
  if (!is_broken && !TakesPods(spec)) summary.closed += node.healthy_gpus();
  for (const GpuFree& free : node.gpus()) {
    summary.allocated_milli += kMilliPerGpu - std::clamp(free.milli, 0, kMilliPerGpu);
  }
  summary.places += spec.places.count;
  summary.shared_gpus += spec.places.gpus;
  if (spec.mig.known()) summary.mig_gpus += static_cast<int>(std::ssize(spec.mig->gpus));
  for (std::size_t i = 0; spec.mig.known() && i < spec.mig->shared.size(); ++i) {
    const int count = spec.mig->shared[i].count, taken = node.mig().shared_taken()[i];
    summary.places += count;
    if (TakesPods(spec)) summary.free_places += std::max(count - taken, 0);
  }
  if (!TakesPods(spec)) return;
  summary.free_places += std::max(node.free_places(), 0);
  const int idle = std::popcount(IdleGpus(node));
  summary.idle += idle;
  if (idle > summary.largest_hole) {
    summary.largest_hole = idle;
    summary.hole_node = spec.name;
  }
  for (std::size_t i = 0; i < ModelSummary::kSizes.size(); ++i) {
    RequestShape shape;
    shape.gpus = WholeGpus{ModelSummary::kSizes[i]};
    summary.fit[i] += PodsThatFit(node, shape);
  }
}

struct Holders {
  GpuMask gang = 0, planned = 0, in_parts = 0;
};

Holders HoldersOf(const Node& node) {
  Holders holders;
  for (const auto& pod : node.pods()) {
    for (const DeviceGrant& grant : pod->placement.grants) {
      if (node.spec().FindGpu(grant.gpu) == nullptr) continue;
      const GpuMask bit = GpuBit(grant.gpu);
      if (!pod->pod.gang.id.empty()) holders.gang |= bit;
      if (pod->state == PodState::kPlanned) holders.planned |= bit;
      if (grant.milli < kMilliPerGpu) holders.in_parts |= bit;
    }
  }
  return holders;
}

char CellOf(const Node& node, std::size_t gpu, const Holders& holders, bool useless) {
  const int index = static_cast<int>(gpu);
  const GpuMask bit = GpuBit(index);
  const int used = kMilliPerGpu - std::clamp(node.gpus()[gpu].milli, 0, kMilliPerGpu);
  const bool idle = used == 0 && (holders.in_parts & bit) == 0;
  if (!node.IsOpen(index) && idle) return 'x';
  if (idle) return useless ? 'u' : '.';
  if ((holders.planned & bit) != 0) return 'h';
  if ((holders.in_parts & bit) != 0) {
    if (used >= kMilliPerGpu) return 'a';
    return static_cast<char>('0' + std::clamp((used + 50) / 100, 1, 9));
  }
  return (holders.gang & bit) != 0 ? 'g' : '#';
}

void Draw(const MigProduct& product, MigSet devices, char first, std::string& units) {
  for (; devices != 0; devices &= devices - 1) {
    const MigPlacement& placed = product.placement(std::countr_zero(devices));
    const int size = product.row(placed.row).memory_units;
    for (int i = 0; i < size; ++i) {
      const auto at = static_cast<std::size_t>(placed.start + i);
      if (at >= units.size()) break;
      units[at] = i == 0 ? first : static_cast<char>(first - 'A' + 'a');
    }
  }
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
    if (!is_open) continue;
    const Node best = AtItsBest(node);
    if (FirstObjection(best, pod.shape) != Reason::kFits || !LackOf(best, pod).empty()) continue;
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

std::vector<ModelSummary> SummarizeModels(const Snapshot& snapshot, bool plans_hold) {
  const auto waits = [](const PodRecord& pod) { return pod.state == PodState::kPlanned; };
  std::map<std::string_view, ModelSummary> by_model;
  for (NodeIndex i = 0; i < snapshot.size(); ++i) {
    const Node& node = snapshot.node(i);
    if (!node.spec().has_gpus()) continue;
    ModelSummary& of = by_model[node.spec().gpu_model];
    plans_hold ? AddTo(of, node) : AddTo(of, node.Without(waits));
  }
  std::vector<ModelSummary> summaries;
  for (auto& [model, summary] : by_model) {
    summary.model = model;
    summaries.push_back(std::move(summary));
  }
  return summaries;
}

bool TakesPods(const NodeSpec& spec) {
  return spec.ready && !spec.refuses_gpu_pods && spec.gpu_condition.empty() && !spec.cordoned() &&
         spec.mig_trouble() == MigTrouble::kNone;
}

bool IsUseless(const Node& node) {
  const NodeSpec& spec = node.spec();
  if (!TakesPods(spec) || spec.places.foreign) return true;
  if (spec.cpu_milli > 0 && node.free_cpu_milli() < kLeastCpuMilli) return true;
  return spec.memory_bytes > 0 && node.free_memory_bytes() < kLeastMemoryBytes;
}

std::string GpuCells(const Node& node) {
  const NodeSpec& spec = node.spec();
  const Holders holders = HoldersOf(node);
  const bool useless = IsUseless(node);
  std::string cells;
  for (std::size_t gpu = 0; gpu < node.gpus().size(); ++gpu) {
    cells += CellOf(node, gpu, holders, useless);
  }
  if (!spec.mig.known() || spec.mig->product == nullptr) return cells;
  const MigProduct& product = *spec.mig->product;
  for (std::size_t gpu = 0; gpu < spec.mig->gpus.size(); ++gpu) {
    const MigSet taken = node.mig().taken()[gpu];
    std::string units(static_cast<std::size_t>(product.memory_units()), '.');
    Draw(product, spec.mig->gpus[gpu].instances & ~taken, 'F', units);
    Draw(product, taken, 'T', units);
    cells += '[' + units + ']';
  }
  return cells;
}

}  // namespace berth
