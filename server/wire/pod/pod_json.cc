// SPDX-License-Identifier: Apache-2.0
#include "server/wire/pod/pod_json.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <unordered_set>
#include <utility>
#include <vector>

#include "base/text.h"
#include "cluster/node/mig_use.h"
#include "server/wire/json/json_text.h"
#include "server/wire/json/object_meta.h"
#include "server/wire/json/object_reader.h"
#include "server/wire/json/selector_json.h"
#include "server/wire/pod/given_json.h"

namespace berth::wire {
namespace {

char Lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

// One entry of a resource list, as written.
struct Amount {
  std::string_view resource;
  std::string_view quantity;
};

constexpr std::string_view kDefaultScheduler = "default-scheduler";

// Of selector, affinity (each alternative counts too) and tolerations together.
constexpr std::size_t kMostConditions = 500;

class PodReader {
 public:
  explicit PodReader(const PodRules& rules) : rules_(rules) {}

  PodFields Read(object pod) {
    ForEachField(pod, [this](std::string_view key, value content) {
      if (IsField(key, "kind")) Take(fields_.kind, content);
      if (IsField(key, "metadata")) ReadMetadata(content.get_object());
      if (IsField(key, "spec")) ReadSpec(content.get_object());
      if (IsField(key, "status")) ReadStatus(content.get_object());
    });
    NameClaims();
    CheckConstraints();
    TakeGiven();
    if (parts_.scheduler == kDefaultScheduler) parts_.scheduler.clear();
    // Init containers first, wherever the text has them.
    parts_.containers = std::move(init_);
    for (ContainerSpec& container : main_) parts_.containers.push_back(std::move(container));
    for (const Dialect& dialect : rules_.dialects()) {
      const Status added = dialect.AddAnnotated(parts_);
      if (!added && parts_.problem.empty()) parts_.problem = added.error().message;
    }
    for (const Held& held : held_) CountHeld(held);
    return std::move(fields_);
  }

 private:
  static int Int32(value content) {
    constexpr std::int64_t kLow = std::numeric_limits<std::int32_t>::min();
    constexpr std::int64_t kHigh = std::numeric_limits<std::int32_t>::max();
    return static_cast<int>(std::clamp(std::int64_t{content.get_int64()}, kLow, kHigh));
  }
  static void Take(std::string& target, value content) {
    target = std::string_view(content.get_string());
  }

  // Every node is compared with every condition.
  void CheckConstraints() {
    NodeConstraints& constraints = parts_.constraints;
    std::size_t count = constraints.selector.size() + constraints.tolerations.size();
    if (constraints.either) {
      for (const NodeSelectorTerm& term : *constraints.either) {
        count += 1 + term.labels.size() + term.fields.size();
      }
    }
    if (count <= kMostConditions) return;
    constraints = {};
    if (!parts_.problem.empty()) return;
    parts_.problem = "node selector, node affinity and tolerations: want at most " +
                     std::to_string(kMostConditions) + " conditions, got " + std::to_string(count);
  }

  void ReadMetadata(object metadata) {
    ForEachField(metadata, [this](std::string_view key, value content) {
      if (IsField(key, "name")) Take(parts_.id.name, content);
      if (IsField(key, "namespace")) Take(parts_.id.namespace_name, content);
      if (IsField(key, "uid")) Take(parts_.id.uid, content);
      if (IsField(key, "resourceVersion")) Take(fields_.resource_version, content);
      if (IsField(key, "deletionTimestamp")) {
        fields_.terminating = true;
        fields_.ends = ParseTime(content.get_string());
      }
      if (IsField(key, "creationTimestamp")) fields_.created = ParseTime(content.get_string());
      if (IsField(key, "labels")) parts_.labels = ReadLabels(content.get_object());
      if (IsField(key, "ownerReferences")) ReadOwners(content.get_array());
      if (IsField(key, "annotations")) {
        ForEachField(content.get_object(), [this](std::string_view name, value text) {
          if (rules_.dialects().ReadsPod(name)) AddAnnotation(name, text.get_string());
          if (PodMoveWords::Reads(name)) parts_.move.Take(name, text.get_string());
        });
      }
    });
  }

  void AddAnnotation(std::string_view name, std::string_view value) {
    constexpr std::size_t kBeginning = 80;
    if (value.size() > kMostAnnotationBytes && !rules_.dialects().IsRecord(name)) {
      if (parts_.too_long.first.empty()) parts_.too_long = {std::string(name), value.size()};
      value = value.substr(0, kBeginning);
    }
    parts_.annotations.emplace(name, OnOneLine(std::string(value)));  // it is shown to others
  }

