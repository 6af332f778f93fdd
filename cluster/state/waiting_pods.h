// SPDX-License-Identifier: Apache-2.0
//
// WaitingPods: the pods without a node, as the API server has them: which ones have arrived, which
// wait as members of a gang, which large ones lack room, and which ask for MIG devices and found no
// node. The extender does not learn of all of them: if kube-scheduler's own filters leave no node,
// it is not called. And programs that simulate scheduling may ask it about pods that do not exist.
//
// Pods that neither ask for GPUs nor name a gang, nor are refused, are kube-scheduler's alone:
// their names are kept, and of what they ask for only devices of other plugins; of those with
// ResourceClaims all.
// A pod leaves when it has a node, is deleted, or is gone. One that gets its node is bound in
// ClusterState first: for a moment it is in both, never in neither.
//
// Memory is bounded: beyond it the largest are kept in outline (held_bytes.h). Explanations of
// these have that as the reason, and their gangs wait. A change of such a pod that comes when there
// is room again makes it whole. Filter judges the whole pod, which kube-scheduler sends.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"
#include "base/recent.h"
#include "cluster/state/snapshot.h"
#include "cluster/values/gang.h"
#include "cluster/values/pod_record.h"
#include "cluster/values/pod_request.h"

namespace berth {

// Where a pod or gang stands among those that wait. What one line does not tell apart is the same
// for all that stand in it.
struct PlaceInLine {
  Instant turn = {};  // the last one of its namespace; none yet: the earliest
  int priority = 0;
  WallTime since = {};  // it waits
  std::uint64_t nth = 0;
  std::string_view uid = {};
};

// The one order of those who wait: first whose turn was the longest time ago, then the higher
// priority, then who has waited longer; among these by the number, then by UID.
inline bool ComesBefore(const PlaceInLine& a, const PlaceInLine& b) {
  return std::tie(a.turn, b.priority, a.since, a.nth, a.uid) <
         std::tie(b.turn, a.priority, b.since, b.nth, b.uid);
}

struct WaitingPod {
  std::shared_ptr<const PodRequest> pod;
  // "scheduling gates hold it back: example.com/quota"; "" = none keep it from schedulers.
  std::string held_back = {};
  bool unschedulable = false;  // kube-scheduler has said that no node will do
  std::optional<WallTime> created = {};
  std::string scheduler_said = {};  // what it said then, word for word
  std::string nominated = {};       // the node on which it makes room for the pod, by evictions
  std::string replica_set = {};     // PodLife::replica_set

  [[nodiscard]] bool gated() const { return !held_back.empty(); }
  // By priority and age; of an unknown age: behind the others of its priority.
  [[nodiscard]] PlaceInLine place() const {
    return {.priority = pod->priority, .since = created.value_or(WallTime::max())};
  }
  // Whether somebody else has to make room for it: one of the schedulers that ask this Berth found
  // no node for it and makes no room itself, and it is that old.
  [[nodiscard]] bool IsInNeed(const std::set<std::string>& askers, WallTime now,
                              Duration age) const {
    return unschedulable && !gated() && nominated.empty() && askers.contains(pod->scheduler) &&
           created && now - *created >= age;
  }
};

// Any thread may call any function.
class WaitingPods {
 public:
  using Pods = std::vector<std::shared_ptr<const PodRequest>>;

  // Called once for every pod shown for the first time, on the thread that shows it; several
  // together where they were held back.
  using OnArrival = std::function<void(const Pods& arrived)>;

  // About what the pods take; those of up to kSmallBytes are kept whole beyond it too.
  static constexpr std::size_t kMostBytes = std::size_t{128} << 20;
  static constexpr std::size_t kSmallBytes = std::size_t{4} << 10;
  // The API server takes schedulerName of any length.
  static constexpr std::size_t kLongestScheduler = 253;
  static constexpr std::size_t kMostHeldBack = 65'536;  // arrivals; later ones are not reported

  explicit WaitingPods(OnArrival on_arrival = {}, std::size_t most_bytes = kMostBytes)
      : on_arrival_(std::move(on_arrival)), most_bytes_(most_bytes) {}

  // The API server shows the pod: adds it, or replaces the one of that UID.
  void Put(WaitingPod pod) BERTH_EXCLUDES(mutex_);
  // The pod was asked about: adds it, unless it is known, or was shown and then removed. What is
  // shown later counts. Of pods that nobody has shown at most kMostAsked are kept.
  void Note(const PodRequest& pod) BERTH_EXCLUDES(mutex_);
  void Remove(std::string_view uid) BERTH_EXCLUDES(mutex_);
  // Removes those that were here before `mark` and that the function says are not there.
  using Mark = std::uint64_t;
  [[nodiscard]] Mark Here() const BERTH_EXCLUDES(mutex_);
  void RemoveUnless(const std::function<bool(const std::string& uid)>& is_there, Mark mark)
      BERTH_EXCLUDES(mutex_);

