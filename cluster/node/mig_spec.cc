// SPDX-License-Identifier: Apache-2.0
#include "cluster/node/mig_spec.h"

#include <algorithm>
#include <array>
#include <utility>

#include "cluster/node/mig_library.h"
#include "topology/links/wiring.h"

namespace berth {

std::string_view MigTroubleName(MigTrouble trouble) {
  constexpr std::array<std::string_view, 5> kNames = {"", "changing", "failed", "invalid", "stale"};
  return kNames[static_cast<std::size_t>(trouble)];
}

std::optional<std::size_t> MigSpec::PositionOf(int index) const {
  const auto gpu = std::ranges::find(gpus, index, &MigGpu::index);
  if (gpu == gpus.end()) return std::nullopt;
  return static_cast<std::size_t>(gpu - gpus.begin());
}

std::optional<MigGrant> MigSpec::FindNamed(std::string_view id) const {
  for (const MigGpu& gpu : gpus) {
    const auto name = std::ranges::find(gpu.names, id, &MigName::id);
    if (name == gpu.names.end() || (gpu.instances >> name->placement & 1) == 0) continue;
    return MigGrant{.gpu = gpu.index,
                    .start = product->placement(name->placement).start,
                    .profile = product->row_of(name->placement).profile};
  }
  return std::nullopt;
}

Status Validate(const MigSpec& spec) {
  if (!spec.gpus.empty() && spec.product == nullptr) {
    return Invalid(".mig.product: want that of the GPUs, got none");
  }
  for (std::size_t i = 0; i < spec.gpus.size(); ++i) {
    const std::string place = ".mig.gpus[" + std::to_string(i) + "]";
    const int least = i == 0 || spec.by_claims() ? 0 : spec.gpus[i - 1].index + 1;
    if (spec.gpus[i].index < least || spec.PositionOf(spec.gpus[i].index) != i) {
      return Invalid(place + ".index: want each GPU once and in ascending order, got " +
                     std::to_string(spec.gpus[i].index));
    }
    if (!spec.agent.empty() && spec.gpus[i].uuid.empty()) {
      return Invalid(place + ".uuid: want the UUID by which the agent of " + spec.agent +
                     " knows the GPU, got none");
    }
    BERTH_TRY_STATUS(
        Within(MigLayout::Of(*spec.product, spec.gpus[i].instances), place + ".instances"));
  }
  for (std::size_t i = 0; i < spec.shared.size(); ++i) {
    if (spec.shared[i].count >= 0) continue;
    return Invalid(".mig.shared[" + std::to_string(i) + "].count: want 0 or more, got " +
                   std::to_string(spec.shared[i].count));
  }
  return {};
}

std::shared_ptr<const MigProduct> MigLibrary::Catalogued(const MigProduct& product) {
  return {std::shared_ptr<void>(), &product};
}

std::shared_ptr<const MigProduct> MigLibrary::Keep(MigProduct product) {
  const MutexLock lock(mutex_);
  const auto known =
      std::ranges::find_if(products_, [&](const auto& kept) { return *kept == product; });
  if (known != products_.end()) return *known;
  if (products_.size() == kMostProducts) products_.clear();
  products_.push_back(std::make_shared<const MigProduct>(std::move(product)));
  return products_.back();
}

GpuLinks LinkLibrary::LinksOf(LinkMatrix matrix, std::string_view product, LinkOrigin origin) {
  const MutexLock lock(mutex_);
  const auto known = std::ranges::find_if(entries_, [&](const Entry& entry) {
    return entry.product == product && entry.links.origin() == origin &&
           entry.links.matrix() == matrix;
  });
  if (known != entries_.end()) return known->links;
  if (entries_.size() == kMostWirings) {
    entries_.clear();
    tables_ = WiringTables();
  }
  const LinkSpeeds speeds = SpeedsFor(matrix, product);
  entries_.push_back(
      {std::string(product), GpuLinks(std::move(matrix), speeds, std::move(origin), tables_)});
  return entries_.back().links;
}

}  // namespace berth
