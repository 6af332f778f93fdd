// SPDX-License-Identifier: Apache-2.0
#include "server/kube/api_audit.h"

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "server/kube/cluster_sync.h"
#include "server/wire/extender_v1.h"
#include "server/wire/pod_object.h"
#include "server/wire/watch_json.h"

namespace berth::kube {
namespace {

constexpr std::size_t kMostSuspects = 100;

// A bound pod.
struct Bound {
  PodId id;
  Placement placement;
};
using Placements = std::map<std::string, Bound>;  // by UID

Result<Placements> ListPlacements(ApiClient& client, const wire::PodRules& rules) {
  Placements placements;
  std::string object, next;
  do {
    std::string path = std::string("/api/v1/pods?limit=500&") + PodSink::kQuery;
    if (!next.empty()) path += "&continue=" + next;
    BERTH_TRY(ApiResponse page, client.Send({.path = std::move(path)}));
    if (!page.ok()) return Fail(Errc::kUnavailable, "list of pods: " + RefusalText(page));
    page.body.reserve(page.body.size() + wire::kPadding);
    BERTH_TRY(wire::ListPage list, wire::DecodeListPage(page.body, [&](std::string_view text) {
                object.assign(text);
                object.reserve(object.size() + wire::kPadding);
                auto pod = wire::DecodeObservedPod(object, rules);
                if (!pod || pod->node.empty() || pod->over) return;
                placements.emplace(pod->pod.id.uid, Bound{pod->pod.id, std::move(pod->placement)});
              }));
    next = std::move(list.next);
  } while (!next.empty());
  return placements;
}

bool Agree(const ClusterState& state, const PodId& id, const Placement* there) {
  const auto here = state.FindPod(id.uid);
  const bool is_bound = here && here->state == PodState::kBound;
  return there == nullptr ? !is_bound : is_bound && here->placement == *there;
}

}  // namespace

Result<std::size_t> CountDifferences(ApiClient& client, PodBinder& binder,
                                     const ClusterState& state, const wire::PodRules& rules) {
  BERTH_TRY(Placements there, ListPlacements(client, rules));
  std::vector<PodId> suspects;
  for (const PodRecord& record : state.Everything().pods) {
    const auto found = there.find(record.pod.id.uid);
    if (!Agree(state, record.pod.id, found == there.end() ? nullptr : &found->second.placement)) {
      suspects.push_back(record.pod.id);
    }
    if (found != there.end()) there.erase(found);
  }
  for (const auto& [uid, bound] : there) suspects.push_back(bound.id);  // not known here
  if (suspects.size() > kMostSuspects) return suspects.size();
  std::size_t differences = 0;
  for (const PodId& id : suspects) {
    const Result<PodTruth> truth = binder.Find(id);
    if (!truth && truth.error().code != Errc::kNotFound) return tl::unexpected(truth.error());
    const bool bound = truth && truth->placement;
    if (!Agree(state, id, bound ? &*truth->placement : nullptr)) ++differences;
  }
  return differences;
}

}  // namespace berth::kube
