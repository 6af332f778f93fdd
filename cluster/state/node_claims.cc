// SPDX-License-Identifier: Apache-2.0
#include "cluster/state/node_claims.h"

#include <memory>
#include <utility>

namespace berth {

bool NodeClaims::Put(const GpusClaimed& claimed) {
  Held& held = held_[claimed.node];
  std::vector<ClaimedGpu>& of_source = held.by_source[claimed.source];
  const bool changed = of_source != claimed.gpus;
  of_source = claimed.gpus;
  std::vector<ClaimedGpu> all;
  for (const auto& [source, gpus] : held.by_source) all.insert(all.end(), gpus.begin(), gpus.end());
  if (all.empty()) {
    held_.erase(claimed.node);
  } else if (changed) {
    held.all = std::make_shared<const std::vector<ClaimedGpu>>(std::move(all));
  }
  return changed;
}

bool NodeClaims::Put(const GpusOffered& offered) {
  if (!offered.mig.known()) return offered_.erase(offered.node) > 0;
  offered_.insert_or_assign(offered.node, offered.mig);
  return true;
}

bool NodeClaims::Put(const SliceGpusOffered& offered) {
  if (offered.gpus.names.empty()) return in_slices_.erase(offered.node) > 0;
  const auto [known, is_new] = in_slices_.try_emplace(offered.node, offered.gpus);
  if (!is_new && known->second == offered.gpus) return false;
  known->second = offered.gpus;
  return true;
}

Node::Claims NodeClaims::HeldOn(const std::string& node) const {
  const auto held = held_.find(node);
  return held == held_.end() ? nullptr : held->second.all;
}

NodeSpec NodeClaims::WithOffers(NodeSpec spec) {
  if (const auto said = said_.find(spec.name); said != said_.end()) {
    if (!spec.by_claims.empty()) spec = std::move(said->second);
    said_.erase(said);
  }
  const auto gpus = in_slices_.find(spec.name);
  if (gpus != in_slices_.end() && !OffersOwnGpus(spec)) {
    said_.insert_or_assign(spec.name, spec);
    spec = WithSliceGpus(std::move(spec), gpus->second);
  }
  if (spec.mig.known() && !spec.mig->by_claims()) return spec;
  const auto offered = offered_.find(spec.name);
  spec.mig = offered == offered_.end() ? NodeMig() : offered->second;
  return spec;
}

}  // namespace berth
