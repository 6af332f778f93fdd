// SPDX-License-Identifier: Apache-2.0
#include "cluster/node/mig_library.h"

#include <algorithm>
#include <utility>

#include "topology/links/product_links.h"

namespace berth {

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
