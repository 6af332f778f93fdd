// SPDX-License-Identifier: Apache-2.0
#include "scoring/mig/mig_tables.h"

#include <optional>
#include <utility>
#include <vector>

#include "base/mutex.h"

namespace berth {
namespace {

// A function of products, remembered.
class Memo {
 public:
  using Tables = std::shared_ptr<const MigTables>;

  // Nothing if they were not requested yet.
  std::optional<Tables> Find(const std::shared_ptr<const MigProduct>& product)
      BERTH_EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    return Known(product);
  }

  // Makes them without the lock, so that requests for another product do not wait. Two requests for
  // the same product at once both make them, and get the same.
  Tables Of(const std::shared_ptr<const MigProduct>& product) BERTH_EXCLUDES(mutex_) {
    if (auto known = Find(product)) return *std::move(known);
    auto made = MigTables::Make(*product);
    const MutexLock lock(mutex_);
    if (auto known = Known(product)) return *std::move(known);
    // A product that no longer exists may have had the address of this one.
    std::erase_if(entries_, [](const Entry& entry) { return !Lives(entry); });
    entries_.push_back({product.get(), product, product.use_count() == 0, made ? *made : nullptr});
    return entries_.back().tables;
  }

 private:
  struct Entry {
    const MigProduct* product;
    std::weak_ptr<const MigProduct> owner;
    bool for_ever;  // of the catalogue: it has no owner
    Tables tables;  // nullptr: there are too many layouts
  };
  static bool Lives(const Entry& entry) { return entry.for_ever || !entry.owner.expired(); }

  std::optional<Tables> Known(const std::shared_ptr<const MigProduct>& product)
      BERTH_REQUIRES(mutex_) {
    for (const Entry& entry : entries_) {
      if (entry.product == product.get() && Lives(entry)) return entry.tables;
    }
    return std::nullopt;
  }

  Mutex mutex_;
  std::vector<Entry> entries_ BERTH_GUARDED_BY(mutex_);
};

Memo& AllTables() {
  static Memo memo;
  return memo;
}

}  // namespace

Result<std::shared_ptr<const MigTables>> MigTables::Make(const MigProduct& product) {
  BERTH_TRY(MigStates states, MigStates::Of(product));
  return std::make_shared<const MigTables>(std::move(states));
}

double MigTables::LossGpus(MigSet taken, int placement) const {
  const int state = states_.IndexOf(taken);
  const double whole = potential_.worth(0);
  if (state == MigStates::kNone || whole <= 0) return 0;
  return static_cast<double>(potential_.Loss(state, placement)) / 1e6 / whole;
}

std::shared_ptr<const MigTables> MigTablesOf(const std::shared_ptr<const MigProduct>& product) {
  return AllTables().Of(product);
}

bool HasMigTables(const std::shared_ptr<const MigProduct>& product) {
  return AllTables().Find(product).has_value();
}

}  // namespace berth
