// SPDX-License-Identifier: Apache-2.0
#include "server/dialects/vgpu/vgpu_ask.h"

#include <algorithm>
#include <string>
#include <vector>

#include "base/text.h"

namespace berth::dialects {
namespace {

using wire::ContainerSpec;
using wire::ResourceAsk;

constexpr std::int64_t kWholePercent = 100;
constexpr std::int64_t kMilliPerPercent = kMilliPerGpu / kWholePercent;
constexpr std::int64_t kBytesPerMib = std::int64_t{1} << 20;

// 0 where all of it is asked for.
std::int64_t MemoryPercent(const ResourceAsk& ask) {
  return ask.gpu_memory_percent < kWholePercent ? ask.gpu_memory_percent : 0;
}

Status CheckPart(const VgpuWords& words, const ResourceAsk& ask) {
  const std::string part(ask.part_resource);
  if (ask.gpus < 1) {
    return Invalid(part + ": want " + std::string(words.number) + " beside it, got none");
  }
  if (MemoryPercent(ask) > 0 && ask.gpu_memory_mib_each > 0) {
    return Invalid(std::string(words.percent) + " beside " + std::string(words.memory) +
                   ": want one of the two");
  }
  return {};
}

bool AsksPart(const ResourceAsk& ask) {
  return ask.gpu_memory_mib_each > 0 || MemoryPercent(ask) > 0;
}

// apart: some container asks for compute beside percent of the memory, so that they add up apart.
void MakeShare(const VgpuWords& words, bool apart, ResourceAsk& ask) {
  ask.part_resource = {};
  if (!AsksPart(ask)) return;  // all of its memory
  const std::int64_t memory_percent = MemoryPercent(ask);
  ask.share_gpus = ask.gpus;
  ask.gpus = 0;
  ask.gpu_resource = {};
  ask.share_agent = words.agent;
  ask.share_bytes = ask.gpu_memory_mib_each > wire::kMostAsked / kBytesPerMib
                        ? wire::kMostAsked
                        : ask.gpu_memory_mib_each * kBytesPerMib;
  const bool together = memory_percent > 0 && !apart;
  ask.share_milli = (together ? memory_percent : ask.gpu_cores_percent) * kMilliPerPercent;
  if (!together) ask.share_memory_milli = memory_percent * kMilliPerPercent;
}

}  // namespace

void AddVgpuAsk(const VgpuWords& words, std::string_view resource, std::int64_t amount,
                ResourceAsk& ask) {
  if (amount <= 0) return;
  if (resource == words.memory) {
    ask.gpu_memory_mib_each = wire::Capped(amount);
    ask.part_resource = words.memory;
  } else if (resource == words.percent) {
    ask.gpu_memory_percent = std::min(amount, kWholePercent);
    if (amount < kWholePercent) ask.part_resource = words.percent;
  } else if (resource == words.cores) {
    ask.gpu_cores_percent = std::min(amount, kWholePercent);
    if (amount < kWholePercent) ask.part_resource = words.cores;
  }
}

Result<std::set<std::string>> ListIn(const wire::PodParts& parts, std::string_view key) {
  const std::string* const said = parts.Annotation(key);
  if (said == nullptr) return std::set<std::string>();
  const std::vector<std::string_view> words = PartsOf(*said, ',');
  std::set<std::string> list(words.begin(), words.end());
  if (list.size() <= wire::kMostListed) return list;
  return wire::WrongAnnotation(key, "want at most " + std::to_string(wire::kMostListed) +
                                        " entries, got " + std::to_string(list.size()));
}

Status ReadVgpuUuids(const wire::PodParts& parts, std::string_view use_key,
                     std::string_view nouse_key, RequestShape& shape) {
  std::vector<GpuRule> rules = shape.gpu_rules;
  for (const bool refused : {false, true}) {
    BERTH_TRY(const std::set<std::string> uuids, ListIn(parts, refused ? nouse_key : use_key));
    for (const std::string& uuid : uuids) rules.push_back({refused, uuid});
  }
  std::ranges::sort(rules);
  rules.erase(std::unique(rules.begin(), rules.end()), rules.end());
  shape.gpu_rules = std::move(rules);
  return {};
}

Status FindVgpuShares(const VgpuWords& words, wire::PodParts& parts) {
  bool by_memory = false, by_percent = false, by_cores = false;
  std::int64_t gpus = 0;  // of each container with a part
  std::vector<ResourceAsk*> asks;
  for (ContainerSpec& container : parts.containers) {
    ResourceAsk& ask = container.ask;
    const std::string_view part = ask.part_resource;
    if (part.empty() || (part != words.memory && part != words.percent && part != words.cores)) {
      continue;
    }
    asks.push_back(&ask);
    if (Status fine = CheckPart(words, ask); !fine) {
      return tl::unexpected(std::move(fine).error().Within("container " + container.name));
    }
    by_memory = by_memory || ask.gpu_memory_mib_each > 0;
    by_percent = by_percent || MemoryPercent(ask) > 0;
    if (by_memory && by_percent) {
      return Invalid("container " + container.name + ": want " + std::string(words.memory) +
                     " in all containers or " + std::string(words.percent) + " in all");
    }
    if (!AsksPart(ask)) continue;
    by_cores = by_cores || ask.gpu_cores_percent > 0;
    if (gpus > 0 && ask.gpus != gpus) {
      return Invalid("container " + container.name + ": " + std::string(words.number) +
                     ": want as many as in the containers before it (" + std::to_string(gpus) +
                     "), since all share the same GPUs, got " + std::to_string(ask.gpus));
    }
    gpus = ask.gpus;
  }
  for (ResourceAsk* const ask : asks) MakeShare(words, by_cores, *ask);
  return {};
}

wire::RecordedAsk VgpuAskOf(const VgpuWords& words, const ContainerSpec& container) {
  const ResourceAsk& ask = container.ask;
  wire::RecordedAsk asked{.where = "container " + container.name,
                          .ends_first = container.kind == wire::ContainerKind::kInit};
  if (ask.gpu_resource != words.number) return asked;
  asked.count = ask.gpus;
  const std::int64_t percent = MemoryPercent(ask), cores = ask.gpu_cores_percent;
  wire::GpuPart& part = asked.part;
  part.memory_mib = ask.gpu_memory_mib_each;
  part.memory_milli = static_cast<int>(percent * kMilliPerPercent);
  if (!AsksPart(ask)) part.memory_milli = kMilliPerGpu;
  part.milli = cores > 0 ? static_cast<int>(cores * kMilliPerPercent) : part.memory_milli;
  return asked;
}

}  // namespace berth::dialects
