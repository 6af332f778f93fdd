// SPDX-License-Identifier: Apache-2.0
#include "server/why/plan_request.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <tuple>
#include <utility>

#include "base/dns_name.h"
#include "base/text.h"
#include "scoring/admission.h"
#include "scoring/explain/pool_growth.h"
#include "server/extender/gangs/roster/gang_limits.h"
#include "server/why/api_rules.h"
#include "server/why/plan_objects.h"
#include "server/wire/json/json_text.h"
#include "server/wire/json/strict_json.h"
#include "server/wire/node/template_node.h"
#include "server/wire/pod/pod_object.h"

namespace berth::wire {
namespace {

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
  PlanReader(const PodRules& rules, std::string space, KnownPods known, PlanRequest& request)
      : groups_(rules.groups()),
        rules_(rules.With(groups_)),
        space_(std::move(space)),
        known_(std::move(known)),
        request_(request) {}

  Status Read(const std::vector<Item>& items) {
    for (const Item& item : items) {  // they say what pods need
      if (IsGroup(item.kind)) BERTH_TRY_STATUS(ReadGroup(*item.object, item.path, item.kind));
    }
    for (const Item& item : items) {
      if (!IsGroup(item.kind)) BERTH_TRY_STATUS(Read(*item.object, item.path, item.kind));
    }
    return {};
  }

 private:
  static bool IsGroup(std::string_view kind) {
    return kind == "PodGroup" || kind == "PodGang" || kind == kCompositePodGroup;
  }
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
    if (kind == "ResourceClaimTemplate") return ReadClaimTemplate(object, path);
    if (kind == "DisaggregatedSet") BERTH_TRY_STATUS(ReadGroup(object, path, kind));
    if (HasParts(kind)) {
      const auto read = [&](const Json& part, const std::string& of) {
        const bool is_group = kind == "AppWrapper" && IsGroup(of);
        return is_group ? ReadGroup(part, path, of) : Read(part, path, of);
      };
      return ForEachPart(object, kind, path, kMostPlannedPods, read);
    }
    BERTH_TRY(const std::optional<ObjectPods> pods, PodsOf(object, kind, path, kMostPlannedPods));
    if (!pods || !pods->unknown.empty()) {
      LeaveOut(kind, object, pods ? pods->unknown : "Berth knows no pods that it makes");
      return {};
    }
    if (!pods->group.is_null()) BERTH_TRY_STATUS(TakeGroupOf(*pods, object, kind));
    const std::string what = kind + " " + NamespaceOf(object) + "/" + NameOf(object);
    request_.sources.push_back({what, request_.pods.size(), 0});
    for (const PodSet& set : pods->sets) BERTH_TRY_STATUS(ReadSet(set, NamespaceOf(object), path));
    request_.sources.back().count = request_.pods.size() - request_.sources.back().first;
    return {};
  }

  // What the object says of how many start together; no more is known where that cannot be read.
  Status TakeGroupOf(const ObjectPods& pods, const Json& object, const std::string& kind) {
    Json group = pods.group;
    Json& metadata = group["metadata"];
    if (metadata.is_object()) metadata["namespace"] = NamespaceOf(object);
    std::string problem;
    const auto taken = TakeGroup(group, WordOf(&group, "kind"), rules_, groups_, problem);
    if (taken && problem.empty()) return {};
    if (!taken) problem = taken.error().message;
    request_.left_out.push_back("how many pods of " + kind + " " + NamespaceOf(object) + "/" +
                                NameOf(object) + " start together: " + problem);
    return {};
  }

  Status ReadGroup(Json group, const std::string& path, const std::string& kind) {
    Json& metadata = group["metadata"];
    if (metadata.is_object() && FieldOf(metadata, "namespace") == nullptr) {
      metadata["namespace"] = space_;
    }
    std::string problem;
    auto taken = TakeGroup(group, kind, rules_, groups_, problem);
    if (!taken) return tl::unexpected(std::move(taken).error().Within(path));
    if (!*taken) {
      problem = kind + "s of apiVersion \"" + WordOf(&group, "apiVersion").substr(0, 100) +
                "\" are not read";
    }
    if (!problem.empty()) LeaveOut(kind, group, problem);
    return {};
  }

  Status ReadClaimTemplate(const Json& object, const std::string& path) {
    const Json* const spec = FieldOf(FieldOf(object, "spec"), "spec");
    const std::string name = NamespaceOf(object) + "/" + NameOf(object);
    if (spec == nullptr) return Invalid(path + ".spec.spec: want what claims ask for, got none");
    const Json made = {{"name", name}, {"uid", PlannedUid(name)}, {"resourceVersion", "1"}};
    request_.claims[name] =
        JsonText({{"kind", "ResourceClaim"}, {"metadata", made}, {"spec", *spec}});
    return {};
  }

