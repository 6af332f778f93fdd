// SPDX-License-Identifier: Apache-2.0
#include "server/wire/pod/pod_class.h"

#include <algorithm>

#include "base/check.h"
#include "base/text.h"
#include "server/wire/pod/pod_needs.h"

namespace berth::wire {
namespace {

constexpr std::string_view kClassKey = "berth.dev/workload-class";
constexpr std::string_view kPreferKey = "berth.dev/prefer";

bool IsAnyOf(const std::vector<std::string>& names, const std::string& name) {
  return names.empty() || std::ranges::find(names, name) != names.end();
}

}  // namespace

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
