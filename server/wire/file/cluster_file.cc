// SPDX-License-Identifier: Apache-2.0
#include "server/wire/file/cluster_file.h"

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <memory>
#include <set>

#include "base/text.h"
#include "config/config.h"
#include "config/parse_yaml.h"
#include "server/wire/api/api_json.h"
#include "server/wire/file/value_json.h"
#include "server/wire/json/json_text.h"
#include "server/wire/json/strict_json.h"
#include "server/wire/node/mig_json.h"
#include "server/wire/node/topology_json.h"
#include "server/wire/pod/pod_object.h"
#include "topology/gpu_vendor.h"

namespace berth::wire {
namespace {

// Of ShareMode, in its order.
constexpr std::array<std::string_view, 4> kShareModeWords = {"unsaid", "time-slicing", "sm-sharing",
                                                             "reserved"};

constexpr std::size_t kMostModels = 1000;  // of the nodes of a file: metrics have them as labels

void AddTaints(const std::vector<Taint>& taints, Json& json) {
  for (const Taint& taint : taints) json["taints"].push_back(ObjectOf(taint));
}

Json PlacesJson(const GpuPlaces& places, int taken) {
  Json json = Json::object();
  AddMembers(places, Part::kFront, json);
  json["taken"] = taken;
  AddMembers(places, Part::kRest, json);
  return json;
}

Json NodeJson(const Node& node) {
  const NodeSpec& spec = node.spec();
  Json json = ObjectOf(spec);
  if (json.contains("places")) json["places"] = PlacesJson(spec.places, node.places_taken());
  AddTaints(spec.taints, json);
  AddTaints(spec.soft_taints, json);
  if (spec.mig.known()) {
    json["mig"] = MigJson(*spec.mig);
    json["mig_use"] = MigUseJson(*spec.mig, node.mig());
  }
  if (node.claims() != nullptr) {
    Json& claims = json["claims"] = Json::array();
    for (const ClaimedGpu& held : *node.claims()) claims.push_back(ObjectOf(held));
  }
  if (!spec.links.known()) return json;
  if (const auto topology = TopologyAnnotation(spec.links.matrix())) {
    json["topology"] = Json::parse(*topology);
    json["topology_source"] = spec.links.origin().name;
  }
  return json;
}

// What the pod has of the node is what it asks for, where the file says it.
Json PodJson(const PodRecord& record) {
  const Placement& placement = record.placement;
  RequestShape shape = record.pod.shape;
  shape.cpu_milli = placement.cpu_milli;
  shape.memory_bytes = placement.memory_bytes;
  shape.ephemeral_bytes = placement.ephemeral_bytes;
  Json json = Json::object();
  AddMembers(record.pod.id, Part::kFront, json);
  json["state"] = StateOf(record.state);
  AddMembers(placement, Part::kFront, json);
  AddMembers(shape, Part::kFront, json);
  AddMembers(record.pod, Part::kFront, json);
  AddMembers(placement, Part::kRest, json);
  AddMembers(shape, Part::kRest, json);
  if (shape.spread != Spread::kNone) {
    json["spread"] = {{"over", kSpreadWords[static_cast<std::size_t>(shape.spread)]},
                      {"workload", shape.workload}};
  }
  if (shape.share_mode != ShareMode::kUnsaid) {
    json["share_mode"] = kShareModeWords[static_cast<std::size_t>(shape.share_mode)];
  }
  AddMembers(record.pod, Part::kRest, json);
  return json;
}

Json LearnedJson(const LearnedMix::Memory& learned) {
  Json classes = Json::array();
  for (const RequestClass& entry : learned.classes) {
    if (!(entry.weight > 0)) continue;  // so old that nothing is left of it
    Json json = {{"pods", entry.weight}};
    AddMembers(entry.shape, Part::kFront, json);
    AddMembers(entry.shape, Part::kRest, json);
    classes.push_back(std::move(json));
  }
  return {{"pods", learned.pods}, {"classes", std::move(classes)}};
}

Json ClassJson(const DeviceClass& of) {
  Json json = {{"name", of.name}};
  if (!of.extended_resource.empty()) json["extended_resource"] = of.extended_resource;
  if (!of.created.empty()) json["created"] = of.created;
  if (of.profile) json["profile"] = MigProfileName(*of.profile);
  if (of.whole) json["whole"] = true;
  return json;
}

Result<DeviceClass> ReadDeviceClass(const Json& json, const std::string& path) {
  Fields fields(json, path);
  DeviceClass read;
  fields.Text("name", read.name);
  fields.Text("extended_resource", read.extended_resource);
  fields.Text("created", read.created);
  fields.Profile("profile", read.profile);
  fields.Bool("whole", read.whole);
  BERTH_TRY_STATUS(fields.Finish());
  if (read.name.empty()) return Invalid(path + ".name: want a name, got none");
  read.readable = false;
  return read;
}

Status ReadTaint(const Json& json, const std::string& path, NodeSpec& spec) {
  std::vector<Taint> read;
  BERTH_TRY_STATUS(ReadItem(json, path, read));
  const bool soft = read.front().effect == TaintEffect::kPreferNoSchedule;
  (soft ? spec.soft_taints : spec.taints).push_back(std::move(read.front()));
  return {};
}

Status ReadSpread(const Json& json, const std::string& path, RequestShape& shape) {
  Fields fields(json, path);
  int over = 0;
  fields.Word("over", std::span(kSpreadWords).subspan(1), over);
  fields.Text("workload", shape.workload);
  shape.spread = static_cast<Spread>(over + 1);
  return fields.Finish();
}

// claims: those of the node are added.
Result<NodeSpec> ReadNode(const Json& json, const std::string& path, const NodeRules& rules,
                          std::vector<ClaimedGpu>& claims) {
  Fields fields(json, path);
  NodeSpec spec;
  std::optional<LinkMatrix> matrix;
  std::string source = "cluster file";
  ReadMembers(fields, spec);
  std::int64_t gpu_memory = CataloguedMemoryMib(spec.gpu_model);
  fields.Integer("gpu_memory_mib", 0, kMostAmount, gpu_memory);
  if (const Json* gpus = fields.Peek("gpus"); gpus != nullptr && gpus->is_number()) {
    for (GpuSpec& gpu : spec.gpus) gpu.memory_mib = gpu_memory;
  }
  fields.List("taints", [&spec](const Json& taint, const std::string& place) {
    return ReadTaint(taint, place, spec);
  });
  fields.List("claims", [&claims](const Json& claim, const std::string& place) {
    return ReadItem(claim, place, claims);
  });
  fields.Object("topology", [&](const Json& topology, const std::string& place) -> Status {
    BERTH_TRY(matrix, Within(ReadTopology(topology), place));
    return {};
  });
  fields.Text("topology_source", source);
  fields.Object("mig", [&](const Json& mig, const std::string& place) -> Status {
    BERTH_TRY(MigSpec read, ReadMig(mig, place, spec.gpu_model, *rules.mig));
    spec.mig = NodeMig(std::move(read));
    return {};
  });
  fields.List("mig_use", [](const Json&, const std::string&) { return Status(); });  // follows
  BERTH_TRY_STATUS(fields.Finish());
  if (matrix) {
    const auto rank = source == kCatalogueSource ? LinkSource::kCatalogue : LinkSource::kNode;
    spec.links =
        rules.links->LinksOf(*std::move(matrix), spec.gpu_model, {rank, std::move(source)});
  }
  BERTH_TRY_STATUS(Within(Validate(spec), path));
  return spec;
}

struct FilePod {
  PodBound bound;
  bool reserved = false;
};

Result<FilePod> ReadPod(const Json& json, const std::string& path) {
  FilePod pod;
  PodRequest& request = pod.bound.pod;
  std::string state = "bound";
  Fields fields(json, path);
  fields.Text("state", state);
  ReadMembers(fields, request.id);
  ReadMembers(fields, request.shape);
  ReadMembers(fields, request);
  ReadMembers(fields, pod.bound.placement);
  fields.Object("spread", [&request](const Json& spread, const std::string& place) {
    return ReadSpread(spread, place, request.shape);
  });
  int mode = 0;
  if (json.contains("share_mode")) fields.Word("share_mode", kShareModeWords, mode);
  BERTH_TRY_STATUS(fields.Finish());
  request.shape.share_mode = static_cast<ShareMode>(mode);
  if (request.id.uid.empty()) return Invalid(path + ".uid: want a UID, got \"\"");
  if (state != "bound" && state != "reserved" && state != "planned") {
    return Invalid(path + ".state: want bound, reserved or planned, got \"" + state + "\"");
  }
  std::ranges::sort(pod.bound.placement.mig);
  pod.reserved = state != "bound";
  return pod;
}

Status ReadClass(const Json& json, const std::string& path, LearnedMix::Memory& learned) {
  Fields fields(json, path);
  RequestClass entry;
  fields.Number("pods", 0, std::numeric_limits<double>::max(), entry.weight);
  ReadMembers(fields, entry.shape);
  BERTH_TRY_STATUS(fields.Finish());
  if (entry.weight <= 0) return Invalid(path + ".pods: want a number above 0");
  learned.classes.push_back(std::move(entry));
  return {};
}

Status ReadLearned(const Json& json, const std::string& path, LearnedMix::Memory& learned) {
  Fields fields(json, path);
  fields.Integer("pods", 0, kMostAmount, learned.pods);
  fields.List("classes", [&learned](const Json& item, const std::string& place) {
    return ReadClass(item, place, learned);
  });
  return fields.Finish();
}

Result<ClusterFile> ReadCluster(const Json& json, const NodeRules& rules) {
  ClusterFile file;
  std::vector<ClusterEvent>& events = file.events;
  std::map<std::string, Node> nodes;
  std::set<std::string> uids, models;
  std::int64_t version = 0;
  bool observed = false, has_constraints = false;
  Fields fields(json, "");
  fields.Integer("version", 1, 1, version);
  fields.Bool("observed", observed);
  fields.Bool("has_constraints", has_constraints);
  fields.List("nodes", [&](const Json& item, const std::string& path) -> Status {
    std::vector<ClaimedGpu> claims;
    BERTH_TRY(NodeSpec spec, ReadNode(item, path, rules, claims));
    const std::string name = spec.name;
    if (models.insert(spec.gpu_model).second && models.size() > kMostModels) {
      return Invalid(path + ".gpu_model: want at most " + std::to_string(kMostModels) +
                     " GPU models, got more");
    }
    const Node node(std::make_shared<NodeSpec>(spec), {},
                    std::make_shared<const std::vector<ClaimedGpu>>(claims));
    if (!nodes.emplace(name, node).second) {
      return Invalid(path + ".name: node \"" + name + "\" is there twice");
    }
    if (spec.mig.known() && spec.mig->by_claims()) events.emplace_back(GpusOffered{name, spec.mig});
    const GpuPodsRefused refused{name, spec.refuses_gpu_pods, spec.refused_asks};
    events.emplace_back(NodeUpserted{std::move(spec)});
    if (refused.refused || refused.asks != nullptr) events.emplace_back(refused);
    if (!claims.empty()) events.emplace_back(GpusClaimed{name, std::move(claims)});
    return {};
  });
  fields.List("pods", [&](const Json& item, const std::string& path) -> Status {
    BERTH_TRY(FilePod pod, ReadPod(item, path));
    if (!uids.insert(pod.bound.pod.id.uid).second) {
      return Invalid(path + ".uid: pod \"" + pod.bound.pod.id.uid + "\" is there twice");
    }
    if (observed) {
      if (Mobility& mobility = pod.bound.pod.mobility; mobility == Mobility::kMoves) {
        if (!has_constraints) mobility = Mobility::kUnknown;  // nobody says where it may go
      }
      if (!pod.reserved) events.emplace_back(std::move(pod.bound));
      return {};
    }
    const auto node = nodes.find(pod.bound.placement.node);
    if (node == nodes.end()) {
      return Invalid(path + ".node: no node \"" + pod.bound.placement.node + "\"");
    }
    if (pod.reserved) return {};
    if (Status fits = node->second.CanTake(pod.bound.placement, pod.bound.pod); !fits) {
      return Invalid(path + ": does not fit its node: " + fits.error().message);
    }
    node->second.Put(std::make_shared<const PodRecord>(
        PodRecord{pod.bound.pod, pod.bound.placement, PodState::kBound, {}}));
    events.emplace_back(std::move(pod.bound));
    return {};
  });
  fields.Object("learned_mix", [&](const Json& item, const std::string& path) {
    return ReadLearned(item, path, file.learned.emplace());
  });
  fields.List("device_classes", [&](const Json& item, const std::string& path) -> Status {
    BERTH_TRY(file.classes.emplace_back(), ReadDeviceClass(item, path));
    return {};
  });
  BERTH_TRY_STATUS(fields.Finish());
  if (version == 0) return Invalid("version: want 1, got none");
  return file;
}

// Objects of Kubernetes, each of the kind that it says.
class ObjectReader {
 public:
  ObjectReader(const NodeRules& rules, const PodRules& pods, PodGroups* groups,
               const TakeOther& take_other)
      : rules_(rules), pods_(pods), groups_(groups), take_other_(take_other) {}

