// SPDX-License-Identifier: Apache-2.0
#include "server/dialects/vgpu/vgpu_devices.h"

#include <algorithm>
#include <array>

#include "base/number.h"
#include "base/text.h"

namespace berth::dialects {
namespace {

constexpr int kMilliPerCore = kMilliPerGpu / 100;
constexpr std::int64_t kMostMib = std::int64_t{1} << 40;
constexpr std::size_t kLongestUuid = 64;

// Percent of the compute that the container asks for itself.
int CoresOf(const GpuAsk& ask) {
  const auto* const share = std::get_if<GpuShare>(&ask);
  if (share == nullptr) return 100;
  const bool says_memory = share->memory_mib > 0 || share->memory_milli > 0;
  return says_memory ? share->milli / kMilliPerCore : 0;
}

// The next part of the text, up to the separator.
std::string_view Next(std::string_view& text, char separator) {
  const std::size_t end = std::min(text.find(separator), text.size());
  const std::string_view part = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return part;
}

Result<DeviceGrant> ReadDevice(std::string_view text) {
  std::array<std::string_view, 4> fields;
  std::string_view rest = text;
  for (std::string_view& field : fields) field = Trimmed(Next(rest, ','));
  const auto memory = ParseInt(fields[2], 0, kMostMib);
  const auto cores = ParseInt(fields[3], 0, 100);
  const bool is_uuid = !fields[0].empty() && fields[0].size() <= kLongestUuid &&
                       fields[0].find('[') == std::string_view::npos;  // a MIG device of old
  if (is_uuid && memory && cores && rest.empty() && (*memory > 0 || *cores > 0)) {
    return DeviceGrant{.gpu = DeviceGrant::kUnknown,
                       .milli = static_cast<int>(*cores) * kMilliPerCore,
                       .memory_mib = *memory,
                       .uuid = std::string(fields[0])};
  }
  return Invalid("want UUID,VENDOR,MIB,CORES, got \"" + std::string(text.substr(0, 100)) + "\"");
}

void Add(const DeviceGrant& device, std::vector<DeviceGrant>& grants) {
  const auto known = std::ranges::find(grants, device.uuid, &DeviceGrant::uuid);
  if (known == grants.end()) {
    grants.push_back(device);
    return;
  }
  known->memory_mib += device.memory_mib;
  known->milli = std::min(known->milli + device.milli, kMilliPerGpu);
}

Result<std::vector<DeviceGrant>> Parse(std::string_view text) {
  std::vector<DeviceGrant> grants;
  while (!text.empty()) {
    std::string_view segment = Next(text, ';');
    while (!segment.empty()) {
      const std::string_view part = Next(segment, ':');
      if (part.empty()) continue;
      BERTH_TRY(const DeviceGrant device, ReadDevice(part));
      Add(device, grants);
      if (grants.size() <= static_cast<std::size_t>(kMaxGpusPerNode)) continue;
      return Invalid("want at most " + std::to_string(kMaxGpusPerNode) + " GPUs, got more");
    }
  }
  return grants;
}

}  // namespace

std::vector<VgpuDevice> VgpuDevicesOf(const PodRequest& pod, const Placement& placement,
                                      const NodeSpec& node) {
  std::vector<VgpuDevice> devices;
  for (const auto& [name, grants] : GrantsByContainer(pod, placement)) {
    const auto container = std::ranges::find(pod.containers, name, &ContainerAsk::name);
    if (container == pod.containers.end()) continue;
    for (const DeviceGrant& grant : grants) {
      devices.push_back(
          {container->index, node.UuidOf(grant.gpu), grant.memory_mib, CoresOf(container->gpus)});
    }
  }
  return devices;
}

std::string VgpuSegment(const std::vector<VgpuDevice>& devices, int container) {
  std::string segment;
  for (const VgpuDevice& device : devices) {
    if (device.container != container) continue;
    segment += device.uuid + ",NVIDIA," + std::to_string(device.memory_mib) + "," +
               std::to_string(device.cores) + ":";
  }
  return segment;
}

Status ReadVgpuDevices(std::string_view text, wire::ObservedPod& observed) {
  GpuAsk& ask = observed.pod.shape.gpus;
  auto grants = Parse(text);
  if (!grants || grants->empty()) {  // where it asks for a part, it may have any GPU
    if (!observed.pod.shape.wants_gpu()) ask = WholeGpus{1};
    return grants ? Status() : tl::unexpected(std::move(grants).error());
  }
  // Unequal parts of several GPUs are none of our asks: where they are not found they count as
  // whole ones.
  const DeviceGrant& first = grants->front();
  const auto count = static_cast<int>(grants->size());
  const bool alike = std::ranges::all_of(*grants, [&first](const DeviceGrant& grant) {
    return grant.milli == first.milli && grant.memory_mib == first.memory_mib;
  });
  if (alike && first.milli < kMilliPerGpu) {
    ask = GpuShare{.milli = first.milli, .memory_mib = first.memory_mib, .count = count};
  } else {
    ask = WholeGpus{count};
  }
  observed.placement.grants = *std::move(grants);
  return {};
}

}  // namespace berth::dialects
