// SPDX-License-Identifier: Apache-2.0
//
// GpuPlaces: the GPUs of a node that have several users each (time slicing, MPS, an agent of
// another scheduler). A pod gets a place on one of them. The kubelet picks it; Berth where the
// node's agent carries that out (NodeSpec::carries_out), on the GPU with the fewest users. Which
// one it is, is known where the GPUs have names, by what the pod was given or by that plan
// (Placement::places_on).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace berth {

// What keeps the users of one GPU apart.
enum class GpuSharing : std::uint8_t {
  kUnknown,      // nobody says
  kTimeSlicing,  // they take turns; each of them can take all of the memory
  kMps,          // they run side by side; each has its part of the memory and no more
};

struct GpuPlaces {
  int count = 0;         // users in all
  bool foreign = false;  // another scheduler gives them out, or `gpus`: Berth counts and gives none
  // On so many GPUs, or MIG devices, as many users on each; 0 = not known. As many as there are
  // places: more devices than a node can have GPUs, each for one user.
  int gpus = 0;
  // What a place has of its GPU's memory; 0 = not known.
  std::int64_t memory_mib = 0;
  GpuSharing sharing = GpuSharing::kUnknown;
  std::vector<std::string> uuids = {};  // of the `gpus`, by index; empty: not known
  // Those of them that are out of order, ascending: nothing more of them is given.
  std::vector<int> unwell = {};
  bool several = false;  // a container may ask for several, which may be of one GPU
  // Users on each of the GPUs; 0 = not known.
  [[nodiscard]] int each() const { return gpus > 0 ? (count + gpus - 1) / gpus : 0; }
  friend bool operator==(const GpuPlaces&, const GpuPlaces&) = default;
};

}  // namespace berth
