// SPDX-License-Identifier: Apache-2.0
#include "server/dialects/instaslice/instaslice_watch.h"

#include "server/dialects/instaslice/instaslice_claims.h"
#include "server/dialects/instaslice/instaslice_json.h"
#include "server/kube/watch/table_sink.h"

namespace berth::dialects {
namespace {

constexpr const char* kResource = "allocationclaims";

// Whether a node has partitioned GPUs.
bool HasMig(const Snapshot& snapshot) {
  for (NodeIndex i = 0; i < snapshot.size(); ++i) {
    const NodeMig& mig = snapshot.node(i).spec().mig;
    if (mig.known() && !mig->gpus.empty()) return true;
  }
  return false;
}

class InstasliceWatch final : public kube::ClusterExtension {
 public:
  explicit InstasliceWatch(const kube::ExtensionContext& context)
      : state_(context.state),
        claims_(context.state),
        sink_(claims_, kube::Whole(DecodeAllocationClaim), kResource, context.on_unreadable) {}

  std::vector<kube::WatchSource> Sources() override {
    return {{.kind = {.name = kResource,
                      .paths = kube::ApiPaths("inference.redhat.com", {"v1alpha1"}, kResource),
                      .optional = true,
                      .await = kube::Await::kList,
                      .why_not_ready = "waiting for the list of allocationclaims"},
             .sink = sink_,
             .unreadable = [this] { return sink_.unreadable(); },
             // What they hold is devices of partitioned GPUs.
             .is_needed = [this] { return HasMig(*state_.Current()); }}};
  }

 private:
  ClusterState& state_;
  InstasliceClaims claims_;
  kube::TableSink<InstasliceClaims> sink_;
};

}  // namespace

std::unique_ptr<kube::ClusterExtension> WatchInstaslice(const kube::ExtensionContext& context) {
  return std::make_unique<InstasliceWatch>(context);
}

}  // namespace berth::dialects
