// SPDX-License-Identifier: Apache-2.0
//
// ClaimQuestion: the claims of one pod, made ready to be asked of any node: their selectors
// compiled, those of their classes with them.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "cel/program.h"
#include "cluster/claims/device_claim.h"
#include "cluster/claims/device_offers.h"
#include "cluster/node/node.h"
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

  // The question lives no longer than this object and the pools. A device with binding conditions
  // is unknown to it.
  NodeQuestion On(const DevicePools& pools, const std::set<DeviceName>& taken,
                  const UsedParts& parts = {});

 private:
  // By claim, request and want: of class and request.
  using Selectors = std::vector<cel::Program>;

  DeviceMatch Match(const OptionOf& of, const PublishedDevice& device);
  [[nodiscard]] const DeviceWant& WantOf(const OptionOf& of) const {
    return claims_[Nth(of.claim)].requests[Nth(of.request)].wants[Nth(of.option)];
  }

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

// ClaimRoom: whether the ResourceClaims of one pod, which have no devices yet, could have some on a
// node, as it is or once pods there have gone.
//
// Devices, and parts of them, come free with a pod if it alone has their claim: Kubernetes
// deallocates a claim that nobody uses. Only claims for GPUs or parts of them, so many, are looked
// at.

// By ResourceClaims that the pod alone has on its node, or that kube-scheduler made for it: its
// whole GPUs, and its parts of GPUs. Pods that ask for GPUs of other kinds too have none here.
//
// Anybody may write the annotation and the owner by which a claim says that it was made for a pod:
// the pod's own status has to name it too (PodRequest::made_claim).
struct HeldByPod {
  std::string_view uid;  // empty: the pod is gone
  std::vector<const ClaimedGpu*> devices;
};
// Whether the pod that had the claim is gone, so that Kubernetes deallocates it; empty: of none.
using ClaimEnds = std::function<bool(const ClaimedGpu&)>;
std::vector<HeldByPod> GpusByPod(const Node& node, const ClaimEnds& ends = {});

// One thread at a time.
class ClaimRoom {
 public:
  // What all searches may take together, in steps of the search, and what one takes beside its
  // steps and what its question took: three searches on each of 10,000 nodes.
  static constexpr std::int64_t kMostSteps = 2'000'000;
  static constexpr std::int64_t kStepsOfOne = 48;

  // Error: why Berth cannot say, in words for people.
  static Result<ClaimRoom> Make(std::vector<DeviceClaim> claims, const FindClass& find_class,
                                std::shared_ptr<const DeviceOffers::ByNode> offers,
                                const RequestShape& pod);

  [[nodiscard]] const std::vector<DeviceClaim>& claims() const { return question_.claims(); }
  // Whether the claims may have parts of devices there, or devices that Berth does not count as
  // GPUs of the node: Has alone knows then what is free.
  [[nodiscard]] bool InParts(const Node& node) const;
  // The pod as one that asks for as many GPUs of kOfClaims / where it may have parts, for none.
  [[nodiscard]] const RequestShape& shape(bool in_parts) const {
    return in_parts ? without_gpus_ : *whole_;
  }
  // What drivers publish there; nullptr: nothing.
  [[nodiscard]] const NodeDevices* DevicesOn(const Node& node) const;
  // Whether the claims can have devices there once the pods have gone that are not in `left`, and
  // the claims that end. False too where that is not known: then `ran_out`.
  [[nodiscard]] bool Has(const Node& node, const Node& left, const ClaimEnds& ends = {});
  [[nodiscard]] bool Has(const Node& node) { return Has(node, node); }
  [[nodiscard]] bool ran_out() const { return ran_out_; }
  // Where no device that suits the first request has enough left for it, the one with most;
  // nothing: there is none.
  struct Lack {
    std::string device, capacity;
    std::int64_t left = 0;  // in thousandths
    bool would_do = false;  // a claim that asks for so much could have it
  };
  [[nodiscard]] std::optional<Lack> LackOn(const Node& node);

 private:
  ClaimRoom(ClaimQuestion question, std::shared_ptr<const DeviceOffers::ByNode> offers,
            std::optional<RequestShape> whole, RequestShape without_gpus)
      : question_(std::move(question)),
        offers_(std::move(offers)),
        whole_(std::move(whole)),
        without_gpus_(std::move(without_gpus)) {}

  ClaimQuestion question_;
  std::shared_ptr<const DeviceOffers::ByNode> offers_;
  std::optional<RequestShape> whole_;  // nothing: some request is for a part
  RequestShape without_gpus_;
  std::int64_t steps_left_ = kMostSteps;
  bool ran_out_ = false;
};

}  // namespace berth
