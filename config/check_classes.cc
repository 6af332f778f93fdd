// SPDX-License-Identifier: Apache-2.0
#include "config/validate.h"

#include <algorithm>
#include <set>
#include <string_view>
#include <utility>

#include "base/dns_name.h"
#include "base/text.h"
#include "scoring/scorers/workload_fit.h"

namespace berth {
namespace {

using Problems = std::vector<std::string>;
using Texts = std::vector<std::string>;

void CheckName(const std::string& name, const std::string& place, std::set<std::string>& names,
               Problems& problems) {
  if (!IsDnsLabel(name)) {
    problems.push_back(place + ".name: want a DNS-1123 label, got \"" + name + "\"");
  } else if (!names.insert(name).second) {
    problems.push_back(place + ".name: \"" + name + "\" is there twice");
  }
}

void CheckLabels(const Texts& labels, const std::string& place, Problems& problems) {
  if (auto selector = ParseSelector(labels); !selector) {
    problems.push_back(place + ".labels" + selector.error().message);
  }
}

// The names of all traits; those of families are not among them.
std::set<std::string> CheckTraits(const Config& config, Problems& problems) {
  std::set<std::string> names(kBuiltinTraits.begin(), kBuiltinTraits.end());
  names.emplace(kPriceWish);
  for (std::size_t i = 0; i < config.traits.size(); ++i) {
    const TraitConfig& trait = config.traits[i];
    const std::string place = Element("traits", i);
    CheckName(trait.name, place, names, problems);
    CheckLabels(trait.labels, place, problems);
    if (trait.labels.empty() && trait.resource.empty()) {
      problems.push_back(place + ": want labels or a resource, got neither");
    }
  }
  names.erase(std::string(kPriceWish));
  return names;
}

// The traits that one class names. It may name each trait once.
class ClassTraits {
 public:
  ClassTraits(const std::set<std::string>& known, std::string place, Problems& problems)
      : known_(known), place_(std::move(place)), problems_(problems) {}

  void Check(const char* list, const std::vector<WishConfig>& wishes, bool takes_price) {
    for (std::size_t i = 0; i < wishes.size(); ++i) {
      Check(wishes[i].trait, place_ + "." + Element(list, i) + ".trait", takes_price);
    }
  }
  void Check(const char* list, const Texts& traits) {
    for (std::size_t i = 0; i < traits.size(); ++i) {
      Check(traits[i], place_ + "." + Element(list, i), false);
    }
  }

 private:
  void Check(const std::string& trait, const std::string& path, bool takes_price) {
    const bool is_price = takes_price && trait == kPriceWish;
    if (!IsFamily(trait) && !is_price && !known_.contains(trait)) {
      problems_.push_back(
          path + ": want one of " + Join(known_, " ") + " " + std::string(kFamilyPrefix) + "F" +
          (takes_price ? " " + std::string(kPriceWish) : "") + ", got \"" + trait + "\"");
    } else if (!named_.insert(trait).second) {
      problems_.push_back(path + ": the class names \"" + trait + "\" twice");
    }
  }

  const std::set<std::string>& known_;
  const std::string place_;
  Problems& problems_;
  std::set<std::string> named_;
};

bool Covers(const Texts& wide, const Texts& narrow) {
  if (wide.empty()) return true;
  return !narrow.empty() && std::ranges::all_of(narrow, [&wide](const std::string& text) {
    return std::ranges::find(wide, text) != wide.end();
  });
}

// Whether every pod that matches the later class matches the earlier one.
bool TakesAllOf(const WorkloadClass& earlier, const WorkloadClass& later) {
  return Covers(earlier.namespaces, later.namespaces) &&
         Covers(earlier.priority_classes, later.priority_classes) &&
         std::ranges::all_of(earlier.labels, [&later](const std::string& label) {
           return std::ranges::find(later.labels, label) != later.labels.end();
         });
}

}  // namespace

std::vector<std::string> ProblemsOfClasses(const Config& config) {
  Problems problems;
  const std::set<std::string> known = CheckTraits(config, problems);
  std::set<std::string> names;
  for (std::size_t i = 0; i < config.workload_classes.size(); ++i) {
    const WorkloadClass& workload = config.workload_classes[i];
    const std::string place = Element("workloadClasses", i);
    CheckName(workload.name, place, names, problems);
    CheckLabels(workload.labels, place, problems);
    ClassTraits traits(known, place, problems);
    traits.Check("prefer", workload.prefer, true);
    traits.Check("avoid", workload.avoid, false);
    traits.Check("require", workload.require);
    traits.Check("forbid", workload.forbid);
    if (!workload.profile.empty() && FindProfile(config, workload.profile) == nullptr) {
      problems.push_back(place + ".profile: want a built-in profile or one of profiles, got \"" +
                         workload.profile + "\"");
    }
    const auto end = config.workload_classes.begin() + static_cast<std::ptrdiff_t>(i);
    const auto earlier =
        std::find_if(config.workload_classes.begin(), end,
                     [&](const WorkloadClass& other) { return TakesAllOf(other, workload); });
    if (earlier != end) {
      problems.push_back(place + ": only pods with the annotation get this class: \"" +
                         earlier->name + "\" matches all other pods first");
    }
  }
  return problems;
}

std::vector<std::string> NotesOnClasses(const Config& config) {
  std::vector<std::string> notes;
  for (std::size_t i = 0; i < config.workload_classes.size(); ++i) {
    const WorkloadClass& workload = config.workload_classes[i];
    const ProfileSpec& profile =
        workload.profile.empty() ? ChosenProfile(config) : *FindProfile(config, workload.profile);
    const bool counts = std::ranges::find(profile.scorers, kWorkloadClassScorer,
                                          &ScorerSpec::name) != profile.scorers.end();
    if (counts || (workload.prefer.empty() && workload.avoid.empty())) continue;
    notes.push_back(Element("workloadClasses", i) +
                    ": prefer and avoid have no effect: the profile \"" + profile.name +
                    "\" has no scorer " + std::string(kWorkloadClassScorer));
  }
  return notes;
}

}  // namespace berth
