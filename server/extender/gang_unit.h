// SPDX-License-Identifier: Apache-2.0
//
// GangUnit: what is remembered of one gang between verbs. What it holds is not here: a plan is
// planned pods of ClusterState.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/clock.h"
#include "cluster/gang.h"
#include "cluster/pod_request.h"
#include "cluster/snapshot.h"
#include "scoring/gangs/gang_plan.h"
#include "server/extender/binds_under_way.h"
#include "server/extender/gang_planning.h"

namespace berth {

struct GangUnit {
  enum class Phase {
    kWaiting,     // there is no plan
    kPlanned,     // its members hold their places; binds of them are held
    kCommitting,  // the first Binding is under way
  };

  // One that has its place in the plan.
  struct Member {
    std::shared_ptr<const PodRequest> pod;
    std::string node;
    BindsUnderWay::Entry bind = nullptr;  // held; nullptr: nobody has asked for it
    Instant held{}, until{};              // since when, and when it is answered at the latest
  };

  Gang says;
  std::string scheduler;  // of the member that came last: only its members wait together
  Instant since{};        // when it was heard of first
  Phase phase = Phase::kWaiting;
  bool began = false;  // a member that has GPUs was bound, and some member is since then
  bool ran = false;    // it had begun once

  std::map<std::string, Member, std::less<>> plan;        // by UID
  std::map<std::string, std::set<std::string>> excluded;  // by UID: nodes not offered for it
  std::map<std::string, PodId, std::less<>> asleep;       // refused when they came last
  std::set<std::string, std::less<>> alone;               // let go like pods of no gang
  std::string first;                                      // the UID of the first Binding

  Instant touched{};      // a member of the plan came last
  Instant not_before{};   // no plan until then
  Duration pause{};       // the last one after an abort
  Instant grew{};         // when a member joined last, or all began anew
  bool nudged = false;    // a bind was refused to wake the others, since there is this plan
  Instant had_members{};  // was counted with members last

  // Members as they were counted last: bound, being bound or in doubt; bound; waiting, planned too.
  std::int64_t placed = 0, bound = 0, waiting = 0;
  Instant counted{};

  // The plan was found to hold then, with these members; or that there can be none.
  std::shared_ptr<const Snapshot> checked_on;
  std::uint64_t checked_members = 0;  // WaitingPods::ChangesOf
  bool nothing_to_do = false;

  // No plan was found for so many members on that snapshot.
  std::shared_ptr<const Snapshot> refused_on;
  std::size_t refused_members = 0;
  Instant refused_at{};
  std::optional<GangShortage> shortage;
  // Where its members would go if pods of lower priority went, as it was looked at then.
  GangClearing clearing;
  std::shared_ptr<const Snapshot> cleared_on;
  std::size_t cleared_members = 0;
  Instant cleared_at{};
  // Those for which pods are evicted, by UID, and when the last of them was answered so. While
  // there are any, its members keep what is free on their nodes of that plan, each its own place
  // (planned in ClusterState): those of `kept`.
  std::set<std::string, std::less<>> nominated, kept;
  Instant nominated_at{};
  // Those that kube-scheduler was told their nodes of that plan, by UID, since it began to ask
  // about a cluster without others (FilterWithoutOthers).
  std::set<std::string, std::less<>> told_nodes;
  bool told = false;            // of the shortage, since there was a plan
  std::string shortage_domain;  // its name; "" the cluster

  // It is over, or all that it had was counted and is gone.
  [[nodiscard]] bool has_no_members() const {
    return placed + waiting == 0 && is_idle() && nominated.empty() && alone.empty();
  }
  // Nobody waits for anything.
  [[nodiscard]] bool is_idle() const { return plan.empty() && asleep.empty(); }
  [[nodiscard]] std::size_t held() const {
    return static_cast<std::size_t>(
        std::ranges::count_if(plan, [](const auto& m) { return m.second.bind != nullptr; }));
  }
};

}  // namespace berth
