// SPDX-License-Identifier: Apache-2.0
//
// SlotPrior: what idle GPUs are worth to pods of a kind that may not have come yet.
//
// The mix of what has arrived says nothing of what has not: after a day of small pods nothing large
// will ever come, and before the first pod nothing at all. So slots for every power of two of GPUs,
// and whole nodes, have a price that never vanishes:
//
//   slots(node) = the GPUs of the node if all of them are idle, else 0
//                 + sum over k = 1, 2, 4, ... of k * (idle GPUs / k, rounded down)
//   price       = from kLeastSlotPrice, where less than kFewFree of all GPU is free, up to
//                 WasteParameters::slot_price, where more than kMuchFree is
//
// Where GPUs are scarce it is no more than the noise of the imagined fillings, and the mix decides.
// Where pods come and go and there is room for all of them, nothing is lost by packing: remainders
// that a fuller node would leave are not needed. Where nothing is known this is packing, as a buddy
// allocator does it.
#pragma once

#include <algorithm>

#include "scoring/waste/gpu_state.h"

namespace berth {

// In GPUs, per GPU of the slots.
constexpr double kLeastSlotPrice = 0.001;
// Parts of all GPU that are free, between which it rises.
constexpr double kFewFree = 0.3, kMuchFree = 0.6;

// 0..8 * state.count.
inline int SlotGpus(const GpuState& state) {
  const int idle = state.idle();
  int sum = idle == state.count ? idle : 0;
  for (int slot = 1; slot <= idle; slot *= 2) sum += slot * (idle / slot);
  return sum;
}

// free: part of all GPU, 0..1.
inline double SlotPriorPrice(double free, double slot_price) {
  const double plenty = std::clamp((free - kFewFree) / (kMuchFree - kFewFree), 0.0, 1.0);
  return kLeastSlotPrice + (slot_price - kLeastSlotPrice) * plenty;
}

}  // namespace berth
