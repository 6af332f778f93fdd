// SPDX-License-Identifier: Apache-2.0
//
// AgentWorld: nodes whose GPUs the agents of other schedulers hand out, and pods that Berth and
// those schedulers bind to them - from the JSON of Node and Pod to what is written with a Binding.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "cluster/state/audit.h"
#include "cluster/state/cluster_state.h"
#include "scoring/devices/device_picker.h"
#include "scoring/filters/device_fit.h"
#include "server/dialects/dra/device_claims.h"
#include "server/dialects/dra/dra_json.h"
#include "server/dialects/koordinator/koordinator_dialect.h"
#include "server/dialects/registry.h"
#include "server/wire/node/node_json.h"
#include "server/wire/pod/pod_object.h"
#include "test/support/wire_fixture.h"

namespace berth::test {

using Texts = std::map<std::string, std::string>;

// 1,724,212,800 seconds after 1970.
inline constexpr WallTime kDecidedAt = WallTime() + std::chrono::seconds(1'724'212'800);

class AgentWorld {
 public:
  explicit AgentWorld(const std::vector<Json>& nodes, const Config& config = DefaultConfig())
      : dialects_(dialects::AllDialects(config)),
        rules_(dialects_, config.resources),
        node_rules_(config, dialects_),
        devices_(state_, *node_rules_.links,
                 [this](auto, auto, const std::string& why) { problem = why; }),
        claims_({state_, offers_, classes_, dra_devices_, open_}, true,
                [this](auto, auto, const std::string& why) { problem = why; }) {
    for (const Json& node : nodes) PutNode(node);
  }
  // A node is there, or has changed.
  void PutNode(const Json& node) {
    auto decoded = wire::DecodeNode(Padded(node.dump()), node_rules_);
    EXPECT_TRUE(decoded) << decoded.error().message;
    if (!decoded) return;
    problem = decoded->problem;
    devices_.Publish({NodeUpserted{decoded->spec}}, [this](std::vector<ClusterEvent> events) {
      EXPECT_TRUE(state_.Apply(events));
    });
  }
  // A Device of Koordinator is there, or has changed / is gone.
  void PutDevice(const Json& device) {
    auto decoded = dialects::DecodeKoordinatorDevice(Padded(device.dump()));
    EXPECT_TRUE(decoded) << decoded.error().message;
    if (decoded) devices_.Put(*std::move(decoded));
  }
  void RemoveDevice(const std::string& node) { devices_.Remove("", node); }
  // A ResourceClaim of DRA is there, or has changed / is gone.
  void PutClaim(const Json& claim) {
    auto decoded = dialects::DecodeResourceClaim(Padded(claim.dump()));
    EXPECT_TRUE(decoded) << decoded.error().message;
    if (decoded) claims_.claims().Put(*std::move(decoded));
  }
  void RemoveClaim(const std::string& name) { claims_.claims().Remove("ns", name); }
  explicit AgentWorld(const Json& node, const Config& config = DefaultConfig())
      : AgentWorld(std::vector<Json>{node}, config) {}

  PodRequest Decode(const Json& pod) { return Observe(pod).pod; }
  wire::ObservedPod Observe(const Json& pod) {
    auto observed = wire::DecodeObservedPod(Padded(pod.dump()), rules_);
    EXPECT_TRUE(observed) << observed.error().message;
    return observed ? *std::move(observed) : wire::ObservedPod();
  }
  const Node& node(NodeIndex index = 0) {
    snapshot_ = state_.Current();
    return snapshot_->node(index);
  }
  Reason Check(const Json& pod, NodeIndex index = 0) {
    const PodRequest request = Decode(pod);
    EXPECT_EQ(request.refusal, "");
    const Reason fits = CheckFit(node(index), request.shape);
    return fits == Reason::kFits ? CheckModel(node(index), request.shape) : fits;
  }

  // Binds the pod. What is written with the Binding; {} where it does not fit.
  Texts Bind(const Json& pod, NodeIndex index = 0, DeviceRule rule = DeviceRule::kTightest) {
    if (Check(pod, index) != Reason::kFits) return {};
    const PodRequest request = Decode(pod);
    const Node& there = node(index);
    const auto choices = DeviceChoices(there, request.shape, rule);
    EXPECT_FALSE(choices.empty()) << "the filter says that it fits";
    if (choices.empty()) return {};
    const Placement placement = PlacementFor(there, request.shape, choices.front());
    EXPECT_TRUE(state_.Reserve(request, placement, {}));
    EXPECT_TRUE(state_.Confirm(request.id.uid));
    wire::Annotations written;
    for (const wire::Dialect& dialect : *dialects_) {
      dialect.WriteGrants(request, placement, there.spec(), kDecidedAt, written);
    }
    return {written.begin(), written.end()};
  }
  // A pod on the node, as the API server shows it. Returns what is wrong with it.
  std::string Show(Json pod, const std::string& key, const std::string& value,
                   NodeIndex index = 0) {
    pod["metadata"]["annotations"][key] = value;
    pod["spec"]["nodeName"] = node(index).spec().name;
    const wire::ObservedPod observed = Observe(pod);
    EXPECT_TRUE(state_.Apply(std::vector<ClusterEvent>{PodBound{
        observed.pod, observed.placement, true, false, observed.lacks_devices, observed.given}}));
    return observed.problem;
  }
  void Remove(const std::string& uid) {
    EXPECT_TRUE(state_.Apply(std::vector<ClusterEvent>{PodGone{uid}}));
  }
  [[nodiscard]] AuditReport Audit() const {
    return berth::Audit(state_.Everything(), Instant(), Duration(0));
  }
  [[nodiscard]] std::vector<DeviceDispute> Disputes() const { return state_.Disputes(); }

  std::string problem;  // with the last of the nodes and Devices

 private:
  std::shared_ptr<const wire::Dialects> dialects_;
  wire::PodRules rules_;
  wire::NodeRules node_rules_;
  ClusterState state_;
  dialects::KoordinatorLinks devices_;
  MigOffers offers_;
  DeviceClasses classes_;
  DeviceOffers dra_devices_;
  OpenClaims open_;
  dialects::DeviceClaims claims_;
  std::shared_ptr<const Snapshot> snapshot_;
};

inline Json NodeWith(const Json& resources, const Texts& annotations,
                     const std::string& name = "n1") {
  Json node = {{"kind", "Node"}, {"metadata", {{"name", name}, {"annotations", annotations}}}};
  node["status"]["capacity"] = resources;
  node["status"]["allocatable"] = resources;
  node["status"]["allocatable"]["cpu"] = "64";
  node["status"]["allocatable"]["memory"] = "256Gi";
  return node;
}

}  // namespace berth::test