  Result<ClusterFile> Read(const Json& items) {
    file_.is_list = true;
    std::vector<std::string> kinds;
    for (const Json& item : items) {
      kinds.push_back(TextIn(item, {"kind"}));
      if (!kinds.back().empty()) continue;
      return Invalid("items[" + std::to_string(kinds.size() - 1) +
                     "].kind: want the kind of the object, such as Node or Pod, got none");
    }
    // Pods are read with what groups and other objects say, which kubectl sorts behind them.
    for (const int turn : {0, 1}) {
      for (std::size_t i = 0; i < items.size(); ++i) {
        const bool is_first = kinds[i] != "Node" && kinds[i] != "Pod";
        if (is_first != (turn == 0)) continue;
        BERTH_TRY_STATUS(Within(Take(items[i], kinds[i]), "items[" + std::to_string(i) + "]"));
      }
    }
    if (!not_read_.empty()) file_.problems.push_back(NotReadText());
    if (read_ > 0 || items.empty()) return std::move(file_);
    return Invalid("items: want Nodes and Pods, got none of them; " + NotReadText());
  }

 private:
  Status Take(const Json& item, const std::string& kind) {
    const bool is_own =
        kind == "Node" || kind == "Pod" || kind == "PodGroup" || kind == "PodDisruptionBudget";
    read_ += is_own ? 1 : 0;
    if (kind == "Node") return TakeNode(item);
    if (kind == "Pod") return TakePod(item);
    if (kind == "PodDisruptionBudget") return TakeBudget(item);
    if (is_own) return TakeGroup(item);
    const Json& version = In(item, {"apiVersion"});
    const bool is_read =
        take_other_ && version.is_string() &&
        take_other_(version.get_ref<const std::string&>(), kind, PaddedText(JsonText(item)));
    if (!is_read) ++not_read_[kind.substr(0, kLongestKind)];
    read_ += is_read ? 1 : 0;
    return {};
  }

