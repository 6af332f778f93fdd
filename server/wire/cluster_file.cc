// SPDX-License-Identifier: Apache-2.0
#include "server/wire/cluster_file.h"

#include <algorithm>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "server/wire/extender_v1.h"
#include "topology/gpu_model.h"

namespace berth::wire {
namespace {

using Json = nlohmann::ordered_json;

Json AskJson(const GpuAsk& ask) {
  if (const auto* whole = std::get_if<WholeGpus>(&ask)) return {{"gpus", whole->count}};
  if (const auto* share = std::get_if<GpuShare>(&ask)) {
    return {{"milli", share->milli}, {"memory_mib", share->memory_mib}};
  }
  return Json::object();
}

Json NodeJson(const NodeSpec& spec) {
  Json gpus = Json::array();
  for (const GpuSpec& gpu : spec.gpus) {
    gpus.push_back({{"uuid", gpu.uuid}, {"memory_mib", gpu.memory_mib}, {"healthy", gpu.healthy}});
  }
  return {{"name", spec.name},           {"gpu_model", spec.gpu_model},
          {"cpu_milli", spec.cpu_milli}, {"memory_bytes", spec.memory_bytes},
          {"ready", spec.ready},         {"gpus", std::move(gpus)}};
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
    grants.push_back(
        {{"gpu", grant.gpu}, {"milli", grant.milli}, {"memory_mib", grant.memory_mib}});
  }
  const PodId& id = record.pod.id;
  return {{"uid", id.uid},
          {"namespace", id.namespace_name},
          {"name", id.name},
          {"state", record.state == PodState::kBound ? "bound" : "reserved"},
          {"node", record.placement.node},
          {"cpu_milli", record.placement.cpu_milli},
          {"memory_bytes", record.placement.memory_bytes},
          {"ask", AskJson(record.pod.shape.gpus)},
          {"models", record.pod.shape.models},
          {"containers", std::move(containers)},
          {"grants", std::move(grants)}};
}

// Takes typed fields out of one object and refuses what is left over; the first problem is kept.
class Fields {
 public:
  Fields(const Json& json, std::string path) : json_(json), path_(std::move(path)) {
    if (!json_.is_object()) Refuse("", "an object");
  }

  void Text(const char* key, std::string& value) {
    if (const Json* found = Take(key, &Json::is_string, "a text")) value = *found;
  }
  void Bool(const char* key, bool& value) {
    if (const Json* found = Take(key, &Json::is_boolean, "true or false")) value = *found;
  }
  void Integer(const char* key, std::int64_t low, std::int64_t high, std::int64_t& value) {
    const Json* found = Take(key, &Json::is_number_integer, "an integer");
    if (found == nullptr) return;
    const bool too_large = found->is_number_unsigned() &&
                           found->get<std::uint64_t>() >
                               static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
    const std::int64_t number = too_large ? 0 : found->get<std::int64_t>();
    if (too_large || number < low || number > high) {
      return Refuse(key,
                    std::to_string(low) + ".." + std::to_string(high) + ", got " + found->dump());
    }
    value = number;
  }
  void Int(const char* key, std::int64_t low, std::int64_t high, int& value) {
    std::int64_t wide = value;
    Integer(key, low, high, wide);
    value = static_cast<int>(wide);
  }
  // Reads every item of a list; the reader returns its own Status.
  template <class Read>
  void List(const char* key, Read read) {
    const Json* found = Take(key, &Json::is_array, "a list");
    if (found == nullptr) return;
    for (std::size_t i = 0; i < found->size() && !problem_; ++i) {
      Keep(read((*found)[i], PathOf(key) + "[" + std::to_string(i) + "]"));
    }
  }
  template <class Read>
  void Object(const char* key, Read read) {
    if (const Json* found = Take(key, &Json::is_object, "an object"))
      Keep(read(*found, PathOf(key)));
  }
  [[nodiscard]] const Json* Peek(const char* key) const {
    return json_.is_object() && json_.contains(key) ? &json_[key] : nullptr;
  }