  // Arrivals are reported from now on, those of the meantime at once / are held back.
  void TellArrivals() BERTH_EXCLUDES(mutex_);
  void HoldArrivalsBack() BERTH_EXCLUDES(mutex_);

  // The pods that ask for MIG devices and that kube-scheduler found no node for, sorted by name.
  [[nodiscard]] Pods Current() const BERTH_EXCLUDES(mutex_);
  // All that are kept whole: that ask for GPUs, name a gang or are refused. Sorted by name.
  [[nodiscard]] std::vector<WaitingPod> Everybody() const BERTH_EXCLUDES(mutex_);
  // The large ones that wait for room: they ask for several GPUs, kube-scheduler has said that
  // nodes have too little of something ("Insufficient ...") and nothing of volumes, and no gang
  // decides about them. The first of them, by priority, then by age; so many at most, and so many
  // of one namespace. Looks at kMostLookedAt at most.
  struct LacksRoom {
    std::shared_ptr<const PodRequest> pod;
    WallTime created;
  };
  static constexpr std::size_t kMostLookedAt = 4096;
  [[nodiscard]] std::vector<LacksRoom> LackingRoom(std::size_t most, std::size_t of_namespace) const
      BERTH_EXCLUDES(mutex_);
  // Those with ResourceClaims that are kube-scheduler's alone otherwise, as long as there is room
  // for what they ask for; in no order / one of them by its UID.
  [[nodiscard]] std::vector<WaitingPod> Claiming() const BERTH_EXCLUDES(mutex_);
  [[nodiscard]] std::optional<WaitingPod> FindClaiming(const std::string& uid) const
      BERTH_EXCLUDES(mutex_);
  // One of Everybody by its UID.
  [[nodiscard]] std::optional<WaitingPod> Find(const std::string& uid) const BERTH_EXCLUDES(mutex_);
  // One of them by its name, for people: it visits all of them; of several, one that was deleted
  // and its successor, the last added.
  [[nodiscard]] std::optional<WaitingPod> FindNamed(std::string_view namespace_name,
                                                    std::string_view name) const
      BERTH_EXCLUDES(mutex_);
  // The same of those that are kube-scheduler's alone; the request has its name, its scheduler,
  // `others`, and nothing else.
  [[nodiscard]] std::optional<WaitingPod> FindOther(std::string_view namespace_name,
                                                    std::string_view name) const
      BERTH_EXCLUDES(mutex_);
  // A running pod of a Deployment, StatefulSet or the like ends, and another comes in its place.
  // May be told again. Does nothing for one that was evicted, as somebody wants it away from its
  // node, and for one of a gang, which has a plan.
  void Ends(const PodRequest& pod, const PodLife& life, const std::string& node)
      BERTH_EXCLUDES(mutex_);
  // The nodes of such pods whose place the waiting pod may have, until kRemembersFor after their
  // ends; each once.
  [[nodiscard]] std::vector<std::string> FormerNodes(const std::string& uid, WallTime now) const
      BERTH_EXCLUDES(mutex_);
  // The waiting pod has the place of one of them there, if there was one.
  void Replaces(const std::string& uid, std::string_view node) BERTH_EXCLUDES(mutex_);

  // What is known of the pod from now on, which is of another gang than before, if it is here.
  void Regroup(const PodRequest& pod) BERTH_EXCLUDES(mutex_);
  // The members of the gang, of whichever scheduler, without gates. Sorted by UID. A gang is read
  // with its pod: PodGroups::Update tells what its object says now.
  [[nodiscard]] std::vector<WaitingPod> WaitingMembers(const GangId& gang) const
      BERTH_EXCLUDES(mutex_);
  // Those of its pods that gates hold back. Sorted by UID.
  [[nodiscard]] std::vector<std::shared_ptr<const PodRequest>> GatedMembers(
      const GangId& gang) const BERTH_EXCLUDES(mutex_);
  // Any of them; nullptr: it has none without gates.
  [[nodiscard]] std::shared_ptr<const PodRequest> AnyMember(const GangId& gang) const
      BERTH_EXCLUDES(mutex_);
  // The gangs that have pods here, gated ones and those of any scheduler too.
  [[nodiscard]] std::vector<GangId> Gangs() const { return GangsSince(0); }
  // Of these, those whose pods have changed after that change.
  [[nodiscard]] std::vector<GangId> GangsSince(std::uint64_t change) const BERTH_EXCLUDES(mutex_);
  // The number of the last change of any gang's pods / of that gang's: it grows, and no two changes
  // have one number. 0 while the gang has none.
  [[nodiscard]] std::uint64_t changes() const BERTH_EXCLUDES(mutex_);
  [[nodiscard]] std::uint64_t ChangesOf(const GangId& gang) const BERTH_EXCLUDES(mutex_);