  // The template as the pods of the controller have it, which may name their gang after it. A part
  // of another type stays as it is, and is an error later.
  static Json AsMade(const PodSet& set) {
    Json pod = *set.pod;
    if (!set.scheduler.empty() && FieldOf(FieldOf(pod, "spec"), "schedulerName") == nullptr) {
      if (pod["spec"].is_object()) pod["spec"]["schedulerName"] = set.scheduler;
    }
    Json& metadata = pod["metadata"];
    if (!metadata.is_object() && !metadata.is_null()) return pod;
    if (!set.owner_kind.empty()) {
      metadata["ownerReferences"] = Json::array({{{"apiVersion", set.owner_api},
                                                  {"kind", set.owner_kind},
                                                  {"name", set.owner_name},
                                                  {"uid", PlannedUid(set.owner_name)},
                                                  {"controller", true}}});
    }
    for (const auto& [field, texts] :
         {std::pair("labels", &set.labels), std::pair("annotations", &set.annotations)}) {
      if (texts->empty()) continue;
      Json& all = metadata[field];
      if (!all.is_object() && !all.is_null()) return pod;
      for (const auto& [key, value] : *texts) all[key] = value;
    }
    return pod;
  }

  Status ReadSet(const PodSet& set, const std::string& space, const std::string& path) {
    if (set.count > 0) BERTH_TRY_STATUS(HasRoomFor(static_cast<std::size_t>(set.count), path));
    const Json pod = AsMade(set);
    BERTH_TRY(ObservedPod decoded, Decode(pod, set.path, space, set.name + "-0"));
    // The first pods wait for the others, which are not made before the first are there.
    const Gang& gang = decoded.pod.gang;
    const bool of_set = gang.one_by_one == OneByOne::kStatefulSet;
    const bool in_vain =
        gang.minimum.value_or(1) > 1 && (!of_set || (set.count > 1 && !set.at_once));
    if (decoded.pod.refusal.empty() && in_vain) decoded.pod.refusal = CureOf(gang.one_by_one);
    if (decoded.pod.refusal.empty()) decoded.pod.refusal = WhyLate(set, pod, gang.minimum);
    const auto notes = NotesOf(pod, decoded);
    if (set.on_each_node) {
      decoded.pod.id.name = set.name;
      request_.on_each_node.push_back({request_.sources.size() - 1, std::move(decoded.pod), notes});
      return {};
    }
    for (std::int64_t i = 0; i < set.count; ++i) {
      PodRequest& replica = request_.pods.emplace_back(decoded.pod);
      replica.id.name = set.name + "-" + std::to_string(i);
      replica.id.uid = UidOf(request_.pods.size() - 1);
      request_.notes.push_back(notes);
    }
    return {};
  }

  // nullptr: there is nothing to say.
  static std::shared_ptr<const PodNotes> NotesOf(const Json& pod, const ObservedPod& decoded) {
    PodNotes notes{.not_judged = NotJudged(pod),
                   .held_back = decoded.held_back,
                   .extended = ExtendedResourcesOf(pod)};
    for (const Json& claim : ItemsOf(FieldOf(pod, "spec"), "resourceClaims")) {
      const std::string name = WordOf(&claim, "resourceClaimTemplateName");
      notes.claim_templates.push_back(name.empty() ? ""
                                                   : FullName(decoded.pod.id.namespace_name, name));
    }
    // By annotations alone kube-scheduler does not know that it is to ask.
    if (decoded.pod.shape.wants_gpu() && decoded.pod.claims.empty() && notes.extended.empty()) {
      AddNotJudged("whether kube-scheduler asks Berth, as no container asks for a GPU resource",
                   notes.not_judged);
    }
    if (notes.not_judged.empty() && notes.held_back.empty() && notes.extended.empty()) {
      return nullptr;
    }
    return std::make_shared<const PodNotes>(std::move(notes));
  }

  Status ReadPod(const Json& pod, const std::string& path) {
    const std::size_t number = request_.pods.size();
    const std::string said = NameOf(pod);
    const std::string name = said.empty() ? "pod-" + std::to_string(number) : said;
    BERTH_TRY(ObservedPod decoded, Decode(pod, path, NamespaceOf(pod), name));
    auto known = known_.extract(decoded.pod.id.full_name());  // of two with a name the first is it
    const bool waits = known && (known.mapped().planned || known.mapped().node.empty());
    if (known && !waits) decoded.node = known.mapped().node;
    if (decoded.over || !decoded.node.empty()) {
      LeaveOut("Pod", pod, decoded.over ? "it has ended" : "it is on node " + decoded.node);
      return {};
    }
    BERTH_TRY_STATUS(HasRoomFor(1, path));
    if (waits) {
      decoded.pod.id.uid = known.mapped().uid;
      if (known.mapped().planned) request_.planned.push_back(std::move(known.mapped()));
    }
    request_.sources.push_back({"Pod " + decoded.pod.id.full_name(), number, 1});
    request_.notes.push_back(NotesOf(pod, decoded));
    request_.pods.push_back(std::move(decoded.pod));
    return {};
  }