  // "not read: 2 ConfigMap, 1 Service".
  [[nodiscard]] std::string NotReadText() const {
    std::string text = "not read:";
    std::size_t told = 0, others = 0;
    for (const auto& [kind, count] : not_read_) {
      if (++told > kMostKindsTold) {
        others += count;
        continue;
      }
      text += (told == 1 ? " " : ", ") + std::to_string(count) + " " + kind;
    }
    if (others > 0) text += ", and " + std::to_string(others) + " of other kinds";
    return text;
  }

  // One object that cannot be read does not cost the others.
  Status PassOver(const Error& wrong) {
    file_.problems.push_back(wrong.message);
    return {};
  }

  // "PodGroup team/train".
  static std::string NameOf(const Json& item) {
    const std::string space = TextIn(item, {"metadata", "namespace"});
    return TextIn(item, {"kind"}) + " " + (space.empty() ? "" : space + "/") +
           TextIn(item, {"metadata", "name"});
  }

  Status TakeNode(const Json& item) {
    auto decoded = DecodeNode(PaddedText(JsonText(item)), rules_);
    if (!decoded) return PassOver(decoded.error());
    DecodedNode& node = *decoded;
    const std::string name = node.spec.name;
    if (!names_.insert(name).second) {
      return Invalid(".metadata.name: node \"" + name + "\" is there twice");
    }
    if (!node.problem.empty()) file_.problems.push_back("node " + name + ": " + node.problem);
    file_.events.emplace_back(NodeUpserted{std::move(node.spec)});
    return {};
  }

