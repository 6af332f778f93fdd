// SPDX-License-Identifier: Apache-2.0
#include "cluster/node/mig_library.h"

#include <algorithm>
#include <utility>

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

}  // namespace berth