  // Unlike any that the API server gives.
  static std::string UidOf(std::size_t number) { return PlannedUid(std::to_string(number)); }

  Result<ObservedPod> Decode(const Json& from, const std::string& path, const std::string& space,
                             const std::string& name) {
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
    std::string text = JsonText(pod);
    template_bytes_ += text.size();
    if (template_bytes_ > kMostTemplateBytes) {
      return Invalid(path + ": want at most " + std::to_string(kMostTemplateBytes >> 20) +
                     " MiB of pods, got more");
    }
    auto decoded = DecodeObservedPod(PaddedText(std::move(text)), rules_);
    if (!decoded) return Invalid(path + ": " + decoded.error().message);
    const Gang& gang = decoded->pod.gang;
    if (gang.object == Gang::Object::kMissing && gang.controller.kind == kCompositePodGroup) {
      decoded->pod.refusal = gangs::UnseenController(gang);
    }
    const std::string refused = RefusedByApiServer(from);
    if (!refused.empty()) decoded->pod.refusal = refused;
    return decoded;
  }

  [[nodiscard]] Status HasRoomFor(std::size_t more, const std::string& path) const {
    if (request_.pods.size() + more <= kMostPlannedPods) return {};
    return Invalid(path + ": want at most " + std::to_string(kMostPlannedPods) +
                   " pods in all, got more");
  }

  std::size_t template_bytes_ = 0;
  PodGroups groups_;  // of the request, before those of the cluster
  const PodRules rules_;
  const std::string space_;
  KnownPods known_;
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

Status ReadRoom(const Json& json, const std::string& path, PlanRequest& request) {
  PlanRoom& room = request.room.emplace();
  Fields fields(json, path);
  fields.List("for", [&room](const Json& name, const std::string& place) -> Status {
    if (!name.is_string() || room.names.size() == kMostRoomNames) {
      return Invalid(place + ": want at most " + std::to_string(kMostRoomNames) +
                     " names of pods or gangs, each NAMESPACE/NAME");
    }
    room.names.push_back(name);
    return {};
  });
  fields.Int("idle_nodes", 1, kMostIdleNodes, room.idle_nodes);
  fields.Text("model", room.model);
  BERTH_TRY_STATUS(fields.Finish());
  if (!room.model.empty() && room.idle_nodes == 0) {
    return Invalid(path + ".model: want idle_nodes beside it, got none");
  }
  if (request.grow > 0) return Invalid(path + ": want it without grow");
  return {};
}

// What the controller of DaemonSets lets each of its pods tolerate.
std::vector<Toleration> OfDaemons() {
  std::vector<Toleration> all;
  const auto add = [&all](const char* key, TaintEffect effect) {
    all.push_back({key, TolerationOperator::kExists, "", effect});
  };
  add("node.kubernetes.io/not-ready", TaintEffect::kNoExecute);
  add("node.kubernetes.io/unreachable", TaintEffect::kNoExecute);
  for (const char* key : {"disk-pressure", "memory-pressure", "pid-pressure", "unschedulable"}) {
    add(("node.kubernetes.io/" + std::string(key)).c_str(), TaintEffect::kNoSchedule);
  }
  return all;
}

// On that node alone.
void KeepOn(const std::string& node, NodeConstraints& constraints) {
  const LabelRequirement there{"metadata.name", LabelOperator::kIn, {node}};
  if (!constraints.either) constraints.either.emplace(1);
  for (NodeSelectorTerm& term : *constraints.either) term.fields.push_back(there);
}

// The tolerations that admission adds to pods with extended resources. Where it is not known
// whether it does, and one would help, a note says so.
void AddTolerations(const Snapshot& snapshot, PlanRequest& plan) {
  const bool runs = RunsResourceToleration(snapshot);
  std::multimap<std::string, Taint> tainted;
  for (NodeIndex i = 0; i < snapshot.size() && !runs; ++i) {
    for (const Taint& taint : snapshot.node(i).spec().taints) {
      const auto [begin, end] = tainted.equal_range(taint.key);
      if (std::none_of(begin, end, [&](const auto& known) { return known.second == taint; })) {
        tainted.emplace(taint.key, taint);
      }
    }
  }
  using Told = std::pair<std::shared_ptr<const NodeConstraints>, std::shared_ptr<const PodNotes>>;
  std::map<Told, Told> done;
  const auto add = [&](PodRequest& pod, std::shared_ptr<const PodNotes>& notes) {
    if (notes == nullptr || notes->extended.empty()) return;
    const Told key{pod.constraints, notes};
    const auto [found, is_new] = done.try_emplace(key, key);
    auto& [constraints, noted] = found->second;
    if (is_new) {
      NodeConstraints more = constraints == nullptr ? NodeConstraints() : *constraints;
      bool helps = false;
      for (const std::string& resource : notes->extended) {
        const auto [begin, end] = tainted.equal_range(resource);
        helps = helps || std::any_of(begin, end, [&more](const auto& taint) {
                  return !Tolerates(more.tolerations, taint.second);
                });
        more.tolerations.push_back(
            {resource, TolerationOperator::kExists, "", TaintEffect::kNoSchedule});
      }
      if (runs) constraints = std::make_shared<const NodeConstraints>(std::move(more));
      if (helps) {
        PodNotes said = *notes;
        AddNotJudged("toleration by ExtendedResourceToleration", said.not_judged);
        noted = std::make_shared<const PodNotes>(std::move(said));
      }
    }
    pod.constraints = constraints;
    notes = noted;
  };
  for (std::size_t i = 0; i < plan.pods.size(); ++i) add(plan.pods[i], plan.notes[i]);
  for (PlanRequest::OnEachNode& each : plan.on_each_node) add(each.pod, each.notes);
}

}  // namespace

