// SPDX-License-Identifier: Apache-2.0
#include "server/dialects/groups/pod_group.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <optional>
#include <utility>
#include <vector>

#include "base/text.h"
#include "server/dialects/groups/gang_by.h"

namespace berth::dialects {
namespace {

using wire::PodParts;

constexpr std::string_view kKueueSlices[] = {
    "kueue.x-k8s.io/podset-slice-required-topology", "kueue.x-k8s.io/podset-slice-size",
    "kueue.x-k8s.io/podset-slice-required-topology-constraints"};

constexpr std::string_view kKueueUnconstrained = "kueue.x-k8s.io/podset-unconstrained-topology";

constexpr std::size_t kLongestName = 253;  // as names of objects have

constexpr std::string_view kBerth = "berth";
constexpr std::string_view kKoordinator = "koordinator";
constexpr std::string_view kKueue = "kueue";

constexpr std::string_view kPodsWanted = "a number of pods from 1 to 10000";
static_assert(kMaxGangPods == 10'000);

enum class Where { kAnnotation, kLabel, kField };

// One way to name a group, and the keys of its numbers; "" = it has none.
struct Convention {
  std::string_view name;  // as in GangId
  Where where;
  std::string_view key;
  Where size_where = Where::kAnnotation;
  std::string_view total = "";
  std::string_view minimum = "";

  // Its PodGroup has the minimum.
  [[nodiscard]] bool has_object() const { return total.empty() && minimum.empty(); }
};
constexpr std::string_view kBerthTotal = "berth.dev/gang-size";
constexpr std::string_view kTaskOfVolcano = "volcano.sh/task-spec";
constexpr std::string_view kSubgroupOfKai = "kai.scheduler/subgroup-name";
constexpr std::string_view kCliqueOfGrove = "grove.io/podclique";
constexpr std::string_view kRoleOfSet = "disaggregatedset.x-k8s.io/role";
constexpr std::string_view kKueueFast = "kueue.x-k8s.io/pod-group-fast-admission";
constexpr std::string_view kKoordinatorWait = "gang.scheduling.koordinator.sh/waiting-time";
constexpr std::string_view kKoordinatorGroups = "gang.scheduling.koordinator.sh/groups";
constexpr std::string_view kKoordinatorTopology =
    "gang.scheduling.koordinator.sh/network-topology-spec";
constexpr std::string_view kKueueTotal = "kueue.x-k8s.io/pod-group-total-count";
constexpr std::array<Convention, 11> kConventions = {{
    {kBerth, Where::kAnnotation, "berth.dev/gang", Where::kAnnotation, kBerthTotal,
     "berth.dev/gang-min"},
    {kCoscheduling, Where::kLabel, "scheduling.x-k8s.io/pod-group"},
    {kKubernetes, Where::kField, ""},
    {kKoordinator, Where::kAnnotation, "gang.scheduling.koordinator.sh/name", Where::kAnnotation,
     "gang.scheduling.koordinator.sh/total-number", "gang.scheduling.koordinator.sh/min-available"},
    {"labels", Where::kLabel, "pod-group.scheduling.sigs.k8s.io/name", Where::kLabel, "",
     "pod-group.scheduling.sigs.k8s.io/min-available"},
    {kKueue, Where::kLabel, "kueue.x-k8s.io/pod-group-name", Where::kAnnotation, kKueueTotal},
    {kKueue, Where::kAnnotation, "kueue.x-k8s.io/pod-group-name", Where::kAnnotation, kKueueTotal},
    {kGrove, Where::kLabel, "grove.io/podgang"},
    {kKai, Where::kAnnotation, "pod-group-name"},
    // Its controller writes a name on every pod.
    {kVolcano, Where::kAnnotation, "scheduling.k8s.io/group-name"},
    {kVolcano, Where::kAnnotation, "scheduling.volcano.sh/group-name"},
}};

// The keys with which levels are asked for, by family.
struct LevelKeys {
  std::string_view required, preferred;
};
constexpr LevelKeys kOwnLevels = {"berth.dev/required-domain", "berth.dev/preferred-domain"};
constexpr LevelKeys kKueueLevels = {"kueue.x-k8s.io/podset-required-topology",
                                    "kueue.x-k8s.io/podset-preferred-topology"};
constexpr LevelKeys kKaiLevels = {kKaiRequired, kKaiPreferred};

const std::string* Find(const PodParts& parts, Where where, std::string_view key) {
  if (where == Where::kField) return parts.pod_group.empty() ? nullptr : &parts.pod_group;
  return where == Where::kLabel ? FindLabel(parts.labels, key) : parts.Annotation(key);
}

tl::unexpected<Error> Unreadable(Where where, std::string_view key, std::string_view wanted,
                                 const std::string& value) {
  return Invalid(std::string(where == Where::kLabel ? "label " : "annotation ") + std::string(key) +
                 ": want " + std::string(wanted) + ", got \"" + value.substr(0, 200) + "\"");
}

// What is said of Koordinator's gangs beside their sizes.
Status ReadKoordinator(const PodParts& parts, Gang& gang) {
  if (const std::string* const wait = parts.Annotation(kKoordinatorWait)) {
    const std::optional<double> hold = GoSeconds(*wait);
    if (!hold || *hold > static_cast<double>(kLongestHoldSeconds)) {
      return Unreadable(Where::kAnnotation, kKoordinatorWait, "a duration such as 600s", *wait);
    }
    if (*hold > 0) {
      gang.hold = std::chrono::duration_cast<Duration>(std::chrono::duration<double>(*hold));
    }
  }
  if (const std::string* const groups = parts.Annotation(kKoordinatorGroups)) {
    std::string names = *groups;
    std::erase(names, ' ');
    const std::string alone = "[\"" + gang.id.full_name() + "\"]";
    if (!names.empty() && names != "[]" && names != alone) {
      return Unreadable(Where::kAnnotation, kKoordinatorGroups,
                        alone + ", since Berth does not support groups of gangs", *groups);
    }
  }
  const std::string* const topology = parts.Annotation(kKoordinatorTopology);
  if (topology != nullptr && topology->find("MustGather") != topology->npos) {
    return Unreadable(Where::kAnnotation, kKoordinatorTopology,
                      "no MustGather (berth.dev/required-domain says the same)", *topology);
  }
  return {};
}

Status ReadKueueGroup(const PodParts& parts, Gang& gang) {
  const std::string* const fast = parts.Annotation(kKueueFast);
  if (fast == nullptr) return {};
  if (*fast != "true" && *fast != "false") {
    return Unreadable(Where::kAnnotation, kKueueFast, "true or false", *fast);
  }
  if (*fast == "true") gang.minimum = 1;
  return {};
}

// A number of pods, where the key is there.
Status ReadPods(const PodParts& parts, const Convention& convention, std::string_view key,
                std::optional<int>& pods) {
  const std::string* const value = key.empty() ? nullptr : Find(parts, convention.size_where, key);
  if (value == nullptr) return {};
  const auto number = ParseInt(*value, 1, kMaxGangPods);
  if (!number) return Unreadable(convention.size_where, key, kPodsWanted, *value);
  pods = static_cast<int>(*number);
  return {};
}

Status ReadLevel(const PodParts& parts, std::string_view key, const TopologyLevels& levels,
                 std::optional<std::size_t>& level) {
  const std::string* const value = parts.Annotation(key);
  if (value == nullptr) return {};
  level = FindTopologyLevel(levels, *value);
  if (!level) return Invalid("annotation " + std::string(key) + ": " + NoLevel(levels, *value));
  return {};
}

Result<DomainAsk> ReadLevels(const PodParts& parts, const LevelKeys& keys,
                             const TopologyLevels& levels) {
  DomainAsk ask;
  BERTH_TRY_STATUS(ReadLevel(parts, keys.required, levels, ask.required));
  BERTH_TRY_STATUS(ReadLevel(parts, keys.preferred, levels, ask.preferred));
  return ask;
}

bool HasAny(const PodParts& parts, std::span<const std::string_view> keys) {
  return std::ranges::any_of(
      keys, [&](std::string_view key) { return parts.Annotation(key) != nullptr; });
}
bool HasAny(const PodParts& parts, const LevelKeys& keys) {
  return HasAny(parts, std::array{keys.required, keys.preferred});
}

// Whether a Kueue annotation names that node label. Constraints of slices are a list in JSON.
bool IsLevelOfKueue(const PodParts& parts, std::string_view label) {
  for (const std::string_view key : {kKueueLevels.required, kKueueLevels.preferred}) {
    const std::string* const value = parts.Annotation(key);
    if (value != nullptr && *value == label) return true;
  }
  return std::ranges::any_of(kKueueSlices, [&](std::string_view key) {
    const std::string* const value = parts.Annotation(key);
    return value != nullptr &&
           (*value == label || value->find("\"" + std::string(label) + "\"") != std::string::npos);
  });
}

// Whether the node selector says a place in the topology, as Kueue writes it once it has chosen:
// maybe by a label without a level that Berth knows.
bool IsPlaced(const PodParts& parts, const TopologyLevels& levels) {
  return std::ranges::any_of(parts.constraints.selector, [&](const LabelRequirement& requirement) {
    return requirement.key == "kubernetes.io/hostname" || IsLevelOfKueue(parts, requirement.key) ||
           std::ranges::any_of(levels, [&](const TopologyLevel& level) {
             return std::ranges::find(level.labels, requirement.key) != level.labels.end();
           });
  });
}

Result<DomainAsk> ReadKueue(const PodParts& parts, const TopologyLevels& levels) {
  for (const std::string_view key : kKueueSlices) {
    if (parts.Annotation(key) == nullptr) continue;
    return wire::WrongAnnotation(
        key, "want a node selector from Kueue beside it, got none; Berth places no slices");
  }
  BERTH_TRY(DomainAsk ask, ReadLevels(parts, kKueueLevels, levels));
  if (const std::string* const value = parts.Annotation(kKueueUnconstrained)) {
    if (*value != "true" && *value != "false") {
      return Unreadable(Where::kAnnotation, kKueueUnconstrained, "true or false", *value);
    }
    ask.unconstrained = *value == "true";
  }
  return ask;
}

Result<DomainAsk> ReadVolcano(const PodParts& parts, const TopologyLevels& levels) {
  DomainAsk ask;
  const std::string* const mode = parts.Annotation(kVolcanoMode);
  if (mode != nullptr && *mode != "hard" && *mode != "soft") {
    return Unreadable(Where::kAnnotation, kVolcanoMode, "hard or soft", *mode);
  }
  const std::string* const tier = parts.Annotation(kVolcanoTier);
  if (tier == nullptr) return ask;  // as near as can be
  const auto number = ParseInt(*tier, 1, static_cast<std::int64_t>(levels.size()));
  if (!number && levels.empty()) {
    return Invalid("annotation " + std::string(kVolcanoTier) + ": " + NoLevel(levels, *tier));
  }
  if (!number) {
    return Unreadable(Where::kAnnotation, kVolcanoTier,
                      "a number from 1 to " + std::to_string(levels.size()), *tier);
  }
  const std::size_t level = levels.size() - static_cast<std::size_t>(*number);
  // Without a mode Volcano takes it as hard.
  (mode != nullptr && *mode == "soft" ? ask.preferred : ask.required) = level;
  return ask;
}

// How many pods the annotations or labels of a convention say. Error: as ReadPods.
Status ReadSizes(const PodParts& parts, const Convention& convention, Gang& gang) {
  std::optional<int> total, minimum;
  BERTH_TRY_STATUS(ReadPods(parts, convention, convention.total, total));
  BERTH_TRY_STATUS(ReadPods(parts, convention, convention.minimum, minimum));
  if (total && minimum && *minimum > *total) {
    return Unreadable(
        convention.size_where, convention.minimum,
        "at most the " + std::to_string(*total) + " of " + std::string(convention.total),
        std::to_string(*minimum));
  }
  if (total) gang.total = total;
  gang.minimum = minimum ? minimum : total;
  return {};
}

tl::unexpected<Error> NoSize(std::string_view beside) {
  return wire::WrongAnnotation(kBerthTotal, "want " + std::string(kPodsWanted) + " beside " +
                                                std::string(beside) + ", got none");
}

tl::unexpected<Error> TooLong(Where where, std::string_view key, const std::string& name) {
  return Unreadable(where, key, "a name of at most " + std::to_string(kLongestName) + " bytes",
                    name);
}

// The gang of that name in the words of the convention.
Status ReadAs(const PodParts& parts, const Convention& convention, const std::string& name,
              Gang& gang) {
  if (name.size() > kLongestName) return TooLong(convention.where, convention.key, name);
  gang.id = {std::string(convention.name), parts.id.namespace_name, name};
  if (convention.name == kGrove) gang.controller = {std::string(kPodGang), name};
  Gang said = gang;
  if (convention.has_object()) gang.object = said.object = Gang::Object::kNotServed;
  BERTH_TRY_STATUS(ReadSizes(parts, convention, said));
  if (convention.name == kBerth && !said.minimum) return NoSize(convention.key);
  if (convention.name == kKoordinator) BERTH_TRY_STATUS(ReadKoordinator(parts, said));
  if (convention.name == kKueue) BERTH_TRY_STATUS(ReadKueueGroup(parts, said));
  // Its controller writes a PodGroup of Volcano.
  if (convention.name == kVolcano) {
    BERTH_TRY(said.total, SizeOfGroup(parts));
  }
  gang = std::move(said);
  return {};
}

// The gang that is named after the pod's controller.
Status ReadNamed(const PodParts& parts, NamedGang named, Gang& gang) {
  if (named.name.size() > kLongestName) {
    return TooLong(Where::kAnnotation, kGangBy, named.name);
  }
  gang.id = {std::string(kBerth), parts.id.namespace_name, std::move(named.name)};
  Gang said = gang;
  said.total = named.total;
  BERTH_TRY_STATUS(ReadSizes(parts, kConventions.front(), said));
  if (!said.minimum) {
    if (named.controller.empty()) return NoSize(kGangBy);
    said.object = Gang::Object::kNotServed;
    said.minimum = said.total;
  }
  said.controller = std::move(named.controller);
  gang = std::move(said);
  return {};
}

Status ReadGangBy(const PodParts& parts, const std::string& key, Gang& gang) {
  const std::string* const name = parts.Annotation(kConventions.front().key);
  if (name != nullptr && !name->empty()) {
    return Unreadable(Where::kAnnotation, kGangBy,
                      "none beside " + std::string(kConventions.front().key), key);
  }
  BERTH_TRY(NamedGang named, NameBy(parts, key));
  return ReadNamed(parts, std::move(named), gang);
}

// Whether another name of the pod's gang takes precedence: each of its pods may start alone; or
// Volcano's controller has made it for pods that nobody put into a gang.
bool IsWeak(const PodParts& parts, const Gang& gang) {
  if (gang.object == Gang::Object::kNone) return gang.minimum == 1;
  const std::string& uid = parts.controller.empty() ? parts.id.uid : parts.controller;
  return gang.id.convention == kVolcano && gang.id.name == "podgroup-" + uid;
}

// The first name that is not weak, else the first.
Status ReadFirst(const PodParts& parts, std::span<const std::string> controllers, Gang& gang) {
  Gang weak;
  const auto is_found = [&](const Status& read) {
    if (!read || (!gang.empty() && !IsWeak(parts, gang))) return true;
    if (weak.empty()) weak = std::move(gang);
    gang = {};
    return false;
  };
  if (const std::string* const key = parts.Annotation(kGangBy); key && !key->empty()) {
    if (const Status read = ReadGangBy(parts, *key, gang); is_found(read)) return read;
  }
  for (const Convention& convention : kConventions) {
    const std::string* const name = Find(parts, convention.where, convention.key);
    if (name == nullptr || name->empty()) continue;
    if (const Status read = ReadAs(parts, convention, *name, gang); is_found(read)) return read;
  }
  BERTH_TRY(std::optional<NamedGang> named, NameByController(parts, controllers));
  if (named) {
    if (const Status read = ReadNamed(parts, *std::move(named), gang); is_found(read)) return read;
  }
  gang = std::move(weak);
  return {};
}

}  // namespace

std::optional<double> GoSeconds(std::string_view text) {
  constexpr std::array<std::pair<std::string_view, double>, 6> kUnits = {
      {{"ms", 1e-3}, {"us", 1e-6}, {"ns", 1e-9}, {"h", 3600}, {"m", 60}, {"s", 1}}};
  if (text.empty()) return std::nullopt;
  double seconds = 0;
  while (!text.empty() && text != "0") {
    double number = 0;
    const auto [end, problem] =
        std::from_chars(text.data(), text.data() + text.size(), number, std::chars_format::fixed);
    if (problem != std::errc() || !(number >= 0 && number < 1e15)) return std::nullopt;
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
    const auto unit = std::ranges::find_if(
        kUnits, [&text](const auto& known) { return text.starts_with(known.first); });
    if (unit == kUnits.end()) return std::nullopt;
    text.remove_prefix(unit->first.size());
    seconds += number * unit->second;
  }
  return seconds;
}

std::string NoLevel(const TopologyLevels& levels, std::string_view value) {
  const std::string text = '"' + std::string(value.substr(0, 200)) + "\" is no topology level; ";
  if (levels.empty()) return text + "no topology.levels are configured";
  return text + "want " + Join(levels, ", ", &TopologyLevel::name) + " or the node label of one";
}

std::span<const std::string_view> GroupAnnotations() {
  static const std::vector<std::string_view> annotations = [] {
    std::vector<std::string_view> keys = {
        kKueueUnconstrained, kKueueFast,         kVolcanoMode,         kVolcanoTier,
        kKoordinatorWait,    kKoordinatorGroups, kKoordinatorTopology, kTaskOfVolcano};
    const auto of_controllers = ControllerAnnotations();
    keys.insert(keys.end(), of_controllers.begin(), of_controllers.end());
    for (const Convention& convention : kConventions) {
      if (convention.where == Where::kAnnotation) keys.push_back(convention.key);
      if (convention.size_where != Where::kAnnotation) continue;
      keys.insert(keys.end(), {convention.total, convention.minimum});
    }
    for (const LevelKeys& levels : {kOwnLevels, kKueueLevels, kKaiLevels}) {
      keys.insert(keys.end(), {levels.required, levels.preferred});
    }
    keys.insert(keys.end(), std::begin(kKueueSlices), std::end(kKueueSlices));
    std::erase(keys, "");
    return keys;
  }();
  return annotations;
}

std::span<const std::string_view> PreferredLevelKeys() {
  static constexpr std::array<std::string_view, 3> kKeys = {
      kOwnLevels.preferred, kKueueLevels.preferred, kKaiLevels.preferred};
  return kKeys;
}

Status ReadGang(const PodParts& parts, Gang& gang, std::span<const std::string> controllers) {
  BERTH_TRY_STATUS(ReadFirst(parts, controllers, gang));
  if (!gang.empty()) gang.one_by_one = MadeOneByOne(parts);
  const std::string_view name = kConventions.front().key;  // empty: a template made it so
  for (const std::string_view key : {kBerthTotal, kConventions.front().minimum}) {
    if (!gang.empty() || !parts.Annotation(key) || !parts.Annotation(name)) continue;
    return Invalid("annotation " + std::string(name) + ": want the gang's name beside " +
                   std::string(key) + ", got \"\"");
  }
  return {};
}

std::string RoleOf(const PodParts& parts, const Gang& gang) {
  const std::string* role = nullptr;
  if (gang.id.convention == kVolcano) role = parts.Annotation(kTaskOfVolcano);
  if (gang.id.convention == kKai) role = FindLabel(parts.labels, kSubgroupOfKai);
  if (gang.id.convention == kGrove) role = FindLabel(parts.labels, kCliqueOfGrove);
  if (gang.id.convention == kKubernetes) role = &parts.pod_group;
  if (gang.controller.kind == kDisaggregatedSet) role = FindLabel(parts.labels, kRoleOfSet);
  return role == nullptr || role->size() > kLongestName ? "" : *role;
}

Result<DomainAsk> DomainAskOf(const PodParts& parts, const TopologyLevels& levels) {
  if (HasAny(parts, kOwnLevels)) return ReadLevels(parts, kOwnLevels, levels);
  if (HasAny(parts, kKueueLevels) || HasAny(parts, kKueueSlices) ||
      parts.Annotation(kKueueUnconstrained) != nullptr) {
    if (IsPlaced(parts, levels)) return DomainAsk{};
    return ReadKueue(parts, levels);
  }
  if (HasAny(parts, kKaiLevels)) return ReadLevels(parts, kKaiLevels, levels);
  return ReadVolcano(parts, levels);
}

}  // namespace berth::dialects
