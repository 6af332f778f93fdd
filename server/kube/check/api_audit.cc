// SPDX-License-Identifier: Apache-2.0
#include "server/kube/check/api_audit.h"

#include <map>
#include <optional>
#include <span>
#include <utility>

#include "cluster/node/given_grants.h"
#include "server/wire/pod/pod_object.h"

namespace berth::kube {
namespace {

constexpr std::size_t kMostSuspects = 100;
constexpr std::size_t kMostFindings = 20;
constexpr int kMostRepairs = 3;  // of one pod
constexpr const char* kBoundPods =
    "fieldSelector=spec.nodeName!=,status.phase!=Succeeded,status.phase!=Failed";

// A bound pod.
struct Bound {
  PodId id;
  Placement placement;
  std::shared_ptr<const GivenDevices> given;
};
using Placements = std::map<std::string, Bound>;  // by UID

Result<Placements> ListPlacements(ApiClient& client, const wire::PodRules& rules,
                                  const std::stop_token& stop) {
  Placements placements;
  const auto take = [&](const PaddedText& object) {
    auto pod = wire::DecodeObservedPod(object, rules);
    if (!pod || pod->node.empty() || pod->over) return;
    placements.emplace(pod->pod.id.uid,
                       Bound{pod->pod.id, std::move(pod->placement), std::move(pod->given)});
  };
  ApiResponse refusal;
  auto listed =
      ListPages(client, {.path = "/api/v1/pods", .query = kBoundPods}, stop, take, refusal);
  if (stop.stop_requested()) return Fail(Errc::kUnavailable, "list of pods: stopped");
  BERTH_TRY_STATUS(Within(std::move(listed), "list of pods"));
  return placements;
}

// Where a pod is by the API server, and what it was given there. References: valid in the call.
struct There {
  const Placement* placement = nullptr;  // nullptr = bound nowhere
  const std::shared_ptr<const GivenDevices>& given;
};
There Nowhere() {
  static const std::shared_ptr<const GivenDevices> kNothing;
  return {nullptr, kNothing};
}
There ThereOf(const Bound& bound) { return {&bound.placement, bound.given}; }

bool KnowsGiven(const PodRecord& here, const There& there) {
  return Strongest(here.given, there.given) == here.given;
}

// Of a pod that was given devices the annotation says nothing any more.
bool SamePlacement(const PodRecord& here, const Placement& there) {
  if (here.said != nullptr && *here.said == there) return true;
  if (!here.planned) return here.placement == there;
  Placement given = there;
  SetDevices(DevicesOf(here.placement), given);
  return here.placement == given;
}

// Compares one pod at a time, and repairs the books.
class Comparison {
 public:
  Comparison(PodBinder& binder, ClusterState& state, OnDifference then)
      : binder_(binder), state_(state), then_(then) {}

  [[nodiscard]] bool Agree(const PodId& id, const There& there) const {
    const std::optional<PodRecord> here = BoundHere(id);
    if (there.placement == nullptr || !here) return there.placement == nullptr && !here;
    return SamePlacement(*here, *there.placement) && KnowsGiven(*here, there);
  }

  // Asks about a pod; a difference goes to the audit.
  Status Check(const PodId& id, ApiAudit& audit) {
    BERTH_TRY(std::optional<PodTruth> truth, Ask(id));
    if (Agree(id, In(truth))) return {};
    ++audit.differences;
    std::string text = Describe(id, In(truth));
    const bool repairs = then_ == OnDifference::kRepair && !IsAboutDevicesAlone(id, In(truth));
    if (repairs) BERTH_TRY_STATUS(Repair(id, std::move(truth)));
    if (audit.findings.size() < kMostFindings) {
      audit.findings.push_back(text + (repairs ? "; repaired" : "; not repaired"));
    }
    return {};
  }

