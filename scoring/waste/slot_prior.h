// SPDX-License-Identifier: Apache-2.0
//
// SlotPrior: the value of idle GPUs for pods of a kind that may not have come yet.
//
// The mix of arrived pods contains nothing about the others: after a day of small pods it predicts
// no large one, and before the first pod it predicts nothing at all. So slots for every power of
// two of GPUs, and whole nodes, have a price that never vanishes:
//
//   slots(node) = the GPUs of the node if all of them are idle, else 0
//                 + sum over k = 1, 2, 4, ... of k * (idle GPUs / k, rounded down)
//   price       = from the least price, where less than kFewFree of all GPU is free, up to
//                 WasteParameters::slot_price, where more than kMuchFree is
//   least price = kLeastSlotPrice, and up to kUnknownSlotPrice where few pods with GPUs have come:
//                 what none of n pods asked for the next asks for with a probability of about 1 / n
//
// A cluster of 8 nodes is full before the mix knows what comes, so there that price decides.
// If GPUs are scarce, the price is no more than the noise of the simulated fillings, and the mix
// decides. If pods come and go and there is room for all of them, packing loses nothing: remainders
// on a fuller node are not needed. If nothing is known, this is packing, like a buddy allocator.
#pragma once

#include <algorithm>

#include "scoring/waste/gpu_state.h"

namespace berth {

// In GPUs, per GPU of the slots.
constexpr double kLeastSlotPrice = 0.001, kUnknownSlotPrice = 0.02;
// So many pods with GPUs tell nothing yet.
constexpr double kFewPods = 30;
// Parts of all GPU that are free, between which it rises.
constexpr double kFewFree = 0.3, kMuchFree = 0.6;

// 0..8 * state.count.
inline int SlotGpus(const GpuState& state) {
  const int idle = state.idle();
  int sum = idle == state.count ? idle : 0;
  for (int slot = 1; slot <= idle; slot *= 2) sum += slot * (idle / slot);
  return sum;
}

// gpu_pods: with GPUs, that the mix is of.
inline double LeastSlotPrice(double gpu_pods) {
  const double unknown = kFewPods / std::max(gpu_pods, kFewPods);
  return std::max(kLeastSlotPrice, kUnknownSlotPrice * unknown);
}

// free: part of all GPU, 0..1.
inline double SlotPriorPrice(double free, double slot_price, double least = kLeastSlotPrice) {
  const double plenty = std::clamp((free - kFewFree) / (kMuchFree - kFewFree), 0.0, 1.0);
  return std::max(least, kLeastSlotPrice + (slot_price - kLeastSlotPrice) * plenty);
}

}  // namespace berth
