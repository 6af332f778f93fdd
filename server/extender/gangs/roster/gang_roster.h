// SPDX-License-Identifier: Apache-2.0
//
// GangRosters: who of a gang is there, and whether a member needs the others.
//
// Thread-safe. What takes a unit needs its lock.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"
#include "cluster/groups/pod_groups.h"
#include "cluster/state/cluster_state.h"
#include "cluster/state/snapshot.h"
#include "cluster/state/waiting_pods.h"
#include "cluster/values/gang.h"
#include "scoring/engine/engine.h"
#include "server/extender/gangs/roster/gang_unit.h"
#include "server/extender/kept/device_rooms.h"
#include "server/extender/ports/ports.h"

namespace berth {

// References: they outlive what they are given to.
struct GangParts {
  ClusterState& state;
  WaitingPods& waiting;
  NodeDomains& domains;
  const PodGroups* groups = nullptr;   // nullptr: sizes are as the pods were read
  const GangClaims* claims = nullptr;  // nullptr: Berth chooses no devices of claims
  DeviceRooms* rooms = nullptr;        // nullptr: nodes are not kept while others are evicted there
};

struct GangSettings {
  std::vector<std::string> conventions;      // whose gangs start whole
  Duration hold = std::chrono::seconds(50);  // how long a bind is held at most
  // So many binds are held at the same time at most: each holds a connection. 0: as many as come.
  std::size_t most_held = 0;
  bool may_break = false;  // EvictionLimits::gangs_may_break
  friend bool operator==(const GangSettings&, const GangSettings&) = default;
};

// The members at one moment of the state: that of the snapshot.
struct GangRoster {
  std::shared_ptr<const Snapshot> snapshot;
  std::vector<std::shared_ptr<const PodRequest>> waiting;  // for a node, planned ones too
  std::vector<PodId> unschedulable;  // of these, those for which kube-scheduler found no node
  std::uint64_t change = 0;          // WaitingPods::ChangesOf before they were read
  GangCount placed;                  // bound, being bound or in doubt, and not leaving
  GangCount bound;                   // of these, those that are
  GangCount all;                     // `placed` and `waiting`
  bool gpus_bound = false;           // one of these has GPUs, and is bound
  std::optional<WallTime> created;   // the first of all was
  std::string said;                  // GangWait::said
  std::string contradicts;           // "m1 says that there are 3": what does not go together
  std::unordered_set<std::string_view> uids = {};  // of `waiting`
};

// What is to be done for gangs, in this order. Who decides it holds the gang's lock; who does it
// holds none.
struct GangActions {
  std::vector<std::pair<BindsUnderWay::Entry, Status>> answers;
  std::vector<BindsUnderWay::Entry> binds;  // to be carried out, each by itself
  std::vector<PodId> wakes;
  std::vector<GangNews> news;
  // Gangs without room, as many members as they lack / that have it now, by the text of their ids.
  struct Refused {
    std::vector<std::shared_ptr<const PodRequest>> pods;
    std::optional<WallTime> since;  // the gang is there; empty: nobody knows
  };
  std::vector<Refused> without_room = {};
  std::vector<std::string> with_room = {};
};

class GangRosters {
 public:
  // Until Use says so, no gang starts whole.
  explicit GangRosters(const GangParts& parts);

  void Use(GangSettings settings) BERTH_EXCLUDES(mutex_);
  [[nodiscard]] std::shared_ptr<const GangSettings> settings() const BERTH_EXCLUDES(mutex_);

  // asker: a member that the watch may not have shown yet; nullptr: nobody asks.
  [[nodiscard]] GangRoster Read(const GangUnit& unit,
                                const std::shared_ptr<const PodRequest>& asker) const
      BERTH_REQUIRES(unit.mutex);
  void Note(GangUnit& unit, const GangRoster& roster, Instant now) const BERTH_REQUIRES(unit.mutex);
  // Notes the members that there are, and forgets what was kept of others.
  GangRoster Count(GangUnit& unit, Instant now) const BERTH_REQUIRES(unit.mutex);

  // Why the pod does not count among those of the scheduler: others say another size; "" = it does.
  [[nodiscard]] std::string Apart(const GangUnit& unit, const PodRequest& pod,
                                  const std::string& scheduler) const BERTH_REQUIRES(unit.mutex);
  [[nodiscard]] bool IsBeingBound(std::string_view uid) const;
  // Whether the pod need not wait for others.
  [[nodiscard]] bool MayGo(const GangUnit& unit, const GangRoster& roster, const PodRequest& pod,
                           Instant now) const BERTH_REQUIRES(unit.mutex);
  // kNone: the pod has none, or Berth does not choose for its gang.
  [[nodiscard]] ClaimState ClaimsOf(const GangUnit& unit, const PodRequest& pod) const
      BERTH_REQUIRES(unit.mutex);
  // Whether it asks for GPUs, or for devices by claims.
  [[nodiscard]] bool WantsDevices(const GangUnit& unit, const PodRequest& pod) const
      BERTH_REQUIRES(unit.mutex);
  // Whether it has begun, or all that have to start together are bound, have their devices
  // allocated or ask for none.
  [[nodiscard]] bool IsAllocated(const GangUnit& unit, const GangRoster& roster) const
      BERTH_REQUIRES(unit.mutex);

 private:
  const GangParts parts_;
  mutable Mutex mutex_;
  std::shared_ptr<const GangSettings> settings_ BERTH_GUARDED_BY(mutex_);
};

// GangView: what is known of a gang at one moment, for people.

struct GangView {
  GangId id;
  std::string_view state;  // as in the picture of gang_table.h
  std::int64_t minimum = 0;
  std::optional<int> total;
  std::int64_t placed = 0, waiting = 0, planned = 0, held = 0;
  Duration age{};
  std::string why;         // it waits, in a sentence
  std::string lacks = {};  // the name of its member that has no place; "" = nobody knows one
  bool never = false;      // GangLack::for_good

  [[nodiscard]] std::int64_t missing() const { return minimum - placed - waiting; }  // pods
};

GangView ViewOf(const GangUnit& unit, Instant now) BERTH_REQUIRES(unit.mutex);
// nullopt: nothing is kept of it.
std::optional<GangView> Shown(const GangUnit& unit, Instant now) BERTH_EXCLUDES(unit.mutex);

}  // namespace berth
