// SPDX-License-Identifier: Apache-2.0
#include "server/wire/pod/pod_needs.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/random.h"
#include "base/text.h"

namespace berth::wire {
namespace {

constexpr std::string_view kClassKey = "berth.dev/workload-class";
constexpr std::string_view kPreferKey = "berth.dev/prefer";

bool IsAnyOf(const std::vector<std::string>& names, const std::string& name) {
  return names.empty() || std::ranges::find(names, name) != names.end();
}

constexpr std::string_view kIsolationKey = "berth.dev/isolation";
constexpr std::string_view kMinMemoryKey = "berth.dev/min-gpu-memory-gib";
constexpr std::int64_t kMostGib = 100'000;  // beyond any GPU
constexpr std::int64_t kGpuMibPerGib = 1024;

constexpr std::array<std::pair<std::string_view, Isolation>, 3> kIsolationWords = {
    {{"hardware", Isolation::kHardware},
     {"memory", Isolation::kMemory},
     {"none", Isolation::kNone}}};

constexpr std::array<std::pair<std::string_view, Versioned>, kVersionedCount> kVersionKeys = {
    {{"berth.dev/min-driver", Versioned::kDriver},
     {"berth.dev/min-cuda", Versioned::kCuda},
     {"berth.dev/min-compute-capability", Versioned::kCapability}}};

constexpr std::string_view kNumerals = "0123456789", kJoints = "-._";
// k8s.io/apimachinery/pkg/util/rand: names that are made of a generateName end so.
constexpr std::string_view kDrawnFrom = "bcdfghjklmnpqrstvwxz2456789";
constexpr std::size_t kDrawnBytes = 5;

bool IsNumeral(char c) { return c >= '0' && c <= '9'; }

bool LooksDrawn(std::string_view part) {
  if (part.size() < kDrawnBytes) return false;
  if (part.size() == kDrawnBytes && part.find_first_not_of(kDrawnFrom) == std::string_view::npos) {
    return true;
  }
  int groups = IsNumeral(part.front()) ? 1 : 0;
  for (std::size_t i = 1; i < part.size(); ++i) {
    if (IsNumeral(part[i]) && !IsNumeral(part[i - 1])) ++groups;
  }
  return groups >= 2;
}

std::string_view WithoutEnd(std::string_view name, std::string_view characters) {
  return name.substr(0, name.find_last_not_of(characters) + 1);  // npos + 1 is 0
}

struct Unit {
  char letter;
  std::int64_t seconds;
};
constexpr std::array<Unit, 4> kUnits = {{{'d', 86'400}, {'h', 3600}, {'m', 60}, {'s', 1}}};

// Empty: it is no duration, or one out of range.
std::optional<std::int64_t> SecondsIn(std::string_view text) {
  std::int64_t sum = 0;
  for (const Unit& unit : kUnits) {
    const std::size_t at = text.find(unit.letter);
    if (at == std::string_view::npos) continue;
    const auto number = ParseInt(text.substr(0, at), 0, kMostRunSeconds / unit.seconds);
    if (!number) return std::nullopt;
    sum += *number * unit.seconds;
    text.remove_prefix(at + 1);
  }
  if (!text.empty() || sum < 1 || sum > kMostRunSeconds) return std::nullopt;
  return sum;
}

constexpr std::string_view kSpreadKey = "berth.dev/spread";
constexpr std::string_view kSpreadByKey = "berth.dev/spread-by";

// The value is kept with every pod, so a longer one is cut and followed by its hash.
std::string Bounded(std::string text) {
  constexpr std::size_t kMostBytes = 1024;
  if (text.size() <= kMostBytes) return text;
  const std::string hash = std::to_string(std::hash<std::string>()(text));
  text.resize(kMostBytes);
  return text + "#" + hash;
}

// Texts of the three kinds never meet: a UID has no "=", and a label begins with "label ".
std::string WorkloadOf(const PodParts& parts) {
  std::string workload = parts.id.namespace_name + "/";
  if (!parts.controller.empty()) return workload + parts.controller;
  for (const auto& [key, value] : parts.labels) workload += key + "=" + value + ",";
  return Bounded(std::move(workload));
}

Status ReadSpreadBy(const PodParts& parts, const std::string& label, RequestShape& shape) {
  const std::string place = "annotation " + std::string(kSpreadByKey) + ": ";
  if (!shape.wants_gpu()) return {};
  if (shape.spread == Spread::kNone) {
    return Invalid(place + "want " + std::string(kSpreadKey) + " (card or node) beside it");
  }
  const std::string* const value = FindLabel(parts.labels, label);
  if (value == nullptr) {
    return Invalid(place + "want a label that the pod has, got \"" + label.substr(0, 80) + "\"");
  }
  shape.workload = Bounded(parts.id.namespace_name + "/label " + label + "=" + *value);
  return {};
}

constexpr std::string_view kNearKey = "berth.dev/near";
constexpr std::string_view kFarKey = "berth.dev/far";
constexpr std::size_t kMostLabels = 16;  // pods of every node are compared with each

Status ReadSelector(const PodParts& parts, std::string_view key, LabelSelector& selector) {
  const std::string* const said = parts.Annotation(key);
  if (said == nullptr) return {};
  const std::string place = "annotation " + std::string(key) + ": ";
  const std::vector<std::string_view> words = PartsOf(*said, ',');
  if (words.empty() || words.size() > kMostLabels) {
    return Invalid(place + "want 1.." + std::to_string(kMostLabels) +
                   " labels of pods, such as app=prefill, got " + std::to_string(words.size()));
  }
  auto read = ParseSelector(std::vector<std::string>(words.begin(), words.end()));
  if (!read) return Invalid(place + read.error().message);
  selector = *std::move(read);
  std::ranges::sort(selector);  // one order of what means the same
  return {};
}

}  // namespace

bool IsGpuNeedKey(std::string_view key) { return key == kIsolationKey || key == kMinMemoryKey; }

Status ReadGpuNeed(std::string_view key, std::string_view value, RequestShape& shape) {
  if (key == kMinMemoryKey) {
    BERTH_TRY(const std::int64_t gib, ParseInt(value, 1, kMostGib));
    shape.min_gpu_memory_mib = gib * kGpuMibPerGib;
    return {};
  }
  using Row = std::pair<std::string_view, Isolation>;
  const auto word = std::ranges::find(kIsolationWords, value, &Row::first);
  if (word == kIsolationWords.end()) {
    return Invalid(WantedText("one of hardware, memory, none", value));
  }
  shape.isolation = word->second;
  return {};
}

Status CheckGpuNeeds(const RequestShape& shape) {
  if (shape.min_gpu_memory_mib > 0 && !std::holds_alternative<WholeGpus>(shape.gpus)) {
    return WrongAnnotation(
        kMinMemoryKey,
        "want a pod that also asks for whole GPUs (nvidia.com/gpu); shares and MIG "
        "profiles state their memory themselves");
  }
  if (shape.isolation == Isolation::kHardware && shape.is_share()) {
    return WrongAnnotation(kIsolationKey,
                           "want memory or none for a share of a GPU, got \"hardware\"");
  }
  return {};
}

bool IsVersionKey(std::string_view key) {
  return std::ranges::any_of(kVersionKeys, [key](const auto& row) { return row.first == key; });
}

Status ReadVersionNeeds(PodParts& parts, PodRequest& pod) {
  for (const auto& [key, what] : kVersionKeys) {
    const std::string* const said = parts.Annotation(key);
    if (said == nullptr) continue;
    BERTH_TRY(const Version version, Within(ParseVersion(*said), "annotation " + std::string(key)));
    parts.constraints.versions.least[static_cast<std::size_t>(what)] = version;
    if (what == Versioned::kCapability) pod.shape.min_capability = CapabilityNumber(version);
  }
  return {};
}

std::string_view StemOf(std::string_view name) {
  while (!name.empty()) {
    const std::size_t joint = name.find_last_of(kJoints);
    const std::size_t begin = joint == std::string_view::npos ? 0 : joint + 1;
    std::string_view shorter = WithoutEnd(name, kNumerals);
    // A name that is all one part may be a word.
    if (begin > 0 && LooksDrawn(name.substr(begin))) shorter = name.substr(0, begin);
    shorter = WithoutEnd(shorter, kJoints);
    if (shorter.size() == name.size()) break;
    name = shorter;
  }
  return name;
}

std::uint64_t SeriesOf(const PodParts& parts) {
  if (!parts.completes || parts.of_daemon_set) return 0;
  Digester series;
  series.Add(parts.controller_kind);
  series.Add(StemOf(parts.controller.empty() ? parts.id.name : parts.controller_name));
  const std::uint64_t number = series.digest().high;
  return number == 0 ? 1 : number;
}

Result<std::int64_t> ReadExpectedDuration(std::string_view text) {
  if (const auto seconds = SecondsIn(text)) return *seconds;
  return WrongAnnotation(
      kExpectedDurationKey,
      WantedText("a duration such as 2h30m, of d, h, m and s, up to 365d", text));
}

bool IsSpreadKey(std::string_view key) { return key == kSpreadKey || key == kSpreadByKey; }

Status ReadSpread(const PodParts& parts, RequestShape& shape) {
  if (const std::string* const said = parts.Annotation(kSpreadKey)) {
    if (*said != "card" && *said != "node") {
      return WrongAnnotation(kSpreadKey, WantedText("one of card, node", *said));
    }
    SpreadByController(parts, *said == "card" ? Spread::kCard : Spread::kNode, shape);
  }
  const std::string* const by = parts.Annotation(kSpreadByKey);
  return by == nullptr ? Status() : ReadSpreadBy(parts, *by, shape);
}

void SpreadByController(const PodParts& parts, Spread spread, RequestShape& shape) {
  if (!shape.wants_gpu()) return;
  shape.spread = spread;
  shape.workload = WorkloadOf(parts);
}

bool IsNeighbourKey(std::string_view key) { return key == kNearKey || key == kFarKey; }

Status ReadNeighbours(const PodParts& parts, RequestShape& shape) {
  Neighbours neighbours;
  BERTH_TRY_STATUS(ReadSelector(parts, kNearKey, neighbours.near));
  BERTH_TRY_STATUS(ReadSelector(parts, kFarKey, neighbours.far));
  const bool has_devices = shape.wants_gpu() || !parts.claims.empty();
  if (!has_devices || neighbours.empty()) return {};
  neighbours.namespace_name = parts.id.namespace_name;
  shape.neighbours = std::move(neighbours);
  return {};
}

NodeWishes WishesOf(const WorkloadClass& workload) {
  NodeWishes wishes{workload.require, workload.forbid, {}, workload.profile};
  for (const WishConfig& wish : workload.prefer) wishes.wishes.push_back({wish.trait, wish.weight});
  for (const WishConfig& wish : workload.avoid) wishes.wishes.push_back({wish.trait, -wish.weight});
  std::ranges::sort(wishes.required);
  std::ranges::sort(wishes.forbidden);
  std::ranges::sort(wishes.wishes);
  return wishes;
}

bool IsClassKey(std::string_view key) { return key == kClassKey || key == kPreferKey; }

WorkloadClasses::WorkloadClasses(const Config& config) {
  for (const TraitConfig& trait : config.traits) traits_.push_back(trait.name);
  for (const WorkloadClass& workload : config.workload_classes) {
    auto labels = ParseSelector(workload.labels);
    BERTH_CHECK(labels.has_value());  // the configuration was validated
    classes_.push_back({workload.name, workload.namespaces, *std::move(labels),
                        workload.priority_classes, WishesOf(workload), workload.spread});
  }
}

bool WorkloadClasses::Class::Matches(const PodParts& parts) const {
  return IsAnyOf(namespaces, parts.id.namespace_name) &&
         IsAnyOf(priority_classes, parts.priority_class) && Selects(labels, parts.labels);
}

Status WorkloadClasses::Apply(const PodParts& parts, PodRequest& request) const {
  if (!request.shape.wants_gpu()) return {};
  BERTH_TRY_STATUS(Choose(parts, request));
  const std::string* const said = parts.Annotation(kPreferKey);
  return said == nullptr ? Status() : Prefer(*said, request.shape.nodes);
}

Status WorkloadClasses::Choose(const PodParts& parts, PodRequest& request) const {
  if (classes_.empty()) return {};
  const Class* own = nullptr;
  if (const std::string* const said = parts.Annotation(kClassKey)) {
    const auto named = std::ranges::find(classes_, *said, &Class::name);
    if (named == classes_.end()) {
      return WrongAnnotation(kClassKey, "want one of " + Join(classes_, ", ", &Class::name) +
                                            ", got \"" + said->substr(0, 80) + "\"");
    }
    own = &*named;
    request.classes.push_back(own->name);
  }
  for (const Class& other : classes_) {
    if (&other == own || !other.Matches(parts)) continue;
    if (own == nullptr) own = &other;
    request.classes.push_back(other.name);
  }
  if (own == nullptr) return {};
  request.shape.nodes = own->wishes;
  if (own->spread != Spread::kNone && request.shape.spread == Spread::kNone) {
    SpreadByController(parts, own->spread, request.shape);
  }
  return {};
}

Status WorkloadClasses::Prefer(const std::string& said, NodeWishes& nodes) const {
  const std::vector<std::string_view> words = PartsOf(said, ',');
  if (words.size() > kMostListed) {
    return WrongAnnotation(kPreferKey, "want at most " + std::to_string(kMostListed) +
                                           " traits, got " + std::to_string(words.size()));
  }
  for (const std::string_view word : words) {
    const std::string trait(word);
    const bool known = std::ranges::find(kBuiltinTraits, trait) != kBuiltinTraits.end() ||
                       std::ranges::find(traits_, trait) != traits_.end() || HasValue(trait);
    if (!known) {
      return WrongAnnotation(
          kPreferKey, "want traits of nodes: " + Join(kBuiltinTraits, ", ") + ", " +
                          std::string(kFamilyPrefix) + "F, " + std::string(kImagePrefix) +
                          "V or one of the configuration, got \"" + trait.substr(0, 80) + "\"");
    }
    std::erase_if(nodes.wishes, [&](const TraitWish& wish) { return wish.trait == trait; });
    nodes.wishes.push_back({trait, WishConfig().weight});
  }
  std::ranges::sort(nodes.wishes);
  return {};
}

}  // namespace berth::wire
