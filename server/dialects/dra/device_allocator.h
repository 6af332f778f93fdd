// SPDX-License-Identifier: Apache-2.0
//
// DeviceAllocator: chooses the devices of a pod's ResourceClaims (scoring/claims/claim_choice.h)
// and writes them into the claims, before kube-scheduler would take the first that fit: GPUs and
// MIG devices alike. From then on the pod fits only the node of those devices. If one of several
// claims cannot be written, what was written into the others is taken back. The claims of a gang
// are as those of one pod, but that the node of each member is given.
//
// Claims of other kinds (claim_json.h says which), and those for which a write failed, are left to
// kube-scheduler. Its allocator and this one must not take one device for two claims, and neither
// sees at once what the other does:
//
//   its allocation is in its memory first  From when a pod with an open claim is left to it (or its
//                                          filter has waited for kMost: kube-scheduler may have
//                                          given that up), until the watch shows that claim
//                                          allocated or gone (at the latest after kMostBinding), no
//                                          device is chosen: a claim that comes in between waits
//                                          for kFresh, then it is left to kube-scheduler too.
//                                          Claims that take nothing from others
//                                          (OpenClaim::takes_nothing) keep nobody waiting.
//                                          The same holds from when it hears nodes for a pod that
//                                          asks for GPUs of DRA by the name of a resource, until
//                                          the claim that it makes for it is there (at the latest
//                                          after kMostMaking).
//   ours has to reach its memory           It schedules nothing else while it waits for Filter. The
//                                          answer comes when our own watch has shown the write, and
//                                          kItsDelay later.
//   the answer may never come              This process dies, or the time is over, and the entry is
//                                          `ignorable`: kube-scheduler goes on with devices that it
//                                          chose before. So the pod that it waits for is the first
//                                          whose claim is written, and nothing else is until the
//                                          API server has that: kube-scheduler's own write of this
//                                          claim fails then ("allocated elsewhere"), and whatever
//                                          it chose is void. To answer first and write afterwards
//                                          would not do: any other pod may be under way then. No
//                                          allocation is sent after kMost.
//
// What slips through all the same is found and repaired (dra_watch.h): a process that dies
// within the milliseconds between a write and kube-scheduler's watch, and an ignorable entry; and
// an API server whose watches are far apart.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"
#include "base/result.h"
#include "cluster/claims/device_claim.h"
#include "cluster/claims/device_offers.h"
#include "cluster/state/cluster_state.h"
#include "cluster/state/snapshot.h"
#include "scoring/claims/claim_choice.h"
#include "server/dialects/dra/claim_json.h"
#include "server/dialects/dra/device_claims.h"
#include "server/extender/ports/ports.h"
#include "server/kube/client/api_client.h"
#include "server/kube/lead/write_journal.h"

namespace berth::dialects {

// DeviceAllotment: the node, and the devices there that each of a pod's claims is to get, as the
// allocation that is written into it.

struct DeviceAllotment {
  std::string node;  // empty: no node has the devices
  std::vector<ChosenDevice> devices;
  std::vector<std::vector<AllocationConfig>> configs;  // by claim

  // What a claim of that name is to have.
  [[nodiscard]] ClaimHold HoldOf(std::size_t claim, std::string name) const;
  // Requires: that claim, as it was asked for, for as long as the result lives.
  [[nodiscard]] ClaimAllocation AllocationOf(std::size_t claim, const DeviceClaim& asked) const;
};

// Nodes that fit a pod. Views.
struct ClaimNodes {
  std::span<const std::string> names;
  std::span<const std::uint8_t> priorities = {};  // ClaimWishes; empty: all are equally good
  const RequestShape* gpus = nullptr;             // as ChooseForClaims takes them
};

// `nodes`: those that fit the pod. `owners`: whose the claims are (NodeQuestion::owners). Error:
// why the claims are kube-scheduler's, for people.
Result<DeviceAllotment> Allot(const std::vector<DeviceClaim>& claims,
                              const std::vector<int>& owners, const FindClass& find_class,
                              const DeviceOffers::ByNode& offers, const MigOffers::ByNode& mig,
                              const Snapshot& snapshot, const ClaimNodes& nodes);

// Any thread may call any function.
class DeviceAllocator final : public ClaimAllocator {
 public:
  // For reading, both writes, and seeing them, from when the pod was asked about: half of the
  // httpTimeout of the shipped scheduler configurations.
  static constexpr Duration kMost = std::chrono::milliseconds(1000);
  static constexpr Duration kItsDelay = std::chrono::milliseconds(20);
  // Mostly it writes at once what it has allocated.
  static constexpr Duration kFresh = std::chrono::milliseconds(500);
  // kube-scheduler waits for volumes for so long before it writes a claim (bindTimeoutSeconds).
  static constexpr Duration kMostBinding = std::chrono::minutes(10);
  // It makes the claim of a pod's extended resources at once, and allocated.
  static constexpr Duration kMostMaking = std::chrono::seconds(5);
  // A pod with more claims to be allocated is left alone.
  static constexpr std::size_t kMostClaims = kMostPodClaims;
  // Requests to the API server at a time, for the claims of a gang.
  static constexpr std::size_t kMostWriters = 8;
  // Claims that are remembered as left to kube-scheduler.
  static constexpr std::size_t kMostUnderWay = 4096;