  Status TakePod(const Json& item) {
    auto decoded = DecodeObservedPod(PaddedText(JsonText(item)), pods_);
    if (!decoded) return PassOver(decoded.error());
    ObservedPod& pod = *decoded;
    if (pod.over) return {};
    if (pod.node.empty()) {
      file_.waiting.push_back(WaitingOf(std::move(pod)));
      return {};
    }
    if (!pod.problem.empty()) file_.problems.push_back(pod.problem);
    file_.events.emplace_back(PodBound{std::move(pod.pod), std::move(pod.placement), true,
                                       pod.terminating, false, nullptr, std::move(pod.life)});
    return {};
  }

  // One that cannot be read counts for nothing.
  Status TakeBudget(const Json& item) {
    auto budget = DecodeBudget(PaddedText(JsonText(item)));
    if (budget) {
      file_.budgets.push_back(*std::move(budget));
    } else {
      file_.problems.push_back(NameOf(item) + ": " + budget.error().message);
    }
    return {};
  }

  Status TakeGroup(const Json& item) {
    if (groups_ == nullptr) return {};
    std::string problem;
    const auto is_read = wire::TakeGroup(item, "PodGroup", pods_, *groups_, problem);
    if (!is_read) return PassOver(Error(is_read.error()).Within(NameOf(item)));
    if (!*is_read) {
      const Json version = item.value("apiVersion", Json());
      return Invalid(".apiVersion: want one whose PodGroups are read, got " +
                     JsonText(version).substr(0, 100));
    }
    if (!problem.empty()) file_.problems.push_back("PodGroup " + problem);
    return {};
  }

