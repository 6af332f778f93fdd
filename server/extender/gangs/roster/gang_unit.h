// SPDX-License-Identifier: Apache-2.0
//
// GangUnit: what is remembered of one gang between verbs, in four records. What it holds is not
// here: a plan is planned pods of ClusterState.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"
#include "base/result.h"
#include "cluster/claims/device_claim.h"
#include "cluster/claims/device_offers.h"
#include "cluster/state/snapshot.h"
#include "cluster/values/gang.h"
#include "cluster/values/pod_request.h"
#include "scoring/claims/claim_question.h"
#include "scoring/explain/gang_lack.h"
#include "scoring/gangs/gang_devices.h"
#include "scoring/gangs/gang_plan.h"
#include "scoring/reservations/reservations.h"
#include "server/extender/binds/binds.h"
#include "server/extender/gangs/roster/gang_limits.h"

namespace berth {

// Where the members go, by UID.
using NodesByUid = std::map<std::string, std::string>;

// Where the members of a gang go for which there is room when others are gone. Empty: all together
// would not fit even so.
struct GangClearing {
  NodesByUid to_clear;                 // for these others have to go
  NodesByUid beside;                   // for these nobody has to
  std::set<GangId> ending = {};        // EvictionLimits::ending
  std::set<std::string> victims = {};  // "namespace/name"
  [[nodiscard]] bool empty() const { return to_clear.empty() && beside.empty(); }
  // nullptr: it has none.
  [[nodiscard]] const std::string* NodeOf(const std::string& uid) const {
    for (const NodesByUid* nodes : {&to_clear, &beside}) {
      if (const auto found = nodes->find(uid); found != nodes->end()) return &found->second;
    }
    return nullptr;
  }
};

// What a plan is looked for on. Where any of it is another, another plan may be found.
struct GangGround {
  std::shared_ptr<const Snapshot> snapshot = nullptr;  // nullptr: none was looked for
  Reservations kept = {};
  std::shared_ptr<const DeviceOffers::ByNode> devices = nullptr;  // nullptr: none are needed
  friend bool operator==(const GangGround&, const GangGround&) = default;
};

struct GangToPlan;  // gang_planning.h

// So many pods of a gang.
struct GangCount {
  std::int64_t pods = 0;
  RoleCounts roles = {};  // of them; empty where its minimums are not of roles

  void Add(const Gang& gang, const PodRequest& pod) {
    ++pods;
    if (!gang.roles.empty()) ++roles[pod.role];
  }
};

// Who is there, as it was counted last.
struct GangRoll {
  Gang says;
  std::string scheduler;  // of the member that came last: only its members wait together
  Instant since{};        // when it was heard of first
  bool began = false;     // a member that has GPUs was bound, and some member is since then
  bool ran = false;       // it had begun once

  // Bound, being bound or in doubt; of these, bound; waiting for a node, planned ones too; ended
  // with success.
  std::int64_t placed = 0, bound = 0, waiting = 0, ended = 0;
  std::int64_t needs = 0;     // so many have to start together, of those that have not ended
  RoleCounts bound_roles;     // of `bound` (GangCount::roles)
  std::size_t kinds = 0;      // in which the waiting ones differ, up to gangs::kMostKinds and one
  std::uint64_t changed = 0;  // WaitingPods::ChangesOf, for `kinds`
  Instant counted{};
  bool is_stale = true;                      // the watch has shown another member since
  Instant had_members{};                     // was counted with members last
  std::optional<WallTime> created;           // its first member was, of those that are there
  Instant grew{};                            // when a member joined last, or all began anew
  std::set<std::string, std::less<>> alone;  // let go like pods of no gang

  [[nodiscard]] std::int64_t members() const { return placed + waiting; }
  // When the cluster was asked for members that have ended, and who was there then.
  Instant past_asked{};
  std::int64_t past_members = -1;
  std::uint64_t past_changed = 0;
  std::set<std::string, std::less<>> past_of;  // by UID: `ended` were made with these
  bool gathers = false;                        // too few are there
  std::string lacks = {};                      // "; 2 of role ps are missing", "" = any will do
  std::string contradicts = {};                // Roster::contradicts
  bool wants_devices = true;                   // a member that waits does
  // Berth chooses no devices for its members' claims: each pod is on its own, once the gang has
  // gathered. Until its pods change.
  bool claims_left = false;
  bool has_claims = false;  // of waiting members, whose devices Berth chooses

