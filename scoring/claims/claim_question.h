// SPDX-License-Identifier: Apache-2.0
//
// ClaimQuestion: the claims of one pod, made ready to be asked of any node: their selectors
// compiled, those of their classes with them.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "cel/program.h"
#include "cluster/claims/device_claim.h"
#include "cluster/claims/device_classes.h"
#include "cluster/claims/node_devices.h"
#include "cluster/values/pod_request.h"
#include "scoring/claims/device_search.h"

namespace berth {

// A node's devices as a question of the search. Pointers: into the pools.
struct NodeQuestion {
  DeviceQuestion question;
  struct Source {
    const DevicePool* pool = nullptr;
    const PublishedDevice* device = nullptr;
  };
  std::vector<Source> sources;  // by device of the question
  // By claim of the question, whose it is: devices of one pod are to be near each other. Empty: all
  // are of one pod.
  std::vector<int> owners = {};
  std::int64_t prepared = 0;  // what making it took, in steps of the search
};

using FindClass = std::function<std::optional<DeviceClass>(std::string_view name)>;

// One thread at a time.
class ClaimQuestion {
 public:
  // What all selectors of a pod's claims may cost together, on all nodes: a tenth of a second.
  static constexpr std::uint64_t kMostCost = 10'000'000;  // units of cel/program.h

  // Error: why Berth cannot choose for these claims, in words for people: a class that is not
  // there, a selector that is not read.
  static Result<ClaimQuestion> Make(std::vector<DeviceClaim> claims, const FindClass& find_class);

  [[nodiscard]] const std::vector<DeviceClaim>& claims() const { return claims_; }
  // As NodeQuestion::owners.
  void OwnedBy(std::vector<int> owners) { owners_ = std::move(owners); }

  // Of the selectors so far.
  [[nodiscard]] std::uint64_t cost() const { return cost_; }

  // Whether a selector has looked at what is a device's own since the last On: the answers hold for
  // no other node.
  [[nodiscard]] bool sees_identity() const { return sees_identity_; }

  // Whether a request asks for all devices and its selectors do not exclude those of other drivers:
  // nothing is known of them.
  [[nodiscard]] bool WantsAllOfAnyDriver() const;

  // The question lives no longer than this object and the pools. A device that several claims may
  // share, and one with binding conditions, is unknown to it.
  NodeQuestion On(const DevicePools& pools, const std::set<DeviceName>& taken);

 private:
  // By claim, request and want: of class and request.
  using Selectors = std::vector<cel::Program>;

  DeviceMatch Match(const OptionOf& of, const PublishedDevice& device);

  std::vector<DeviceClaim> claims_;
  std::vector<std::vector<std::vector<Selectors>>> selectors_;
  std::vector<SearchClaim> searched_;  // without the values of constraints
  std::vector<int> owners_;
  std::uint64_t cost_ = 0;
  bool sees_identity_ = false;
};

// As many whole GPUs as the claims ask for, with what `pod` says of them: a pod that asks for GPUs
// of kOfClaims; nullopt: they ask for other devices too, or do not say how many.
std::optional<RequestShape> WholeGpusOf(const std::vector<DeviceClaim>& claims,
                                        const FindClass& find_class, const RequestShape& pod);

}  // namespace berth