 private:
  static There In(const std::optional<PodTruth>& truth) {
    if (!truth || !truth->placement) return Nowhere();
    return {&*truth->placement, truth->given};
  }
  [[nodiscard]] std::optional<PodRecord> BoundHere(const PodId& id) const {
    std::optional<PodRecord> here = state_.FindPod(id.uid);
    if (here && here->state != PodState::kBound) here.reset();
    return here;
  }
  // Nothing: the pod is gone.
  Result<std::optional<PodTruth>> Ask(const PodId& id) {
    Result<PodTruth> truth = binder_.Find(id);
    if (!truth && truth.error().code != Errc::kNotFound) return tl::unexpected(truth.error());
    return truth ? std::optional(*std::move(truth)) : std::optional<PodTruth>();
  }
  // By annotations.
  [[nodiscard]] bool IsAboutDevicesAlone(const PodId& id, const There& there) const {
    const std::optional<PodRecord> here = BoundHere(id);
    const Placement* const placement = there.placement;
    return here && placement != nullptr && !here->planned && KnowsGiven(*here, there) &&
           here->placement.node == placement->node &&
           (here->placement.grants != placement->grants || here->placement.mig != placement->mig);
  }
  // A watch may have shown something newer than the answer before that was booked: asked again
  // afterwards, the API server knows; what happens from then on, the watch shows.
  Status Repair(const PodId& id, std::optional<PodTruth> truth) {
    for (int attempt = 0; attempt < kMostRepairs; ++attempt) {
      ClusterEvent event = PodGone{id.uid};
      if (truth && truth->placement) {
        event = PodBound{truth->pod,     *truth->placement,    true,
                         truth->leaving, truth->lacks_devices, truth->given};
      }
      BERTH_TRY_STATUS(state_.Apply(std::span(&event, 1)));
      BERTH_TRY(truth, Ask(id));
      if (Agree(id, In(truth))) break;
    }
    return {};
  }
  [[nodiscard]] std::string Describe(const PodId& id, const There& there) const {
    const std::optional<PodRecord> here = BoundHere(id);
    const auto place = [](const Placement* placement) {
      return placement == nullptr ? std::string("nowhere") : "on node " + placement->node;
    };
    if (IsAboutDevicesAlone(id, there)) {
      return "pod " + id.namespace_name + "/" + id.name + " " + place(there.placement) +
             ": its annotations name other devices than Berth assigned";
    }
    return "pod " + id.namespace_name + "/" + id.name + ": the API server has it " +
           place(there.placement) + ", Berth " + place(here ? &here->placement : nullptr);
  }

  PodBinder& binder_;
  ClusterState& state_;
  const OnDifference then_;
};

}  // namespace

Result<ApiAudit> AuditApi(ApiClient& client, PodBinder& binder, ClusterState& state,
                          const wire::PodRules& rules, OnDifference then,
                          const std::stop_token& stop) {
  BERTH_TRY(Placements there, ListPlacements(client, rules, stop));
  Comparison compare(binder, state, then);
  std::vector<PodId> suspects;
  for (const PodRecord& record : state.Everything().pods) {
    const auto found = there.find(record.pod.id.uid);
    const There by_api = found == there.end() ? Nowhere() : ThereOf(found->second);
    if (!compare.Agree(record.pod.id, by_api)) {
      suspects.push_back(record.pod.id);
    }
    if (found != there.end()) there.erase(found);
  }
  for (const auto& [uid, bound] : there) suspects.push_back(bound.id);  // not known here
  ApiAudit audit;
  if (suspects.size() > kMostSuspects) {
    audit.differences = suspects.size();
    audit.findings.push_back("too many differences to repair each: delete the leader's pod");
    return audit;
  }
  for (const PodId& id : suspects) {
    if (stop.stop_requested()) return Fail(Errc::kUnavailable, "stopped");
    BERTH_TRY_STATUS(compare.Check(id, audit));
  }
  return audit;
}

}  // namespace berth::kube
