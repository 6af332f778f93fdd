// SPDX-License-Identifier: Apache-2.0
#include "server/wire/pod/given_json.h"

#include <algorithm>
#include <utility>

#include "server/wire/json/strict_json.h"

namespace berth::wire {
namespace {

void SortUnique(std::vector<std::string>& ids) {
  std::ranges::sort(ids);
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
}

// More are not kept while reading: what is beyond the bound may come many times.
constexpr std::size_t kMostRead = 4 * GivenDevices::kMostIds;

Status AddIds(const Json& ids, const std::string& path, GivenCollector& given) {
  if (!ids.is_array()) return Invalid(path + ": want a list of IDs, got " + ids.type_name());
  for (const Json& id : ids) {
    if (!id.is_string()) return Invalid(path + ": want IDs as texts, got " + id.type_name());
    given.Add(id.get_ref<const std::string&>());
  }
  return {};
}

}  // namespace

void GivenCollector::Add(std::string_view id, std::string_view health) {
  id = id.substr(0, id.find("::"));
  if (id.empty() || id.size() > GivenDevices::kLongestId) {
    problem_ = "want device IDs of 1.." + std::to_string(GivenDevices::kLongestId) +
               " bytes, got one of " + std::to_string(id.size());
  }
  if (given_.ids.size() >= kMostRead) {
    problem_ = "want at most " + std::to_string(GivenDevices::kMostIds) + " devices, got more";
  }
  if (!problem_.empty()) return;
  given_.ids.emplace_back(id);
  if (health == "Unhealthy") given_.unwell.emplace_back(id);
}

Result<GivenDevices> GivenCollector::Finish() {
  if (!problem_.empty()) return Invalid(problem_);
  SortUnique(given_.ids);
  SortUnique(given_.unwell);
  if (given_.ids.size() > GivenDevices::kMostIds) {
    return Invalid("want at most " + std::to_string(GivenDevices::kMostIds) + " devices, got " +
                   std::to_string(given_.ids.size()));
  }
  return std::move(given_);
}

Result<GivenDevices> DecodeGiven(std::string_view text, const IsGpuResource& is_gpus) {
  const Json json = Json::parse(text, nullptr, false);
  if (json.is_discarded()) return Invalid("want JSON, got something else");
  if (!json.is_object()) return Invalid(std::string("want an object, got ") + json.type_name());
  GivenCollector given(Evidence::kAgent);
  int version = 0;
  Fields fields(json, "");
  fields.Int("version", 1, 1, version);
  fields.Object("containers", [&](const Json& list, const std::string& path) -> Status {
    for (const auto& [name, resources] : list.items()) {
      const std::string place = path + "." + name;
      if (!resources.is_object()) {
        return Invalid(place + ": want an object, got " + resources.type_name());
      }
      for (const auto& [resource, ids] : resources.items()) {
        if (is_gpus(resource)) BERTH_TRY_STATUS(AddIds(ids, place + "." + resource, given));
      }
    }
    return {};
  });
  BERTH_TRY_STATUS(fields.Finish());
  if (version == 0) return Invalid("version: want 1, got none");
  return given.Finish();
}

}  // namespace berth::wire
