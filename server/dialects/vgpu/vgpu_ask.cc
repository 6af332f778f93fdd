// SPDX-License-Identifier: Apache-2.0
#include "server/dialects/vgpu/vgpu_ask.h"

#include <algorithm>
#include <string>

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
  if (ask.gpus != 1) {
    return Invalid(part + ": want " + std::string(words.number) +
                   ": 1 beside it, since a part is of one GPU, got " + std::to_string(ask.gpus));
  }
  if (MemoryPercent(ask) > 0 && (ask.gpu_memory_mib_each > 0 || ask.gpu_cores_percent > 0)) {
    const bool cores = ask.gpu_cores_percent > 0;
    return Invalid(std::string(words.percent) + " beside " +
                   std::string(cores ? words.cores : words.memory) + ": want " +
                   std::string(words.memory) + " alone or with " + std::string(words.cores));
  }
  return {};
}

void MakeShare(const VgpuWords& words, ResourceAsk& ask) {
  ask.part_resource = {};
  const std::int64_t memory_percent = MemoryPercent(ask);
  if (ask.gpu_memory_mib_each == 0 && memory_percent == 0) return;  // all of its memory
  ask.gpus = 0;
  ask.gpu_resource = {};
  ask.share_agent = words.agent;
  ask.share_bytes = ask.gpu_memory_mib_each > wire::kMostAsked / kBytesPerMib
                        ? wire::kMostAsked
                        : ask.gpu_memory_mib_each * kBytesPerMib;
  ask.share_milli =
      (memory_percent > 0 ? memory_percent : ask.gpu_cores_percent) * kMilliPerPercent;
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

Status FindVgpuShares(const VgpuWords& words, wire::PodParts& parts) {
  bool by_memory = false, by_percent = false;
  for (ContainerSpec& container : parts.containers) {
    ResourceAsk& ask = container.ask;
    const std::string_view part = ask.part_resource;
    if (part.empty() || (part != words.memory && part != words.percent && part != words.cores)) {
      continue;
    }
    if (Status fine = CheckPart(words, ask); !fine) {
      return tl::unexpected(std::move(fine).error().Within("container " + container.name));
    }
    by_memory = by_memory || ask.gpu_memory_mib_each > 0;
    by_percent = by_percent || MemoryPercent(ask) > 0;
    if (by_memory && by_percent) {
      return Invalid("container " + container.name + ": want " + std::string(words.memory) +
                     " in all containers or " + std::string(words.percent) + " in all");
    }
    MakeShare(words, ask);
  }
  return {};
}

}  // namespace berth::dialects
