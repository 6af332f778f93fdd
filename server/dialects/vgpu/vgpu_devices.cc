// SPDX-License-Identifier: Apache-2.0
#include "server/dialects/vgpu/vgpu_devices.h"

#include <algorithm>
#include <array>

#include "base/number.h"
#include "base/text.h"
#include "server/wire/pod/recorded_devices.h"

namespace berth::dialects {
namespace {

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

// The next part of the text, up to the separator.
std::string_view Next(std::string_view& text, char separator) {
  const std::size_t end = std::min(text.find(separator), text.size());
  const std::string_view part = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return part;
}

Result<wire::RecordedGpu> ReadDevice(std::string_view text) {
  std::array<std::string_view, 4> fields;
  std::string_view rest = text;
  for (std::string_view& field : fields) field = Trimmed(Next(rest, ','));
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

// The GPUs of each segment.
Result<std::vector<std::vector<wire::RecordedGpu>>> Parse(std::string_view text) {
  std::vector<std::vector<wire::RecordedGpu>> segments;
  std::size_t gpus = 0;
  while (!text.empty()) {
    std::string_view segment = Next(text, ';');
    std::vector<wire::RecordedGpu>& read = segments.emplace_back();
    while (!segment.empty()) {
      const std::string_view part = Next(segment, ':');
      if (part.empty()) continue;
      BERTH_TRY(wire::RecordedGpu gpu, ReadDevice(part));
      read.push_back(std::move(gpu));
      if (++gpus <= kMostDevices) continue;
      return Invalid("want at most " + std::to_string(kMostDevices) + " devices, got more");
    }
  }
  return segments;
}

// Which segment is the first container's; below 0: init containers have none.
std::ptrdiff_t FirstSegment(std::size_t segments, const wire::PodParts& asked) {
  const auto mains =
      std::ranges::count(asked.containers, wire::ContainerKind::kMain, &wire::ContainerSpec::kind);
  return std::ssize(asked.containers) > mains && static_cast<std::ptrdiff_t>(segments) == mains
             ? mains - std::ssize(asked.containers)
             : 0;
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

Status ReadVgpuDevices(const VgpuWords& words, std::string_view text, const wire::PodParts& asked,
                       wire::ObservedPod& observed) {
  BERTH_TRY(auto segments, Parse(text));
  if (std::ranges::all_of(segments, [](const auto& gpus) { return gpus.empty(); })) return {};
  std::vector<wire::RecordedAsk> asks;
  std::ptrdiff_t at = FirstSegment(segments.size(), asked);
  for (const wire::ContainerSpec& container : asked.containers) {
    wire::RecordedAsk& ask = asks.emplace_back(VgpuAskOf(words, container));
    const std::ptrdiff_t segment = at++;
    if (segment < 0) ask.count = 0;
    if (segment < 0 || segment >= std::ssize(segments)) continue;
    ask.gpus = std::move(segments[static_cast<std::size_t>(segment)]);
  }
  for (std::ptrdiff_t beyond = at; beyond < std::ssize(segments); ++beyond) {
    if (segments[static_cast<std::size_t>(beyond)].empty()) continue;
    return Invalid("want GPUs of the pod's " + std::to_string(asked.containers.size()) +
                   " containers, got some of one more");
  }
  return wire::TakeRecordedGpus(asks, observed);
}

std::string GfdNameOf(std::string type) {
  constexpr std::string_view kVendor = "NVIDIA-";
  if (type.starts_with(kVendor)) type.erase(0, kVendor.size());
  std::ranges::replace(type, ' ', '-');
  return type;
}

void CloseWithdrawn(std::int64_t allocatable, wire::SharedGpus& shared) {
  std::int64_t registered = 0, each = 1, healthy = 0;
  for (GpuSpec& gpu : shared.gpus) {
    gpu.healthy = gpu.healthy && allocatable > 0;
    if (!gpu.healthy) continue;
    ++healthy;
    registered += gpu.most_users;
    each = std::max<std::int64_t>(each, gpu.most_users);
  }
  const std::int64_t lost = std::max<std::int64_t>(registered - allocatable, 0);
  shared.missing = static_cast<int>(std::min((lost + each - 1) / each, healthy));
}

}  // namespace berth::dialects
