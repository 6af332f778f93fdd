// SPDX-License-Identifier: Apache-2.0
#include "topology/mig/mig_product.h"

#include <algorithm>
#include <array>
#include <bit>

#include "base/check.h"

namespace berth {

Result<MigLayout> MigLayout::Of(const MigProduct& product, MigSet set) {
  if ((set & ~product.AllPlacements()) != 0) {
    return Invalid("want placements of " + product.name() + ", got the bits " +
                   std::to_string(set));
  }
  if (!product.IsValid(set)) {
    return Invalid("want placements that go together on " + product.name() + ", got " +
                   MigSetName(product, set));
  }
  MigLayout layout(product);
  layout.set_ = set;
  return layout;
}

int MigLayout::free_units() const { return product_->memory_units() - std::popcount(occupied()); }

Status MigLayout::Add(int placement) {
  const MigSet one = MigSet{1} << placement;
  if ((Addable() & one) == 0) {
    return Fail(Errc::kConflict, MigPlacementName(*product_, placement) + ": does not go with " +
                                     MigSetName(*product_, set_));
  }
  set_ |= one;
  return {};
}

Status MigLayout::Remove(int placement) {
  const MigSet one = MigSet{1} << placement;
  if ((set_ & one) == 0) {
    return Fail(Errc::kNotFound, MigPlacementName(*product_, placement) + ": want one of " +
                                     MigSetName(*product_, set_));
  }
  set_ &= ~one;
  return {};
}

std::string MigPlacementName(const MigProduct& product, int placement) {
  const MigPlacement& place = product.placement(placement);
  return MigProfileName(product.row_of(placement).profile) + " at " + std::to_string(place.start);
}

std::string MigSetName(const MigProduct& product, MigSet set) {
  if (set == 0) return "nothing";
  std::string names;
  for (; set != 0; set &= set - 1) {
    if (!names.empty()) names += ", ";
    names += MigPlacementName(product, std::countr_zero(set));
  }
  return names;
}

namespace {

Status CheckRow(const MigProductSpec& spec, const MigRow& row) {
  const int units = spec.memory_units;
  if (row.profile.instance_slices != 0) {
    return Invalid("want a profile of GPU instances, got a compute instance");
  }
  if (row.memory_units < 1 || row.memory_units > units) {
    return Invalid("want 1 to " + std::to_string(units) + " memory units, got " +
                   std::to_string(row.memory_units));
  }
  if (row.starts == 0 || std::bit_width(row.starts) + row.memory_units - 1 > units) {
    return Invalid("want starts from 0 to " + std::to_string(units - row.memory_units) +
                   ", got the bits " + std::to_string(row.starts));
  }
  if (row.max_instances < 1) {
    return Invalid("want at least 1 instance, got " + std::to_string(row.max_instances));
  }
  const auto same = [&row](const MigRow& other) { return other.profile == row.profile; };
  if (std::ranges::count_if(spec.rows, same) > 1) return Invalid("the profile is there twice");
  return {};
}

Status Check(const MigProductSpec& spec) {
  if (spec.memory_units < 1 || spec.memory_units > kMaxMigUnits) {
    return Invalid(spec.name + ": want 1 to " + std::to_string(kMaxMigUnits) +
                   " memory units, got " + std::to_string(spec.memory_units));
  }
  int placements = 0;
  for (const MigRow& row : spec.rows) {
    BERTH_TRY_STATUS(Within(CheckRow(spec, row), spec.name + ": " + MigProfileName(row.profile)));
    placements += std::popcount(row.starts);
  }
  if (placements < 1 || placements > kMaxMigPlacements) {
    return Invalid(spec.name + ": want 1 to " + std::to_string(kMaxMigPlacements) +
                   " placements, got " + std::to_string(placements));
  }
  for (const auto& [other, profile] : spec.aliases) {
    if (std::ranges::find(spec.rows, profile, &MigRow::profile) != spec.rows.end()) continue;
    return Invalid(spec.name + ": " + MigProfileName(other) + ": want another name of a row, got " +
                   MigProfileName(profile));
  }
  return {};
}

// The most disjoint placements that a row has: from the left, each as early as it can.
int MostDisjoint(const MigRow& row) {
  int count = 0, free_from = 0;
  for (int start = 0; start < kMaxMigUnits; ++start) {
    if ((row.starts >> start & 1) == 0 || start < free_from) continue;
    ++count;
    free_from = start + row.memory_units;
  }
  return row.once_per_gpu ? 1 : count;
}

// Placements of a row are in the order of their starts.
int Lowest(MigSet possible) { return std::countr_zero(possible); }
int Highest(MigSet possible) { return 63 - std::countl_zero(possible); }

int LeavingMost(const MigProduct& product, MigSet set, MigSet possible, MigSet counted) {
  int best = 0, most = -1;
  for (; possible != 0; possible &= possible - 1) {
    const int placement = std::countr_zero(possible);
    const MigSet after = product.Addable(set | MigSet{1} << placement);
    if (const int left = std::popcount(after & counted); left > most) {
      most = left;
      best = placement;
    }
  }
  return best;
}

// Far above any product; small enough that sums of them never overflow.
constexpr int kMaxComputeSlices = 64;
constexpr int kMaxMemoryGb = 99'999;

struct ExtensionName {
  MigExtension extension;
  std::string_view name;      // in a profile
  std::string_view resource;  // in a resource
};
constexpr std::array<ExtensionName, 5> kExtensions = {{{MigExtension::kNone, "", ""},
                                                       {MigExtension::kMe, "+me", ".me"},
                                                       {MigExtension::kMeAll, "+me.all", ".me.all"},
                                                       {MigExtension::kNoMe, "-me", "-me"},
                                                       {MigExtension::kGfx, "+gfx", ".gfx"}}};

const ExtensionName& NameOf(MigExtension extension) {
  return *std::ranges::find(kExtensions, extension, &ExtensionName::extension);
}

// Takes a number from 1 to `high`, written without leading zeros, and `unit` behind it.
std::optional<int> TakeNumber(std::string_view& text, std::string_view unit, int high) {
  int value = 0;
  std::size_t digits = 0;
  for (; digits < text.size() && text[digits] >= '0' && text[digits] <= '9'; ++digits) {
    value = value * 10 + (text[digits] - '0');
    if (value == 0 || value > high) return std::nullopt;
  }
  if (digits == 0 || !text.substr(digits).starts_with(unit)) return std::nullopt;
  text.remove_prefix(digits + unit.size());
  return value;
}

std::optional<MigProfile> Parse(std::string_view text, std::string_view ExtensionName::*column) {
  MigProfile profile;
  if (const auto instance = TakeNumber(text, "c.", kMaxComputeSlices)) {
    profile.instance_slices = *instance;
  }
  const auto slices = TakeNumber(text, "g.", kMaxComputeSlices);
  if (!slices || profile.instance_slices > *slices) return std::nullopt;
  profile.compute_slices = *slices;
  if (profile.instance_slices == *slices) profile.instance_slices = 0;
  const auto memory = TakeNumber(text, "gb", kMaxMemoryGb);
  if (!memory) return std::nullopt;
  profile.memory_gb = *memory;
  const auto extension = std::ranges::find(kExtensions, text, column);
  if (extension == kExtensions.end()) return std::nullopt;
  profile.extension = extension->extension;
  return profile;
}

std::string SizeName(const MigProfile& profile) {
  return std::to_string(profile.compute_slices) + "g." + std::to_string(profile.memory_gb) + "gb";
}

}  // namespace

Result<MigProduct> MigProduct::Make(MigProductSpec spec) {
  BERTH_TRY_STATUS(Check(spec));
  return MigProduct(std::move(spec));
}

MigProduct::MigProduct(MigProductSpec spec) : spec_(std::move(spec)) {
  limited_ = spec_.engine_limited;
  for (std::size_t r = 0; r < spec_.rows.size(); ++r) {
    const MigRow& row = spec_.rows[r];
    of_row_.push_back(0);
    limited_ = limited_ || MostDisjoint(row) > row.max_instances;
    const auto units = static_cast<MigUnits>((1U << row.memory_units) - 1);
    for (int start = 0; start < spec_.memory_units; ++start) {
      if ((row.starts >> start & 1) == 0) continue;
      of_row_.back() |= MigSet{1} << placements_.size();
      placements_.push_back({static_cast<int>(r), start, static_cast<MigUnits>(units << start)});
    }
  }
  for (const MigPlacement& a : placements_) {
    MigSet conflicts = 0;
    for (std::size_t i = 0; i < placements_.size(); ++i) {
      const MigPlacement& b = placements_[i];
      const bool both_once = row(a.row).once_per_gpu && row(b.row).once_per_gpu;
      if ((a.units & b.units) != 0 || both_once) conflicts |= MigSet{1} << i;
    }
    conflicts_.push_back(conflicts);
  }
}

Result<MigProduct> MigProduct::WithRow(MigRow row) const {
  MigProductSpec spec = spec_;
  const auto old = std::ranges::find(spec.rows, row.profile, &MigRow::profile);
  if (old != spec.rows.end()) {
    *old = std::move(row);
  } else {
    // The node's own name for a row that is known by another name.
    std::erase_if(spec.aliases, [&row](const auto& alias) { return alias.first == row.profile; });
    spec.rows.push_back(std::move(row));
  }
  return Make(std::move(spec));
}

std::optional<int> MigProduct::RowOf(const MigProfile& profile) const {
  MigProfile name = profile;
  for (const auto& [other, known] : spec_.aliases) {
    if (other == profile) name = known;
  }
  const auto row = std::ranges::find(rows(), name, &MigRow::profile);
  if (row == rows().end()) return std::nullopt;
  return static_cast<int>(row - rows().begin());
}

std::optional<int> MigProduct::PlacementAt(int row, int start) const {
  for (MigSet left = PlacementsOf(row); left != 0; left &= left - 1) {
    const int placement = std::countr_zero(left);
    if (this->placement(placement).start == start) return placement;
  }
  return std::nullopt;
}

MigSet MigProduct::AllPlacements() const {
  return placements_.size() == kMaxMigPlacements ? ~MigSet{0}
                                                 : (MigSet{1} << placements_.size()) - 1;
}

MigUnits MigProduct::UnitsOf(MigSet set) const {
  MigUnits units = 0;
  for (; set != 0; set &= set - 1) {
    units |= placement(std::countr_zero(set)).units;
  }
  return units;
}

MigSet MigProduct::Addable(MigSet set) const {
  MigSet kept_out = 0;
  for (MigSet left = set; left != 0; left &= left - 1) {
    kept_out |= conflicts_[static_cast<std::size_t>(std::countr_zero(left))];
  }
  MigSet addable = AllPlacements() & ~kept_out;
  if (!limited_) return addable;
  for (MigSet left = addable; left != 0; left &= left - 1) {
    const MigSet one = left & (~left + 1);
    if (!WithinLimits(set | one)) addable &= ~one;
  }
  return addable;
}

bool MigProduct::IsValid(MigSet set) const {
  if ((set & ~AllPlacements()) != 0) return false;
  for (MigSet left = set; left != 0; left &= left - 1) {
    const int placement = std::countr_zero(left);
    const MigSet others = set & ~(MigSet{1} << placement);
    if ((conflicts_[static_cast<std::size_t>(placement)] & others) != 0) return false;
  }
  return WithinLimits(set);
}

bool MigProduct::WithinLimits(MigSet set) const {
  MigEngines sum;
  for (std::size_t r = 0; r < of_row_.size(); ++r) {
    const int count = std::popcount(set & of_row_[r]);
    if (count > rows()[r].max_instances) return false;
    const MigEngines& each = rows()[r].engines;
    sum.decoders += count * each.decoders;
    sum.encoders += count * each.encoders;
    sum.jpeg += count * each.jpeg;
    sum.ofa += count * each.ofa;
    sum.copy += count * each.copy;
  }
  const MigEngines& all = spec_.engines;
  return !spec_.engine_limited ||
         (sum.decoders <= all.decoders && sum.encoders <= all.encoders && sum.jpeg <= all.jpeg &&
          sum.ofa <= all.ofa && sum.copy <= all.copy);
}

Result<MigProfile> ParseMigProfile(std::string_view text) {
  if (const auto profile = Parse(text, &ExtensionName::name)) return *profile;
  return Invalid("want a MIG profile such as 1g.5gb, 1g.10gb+me or 1c.2g.10gb, got \"" +
                 std::string(text) + "\"");
}

std::string MigProfileName(const MigProfile& profile) {
  const std::string instance =
      profile.instance_slices > 0 ? std::to_string(profile.instance_slices) + "c." : "";
  return instance + SizeName(profile) + std::string(NameOf(profile.extension).name);
}

Result<MigResource> ParseMigResource(std::string_view name) {
  constexpr std::string_view kShared = ".shared";
  if (name.starts_with(kMigResourcePrefix)) {
    std::string_view text = name.substr(kMigResourcePrefix.size());
    MigResource resource;
    resource.shared = text.ends_with(kShared);
    if (resource.shared) text.remove_suffix(kShared.size());
    const auto profile = Parse(text, &ExtensionName::resource);
    // "2c.2g.10gb" reads as a profile without C, and is no resource all the same.
    if (profile && text.find('c') == std::string_view::npos) {
      resource.profile = *profile;
      return resource;
    }
  }
  return Invalid(
      "want a resource such as nvidia.com/mig-1g.5gb or nvidia.com/mig-1g.5gb.me, got \"" +
      std::string(name) + "\"");
}

std::string MigResourceName(const MigProfile& profile, bool shared) {
  BERTH_CHECK(profile.instance_slices == 0);
  return std::string(kMigResourcePrefix) + SizeName(profile) +
         std::string(NameOf(profile.extension).resource) + (shared ? ".shared" : "");
}

std::optional<int> MigStartBy(MigStartRule rule, const MigProduct& product, MigSet set, int row,
                              MigSet counted) {
  const MigSet possible = product.Addable(set) & product.PlacementsOf(row);
  if (possible == 0) return std::nullopt;
  if (rule == MigStartRule::kLowest) return Lowest(possible);
  if (rule == MigStartRule::kDriver) return LeavingMost(product, set, possible, counted);
  const int slices = product.row(row).profile.compute_slices;
  return slices == 1 || slices == 3 ? Highest(possible) : Lowest(possible);
}

}  // namespace berth