  // What is left of a gang that ran: its other members do not come again.
  [[nodiscard]] bool is_remnant(Instant now) const {
    return ran && gathers && now - grew >= gangs::kRemnantAfter;
  }
  // How many have to come beside these before it can start.
  [[nodiscard]] std::int64_t Missing(const GangCount& there) const {
    std::int64_t of_roles = 0;
    for (const GangRole& role : MissingRoles(says, there.roles)) of_roles += role.minimum;
    return std::max({needs - there.pods, of_roles, std::int64_t{0}});
  }
};

// The plan that it has, if any.
//
//   none --Make--> planned --SendFirst--> committing --FirstIsOver--> planned
//    ^                |  ^--Make--'          |
//    +---- Clear -----+---------------------+
struct GangPlanned {
  enum class Phase {
    kNone,        // there is none
    kPlanned,     // its members hold their places; binds of them are held
    kCommitting,  // the first Binding is under way
  };
  // One that has its place in the plan.
  struct Member {
    std::shared_ptr<const PodRequest> pod;
    std::string node;
    BindsUnderWay::Entry bind = nullptr;  // held; nullptr: nobody has asked for it
    Instant held{}, until{};              // since when, and when it is answered at the latest
    // So often filter named the node to kube-scheduler, last then, and no bind has come since.
    int asks = 0;
    Instant answered{};

    [[nodiscard]] bool needs_bind() const { return bind == nullptr && pod->shape.wants_gpu(); }
  };
  using Members = std::map<std::string, Member, std::less<>>;  // by UID

  Phase phase = Phase::kNone;
  Members members;
  std::string first;                                      // the UID of the first Binding
  std::map<std::string, std::set<std::string>> excluded;  // by UID: nodes not offered for it
  Instant touched{};                                      // a member of the plan came last
  bool nudged = false;  // a bind was refused to wake the others, since there is this plan
  // It was found to hold then, with these members; or that there can be none.
  std::shared_ptr<const Snapshot> checked_on;
  std::uint64_t checked_members = 0;  // WaitingPods::ChangesOf
  bool in_the_making = false;         // without the gang's lock
  bool allocating = false;            // devices are being allocated to claims of its members
  int lost_claims = 0;                // that failed so often, one time after the other
  std::int64_t promised = 0;          // of GangTable::promised_

