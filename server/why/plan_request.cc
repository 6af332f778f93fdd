// SPDX-License-Identifier: Apache-2.0
#include "server/why/plan_request.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "base/dns_name.h"
#include "scoring/explain/pool_growth.h"
#include "server/wire/json/json_check.h"
#include "server/wire/json/strict_json.h"
#include "server/wire/node/node_shape.h"
#include "server/wire/node/template_node.h"
#include "server/wire/pod/pod_group_object.h"
#include "server/wire/pod/pod_object.h"

namespace berth::wire {
namespace {

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

// An object of the request, those of Lists one by one.
struct Item {
  const Json* object;
  std::string path, kind;
};

Status AddItems(const Json& list, const std::string& path, const std::string& kind,
                std::vector<Item>& items);

// kind: of an item of a list that says the kind of its items.
Status AddItem(const Json& object, const std::string& path, const std::string& kind_of_items,
               std::vector<Item>& items) {
  if (!object.is_object()) return Invalid(path + ": want an object, got " + object.type_name());
  std::string kind = WordOf(&object, "kind");
  if (kind.empty()) kind = kind_of_items.empty() ? "Pod" : kind_of_items;
  if (kind.ends_with("List")) {
    return AddItems(object, path, kind.substr(0, kind.size() - 4), items);
  }
  items.push_back({&object, path, std::move(kind)});
  return {};
}

Status AddItems(const Json& list, const std::string& path, const std::string& kind,
                std::vector<Item>& items) {
  const Json* const found = FieldOf(list, "items");
  if (found == nullptr) return {};
  if (!found->is_array()) {
    return Invalid(path + ".items: want a list, got " + found->type_name());
  }
  for (std::size_t i = 0; i < found->size(); ++i) {
    const std::string place = path + ".items[" + std::to_string(i) + "]";
    if (WordOf(&(*found)[i], "kind").ends_with("List")) {
      return Invalid(place + ".kind: want no list inside of a list");
    }
    BERTH_TRY_STATUS(AddItem((*found)[i], place, kind, items));
  }
  return {};
}

class PlanReader {
 public:
  // `space` is the namespace of objects that name none.
  PlanReader(const PodRules& rules, std::string space, PlanRequest& request)
      : groups_(rules.groups()),
        rules_(rules.With(groups_)),
        space_(std::move(space)),
        request_(request) {}

  Status Read(const std::vector<Item>& items) {
    for (const Item& item : items) {  // they say what pods need
      if (item.kind == "PodGroup") BERTH_TRY_STATUS(ReadGroup(*item.object, item.path));
    }
    for (const Item& item : items) {
      if (item.kind != "PodGroup") BERTH_TRY_STATUS(Read(*item.object, item.path, item.kind));
    }
    return {};
  }

 private:
  [[nodiscard]] std::string NamespaceOf(const Json& object) const {
    const std::string space = WordOf(FieldOf(object, "metadata"), "namespace");
    return space.empty() ? space_ : space;
  }
  static std::string NameOf(const Json& object) {
    return WordOf(FieldOf(object, "metadata"), "name");
  }
  void LeaveOut(const std::string& kind, const Json& object, const std::string& why) {
    request_.left_out.push_back(kind + " " + NamespaceOf(object) + "/" + NameOf(object) + ": " +
                                why);
  }

  Status Read(const Json& object, const std::string& path, const std::string& kind) {
    if (kind == "Pod") return ReadPod(object, path);
    if (kind == "Job" && IsOfKubernetes(object, "batch/")) return ReadJob(object, path);
    for (const char* owner : {"Deployment", "ReplicaSet", "ReplicationController", "StatefulSet"}) {
      if (kind != owner) continue;
      BERTH_TRY(const std::int64_t replicas, Count(object, path, "replicas"));
      return ReadTemplate(object, path, kind, replicas);
    }
    LeaveOut(kind, object, "no pods of this kind are known");
    return {};
  }

  // Other APIs have Jobs too, of another form.
  static bool IsOfKubernetes(const Json& object, std::string_view api) {
    const std::string version = WordOf(&object, "apiVersion");
    return version.empty() || version.starts_with(api);
  }

