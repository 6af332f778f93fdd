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
// The catalogue has the products. What a node publishes about its own GPUs replaces
// a row (WithRow) or makes a product of its own (Make). Immutable; any number of threads may read.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace berth {

// MigProfile: what kind of MIG device, as NVIDIA names it.
//
//   [Cc.]Gg.Mgb[EXTENSION]     1g.5gb   1g.10gb+me   1g.24gb+me.all   1g.24gb-me   1c.2g.10gb
//
// G compute slices, M gigabytes of memory as the name rounds them, and the media engines that it
// has in addition to (+) or less than (-) the usual ones of its size. C, if present, is a compute
// instance with C of the G slices. The number of memory slices behind a name depends on the product
// (mig_product.h): 1g.10gb takes two of an A100-40GB and one of an A100-80GB.
//
// As resources of Kubernetes (NVIDIA device plugin v0.20, strategy mixed) profiles are named
// nvidia.com/mig-PROFILE with '+' written as '.', and with .shared behind it where time slicing
// renames it. Those with C are no resources.

enum class MigExtension : std::uint8_t { kNone, kMe, kMeAll, kNoMe, kGfx };

struct MigProfile {
  int compute_slices = 0;  // G
  int memory_gb = 0;       // M: a name, not a size
  MigExtension extension = MigExtension::kNone;
  int instance_slices = 0;  // C; 0: the compute instance fills the GPU instance

  friend auto operator<=>(const MigProfile&, const MigProfile&) = default;
};

// C equal to G is the profile without C. Error: kInvalidArgument "want a MIG profile such as
// 1g.5gb, 1g.10gb+me or 1c.2g.10gb, got TEXT".
Result<MigProfile> ParseMigProfile(std::string_view text);

// The name that ParseMigProfile reads back as the same profile.
std::string MigProfileName(const MigProfile& profile);

inline constexpr std::string_view kMigResourcePrefix = "nvidia.com/mig-";

struct MigResource {
  MigProfile profile;
  bool shared = false;  // one of several users of the slice: never packing capacity
  friend bool operator==(const MigResource&, const MigResource&) = default;
};

// Of a name that begins with kMigResourcePrefix. Error: kInvalidArgument "want a resource such as
// nvidia.com/mig-1g.5gb or nvidia.com/mig-1g.5gb.me, got NAME".
Result<MigResource> ParseMigResource(std::string_view name);

// Requires: profile.instance_slices == 0.
std::string MigResourceName(const MigProfile& profile, bool shared = false);

using MigSet = std::uint64_t;    // placements, by index
using MigUnits = std::uint16_t;  // memory units, by index

inline constexpr int kMaxMigUnits = 16;
inline constexpr int kMaxMigPlacements = 64;

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

// MigLayout: the MIG devices that exist on one GPU. Always valid: a combination that the product
// forbids is refused. One thread at a time.
//
//   MigLayout gpu(product);
//   gpu.Add(*product.PlacementAt(row, 4));
//   for (MigSet left = gpu.Addable(row); left != 0; left &= left - 1) ...
class MigLayout {
 public:
  // Empty. Requires: the product lives longer.
  explicit MigLayout(const MigProduct& product) : product_(&product) {}

  // Error: kInvalidArgument where the placements of the set do not go together.
  static Result<MigLayout> Of(const MigProduct& product, MigSet set);

  [[nodiscard]] const MigProduct& product() const { return *product_; }
  [[nodiscard]] MigSet set() const { return set_; }
  [[nodiscard]] bool empty() const { return set_ == 0; }
  [[nodiscard]] MigUnits occupied() const { return product_->UnitsOf(set_); }
  [[nodiscard]] int free_units() const;

  // The placements that may be added now: all, or those of one row.
  [[nodiscard]] MigSet Addable() const { return product_->Addable(set_); }
  [[nodiscard]] MigSet Addable(int row) const { return Addable() & product_->PlacementsOf(row); }

  // Error: kConflict "1g.5gb at 3: does not go with 3g.20gb at 0" or the limit; nothing changes.
  // Requires: a placement of the product.
  Status Add(int placement);
  // Error: kNotFound where it is not there; nothing changes.
  Status Remove(int placement);

  friend bool operator==(const MigLayout& a, const MigLayout& b) {
    return a.product_ == b.product_ && a.set_ == b.set_;
  }

 private:
  const MigProduct* product_;
  MigSet set_ = 0;
};

// "1g.5gb at 3".
std::string MigPlacementName(const MigProduct& product, int placement);
// "3g.20gb at 0, 1g.5gb at 4"; "nothing" for the empty set.
std::string MigSetName(const MigProduct& product, MigSet set);

// Where on a GPU a new MIG device begins if another program than Berth decides.
//
//   kLowest     the lowest start that is free: Kubernetes' DRA allocator (first fit over devices
//               that the driver publishes sorted by name), instaslice
//   kDriver     the start that leaves the most placements possible, the lowest of equals: what
//               NVIDIA's driver does for a device created by profile alone. Inferred from the
//               creation sequences printed in the MIG User Guide, all of which it reproduces; not
//               documented.
//   kHighOrLow  the highest start for profiles of one and of three compute slices, else the lowest:
//               HAMi's dynamic MIG (Aug 2026)

enum class MigStartRule : std::uint8_t { kLowest, kDriver, kHighOrLow };

// The placement of that row; nullopt where none fits. `counted` are the placements that kDriver
// counts: those of the profiles in use, all of the product by default. Requires: a valid set.
std::optional<int> MigStartBy(MigStartRule rule, const MigProduct& product, MigSet set, int row,
                              MigSet counted = ~MigSet{0});

// The GPU products that support MIG, compiled in. The facts come from NVIDIA's publications (MIG
// User Guide, nvidia-smi mig -lgip and -lgipp, go-nvml, gpu-operator, mig-parted); every row names
// its source. The key is product and profile, never the profile alone: 1g.24gb
// is a quarter, a half or two eighths of a GPU.

// Sorted by memory grid and age, as in the source. Lives as long as the process.
std::span<const MigProduct> MigCatalogue();

// By the product's own name ("A100-40GB"); nullptr where there is none.
const MigProduct* FindMigProduct(std::string_view name);

// By the label nvidia.com/gpu.product as GPU Feature Discovery writes it: with or without "NVIDIA-"
// in front, also with -MIG-<profile>, -MIG-INVALID or -SHARED at the end. A board of a known
// product with another ending ("-SXM4-40GB-custom") counts as that product. nullptr if the product
// is unknown.
const MigProduct* MigProductOfLabel(std::string_view label);

// The label without -MIG-... and -SHARED: the card.
std::string_view BareGpuProductLabel(std::string_view label);

}  // namespace berth
