// SPDX-License-Identifier: Apache-2.0
#include "scoring/mig/offer_choice.h"

#include <bit>
#include <map>
#include <memory>
#include <tuple>
#include <utility>

#include "scoring/mig/mig_tables.h"

namespace berth {
namespace {

struct Rated {
  double loss_gpus = 0;
  int free_units = 0;
  int placement = 0;
  friend bool operator<(const Rated& a, const Rated& b) {
    return std::tie(a.loss_gpus, a.free_units) < std::tie(b.loss_gpus, b.free_units);
  }
};

// Rates GPUs, each layout once: large clusters have few.
class Rater {
 public:
  explicit Rater(const MigProfile& profile) : profile_(profile) {}

  std::optional<Rated> Rate(const OfferedGpu& gpu) {
    const MigSet free = gpu.Free();
    if (free == 0) return std::nullopt;
    const auto key = std::tuple(gpu.product.get(), gpu.taken, free);
    const auto known = rated_.find(key);
    return known != rated_.end() ? known->second
                                 : rated_.emplace(key, Compute(gpu, free)).first->second;
  }

 private:
  [[nodiscard]] std::optional<Rated> Compute(const OfferedGpu& gpu, MigSet free) const {
    const MigProduct& product = *gpu.product;
    const auto row = product.RowOf(profile_);
    if (!row) return std::nullopt;
    const auto tables = MigTablesOf(gpu.product);
    const int units = product.memory_units() - std::popcount(product.UnitsOf(gpu.taken));
    std::optional<Rated> best;
    for (free &= product.PlacementsOf(*row); free != 0; free &= free - 1) {
      const int placement = std::countr_zero(free);
      const double loss = tables == nullptr ? 0 : tables->LossGpus(gpu.taken, placement);
      const Rated rated{loss, units, placement};
      if (!best || rated < *best) best = rated;
    }
    return best;
  }

  const MigProfile& profile_;
  std::map<std::tuple<const MigProduct*, MigSet, MigSet>, std::optional<Rated>> rated_;
};

}  // namespace

std::optional<OfferedDevice> ChooseOffered(const MigOffers::ByNode& offers,
                                           const MigProfile& profile,
                                           std::span<const std::string> nodes) {
  Rater rater(profile);
  std::optional<Rated> best;
  const std::string* node = nullptr;
  const OfferedGpu* gpu = nullptr;
  for (const std::string& name : nodes) {
    const auto offered = offers.find(name);
    if (offered == offers.end()) continue;
    for (const OfferedGpu& candidate : *offered->second) {
      const auto rated = rater.Rate(candidate);
      if (!rated || (best && !(*rated < *best))) continue;
      best = rated;
      node = &name;
      gpu = &candidate;
    }
  }
  if (!best) return std::nullopt;
  return OfferedDevice{*node, gpu->pool, gpu->devices[static_cast<std::size_t>(best->placement)]};
}

}  // namespace berth
