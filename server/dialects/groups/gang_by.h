// SPDX-License-Identifier: Apache-2.0
//
// Gangs that are named after the controller that makes their pods, so that one template serves any
// number of them (docs/with-controllers.md). By what the controller writes on its pods:
//
//                    name of the gang      how many pods
//   Job              NAME.UID              its object says (pod_group_json.h)
//   JobSet           NAME.UID.ATTEMPT      its object says
//   LeaderWorkerSet  NAME-GROUP.REVISION   an annotation of its pods; its object says whether the
//                                          leader has to run before the others are made
//   DisaggregatedSet  NAME-SLICE.REVISION  its object says: the first group of each role; the other
//                                          groups are those of LeaderWorkerSets
//   another owner    NAME.UID              nobody says
//   another label    KEY=VALUE             nobody says
//
// A restart, a new revision and the next run of a CronJob are other gangs. Groups of a
// LeaderWorkerSet that are made anew keep their name: their old pods end first.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "cluster/values/gang.h"
#include "server/wire/pod/pod_parts.h"

namespace berth::dialects {

inline constexpr std::string_view kGangBy = "berth.dev/gang-by";

// The kinds of GangController whose objects are read.
inline constexpr std::string_view kJob = "Job";
inline constexpr std::string_view kJobSet = "JobSet";
inline constexpr std::string_view kLeaderWorkerSet = "LeaderWorkerSet";
inline constexpr std::string_view kDisaggregatedSet = "DisaggregatedSet";
inline constexpr std::string_view kPodGang = "PodGang";  // pods name it themselves (pod_group.h)

struct NamedGang {
  std::string name;
  GangController controller = {};  // empty: nobody's object says how many they are
  std::optional<int> total = {};   // as the pod says
};

// The annotations that are read here.
std::span<const std::string_view> ControllerAnnotations();

// key: the value of berth.dev/gang-by, not empty: a label of the pod, or "owner". Error:
// kInvalidArgument naming the annotation or the label.
Result<NamedGang> NameBy(const wire::PodParts& parts, const std::string& key);

// By the controller that made the pod, if it is one of `controllers` ("jobset", "lws", "job"; a Job
// of a JobSet is the JobSet's). Nothing: it is none of them, or the pod is of no gang. Error: as
// above.
Result<std::optional<NamedGang>> NameByController(const wire::PodParts& parts,
                                                  std::span<const std::string> controllers);

// How many pods the group of a LeaderWorkerSet's pod has; nothing: it is not such a pod. Error:
// kInvalidArgument naming the annotation.
Result<std::optional<int>> SizeOfGroup(const wire::PodParts& parts);
bool LeadsGroup(const wire::PodParts& parts);

// What the pod tells.
OneByOne MadeOneByOne(const wire::PodParts& parts);

}  // namespace berth::dialects
