// SPDX-License-Identifier: Apache-2.0
#include "test/soak/hostile_pod.h"

#include <algorithm>
#include <array>
#include <map>

#include "server/wire/pod/pod_object.h"

namespace berth::test {
namespace {

constexpr int kGpuMib = 81'920;

// So many GPUs from `first` on, so much of each.
struct Claim {
  int first = 0, gpus = 1, milli = kGpuMilli;
};

Claim ClaimOf(Random& random, const SoakPod& pod, bool lies) {
  Claim claim{static_cast<int>(random.Below(kSoakGpusPerNode)), std::max(pod.gpus, 1),
              pod.gpus > 0 ? kGpuMilli : pod.milli};
  if (!lies) return claim;
  claim.gpus = 1 + static_cast<int>(random.Below(8));
  if (random.Below(2) == 0) claim.milli = 10 * static_cast<int>(1 + random.Below(100));
  return claim;
}

std::string NameOfGpu(int gpu) { return "g" + std::to_string(gpu); }

// HAMi's and Volcano's words.
std::string VgpuText(const Claim& claim) {
  std::string text;
  for (int i = 0; i < claim.gpus; ++i) {
    text += NameOfGpu((claim.first + i) % kSoakGpusPerNode) + ",NVIDIA," +
            std::to_string(kGpuMib * claim.milli / kGpuMilli) + "," +
            std::to_string(claim.milli / 10) + ":";
  }
  return text + ";";
}

std::string KoordinatorText(const Claim& claim) {
  std::string gpus;
  for (int i = 0; i < claim.gpus; ++i) {
    const std::string percent = std::to_string(claim.milli / 10);
    gpus += std::string(gpus.empty() ? "" : ",") + R"({"minor":)" +
            std::to_string(claim.first + i) + R"(,"resources":{"koordinator.sh/gpu-core":")" +
            percent + R"(","koordinator.sh/gpu-memory-ratio":")" + percent + R"("}})";
  }
  return R"({"gpu":[)" + gpus + "]}";
}

std::string DevicesText(const Claim& claim, const std::string& node) {
  std::string gpus;
  for (int i = 0; i < claim.gpus; ++i) {
    gpus += std::string(gpus.empty() ? "" : ",") + R"({"index":)" +
            std::to_string(claim.first + i) + R"(,"milli":)" + std::to_string(claim.milli) +
            R"(,"memory_mib":)" + std::to_string(kGpuMib * claim.milli / kGpuMilli) + "}";
  }
  return R"({"version":1,"node":")" + node + R"(","containers":{"main":{"gpus":[)" + gpus + "]}}}";
}

std::string LongText(Random& random) { return std::string(1 + random.Below(4'000), ','); }

}  // namespace

std::map<std::string, std::string> ForeignRecords(Random& random, const SoakPod& pod, bool lies) {
  const Claim claim = ClaimOf(random, pod, lies);
  switch (random.Below(8)) {
    case 0:
      return {{"hami.io/vgpu-devices-allocated", VgpuText(claim)}};
    case 1:
      return {{"volcano.sh/vgpu-ids-new", VgpuText(claim)}};
    case 2:
      return {{"scheduling.koordinator.sh/device-allocated", KoordinatorText(claim)}};
    case 3:  // says a whole GPU, whatever the pod asks for
      if (pod.gpus != 1 && !lies) return {};
      return {{"run.ai/reserve_for_gpu_index", NameOfGpu(claim.first)}};
    case 4:
      return {{"ALIYUN_COM_GPU_MEM_IDX", std::to_string(claim.first)},
              {"ALIYUN_COM_GPU_MEM_ASSIGNED", "false"},
              {"ALIYUN_COM_GPU_MEM_ASSUME_TIME", "9000000000000000000"}};
    case 5:
      if (!lies) return {};
      return {{"hami.io/vgpu-mig-allocations",
               R"([{"containerIndex":0,"deviceIndex":0,"gpuUUID":"g0","profile":"1g.10gb",)"
               R"("placement":{"start":0,"size":1}}])"}};
    case 6:
      return {{"nvidia.com/use-gputype", LongText(random)}, {"berth.dev/gpu-model", "A100"}};
    default:
      return {{"hami.io/vgpu-devices-allocated", LongText(random)},
              {"scheduling.koordinator.sh/device-allocated", "{" + LongText(random)}};
  }
}

SoakPod HostilePod(Random& random, const std::string& name, const std::string& node, bool lies) {
  SoakPod pod{.name = name, .node = node, .hostile = true};
  const std::uint64_t how = random.Below(4);
  // A record that is not held to the request replaces it, so that only that of a whole GPU is one.
  if (random.Below(2) == 0 || (how > 1 && !lies)) {
    pod.gpus = 1;
  } else {
    pod.milli = 100 * (1 + static_cast<int>(random.Below(9)));
  }
  if (how == 0) {  // its own GPU, somebody's, or one that is not there
    Claim claim = ClaimOf(random, pod, false);
    claim.first = static_cast<int>(random.Below(9));
    pod.devices = DevicesText(claim, node);
  } else if (how == 1) {
    pod.devices = DevicesText(ClaimOf(random, pod, true), node);
  } else {
    pod.says = ForeignRecords(random, pod, lies);
  }
  if (random.Below(3) == 0) pod.says["berth.dev/decision"] = "0123456789abcdef";
  return pod;
}

bool HoldsRecordsToTheRequest(const wire::PodRules& rules) {
  const Claim all{0, 8, kGpuMilli};
  const std::map<std::string, std::string> records = {
      {"hami.io/vgpu-devices-allocated", VgpuText(all)},
      {"volcano.sh/vgpu-ids-new", VgpuText(all)},
      {"scheduling.koordinator.sh/device-allocated", KoordinatorText(all)},
      {"run.ai/reserve_for_gpu_index", NameOfGpu(0)}};
  return std::ranges::all_of(records, [&rules](const auto& record) {
    SoakPod pod{.name = "probe", .milli = 100, .node = "n"};
    pod.says = {record};
    const auto observed = wire::DecodeObservedPod(PaddedText(TextOf(pod)), rules);
    return observed && observed->pod.shape.gpus == GpuAsk(GpuShare{.milli = 100}) &&
           std::ranges::all_of(observed->placement.grants,
                               [](const DeviceGrant& grant) { return grant.milli == 100; });
  });
}

}  // namespace berth::test
