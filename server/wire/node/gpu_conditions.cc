// SPDX-License-Identifier: Apache-2.0
#include "server/wire/node/gpu_conditions.h"

#include <algorithm>

#include "base/text.h"
#include "topology/gpu_mask.h"

namespace berth::wire {
namespace {

constexpr std::string_view kUuidStart = "GPU-";
constexpr std::string_view kUuidForm = "GPU-xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx";

bool IsUuidDigit(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

bool IsOfWord(char c) {
  return c == '-' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

bool IsUuid(std::string_view word) {
  return std::ranges::equal(
      word, kUuidForm, [](char c, char form) { return form == 'x' ? IsUuidDigit(c) : c == form; });
}

// What a UUID that was cut off looks like, or an index behind "GPU-".
bool BeginsLikeUuid(std::string_view word) {
  return word.starts_with(kUuidStart) &&
         std::ranges::all_of(word.substr(kUuidStart.size()),
                             [](char c) { return IsUuidDigit(c) || c == '-'; });
}

// Adds the UUIDs of one statement. Returns whether these are all that it speaks of.
bool AddNames(std::string_view statement, std::set<std::string>& uuids) {
  bool names_one = false;
  for (auto at = statement.begin();;) {
    const auto start = std::find_if(at, statement.end(), IsOfWord);
    if (start == statement.end()) return names_one;
    at = std::find_if_not(start, statement.end(), IsOfWord);
    const std::string_view word(start, at);
    if (!BeginsLikeUuid(word)) continue;
    if (!IsUuid(word)) return false;
    uuids.emplace(word);
    names_one = true;
  }
}

void KeepFirst(const std::string& said, std::string& first) {
  if (first.empty() || said < first) first = said;
}

// Nothing where one of them is not there.
std::optional<GpuMask> Find(const std::set<std::string>& uuids, const NodeSpec& spec) {
  GpuMask found = 0;
  for (const std::string& uuid : uuids) {
    const auto gpu = std::ranges::find(spec.gpus, uuid, &GpuSpec::uuid);
    if (gpu == spec.gpus.end()) return std::nullopt;
    found |= GpuBit(static_cast<int>(gpu - spec.gpus.begin()));
  }
  return found;
}

// Whether they are closed, and no others.
bool CloseNamed(const std::set<std::string>& uuids, bool as_chosen, NodeSpec& spec) {
  const std::vector<std::string>& of_places = spec.places.uuids;
  const bool are_of_places = std::ranges::all_of(uuids, [&of_places](const std::string& uuid) {
    return std::ranges::find(of_places, uuid) != of_places.end();
  });
  if (as_chosen && !of_places.empty() && are_of_places) {
    for (const std::string& uuid : uuids) berth::CloseNamed(spec, uuid, "");
    return true;
  }
  if (spec.gpus.empty() || spec.gpus_are_parts) return false;
  if (std::ranges::all_of(spec.gpus, &std::string::empty, &GpuSpec::uuid)) {
    // They are closed with the missing ones. Of partitioned GPUs the plugin counts others.
    return std::ssize(uuids) <= spec.missing && !spec.mig.known();
  }
  const auto named = Find(uuids, spec);
  if (!named) return false;
  const auto is_open = [&](int gpu) { return spec.gpus[static_cast<std::size_t>(gpu)].healthy; };
  int closed = 0;
  ForEachGpu(*named, [&](int gpu) { closed += is_open(gpu) ? 1 : 0; });
  if (!as_chosen && closed > spec.missing) return false;
  ForEachGpu(*named, [&](int gpu) { spec.gpus[static_cast<std::size_t>(gpu)].healthy = false; });
  spec.missing = std::max(spec.missing - closed, 0);
  return true;
}

constexpr std::string_view kSaidBy = "annotation berth.dev/gpu-health";

}  // namespace

std::optional<std::set<std::string>> NamedGpus(std::string_view message) {
  std::set<std::string> uuids;
  for (const std::string_view statement : PartsOf(message, ';')) {
    if (!AddNames(statement, uuids)) return std::nullopt;
  }
  if (uuids.empty()) return std::nullopt;
  return uuids;
}

void GpuConditions::Read(std::string_view type, std::string_view status, std::string_view message) {
  const bool counts = std::ranges::any_of(rules_, [&](const ConditionRule& rule) {
    return rule.type == type && rule.status == status;
  });
  if (!counts) return;
  const std::string said = std::string(type).append("=").append(status);
  auto named = NamedGpus(message);
  KeepFirst(said, named ? of_gpus_ : of_node_);
  if (named) uuids_.merge(*named);
}

void GpuConditions::CloseIn(NodeSpec& spec, bool as_chosen) const {
  spec.gpu_condition = of_node_;
  if (uuids_.empty()) return;
  if (CloseNamed(uuids_, as_chosen, spec)) {
    spec.named_gpus_condition = of_gpus_;
  } else {
    KeepFirst(of_gpus_, spec.gpu_condition);
  }
}

std::string CloseUnwell(std::string_view ids, NodeSpec& spec) {
  const bool has_names = !std::ranges::all_of(spec.gpus, &std::string::empty, &GpuSpec::uuid);
  if (ids.empty() || (!has_names && spec.places.uuids.empty() && !spec.mig.known())) return "";
  const std::string key = std::string(kSaidBy) + ": ";
  std::string problem;
  std::size_t read = 0;
  for (const std::string_view id : PartsOf(ids, ',')) {
    if (++read > kMostUnwellIds) {
      problem = key + "want at most " + std::to_string(kMostUnwellIds) + " IDs, got more";
      break;
    }
    const bool known = CloseNamed(spec, id, kSaidBy);
    if (!known && has_names && problem.empty() && !id.starts_with("MIG-")) {
      problem = key + "want UUIDs of the node's " + std::to_string(spec.gpus.size()) +
                " GPUs, got \"" + Shortened(id, 64) + "\"";
    }
  }
  return problem;
}

}  // namespace berth::wire
