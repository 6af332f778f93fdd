// SPDX-License-Identifier: Apache-2.0
//
// How long things take that GangTable waits for, and what it says to binds that it refuses.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/result.h"
#include "base/text.h"
#include "cluster/groups/pod_groups.h"
#include "cluster/values/gang.h"

namespace berth::gangs {

// A gang may want a shorter hold, not one that ends before kube-scheduler has come with a member
// that it refused before: it waits for up to 10 s.
inline constexpr Duration kShortestHold = std::chrono::seconds(12);
// A hold that counts for a commit lasts for so long at least: its client has to hear the answer.
inline constexpr Duration kMargin = std::chrono::seconds(2);
// kube-scheduler tries again at once what failed at once.
inline constexpr Duration kFailsAfter = std::chrono::seconds(1);
inline constexpr Duration kFirstAbortPause =
    std::chrono::seconds(1);  // after an abort, doubled each time
inline constexpr Duration kLongestAbortPause = std::chrono::seconds(60);
// A plan that was not found is tried again so often, if the cluster has changed.
inline constexpr Duration kBetweenPlans = std::chrono::milliseconds(200);
// One for which there is none whatever pods end is looked for half as often each time, down to
// this, if no node comes or goes.
inline constexpr Duration kBetweenHopes = std::chrono::minutes(1);
// Where room could be made for a gang is looked for so often, if the cluster has changed.
inline constexpr Duration kBetweenClearings = std::chrono::seconds(1);
// What is free on the nodes where others are evicted for a gang is kept for it: so long after the
// last eviction for the next one, as kube-scheduler may come with its pods one by one; and while
// pods that were evicted take their time to end, or all have their places, so long at most.
inline constexpr Duration kBetweenNominations = std::chrono::seconds(30);
inline constexpr Duration kKeepsFor = std::chrono::minutes(5);
// What is left of a gang that was whole is placed pod by pod when nobody has joined for so long.
inline constexpr Duration kRemnantAfter = std::chrono::seconds(60);
// Members that were woken and do not come sleep beside a kube-scheduler that does not hear of their
// condition: it hears of a bind that fails. Before that its largest back-off has to be over (10 s,
// podMaxBackoffSeconds): the member whose bind is refused may have to wait as long.
inline constexpr Duration kNudgeAfter = std::chrono::seconds(11);
// A member without GPUs that comes before those with GPUs waits so long for them: controllers make
// the pods of a gang within moments, and some need this one to run before they make the others.
inline constexpr Duration kWaitsForGpuMembers = std::chrono::seconds(10);
// Places that were held for members that kube-scheduler did not bring are held anew after a pause
// as long as the hold, doubled each time, up to this: others use them meanwhile.
inline constexpr Duration kLongestAbsentPause = std::chrono::minutes(10);
// Filter names a member's node, and kube-scheduler asks anew later than this: it did not bind it
// there, since another extender, Reserve or PreBind refused. After so many asks the node is out for
// the member, and if it can be for those like it: so long, doubled each time up to a bound. Of a
// gang so many such nodes are known.
inline constexpr Duration kComesBackAfter = std::chrono::milliseconds(500);
inline constexpr int kAsksWithoutBind = 3;
inline constexpr Duration kOutFor = std::chrono::minutes(5);
inline constexpr Duration kLongestOut = std::chrono::minutes(30);
inline constexpr std::size_t kMostOut = 64;
// Between filter and bind kube-scheduler does what takes seconds (volumes): a plan that is made
// anew moves nobody who was told its node so lately, if it can.
inline constexpr Duration kBindsWithin = std::chrono::seconds(30);
// Of a gang that has not gathered within that time the cluster is asked whether some of its pods
// have ended: they are not watched. Again when its pods have changed, at most so often.
inline constexpr Duration kGathersWithin = std::chrono::seconds(2);
inline constexpr Duration kBetweenQuestions = std::chrono::seconds(30);
// Room for pods that come when their leader runs is kept so long, for so many: one pod has it kept.
inline constexpr Duration kKeepsForFollowers = std::chrono::minutes(10);
inline constexpr int kMostFollowers = 255;
// For all that follow in one namespace so many GPUs are kept, or a quarter of the cluster's where
// that is more; in all namespaces together twice as many.
inline constexpr std::int64_t kFollowersGpus = 64;
// A gang without members may be between two lives of its pods.
inline constexpr Duration kForgottenAfter = std::chrono::minutes(10);
// Gangs for which nothing can be done are counted anew so often.
inline constexpr Duration kCountEvery = std::chrono::seconds(5);
// Plans of one Look: what is to be done for other gangs waits for it.
inline constexpr int kPlansOfALook = 4;
inline constexpr std::size_t kExclusionsOfAFilter = 8;
// Devices for claims are allocated, or it is known that they are not, within some seconds.
inline constexpr Duration kLongestAllocation = std::chrono::seconds(30);
// A gang whose claims could not be allocated so often, one time after the other, goes pod by pod.
inline constexpr int kMostLostClaims = 5;
// The waiting members of a gang may ask for so many different things: each is looked for on every
// node by itself.
inline constexpr std::size_t kMostKinds = 64;
// Kinds of members times nodes of a plan that is made while filter is asked, some 50 ms of work. A
// larger one is made by Look.
inline constexpr std::size_t kWorkOfAFilter = 40'000;

// Constants: kube-scheduler retries at once what fails with another text each time.
inline constexpr std::string_view kNoPlan = "the pod's gang has no placement plan now";
inline constexpr std::string_view kMemberGone = "the pod has left its gang";
inline constexpr std::string_view kClientGone = "the client of this bind has disconnected";
inline constexpr std::string_view kHoldOver = "not all pods of the gang came to bind in time";
inline constexpr std::string_view kPlanBroken =
    "the pod's gang lost its planned nodes, and no others fit";
inline constexpr std::string_view kClaimsLost =
    "devices for the claims of the pod's gang could not be allocated";
inline constexpr std::string_view kFirstRefused = "the first bind of the pod's gang failed";
inline constexpr std::string_view kNoSize = "the PodGroup that set the gang's size was deleted";
inline constexpr std::string_view kTooManyGangs =
    "too many gangs wait (16384), as many of this namespace as of any; Berth takes this one when "
    "another ends";
inline constexpr std::string_view kRival =
    "an older gang needs the nodes, and kube-scheduler lets only one of the two use them";
inline constexpr std::string_view kWaking = "Berth is waking the gang's other pods";

inline Error Conflict(std::string_view text) { return {Errc::kConflict, std::string(text)}; }

// A node that filter named for a pod, and that it was not bound to.
struct NodeOut {
  std::string node;
  int asks = 0, times = 0;  // it was asked about so often, last; it was out so often
  Instant until{};

  void Take(int asked, Instant now) {
    asks = asked;
    until = now + std::min(kOutFor * (1 << std::min(times++, 8)), kLongestOut);
  }
  [[nodiscard]] std::string TextOf(const std::string& pod) const {
    return "kube-scheduler asked about " + pod + " " + CountText(asks, "time") +
           " and did not bind it to " + node;
  }
};

// "Berth has not seen Job train yet, which sets how many pods must start together".
inline std::string UnseenController(const Gang& gang) {
  const bool is_tree = gang.controller.kind == kCompositePodGroup;
  return "Berth has not seen " + gang.controller.kind + " " + gang.controller.name +
         (is_tree ? " with all of its groups" : "") +
         " yet, which sets how many pods must start together";
}

}  // namespace berth::gangs