  // Returns whether there was none before.
  bool Make(Members planned) {
    const bool is_new = phase == Phase::kNone;
    members = std::move(planned);
    phase = members.empty() ? Phase::kNone : Phase::kPlanned;
    if (is_new) nudged = false;
    return is_new;
  }
  void Add(const std::shared_ptr<const PodRequest>& pod, const std::string& node) {
    members.insert_or_assign(pod->id.uid, Member{.pod = pod, .node = node});
    if (phase == Phase::kNone) phase = Phase::kPlanned;
  }
  // The bind that goes first. Requires: it is held.
  BindsUnderWay::Entry SendFirst(const std::string& uid) {
    phase = Phase::kCommitting;
    first = uid;
    return std::exchange(members.at(uid).bind, nullptr);
  }
  [[nodiscard]] bool is_first(const std::string& uid) const {
    return phase == Phase::kCommitting && first == uid;
  }
  // It is bound, or it is known that it is not.
  void FirstIsOver() {
    phase = members.empty() ? Phase::kNone : Phase::kPlanned;
    first.clear();
  }
  void Clear() {
    members.clear();
    FirstIsOver();
  }
  // The place is no member's any more. Returns its bind, if one was held.
  BindsUnderWay::Entry Drop(const std::string& uid) {
    const auto member = members.find(uid);
    if (member == members.end()) return nullptr;
    BindsUnderWay::Entry bind = std::move(member->second.bind);
    members.erase(member);
    if (members.empty() && phase == Phase::kPlanned) phase = Phase::kNone;
    return bind;
  }
  [[nodiscard]] std::size_t held() const {
    return static_cast<std::size_t>(
        std::ranges::count_if(members, [](const auto& m) { return m.second.bind != nullptr; }));
  }
};

// Why it has none, and until when.
struct GangWait {
  std::map<std::string, PodId, std::less<>> asleep;  // refused when they came last
  // Members about which kube-scheduler has asked, or that were woken: of the others it may have
  // said that no node will do without asking.
  std::set<std::string, std::less<>> asked;
  Instant not_before{};     // no plan until then
  Instant unasked_until{};  // no plan before kube-scheduler has asked, until then
  Duration pause{};         // the last one after an abort
  // Whom kube-scheduler did not bring while their places were held, by UID, and how long the pause
  // was for that. When all of them have come the pause is over.
  std::map<std::string, std::string, std::less<>> absent;
  Duration absent_pause{};
  // Who they were, and whether they were others than the time before: then there is no room for all
  // by kube-scheduler's count, and that one of them comes does not end the pause.
  std::set<std::string, std::less<>> absent_last;
  bool absent_differ = false;
  // Of one that it does not bring: "m3: 0/4 nodes are available: ...", as kube-scheduler says.
  std::string said;
  struct Out : gangs::NodeOut {
    std::shared_ptr<const PodRequest> pod;
    std::set<std::string, std::less<>> uids = {};  // of members that are like it, and of it
  };
  std::vector<Out> out;
  [[nodiscard]] bool IsOut(const std::string& uid, const std::string& node, Instant now) const;
  // Of the member's node, for members like it.
  std::vector<Out>::iterator FindOut(const GangPlanned::Member& member);
  // kube-scheduler has asked so often about the member of the plan. Its node is out for a while.
  void TakeOut(const GangPlanned::Member& member, int asks, Instant now);
  std::string objection;       // no plan is made, whatever room there is: why
  Instant again{};             // then time alone may change the answer
  bool nothing_to_do = false;  // as of plan.checked_on and plan.checked_members

  // No plan was found for so many members on that ground, as of WaitingPods::ChangesOf.
  GangGround refused_on;
  std::size_t refused_members = 0;
  std::uint64_t refused_change = 0;
  Instant refused_at{};
  std::optional<GangShortage> shortage;
  std::string shortage_domain;  // its name; "" the cluster
  std::string shortage_ask;     // what each member asks for, where all ask for the same
  std::string shortage_part;    // NoGangPlan::part
  bool told = false;            // of the shortage, since there was a plan
  GangLack lack;                // as it was found then
  Instant lack_at{};
  // These have no plan, and why is still to be found out.
  std::shared_ptr<const GangToPlan> lack_of = nullptr;
  int hopeless = 0;  // plans in a row that were refused for good
};

// Where its members would go if pods of lower priority went, as it was looked at then.
struct GangClearingUnderWay {
  GangClearing nodes;
  GangGround found_on;
  std::uint64_t found_change = 0;  // as of GangWait::refused_change; 0: none was looked for
  Instant found_at{};
  // Those for which pods are evicted, by UID, and when the last of them was answered so. While
  // there are any, its members keep what is free on their nodes of that plan, each its own place
  // (planned in ClusterState): those of `kept`.
  std::set<std::string, std::less<>> nominated, kept;
  Instant nominated_at{};
  // Those that kube-scheduler was told their nodes of that plan, by UID, since it began to ask
  // about a cluster without others (GangTable::FilterWithoutOthers).
  std::set<std::string, std::less<>> told;
};

// Room for pods that come when the leader of the gang runs (Gang::followers): planned in
// ClusterState under UIDs that no pod has, by the node's name.
struct GangFollowers {
  std::map<std::string, std::string, std::less<>> places;
  Instant kept_until{};
  std::int64_t gpus = 0;  // of GangTable::follower_gpus_
};

struct GangUnit {
  static constexpr std::int64_t kNotOver = -1;
  // When it had members last, in the units of Instant: as Look found it, and nobody has come since.
  std::atomic<std::int64_t> over_since = kNotOver;
  // It holds nothing and has not begun: as over_since.
  std::atomic<bool> may_give_way = false;
  std::atomic<std::int64_t> number = 0;  // it was heard of before those with larger ones

