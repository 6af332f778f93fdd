// SPDX-License-Identifier: Apache-2.0
//
// MigUse: what the pods of a node have of its MIG devices; where pods get them by claims
// (MigSpec::by_claims), what the claims have. A function of the pods, whatever the
// order in which they came: first the devices that are known, of pods and of claims
// (claimed_gpu.h), then, in the order of the UIDs, those of which only the profile is, or which the
// spec does not have (any more). For these the device is
// assumed that the node's allocator would pick; a pod for which none is left holds nothing.
#pragma once

#include <compare>
#include <memory>
#include <optional>
#include <span>
#include <tuple>
#include <vector>

#include "base/result.h"
#include "cluster/claimed_gpu.h"
#include "cluster/mig_spec.h"
#include "cluster/placement.h"
#include "cluster/pod_record.h"

namespace berth {

// A device: a placement of the product on a GPU, by its position in MigSpec::gpus.
struct MigSlot {
  std::size_t gpu = 0;
  int placement = 0;
  friend auto operator<=>(const MigSlot&, const MigSlot&) = default;
};

// The device of an exact grant, where the spec has it.
std::optional<MigSlot> SlotOf(const MigSpec& spec, const MigGrant& grant);

// The devices of the spec that claims hold, as far as they say which.
std::vector<MigSlot> SlotsOfClaims(const MigSpec& spec, std::span<const ClaimedGpu> claims);

// The plain rows of the product that satisfy the want, the smallest first; the one row that it
// names. None: the product has no such profile.
std::vector<int> RowsFor(const MigProduct& product, const MigWant& want);

// Less comes first where several devices are picked one after the other: the largest, then those
// with the fewest starts.
using MigRank = std::tuple<int, int, int>;
MigRank RankOf(const MigProduct& product, int row);

// Whether a device with so much is what the want without a name asks for.
bool IsEnough(const MigWant& want, int slices, std::int64_t memory_mib);

class MigUse {
 public:
  MigUse() = default;
  // Nothing taken.
  explicit MigUse(const MigSpec& spec)
      : taken_(spec.gpus.size()), shared_taken_(spec.shared.size()) {}
  MigUse(const MigSpec& spec, const PodRecords& pods, std::span<const ClaimedGpu> claims = {});

  // The placements that are taken, by GPU. With pods bound past Berth they may not go together.
  [[nodiscard]] std::span<const MigSet> taken() const { return taken_; }
  // How many users there are, by position in MigSpec::shared.
  [[nodiscard]] std::span<const int> shared_taken() const { return shared_taken_; }

  // What the node's allocator picks next for that row; nullopt where no device is free. Requires: a
  // row of the spec's product.
  [[nodiscard]] std::optional<MigSlot> NextSlot(const MigSpec& spec, int row) const;
  // The position in MigSpec::shared of a stock of that name with a user's place left.
  [[nodiscard]] std::optional<std::size_t> NextShared(const MigSpec& spec,
                                                      const MigWant& want) const;

  void Take(const MigSlot& slot) { taken_[slot.gpu] |= MigSet{1} << slot.placement; }
  void Release(const MigSlot& slot) { taken_[slot.gpu] &= ~(MigSet{1} << slot.placement); }
  void TakeShared(std::size_t stock) { ++shared_taken_[stock]; }

  // Takes what is granted. Error: kConflict naming the device; part of the grants is taken then.
  Status TakeAll(const MigSpec& spec, std::span<const MigGrant> grants);

  friend bool operator==(const MigUse&, const MigUse&) = default;

 private:
  std::vector<MigSet> taken_;
  std::vector<int> shared_taken_;
};

// The devices that each of the pods has, known or assumed: one list per pod.
std::vector<std::vector<MigSlot>> SlotsByPod(const MigSpec& spec, const PodRecords& pods,
                                             std::span<const ClaimedGpu> claims = {});

// "1g.5gb at 4 of GPU 2", "1g.5gb"; for errors.
std::string NameOf(const MigGrant& grant);

}  // namespace berth
