// SPDX-License-Identifier: Apache-2.0
#include "topology/mig/mig_states.h"

#include <algorithm>
#include <array>
#include <bit>
#include <numeric>
#include <string>
#include <utility>

#include "base/check.h"

namespace berth {
namespace {

bool Before(MigSet a, MigSet b) {
  return std::pair(std::popcount(a), a) < std::pair(std::popcount(b), b);
}

// A row of the grid of 8 units, by what it takes.
enum SliceShape : std::size_t { kOne, kDouble, kTwo, kThree, kFour, kSeven, kShapes };
struct GridShape {
  int memory_units;
  MigUnits starts;
};
constexpr std::array<GridShape, kShapes> kGrid = {{{1, 0b01111111},
                                                   {2, 0b01010101},
                                                   {2, 0b00010101},
                                                   {4, 0b00010001},
                                                   {4, 0b00000001},
                                                   {8, 0b00000001}}};

std::optional<SliceShape> ShapeOf(const MigRow& row) {
  for (std::size_t shape = 0; shape < kShapes; ++shape) {
    if (kGrid[shape].memory_units == row.memory_units && kGrid[shape].starts == row.starts) {
      return static_cast<SliceShape>(shape);
    }
  }
  return std::nullopt;
}

using Counts = std::array<std::int64_t, kShapes>;

bool FitsGridOf8(const Counts& count, std::int64_t gpus) {
  const std::int64_t cut = gpus - count[kSeven];
  if (cut < 0 || count[kFour] > cut) return false;
  const std::int64_t threes_left = std::max<std::int64_t>(0, count[kThree] - cut);
  const std::int64_t left = cut - count[kFour] - threes_left;
  if (left < 0) return false;
  const std::int64_t right = cut - (count[kThree] - threes_left);
  const std::int64_t odd = right - std::min(right, count[kDouble]);
  const std::int64_t doubles_in_pairs = count[kDouble] - (right - odd);
  const std::int64_t pairs = 2 * left + right - doubles_in_pairs - count[kTwo];
  return pairs >= 0 && count[kOne] <= 2 * pairs + odd;
}

// Whether the row may begin at every multiple of its size, and nowhere else.
bool StartsAtMultiples(const MigRow& row, int units) {
  MigUnits starts = 0;
  for (int start = 0; start + row.memory_units <= units; start += row.memory_units) {
    starts |= static_cast<MigUnits>(1U << start);
  }
  return row.starts == starts && units % row.memory_units == 0;
}

// Units that the instances take on a grid that halves; nullopt where it is none.
std::optional<std::int64_t> UnitsOnHalvingGrid(const MigProduct& product,
                                               std::span<const int> counts) {
  std::int64_t units = 0;
  std::vector<int> sizes;
  for (std::size_t r = 0; r < counts.size(); ++r) {
    if (counts[r] == 0) continue;
    const MigRow& row = product.rows()[r];
    if (!StartsAtMultiples(row, product.memory_units())) return std::nullopt;
    sizes.push_back(row.memory_units);
    units += std::int64_t{counts[r]} * row.memory_units;
  }
  std::ranges::sort(sizes);
  for (std::size_t i = 1; i < sizes.size(); ++i) {
    if (sizes[i] % sizes[i - 1] != 0) return std::nullopt;
  }
  return units;
}

// Whether units alone decide for this row: no engine of the GPU that others may lack, or the whole
// GPU anyway, and as many instances as fit.
bool UnitsDecide(const MigProduct& product, const MigRow& row) {
  if (row.memory_units == product.memory_units()) return true;
  return !row.once_per_gpu && row.max_instances >= std::popcount(row.starts);
}

// Whether as many of the row as units allow fit by their engines, whatever they are mixed with:
// each takes no more than its share of the GPU.
bool EnginesFollowUnits(const MigProduct& product, const MigRow& row) {
  const auto fits = [&](int each, int all) {
    return each * product.memory_units() <= all * row.memory_units;
  };
  const MigEngines &each = row.engines, &all = product.engines();
  return !product.engine_limited() ||
         (fits(each.decoders, all.decoders) && fits(each.encoders, all.encoders) &&
          fits(each.jpeg, all.jpeg) && fits(each.copy, all.copy));
}

}  // namespace

Result<MigStates> MigStates::Of(const MigProduct& product, std::span<const int> rows) {
  MigSet placements = 0;
  for (const int row : rows) placements |= product.PlacementsOf(row);
  MigStates states(product, placements);
  if (!states.Enumerate()) {
    return Invalid(product.name() + ": want at most " + std::to_string(kMaxMigStates) +
                   " layouts, got more");
  }
  states.Connect();
  return states;
}

Result<MigStates> MigStates::Of(const MigProduct& product) {
  std::vector<int> rows(product.rows().size());
  std::iota(rows.begin(), rows.end(), 0);
  return Of(product, rows);
}

// Each set is reached once: from the set without its highest placement.
bool MigStates::Enumerate() {
  sets_ = {0};
  for (std::size_t i = 0; i < sets_.size(); ++i) {
    MigSet left = product_->Addable(sets_[i]) & placements_;
    if (sets_[i] != 0) left &= ~(std::bit_floor(sets_[i]) * 2 - 1);
    for (; left != 0; left &= left - 1) sets_.push_back(sets_[i] | (left & (~left + 1)));
    if (sets_.size() > kMaxMigStates) return false;
  }
  std::ranges::sort(sets_, Before);
  return true;
}

void MigStates::Connect() {
  const std::size_t count = sets_.size() * product_->placements().size();
  with_.assign(count, kNone);
  without_.assign(count, kNone);
  for (int state = 0; state < size(); ++state) {
    addable_.push_back(product_->Addable(set(state)) & placements_);
    for (MigSet left = addable_.back(); left != 0; left &= left - 1) {
      const int placement = std::countr_zero(left);
      const int next = IndexOf(set(state) | MigSet{1} << placement);
      with_[At(state, placement)] = static_cast<std::int16_t>(next);
      without_[At(next, placement)] = static_cast<std::int16_t>(state);
    }
  }
}

int MigStates::IndexOf(MigSet set) const {
  const auto found = std::ranges::lower_bound(sets_, set, Before);
  return found != sets_.end() && *found == set ? static_cast<int>(found - sets_.begin()) : kNone;
}

std::optional<bool> MigPackable(const MigProduct& product, std::span<const int> counts, int gpus) {
  BERTH_CHECK(counts.size() == product.rows().size());
  Counts shapes{};
  bool grid_of_8 = product.memory_units() == 8;
  for (std::size_t r = 0; r < counts.size(); ++r) {
    const MigRow& row = product.rows()[r];
    if (counts[r] == 0) continue;
    if (!UnitsDecide(product, row) || !EnginesFollowUnits(product, row)) return std::nullopt;
    const auto shape = ShapeOf(row);
    grid_of_8 = grid_of_8 && shape;
    if (shape) shapes[*shape] += counts[r];
  }
  if (grid_of_8) return FitsGridOf8(shapes, gpus);
  if (const auto units = UnitsOnHalvingGrid(product, counts)) {
    return *units <= std::int64_t{gpus} * product.memory_units();
  }
  return std::nullopt;
}

std::optional<int> MigRoomFor(const MigProduct& product, std::span<const int> counts, int row,
                              int gpus) {
  std::vector<int> with(counts.begin(), counts.end());
  int& count = with[static_cast<std::size_t>(row)];
  const int before = count;
  const auto packable = MigPackable(product, with, gpus);
  if (!packable) return std::nullopt;
  if (!*packable) return 0;
  // Bisection: what fits with one more fits with one less.
  int fits = 0, too_many = gpus * product.memory_units() + 1;
  while (too_many - fits > 1) {
    const int middle = fits + (too_many - fits) / 2;
    count = before + middle;
    const auto more = MigPackable(product, with, gpus);
    if (!more) return std::nullopt;
    (*more ? fits : too_many) = middle;
  }
  return fits;
}

}  // namespace berth
