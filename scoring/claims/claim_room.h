// SPDX-License-Identifier: Apache-2.0
//
// ClaimRoom: whether the ResourceClaims of one pod, which have no devices yet, could have some on a
// node, as it is or once pods there have gone.
//
// Devices come free with a pod if it alone has their claim: Kubernetes deallocates a claim that
// nobody uses. Only claims for whole GPUs, so many of them, are looked at (WholeGpusOf).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "cluster/claims/device_offers.h"
#include "cluster/node/node.h"
#include "cluster/values/pod_request.h"
#include "scoring/claims/claim_question.h"

namespace berth {

// By ResourceClaims that the pod alone has on its node, or that kube-scheduler made for it: its
// whole GPUs. Pods that ask for GPUs of other kinds too have none here.
//
// Anybody may write the annotation and the owner by which a claim says that it was made for a pod:
// the pod's own status has to name it too (PodRequest::made_claim).
struct HeldByPod {
  std::string_view uid;  // empty: the pod is gone
  std::vector<const ClaimedGpu*> devices;
};
// Whether the pod that had the claim is gone, so that Kubernetes deallocates it; empty: of none.
using ClaimEnds = std::function<bool(const ClaimedGpu&)>;
std::vector<HeldByPod> WholeGpusByPod(const Node& node, const ClaimEnds& ends = {});

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

  // The pod as one that asks for as many GPUs of kOfClaims.
  [[nodiscard]] const RequestShape& shape() const { return shape_; }
  // Whether drivers publish devices there.
  [[nodiscard]] bool Publishes(const Node& node) const;
  // Whether the claims can have devices there once the pods have gone that are not in `left`, and
  // the claims that end. False too where that is not known: then `ran_out`.
  [[nodiscard]] bool Has(const Node& node, const Node& left, const ClaimEnds& ends = {});
  [[nodiscard]] bool Has(const Node& node) { return Has(node, node); }
  [[nodiscard]] bool ran_out() const { return ran_out_; }

 private:
  ClaimRoom(ClaimQuestion question, std::shared_ptr<const DeviceOffers::ByNode> offers,
            RequestShape shape)
      : question_(std::move(question)), offers_(std::move(offers)), shape_(std::move(shape)) {}

  ClaimQuestion question_;
  std::shared_ptr<const DeviceOffers::ByNode> offers_;
  RequestShape shape_;
  std::int64_t steps_left_ = kMostSteps;
  bool ran_out_ = false;
};

}  // namespace berth
