// SPDX-License-Identifier: Apache-2.0
#include "server/wire/file/cluster_file.h"

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <memory>
#include <set>

#include "config/words.h"
#include "config/yaml_json.h"
#include "server/wire/json/json_check.h"
#include "server/wire/json/strict_json.h"
#include "server/wire/node/mig_json.h"
#include "server/wire/node/node_links.h"
#include "server/wire/node/topology_json.h"
#include "server/wire/pod/mig_grant_json.h"
#include "server/wire/pod/pod_group_object.h"
#include "server/wire/pod/pod_object.h"
#include "topology/gpu_model.h"

namespace berth::wire {
namespace {

// What is read is at most this, so that sums stay in range, and so is what is written: an ask of a
// pod, a mean of asks, or what a node says may be more.
constexpr std::int64_t kMostAmount = std::numeric_limits<std::int64_t>::max() / 4;
std::int64_t AtMost(std::int64_t amount) {
  return std::clamp<std::int64_t>(amount, 0, kMostAmount);
}

constexpr std::size_t kMostModels = 1000;  // of the nodes of a file: metrics are told by model

Json AskJson(const GpuAsk& ask) {
  if (const auto* whole = std::get_if<WholeGpus>(&ask)) return {{"gpus", whole->count}};
  if (const auto* share = std::get_if<GpuShare>(&ask)) {
    Json json = {{"milli", share->milli}, {"memory_mib", AtMost(share->memory_mib)}};
    if (share->memory_milli > 0) json["memory_milli"] = share->memory_milli;
    if (share->count > 1) json["shares"] = share->count;
    return json;
  }
  if (const auto* mig = std::get_if<MigSlices>(&ask)) return {{"mig", MigWantsJson(*mig)}};
  return Json::object();
}

Json RefusedAsksJson(const std::vector<RefusedAsk>& asks) {
  Json list = Json::array();
  for (const RefusedAsk& ask : asks) {
    Json containers = Json::array();
    for (const GpuAsk& container : ask.containers) containers.push_back(AskJson(container));
    list.push_back({{"ask", AskJson(ask.gpus)},
                    {"containers", std::move(containers)},
                    {"cpu_milli", AtMost(ask.cpu_milli)},
                    {"memory_bytes", AtMost(ask.memory_bytes)}});
  }
  return list;
}

Json LabelsJson(const Labels& labels) {
  Json json = Json::object();
  for (const auto& [key, value] : labels) json[key] = value;
  return json;
}

void AddTaintsJson(const std::vector<Taint>& taints, Json& json) {
  for (const Taint& taint : taints) {
    json["taints"].push_back(
        {{"key", taint.key},
         {"value", taint.value},
         {"effect", kTaintEffectWords[static_cast<std::size_t>(taint.effect)]}});
  }
}

Json ClaimsJson(const std::vector<ClaimedGpu>& claims) {
  Json json = Json::array();
  for (const ClaimedGpu& held : claims) {
    Json item = {{"claim", held.claim}, {"device", held.device}};
    if (!held.uuid.empty()) item["uuid"] = held.uuid;
    if (held.index >= 0) item["index"] = held.index;
    if (!held.profile.empty()) item["profile"] = held.profile;
    if (held.start >= 0) item["start"] = held.start;
    json.push_back(std::move(item));
  }
  return json;
}

constexpr double kDearest = 1e6;  // of a GPU in an hour, in any currency
constexpr std::array<std::string_view, 3> kSharingWords = {"", "time-slicing", "mps"};

// What is known of the GPUs under them.
void AddPlacesJson(const GpuPlaces& places, Json& json) {
  if (places.gpus > 0) json["gpus"] = places.gpus;
  if (places.memory_mib > 0) json["memory_mib"] = AtMost(places.memory_mib);
  if (places.sharing == GpuSharing::kUnknown) return;
  json["sharing"] = kSharingWords[static_cast<std::size_t>(places.sharing)];
}

Json NodeJson(const Node& node) {
  const NodeSpec& spec = node.spec();
  Json gpus = Json::array();
  for (const GpuSpec& gpu : spec.gpus) {
    gpus.push_back(
        {{"uuid", gpu.uuid}, {"memory_mib", AtMost(gpu.memory_mib)}, {"healthy", gpu.healthy}});
    if (gpu.most_users > 0) gpus.back()["most_users"] = gpu.most_users;
  }
  Json json = {{"name", spec.name},
               {"gpu_model", spec.gpu_model},
               {"cpu_milli", AtMost(spec.cpu_milli)},
               {"memory_bytes", AtMost(spec.memory_bytes)},
               {"ready", spec.ready},
               {"gpus", std::move(gpus)}};
  if (spec.ephemeral_bytes) json["ephemeral_bytes"] = AtMost(*spec.ephemeral_bytes);
  if (spec.places != GpuPlaces{}) {
    json["places"] = {{"count", spec.places.count},
                      {"foreign", spec.places.foreign},
                      {"taken", node.places_taken()}};
    AddPlacesJson(spec.places, json["places"]);
  }
  if (spec.missing > 0) json["missing"] = spec.missing;
  if (!spec.gpu_resource.empty()) json["gpu_resource"] = spec.gpu_resource;
  if (spec.gpus_are_parts) json["gpus_are_parts"] = true;
  if (!spec.share_agent.empty()) json["share_agent"] = spec.share_agent;
  if (spec.agent_serves_all) json["agent_serves_all"] = true;
  if (spec.refuses_gpu_pods) json["refuses_gpu_pods"] = true;
  if (spec.refused_asks != nullptr) json["refused_asks"] = RefusedAsksJson(*spec.refused_asks);
  if (!spec.gpu_condition.empty()) json["gpu_condition"] = spec.gpu_condition;
  if (!spec.named_gpus_condition.empty()) {
    json["named_gpus_condition"] = spec.named_gpus_condition;
  }
  if (spec.gpus_to_come) json["gpus_to_come"] = true;
  if (!spec.traits.empty()) json["traits"] = spec.traits;
  if (spec.gpu_price > 0) json["gpu_price"] = spec.gpu_price;
  if (spec.share_isolation == Isolation::kMemory) json["shares_keep_memory"] = true;
  if (!spec.labels.empty()) json["labels"] = LabelsJson(spec.labels);
  AddTaintsJson(spec.taints, json);
  AddTaintsJson(spec.soft_taints, json);
  if (spec.mig.known()) {
    json["mig"] = MigJson(*spec.mig);
    json["mig_use"] = MigUseJson(*spec.mig, node.mig());
  }
  if (node.claims() != nullptr) json["claims"] = ClaimsJson(*node.claims());
  if (!spec.links.known()) return json;
  if (const auto topology = TopologyAnnotation(spec.links.matrix())) {
    json["topology"] = Json::parse(*topology);
    json["topology_source"] = spec.links.origin().name;
  }
  return json;
}

const char* StateText(PodState state) {
  if (state == PodState::kBound) return "bound";
  return state == PodState::kPlanned ? "planned" : "reserved";
}

Json SpreadJson(const RequestShape& shape) {
  return {{"over", kSpreadWords[static_cast<std::size_t>(shape.spread)]},
          {"workload", shape.workload}};
}

Json PodJson(const PodRecord& record) {
  Json containers = Json::array();
  for (const ContainerAsk& container : record.pod.containers) {
    containers.push_back({{"name", container.name},
                          {"ask", AskJson(container.gpus)},
                          {"ends_first", container.ends_first}});
  }
  Json grants = Json::array();
  for (const DeviceGrant& grant : record.placement.grants) {
    Json item = {{"milli", grant.milli}, {"memory_mib", AtMost(grant.memory_mib)}};
    if (grant.uuid.empty()) {
      item["gpu"] = grant.gpu;
    } else {
      item["uuid"] = grant.uuid;
    }
    grants.push_back(std::move(item));
  }
  const PodId& id = record.pod.id;
  Json json = {{"uid", id.uid},
               {"namespace", id.namespace_name},
               {"name", id.name},
               {"state", StateText(record.state)},
               {"node", record.placement.node},
               {"cpu_milli", AtMost(record.placement.cpu_milli)},
               {"memory_bytes", AtMost(record.placement.memory_bytes)},
               {"ask", AskJson(record.pod.shape.gpus)},
               {"models", record.pod.shape.models},
               {"containers", std::move(containers)},
               {"grants", std::move(grants)}};
  const std::int64_t ephemeral = record.placement.ephemeral_bytes;
  if (ephemeral > 0) json["ephemeral_bytes"] = AtMost(ephemeral);
  for (const MigGrant& grant : record.placement.mig) json["mig"].push_back(MigGrantJson(grant));
  if (record.placement.places > 0) json["places"] = record.placement.places;
  const std::string& resource = record.pod.shape.gpu_resource;
  if (!resource.empty()) json["gpu_resource"] = resource;
  const std::string& agent = record.pod.shape.share_agent;
  if (!agent.empty()) json["share_agent"] = agent;
  if (record.pod.shape.spread != Spread::kNone) json["spread"] = SpreadJson(record.pod.shape);
  if (record.pod.priority != 0) json["priority"] = record.pod.priority;
  if (!record.pod.gang.empty()) json["gang"] = record.pod.gang.id.text();
  if (record.pod.labels != nullptr) json["labels"] = LabelsJson(*record.pod.labels);
  return json;
}

Json LearnedJson(const LearnedMix::Memory& learned) {
  Json classes = Json::array();
  for (const RequestClass& entry : learned.classes) {
    if (!(entry.weight > 0)) continue;  // so old that nothing is left of it
    classes.push_back({{"pods", entry.weight},
                       {"cpu_milli", AtMost(entry.shape.cpu_milli)},
                       {"memory_bytes", AtMost(entry.shape.memory_bytes)},
                       {"ask", AskJson(entry.shape.gpus)},
                       {"models", entry.shape.models}});
    const std::string& resource = entry.shape.gpu_resource;
    if (!resource.empty()) classes.back()["gpu_resource"] = resource;
    const std::string& agent = entry.shape.share_agent;
    if (!agent.empty()) classes.back()["share_agent"] = agent;
  }
  return {{"pods", learned.pods}, {"classes", std::move(classes)}};
}

Status ReadGpus(const Json& json, const std::string& path, NodeSpec& spec) {
  Fields fields(json, path);
  GpuSpec gpu;
  fields.Text("uuid", gpu.uuid);
  fields.Integer("memory_mib", 0, kMostAmount, gpu.memory_mib);
  fields.Bool("healthy", gpu.healthy);
  fields.Int("most_users", 0, kMaxGpuPlaces, gpu.most_users);
  spec.gpus.push_back(std::move(gpu));
  return fields.Finish();
}

Status ReadPlaces(const Json& json, const std::string& path, GpuPlaces& places) {
  Fields fields(json, path);
  int taken = 0;  // follows
  fields.Int("count", 0, kMaxGpuPlaces, places.count);
  fields.Bool("foreign", places.foreign);
  fields.Int("taken", std::numeric_limits<int>::min(), std::numeric_limits<int>::max(), taken);
  fields.Int("gpus", 0, kMaxGpuPlaces, places.gpus);
  fields.Integer("memory_mib", 0, kMostAmount, places.memory_mib);
  std::string sharing;
  fields.Text("sharing", sharing);
  BERTH_TRY_STATUS(fields.Finish());
  const auto word = std::ranges::find(kSharingWords, sharing);
  if (word == kSharingWords.end()) {
    return Invalid(path + ".sharing: want time-slicing or mps, got \"" + sharing + "\"");
  }
  places.sharing = static_cast<GpuSharing>(word - kSharingWords.begin());
  return {};
}

Status ReadLabelsOf(const Json& json, const std::string& path, Labels& labels) {
  for (const auto& [key, value] : json.items()) {
    if (!value.is_string()) return Invalid(path + "." + key + ": want a text");
    labels.emplace_back(key, value);
  }
  std::ranges::sort(labels);
  return {};
}

void ReadTexts(Fields& fields, const char* key, std::vector<std::string>& texts) {
  fields.List(key, [&](const Json& text, const std::string& place) -> Status {
    if (!text.is_string()) return Invalid(place + ": want a text");
    texts.push_back(text);
    return {};
  });
}

Status ReadTaint(const Json& json, const std::string& path, NodeSpec& spec) {
  Fields fields(json, path);
  Taint taint;
  std::string effect;
  fields.Text("key", taint.key);
  fields.Text("value", taint.value);
  fields.Text("effect", effect);
  BERTH_TRY_STATUS(fields.Finish());
  const auto named = TaintEffectNamed(effect);
  if (!named) {
    return Invalid(path + ".effect: want NoSchedule, NoExecute or PreferNoSchedule, got \"" +
                   effect + "\"");
  }
  taint.effect = *named;
  const bool soft = taint.effect == TaintEffect::kPreferNoSchedule;
  (soft ? spec.soft_taints : spec.taints).push_back(std::move(taint));
  return {};
}

Status ReadSpreadOf(const Json& json, const std::string& path, RequestShape& shape) {
  Fields fields(json, path);
  std::string over;
  fields.Text("over", over);
  fields.Text("workload", shape.workload);
  BERTH_TRY_STATUS(fields.Finish());
  const auto word = std::ranges::find(kSpreadWords, over);
  if (word == kSpreadWords.begin() || word == kSpreadWords.end()) {
    return Invalid(path + ".over: want card or node, got \"" + over + "\"");
  }
  shape.spread = static_cast<Spread>(word - kSpreadWords.begin());
  return {};
}

Status ReadClaim(const Json& json, const std::string& path, std::vector<ClaimedGpu>& claims) {
  Fields fields(json, path);
  ClaimedGpu held;
  fields.Text("claim", held.claim);
  fields.Text("device", held.device);
  fields.Text("uuid", held.uuid);
  fields.Int("index", 0, kMaxGpusPerNode - 1, held.index);
  fields.Text("profile", held.profile);
  fields.Int("start", 0, kMaxGpusPerNode - 1, held.start);
  claims.push_back(std::move(held));
  return fields.Finish();
}

// claims: those of the node are added.
Status ReadAsk(const Json& json, const std::string& path, GpuAsk& ask);

Status ReadRefusedAsk(const Json& json, const std::string& path, std::vector<RefusedAsk>& asks) {
  if (asks.size() == kMostRefusedAsks) {
    return Invalid(path + ": want at most " + std::to_string(kMostRefusedAsks) +
                   " refused asks, got more");
  }
  Fields fields(json, path);
  RefusedAsk& added = asks.emplace_back();
  fields.Object("ask", [&added](const Json& ask, const std::string& place) {
    return ReadAsk(ask, place, added.gpus);
  });
  fields.List("containers", [&added](const Json& ask, const std::string& place) {
    return ReadAsk(ask, place, added.containers.emplace_back());
  });
  fields.Integer("cpu_milli", 0, kMostAmount, added.cpu_milli);
  fields.Integer("memory_bytes", 0, kMostAmount, added.memory_bytes);
  return fields.Finish();
}

Result<NodeSpec> ReadNode(const Json& json, const std::string& path, const NodeRules& rules,
                          std::vector<ClaimedGpu>& claims) {
  Fields fields(json, path);
  NodeSpec spec;
  std::optional<LinkMatrix> matrix;
  std::string source = "cluster file";
  fields.Text("name", spec.name);
  fields.Text("gpu_model", spec.gpu_model);
  fields.Integer("cpu_milli", 0, kMostAmount, spec.cpu_milli);
  fields.Integer("memory_bytes", 0, kMostAmount, spec.memory_bytes);
  std::int64_t ephemeral = -1;  // not said
  fields.Integer("ephemeral_bytes", 0, kMostAmount, ephemeral);
  if (ephemeral >= 0) spec.ephemeral_bytes = ephemeral;
  fields.Bool("ready", spec.ready);
  fields.Bool("refuses_gpu_pods", spec.refuses_gpu_pods);
  std::vector<RefusedAsk> refused;
  fields.List("refused_asks", [&refused](const Json& ask, const std::string& place) {
    return ReadRefusedAsk(ask, place, refused);
  });
  if (!refused.empty()) {
    spec.refused_asks = std::make_shared<const std::vector<RefusedAsk>>(std::move(refused));
  }
  fields.Text("gpu_condition", spec.gpu_condition);
  fields.Text("named_gpus_condition", spec.named_gpus_condition);
  fields.Bool("gpus_to_come", spec.gpus_to_come);
  ReadTexts(fields, "traits", spec.traits);
  fields.Number("gpu_price", 0, kDearest, spec.gpu_price);
  fields.Object("places", [&](const Json& places, const std::string& place) {
    return ReadPlaces(places, place, spec.places);
  });
  fields.Int("missing", 0, kMaxGpuPlaces, spec.missing);
  fields.Text("gpu_resource", spec.gpu_resource);
  fields.Bool("gpus_are_parts", spec.gpus_are_parts);
  fields.Text("share_agent", spec.share_agent);
  fields.Bool("agent_serves_all", spec.agent_serves_all);
  bool shares_keep_memory = false;
  fields.Bool("shares_keep_memory", shares_keep_memory);
  if (shares_keep_memory) spec.share_isolation = Isolation::kMemory;
  fields.Object("labels", [&](const Json& labels, const std::string& place) {
    return ReadLabelsOf(labels, place, spec.labels);
  });
  fields.List("taints", [&](const Json& taint, const std::string& place) {
    return ReadTaint(taint, place, spec);
  });
  fields.List("claims", [&](const Json& claim, const std::string& place) {
    return ReadClaim(claim, place, claims);
  });
  GpuSpec each{"", CataloguedMemoryMib(spec.gpu_model), true};
  fields.Integer("gpu_memory_mib", 0, kMostAmount, each.memory_mib);
  if (const Json* gpus = fields.Peek("gpus"); gpus != nullptr && gpus->is_number()) {
    std::int64_t count = 0;
    fields.Integer("gpus", 0, kMaxGpusPerNode, count);
    spec.gpus.assign(static_cast<std::size_t>(count), each);
  } else {
    fields.List("gpus", [&](const Json& gpu, const std::string& place) {
      return ReadGpus(gpu, place, spec);
    });
  }
  fields.Object("topology", [&](const Json& topology, const std::string& place) -> Status {
    auto read = ReadTopology(topology);
    if (!read) return tl::unexpected(std::move(read).error().Within(place));
    matrix = *std::move(read);
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
  if (Status valid = Validate(spec); !valid) {
    return tl::unexpected(std::move(valid).error().Within(path));
  }
  return spec;
}

Status ReadAsk(const Json& json, const std::string& path, GpuAsk& ask) {
  Fields fields(json, path);
  int gpus = 0;
  GpuShare share;
  fields.Int("gpus", 0, kMaxGpusPerNode, gpus);
  fields.Int("milli", 0, kMilliPerGpu, share.milli);
  fields.Integer("memory_mib", 0, kMostAmount, share.memory_mib);
  fields.Int("memory_milli", 0, kMilliPerGpu, share.memory_milli);
  fields.Int("shares", 1, kMaxGpusPerNode, share.count);
  MigSlices mig;
  fields.List("mig", [&mig](const Json& want, const std::string& place) {
    return ReadMigWant(want, place, mig);
  });
  if (!mig.wants.empty()) {
    ask = std::move(mig);
  } else if (gpus > 0) {
    ask = WholeGpus{gpus};
  } else if (share.milli > 0 || share.memory_mib > 0 || share.memory_milli > 0) {
    ask = share;
  }
  return fields.Finish();
}

Status ReadContainer(const Json& json, const std::string& path, PodRequest& pod) {
  Fields fields(json, path);
  ContainerAsk container;
  fields.Text("name", container.name);
  fields.Object("ask", [&](const Json& ask, const std::string& place) {
    return ReadAsk(ask, place, container.gpus);
  });
  fields.Bool("ends_first", container.ends_first);
  pod.containers.push_back(std::move(container));
  return fields.Finish();
}

Status ReadGrant(const Json& json, const std::string& path, Placement& placement) {
  Fields fields(json, path);
  DeviceGrant grant;
  fields.Int("gpu", 0, kMaxGpusPerNode - 1, grant.gpu);
  fields.Int("milli", 0, kMilliPerGpu, grant.milli);
  fields.Integer("memory_mib", 0, kMostAmount, grant.memory_mib);
  fields.Text("uuid", grant.uuid);
  BERTH_TRY_STATUS(fields.Finish());
  if (!grant.uuid.empty()) {
    grant.gpu = DeviceGrant::kUnknown;
  } else if (!placement.grants.empty() && grant.gpu <= placement.grants.back().gpu) {
    return Invalid(path + ".gpu: want each GPU once and in ascending order, got " +
                   std::to_string(grant.gpu));
  }
  placement.grants.push_back(grant);
  return {};
}

struct FilePod {
  PodBound bound;
  bool reserved = false;
};

Result<FilePod> ReadPod(const Json& json, const std::string& path) {
  FilePod pod;
  PodRequest& request = pod.bound.pod;
  Placement& placement = pod.bound.placement;
  std::string state = "bound";
  Fields fields(json, path);
  fields.Text("uid", request.id.uid);
  fields.Text("namespace", request.id.namespace_name);
  fields.Text("name", request.id.name);
  fields.Text("state", state);
  fields.Text("node", placement.node);
  fields.Integer("cpu_milli", 0, kMostAmount, placement.cpu_milli);
  fields.Integer("memory_bytes", 0, kMostAmount, placement.memory_bytes);
  fields.Integer("ephemeral_bytes", 0, kMostAmount, placement.ephemeral_bytes);
  fields.Object("ask", [&](const Json& ask, const std::string& place) {
    return ReadAsk(ask, place, request.shape.gpus);
  });
  ReadTexts(fields, "models", request.shape.models);
  fields.List("containers", [&](const Json& container, const std::string& place) {
    return ReadContainer(container, place, request);
  });
  fields.List("grants", [&](const Json& grant, const std::string& place) {
    return ReadGrant(grant, place, placement);
  });
  fields.List("mig", [&](const Json& grant, const std::string& place) {
    return ReadMigGrant(grant, place, placement.mig);
  });
  fields.Int("places", 0, kMaxGpuPlaces, placement.places);
  fields.Text("gpu_resource", request.shape.gpu_resource);
  fields.Text("share_agent", request.shape.share_agent);
  fields.Object("spread", [&](const Json& spread, const std::string& place) {
    return ReadSpreadOf(spread, place, request.shape);
  });
  fields.Int("priority", std::numeric_limits<int>::min(), std::numeric_limits<int>::max(),
             request.priority);
  std::string gang;
  fields.Text("gang", gang);
  request.gang.id = GangId::Of(gang);
  fields.Object("labels", [&](const Json& json_labels, const std::string& place) {
    Labels labels;
    const Status read = ReadLabelsOf(json_labels, place, labels);
    request.labels = std::make_shared<const Labels>(std::move(labels));
    return read;
  });
  BERTH_TRY_STATUS(fields.Finish());
  if (request.id.uid.empty()) return Invalid(path + ".uid: want a UID, got \"\"");
  if (state != "bound" && state != "reserved" && state != "planned") {
    return Invalid(path + ".state: want bound, reserved or planned, got \"" + state + "\"");
  }
  std::ranges::sort(placement.mig);
  request.shape.cpu_milli = placement.cpu_milli;
  request.shape.memory_bytes = placement.memory_bytes;
  request.shape.ephemeral_bytes = placement.ephemeral_bytes;
  pod.reserved = state != "bound";
  return pod;
}

Result<RequestClass> ReadClass(const Json& json, const std::string& path) {
  Fields fields(json, path);
  RequestClass entry;
  fields.Number("pods", 0, std::numeric_limits<double>::max(), entry.weight);
  fields.Integer("cpu_milli", 0, kMostAmount, entry.shape.cpu_milli);
  fields.Integer("memory_bytes", 0, kMostAmount, entry.shape.memory_bytes);
  fields.Object("ask", [&](const Json& ask, const std::string& place) {
    return ReadAsk(ask, place, entry.shape.gpus);
  });
  ReadTexts(fields, "models", entry.shape.models);
  fields.Text("gpu_resource", entry.shape.gpu_resource);
  fields.Text("share_agent", entry.shape.share_agent);
  BERTH_TRY_STATUS(fields.Finish());
  if (entry.weight <= 0) return Invalid(path + ".pods: want a number above 0");
  return entry;
}

Status ReadLearned(const Json& json, const std::string& path, LearnedMix::Memory& learned) {
  Fields fields(json, path);
  fields.Integer("pods", 0, kMostAmount, learned.pods);
  fields.List("classes", [&](const Json& item, const std::string& place) -> Status {
    BERTH_TRY(RequestClass entry, ReadClass(item, place));
    learned.classes.push_back(std::move(entry));
    return {};
  });
  return fields.Finish();
}

Result<ClusterFile> ReadCluster(const Json& json, const NodeRules& rules) {
  ClusterFile file;
  std::vector<ClusterEvent>& events = file.events;
  std::map<std::string, Node> nodes;
  std::set<std::string> uids, models;
  std::int64_t version = 0;
  bool observed = false;
  Fields fields(json, "");
  fields.Integer("version", 1, 1, version);
  fields.Bool("observed", observed);
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
      if (!pod.reserved) events.emplace_back(std::move(pod.bound));
      return {};
    }
    const auto node = nodes.find(pod.bound.placement.node);
    if (node == nodes.end()) {
      return Invalid(path + ".node: no node \"" + pod.bound.placement.node + "\"");
    }
    if (pod.reserved) return {};
    if (Status fits = node->second.CanTake(pod.bound.placement); !fits) {
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
  BERTH_TRY_STATUS(fields.Finish());
  if (version == 0) return Invalid("version: want 1, got none");
  return file;
}

std::string KindOf(const Json& item) {
  const auto kind = item.is_object() ? item.find("kind") : item.end();
  return kind != item.end() && kind->is_string() ? kind->get<std::string>() : "";
}

// Objects of Kubernetes, each of the kind that it says.
class ObjectReader {
 public:
  ObjectReader(const NodeRules& rules, const PodRules& pods, PodGroups* groups)
      : rules_(rules), pods_(pods), groups_(groups) {}

  Result<ClusterFile> Read(const Json& items) {
    // The pods of a group are read with what it says, which comes behind them as kubectl sorts.
    for (const bool is_for_groups : {true, false}) {
      for (std::size_t i = 0; i < items.size(); ++i) {
        const std::string kind = KindOf(items[i]);
        if ((kind == "PodGroup") != is_for_groups) continue;
        Status taken = Take(items[i], kind);
        if (taken) continue;
        return tl::unexpected(std::move(taken).error().Within("items[" + std::to_string(i) + "]"));
      }
    }
    return std::move(file_);
  }

 private:
  Status Take(const Json& item, const std::string& kind) {
    if (kind == "Node") return TakeNode(item);
    if (kind == "Pod") return TakePod(item);
    if (kind == "PodGroup") return TakeGroup(item);
    return Invalid(".kind: want Node, Pod or PodGroup, got \"" + kind + "\"");
  }

  Status TakeNode(const Json& item) {
    BERTH_TRY(DecodedNode node, DecodeNode(PaddedText(JsonText(item)), rules_));
    const std::string name = node.spec.name;
    if (!names_.insert(name).second) {
      return Invalid(".metadata.name: node \"" + name + "\" is there twice");
    }
    if (!node.problem.empty()) file_.problems.push_back("node " + name + ": " + node.problem);
    file_.events.emplace_back(NodeUpserted{std::move(node.spec)});
    return {};
  }

  Status TakePod(const Json& item) {
    BERTH_TRY(ObservedPod pod, DecodeObservedPod(PaddedText(JsonText(item)), pods_));
    if (pod.over) return {};
    if (pod.node.empty()) {
      if (pod.terminating) return {};
      file_.waiting.push_back({std::make_shared<const PodRequest>(std::move(pod.pod)), pod.gated,
                               pod.unschedulable, pod.created});
      return {};
    }
    if (!pod.problem.empty()) file_.problems.push_back(pod.problem);
    file_.events.emplace_back(
        PodBound{std::move(pod.pod), std::move(pod.placement), true, pod.terminating});
    return {};
  }

  Status TakeGroup(const Json& item) {
    if (groups_ == nullptr) return {};
    std::string problem;
    BERTH_TRY(const bool is_read, TakePodGroup(item, pods_, *groups_, problem));
    if (!is_read) {
      const Json version = item.value("apiVersion", Json());
      return Invalid(".apiVersion: want one whose PodGroups are read, got " +
                     JsonText(version).substr(0, 100));
    }
    if (!problem.empty()) file_.problems.push_back("PodGroup " + problem);
    return {};
  }

  const NodeRules& rules_;
  const PodRules& pods_;
  PodGroups* const groups_;
  std::set<std::string> names_;
  ClusterFile file_;
};

bool HasPodsOrGroups(const Json& list) {
  const auto items = list.find("items");
  return items != list.end() && items->is_array() &&
         std::ranges::any_of(*items, [](const Json& item) {
           const std::string kind = KindOf(item);
           return kind == "Pod" || kind == "PodGroup";
         });
}

// Documents of YAML are items of one List.
Result<std::string> AsJson(std::string text) {
  const std::size_t begin = text.find_first_not_of(" \t\r\n");
  if (begin == std::string::npos || text[begin] == '{' || text[begin] == '[') return text;
  BERTH_TRY(std::vector<std::string> documents, JsonDocuments(text, "file"));
  if (documents.empty()) return text;  // "null"
  if (documents.size() == 1) return std::move(documents.front());
  std::string list = R"({"kind":"List","items":[)";
  for (std::size_t i = 0; i < documents.size(); ++i) list += (i == 0 ? "" : ",") + documents[i];
  return list + "]}";
}

Result<ClusterFile> EventsOf(std::vector<DecodedNode> nodes) {
  ClusterFile file;
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

std::string EncodeCluster(const ClusterState::Contents& contents,
                          const std::optional<LearnedMix::Memory>& learned) {
  // A document of all of it would be ten times as large as the text.
  std::string text = R"({"version":1,"observed":true,"nodes":[)";
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
  return text += '}';
}

Result<ClusterFile> DecodeCluster(std::string text, const NodeRules& rules, const PodRules* pods,
                                  PodGroups* groups) {
  BERTH_TRY(text, AsJson(std::move(text)));
  const Json json = Json::parse(text, nullptr, false);
  if (json.is_discarded()) return Invalid("file: want JSON or YAML, got something else");
  const auto kind = json.is_object() ? json.find("kind") : json.end();
  if (kind != json.end() && kind->is_string()) {
    if (*kind != "NodeList" && *kind != "List") {
      return Invalid("kind: want NodeList or List, got " + kind->dump(-1, ' ', true));
    }
    if (pods != nullptr && HasPodsOrGroups(json)) {
      BERTH_TRY_STATUS(CheckJson(text));  // bounds the levels, which are gone through below
      return ObjectReader(rules, *pods, groups).Read(json["items"]);
    }
    BERTH_TRY(std::vector<DecodedNode> nodes, DecodeNodeList(PaddedText(std::move(text)), rules));
    return EventsOf(std::move(nodes));
  }
  return ReadCluster(json, rules);
}

}  // namespace berth::wire
