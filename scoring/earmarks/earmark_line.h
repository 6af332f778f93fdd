// SPDX-License-Identifier: Apache-2.0
//
// EarmarkLine: the pods and gangs that found no room, in line, and what is kept for them.
//
// Without it who comes first after a pod has ended takes the room: small pods come all the time,
// large ones once in ten seconds (kube-scheduler's back-off), and wait for hours. So the room that
// fits a waiting pod now is kept until it comes: of what becomes free the first in line that fits
// takes its part, and what is left is for anyone. Nothing is kept empty for a pod that it does not
// hold yet. For a gang, which needs many nodes at the same moment, it is: for the first in line
// that all fits once the pods that complete have ended. It gathers what fits its members now, and
// awaits the nodes where the fewest GPUs have to end, up to the bounds of EarmarkLimits. Who does
// not take what is kept for it is passed over for a while: what keeps it away is nothing that Berth
// knows.
//
// What kube-scheduler frees by evictions is first that of the pod that it evicts for, as in its own
// queue: once a victim is seen to leave, the pod is nominated. The node is kept for it without the
// victims, also against pods that have waited longer; pods of a higher priority take precedence.
//
//   line.Stand({.pods = {pod}, .since = created}, snapshot, now);   // no node took it
//   line.Look(snapshot, now);                                  // after every change of the nodes
//   line.earmarks()->KeptFor(other, *snapshot, node);
//   line.Leave(pod->id.uid);                                   // it has its node, or is gone
//
// First in line: the higher priority, then who waits longer; the successor of a pod that its Job,
// StatefulSet or LeaderWorkerSet has lost waits as long as the others run. Deterministic; not
// thread-safe.
// A look at what changed takes time for these nodes, times the line: some microseconds a node. One
// at all takes milliseconds: for who has time, several times a second.
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
#include <vector>

#include "base/clock.h"
#include "cluster/state/snapshot.h"
#include "cluster/state/waiting_pods.h"
#include "cluster/values/pod_request.h"
#include "scoring/earmarks/earmarks.h"
#include "scoring/earmarks/pod_ends.h"
#include "scoring/reservations/reservations.h"

namespace berth {

struct EarmarkLimits {
  // Of all GPUs, percent, 0..100: more are kept for one waiting pod alone, and up to
  // EarmarkLine::kMostAlone for one gang alone.
  int most_gpus = 25;
  // For a gang, which gets no more after that until it has been passed over for as long. 0: nothing
  // is kept for gangs.
  Duration gang = std::chrono::minutes(15);
  // That a pod of two and more GPUs has waited before a node is reserved for it. 0: none is.
  Duration reserve_after = std::chrono::minutes(1);
  // So long at most, for each GPU that it asks for, GPUs stand idle on nodes that are reserved for
  // it, all together. 0: a node is reserved if all of its GPUs become free at once.
  Duration reserve_idle = std::chrono::hours(1);
  // Room that comes later is not reserved.
  Duration reserve_within = std::chrono::hours(6);
  friend bool operator==(const EarmarkLimits&, const EarmarkLimits&) = default;
};

struct InLine {
  // A pod, or members of one gang: as many as it lacks. Never empty; all ask for GPUs.
  std::vector<std::shared_ptr<const PodRequest>> pods;
  WallTime since;

  [[nodiscard]] const PodRequest& first() const { return *pods.front(); }
  [[nodiscard]] PlaceInLine place() const {
    return {.priority = first().priority, .since = since, .uid = first().id.uid};
  }
};

class EarmarkLine {
 public:
  static constexpr std::size_t kMost = 1024;        // in line; the last ones are not taken in
  static constexpr std::size_t kMostPods = 16'384;  // of all gangs
  static constexpr std::size_t kMostBytes = std::size_t{32} << 20;  // about what they take
  static constexpr Duration kOffer = std::chrono::seconds(60);
  static constexpr Duration kPassOver = std::chrono::minutes(5);  // doubled by each, up to...
  static constexpr Duration kLongestPassOver = std::chrono::hours(1);
  static constexpr int kMostAlone = 64;            // GPUs, for the one gang that gathers
  static constexpr std::size_t kMostAwaited = 64;  // nodes, and pods, at a time
  static constexpr Duration kBetweenScans = std::chrono::seconds(5);  // of all nodes
  static constexpr std::size_t kMostReserved = 256;   // nodes, for pods that stand alone
  static constexpr std::size_t kMostShapesLater = 8;  // of these, for which a scan looks
  static constexpr Duration kBetweenHopes = std::chrono::minutes(1);
  // kube-scheduler tries every pod again after five and a half minutes at the latest.
  static constexpr Duration kForgotten = std::chrono::minutes(10);
  // Nodes on which evictions were agreed on for one pod in line; and victims on all. Of more the
  // first are remembered.
  static constexpr std::size_t kMostAgreed = 256, kMostVictims = 65'536;