  // At most one of them is the controller.
  void ReadOwners(array owners) {
    ForEachItem(owners, [this](value owner) {
      std::string_view uid, kind, api, name;
      bool controls = false;
      ForEachField(owner.get_object(), [&](std::string_view key, value content) {
        if (IsField(key, "uid")) uid = content.get_string();
        if (IsField(key, "kind")) kind = content.get_string();
        if (IsField(key, "apiVersion")) api = content.get_string();
        if (IsField(key, "name")) name = content.get_string();
        if (IsField(key, "controller")) controls = content.get_bool();
      });
      if (!controls) return;
      parts_.controller = uid;
      parts_.controller_kind = kind;
      parts_.controller_api = api;
      parts_.controller_name = name;
      parts_.of_daemon_set = kind == "DaemonSet";
    });
  }

  void ReadSpec(object spec) {
    ForEachField(spec, [this](std::string_view key, value content) {
      if (IsField(key, "containers")) ReadContainers(content.get_array(), main_, "containers");
      if (IsField(key, "initContainers")) {
        ReadContainers(content.get_array(), init_, "initContainers");
      }
      if (IsField(key, "overhead")) {
        AddAll(parts_.overhead, ReadAmounts(content.get_object()), "overhead");
      }
      if (IsField(key, "resources")) ReadPodResources(content.get_object());
      if (IsField(key, "restartPolicy")) {
        const std::string_view policy = content.get_string();
        parts_.completes = policy == "Never" || policy == "OnFailure";
      }
      if (IsField(key, "resourceClaims")) {
        parts_.claims_devices = true;
        ReadClaims(content.get_array(), of_spec_);
      }
      if (IsField(key, "terminationGracePeriodSeconds")) {
        parts_.move.grace_seconds = std::clamp(Int32(content), 0, kMostGraceSeconds);
      }
      if (IsField(key, "activeDeadlineSeconds")) {
        std::int64_t limit = 0;  // also of a number that no deadline has
        const bool is_number = content.get_int64().get(limit) == simdjson::SUCCESS;
        const bool is_known = is_number && limit >= 1 && limit <= kMostRunSeconds;
        parts_.deadline_seconds = is_known ? limit : 0;
      }
      if (IsField(key, "schedulingGates")) ReadGates(content.get_array());
      ReadPlace(key, content);
      ReadOwnToScheduler(key, content);
    });
  }

  void ReadGates(array gates) {
    constexpr std::size_t kMostGates = 8, kMostGateBytes = 100;
    std::size_t names = 0;
    for (auto gate : gates) {
      if (names == 0) fields_.held_back = "scheduling gates hold it back";
      object fields;
      if (++names > kMostGates || gate.get_object().get(fields) != simdjson::SUCCESS) continue;
      ForEachField(fields, [this, names](std::string_view key, value content) {
        if (key != "name") return;
        fields_.held_back += names == 1 ? ": " : ", ";
        fields_.held_back += Shortened(wire::TextOf(content), kMostGateBytes);
      });
    }
  }

  void ReadOwnToScheduler(std::string_view key, value content) {
    if (IsField(key, "volumes")) {
      ForEachItem(content.get_array(), [this](value volume) { ReadVolume(volume.get_object()); });
    }
    if (IsField(key, "topologySpreadConstraints")) {
      ForEachItem(content.get_array(), [this](value constraint) {
        ForEachField(constraint.get_object(), [this](std::string_view name, value text) {
          if (!IsField(name, "whenUnsatisfiable")) return;
          parts_.own_to_scheduler.minds_others |=
              std::string_view(text.get_string()) != "ScheduleAnyway";
        });
      });
    }
  }

  // Those of these kinds any number of pods of a node can have.
  void ReadVolume(object volume) {
    ForEachField(volume, [this](std::string_view key, value) {
      constexpr std::array kFree = {"name",      "configMap",   "secret",  "emptyDir",
                                    "projected", "downwardAPI", "hostPath"};
      const bool is_free =
          std::ranges::any_of(kFree, [key](const char* kind) { return IsField(key, kind); });
      parts_.own_to_scheduler.volumes |= !is_free;
      parts_.move.has_host_path |= IsField(key, "hostPath");
    });
  }

