// SPDX-License-Identifier: Apache-2.0
#include "topology/links/wiring_tables.h"

#include <algorithm>
#include <bit>
#include <mutex>
#include <optional>
#include <utility>

#include "topology/links/gpu_graph.h"
#include "topology/links/set_outlook.h"
#include "topology/links/set_search.h"

namespace berth {

struct WiringSets::Kind {
  Kind(const Wiring& of, const SizeMix& sizes) : wiring(of), graph(of), mix(sizes) {}

  const Wiring wiring;
  const GpuGraph graph;
  const SizeMix mix;
  std::once_flag once;
  std::optional<SetTable> table;      // after `once`
  std::optional<SetOutlook> outlook;  // the same, unless there are too many GPUs
};

GpuMask WiringSets::Mapped(GpuMask set, const std::vector<int>& to) {
  if (to.empty()) return set;
  GpuMask mapped = 0;
  for (; set != 0; set &= set - 1) {
    mapped |= GpuBit(to[static_cast<std::size_t>(std::countr_zero(set))]);
  }
  return mapped;
}

const SetTable* WiringSets::table() const {
  if (wiring_->gpus > kMaxTableGpus) return nullptr;
  std::call_once(kind_->once, [this] {
    kind_->table.emplace(kind_->wiring, kind_->mix);
    if (wiring_->gpus <= kMaxOutlookGpus) kind_->outlook.emplace(*kind_->table, kind_->mix);
  });
  return &*kind_->table;
}

GpuMask WiringSets::Choose(GpuMask free, int size, GpuMask required,
                           std::span<const GpuMask> tenants) const {
  if (uniform_) {
    const int missing = size - std::popcount(required);
    if (size < 1 || size > std::popcount(free) || missing < 0 || (required & ~free) != 0) return 0;
    GpuMask set = required;
    for (GpuMask rest = free & ~required; std::popcount(set) < size; rest &= rest - 1) {
      set |= rest & (~rest + 1);
    }
    return set;
  }
  if (const SetTable* sets = table()) {
    if (tenants.empty() || !kind_->outlook) {
      return FromTable(sets->Choose(ToTable(free), size, ToTable(required)));
    }
    std::vector<GpuMask> held(tenants.size());
    std::ranges::transform(tenants, held.begin(), [this](GpuMask set) { return ToTable(set); });
    return FromTable(kind_->outlook->Choose(ToTable(free), size, ToTable(required), held));
  }
  return SearchSet(*wiring_, free, size, required);
}

int WiringSets::quality(GpuMask set) const {
  if (uniform_ || std::popcount(set) < 2) return kPerfect;
  if (const SetTable* sets = table()) return sets->quality(ToTable(set));
  const GpuMask all = AllGpus(wiring_->gpus);
  const std::int64_t best = AggregateOf(*wiring_, SearchSet(*wiring_, all, std::popcount(set)));
  if (best == 0) return kPerfect;
  return static_cast<int>(
      std::min<std::int64_t>(kPerfect, AggregateOf(*wiring_, set) * kPerfect / best));
}

WiringSets WiringTables::SetsOf(const Wiring& wiring) {
  WiringSets sets;
  sets.wiring_ = std::make_shared<const Wiring>(wiring);
  sets.uniform_ = wiring.Uniform();
  for (const auto& kind : kinds_) {
    if (kind->wiring == wiring) {
      sets.kind_ = kind;
      return sets;
    }
  }
  const GpuGraph graph(wiring);
  for (const auto& kind : kinds_) {
    auto to = graph.IsomorphismTo(kind->graph);
    if (!to) continue;
    sets.kind_ = kind;
    sets.to_table_ = *std::move(to);
    sets.from_table_.resize(sets.to_table_.size());
    for (std::size_t gpu = 0; gpu < sets.to_table_.size(); ++gpu) {
      sets.from_table_[static_cast<std::size_t>(sets.to_table_[gpu])] = static_cast<int>(gpu);
    }
    return sets;
  }
  kinds_.push_back(std::make_shared<WiringSets::Kind>(wiring, mix_));
  sets.kind_ = kinds_.back();
  return sets;
}

}  // namespace berth
