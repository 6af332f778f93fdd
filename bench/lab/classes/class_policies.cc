// SPDX-License-Identifier: Apache-2.0
#include "bench/lab/classes/class_policies.h"

#include <string>

#include "base/check.h"
#include "base/text.h"
#include "config/load.h"

namespace berth::replay {
namespace {

NodeWishes Required(std::string_view trait) { return {{std::string(trait)}, {}, {}}; }

PerWorkClass<std::vector<NodeWishes>> HardAffinity() {
  return {{{Required(kTraitRdma)},
           {NodeWishes{{}, {std::string(kTraitRdma)}, {}}},
           {Required(kTraitSpot)}}};
}

PerWorkClass<std::vector<NodeWishes>> FlavorsInOrder() {
  std::vector<NodeWishes> dear_first, cheap_first;
  for (const std::string_view family : kFamilyTraits) dear_first.push_back(Required(family));
  cheap_first.assign(dear_first.rbegin(), dear_first.rend());
  return {{dear_first, cheap_first, cheap_first}};
}

PerWorkClass<std::vector<NodeWishes>> OneEach(const PerWorkClass<NodeWishes>& wishes) {
  PerWorkClass<std::vector<NodeWishes>> tries;
  for (std::size_t c = 0; c < kWorkClasses; ++c) tries[c] = {wishes[c]};
  return tries;
}

constexpr std::string_view kClassesPolicy = "classes", kNonePolicy = "none",
                           kAffinityPolicy = "affinity", kFlavorsPolicy = "flavors",
                           kPackedPolicy = "flavors-packed";
constexpr std::array kClassPolicies = {kClassesPolicy, kNonePolicy, kAffinityPolicy, kFlavorsPolicy,
                                       kPackedPolicy};

}  // namespace

const char* const kClassExample = R"(workloadClasses:
- name: training
  labels: [workload=training]
  prefer:
  - {trait: rdma, weight: 40}
  - {trait: nvlink, weight: 40}
  - {trait: nvme, weight: 10}
  avoid:
  - {trait: spot, weight: 60}
  forbid: [leaving]
- name: inference
  labels: [workload=inference]
  prefer:
  - {trait: spot, weight: 200}
  - {trait: price, weight: 10}
  avoid:
  - {trait: rdma, weight: 100}
  spread: card
- name: batch
  labels: [workload=batch]
  prefer:
  - {trait: spot, weight: 200}
  - {trait: nvme, weight: 10}
  avoid:
  - {trait: rdma, weight: 100}
)";

std::vector<std::string_view> ClassPolicyNames() {
  return {kClassPolicies.begin(), kClassPolicies.end()};
}

Result<ClassPolicy> ClassPolicyNamed(std::string_view name, const ReplayPolicy& berth) {
  if (name == kClassesPolicy) {
    BERTH_TRY(const PerWorkClass<NodeWishes> wishes, WishesPerWork(berth.classes));
    return ClassPolicy{berth, OneEach(wishes)};
  }
  if (name == kNonePolicy) return ClassPolicy{berth, OneEach({})};
  if (name == kAffinityPolicy) return ClassPolicy{berth, HardAffinity()};
  if (name == kFlavorsPolicy || name == kPackedPolicy) {
    BERTH_TRY(const ReplayPolicy kube,
              PolicyNamed(name == kPackedPolicy ? "best-fit" : "spreading"));
    return ClassPolicy{kube, FlavorsInOrder()};
  }
  return Invalid("policies: want some of " + Join(kClassPolicies, ", ") + ", got \"" +
                 std::string(name) + "\"");
}

ReplayPolicy BerthWithExample() {
  const Result<Config> config = LoadConfig(kClassExample, "the example");
  BERTH_CHECK(config.has_value());
  return {"example", ChosenProfile(*config), {}, {}, "", WishesOf(*config), ClassProfiles(*config)};
}

Result<PerWorkClass<NodeWishes>> WishesPerWork(const WishesByClass& classes) {
  PerWorkClass<NodeWishes> wishes;
  for (std::size_t c = 0; c < kWorkClasses; ++c) {
    const auto found = classes.find(kWorkClassNames[c]);
    if (found == classes.end()) {
      return Invalid("workloadClasses: want " + Join(kWorkClassNames, ", ") + ", got no " +
                     std::string(kWorkClassNames[c]));
    }
    wishes[c] = found->second;
  }
  return wishes;
}

}  // namespace berth::replay
