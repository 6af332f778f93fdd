// SPDX-License-Identifier: Apache-2.0
//
// WiringTables: one SetTable per distinct wiring, however its GPUs are numbered.
//
// The same machine comes with different GPU numberings (the V100 cube mesh has four), so a wiring
// is recognised by isomorphism and uses, through the permutation, the table of the first wiring of
// its kind. A table is built when a question first needs it.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "topology/links/set_table.h"
#include "topology/links/wiring.h"

namespace berth {

// The sets of one wiring, in its own GPU numbers. Cheap to copy; any number of threads may ask.
class WiringSets {
 public:
  // As SetTable::Choose and quality(), or as SetOutlook::Choose if tenants are given and the
  // machine is not too large for it. A uniform wiring needs no table and takes the lowest indices.
  // Above kMaxTableGpus GPUs the set is the one of SearchSet, and its quality is the total
  // bandwidth relative to the best set that the same search finds in the whole machine.
  [[nodiscard]] GpuMask Choose(GpuMask free, int size, GpuMask required = 0,
                               std::span<const GpuMask> tenants = {}) const;
  [[nodiscard]] int quality(GpuMask set) const;  // thousandths
  [[nodiscard]] int span(GpuMask set) const { return wiring_->Span(set); }

  // nullptr where the wiring has too many GPUs. Its GPUs are numbered as ToTable says.
  [[nodiscard]] const SetTable* table() const;
  [[nodiscard]] GpuMask ToTable(GpuMask set) const { return Mapped(set, to_table_); }
  [[nodiscard]] GpuMask FromTable(GpuMask set) const { return Mapped(set, from_table_); }

 private:
  friend class WiringTables;
  struct Kind;  // of one wiring under any numbering

  [[nodiscard]] static GpuMask Mapped(GpuMask set, const std::vector<int>& to);

  std::shared_ptr<const Wiring> wiring_;
  std::shared_ptr<Kind> kind_;
  std::vector<int> to_table_, from_table_;  // empty: the same numbers
  bool uniform_ = false;
};

// The i-th of the result is the GPU of `to` that corresponds to GPU i of `from` under another
// numbering, with the same bandwidths and NUMA groups throughout. nullopt if there is no such
// numbering, or none was found within kMaxIsomorphismSteps comparisons of links (then both wirings
// merely get a table of their own).
std::optional<std::vector<int>> NumberingOf(const Wiring& from, const Wiring& to);
inline constexpr int kMaxIsomorphismSteps = 2'000'000;

// One thread at a time.
class WiringTables {
 public:
  explicit WiringTables(const SizeMix& mix = {}) : mix_(mix) {}

  WiringSets SetsOf(const Wiring& wiring);
  [[nodiscard]] std::size_t kinds() const { return kinds_.size(); }

 private:
  SizeMix mix_;
  std::vector<std::shared_ptr<WiringSets::Kind>> kinds_;
};

}  // namespace berth
