// SPDX-License-Identifier: Apache-2.0
#include "server/dialects/vgpu/vgpu_devices.h"

#include <algorithm>
#include <array>

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
// divides: containers may have different GPUs.
void MakeShare(const VgpuWords& words, bool apart, bool divides, ResourceAsk& ask) {
  ask.part_resource = {};
  if (!AsksPart(ask)) return;  // all of its memory
  const std::int64_t memory_percent = MemoryPercent(ask);
  ask.share_gpus = ask.gpus;
  ask.share_by_container = divides;
  ask.gpus = 0;
  ask.gpu_resource = {};
  ask.share_agent = words.agent;
  ask.share_bytes =
      std::min(ask.gpu_memory_mib_each, wire::kMostAsked / kBytesPerMib) * kBytesPerMib;
  const bool together = memory_percent > 0 && !apart;
  ask.share_milli = (together ? memory_percent : ask.gpu_cores_percent) * kMilliPerPercent;
  if (!together) ask.share_memory_milli = memory_percent * kMilliPerPercent;
}

constexpr int kMilliPerCore = kMilliPerGpu / 100;
constexpr std::int64_t kMostMib = std::int64_t{1} << 40;
constexpr std::size_t kLongestDeviceId = 64;
constexpr std::size_t kMostDevices = 1000;  // of all containers

// Percent of the compute that the container asks for itself.
int CoresOf(const GpuAsk& ask) {
  const auto* const share = std::get_if<GpuShare>(&ask);
  if (share == nullptr) return 100;
  const bool says_memory = share->memory_mib > 0 || share->memory_milli > 0;
  return says_memory ? share->milli / kMilliPerCore : 0;
}

Result<wire::RecordedGpu> ReadDevice(std::string_view text) {
  std::array<std::string_view, 4> fields;
  std::string_view rest = text;
  for (std::string_view& field : fields) field = NextPart(rest, ',');
  const auto memory = ParseInt(fields[2], 0, kMostMib);
  const auto cores = ParseInt(fields[3], 0, 100);
  const bool is_uuid = !fields[0].empty() && fields[0].size() <= kLongestDeviceId &&
                       fields[0].find('[') == std::string_view::npos;  // a MIG device of old
  if (is_uuid && memory && cores && rest.empty() && (*memory > 0 || *cores > 0)) {
    return wire::RecordedGpu{.uuid = std::string(fields[0]),
                             .says = {static_cast<int>(*cores) * kMilliPerCore, *memory, 0}};
  }
  return Invalid("want UUID,VENDOR,MIB,CORES, got \"" + std::string(text.substr(0, 100)) + "\"");
}

// The GPUs of each segment that has some.
Result<std::vector<std::vector<wire::RecordedGpu>>> Parse(std::string_view text) {
  std::vector<std::vector<wire::RecordedGpu>> segments;
  std::size_t gpus = 0;
  while (!text.empty()) {
    std::vector<wire::RecordedGpu> read;
    for (const std::string_view part : PartsOf(NextPart(text, ';'), ':')) {
      if (part == ",,0,0") continue;  // a device of nothing, for a container that asks for none
      BERTH_TRY(wire::RecordedGpu gpu, ReadDevice(part));
      read.push_back(std::move(gpu));
      if (++gpus <= kMostDevices) continue;
      return Invalid("want at most " + std::to_string(kMostDevices) + " devices, got more");
    }
    if (!read.empty()) segments.push_back(std::move(read));
  }
  return segments;
}

}  // namespace

