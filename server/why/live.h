// SPDX-License-Identifier: Apache-2.0
//
// Live: the objects that live as long as the service, for the code that explains and shows them.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"
#include "base/recent.h"
#include "cluster/claims/device_offers.h"
#include "cluster/state/cluster_state.h"
#include "cluster/state/snapshot.h"
#include "cluster/state/waiting_pods.h"
#include "scoring/room/room_nodes.h"
#include "scoring/waste/request_mix.h"
#include "scoring/waste/waste_report.h"
#include "server/extender/extender.h"
#include "server/extender/gangs/table/gang_table.h"
#include "server/extender/kept/device_rooms.h"
#include "server/extender/ports/ports.h"
#include "server/http/http_message.h"
#include "server/planners/moves/room_maker.h"
#include "server/why/live_json.h"
#include "server/wire/node/node_json.h"
#include "server/wire/pod/pod_rules.h"

namespace berth {

// RecentBinds: the last pods that got a node, for people who look on. Memory is bounded: kCapacity
// binds, and what filter said of the last kMostAsked pods without one.
class RecentBinds final : public DecisionSink {
 public:
  static constexpr std::size_t kCapacity = 50, kMostAsked = 4096;

  // The clock outlives the object.
  explicit RecentBinds(const Clock& clock) : clock_(clock) {}

  void Record(const Decision& decision) override BERTH_EXCLUDES(mutex_);

  // Newest first.
  [[nodiscard]] std::vector<wire::BoundRow> All() const BERTH_EXCLUDES(mutex_);

 private:
  struct Asked {
    std::size_t candidates = 0, fitting = 0;
  };

  const Clock& clock_;
  mutable Mutex mutex_;
  std::deque<wire::BoundRow> rows_ BERTH_GUARDED_BY(mutex_);
  Recent<std::string, Asked> asked_ BERTH_GUARDED_BY(mutex_){kMostAsked};  // by UID
};

// Readiness: whether the service can decide at present, and who does instead.
// Why the service cannot decide at present; nullptr when it can. The texts are constants.
class Readiness {
 public:
  explicit Readiness(const char* reason) : reason_(reason) {}
  void Set(const char* reason) { reason_.store(reason); }
  [[nodiscard]] const char* reason() const { return reason_.load(); }

  // Nothing is wrong with a standby (kube::kStandby): verbs are answered 503, and /readyz 200.
  [[nodiscard]] bool is_standby() const;

  // Why nobody is led here all the same: /readyz answers 503; nullptr: nothing prevents it.
  void SetUnreachable(const char* why) { unreachable_.store(why); }
  [[nodiscard]] const char* unreachable() const { return unreachable_.load(); }

  // From now on /readyz answers 503, for good; verbs are still answered.
  void BeginDrain() { draining_.store(true); }
  [[nodiscard]] bool draining() const { return draining_.load(); }

 private:
  std::atomic<const char*> reason_;
  std::atomic<const char*> unreachable_{nullptr};
  std::atomic<bool> draining_{false};
};

// Who leads instead, by its identity; "" = nobody is known. Empty function: nobody is asked.
using LeaderName = std::function<std::string()>;

// 503 "not ready: another process leads (leader: IDENTITY)".
http::HttpResponse NotReadyAnswer(std::string_view why, const LeaderName& leader);

// References and pointers: they outlive what is made from it. Any thread may use all of it.
struct Live {
  const Extender& extender;
  const ClusterState& state;
  const WaitingPods& waiting;
  const GangTable& gangs;
  NodeDomains& domains;
  const wire::PodRules& pod_rules;
  const wire::NodeRules& node_rules;
  const Readiness& readiness;
  // An API server shows all pods that wait: a pod that it does not show is gone.
  bool shows_waiting = false;
  LeaderName leader = {};                 // while this process does not
  const RecentBinds* binds = nullptr;     // nullptr: the last binds are not kept
  const LearnedMix* mix = nullptr;        // what arriving pods ask for; nullptr: not learned
  WasteReport* waste = nullptr;           // of that mix
  const MigOffers* mig_offers = nullptr;  // nullptr: nothing is offered
  const DeviceRooms* rooms = nullptr;     // nullptr: nobody is evicted for devices
  const RoomMaker* maker = nullptr;       // moves pods; nullptr: there is no API server
};

// RoomAdvice: whether moves of running pods would let a waiting pod or gang in, and how many: the
// plan of `berth plan --make-room` (scoring/room/make_room.h), found in little time.
struct RoomAdvice {
  std::string name;  // "namespace/name" of the pod or gang
  bool is_gang = false;
  std::int64_t moves = 0;        // of the plan; at least 1
  std::int64_t least_moves = 0;  // no plan has fewer
};

// The search ends after this time; what comes before it takes 30 ms at 5,000 nodes.
inline constexpr Duration kRoomAdviceTime = std::chrono::milliseconds(100);

// Of a pod that waits, or of its gang. Nothing: it fits as it is, moves do not help, or no plan was
// found in that time. Locks nothing while it plans.
std::optional<RoomAdvice> AdviseRoom(const Live& live, const Extender::Moment& now,
                                     const WaitingPod& waiting);

// As RoomSentence.
std::string TextOf(const RoomAdvice& advice);

// By its full name, or GangId::text. If all of its pods run or are gated the table keeps none, and
// its pods tell.
std::optional<GangView> FindGang(const Live& live, const Snapshot& snapshot,
                                 std::span<const WaitingPod> listed, std::string_view full);
// A rolling update of a Deployment whose ReplicaSets are gangs makes the next pod of the new one
// when the pods that it has made run, and they wait for that pod: says so, with the cure.
void AddRollout(const WaitingPod& waiting, const Snapshot& snapshot, GangView& gang);

// A pod on a node that is known; nullptr: none has that name.
std::shared_ptr<const PodRecord> FindOnNodes(const Snapshot& snapshot, std::string_view space,
                                             std::string_view name);

}  // namespace berth