  static constexpr std::size_t kLongestKind = 63, kMostKindsTold = 8;

  const NodeRules& rules_;
  const PodRules& pods_;
  PodGroups* const groups_;
  const TakeOther& take_other_;
  std::set<std::string> names_;
  std::map<std::string, std::size_t> not_read_;  // how many, by kind
  std::size_t read_ = 0;
  ClusterFile file_;
};

// Whether it is a List whose items say their kinds.
bool IsListOfObjects(const Json& list) {
  const auto items = list.find("items");
  return list["kind"] == "List" && items != list.end() && items->is_array();
}

constexpr const char* kCure = "kubectl get nodes,pods -A -o json";
constexpr const char* kWatchEvent = "an event of a watch";

// What kubectl writes with --watch --output-watch-events.
bool IsWatchEvent(const Json& json) { return json.contains("type") && json.contains("object"); }

// What a text is that is neither JSON nor YAML, as people's tools make it; "": something else.
std::string_view MistakenFor(std::string_view text) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 6> kBegins = {{
      {"NAME", "a table of kubectl"},
      {"Name:  ", "what kubectl describe prints"},
      {"Error from server", "an error of kubectl"},
      {"<", "HTML or XML"},
      {"PK\x03\x04", "a zip archive"},
      {"\x1f\x8b", "a compressed file"},
  }};
  const std::string_view line = text.substr(0, text.find('\n'));
  std::string_view is;
  for (const auto& [begin, what] : kBegins) is = line.starts_with(begin) ? what : is;
  if (text.find('\x1b') != text.npos && !text.starts_with("\x1f\x8b")) {
    is = "text with the colours of a terminal";
  } else if (berth::Trimmed(text).empty()) {
    is = "an empty file";
  } else if (is.empty() && text.substr(0, 4).find('\0') != text.npos &&
             !text.starts_with("\xff\xfe") && !text.starts_with("\xfe\xff")) {
    is = "UTF-16 or UTF-32 without a byte order mark";
  } else if (std::ranges::count(line, ',') > 1 && line.find_first_of("#{[:") == line.npos) {
    is = "CSV";
  } else if (line.find_first_of("IWEF") == 0 && line.find_first_not_of("0123456789", 1) == 5) {
    is = "lines of a log before it";
  }
  return is;
}

// What a text is that begins like JSON and is none.
std::string WrongJson(const std::string& text) {
  const Status checked = CheckJson(text);
  const std::string wrong = checked ? "its text is not UTF-8" : checked.error().message;
  const std::string end = "JSON: byte " + std::to_string(text.find_last_not_of(" \t\r\n") + 1);
  if (wrong.starts_with("JSON: byte " + std::to_string(text.size()) + ":") ||
      wrong.starts_with(end + ":")) {
    return "JSON that was cut off: it ends at byte " + std::to_string(text.size()) +
           ", within a value";
  }
  const std::size_t next = text.find_first_of("{[", 1);
  if (wrong.ends_with("nothing after it") && next != text.npos) {
    return "several JSON documents, as kubectl writes with --watch and shells with >>; join them "
           "in one List";
  }
  return "something else: " + wrong;
}

Result<ClusterFile> EventsOf(std::vector<DecodedNode> nodes) {
  ClusterFile file;
  file.is_list = true;
  std::vector<ClusterEvent>& events = file.events;
  std::set<std::string> names;
  for (DecodedNode& node : nodes) {
    const std::string& name = node.spec.name;
    if (!names.insert(name).second) {
      return Invalid("items[" + std::to_string(events.size()) + "].metadata.name: node \"" + name +
                     "\" is there twice");
    }
    if (!node.problem.empty()) file.problems.push_back("node " + name + ": " + node.problem);
    events.emplace_back(NodeUpserted{std::move(node.spec)});
  }
  return file;
}

}  // namespace