  // The node that the API server shows the pod nominated to; "": to none, or it is not shown yet.
  using Nominated = std::function<std::string(const PodRequest& pod)>;

  // learned: how long pods run by pods like them; nullptr: nobody learns it. jobs: until when Jobs
  // run; nullptr: nobody knows. Both outlive the line and its earmarks. nominated: of several pods
  // that may evict the same victim it tells whose room it is; empty: the first in line has it.
  explicit EarmarkLine(const RunTimeTable* learned = nullptr, const JobEndTable* jobs = nullptr,
                       Nominated nominated = {})
      : learned_(learned), jobs_(jobs), nominated_(std::move(nominated)) {}

  // No node took it on that snapshot: it stands in line, in the place of what had its name before.
  // A pod has to do so again within kForgotten.
  void Stand(InLine waiter, const std::shared_ptr<const Snapshot>& refused_on, Instant now);
  // By the UID of the pod / the text of the gang's id.
  void Leave(std::string_view name);
  // kube-scheduler may evict these pods of one of the nodes for a pod in line, within kOffer; of
  // others nothing is remembered.
  struct Agreed {
    std::string node;
    std::vector<std::string> victims = {};  // UIDs
  };
  void Agree(std::string_view uid, std::vector<Agreed> nodes, Instant now);
  // Whether a pod, the first of a gang, still waits.
  using Waits = std::function<bool(const PodRequest& first)>;
  // Those for which the function is false leave.
  void KeepIf(const Waits& waits);

  // One moment, by both clocks.
  struct Time {
    Instant now;
    WallTime wall;
  };
  // kAll: also what needs a walk over all nodes, each at most once in kBetweenScans.
  enum class Scope { kChanges, kAll };
  // Takes up what changed. Returns the pods that may go now by what others left to them, and that
  // no change of a node tells kube-scheduler to try again. waits: asked of those for whom something
  // is kept, or is to be; empty: all do. kept: nodes that are for one pod or gang: others are
  // offered nothing there.
  std::vector<PodId> Look(const std::shared_ptr<const Snapshot>& snapshot,
                          const EarmarkLimits& limits, const Time& time, const Waits& waits = {},
                          Scope scope = Scope::kAll,
                          std::shared_ptr<const KeptNodes> kept = nullptr);
  // When a Look is due though nothing changes; empty: never.
  [[nodiscard]] std::optional<Instant> NextLook() const;

  [[nodiscard]] const std::shared_ptr<const Earmarks>& earmarks() const { return earmarks_; }
  // Pods without gangs for which nothing is kept now.
  [[nodiscard]] const std::shared_ptr<const PodsInLine>& ahead() const { return ahead_; }
  [[nodiscard]] std::size_t size() const { return line_.size(); }

 private:
  struct Waiter : InLine {
    std::vector<const RequestShape*> shapes;  // of `pods`; equal ones are one object
    std::size_t bytes = 0;
    std::vector<NodeIndex> nodes;    // where room is kept for each; kNoNode: nowhere
    std::optional<Instant> offered;  // something has been kept since
    Instant passed_over;             // nothing is kept until then
    Instant stood;                   // last
    int times_passed_over = 0;
    // May fit nodes that have not changed since.
    bool looks_everywhere = false;
    std::optional<Instant> judged;  // of a gang: when it was last asked whether it could all fit
    bool has_hope = false;          // it could
    NodeIndex reserved = kNoNode;   // of a pod that stands alone: the node that it awaits
    std::vector<Agreed> agreed;     // where kube-scheduler may evict for it, since...
    Instant agreed_at;
    std::optional<Instant> nominated;  // since then it has, on nodes.front()
    Duration idle{};                   // so long GPUs stood idle for it on such nodes
    [[nodiscard]] bool is_gang() const { return !first().gang.empty(); }
    [[nodiscard]] std::size_t kept() const;
  };
  struct Order {
    bool operator()(const Waiter* a, const Waiter* b) const {
      return ComesBefore(a->place(), b->place());
    }
  };
  // A node on which room is kept, with the owners on it.
  struct Marked {
    std::vector<std::pair<Waiter*, std::size_t>> owners;  // and which of their pods; in line
    std::shared_ptr<const Node> as_if;
    std::vector<std::string> leaving = {};  // that are evicted for owners, until they have gone
  };
  // A node that is awaited for the gang that gathers, and its pods that will go there.
  struct Awaited {
    std::vector<std::size_t> pods;
    std::shared_ptr<const Node> then;
  };
  // A node that is awaited for a pod that stands alone.
  struct Reserved {
    Waiter* waiter = nullptr;
    Earmarks::OnNode on;               // as it is published
    std::shared_ptr<const Node> seen;  // the node as it was then
  };
  // Which shapes fit a node as it is at the moment.
  class Fitting;