  // The fields of the spec that say where the pod may go and before whom.
  void ReadPlace(std::string_view key, value content) {
    NodeConstraints& constraints = parts_.constraints;
    if (IsField(key, "nodeName")) Take(fields_.node, content);
    if (IsField(key, "priority")) parts_.priority = Int32(content);
    if (IsField(key, "preemptionPolicy")) {
      parts_.may_preempt = std::string_view(content.get_string()) != "Never";
    }
    if (IsField(key, "nodeSelector")) {
      constraints.selector = ReadNodeSelector(content.get_object());
    }
    if (IsField(key, "tolerations")) constraints.tolerations = ReadTolerations(content.get_array());
    if (IsField(key, "affinity")) {
      const Status read = ReadAffinity(content.get_object(), constraints, parts_.own_to_scheduler);
      if (!read && parts_.problem.empty()) {
        parts_.problem = "affinity.nodeAffinity" + read.error().message;
      }
    }
    if (IsField(key, "schedulerName")) Take(parts_.scheduler, content);
    if (IsField(key, "priorityClassName")) Take(parts_.priority_class, content);
    if (IsField(key, "schedulingGroup")) {
      ForEachField(content.get_object(), [this](std::string_view name, value text) {
        if (IsField(name, "podGroupName")) Take(parts_.pod_group, text);
      });
    }
  }

  void ReadStatus(object status) {
    ForEachField(status, [this](std::string_view key, value content) {
      if (IsField(key, "phase")) Take(fields_.phase, content);
      if (IsField(key, "startTime")) fields_.started = ParseTime(content.get_string());
      if (IsField(key, "nominatedNodeName")) TakeNominated(content.get_string());
      if (IsField(key, "reason")) Take(fields_.reason, content);
      if (IsField(key, "message")) Take(fields_.message, content);
      if (IsField(key, "resourceClaimStatuses")) ReadClaims(content.get_array(), of_status_);
      if (IsField(key, "extendedResourceClaimStatus")) {
        ForEachField(content.get_object(), [this](std::string_view name, value text) {
          if (!IsField(name, "resourceClaimName")) return;
          parts_.made_claim = NumberOfClaim(text.get_string());
        });
      }
      if (IsField(key, "conditions")) ReadConditions(content.get_array());
      if (IsField(key, "containerStatuses") || IsField(key, "initContainerStatuses")) {
        ReadContainerStatuses(content.get_array());
      }
      ReadHeld(key, content, held_.front().ask);
    });
  }

  // The CPU and memory that the kubelet has allocated to a container or, without a name, to the
  // pod, and what it gives: other amounts than the spec's while a resize is under way.
  struct Held {
    std::string_view name = {};
    ResourceAsk ask = {};
  };

  void ReadHeld(std::string_view key, value content, ResourceAsk& held) {
    if (IsField(key, "allocatedResources")) AddHeld(content.get_object(), held);
    if (!IsField(key, "resources")) return;
    ForEachField(content.get_object(), [&](std::string_view name, value amounts) {
      if (IsField(name, "requests")) AddHeld(amounts.get_object(), held);
    });
  }
  void AddHeld(object amounts, ResourceAsk& held) {
    for (const Amount& amount : ReadAmounts(amounts)) {
      ResourceAsk one;
      if (amount.resource != "cpu" && amount.resource != "memory") continue;
      if (rules_.Add(amount.resource, amount.quantity, one)) held.Raise(one);
    }
  }

  // The most of all three counts, as for kube-scheduler; the spec's does not where the kubelet has
  // found that the node cannot give it.
  void CountHeld(const Held& held) {
    const auto count = [this](std::int64_t& spec, std::int64_t given) {
      if (given > 0) spec = infeasible_ ? given : std::max(spec, given);
    };
    if (&held == &held_.front()) {
      if (parts_.pod_cpu_milli) count(*parts_.pod_cpu_milli, held.ask.cpu_milli);
      if (parts_.pod_memory_bytes) count(*parts_.pod_memory_bytes, held.ask.memory_bytes);
      return;
    }
    const auto container = std::ranges::find(parts_.containers, held.name, &ContainerSpec::name);
    if (container == parts_.containers.end() || container->kind == ContainerKind::kInit) return;
    count(container->ask.cpu_milli, held.ask.cpu_milli);
    count(container->ask.memory_bytes, held.ask.memory_bytes);
  }

  void TakeNominated(std::string_view node) {
    if (node.size() <= kMostNameBytes) fields_.nominated = node;
  }