void OpenLists(Json& cluster) {
  Json opened = Json::array();
  for (Json& item : cluster["items"]) {
    const std::string kind = TextIn(item, {"kind"});
    if (!kind.ends_with("List") || !In(item, {"items"}).is_array()) {
      opened.push_back(std::move(item));
      continue;
    }
    for (Json& inner : item["items"]) {
      if (inner.is_object() && !inner.contains("kind")) {  // the list says it for all
        inner["kind"] = kind.substr(0, kind.size() - std::string_view("List").size());
        inner["apiVersion"] = In(item, {"apiVersion"});
      }
      opened.push_back(std::move(inner));
    }
  }
  cluster["items"] = std::move(opened);
}

std::string WrongText(const std::string& text) {
  if (const std::string_view is = MistakenFor(text); !is.empty()) return std::string(is);
  const std::size_t begin = text.find_first_not_of(" \t\r\n");
  if (begin == text.npos || (text[begin] != '{' && text[begin] != '[')) return "";
  const Json json = Json::parse(text, nullptr, false);
  if (!json.is_discarded()) return IsWatchEvent(json) ? kWatchEvent : "";
  std::string is = WrongJson(text);
  return is.starts_with("something else: ") ? "" : is;  // YAML may begin like that too
}

// Documents of YAML are items of one List, and so are the elements of a list of JSON.
Result<std::string> ClusterAsJson(std::string text) {
  if (const std::string_view is = MistakenFor(text); !is.empty()) {
    return Invalid("file: want JSON or YAML, got " + std::string(is) + "; write it with " + kCure);
  }
  const std::size_t begin = text.find_first_not_of(" \t\r\n");
  const std::size_t element = text.find_first_not_of(" \t\r\n[");
  if (begin != std::string::npos && text[begin] == '[' && element != std::string::npos &&
      text[element] == '{') {
    return R"({"kind":"List","items":)" + std::move(text) + "}";
  }
  if (begin == std::string::npos || text[begin] == '{' || text[begin] == '[') return text;
  BERTH_TRY(std::vector<std::string> documents, JsonDocuments(text, "file"));
  if (documents.empty()) return text;  // "null"
  if (documents.size() == 1) return std::move(documents.front());
  std::string list = R"({"kind":"List","items":[)";
  for (std::size_t i = 0; i < documents.size(); ++i) list += (i == 0 ? "" : ",") + documents[i];
  return list + "]}";
}

