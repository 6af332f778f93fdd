// SPDX-License-Identifier: Apache-2.0
//
// MigProduct: how one GPU product can be partitioned.
//
// A GPU is a row of memory units (8 on an A100, 4 on an A30, 12 on an RTX PRO 6000). A profile
// takes `memory_units` of them in a row, from one of a few starts; profile and start are a
// placement. Placements go together when
//   - their units are disjoint (NVML: nvmlGpuInstancePlacement_t),
//   - at most one of them is `once_per_gpu` (it takes the one OFA of the GPU),
//   - of no profile there are more than `max_instances`,
//   - and, where the product is `engine_limited`, their media engines add up to what it has.
// Compute slices never bind beyond that (checked over all sets of every product).
//
// A set of placements is a MigSet: bit i stands for placements()[i]. Sorted by row, then start.
//
// The catalogue (mig_catalog.h) has the products. What a node publishes about its own GPUs replaces
// a row (WithRow) or makes a product of its own (Make). Immutable; any number of threads may read.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "topology/mig/mig_profile.h"

namespace berth {

using MigSet = std::uint64_t;    // placements, by index
using MigUnits = std::uint16_t;  // memory units, by index

inline constexpr int kMaxMigUnits = 16;
inline constexpr int kMaxMigPlacements = 64;

// Confidence in starts and sizes: printed by the driver or in NVIDIA's source; sizes printed and
// starts inferred; all inferred; guessed.
enum class MigConfidence : std::uint8_t { kHigh, kMediumHigh, kMedium, kLow };
std::string_view MigConfidenceName(MigConfidence confidence);  // "high", "medium-high", ...

struct MigEngines {
  int decoders = 0, encoders = 0, jpeg = 0, ofa = 0, copy = 0;
  friend bool operator==(const MigEngines&, const MigEngines&) = default;
};

struct MigRow {
  MigProfile profile;
  int memory_units = 0;
  MigUnits starts = 0;  // bit s: may begin at unit s
  int max_instances = 0;
  int memory_mib = 0;         // usable, as the driver prints it; 0: not known
  bool once_per_gpu = false;  // takes the OFA
  MigEngines engines;         // counted where the product is engine_limited
  std::string source;
  MigConfidence confidence = MigConfidence::kLow;
  friend bool operator==(const MigRow&, const MigRow&) = default;
};

struct MigPlacement {
  int row = 0;
  int start = 0;
  MigUnits units = 0;
};

struct MigProductSpec {
  std::string name;  // "A100-40GB"
  int compute_slices = 0;
  int memory_units = 0;
  bool engine_limited = false;
  MigEngines engines;  // of the whole GPU
  std::vector<MigRow> rows;
  std::vector<std::pair<MigProfile, MigProfile>> aliases;  // other name -> name of a row
  friend bool operator==(const MigProductSpec&, const MigProductSpec&) = default;
};

class MigProduct {
 public:
  // Error: kInvalidArgument, with the row: no units, units beyond the grid, the same profile twice,
  // a profile with C, more than kMaxMigPlacements placements, an alias of no row.
  static Result<MigProduct> Make(MigProductSpec spec);

  // This product with that row instead of the one of the same profile, or in addition.
  [[nodiscard]] Result<MigProduct> WithRow(MigRow row) const;

  [[nodiscard]] const std::string& name() const { return spec_.name; }
  [[nodiscard]] int compute_slices() const { return spec_.compute_slices; }
  [[nodiscard]] int memory_units() const { return spec_.memory_units; }
  [[nodiscard]] bool engine_limited() const { return spec_.engine_limited; }
  [[nodiscard]] const MigEngines& engines() const { return spec_.engines; }  // of the whole GPU
  [[nodiscard]] const std::vector<MigRow>& rows() const { return spec_.rows; }
  [[nodiscard]] const std::vector<MigPlacement>& placements() const { return placements_; }

  [[nodiscard]] const MigRow& row(int row) const {
    return spec_.rows[static_cast<std::size_t>(row)];
  }
  [[nodiscard]] const MigPlacement& placement(int placement) const {
    return placements_[static_cast<std::size_t>(placement)];
  }
  [[nodiscard]] const MigRow& row_of(int placement) const {
    return row(this->placement(placement).row);
  }

  // The row of a profile, also by another name of it.
  [[nodiscard]] std::optional<int> RowOf(const MigProfile& profile) const;
  // The placement of a row at a start, if the row may begin there.
  [[nodiscard]] std::optional<int> PlacementAt(int row, int start) const;
  // All placements of a row.
  [[nodiscard]] MigSet PlacementsOf(int row) const {
    return of_row_[static_cast<std::size_t>(row)];
  }
  // All placements of all rows.
  [[nodiscard]] MigSet AllPlacements() const;

  // The units that the placements of a set take.
  [[nodiscard]] MigUnits UnitsOf(MigSet set) const;
  // The placements that may be added to a valid set.
  [[nodiscard]] MigSet Addable(MigSet set) const;
  // Whether all placements of the set go together.
  [[nodiscard]] bool IsValid(MigSet set) const;

  // Equal in every part of their specification.
  friend bool operator==(const MigProduct& a, const MigProduct& b) { return a.spec_ == b.spec_; }

 private:
  explicit MigProduct(MigProductSpec spec);
  [[nodiscard]] bool WithinLimits(MigSet set) const;

  MigProductSpec spec_;
  std::vector<MigPlacement> placements_;
  std::vector<MigSet> of_row_;
  std::vector<MigSet> conflicts_;  // by placement: what it keeps out, itself included
  bool limited_ = false;           // engines or counts have to be summed
};

}  // namespace berth
