// SPDX-License-Identifier: Apache-2.0
//
// MigOffers: the GPUs that DRA partitions - the MIG devices offered on each, and those that
// ResourceClaims have. Separate from NodeSpec::mig, the devices that Berth gives to pods: here a
// pod gets its device by a claim, and kube-scheduler places it. Devices that pods can get by the
// name of an extended resource are added to the node all the same (MigByExtendedResources).
//
//   taken     placements that allocated claims have, exactly: the device of a claim has a profile
//             and a start
//   whole     a claim has the whole GPU, or a part that nothing describes
//
// Some placements of a GPU may not be offered (tainted, or left out by the driver).
#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "cluster/node/mig_spec.h"
#include "cluster/node/mig_use.h"
#include "topology/mig/mig_product.h"

namespace berth {

struct OfferedGpu {
  std::string pool = {};  // of the driver
  std::string uuid = {};  // empty = unknown
  int index = -1;         // as the driver counts; -1 = unknown
  std::shared_ptr<const MigProduct> product = {};
  MigSet offered = 0;
  std::vector<std::string> devices = {};  // names, by placement of the product; "" = there is none
  MigSet taken = 0;
  bool whole = false;
  friend bool operator==(const OfferedGpu&, const OfferedGpu&) = default;

  // What a claim may get now.
  [[nodiscard]] MigSet Free() const { return whole ? 0 : product->Addable(taken) & offered; }
};
using OfferedGpus = std::vector<OfferedGpu>;  // of one node

// Takes the devices of the claims; devices on other GPUs are ignored. Returns the claims whose
// device overlaps one that another claim has already.
std::vector<const ClaimedGpu*> TakeClaimed(std::span<const ClaimedGpu> claimed, OfferedGpus& gpus);

// The part of the offers that pods can get by extended resources which stand for these profiles, as
// the MIG devices of their node; unknown if they can get nothing. A MigSpec has one product: GPUs
// of another product than the first, and GPUs that no name distinguishes from the others, are left
// out.
NodeMig MigByExtendedResources(std::span<const OfferedGpu> gpus,
                               std::span<const MigProfile> profiles);

// Any thread may call any function. A result of Current does not change.
class MigOffers {
 public:
  using ByNode = std::map<std::string, std::shared_ptr<const OfferedGpus>, std::less<>>;

  [[nodiscard]] std::shared_ptr<const ByNode> Current() const BERTH_EXCLUDES(mutex_);

  // Replaces everything known about these nodes' GPUs.
  void Put(std::vector<std::pair<std::string, OfferedGpus>> nodes) BERTH_EXCLUDES(mutex_);

 private:
  mutable Mutex mutex_;
  std::shared_ptr<const ByNode> current_ BERTH_GUARDED_BY(mutex_) =
      std::make_shared<const ByNode>();
};

}  // namespace berth
