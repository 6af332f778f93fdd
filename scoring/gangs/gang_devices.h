// SPDX-License-Identifier: Apache-2.0
//
// GangDevices: which members of a gang can have the devices of their ResourceClaims on one
// node together. A set of members has them there exactly if one search over all of their claims
// finds devices (claims/device_search.h), so that no member's devices are in the way of another's.
//
// Nodes whose devices are alike to these claims have one answer, which is searched for once. For
// the search over nodes see gang_plan.h. One thread at a time.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "cluster/claims/device_claim.h"
#include "cluster/claims/device_offers.h"
#include "cluster/state/snapshot.h"
#include "scoring/claims/claim_question.h"

namespace berth {

class GangDevices {
 public:
  // All claims of one member.
  using Claims = std::vector<std::shared_ptr<const DeviceClaim>>;

  // kinds: the claims of members, each kind once. Error: why Berth cannot choose for these claims,
  // in words for people; kube-scheduler may know devices for them that Berth does not.
  static Result<GangDevices> Make(std::span<const Claims> kinds, const FindClass& find_class,
                                  const DeviceOffers::ByNode& offers, const Snapshot& snapshot);

  // What Make may take, and all searches of a gang's plan together, in steps of the search: about a
  // tenth of a second. So may its selectors (ClaimQuestion::kMostCost).
  static constexpr std::int64_t kMostSteps = 4'000'000;

  // Whether the node has devices for so many members of each kind together. False too where the
  // search is too long: then `ran_out`.
  [[nodiscard]] bool Has(NodeIndex node, std::span<const int> members);
  // For how many members of the kind alone, up to `most`.
  [[nodiscard]] int Room(NodeIndex node, int kind, int most);
  [[nodiscard]] std::size_t kinds() const { return kinds_; }
  [[nodiscard]] bool ran_out() const { return ran_out_; }
  // Whether Has says the same of both.
  [[nodiscard]] bool Alike(NodeIndex a, NodeIndex b) const { return view_of_[a] == view_of_[b]; }

 private:
  // The devices of nodes, as the claims of every kind see them.
  struct View {
    std::vector<SearchPool> pools;
    std::vector<SearchDevice> devices;
    struct OfKind {
      std::vector<SearchClaim> claims;
      // [claim][request][option][device]
      std::vector<std::vector<std::vector<std::vector<DeviceMatch>>>> matches;
      // What claim, request and option take of a device that several may share.
      std::map<std::array<int, 4>, std::vector<std::int64_t>> parts = {};
    };
    std::vector<OfKind> kinds;
    std::map<std::vector<int>, bool> known = {};  // what Has found
  };
  static constexpr int kNoView = -1;

  GangDevices() = default;
  View ViewOf(std::vector<ClaimQuestion>& kinds, const NodeDevices& devices);
  static std::string TextOf(const View& view);
  bool Search(const View& view, std::span<const int> members);

  std::size_t kinds_ = 0;
  std::int64_t steps_left_ = kMostSteps;
  bool ran_out_ = false;
  std::vector<View> views_;
  std::vector<int> view_of_;  // [node]
};

}  // namespace berth
