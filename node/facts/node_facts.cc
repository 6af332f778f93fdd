// SPDX-License-Identifier: Apache-2.0
#include "node/facts/node_facts.h"

#include <utility>

#include "server/wire/json/strict_json.h"
#include "topology/links/link_matrix.h"
#include "topology/mig/mig_product.h"

namespace berth::node {
namespace {

using wire::Fields;
using wire::Json;

constexpr int kMostNumaNode = 1023;
constexpr std::size_t kMostAnnotations = 8;

Status CheckId(const std::string& id, const std::string& path) {
  if (!id.empty() && id.size() <= kMostIdBytes) return {};
  return Invalid(path + ".id: want 1.." + std::to_string(kMostIdBytes) + " bytes, got " +
                 std::to_string(id.size()));
}

Status CheckCount(std::size_t count, std::size_t most, const std::string& path) {
  if (count < most) return {};
  return Invalid(path + ": want at most " + std::to_string(most));
}

Status ReadGpu(const Json& json, const std::string& path, std::vector<GpuFact>& gpus) {
  BERTH_TRY_STATUS(CheckCount(gpus.size(), kMaxGpus, path));
  Fields fields(json, path);
  GpuFact gpu;
  int numa = -1;
  fields.Int("index", 0, kMaxGpus - 1, gpu.index);
  fields.Text("id", gpu.id);
  fields.Text("pci", gpu.pci);
  fields.Int("numa", 0, kMostNumaNode, numa);
  BERTH_TRY_STATUS(fields.FinishForeign());
  BERTH_TRY_STATUS(CheckId(gpu.id, path));
  if (numa >= 0) gpu.numa = numa;
  gpus.push_back(std::move(gpu));
  return {};
}

Status ReadMigDevice(const Json& json, const std::string& path, std::vector<MigFact>& devices) {
  BERTH_TRY_STATUS(CheckCount(devices.size(), kMaxGpus * kMostMigDevices, path));
  Fields fields(json, path);
  MigFact device;
  fields.Int("gpu", 0, kMaxGpus - 1, device.gpu);
  fields.Text("profile", device.profile);
  fields.Int("start", 0, kMaxMigUnits - 1, device.start);
  fields.Text("id", device.id);
  BERTH_TRY_STATUS(fields.FinishForeign());
  BERTH_TRY_STATUS(CheckId(device.id, path));
  devices.push_back(std::move(device));
  return {};
}

Status ReadAnnotations(const Json& json, const std::string& path,
                       std::map<std::string, std::string>& annotations) {
  for (const auto& [key, value] : json.items()) {
    const std::string place = path + "[" + key.substr(0, kMostIdBytes) + "]";
    BERTH_TRY_STATUS(CheckCount(annotations.size(), kMostAnnotations, place));
    if (!value.is_string()) return Invalid(place + ": want a text");
    annotations[key] = value.get<std::string>();
  }
  return {};
}

}  // namespace

Result<NodeFacts> ParseFacts(std::string_view text) {
  if (text.size() > kMostFactsBytes) {
    return Invalid("want at most " + std::to_string(kMostFactsBytes) + " bytes of facts, got " +
                   std::to_string(text.size()));
  }
  const Json json = Json::parse(text, nullptr, false);
  if (!json.is_object()) return Invalid("want the JSON object of the facts, got something else");
  NodeFacts facts;
  Fields fields(json, "facts");
  fields.List("gpus", [&facts](const Json& gpu, const std::string& path) {
    return ReadGpu(gpu, path, facts.gpus);
  });
  fields.List("mig", [&facts](const Json& device, const std::string& path) {
    return ReadMigDevice(device, path, facts.mig);
  });
  fields.Object("annotations", [&facts](const Json& annotations, const std::string& path) {
    return ReadAnnotations(annotations, path, facts.annotations);
  });
  fields.List("problems", [&facts](const Json& problem, const std::string& path) -> Status {
    BERTH_TRY_STATUS(CheckCount(facts.problems.size(), kMostProblems, path));
    if (!problem.is_string()) return Invalid(path + ": want a text");
    facts.problems.push_back(problem.get<std::string>().substr(0, kMostProblemBytes));
    return {};
  });
  BERTH_TRY_STATUS(fields.FinishForeign());
  return facts;
}

std::string ToJson(const NodeFacts& facts) {
  Json gpus = Json::array(), mig = Json::array();
  for (const GpuFact& gpu : facts.gpus) {
    Json& json = gpus.emplace_back(Json{{"index", gpu.index}, {"id", gpu.id}});
    if (!gpu.pci.empty()) json["pci"] = gpu.pci;
    if (gpu.numa) json["numa"] = *gpu.numa;
  }
  for (const MigFact& device : facts.mig) {
    mig.push_back({{"gpu", device.gpu},
                   {"profile", device.profile},
                   {"start", device.start},
                   {"id", device.id}});
  }
  Json annotations = Json::object();
  for (const auto& [key, value] : facts.annotations) annotations[key] = value;
  const Json json = {{"gpus", std::move(gpus)},
                     {"mig", std::move(mig)},
                     {"annotations", std::move(annotations)},
                     {"problems", facts.problems}};
  return wire::JsonText(json);
}

}  // namespace berth::node
