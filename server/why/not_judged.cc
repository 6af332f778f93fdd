// SPDX-License-Identifier: Apache-2.0
#include "server/why/not_judged.h"

#include <algorithm>
#include <array>
#include <set>

#include "base/text.h"
#include "server/why/plan_fields.h"

namespace berth::wire {
namespace {

// Each once, in the order in which they come.
class Names {
 public:
  void Add(const std::string& what) {
    if (known_.insert(what).second) all_.push_back(what);
  }
  void AddVolumes(const Json* spec) {
    for (const Json& volume : ItemsOf(spec, "volumes")) {
      const std::string claim = WordOf(FieldOf(volume, "persistentVolumeClaim"), "claimName");
      if (!claim.empty()) {
        Add("volume claim " + claim);
      } else if (!IsFree(volume)) {
        Add("volume " + WordOf(&volume, "name"));
      }
    }
  }
  // With the network of the host each port of a container is one of the host.
  void AddPorts(const Json* spec) {
    const Json* const network = FieldOf(spec, "hostNetwork");
    const bool all = network != nullptr && network->is_boolean() && network->get<bool>();
    for (const char* list : {"containers", "initContainers"}) {
      for (const Json& container : ItemsOf(spec, list)) {
        for (const Json& port : ItemsOf(&container, "ports")) {
          const Json* number = FieldOf(port, "hostPort");
          if (number == nullptr && all) number = FieldOf(port, "containerPort");
          const bool counts = number != nullptr && number->is_number_integer() && *number > 0;
          if (counts) Add("host port " + number->dump());
        }
      }
    }
  }
  void AddOtherPods(const Json* spec) {
    for (const Json& spread : ItemsOf(spec, "topologySpreadConstraints")) {
      if (WordOf(&spread, "whenUnsatisfiable") == "ScheduleAnyway") continue;
      Add("spread over " + WordOf(&spread, "topologyKey"));
    }
    const Json* const affinity = FieldOf(spec, "affinity");
    for (const auto& [field, words] : {std::pair("podAffinity", "pod affinity over "),
                                       std::pair("podAntiAffinity", "pod anti-affinity over ")}) {
      const Json* const kind = FieldOf(affinity, field);
      for (const Json& term : ItemsOf(kind, "requiredDuringSchedulingIgnoredDuringExecution")) {
        Add(words + WordOf(&term, "topologyKey"));
      }
    }
  }
  void AddClaims(const Json* spec) {
    for (const Json& claim : ItemsOf(spec, "resourceClaims")) {
      const std::string name = WordOf(&claim, "resourceClaimName");
      Add("ResourceClaim " + (name.empty() ? WordOf(&claim, "name") : name));
    }
  }
  [[nodiscard]] const std::vector<std::string>& all() const { return all_; }

 private:
  // Of these kinds any number of pods of a node can have some, as OwnToScheduler::volumes has it.
  static bool IsFree(const Json& volume) {
    constexpr std::array kFree = {"configMap", "secret",      "emptyDir",
                                  "projected", "downwardAPI", "hostPath"};
    return std::ranges::any_of(
        kFree, [&volume](const char* kind) { return FieldOf(volume, kind) != nullptr; });
  }

  std::set<std::string> known_;
  std::vector<std::string> all_;
};

}  // namespace

void AddNotJudged(std::string what, std::vector<std::string>& all) {
  if (all.size() < kMostNotJudged) all.push_back(Shortened(what, kMostNotJudgedBytes));
}

std::vector<std::string> NotJudged(const Json& pod) {
  Names names;
  const Json* const spec = FieldOf(pod, "spec");
  names.AddVolumes(spec);
  names.AddPorts(spec);
  names.AddOtherPods(spec);
  names.AddClaims(spec);
  std::vector<std::string> told;
  const std::size_t count = names.all().size();
  const std::size_t most = count > kMostNotJudged ? kMostNotJudged - 1 : count;
  for (std::size_t i = 0; i < most; ++i) AddNotJudged(names.all()[i], told);
  if (count > most) told.push_back(std::to_string(count - most) + " others");
  return told;
}

}  // namespace berth::wire
