// SPDX-License-Identifier: Apache-2.0
#include "server/wire/plan_json.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "server/wire/explain_parts.h"
#include "server/wire/json_check.h"
#include "server/wire/node_shape.h"
#include "server/wire/pod_object.h"
#include "server/wire/strict_json.h"

namespace berth::wire {
namespace {

constexpr int kPlanVersion = 1;

// --- what is asked

// nullptr: the field is not there, or nothing has fields there.
const Json* FieldOf(const Json& object, const char* key) {
  if (!object.is_object()) return nullptr;
  const auto found = object.find(key);
  return found == object.end() || found->is_null() ? nullptr : &*found;
}

std::string WordOf(const Json* object, const char* key) {
  const Json* const found = object == nullptr ? nullptr : FieldOf(*object, key);
  return found != nullptr && found->is_string() ? found->get<std::string>() : "";
}

class PlanReader {
 public:
  PlanReader(const PodRules& rules, PlanRequest& request) : rules_(rules), request_(request) {}

  // kind: of an item of a list that says the kind of its items.
  Status Read(const Json& object, const std::string& path, const std::string& kind_of_items = "") {
    if (!object.is_object()) return Invalid(path + ": want an object, got " + object.type_name());
    std::string kind = WordOf(&object, "kind");
    if (kind.empty()) kind = kind_of_items.empty() ? "Pod" : kind_of_items;
    if (kind.ends_with("List")) return ReadList(object, path, kind.substr(0, kind.size() - 4));
    if (kind == "Pod") return ReadPod(object, path);
    if (kind == "Job") return ReadJob(object, path);
    for (const char* owner : {"Deployment", "ReplicaSet", "ReplicationController", "StatefulSet"}) {
      if (kind != owner) continue;
      BERTH_TRY(const std::int64_t replicas, Count(object, path, "replicas"));
      return ReadTemplate(object, path, kind, replicas);
    }
    LeaveOut(kind, object, "no pods of this kind are known");
    return {};
  }

 private:
  static std::string NamespaceOf(const Json& object) {
    const std::string space = WordOf(FieldOf(object, "metadata"), "namespace");
    return space.empty() ? "default" : space;
  }
  static std::string NameOf(const Json& object) {
    return WordOf(FieldOf(object, "metadata"), "name");
  }
  void LeaveOut(const std::string& kind, const Json& object, const std::string& why) {
    request_.left_out.push_back(kind + " " + NamespaceOf(object) + "/" + NameOf(object) + ": " +
                                why);
  }

  Status ReadList(const Json& list, const std::string& path, const std::string& kind) {
    const Json* const items = FieldOf(list, "items");
    if (items == nullptr) return {};
    if (!items->is_array()) {
      return Invalid(path + ".items: want a list, got " + items->type_name());
    }
    for (std::size_t i = 0; i < items->size(); ++i) {
      const std::string place = path + ".items[" + std::to_string(i) + "]";
      if (WordOf(&(*items)[i], "kind").ends_with("List")) {
        return Invalid(place + ".kind: want no list inside of a list");
      }
      BERTH_TRY_STATUS(Read((*items)[i], place, kind));
    }
    return {};
  }

  // spec.KEY, 1 where it is not said.
  static Result<std::int64_t> Count(const Json& object, const std::string& path, const char* key) {
    const Json* const spec = FieldOf(object, "spec");
    const Json* const count = spec == nullptr ? nullptr : FieldOf(*spec, key);
    if (count == nullptr) return 1;
    const bool is_count = count->is_number_unsigned() ||
                          (count->is_number_integer() && count->get<std::int64_t>() >= 0);
    if (!is_count)
      return Invalid(path + ".spec." + key + ": want a number of pods, got " +
                     JsonText(*count).substr(0, 100));
    constexpr std::uint64_t kMost = kMostPlannedPods + 1;
    return static_cast<std::int64_t>(std::min(count->get<std::uint64_t>(), kMost));
  }