  void ReadContainerStatuses(array list) {
    ForEachItem(list, [this](value container) {
      Held& held = held_.emplace_back();
      ForEachField(container.get_object(), [this, &held](std::string_view key, value content) {
        if (IsField(key, "name")) held.name = content.get_string();
        ReadHeld(key, content, held.ask);
        if (IsField(key, "state")) ReadContainerState(content.get_object());
        if (!IsField(key, "allocatedResourcesStatus")) return;
        ForEachItem(content.get_array(),
                    [this](value resource) { ReadAllocated(resource.get_object()); });
      });
    });
  }

  void ReadContainerState(object state) {
    ForEachField(state, [this](std::string_view key, value content) {
      if (!IsField(key, "terminated")) return;
      ForEachField(content.get_object(), [this](std::string_view name, value text) {
        if (!IsField(name, "finishedAt")) return;
        const std::optional<WallTime> finished = ParseTime(text.get_string());
        if (finished) fields_.finished = std::max(fields_.finished.value_or(*finished), *finished);
      });
    });
  }

  // The name comes first, as in all lists of the API server; one without is nobody's.
  void ReadAllocated(object resource) {
    GivenKind kind = GivenKind::kOther;
    const auto is_gpus = [this](std::string_view name) { return rules_.CountsGpus(name); };
    ForEachField(resource, [&](std::string_view key, value content) {
      if (IsField(key, "name")) kind = KindOfResource(content.get_string(), is_gpus);
      if (kind == GivenKind::kOther || !IsField(key, "resources")) return;
      ForEachItem(content.get_array(), [&](value device) {
        std::string_view id, health;
        ForEachField(device.get_object(), [&](std::string_view name, value text) {
          if (IsField(name, "resourceID")) id = text.get_string();
          if (IsField(name, "health")) health = text.get_string();
        });
        given_.Add(kind, id, health);
      });
    });
  }

  void TakeGiven() {
    Result<GivenDevices> given = given_.Finish();
    if (given) {
      fields_.given = *std::move(given);
    } else {
      fields_.given_problem = "status.containerStatuses: " + given.error().message;
    }
  }

  // Of claims by name the spec says it, of those by template the status, once they are made.
  struct PodClaim {
    std::string name = {};                  // in the pod
    std::optional<std::string> claim = {};  // nothing: none is said
  };
  static void ReadClaims(array list, std::vector<PodClaim>& claims) {
    ForEachItem(list, [&claims](value item) {
      PodClaim read;
      ForEachField(item.get_object(), [&read](std::string_view key, value text) {
        if (IsField(key, "name")) read.name = wire::TextOf(text);
        if (IsField(key, "resourceClaimName")) read.claim = wire::TextOf(text);
      });
      if (claims.size() <= kMostPodClaims) claims.push_back(std::move(read));
    });
  }

  // In the pod's order: in that kube-scheduler allocates them.
  void NameClaims() {
    for (PodClaim& asked : of_spec_) {
      const auto made = std::ranges::find(of_status_, asked.name, &PodClaim::name);
      if (!asked.claim && made != of_status_.end()) {
        if (!made->claim) continue;  // none is needed
        asked.claim = made->claim;
      }
      parts_.claims.push_back(asked.claim.value_or(""));
    }
  }

  // A pod that a gate holds back has another reason.
  void ReadConditions(array conditions) {
    ForEachItem(conditions, [this](value condition) {
      std::string_view type, reason, message;
      ForEachField(condition.get_object(), [&](std::string_view key, value content) {
        if (IsField(key, "type")) type = content.get_string();
        if (IsField(key, "reason")) reason = content.get_string();
        if (IsField(key, "message")) message = content.get_string();
      });
      if (type == "DisruptionTarget") fields_.evicted = reason == "EvictionByEvictionAPI";
      if (type == "PodResizePending") infeasible_ = reason == "Infeasible";
      if (type != "PodScheduled") return;
      fields_.unschedulable = reason == "Unschedulable";
      fields_.scheduler_said =
          fields_.unschedulable ? OnOneLine(Shortened(message, kMostSaid)) : "";
    });
  }