  [[nodiscard]] std::size_t bytes() const BERTH_EXCLUDES(mutex_);

  static constexpr std::size_t kMostAsked = 65'536;
  static constexpr Duration kRemembersFor = std::chrono::minutes(10);
  // Pods that end, some hundred bytes each: of more the first are forgotten.
  static constexpr std::size_t kMostEnding = 4096, kMostEndingOfNamespace = 512;

 private:
  static constexpr std::size_t kGraves = 4096;

  // A pod that is kube-scheduler's alone.
  struct Other {
    std::string namespace_name, name, scheduler;
    std::shared_ptr<const OtherResources> others = nullptr;
    std::shared_ptr<const PodRequest> claiming = nullptr;  // it has ResourceClaims
    std::size_t claiming_bytes = 0;
    [[nodiscard]] std::size_t bytes() const {
      std::size_t bytes = namespace_name.size() + name.size() + scheduler.size() + claiming_bytes;
      if (others == nullptr) return bytes;
      for (const OtherResource& one : *others) bytes += sizeof one + one.name.size();
      return bytes;
    }
  };
  struct Entry {
    WaitingPod pod;  // pod.pod is nullptr where it is kube-scheduler's alone: then see `other`
    Other other = {};
    bool shown = false;
    std::uint64_t added = 0;  // in the order of additions
    std::size_t bytes = 0;
    bool outlined = false;
  };
  // One that ends. Each number stands for a name.
  struct Ending {
    std::uint64_t pod, namespace_name, owner;
    std::string node;
    WallTime until;
  };
  // For LackingRoom. Empty: it does not lack room.
  static std::optional<PlaceInLine> InLineOf(std::string_view uid, const WaitingPod& pod);
  struct Unit {
    std::map<std::string, const Entry*> members;  // by UID
    std::uint64_t changed = 0;
  };

  void Insert(const std::string& uid, Entry entry, std::size_t bytes) BERTH_REQUIRES(mutex_);
  // Takes it out of its gang too.
  void Erase(const std::string& uid) BERTH_REQUIRES(mutex_);
  // The entry's pod from now on; it takes so many bytes.
  void SetPod(const std::string& uid, Entry& entry, WaitingPod pod, std::size_t bytes)
      BERTH_REQUIRES(mutex_);
  void Uncount(std::string_view uid, const Entry& entry) BERTH_REQUIRES(mutex_);
  // Until the bound is kept.
  void OutlineLargest() BERTH_REQUIRES(mutex_);
  // The same; who asks about it later is behind the API server.
  void EraseForGood(const std::string& uid) BERTH_REQUIRES(mutex_);

  const OnArrival on_arrival_;
  const std::size_t most_bytes_;
  mutable Mutex mutex_;
  std::unordered_map<std::string, Entry> by_uid_ BERTH_GUARDED_BY(mutex_);
  std::map<GangId, Unit> by_gang_ BERTH_GUARDED_BY(mutex_);
  std::size_t bytes_ BERTH_GUARDED_BY(mutex_) = 0;
  // Those that can be made smaller, by their size; the UIDs are keys of by_uid_.
  std::set<std::pair<std::size_t, std::string_view>> large_ BERTH_GUARDED_BY(mutex_);
  // The UIDs are keys of by_uid_.
  std::map<PlaceInLine, std::shared_ptr<const PodRequest>, decltype(&ComesBefore)> lacking_
      BERTH_GUARDED_BY(mutex_){&ComesBefore};
  std::size_t asked_ BERTH_GUARDED_BY(mutex_) = 0;  // that nobody has shown
  std::uint64_t added_ BERTH_GUARDED_BY(mutex_) = 0;
  std::uint64_t changes_ BERTH_GUARDED_BY(mutex_) = 0;
  Recent<std::string, std::monostate> dead_ BERTH_GUARDED_BY(mutex_){
      kGraves};                                          // the last that were removed
  std::vector<Ending> ending_ BERTH_GUARDED_BY(mutex_);  // the newest last
  bool tells_ BERTH_GUARDED_BY(mutex_) = true;
  Pods held_back_ BERTH_GUARDED_BY(mutex_);
};

// StillWaiting: the pods that wait, at the moment of one snapshot. A pod that gets its node is
// bound in ClusterState before it leaves WaitingPods.

// The pods without those that the snapshot has bound. Requires: they were listed before that.
std::vector<WaitingPod> StillWaiting(std::vector<WaitingPod> listed, const Snapshot& snapshot);
WaitingPods::Pods StillWaiting(WaitingPods::Pods listed, const Snapshot& snapshot);

}  // namespace berth