  Status Finish() {
    if (json_.is_object() && !problem_) {
      for (const auto& [key, value] : json_.items()) {
        if (std::find(taken_.begin(), taken_.end(), key) == taken_.end()) {
          problem_ = Error{Errc::kInvalidArgument, PathOf(key) + ": unknown key"};
          break;
        }
      }
    }
    if (problem_) return tl::unexpected(*problem_);
    return {};
  }

 private:
  [[nodiscard]] std::string PathOf(std::string_view key) const {
    if (key.empty()) return path_.empty() ? "file" : path_;
    return path_.empty() ? std::string(key) : path_ + "." + std::string(key);
  }
  void Refuse(std::string_view key, const std::string& wanted) {
    if (!problem_) problem_ = Error{Errc::kInvalidArgument, PathOf(key) + ": want " + wanted};
  }
  void Keep(Status status) {
    if (!status && !problem_) problem_ = std::move(status).error();
  }
  const Json* Take(const char* key, bool (Json::*is_type)() const noexcept, const char* wanted) {
    taken_.emplace_back(key);
    const Json* found = Peek(key);
    if (found == nullptr || found->is_null() || problem_) return nullptr;
    if ((found->*is_type)()) return found;
    Refuse(key, std::string(wanted) + ", got " + found->type_name());
    return nullptr;
  }