  Status ReadGroup(Json group, const std::string& path) {
    Json& metadata = group["metadata"];
    if (metadata.is_object() && FieldOf(metadata, "namespace") == nullptr) {
      metadata["namespace"] = space_;
    }
    std::string problem;
    auto taken = TakePodGroup(group, rules_, groups_, problem);
    if (!taken) return tl::unexpected(std::move(taken).error().Within(path));
    if (!*taken) {
      problem = "PodGroups of apiVersion \"" + WordOf(&group, "apiVersion").substr(0, 100) +
                "\" are not read";
    }
    if (!problem.empty()) LeaveOut("PodGroup", group, problem);
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

  // The template as the Job's pods have it, which may name their gang after the Job.
  static Json OfJob(const Json& pod, const std::string& name) {
    Json of = pod;
    Json& metadata = of["metadata"];
    if (!metadata.is_object() && !metadata.is_null()) return of;
    const std::string uid = "plan-" + name;
    metadata["ownerReferences"] = Json::array({{{"apiVersion", "batch/v1"},
                                                {"kind", "Job"},
                                                {"name", name},
                                                {"uid", uid},
                                                {"controller", true}}});
    Json& labels = metadata["labels"];
    if (!labels.is_object() && !labels.is_null()) return of;
    for (const char* key : {"batch.kubernetes.io/controller-uid", "controller-uid"}) {
      labels[key] = uid;
    }
    for (const char* key : {"batch.kubernetes.io/job-name", "job-name"}) labels[key] = name;
    return of;
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
    BERTH_TRY(ObservedPod decoded,
              Decode(kind == "Job" ? OfJob(*pod, name) : *pod, path + ".spec.template",
                     NamespaceOf(owner), name + "-0"));
    Gang& gang = decoded.pod.gang;
    if (!gang.controller.empty() && gang.object != Gang::Object::kNone) {
      gang.minimum = static_cast<int>(std::clamp<std::int64_t>(count, 1, kMaxGangPods));
      gang.object = Gang::Object::kFound;
    }
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

  PodGroups groups_;  // of the request, before those of the cluster
  const PodRules rules_;
  const std::string space_;
  PlanRequest& request_;
};

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

Status ReadMachineType(const Json& json, const std::string& path, const NodeRules& rules,
                       PlanRequest& request) {
  if (!json.is_string()) return Invalid(path + ": want the name of a machine type");
  if (request.grow == 0) return Invalid("machine_types: want grow beside it, got none");
  if (request.at_zero.size() == kMostMachineTypes) {
    return Invalid("machine_types: want at most " + std::to_string(kMostMachineTypes) +
                   " types, got more");
  }
  auto node = TemplateNode(json.get_ref<const std::string&>(), rules);
  if (!node) return tl::unexpected(std::move(node).error().Within(path));
  request.at_zero.push_back(*std::move(node));
  return {};
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
  std::vector<Item> items;
  std::string space = "default";
  Fields fields(json, "");
  fields.Text("namespace", space);
  request.has_pods = fields.Peek("pods") != nullptr;
  fields.Int("grow", 1, kMostGrowth, request.grow);
  fields.List("machine_types", [&](const Json& item, const std::string& path) {
    return ReadMachineType(item, path, nodes, request);
  });
  fields.List("pods", [&](const Json& item, const std::string& path) {
    return AddItem(item, path, "", items);
  });
  fields.List("add", [&](const Json& item, const std::string& path) {
    return ReadCopies(item, path, nodes, request);
  });
  fields.List("remove", [&](const Json& item, const std::string& path) -> Status {
    if (!item.is_string()) return Invalid(path + ": want the name of a node");
    request.nodes.remove.push_back(item);
    return {};
  });
  BERTH_TRY_STATUS(fields.Finish());
  if (!IsDnsLabel(space)) return Invalid("namespace: want the name of a namespace");
  BERTH_TRY_STATUS(PlanReader(rules, std::move(space), request).Read(items));
  return request;
}

}  // namespace berth::wire