std::string EncodeCluster(const ClusterState::Contents& contents,
                          const std::optional<LearnedMix::Memory>& learned,
                          std::span<const DeviceClass> classes) {
  // A document of all of it would be ten times as large as the text.
  std::string text = R"({"version":1,"observed":true,)";
  const auto may_move = [](const PodRecord& pod) { return pod.pod.mobility == Mobility::kMoves; };
  if (std::ranges::any_of(contents.pods, may_move)) text += R"("has_constraints":true,)";
  text += R"("nodes":[)";
  const auto append = [&text](const Json& item, bool is_first) {
    text += is_first ? "\n" : ",\n";
    text += JsonText(item);
  };
  for (NodeIndex i = 0; i < contents.snapshot->size(); ++i) {
    append(NodeJson(contents.snapshot->node(i)), i == 0);
  }
  text += "],\n\"pods\":[";
  for (const PodRecord& record : contents.pods) {
    append(PodJson(record), &record == contents.pods.data());
  }
  text += ']';
  if (learned) {
    text += ",\n\"learned_mix\":";
    text += JsonText(LearnedJson(*learned));
  }
  for (const DeviceClass& of : classes) {
    text += &of == classes.data() ? ",\n\"device_classes\":[" : ",";
    text += JsonText(ClassJson(of));
  }
  return text += classes.empty() ? "}" : "]}";
}

Result<ClusterFile> DecodeCluster(std::string text, const NodeRules& rules, const PodRules* pods,
                                  PodGroups* groups, const TakeOther& take_other) {
  BERTH_TRY(text, ClusterAsJson(std::move(text)));
  Json json = Json::parse(text, nullptr, false);
  if (json.is_discarded()) return Invalid("file: want JSON or YAML, got " + WrongJson(text));
  if (IsWatchEvent(json)) {
    return Invalid("file: want a List, got " + std::string(kWatchEvent) + "; write it with " +
                   kCure);
  }
  if (const Json& kind = In(json, {"kind"}); kind.is_string()) {
    if (kind != "NodeList" && kind != "List") {
      return Invalid("kind: want NodeList or List, got " + kind.dump(-1, ' ', true));
    }
    if (pods != nullptr && IsListOfObjects(json)) {
      BERTH_TRY_STATUS(CheckJson(text));  // bounds the levels, which are gone through below
      OpenLists(json);
      return ObjectReader(rules, *pods, groups, take_other).Read(json["items"]);
    }
    BERTH_TRY(std::vector<DecodedNode> nodes, DecodeNodeList(PaddedText(std::move(text)), rules));
    return EventsOf(std::move(nodes));
  }
  if (json.is_object() && json.contains("items")) return Invalid("kind: want List, got none");
  return ReadCluster(json, rules);
}

}  // namespace berth::wire
