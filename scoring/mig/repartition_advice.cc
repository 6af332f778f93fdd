// SPDX-License-Identifier: Apache-2.0
#include "scoring/mig/repartition_advice.h"

#include <algorithm>
#include <numeric>
#include <tuple>

#include "base/check.h"
#include "topology/mig/mig_packability.h"

namespace berth {
namespace {

// The row without extension of so many compute slices and memory units.
std::optional<std::size_t> PlainRow(const MigProduct& product, int slices, int units) {
  for (std::size_t r = 0; r < product.rows().size(); ++r) {
    const MigRow& row = product.rows()[r];
    if (row.profile.extension == MigExtension::kNone && row.profile.compute_slices == slices &&
        row.memory_units == units) {
      return r;
    }
  }
  return std::nullopt;
}

std::optional<MigConfig> AllBalanced(const MigProduct& product) {
  struct Part {
    int slices, units, count;
  };
  std::vector<Part> parts;
  if (product.memory_units() == 8) parts = {{1, 1, 2}, {2, 2, 1}, {3, 4, 1}};
  if (product.memory_units() == 4) parts = {{1, 1, 2}, {2, 2, 1}};
  if (parts.empty()) return std::nullopt;
  MigConfig config{"all-balanced", std::vector<int>(product.rows().size())};
  for (const Part& part : parts) {
    const auto row = PlainRow(product, part.slices, part.units);
    if (!row) return std::nullopt;
    config.instances[*row] = part.count;
  }
  return config;
}

struct Use {
  int pods = 0;
  int units = 0;
};

// What the waiting pods take of so many instances per row.
Use UseOf(const MigProduct& product, std::span<const int> waiting, std::span<const int> instances) {
  Use use;
  for (std::size_t r = 0; r < waiting.size(); ++r) {
    const int pods = std::min(waiting[r], instances[r]);
    use.pods += pods;
    use.units += pods * product.rows()[r].memory_units;
  }
  return use;
}

// The number of pods that fit if GPUs are partitioned freely: small ones first, since each leaves
// room for the most others.
std::optional<int> FitCutAtWill(const MigProduct& product, int gpus, std::span<const int> waiting) {
  std::vector<std::size_t> rows(waiting.size());
  std::iota(rows.begin(), rows.end(), 0U);
  std::ranges::stable_sort(rows, {}, [&](std::size_t r) { return product.rows()[r].memory_units; });
  std::vector<int> placed(waiting.size());
  for (const std::size_t r : rows) {
    if (waiting[r] == 0) continue;
    const auto room = MigRoomFor(product, placed, static_cast<int>(r), gpus);
    if (!room) return std::nullopt;
    placed[r] = std::min(waiting[r], *room);
  }
  return std::accumulate(placed.begin(), placed.end(), 0);
}

}  // namespace

std::vector<MigConfig> StandardMigConfigs(const MigProduct& product) {
  std::vector<MigConfig> configs;
  for (std::size_t r = 0; r < product.rows().size(); ++r) {
    // mig-manager writes '.' for '+', as in a resource's name.
    const std::string resource = MigResourceName(product.rows()[r].profile);
    MigConfig config{"all-" + resource.substr(kMigResourcePrefix.size()),
                     std::vector<int>(product.rows().size())};
    config.instances[r] = product.rows()[r].max_instances;
    configs.push_back(std::move(config));
  }
  if (auto balanced = AllBalanced(product)) configs.push_back(*std::move(balanced));
  return configs;
}

std::optional<RepartitionAdvice> AdviseRepartition(const MigProduct& product, int gpus,
                                                   std::span<const int> waiting,
                                                   std::span<const int> now) {
  BERTH_CHECK(waiting.size() == product.rows().size() && now.size() == waiting.size());
  BERTH_CHECK(gpus >= 1);
  RepartitionAdvice advice;
  advice.fits_now = UseOf(product, waiting, now).pods;
  Use best;
  for (const MigConfig& config : StandardMigConfigs(product)) {
    std::vector<int> instances = config.instances;
    for (int& count : instances) count *= gpus;
    const Use use = UseOf(product, waiting, instances);
    if (std::tie(use.pods, use.units) <= std::tie(best.pods, best.units)) continue;
    best = use;
    advice.config = config.name;
    advice.fits = use.pods;
  }
  if (advice.fits <= advice.fits_now) return std::nullopt;
  if (const auto fits = FitCutAtWill(product, gpus, waiting)) {
    advice.fits_cut_at_will = std::max(*fits, advice.fits);
  }
  return advice;
}

}  // namespace berth