  // As many as run at the same time.
  Status ReadJob(const Json& job, const std::string& path) {
    BERTH_TRY(std::int64_t pods, Count(job, path, "parallelism"));
    const Json* const spec = FieldOf(job, "spec");
    if (spec != nullptr && FieldOf(*spec, "completions") != nullptr) {
      BERTH_TRY(const std::int64_t completions, Count(job, path, "completions"));
      pods = std::min(pods, completions);
    }
    return ReadTemplate(job, path, "Job", pods);
  }

  Status ReadTemplate(const Json& owner, const std::string& path, const std::string& kind,
                      std::int64_t count) {
    const std::string name = NameOf(owner);
    if (name.empty()) return Invalid(path + ".metadata.name: want a name, got none");
    const Json* const spec = FieldOf(owner, "spec");
    const Json* const pod = spec == nullptr ? nullptr : FieldOf(*spec, "template");
    if (pod == nullptr || !pod->is_object()) {
      return Invalid(path + ".spec.template: want a template of pods, got none");
    }
    BERTH_TRY(const ObservedPod decoded,
              Decode(*pod, path + ".spec.template", NamespaceOf(owner), name + "-0"));
    BERTH_TRY_STATUS(HasRoomFor(static_cast<std::size_t>(count), path));
    request_.sources.push_back({kind + " " + decoded.pod.id.namespace_name + "/" + name,
                                request_.pods.size(), static_cast<std::size_t>(count)});
    for (std::int64_t i = 0; i < count; ++i) {
      PodRequest& replica = request_.pods.emplace_back(decoded.pod);
      replica.id.name = name + "-" + std::to_string(i);
      replica.id.uid = UidOf(request_.pods.size() - 1);
    }
    return {};
  }

  Status ReadPod(const Json& pod, const std::string& path) {
    const std::size_t number = request_.pods.size();
    const std::string said = NameOf(pod);
    const std::string name = said.empty() ? "pod-" + std::to_string(number) : said;
    BERTH_TRY(ObservedPod decoded, Decode(pod, path, NamespaceOf(pod), name));
    if (decoded.over || !decoded.node.empty()) {
      LeaveOut("Pod", pod, decoded.over ? "it has ended" : "it is on node " + decoded.node);
      return {};
    }
    BERTH_TRY_STATUS(HasRoomFor(1, path));
    request_.sources.push_back({"Pod " + decoded.pod.id.full_name(), number, 1});
    request_.pods.push_back(std::move(decoded.pod));
    return {};
  }

  // Unlike any that the API server gives.
  static std::string UidOf(std::size_t number) { return "plan-" + std::to_string(number); }

  Result<ObservedPod> Decode(const Json& from, const std::string& path, const std::string& space,
                             const std::string& name) const {
    Json pod = from;
    pod["kind"] = "Pod";
    Json& metadata = pod["metadata"];
    if (metadata.is_null()) metadata = Json::object();
    if (!metadata.is_object()) {
      return Invalid(path + ".metadata: want an object, got " + metadata.type_name());
    }
    metadata["name"] = name;
    metadata["namespace"] = space;
    metadata["uid"] = UidOf(request_.pods.size());
    auto decoded = DecodeObservedPod(PaddedText(JsonText(pod)), rules_);
    if (!decoded) return Invalid(path + ": " + decoded.error().message);
    return decoded;
  }

  [[nodiscard]] Status HasRoomFor(std::size_t more, const std::string& path) const {
    if (request_.pods.size() + more <= kMostPlannedPods) return {};
    return Invalid(path + ": want at most " + std::to_string(kMostPlannedPods) +
                   " pods in all, got more");
  }