  mutable Mutex mutex;     // guards all that follows
  bool forgotten = false;  // it is not in the table any more
  GangRoll roll;
  GangPlanned plan;
  GangWait wait;
  GangClearingUnderWay clearing;
  GangFollowers followers;

  // It is over, or all that it had was counted and is gone.
  [[nodiscard]] bool has_no_members() const {
    return roll.members() == 0 && is_idle() && !plan.in_the_making && clearing.nominated.empty() &&
           roll.alone.empty() && followers.places.empty();
  }
  [[nodiscard]] bool holds_nothing() const {
    return plan.members.empty() && !plan.in_the_making && !plan.allocating &&
           clearing.nominated.empty() && clearing.kept.empty() && followers.places.empty() &&
           roll.placed == 0 && roll.alone.empty();
  }
  // kube-scheduler asks about the pod.
  void HasCome(const PodRequest& pod, Instant now) BERTH_REQUIRES(mutex);
  // What is known of the gang is what the pod says, from now on.
  void Heed(const PodRequest& pod) BERTH_REQUIRES(mutex);
  // The pod may be a member of the plan that was told its node before, and no bind of it has come.
  void ComesBack(const PodRequest& pod, Instant now) BERTH_REQUIRES(mutex);
  // Nobody waits for anything.
  [[nodiscard]] bool is_idle() const { return plan.members.empty() && wait.asleep.empty(); }
};

// GangClaims: the ResourceClaims of a gang's members, and of pods alone, where Berth chooses their
// devices.

// Of the claims of one pod, all of them together.
enum class ClaimState {
  kNone,       // it has none, or one that is kube-scheduler's to allocate
  kUnseen,     // the watch has yet to show one, or it has yet to be made
  kOpen,       // one has no devices
  kAllocated,  // they have devices, of one node
};

// Any thread may call it.
class GangClaims {
 public:
  // Claims of a gang that are allocated together; Berth leaves the claims of a larger one to each
  // pod alone.
  static constexpr std::size_t kMostTogether = 512;

  // References: they outlive the object.
  GangClaims(const OpenClaims& open, const DeviceOffers& devices, const DeviceClasses& classes)
      : open_(open), devices_(devices), classes_(classes) {}

  [[nodiscard]] ClaimState StateOf(const PodRequest& pod) const;
  // Of a pod whose claims are allocated: where; "" = not known.
  [[nodiscard]] std::string NodeOf(const PodRequest& pod) const;
  // Whether its open claims could have devices somewhere. Error: it has none, or why Berth cannot
  // say, for people.
  [[nodiscard]] Result<ClaimRoom> RoomOf(const PodRequest& pod) const;
  // Of a pod whose claims, none of which is made yet, ask for that.
  [[nodiscard]] Result<ClaimRoom> RoomFor(const PodRequest& pod,
                                          std::vector<DeviceClaim> claims) const;
  // Whether all claims are of one pod each, and not too many. A claim that members share ties them
  // to one node, which no plan sees to.
  [[nodiscard]] static bool AreSeparate(std::span<const std::shared_ptr<const PodRequest>> members);

  // What there is to choose from.
  [[nodiscard]] std::shared_ptr<const DeviceOffers::ByNode> offers() const {
    return devices_.Current();
  }

  // What devices the members need, where kinds are by member (GangMember::claims). nullptr: none.
  struct Needs {
    std::unique_ptr<GangDevices> devices;
    std::vector<int> kinds;
  };
  // Error: why they are kube-scheduler's, for people.
  [[nodiscard]] Result<Needs> NeedsOf(std::span<const std::shared_ptr<const PodRequest>> members,
                                      const Snapshot& snapshot) const;

 private:
  // What those ask for that have no devices.
  [[nodiscard]] GangDevices::Claims OpenOf(const PodRequest& pod) const;

  const OpenClaims& open_;
  const DeviceOffers& devices_;
  const DeviceClasses& classes_;
};

}  // namespace berth
