// SPDX-License-Identifier: Apache-2.0
//
// Power: place where the pod's own part of the estimated power adds least (node_watts.h).
//
//   raw score = - OwnAddedWatts of that choice of devices
//
// so beside another scorer of absolute steps a watt has one price, whatever nodes there are. A node
// without known watts counts as one with the GPUs of the catalogue that add most: lack of a
// figure draws no pod.
#pragma once

#include "scoring/scorer.h"

namespace berth {

class Power final : public Scorer {
 public:
  void Score(const Node& node, const RequestShape& shape, std::span<const DeviceChoice> choices,
             std::span<int> scores) const override;
  [[nodiscard]] Normalization normalization() const override { return Normalization::kBestFirst; }
};

// PWR as published: raw score = - AddedWatts of the best of the choices, whichever of them is
// taken; spread from 0 to 100 over the nodes that fit. It is weighed against fragmentation-gradient
// (FGD), which then chooses the devices.
//
// Lettich et al., "Power- and Fragmentation-aware Online Scheduling for GPU Datacenters", CCGrid
// 2025, with the integer score of their simulator (Fr4nz83/PWR-plugin-kubernetes).
class Pwr final : public Scorer {
 public:
  void Score(const Node& node, const RequestShape& shape, std::span<const DeviceChoice> choices,
             std::span<int> scores) const override;
  [[nodiscard]] Normalization normalization() const override { return Normalization::kMinMax; }
};

}  // namespace berth