  const PodRules& rules_;
  PlanRequest& request_;
};

// --- what is answered

std::int64_t IdleOf(const std::vector<ModelSummary>& models) {
  std::int64_t idle = 0;
  for (const ModelSummary& model : models) idle += model.idle;
  return idle;
}

std::string PlanSentence(const WhatIfAnswer& answer) {
  return std::to_string(answer.fitting) + " of " + CountText(std::ssize(answer.pods), "pod") +
         " fit; idle GPUs: " + std::to_string(IdleOf(answer.before)) + " before, " +
         std::to_string(IdleOf(answer.after)) + " after";
}

Json WhyJson(const WhyNot& why) {
  Json json = {{"text", why.text}, {"pods", why.pods}};
  json["reasons"] = why.told ? CountsJson(why.told->counts) : Json::array();
  json["nearest"] = Json::array();
  if (!why.told) return json;
  for (const NearNodeFacts& near : why.told->nearest) json["nearest"].push_back(NearJson(near));
  return json;
}

// "on n1 with GPU 0, GPU 1".
std::string PlaceText(const Placement& placement) {
  std::string devices;
  const auto add = [&devices](const std::string& device) {
    devices += (devices.empty() ? " with " : ", ") + device;
  };
  for (const DeviceGrant& grant : placement.grants) add(berth::TextOf(grant));
  for (const MigGrant& grant : placement.mig) add(berth::NameOf(grant));
  if (placement.places > 0) add(CountText(placement.places, "place"));
  return "on " + placement.node + devices;
}

// "2 on n1, 1 on n2", in the order in which they come first.
std::string NodesText(const PlanRequest::Source& source, const WhatIfAnswer& answer) {
  constexpr std::size_t kTold = 8;
  std::vector<std::pair<std::string, int>> nodes;
  for (std::size_t i = source.first; i < source.first + source.count; ++i) {
    if (!answer.pods[i].placement) continue;
    const std::string& name = answer.pods[i].placement->node;
    const auto known = std::ranges::find(nodes, name, &std::pair<std::string, int>::first);
    if (known == nodes.end()) {
      nodes.emplace_back(name, 1);
    } else {
      ++known->second;
    }
  }
  std::string text;
  for (std::size_t i = 0; i < std::min(kTold, nodes.size()); ++i) {
    text += (i == 0 ? "" : ", ") + std::to_string(nodes[i].second) + " on " + nodes[i].first;
  }
  if (nodes.size() > kTold) {
    text += " and " + CountText(static_cast<std::int64_t>(nodes.size() - kTold), "more node");
  }
  return text;
}

std::string SourceText(const PlanRequest::Source& source, const WhatIfAnswer& answer) {
  std::int64_t fit = 0;
  std::vector<std::pair<std::size_t, std::int64_t>> whys;  // which -> of how many pods
  for (std::size_t i = source.first; i < source.first + source.count; ++i) {
    const WhatIfPod& pod = answer.pods[i];
    if (pod.placement) {
      ++fit;
    } else if (!whys.empty() && whys.back().first == pod.why) {
      ++whys.back().second;
    } else {
      whys.emplace_back(pod.why, 1);
    }
  }
  std::string text = source.what + ": ";
  if (source.count == 1) {
    const WhatIfPod& pod = answer.pods[source.first];
    return text +
           (pod.placement ? "fits " + PlaceText(*pod.placement)
                          : "does not fit: " + answer.whys[pod.why].text) +
           "\n";
  }
  text += std::to_string(fit) + " of " + CountText(static_cast<std::int64_t>(source.count), "pod") +
          " fit";
  if (fit > 0) text += ": " + NodesText(source, answer);
  text += "\n";
  for (const auto& [why, pods] : whys) {
    text += "  " + std::to_string(pods) + (pods == 1 ? " does not: " : " do not: ") +
            answer.whys[why].text + "\n";
  }
  return text;
}

std::string NodeEditsText(const EditedNodes& nodes) {
  constexpr std::size_t kTold = 5;
  std::string text;
  if (!nodes.added.empty()) {
    text += CountText(std::ssize(nodes.added), "node") + " added: " + nodes.added.front();
    if (nodes.added.size() > 1) text += " to " + nodes.added.back();
    text += "\n";
  }
  if (nodes.removed.empty()) return text;
  text += CountText(std::ssize(nodes.removed), "node") + " removed: ";
  if (nodes.pods_lost == 0) return text + "no pod is there\n";
  text += CountText(nodes.pods_lost, "pod") + " lost with it, " +
          std::to_string(nodes.gpu_pods_lost.size()) + " with GPUs";
  for (std::size_t i = 0; i < std::min(kTold, nodes.gpu_pods_lost.size()); ++i) {
    text += (i == 0 ? " (" : ", ") + nodes.gpu_pods_lost[i];
  }
  if (nodes.gpu_pods_lost.size() > kTold) text += ", ...";
  if (!nodes.gpu_pods_lost.empty()) text += ")";
  return text + "; they are not placed again here\n";
}

Status ReadCopies(const Json& json, const std::string& path, const NodeRules& rules,
                  PlanRequest& request) {
  NodeCopies copies;
  Fields fields(json, path);
  const Json* const like = fields.Peek("like");
  if (like != nullptr && like->is_object()) {
    fields.Object("like", [&](const Json& shape, const std::string& place) -> Status {
      auto node = DecodeNodeShape(shape, rules);
      if (!node) return tl::unexpected(std::move(node).error().Within(place));
      if (!node->problem.empty()) request.left_out.push_back(place + ": " + node->problem);
      copies.like = node->spec.name;
      copies.shape = std::move(node->spec);
      return {};
    });
  } else {
    fields.Text("like", copies.like);
  }
  fields.Int("count", 1, kMostAddedNodes, copies.count);
  request.nodes.add.push_back(std::move(copies));
  return fields.Finish();
}

}  // namespace

Result<PlanRequest> DecodePlan(std::string_view text, const PodRules& rules,
                               const NodeRules& nodes) {
  if (text.size() > kMostPlanBytes) {
    return Invalid("body: want at most " + std::to_string(kMostPlanBytes) + " bytes, got " +
                   std::to_string(text.size()));
  }
  BERTH_TRY_STATUS(CheckJson(text));
  const Json json = Json::parse(text, nullptr, false);
  if (json.is_discarded()) return Invalid("body: want JSON in UTF-8, got something else");
  PlanRequest request;
  PlanReader reader(rules, request);
  Fields fields(json, "");
  fields.List("pods",
              [&](const Json& item, const std::string& path) { return reader.Read(item, path); });
  fields.List("add", [&](const Json& item, const std::string& path) {
    return ReadCopies(item, path, nodes, request);
  });
  fields.List("remove", [&](const Json& item, const std::string& path) -> Status {
    if (!item.is_string()) return Invalid(path + ": want the name of a node");
    request.nodes.remove.push_back(item);
    return {};
  });
  BERTH_TRY_STATUS(fields.Finish());
  return request;
}

std::string EncodePlan(const PlanRequest& request, const WhatIfAnswer& answer) {
  Json json = {{"version", kPlanVersion},
               {"sentence", PlanSentence(answer)},
               {"asked", answer.pods.size()},
               {"fitting", answer.fitting}};
  json["pods"] = Json::array();
  for (const PlanRequest::Source& source : request.sources) {
    for (std::size_t i = source.first; i < source.first + source.count; ++i) {
      const WhatIfPod& planned = answer.pods[i];
      Json pod = {{"pod", request.pods[i].id.full_name()},
                  {"of", source.what},
                  {"fits", planned.placement.has_value()}};
      if (planned.placement) {
        pod["node"] = planned.placement->node;
        pod["devices"] = DevicesJson(*planned.placement);
      } else {
        pod["why"] = planned.why;
      }
      json["pods"].push_back(std::move(pod));
    }
  }
  json["whys"] = Json::array();
  for (const WhyNot& why : answer.whys) json["whys"].push_back(WhyJson(why));
  json["nodes"] = {{"added", answer.nodes.added},
                   {"removed", answer.nodes.removed},
                   {"pods_lost", answer.nodes.pods_lost},
                   {"gpu_pods_lost", answer.nodes.gpu_pods_lost}};
  json["before"] = ModelsJson(answer.before);
  json["after"] = ModelsJson(answer.after);
  json["left_out"] = request.left_out;
  return JsonText(json) + "\n";
}

std::string TextOf(const PlanRequest& request, const WhatIfAnswer& answer) {
  std::string text;
  for (const PlanRequest::Source& source : request.sources) text += SourceText(source, answer);
  text += NodeEditsText(answer.nodes);
  for (const std::string& what : request.left_out) text += "Left out: " + what + "\n";
  return text + PlanSentence(answer) + "\n";
}

}  // namespace berth::wire