void AddVgpuAsk(const VgpuWords& words, std::string_view resource, std::int64_t amount,
                ResourceAsk& ask) {
  if (amount <= 0) return;
  if (resource == words.memory) {
    ask.gpu_memory_mib_each = std::min(amount, kMostMib);  // units of an agent multiply it
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
  const bool divides = parts.containers.size() <= kMostGpuSteps;
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
    if (gpus > 0 && ask.gpus != gpus && !divides) {
      return Invalid("container " + container.name + ": " + std::string(words.number) +
                     ": want as many as in the containers before it (" + std::to_string(gpus) +
                     "), since so many containers share the same GPUs, got " +
                     std::to_string(ask.gpus));
    }
    gpus = ask.gpus;
  }
  for (ResourceAsk* const ask : asks) MakeShare(words, by_cores, divides, *ask);
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

std::vector<VgpuDevice> VgpuDevicesOf(const PodRequest& pod, const Placement& placement,
                                      const NodeSpec& node) {
  std::vector<VgpuDevice> devices;
  for (const auto& [name, grants] : GrantsByContainer(pod, placement)) {
    const auto container = std::ranges::find(pod.containers, name, &ContainerAsk::name);
    if (container == pod.containers.end()) continue;
    for (const DeviceGrant& grant : grants) {
      const auto* const share = std::get_if<GpuShare>(&container->gpus);
      const int unit = share != nullptr && share->memory_mib > 0 ? 1 : node.unit_mib();
      devices.push_back({container->index, node.UuidOf(grant.gpu), grant.memory_mib / unit,
                         CoresOf(container->gpus)});
    }
  }
  return devices;
}

std::string VgpuSegment(const std::vector<VgpuDevice>& devices, int container) {
  std::string segment;
  for (const VgpuDevice& device : devices) {
    if (device.container != container) continue;
    segment += device.uuid + ",NVIDIA," + std::to_string(device.memory) + "," +
               std::to_string(device.cores) + ":";
  }
  return segment;
}

Status ReadVgpuDevices(const VgpuWords& words, std::string_view text, const wire::PodParts& asked,
                       wire::ObservedPod& observed) {
  BERTH_TRY(auto segments, Parse(text));
  // In their order, since agents have written them in other places than their containers'
  // (HAMi#991). Init containers may have none.
  std::vector<wire::RecordedAsk> asks, of_mains;
  for (const wire::ContainerSpec& container : asked.containers) {
    const wire::RecordedAsk ask = VgpuAskOf(words, container);
    if (ask.count > 0) asks.push_back(ask);
    if (ask.count > 0 && container.kind == wire::ContainerKind::kMain) of_mains.push_back(ask);
  }
  if (segments.size() < asks.size()) asks = std::move(of_mains);
  if (segments.empty()) return {};
  if (segments.size() != asks.size()) {
    return Invalid("want GPUs of " + CountText(asks.size(), "container") +
                   ", as the pod asks, got those of " + std::to_string(segments.size()));
  }
  for (std::size_t i = 0; i < asks.size(); ++i) asks[i].gpus = std::move(segments[i]);
  return wire::TakeRecordedGpus(asks, observed);
}

std::string GfdNameOf(std::string type) {
  constexpr std::string_view kVendor = "NVIDIA-";
  if (type.starts_with(kVendor)) type.erase(0, kVendor.size());
  std::ranges::replace(type, ' ', '-');
  return type;
}

void CountRegistered(std::int64_t allocatable, wire::GpuDraft& draft) {
  wire::SharedGpus& shared = *draft.shared;
  std::set<std::string> seen;
  std::string twice;  // one of them: a register is long
  std::size_t kept = 0;
  for (std::size_t i = 0; i < shared.gpus.size(); ++i) {
    const std::string& uuid = shared.gpus[i].uuid;
    if (kept == std::size_t{kMaxGpusPerNode}) {
      draft.AddProblem("want at most " + std::to_string(kept) + " registered GPUs, got more");
      break;
    }
    if (!uuid.empty() && !seen.insert(uuid).second) {
      twice = uuid;
      continue;
    }
    std::swap(shared.gpus[kept], shared.gpus[i]);
    std::swap(shared.models[kept], shared.models[i]);
    ++kept;
  }
  shared.gpus.resize(kept);
  shared.models.resize(kept);
  if (!twice.empty()) draft.AddProblem("GPU " + twice + " is registered twice");
  std::int64_t registered = 0, each = 1, healthy = 0;
  for (const GpuSpec& gpu : shared.gpus) {
    if (!gpu.healthy) continue;
    ++healthy;
    registered += gpu.most_users;
    each = std::max<std::int64_t>(each, gpu.most_users);
  }
  const std::int64_t lost = std::max<std::int64_t>(registered - allocatable, 0);
  shared.missing =
      static_cast<int>(allocatable > 0 ? std::min((lost + each - 1) / each, healthy) : healthy);
}

}  // namespace berth::dialects