  const Json& json_;
  std::string path_;
  std::vector<std::string> taken_;
  std::optional<Error> problem_;
};

constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max() / 4;

Status ReadGpus(const Json& json, const std::string& path, NodeSpec& spec) {
  Fields fields(json, path);
  GpuSpec gpu;
  fields.Text("uuid", gpu.uuid);
  fields.Integer("memory_mib", 0, kMost, gpu.memory_mib);
  fields.Bool("healthy", gpu.healthy);
  spec.gpus.push_back(std::move(gpu));
  return fields.Finish();
}

Result<NodeSpec> ReadNode(const Json& json, const std::string& path) {
  Fields fields(json, path);
  NodeSpec spec;
  fields.Text("name", spec.name);
  fields.Text("gpu_model", spec.gpu_model);
  fields.Integer("cpu_milli", 0, kMost, spec.cpu_milli);
  fields.Integer("memory_bytes", 0, kMost, spec.memory_bytes);
  fields.Bool("ready", spec.ready);
  const GpuModel* model = FindGpuModel(spec.gpu_model);
  GpuSpec each{"", model == nullptr ? 0 : model->memory_mib, true};
  fields.Integer("gpu_memory_mib", 0, kMost, each.memory_mib);
  if (const Json* gpus = fields.Peek("gpus"); gpus != nullptr && gpus->is_number()) {
    std::int64_t count = 0;
    fields.Integer("gpus", 0, kMaxGpusPerNode, count);
    spec.gpus.assign(static_cast<std::size_t>(count), each);
  } else {
    fields.List("gpus", [&](const Json& gpu, const std::string& place) {
      return ReadGpus(gpu, place, spec);
    });
  }
  BERTH_TRY_STATUS(fields.Finish());
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
  fields.Integer("memory_mib", 0, kMost, share.memory_mib);
  if (gpus > 0) {
    ask = WholeGpus{gpus};
  } else if (share.milli > 0 || share.memory_mib > 0) {
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
  fields.Integer("memory_mib", 0, kMost, grant.memory_mib);
  BERTH_TRY_STATUS(fields.Finish());
  if (!placement.grants.empty() && grant.gpu <= placement.grants.back().gpu) {
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
  fields.Integer("cpu_milli", 0, kMost, placement.cpu_milli);
  fields.Integer("memory_bytes", 0, kMost, placement.memory_bytes);
  fields.Object("ask", [&](const Json& ask, const std::string& place) {
    return ReadAsk(ask, place, request.shape.gpus);
  });
  fields.List("models", [&](const Json& model, const std::string& place) -> Status {
    if (!model.is_string()) return Invalid(place + ": want a text");
    request.shape.models.push_back(model);
    return {};
  });
  fields.List("containers", [&](const Json& container, const std::string& place) {
    return ReadContainer(container, place, request);
  });
  fields.List("grants", [&](const Json& grant, const std::string& place) {
    return ReadGrant(grant, place, placement);
  });
  BERTH_TRY_STATUS(fields.Finish());
  if (request.id.uid.empty()) return Invalid(path + ".uid: want a UID, got \"\"");
  if (state != "bound" && state != "reserved") {
    return Invalid(path + ".state: want bound or reserved, got \"" + state + "\"");
  }
  request.shape.cpu_milli = placement.cpu_milli;
  request.shape.memory_bytes = placement.memory_bytes;
  pod.reserved = state == "reserved";
  return pod;
}

Result<std::vector<ClusterEvent>> ReadCluster(const Json& json) {
  std::vector<ClusterEvent> events;
  std::map<std::string, Node> nodes;
  std::set<std::string> uids;
  std::int64_t version = 0;
  Fields fields(json, "");
  fields.Integer("version", 1, 1, version);
  fields.List("nodes", [&](const Json& item, const std::string& path) -> Status {
    BERTH_TRY(NodeSpec spec, ReadNode(item, path));
    const std::string name = spec.name;
    if (!nodes.emplace(name, Node(std::make_shared<NodeSpec>(spec))).second) {
      return Invalid(path + ".name: node \"" + name + "\" is there twice");
    }
    events.emplace_back(NodeUpserted{std::move(spec)});
    return {};
  });
  fields.List("pods", [&](const Json& item, const std::string& path) -> Status {
    BERTH_TRY(FilePod pod, ReadPod(item, path));
    if (!uids.insert(pod.bound.pod.id.uid).second) {
      return Invalid(path + ".uid: pod \"" + pod.bound.pod.id.uid + "\" is there twice");
    }
    const auto node = nodes.find(pod.bound.placement.node);
    if (node == nodes.end()) {
      return Invalid(path + ".node: no node \"" + pod.bound.placement.node + "\"");
    }
    if (pod.reserved) return {};
    if (Status fits = node->second.CanTake(pod.bound.placement); !fits) {
      return Invalid(path + ": does not fit its node: " + fits.error().message);
    }
    node->second.Take(pod.bound.placement, pod.bound.pod.shape);
    events.emplace_back(std::move(pod.bound));
    return {};
  });
  BERTH_TRY_STATUS(fields.Finish());
  if (version == 0) return Invalid("version: want 1, got none");
  return events;
}

Result<std::vector<ClusterEvent>> EventsOf(std::vector<NodeSpec> nodes) {
  std::vector<ClusterEvent> events;
  std::set<std::string> names;
  for (NodeSpec& node : nodes) {
    if (!names.insert(node.name).second) {
      return Invalid("items[" + std::to_string(events.size()) + "].metadata.name: node \"" +
                     node.name + "\" is there twice");
    }
    events.emplace_back(NodeUpserted{std::move(node)});
  }
  return events;
}

}  // namespace

std::string EncodeCluster(const ClusterState::Contents& contents) {
  Json nodes = Json::array(), pods = Json::array();
  for (NodeIndex i = 0; i < contents.snapshot->size(); ++i) {
    nodes.push_back(NodeJson(contents.snapshot->node(i).spec()));
  }
  for (const PodRecord& record : contents.pods) pods.push_back(PodJson(record));
  const Json cluster = {{"version", 1}, {"nodes", std::move(nodes)}, {"pods", std::move(pods)}};
  return cluster.dump(1, ' ', false, Json::error_handler_t::replace);
}

Result<std::vector<ClusterEvent>> DecodeCluster(std::string text, const NodeRules& rules) {
  const Json json = Json::parse(text, nullptr, false);
  if (json.is_discarded()) return Invalid("file: want JSON, got something else");
  const auto kind = json.is_object() ? json.find("kind") : json.end();
  if (kind != json.end() && kind->is_string()) {
    if (*kind != "NodeList" && *kind != "List") {
      return Invalid("kind: want NodeList or List, got " + kind->dump(-1, ' ', true));
    }
    text.reserve(text.size() + kPadding);
    BERTH_TRY(std::vector<NodeSpec> nodes, DecodeNodeList(text, rules));
    return EventsOf(std::move(nodes));
  }
  return ReadCluster(json);
}

}  // namespace berth::wire