  static int GpusOf(const RequestShape& shape);
  static std::string NameOf(const PodRequest& first);
  void IndexAgreed();
  void ForgetAgreed(Waiter& waiter);
  void Nominate(Instant now);
  // Leaves those that the API server shows nominated to the node; if there are none, those that it
  // shows nominated nowhere. What the line keeps there for others by mistake is released.
  void LeaveShown(NodeIndex node, std::vector<Waiter*>& waiters);
  void NominateOn(Waiter& waiter, NodeIndex node, const std::vector<std::string>& victims,
                  Instant now);
  [[nodiscard]] bool IsInVain(const Waiter& waiter, Instant now) const;
  void TakeUpKept(std::shared_ptr<const KeptNodes> kept);
  // Whether the node is kept for others, against the pod.
  [[nodiscard]] bool IsKept(NodeIndex node, const PodRequest& pod) const;
  void ListAhead();
  bool MakePlace(const InLine& waiter, std::size_t bytes);
  void Release(Waiter& waiter);
  void PassOver(const EarmarkLimits& limits, Instant now);
  void FindChanged(const std::shared_ptr<const Snapshot>& snapshot);
  void Rebuild(NodeIndex node, Instant now);
  void Offer(NodeIndex node, const EarmarkLimits& limits, Instant now, const Waits& waits);
  void OfferTo(Waiter& waiter, NodeIndex node, const EarmarkLimits& limits, Instant now);
  void LookEverywhere(const EarmarkLimits& limits, Instant now, const Waits& waits);
  [[nodiscard]] bool MayKeep(const Waiter& waiter, std::int64_t gpus,
                             const EarmarkLimits& limits) const;
  [[nodiscard]] bool CouldFit(const Waiter& gang) const;
  void ChooseGatherer(Instant now, Scope scope);
  void StopGathering();
  [[nodiscard]] std::vector<NodeIndex> NodesToAwait(const Waiter& gang) const;
  void AwaitOn(NodeIndex node, std::vector<std::size_t>& open, const EarmarkLimits& limits);
  void Await(const EarmarkLimits& limits, Instant now, Scope scope);
  void RenewAwaited(const EarmarkLimits& limits);
  [[nodiscard]] bool MayReserveFor(const Waiter& waiter, const EarmarkLimits& limits,
                                   const Time& time) const;
  [[nodiscard]] bool LeavesReserved(NodeIndex node, const Waiter& waiter) const;
  [[nodiscard]] std::optional<LaterRoom> RoomSoon(const Node& node, const RequestShape& shape,
                                                  const EarmarkLimits& limits) const;
  // All nodes that have it: first those on which the least stands idle, then the soonest.
  using Rooms = std::vector<std::tuple<Duration, WallTime, NodeIndex>>;
  [[nodiscard]] Rooms RoomLater(const RequestShape& shape, const EarmarkLimits& limits) const;
  bool ReserveOn(Waiter& waiter, NodeIndex node, const EarmarkLimits& limits);
  void Unreserve(Waiter& waiter);
  void Reserve(const EarmarkLimits& limits, const Time& time);
  void RenewReserved(const EarmarkLimits& limits);
  void Publish();

  const RunTimeTable* learned_;
  const JobEndTable* jobs_;
  Nominated nominated_;
  std::unordered_map<std::string, std::unique_ptr<Waiter>> by_name_;
  std::set<Waiter*, Order> line_;
  std::size_t pods_ = 0, bytes_ = 0;            // of the line
  std::map<RequestShape, std::size_t> shapes_;  // of these; how many pods have each
  std::map<NodeIndex, Marked> marked_;
  Waiter* gatherer_ = nullptr;  // the gang for which nodes are kept and awaited
  std::map<NodeIndex, Awaited> awaited_;
  std::int64_t awaited_gpus_ = 0;
  WallTime awaited_from_ = WallTime::max();  // all of the gang can go; max(): nobody knows when
  Instant scanned_;                          // when nodes to await were last looked for
  std::map<NodeIndex, Reserved> reserved_;
  std::int64_t reserved_gpus_ = 0;
  PodEnds ends_;
  std::optional<Instant> ends_at_;            // when these were last looked at, and nodes reserved
  std::set<NodeIndex> changed_;               // to be looked at
  std::set<NodeIndex> released_;              // of these: what was kept there is for others
  std::multimap<NodeIndex, Waiter*> agreed_;  // Waiter::agreed, by node
  std::size_t agreed_victims_ = 0;
  std::shared_ptr<const KeptNodes> kept_;
  std::shared_ptr<const PodsInLine> ahead_;
  bool is_other_line_ = false;  // ahead_ is to be made anew
  std::shared_ptr<const Snapshot> snapshot_ = std::make_shared<const Snapshot>();
  std::int64_t gpus_ = 0, kept_gpus_ = 0;  // of snapshot_; that are kept
  bool is_new_ = false;                    // to be published
  std::shared_ptr<const Earmarks> earmarks_ = std::make_shared<const Earmarks>();
  std::vector<PodId> wakes_;
};

}  // namespace berth
