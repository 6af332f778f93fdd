// SPDX-License-Identifier: Apache-2.0
#include "bench/replay/compare/part.h"

#include <map>

#include "bench/replay/csv.h"

namespace berth::replay {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kFormat = "berth-replay compare part";
constexpr int kVersion = 2;

struct Part {
  std::string path;
  Json plan;
  Shard shard;
  std::vector<Json> records;
  MadeWith made_with;
};

std::string Written(const Shard& shard) {
  return std::to_string(shard.index) + "/" + std::to_string(shard.count);
}

Result<Part> ReadPart(const std::string& path) {
  BERTH_TRY(const std::string text, ReadTextFile(path));
  try {
    const Json json = Json::parse(text);
    if (json.at("format") != kFormat || json.at("version") != kVersion) {
      return Invalid(path + ": want format \"" + std::string(kFormat) + "\", version " +
                     std::to_string(kVersion) + ", got " + json.at("format").dump() + ", " +
                     json.at("version").dump());
    }
    Part part{path, json.at("plan"), {}, json.at("runs").get<std::vector<Json>>(), {}};
    const Json& made_with = json.at("made_with");
    part.made_with = {made_with.at("version").get<std::string>(),
                      made_with.at("command").get<std::string>()};
    auto shard = ParseShard(json.at("shard").get<std::string>());
    if (!shard) return tl::unexpected(std::move(shard).error().Within(path + ": shard"));
    part.shard = *shard;
    return part;
  } catch (const Json::exception& problem) {
    return Invalid(path + ": want a part of `berth-replay compare`, got: " + problem.what());
  }
}

// Where two plans differ, such as "plan.seeds: want 3, got 4".
std::string Difference(const Json& want, const Json& got) {
  for (const auto& [key, value] : want.items()) {
    const Json other = got.is_object() && got.contains(key) ? got.at(key) : Json(nullptr);
    if (other == value) continue;
    return "plan." + key + ": want " + value.dump() + ", got " + other.dump();
  }
  return "plan: want " + want.dump() + ", got " + got.dump();
}

Status CheckBelongs(const Part& part, const Part& first) {
  if (part.plan != first.plan) {
    return Invalid(part.path + ": does not belong to " + first.path + ": " +
                   Difference(first.plan, part.plan));
  }
  if (part.made_with.version != first.made_with.version) {
    return Invalid(part.path + ": does not belong to " + first.path + ": version: want " +
                   first.made_with.version + ", got " + part.made_with.version);
  }
  if (part.shard.count != first.shard.count) {
    return Invalid(part.path + ": does not belong to " + first.path + ": want one of " +
                   std::to_string(first.shard.count) + " parts, got part " + Written(part.shard));
  }
  return {};
}

std::size_t RunsOf(const Json& plan) {
  return plan.at("policies").size() * plan.at("traces").size() *
         plan.at("seeds").get<std::size_t>();
}

Result<Runs> JoinParts(const std::map<std::size_t, const Part*>& parts, const Part& first) {
  for (std::size_t index = 1; index <= first.shard.count; ++index) {
    if (parts.contains(index)) continue;
    return Invalid("part " + Written({index, first.shard.count}) + " is missing");
  }
  Runs runs{first.plan, std::vector<Json>(RunsOf(first.plan)), parts.at(1)->made_with};
  std::size_t found = 0;
  for (const auto& [index, part] : parts) {
    for (const Json& record : part->records) {
      const auto number = record.at("number").get<std::size_t>();
      if (number >= runs.records.size() || !part->shard.Has(number) ||
          !runs.records[number].is_null()) {
        return Invalid(part->path + ": run " + std::to_string(number) +
                       " does not belong to part " + Written(part->shard));
      }
      runs.records[number] = record;
      ++found;
    }
  }
  if (found == runs.records.size()) return runs;
  return Invalid(first.path + ": want " + std::to_string(runs.records.size()) +
                 " runs in all parts, got " + std::to_string(found));
}

}  // namespace

std::string PartText(const Runs& runs, const Shard& shard) {
  const Json json = {
      {"format", kFormat}, {"version", kVersion},     {"made_with", MadeWithJson(runs.made_with)},
      {"plan", runs.plan}, {"shard", Written(shard)}, {"runs", runs.records}};
  return json.dump() + "\n";
}

std::string PartFileName(const Shard& shard) {
  return "part-" + std::to_string(shard.index) + "-of-" + std::to_string(shard.count) + ".json";
}

Result<Runs> JoinParts(const std::vector<std::string>& paths) {
  std::vector<Part> parts;
  for (const std::string& path : paths) {
    BERTH_TRY(Part part, ReadPart(path));
    parts.push_back(std::move(part));
  }
  if (parts.empty()) return Invalid("want at least one part, got none");
  std::map<std::size_t, const Part*> by_index;
  for (const Part& part : parts) {
    BERTH_TRY_STATUS(CheckBelongs(part, parts.front()));
    const auto [there, is_new] = by_index.try_emplace(part.shard.index, &part);
    if (is_new) continue;
    return Invalid(part.path + ": part " + Written(part.shard) + " is there twice, also as " +
                   there->second->path);
  }
  try {
    return JoinParts(by_index, parts.front());
  } catch (const Json::exception& problem) {
    return Invalid(parts.front().path +
                   ": want parts of `berth-replay compare`, got: " + problem.what());
  }
}

}  // namespace berth::replay
