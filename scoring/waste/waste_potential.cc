// SPDX-License-Identifier: Apache-2.0
#include "scoring/waste/waste_potential.h"

namespace berth {

double WastePotential::WasteMilli(const GpuState& state, std::size_t group) const {
  if (state.total == 0 && !worth().counts_memory) return 0;
  const std::uint64_t key = state.Hash(group);
  if (const auto known = memo_->Find(key)) return *known;
  computed_.fetch_add(1, std::memory_order_relaxed);
  const double waste = draws_.LeftMilli(state, group);
  memo_->Store(key, waste);
  return waste;
}

}  // namespace berth
