// SPDX-License-Identifier: Apache-2.0
//
// RefusedPods: pods that filter found no node for, and when to have them asked about again.
//
// kube-scheduler asks again after an event of the cluster. It may see that event before we do, and
// some of what makes room here is no event there: a bind in doubt that is settled, a list that
// shows a pod gone, a PodGroup. Then a pod would sleep for minutes beside what it waits for.
//
// Room is what a node has now and did not have in the snapshot on which the pod was refused. A pod
// is named once for each refusal, and the later the more often that was in vain.
//
// A pod that was kept out of a node that is others' (device_rooms.h) is named once some such node
// is so no longer: what is left there has been room all along.
//
// Anybody who may edit a PodGroup can change it several times a second. So pods whose group or
// class says something else are named by time: kMostAtOnce in each kBetweenLooks, and each pod for
// its group once in kForItsGroup.
//
// One thread at a time.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "cluster/groups/pod_groups.h"
#include "cluster/state/snapshot.h"
#include "cluster/values/pod_request.h"
#include "server/extender/kept/device_rooms.h"

namespace berth {

class RefusedPods {
 public:
  // So many pods are remembered; the one refused longest ago is forgotten first.
  static constexpr std::size_t kMostPods = 4096;
  // About what their requests take (HeldBytes); beyond it the largest is forgotten first.
  static constexpr std::size_t kMostBytes = std::size_t{32} << 20;
  // Named at once, so that the rest is not woken for a room that the first of them takes.
  static constexpr std::size_t kMostAtOnce = 8;
  static constexpr Duration kBetweenLooks = std::chrono::milliseconds(100);
  static constexpr Duration kForItsGroup = std::chrono::seconds(30);

  // Whether some node takes the pod, its group's domain included.
  using Fits = std::function<bool(const std::shared_ptr<const Snapshot>&, const PodRequest&)>;

  // groups and rooms outlive the object; groups is nullptr: nobody tells of any.
  RefusedPods(const PodGroups* groups, const DeviceRooms& rooms, Fits fits)
      : groups_(groups), rooms_(rooms), fits_(std::move(fits)) {}

  // Filter found no node for the pod on that snapshot (FilterAnswer::kept_out).
  void Refused(std::shared_ptr<const PodRequest> pod, std::shared_ptr<const Snapshot> snapshot,
               Instant now, std::optional<std::uint64_t> kept_out = {});
  // It found one: whatever comes of it, the pod is not ours to wake.
  void Found(const std::string& uid);

  // The workload classes have changed: what one required or forbade may be no more. The pods that
  // waited under such a condition are named as if there were room, to be read anew.
  void ClassesChanged();

  // Has the pods woken for which there is room since they were refused: those of the highest
  // priority first, at most kMostAtOnce, and beside them as many whose group or class says
  // something else. wake: false where it does not take the pod, which then is left for the next
  // call, as are all after it.
  using Wake = std::function<bool(const PodId& pod)>;
  void WakeThoseWithRoom(const std::shared_ptr<const Snapshot>& snapshot, Instant now,
                         const Wake& wake);
  // When to call it again though nothing was published.
  [[nodiscard]] Instant next() const { return next_; }

  [[nodiscard]] std::size_t size() const { return entries_.size(); }
  // Any thread.
  [[nodiscard]] std::size_t bytes() const { return bytes_.load(); }

 private:
  struct Entry {
    std::shared_ptr<const PodRequest> pod;
    std::size_t bytes = 0;
    std::shared_ptr<const Snapshot> seen;  // up to which changes were looked at
    std::uint64_t refused = 0;             // in the order of refusals
    Instant refused_at{};
    bool waiting = false;           // refused, and not named since
    bool outdated = false;          // its group, or its class, says something else now
    bool changed = false;           // something changed, and only fits_ can say whether that helps
    std::vector<std::string> room;  // nodes that have room since, or had for a while
    std::optional<PodGroup> group;  // as last seen
    std::optional<std::uint64_t> kept_out;
    int wakes = 0;
    Instant woken{};  // last
    Instant not_before{};
    Instant outdated_from{};                             // it is not named for that before
    Instant woken_for_group = Instant() - kForItsGroup;  // last
  };
  using Entries = std::unordered_map<std::string, Entry>;
  struct Change;  // from one snapshot to the newest

  void Erase(Entries::iterator entry);
  // Until both bounds are kept.
  void ForgetSome();
  // Brings what is known of the entries to that snapshot; returns those that may be woken, in their
  // order.
  std::vector<Entry*> Candidates(const std::shared_ptr<const Snapshot>& snapshot, Instant now);
  void LookAt(Entry& entry, Change& change) const;
  [[nodiscard]] bool GroupChanged(Entry& entry) const;
  [[nodiscard]] bool HasRoom(Entry& entry, const std::shared_ptr<const Snapshot>& snapshot,
                             Instant now) const;

  const PodGroups* const groups_;
  const DeviceRooms& rooms_;
  const Fits fits_;
  Entries entries_;  // by pod UID
  std::atomic<std::size_t> bytes_{0};
  std::uint64_t refusals_ = 0;
  Instant next_ = Instant::max();
  // Of pods that are outdated: how many were named since then.
  Instant outdated_since_{};
  std::size_t outdated_named_ = 0;
};

}  // namespace berth