Status Expand(PlanRequest& plan, const Snapshot& snapshot) {
  AddTolerations(snapshot, plan);
  for (const PlanRequest::OnEachNode& each : plan.on_each_node) {
    PlanRequest::Source& source = plan.sources[each.source];
    source.first = plan.pods.size();
    NodeConstraints constraints;
    if (each.pod.constraints != nullptr) constraints = *each.pod.constraints;
    const std::vector<Toleration> tolerations = OfDaemons();
    constraints.tolerations.insert(constraints.tolerations.end(), tolerations.begin(),
                                   tolerations.end());
    PodRequest anywhere = each.pod;
    anywhere.constraints = std::make_shared<const NodeConstraints>(constraints);
    for (NodeIndex i = 0; i < snapshot.size(); ++i) {
      const NodeSpec& spec = snapshot.node(i).spec();
      if (Admits(spec, anywhere) != Reason::kFits) continue;
      if (plan.pods.size() == kMostPlannedPods) {
        return Invalid(source.what + ": want at most " + std::to_string(kMostPlannedPods) +
                       " pods in all, got more");
      }
      NodeConstraints there = constraints;
      KeepOn(spec.name, there);
      PodRequest& pod = plan.pods.emplace_back(each.pod);
      pod.id.name += "-" + spec.name;
      pod.id.uid = PlannedUid(std::to_string(plan.pods.size() - 1));
      pod.constraints = std::make_shared<const NodeConstraints>(std::move(there));
      plan.notes.push_back(each.notes);
    }
    source.count = plan.pods.size() - source.first;
  }
  plan.on_each_node.clear();
  return {};
}

void NoteSchedulers(const std::set<std::string>& askers, PlanRequest& plan) {
  std::map<std::tuple<std::string, const PodNotes*, std::string>, std::shared_ptr<const PodNotes>>
      noted;
  for (std::size_t i = 0; i < plan.pods.size(); ++i) {
    const std::string& scheduler = plan.pods[i].scheduler;
    if (askers.empty() ? scheduler.empty() : askers.contains(scheduler)) continue;
    const std::string& refusal = plan.pods[i].refusal;
    std::shared_ptr<const PodNotes>& known = noted[{scheduler, plan.notes[i].get(), refusal}];
    if (known == nullptr) {
      PodNotes notes = plan.notes[i] == nullptr ? PodNotes() : *plan.notes[i];
      const std::string by = scheduler.empty() ? "default-scheduler" : Shortened(scheduler, 63);
      notes.not_judged.insert(notes.not_judged.begin(), "scheduler " + by);
      if (!refusal.empty()) {
        notes.held_back = by + (askers.empty() ? " places it; if that asks Berth: " + refusal
                                               : " places it, and has not asked Berth");
      }
      known = std::make_shared<const PodNotes>(std::move(notes));
    }
    plan.notes[i] = known;
  }
}

Result<PlanRequest> DecodePlan(std::string_view text, const PodRules& rules, const NodeRules& nodes,
                               KnownPods known) {
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
  fields.Object("make_room", [&](const Json& room, const std::string& path) {
    return ReadRoom(room, path, request);
  });
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
  BERTH_TRY_STATUS(PlanReader(rules, std::move(space), std::move(known), request).Read(items));
  return request;
}

}  // namespace berth::wire
