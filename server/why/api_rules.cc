// SPDX-License-Identifier: Apache-2.0
#include "server/why/api_rules.h"

#include <algorithm>
#include <array>
#include <optional>
#include <set>
#include <string_view>

#include "base/quantity.h"
#include "base/text.h"
#include "cluster/values/pod_request.h"
#include "server/why/plan_objects.h"

namespace berth::wire {
namespace {

constexpr std::array kContainerLists = {"initContainers", "containers"};

bool MayBeOvercommitted(std::string_view name) {
  return !IsExtendedResource(name) && !name.starts_with("hugepages-");
}

bool IsKnownWithoutDomain(std::string_view name) {
  constexpr std::array<std::string_view, 3> kNames = {"cpu", "memory", "ephemeral-storage"};
  return std::ranges::find(kNames, name) != kNames.end() || name.starts_with("hugepages-");
}

std::string AsWritten(const Json& amount) {
  return amount.is_string() ? amount.get<std::string>() : amount.dump(-1, ' ', true);
}

std::optional<Quantity> AmountIn(const Json* list, const std::string& name) {
  const Json* const amount = FieldOf(list, name.c_str());
  const auto read =
      amount == nullptr ? std::nullopt : std::optional(Quantity::Parse(AsWritten(*amount)));
  return read && *read ? std::optional(**read) : std::nullopt;
}

// What is wrong with one amount by itself.
std::string WrongAmount(const std::string& name, const Json& amount) {
  const std::string text = AsWritten(amount);
  const std::string got = ", got " + Shortened(text, 40);
  if (name.find('/') == std::string::npos && !IsKnownWithoutDomain(name)) {
    return "want a resource of Kubernetes, or a name with a domain";
  }
  if (name.starts_with("requests.")) return "want no \"requests.\" before it, as quotas have it";
  const auto quantity = Quantity::Parse(text);
  if (!quantity) return quantity.error().message;
  if (quantity->sign() < 0) return "want 0 or more" + got;
  if (IsExtendedResource(name) && !quantity->Exactly(0)) return "want an integer" + got;
  return "";
}

// The same of a request, beside its limit.
std::string WrongRequest(const std::string& name, const Json& amount, const Json* limits) {
  const auto request = Quantity::Parse(AsWritten(amount));
  const auto limit = AmountIn(limits, name);
  const std::string got = ", got " + Shortened(AsWritten(amount), 40);
  if (!limit) return MayBeOvercommitted(name) ? "" : "want a limit of as much beside it, got none";
  const std::string said = Shortened(AsWritten(*FieldOf(limits, name.c_str())), 40);
  if (!MayBeOvercommitted(name) && *request != *limit) return "want the limit, " + said + got;
  return *request > *limit ? "want at most the limit, " + said + got : "";
}

// What kubectl says of a field that is nearly one that decides where a pod goes, or one at another
// place: ":nodeSelectors: unknown field, did you mean nodeSelector?". "": there is none.
std::string WrongField(const Json* object, std::string_view known, std::string_view elsewhere) {
  if (object == nullptr || !object->is_object()) return "";
  const std::vector<std::string_view> names = PartsOf(known, ' ');
  for (const auto& [key, value] : object->items()) {
    if (std::ranges::find(names, key) != names.end()) continue;
    std::string meant;
    for (const std::string_view name : names) {
      if (EditDistance(key, name) <= 2) meant = name;
    }
    for (const std::string_view path : PartsOf(elsewhere, ' ')) {
      if (path.substr(path.rfind('.') + 1) == key) meant = path;
    }
    if (!meant.empty())
      return ':' + Shortened(key, 63) + ": unknown field, did you mean " + meant + "?";
  }
  return "";
}

std::string WrongResources(const Json& container, bool of_pod) {
  const Json* const resources = FieldOf(container, "resources");
  const Json* const limits = FieldOf(resources, "limits");
  bool has_pages = false, has_other = false;
  for (const char* list : {"limits", "requests"}) {
    const Json* const amounts = FieldOf(resources, list);
    if (amounts == nullptr || !amounts->is_object()) continue;
    for (const auto& [name, amount] : amounts->items()) {
      std::string wrong = WrongAmount(name, amount);
      if (wrong.empty() && amounts != limits) wrong = WrongRequest(name, amount, limits);
      if (of_pod && IsExtendedResource(name)) wrong = "want it in a container";
      has_pages = has_pages || name.starts_with("hugepages-");
      has_other = has_other || name == "cpu" || name == "memory";
      if (wrong.empty()) continue;
      return "resources." + std::string(list) + "[" + Shortened(name, 63) + "]: " + wrong;
    }
  }
  return has_pages && !has_other ? "resources: want cpu or memory beside huge pages" : "";
}

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

// The first field of the pod that is wrong so, with its path; "": none.
std::string MisplacedField(const Json& pod) {
  constexpr std::string_view kResources = "limits requests claims";
  constexpr std::string_view kPodFields =
      "containers initContainers nodeSelector tolerations affinity schedulerName resources "
      "priorityClassName topologySpreadConstraints resourceClaims runtimeClassName schedulingGates";
  std::string wrong;
  const auto look = [&wrong](const std::string& at, const Json* object, std::string_view known,
                             std::string_view elsewhere = "") {
    if (wrong.empty()) wrong = WrongField(object, known, elsewhere);
    if (wrong.starts_with(':')) wrong.replace(0, 1, at);
  };
  const Json* const spec = FieldOf(pod, "spec");
  look("metadata.", FieldOf(pod, "metadata"), "annotations labels");
  look("spec.", spec, kPodFields, "resources.limits");
  look("spec.resources.", FieldOf(spec, "resources"), kResources);
  for (const char* list : kContainerLists) {
    const Json& containers = ItemsOf(spec, list);
    for (std::size_t i = 0; i < containers.size(); ++i) {
      const std::string at = "spec." + std::string(list) + "[" + std::to_string(i) + "].";
      look(at, &containers[i], "resources",
           "resources.limits resources.requests spec.nodeSelector spec.tolerations spec.affinity");
      look(at + "resources.", FieldOf(containers[i], "resources"), kResources);
    }
  }
  return wrong;
}

}  // namespace

std::string RefusedByApiServer(const Json& pod) {
  const Json* const spec = FieldOf(pod, "spec");
  if (const std::string wrong = MisplacedField(pod); !wrong.empty()) {
    return "kubectl refuses " + wrong;
  }
  if (ItemsOf(spec, "containers").empty()) {
    return "the API server refuses spec.containers: want at least one";
  }
  if (const std::string wrong = spec == nullptr ? "" : WrongResources(*spec, true); !wrong.empty())
    return "the API server refuses spec." + wrong;
  for (const char* list : kContainerLists) {
    const Json& containers = ItemsOf(spec, list);
    for (std::size_t i = 0; i < containers.size(); ++i) {
      const std::string wrong = WrongResources(containers[i], false);
      if (wrong.empty()) continue;
      return "the API server refuses spec." + std::string(list) + "[" + std::to_string(i) + "]." +
             wrong;
    }
  }
  return "";
}

std::vector<std::string> ExtendedResourcesOf(const Json& pod) {
  std::vector<std::string> names;
  for (const char* list : kContainerLists) {
    for (const Json& container : ItemsOf(FieldOf(pod, "spec"), list)) {
      for (const char* amounts : {"limits", "requests"}) {
        const Json* const of = FieldOf(FieldOf(container, "resources"), amounts);
        if (of == nullptr || !of->is_object()) continue;
        for (const auto& [name, amount] : of->items()) {
          const bool is_new = std::ranges::find(names, name) == names.end();
          if (is_new && IsExtendedResource(name) && names.size() < kMostOtherResources) {
            names.push_back(name);
          }
        }
      }
    }
  }
  return names;
}

bool RunsResourceToleration(const Snapshot& snapshot) {
  constexpr std::array<std::string_view, 3> kClouds = {
      "cloud.google.com/gke-", "kubernetes.azure.com/", "eks.amazonaws.com/"};
  for (NodeIndex i = 0; i < snapshot.size(); ++i) {
    for (const auto& [key, value] : snapshot.node(i).spec().labels) {
      const std::string_view label = key;
      if (std::ranges::any_of(kClouds, [label](auto cloud) { return label.starts_with(cloud); })) {
        return true;
      }
    }
  }
  return false;
}

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