  // References: they outlive the object.
  struct Parts {
    kube::WriteContext write;
    const MigOffers& mig;
    const DeviceClasses& classes;
    const ClusterState& state;
    DeviceClaims& claims;
    // Why claims are left to kube-scheduler, each reason once. Any thread; must not block.
    std::function<void(bool is_problem, const std::string& text)> on_note;
  };

  explicit DeviceAllocator(Parts parts) : parts_(std::move(parts)) {}

  void Ask(const PodId& pod, std::span<const std::string> claims) override BERTH_EXCLUDES(mutex_);
  bool Allocate(const PodId& pod, std::span<const std::string> claims,
                std::span<const std::string> nodes, const ClaimWishes& wishes) override
      BERTH_EXCLUDES(mutex_);
  void Leave(const PodId& pod, std::span<const std::string> claims) override BERTH_EXCLUDES(mutex_);
  bool AllocateTogether(std::span<const ClaimOrder> orders, Instant asked) override
      BERTH_EXCLUDES(mutex_);
  void ToldByName(const PodId& pod, bool fits) override BERTH_EXCLUDES(mutex_);

  struct Stats {  // of pods
    std::uint64_t allocated = 0;
    std::uint64_t left = 0;  // to kube-scheduler: no claim for us, or it allocates others just now
    std::uint64_t lost = 0;  // somebody else was first, or the write failed
  };
  [[nodiscard]] Stats stats() const { return {allocated_.load(), left_.load(), lost_.load()}; }

 private:
  enum class Outcome { kAllocated, kLeft, kLost, kHasDevice };
  // A claim that kube-scheduler may allocate.
  struct Left {
    Instant since;       // from then on, which is to come where its filter is being answered
    bool asked = false;  // that it was asked about, and Allocate has not ended
    bool seen = false;   // by our watch
  };

  void MarkUnderWay(const PodId& pod, std::span<const std::string> claims, const Left& left)
      BERTH_EXCLUDES(mutex_);
  // Until when the pod's claims may be allocated: what they waited in a queue counts.
  [[nodiscard]] Instant EndFor(const PodId& pod, std::span<const std::string> claims)
      BERTH_EXCLUDES(mutex_);
  void Forget(const PodId& pod, std::span<const std::string> claims) BERTH_EXCLUDES(mutex_);

  // A pod, and the nodes that fit it: one of them is to have all of its devices.
  struct Wanted {
    PodId pod;
    std::span<const std::string> claims;  // in the pod's order, which is that of kube-scheduler
    std::span<const std::string> nodes;
    const ClaimWishes* wishes = nullptr;
  };
  // One of their claims, as it was read. It is decoded once more with each answer.
  struct Open {
    PodId pod;
    std::string path;
    OpenClaim claim;
    std::span<const std::string> nodes;
    const ClaimWishes* wishes = nullptr;
  };
  // What claims get that have the same nodes, by their places in the list of open claims.
  struct Share {
    std::vector<std::size_t> open;
    DeviceAllotment allotment;
  };

  // end: no write begins then. harmless: gets the claims, by name, that take nothing from others.
  Outcome TryAllocate(std::span<const Wanted> wanted, Instant end,
                      std::vector<std::string>& harmless) BERTH_EXCLUDES(mutex_);
  // Fills in what has yet to be allocated. kAllocated: go on.
  Outcome Read(std::span<const Wanted> wanted, Instant end, std::vector<Open>& open)
      BERTH_EXCLUDES(mutex_);
  // Chooses and holds; kLeft where there is nothing, or others were faster.
  Outcome Choose(const std::vector<Open>& open, std::vector<Share>& shares) BERTH_EXCLUDES(mutex_);
  // The devices of one share. Nothing: there are none, and why is noted.
  bool Fill(const std::vector<Open>& open, const DeviceOffers::ByNode& offers, Share& share)
      BERTH_EXCLUDES(mutex_);
  Outcome Write(const std::vector<Open>& open, const std::vector<Share>& shares, Instant end)
      BERTH_EXCLUDES(mutex_);
  // What became of the writes of one claim.
  struct Written {
    std::optional<Result<OpenClaim>> claim = {};  // nothing: none was tried
    bool began = false;                           // it got to the second patch
  };
  // Both patches of one claim.
  Written WriteOne(const Open& open, const ClaimAllocation& allocation, Instant end) const;
  void TakeBack(const std::vector<Open>& written) BERTH_EXCLUDES(mutex_);
  Result<OpenClaim> Send(kube::ApiRequest request, Instant end) const;
  void AwaitSeen(const std::vector<Open>& claims, Instant end) const;
  // Whether kube-scheduler may be allocating another claim than these; waits where that will
  // soon be over.
  bool AllocatesOthers(const std::vector<std::string>& claims) BERTH_EXCLUDES(mutex_);
  void DropFinished() BERTH_REQUIRES(mutex_);
  void Note(bool is_problem, const std::string& why) BERTH_EXCLUDES(mutex_);

  const Parts parts_;
  std::atomic<std::uint64_t> allocated_{0}, left_{0}, lost_{0};
  Mutex mutex_;
  std::map<std::string, Left> under_way_ BERTH_GUARDED_BY(mutex_);
  // Pods for which it may be making a claim, by "namespace/UID": since when.
  std::map<std::string, Instant> by_name_ BERTH_GUARDED_BY(mutex_);
  // There were more than kMostUnderWay: until then kube-scheduler may allocate one not among them.
  Instant crowded_until_ BERTH_GUARDED_BY(mutex_) = Instant::min();
  std::set<std::string> noted_ BERTH_GUARDED_BY(mutex_);
};

}  // namespace berth::dialects