  void ReadContainers(array list, std::vector<ContainerSpec>& containers, std::string_view field) {
    ForEachItem(list, [&](value item) {
      ContainerSpec container;
      container.kind = &containers == &init_ ? ContainerKind::kInit : ContainerKind::kMain;
      const std::string place =
          std::string(field) + "[" + std::to_string(containers.size()) + "].resources";
      ForEachField(item.get_object(), [&](std::string_view key, value content) {
        if (IsField(key, "name")) container.name = std::string_view(content.get_string());
        if (IsField(key, "resources")) container.ask = ReadResources(content.get_object(), place);
        if (IsField(key, "ports")) ReadPorts(content.get_array());
        if (IsField(key, "restartPolicy") && container.kind == ContainerKind::kInit &&
            std::string_view(content.get_string()) == "Always") {
          container.kind = ContainerKind::kSidecar;
        }
      });
      containers.push_back(std::move(container));
    });
  }

  void ReadPorts(array ports) {
    ForEachItem(ports, [this](value port) {
      ForEachField(port.get_object(), [this](std::string_view key, value number) {
        if (IsField(key, "hostPort")) parts_.own_to_scheduler.host_ports |= Int32(number) > 0;
      });
    });
  }

  // Requests; a limit stands in where a container has no request of that resource (the API server
  // does the same).
  ResourceAsk ReadResources(object resources, const std::string& place) {
    std::vector<Amount> requests, limits;
    ForEachField(resources, [&](std::string_view key, value content) {
      if (IsField(key, "requests")) requests = ReadAmounts(content.get_object());
      if (IsField(key, "limits")) limits = ReadAmounts(content.get_object());
    });
    std::unordered_set<std::string_view> requested;
    for (const Amount& request : requests) requested.insert(request.resource);
    std::erase_if(limits, [&](const Amount& limit) { return requested.contains(limit.resource); });
    ResourceAsk ask;
    AddAll(ask, requests, place + ".requests");
    AddAll(ask, limits, place + ".limits");
    return ask;
  }

  static std::vector<Amount> ReadAmounts(object list) {
    std::vector<Amount> amounts;
    ForEachField(list, [&](std::string_view key, value content) {
      amounts.push_back({key, ScalarText(content)});
    });
    return amounts;
  }

  void ReadPodResources(object resources) {
    ForEachField(resources, [this](std::string_view key, value content) {
      if (!IsField(key, "requests")) return;
      ForEachField(content.get_object(), [this](std::string_view name, value quantity) {
        const bool cpu = name == "cpu";
        if (!cpu && name != "memory") return;
        ResourceAsk ask;
        AddTo(ask, cpu ? "cpu" : "memory", ScalarText(quantity), "resources.requests");
        if (cpu) {
          parts_.pod_cpu_milli = ask.cpu_milli;
        } else {
          parts_.pod_memory_bytes = ask.memory_bytes;
        }
      });
    });
  }

  void AddAll(ResourceAsk& ask, const std::vector<Amount>& amounts, const std::string& place) {
    for (const Amount& amount : amounts) AddTo(ask, amount.resource, amount.quantity, place);
  }

  void AddTo(ResourceAsk& ask, std::string_view resource, std::string_view quantity,
             std::string_view place) {
    Status added = rules_.Add(resource, quantity, ask);
    if (!added && parts_.problem.empty()) {
      parts_.problem = std::string(place) + "." + added.error().message;
    }
  }

  const PodRules& rules_;
  PodFields fields_;
  PodParts& parts_ = fields_.parts;
  std::vector<ContainerSpec> init_;
  std::vector<ContainerSpec> main_;
  std::vector<Held> held_{1};  // that of the pod, then those of containers
  bool infeasible_ = false;
  GivenCollector given_{Evidence::kKubelet};
  std::vector<PodClaim> of_spec_, of_status_;
};

}  // namespace

std::string_view ScalarText(value content) {
  if (content.type() != simdjson::ondemand::json_type::number) return content.get_string();
  const std::string_view token = content.raw_json_token();
  return token.substr(0, token.find_last_not_of(" \n\r\t") + 1);
}

bool IsField(std::string_view key, std::string_view field) {
  if (key.size() != field.size()) return false;
  for (std::size_t i = 0; i < key.size(); ++i) {
    if (key[i] != field[i] && Lower(key[i]) != Lower(field[i])) return false;
  }
  return true;
}

PodRequest DecodePod(object pod, const PodRules& rules) {
  return rules.ToRequest(ReadPod(pod, rules).parts);
}

PodFields ReadPod(object pod, const PodRules& rules) { return PodReader(rules).Read(pod); }

std::string DecodePodUid(object pod) {
  const ObjectMeta meta = ReadObjectMeta(pod);
  return meta.uid.empty() ? meta.namespace_name + "/" + meta.name : meta.uid;
}

}  // namespace berth::wire
