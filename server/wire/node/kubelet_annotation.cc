// SPDX-License-Identifier: Apache-2.0
#include "server/wire/node/kubelet_annotation.h"

#include <algorithm>

#include "base/text.h"
#include "server/wire/json/strict_json.h"

namespace berth::wire {
namespace {

constexpr std::size_t kMostQuoted = 40;  // of a text in an error

std::string Quoted(std::string_view text) {
  return "\"" + std::string(text.substr(0, kMostQuoted)) + "\"";
}

// The text of a field, "" where it is left out.
Result<std::string> TextField(const Json& json, const char* name) {
  const auto field = json.find(name);
  if (field == json.end() || field->is_null()) return std::string();
  if (field->is_string()) return field->get<std::string>();
  return Invalid(std::string(name) + ": want a text, got " + field->type_name());
}

}  // namespace

Result<std::vector<std::string>> ParseCarriesOut(std::string_view text) {
  std::vector<std::string> resources;
  if (berth::Trimmed(text).empty()) return resources;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    const std::string_view name = berth::Trimmed(text.substr(begin, end - begin));
    if (resources.size() == kMostCarriedOut) {
      return Invalid("want at most " + std::to_string(kMostCarriedOut) + " resources, got more");
    }
    if (name.empty() || name.size() > kLongestResource) {
      return Invalid("[" + std::to_string(resources.size()) +
                     "]: want the name of a resource of 1.." + std::to_string(kLongestResource) +
                     " characters, got " + Quoted(name));
    }
    resources.emplace_back(name);
    begin = end + 1;
  }
  return resources;
}

Result<TopologyManager> ParseKubelet(std::string_view text) {
  if (text.size() > kMostKubeletBytes) {
    return Invalid("want at most " + std::to_string(kMostKubeletBytes) + " bytes, got " +
                   std::to_string(text.size()));
  }
  const Json json = Json::parse(text, nullptr, false);
  if (json.is_discarded()) return Invalid("want JSON, got something else");
  if (!json.is_object()) return Invalid(std::string("want an object, got ") + json.type_name());
  BERTH_TRY(const std::string policy, TextField(json, "topologyManagerPolicy"));
  BERTH_TRY(const std::string scope, TextField(json, "topologyManagerScope"));
  BERTH_TRY(const std::string numa, TextField(json, "numa"));
  TopologyManager manager;
  if (!policy.empty()) {
    const auto known = ParseTopologyPolicy(policy);
    if (!known) {
      return Invalid(
          "topologyManagerPolicy: want one of none, best-effort, restricted, single-numa-node, "
          "got " +
          Quoted(policy));
    }
    manager.policy = *known;
  }
  if (!scope.empty() && scope != "container" && scope != "pod") {
    return Invalid("topologyManagerScope: want one of container, pod, got " + Quoted(scope));
  }
  manager.by_pod = scope == "pod";
  if (!numa.empty() && numa != "lifted") {
    return Invalid("numa: want \"lifted\" or nothing, got " + Quoted(numa));
  }
  return numa.empty() ? manager : TopologyManager{};
}

}  // namespace berth::wire
