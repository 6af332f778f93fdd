// SPDX-License-Identifier: Apache-2.0
#include "server/dialects/groups/gang_by.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/text.h"
#include "cluster/values/node_constraints.h"

namespace berth::dialects {
namespace {

using wire::PodParts;

constexpr std::string_view kOwner = "owner";

constexpr std::string_view kJobSetName = "jobset.sigs.k8s.io/jobset-name";
constexpr std::string_view kJobSetUid = "jobset.sigs.k8s.io/jobset-uid";
constexpr std::string_view kJobSetAttempt = "jobset.sigs.k8s.io/restart-attempt";
constexpr std::string_view kJobSetExclusive = "alpha.jobset.sigs.k8s.io/exclusive-topology";
// With it all pods of an exclusive job are made at once.
constexpr std::string_view kJobSetSelector = "alpha.jobset.sigs.k8s.io/node-selector";

constexpr std::string_view kLwsName = "leaderworkerset.sigs.k8s.io/name";
constexpr std::string_view kLwsGroup = "leaderworkerset.sigs.k8s.io/group-index";
constexpr std::string_view kLwsKey = "leaderworkerset.sigs.k8s.io/group-key";
constexpr std::string_view kLwsRevision = "leaderworkerset.sigs.k8s.io/template-revision-hash";
constexpr std::string_view kLwsWorker = "leaderworkerset.sigs.k8s.io/worker-index";
constexpr std::string_view kLwsSize = "leaderworkerset.sigs.k8s.io/size";
constexpr std::string_view kLwsExclusive = "leaderworkerset.sigs.k8s.io/exclusive-topology";

constexpr std::string_view kDisaggregated = "disaggregatedset.x-k8s.io/";
constexpr std::string_view kSetName = "disaggregatedset.x-k8s.io/name";
constexpr std::string_view kSlice = "disaggregatedset.x-k8s.io/slice";

constexpr std::array kAnnotations = {kGangBy, kJobSetExclusive, kJobSetSelector, kLwsSize,
                                     kLwsExclusive};

// Labels of a controller, and its word in the configuration. Pods of JobSets are of Jobs as well.
struct Controller {
  std::string_view word;
  std::array<std::string_view, 5> labels;
  Result<std::optional<NamedGang>> (*name)(const PodParts& parts);
};

std::string_view LabelOf(const PodParts& parts, std::string_view key) {
  const std::string* const value = FindLabel(parts.labels, key);
  return value == nullptr ? std::string_view() : *value;
}

bool Says(const PodParts& parts, std::string_view annotation) {
  return parts.annotations.contains(annotation);
}

// "a.b.c"; what is empty is left out.
std::string Joined(std::string_view name, std::initializer_list<std::string_view> more) {
  std::string joined(name);
  for (const std::string_view part : more) {
    if (!part.empty()) joined.append(".").append(part);
  }
  return joined;
}

Result<std::optional<NamedGang>> NameByJobSet(const PodParts& parts) {
  const std::string_view name = LabelOf(parts, kJobSetName), uid = LabelOf(parts, kJobSetUid);
  if (name.empty()) return std::nullopt;
  return NamedGang{
      .name = Joined(name, {uid, LabelOf(parts, kJobSetAttempt)}),
      .controller = {
          .kind = std::string(kJobSet), .name = std::string(name), .uid = std::string(uid)}};
}

Result<std::optional<NamedGang>> NameByLeaderWorkerSet(const PodParts& parts) {
  const std::string_view name = LabelOf(parts, kLwsName), group = LabelOf(parts, kLwsGroup);
  if (name.empty() || group.empty()) return std::nullopt;
  BERTH_TRY(const std::optional<int> size, SizeOfGroup(parts));
  NamedGang named{
      .name = Joined(std::string(name) + "-" + std::string(group), {LabelOf(parts, kLwsRevision)}),
      .controller = {.kind = std::string(kLeaderWorkerSet), .name = std::string(name)}};
  named.total = size;
  return named;
}

// A rollout begins with a group of each role at once. Of the later ones each starts by itself.
Result<std::optional<NamedGang>> NameBySlice(const PodParts& parts) {
  const std::string_view name = LabelOf(parts, kSetName), slice = LabelOf(parts, kSlice);
  if (name.empty() || LabelOf(parts, kLwsGroup) != "0") return NameByLeaderWorkerSet(parts);
  return NamedGang{
      .name = Joined(std::string(name) + "-" + std::string(slice),
                     {LabelOf(parts, "disaggregatedset.x-k8s.io/revision")}),
      .controller = {.kind = std::string(kDisaggregatedSet), .name = std::string(name)}};
}

Result<std::optional<NamedGang>> NameByJob(const PodParts& parts) {
  // Other APIs have Jobs of another form.
  if (parts.controller_kind != kJob || !parts.controller_api.starts_with("batch/")) {
    return std::nullopt;
  }
  return NamedGang{
      .name = Joined(parts.controller_name, {parts.controller}),
      .controller = {
          .kind = std::string(kJob), .name = parts.controller_name, .uid = parts.controller}};
}

// Without a word: pods say it themselves.
constexpr std::array<Controller, 4> kControllers = {{
    {"jobset", {kJobSetUid, kJobSetName}, NameByJobSet},
    {"lws", {kLwsKey}, NameByLeaderWorkerSet},
    {"", {kSlice}, NameBySlice},
    {"job",
     {"batch.kubernetes.io/controller-uid", "batch.kubernetes.io/job-name", "controller-uid",
      "job-name", "jobset.sigs.k8s.io/job-key"},
     NameByJob},
}};

Result<NamedGang> NameByOwner(const PodParts& parts) {
  BERTH_TRY(std::optional<NamedGang> job, NameByJob(parts));
  if (job) return *std::move(job);
  if (parts.controller.empty()) {
    return wire::WrongAnnotation(
        kGangBy, "want the key of a label of the pod, got \"owner\", and the pod has none");
  }
  return NamedGang{.name = Joined(parts.controller_name, {parts.controller})};
}

Result<NamedGang> NameByLabel(const PodParts& parts, const std::string& key) {
  const std::string* const value = FindLabel(parts.labels, key);
  if (value == nullptr) {
    return wire::WrongAnnotation(kGangBy, "want owner, or the key of a label of the pod, got \"" +
                                              key.substr(0, 200) +
                                              "\", which the pod does not have");
  }
  // Several sets have the same roles and revisions.
  if (key.starts_with(kDisaggregated) && key != kSetName) {
    return wire::WrongAnnotation(kGangBy, "want " + std::string(kSlice) + " or " +
                                              std::string(kLwsKey) +
                                              " on pods of a DisaggregatedSet, got \"" +
                                              key.substr(0, 200) + "\", which does not name one");
  }
  if (value->empty()) return Invalid("label " + key + ": want the name of a gang, got \"\"");
  return NamedGang{.name = key + "=" + *value};
}

bool AsksForGpus(const PodParts& parts) {
  return std::ranges::any_of(parts.containers, [](const wire::ContainerSpec& container) {
    return container.ask.wants_gpu();
  });
}

}  // namespace

std::span<const std::string_view> ControllerAnnotations() { return kAnnotations; }

Result<NamedGang> NameBy(const PodParts& parts, const std::string& key) {
  std::optional<NamedGang> named;
  if (key == kOwner) {
    BERTH_TRY(named, NameByOwner(parts));
  } else {
    for (const Controller& controller : kControllers) {
      if (std::ranges::find(controller.labels, key) == controller.labels.end()) continue;
      if (FindLabel(parts.labels, key) == nullptr) break;
      BERTH_TRY(named, controller.name(parts));
      break;
    }
    // It is a label like any other on a pod that somebody else made.
    if (!named) {
      BERTH_TRY(named, NameByLabel(parts, key));
    }
  }
  named->controller.asked = !named->controller.empty();
  return *std::move(named);
}

Result<std::optional<NamedGang>> NameByController(const PodParts& parts,
                                                  std::span<const std::string> controllers) {
  for (const Controller& controller : kControllers) {
    if (std::ranges::find(controllers, controller.word) == controllers.end()) continue;
    // Pods of a Job are alike: without GPUs none starts together. A JobSet's driver may have none.
    if (controller.word == "job" && !AsksForGpus(parts)) continue;
    BERTH_TRY(std::optional<NamedGang> named, controller.name(parts));
    if (named) return named;
  }
  return std::nullopt;
}

Result<std::optional<int>> SizeOfGroup(const PodParts& parts) {
  const std::string* const said = parts.Annotation(kLwsSize);
  if (said == nullptr || LabelOf(parts, kLwsName).empty()) return std::nullopt;
  const auto pods = ParseInt(*said, 1, kMaxGangPods);
  if (pods) return static_cast<int>(*pods);
  return wire::WrongAnnotation(
      kLwsSize, "want a number of pods from 1 to 10000, got \"" + said->substr(0, 200) + "\"");
}

bool LeadsGroup(const PodParts& parts) {
  return !LabelOf(parts, kLwsName).empty() && LabelOf(parts, kLwsWorker) == "0";
}

OneByOne MadeOneByOne(const PodParts& parts) {
  const bool of_lws = !LabelOf(parts, kLwsName).empty();
  if (of_lws && Says(parts, kLwsExclusive)) return OneByOne::kExclusiveTopology;
  if (Says(parts, kJobSetExclusive) && !Says(parts, kJobSetSelector)) {
    return OneByOne::kExclusiveTopology;
  }
  // Those of a LeaderWorkerSet make their pods at once.
  const bool of_set = parts.controller_kind == "StatefulSet";
  return of_set && !of_lws ? OneByOne::kStatefulSet : OneByOne::kNo;
}

}  // namespace berth::dialects
