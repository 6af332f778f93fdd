// SPDX-License-Identifier: Apache-2.0
//
// GangPlanning: from the members of a gang to planned pods in ClusterState.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "base/mutex.h"
#include "base/result.h"
#include "cluster/state/cluster_state.h"
#include "cluster/state/snapshot.h"
#include "cluster/values/pod_request.h"
#include "scoring/engine/engine.h"
#include "scoring/gangs/gang_plan.h"
#include "scoring/groups/group_domains.h"
#include "scoring/reservations/reservations.h"
#include "scoring/victims.h"
#include "server/extender/gangs/roster/gang_unit.h"

namespace berth {

struct GangToPlan {
  std::vector<std::shared_ptr<const PodRequest>> members;  // of one gang, UIDs unique
  std::int64_t minimum = 1;                                // how many of them at least
  std::vector<GangRole> roles = {};                        // and of these roles
  std::uint64_t change = 0;  // WaitingPods::ChangesOf when the members were listed
  // So many of the last members are room for pods that have not come.
  std::size_t followers = 0;
  bool with_claims = false;  // members get the devices of their claims, where that is Berth's
  std::map<std::string, std::string> fixed = {};               // by UID: the node where it stays
  std::map<std::string, std::string> wished = {};              // the same, if a plan can do it
  std::map<std::string, std::set<std::string>> excluded = {};  // by UID: nodes that are not offered
  std::map<std::string, std::set<std::string>> avoided = {};   // the same, if a plan can do it
  // If a plan can do it, this one goes where it is offered.
  std::string asker = {};
  std::unordered_set<std::string_view> offered = {};
  // Of Clearing (gang_checked.h); empty: kube-scheduler names no victims.
  std::optional<std::set<std::string, std::less<>>> nominated = {};
};

// What there is no room for, in words of the cluster.
struct NoGangPlan {
  GangShortage shortage;
  std::string domain;  // that comes nearest; "" = the cluster
  GangGround ground;   // on which
  std::string part;    // of the gang's pods, which has no domain of its own: in words; "" = all do
  // Berth cannot choose devices for the members' claims: why. Else empty.
  std::string claims_left = {};
};

// Any thread may call it.
class GangPlanning {
 public:
  // References: they outlive the object. claims: nullptr: Berth chooses no devices of claims.
  GangPlanning(ClusterState& state, NodeDomains& domains, const GangClaims* claims)
      : state_(state), domains_(domains), claims_(claims) {}

  // Plans the members on the newest state and books the plan. What of the members is planned
  // already is moved or, where the new plan has no place for it, dropped. Members whose bind has
  // begun meanwhile stay where they are, count for the minimum and are not in the answer.
  tl::expected<NodesByUid, NoGangPlan> Plan(Engine& engine, const GangToPlan& ask);

  // Where the members would go if pods of lower priority went. Books nothing.
  GangClearing PlanAfterEvictions(Engine& engine, const GangToPlan& ask,
                                  const EvictionLimits& limits);
  // Plans go round what is kept for others that wait. Until it is said: nothing is.
  void Respect(Reservations kept) BERTH_EXCLUDES(mutex_);
  // What a plan would be looked for on now.
  [[nodiscard]] GangGround Ground(bool with_claims) const BERTH_EXCLUDES(mutex_);
  // Whether the node is kept from the pod.
  [[nodiscard]] bool IsKeptFrom(const PodRequest& pod, const std::string& node) const
      BERTH_EXCLUDES(mutex_);

  // Books a place on the node for the pod alone; false: there is no room (yet).
  bool Keep(Engine& engine, const PodRequest& pod, const std::string& node);

 private:
  // A lost race is planned anew.
  static constexpr int kAttempts = 3;

  [[nodiscard]] GangAsk AskOf(const Snapshot& snapshot, const GangToPlan& ask,
                              const Reservations& kept) const;
  // Has the ask's members get devices for their claims; the result outlives the ask.
  Result<GangClaims::Needs> AddDevices(const Snapshot& snapshot, const GangToPlan& of,
                                       GangAsk& ask) const;
  tl::expected<NodesByUid, NoGangPlan> PlanAsFixed(Engine& engine, const GangToPlan& ask);
  // What of an ask is to be planned at one moment: without the members whose bind has begun.
  struct Left {
    std::shared_ptr<const Snapshot> now;
    std::shared_ptr<const Snapshot> lifted;  // without what members hold by an earlier plan
    GangToPlan ask;
  };
  [[nodiscard]] Left LeftOf(const GangToPlan& ask) const;

  // Nodes that are kept from the pod, sorted.
  [[nodiscard]] std::vector<NodeIndex> KeptFrom(const Snapshot& snapshot, const PodRequest& pod,
                                                const Reservations& kept) const;

  ClusterState& state_;
  NodeDomains& domains_;
  const GangClaims* const claims_;
  GangRoom room_;
  mutable Mutex mutex_;
  Reservations kept_ BERTH_GUARDED_BY(mutex_);
};

// Whether the planned pod may still go where its plan has it: the node is there, admits it, and has
// not lost what it was to give.
bool PlanHolds(const Snapshot& snapshot, const PodRequest& pod, const std::string& node);

}  // namespace berth
