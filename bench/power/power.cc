// SPDX-License-Identifier: Apache-2.0
#include "bench/power/power.h"

#include <algorithm>
#include <array>
#include <cstdint>

#include "topology/gpu_mask.h"

namespace berth {
namespace {

// The model of Lettich et al., "Power- and Fragmentation-aware Online Scheduling for GPU
// Datacenters", CCGrid 2025 (arXiv 2412.17484): Fr4nz83/PWR-plugin-kubernetes,
// pkg/type/open-gpu-share/utils/const.go, in which busy is the thermal design power. Which CPU is
// beside which GPU: data/2 - Add CPU models to YAML nodes.ipynb there.
constexpr std::string_view kPwr = "PWR, const.go, MapGpuTypeEnergyConsumption";
constexpr std::string_view kPwrCpu = "PWR, const.go, MapCpuTypeEnergyConsumption";

// The trace does not say what G2 and G3 are ("undisclosed internal GPU codes": alibaba/clusterdata,
// cluster-trace-gpu-v2023/README.md), and a stored version of const.go has 25 and 250 W for both,
// marked as fake. The notebook above gives both the CPU of the machines with A10 and A100, so here
// G2, eight in a machine with 96 cores, counts as an A10 and G3 as an A100.
constexpr std::string_view kTakenForA10 = "undisclosed; taken for an A10 (PWR)";
constexpr std::string_view kTakenForA100 = "undisclosed; taken for an A100 (PWR)";

constexpr std::string_view kMi300XDraw = "rocm-smi: 140 to 180 W of 750 W, in four listings";

constexpr CpuPower kXeonE5 = {"Xeon E5-2682 v4", 15, 120, 16, kPwrCpu};
constexpr CpuPower kXeon8163 = {"Xeon 8163", 20, 165, 24, kPwrCpu};
constexpr CpuPower kXeon6326 = {"Xeon 6326", 20, 185, 16, kPwrCpu};
constexpr CpuPower kXeon8369B = {"Xeon 8369B", 20, 270, 32, kPwrCpu};

// The names of the openb trace, with known CPUs, and those that real nodes publish. Listings are
// those of GPUs that nobody used, with their power limit, that people keep in public repositories.
constexpr std::array<GpuPower, 35> kGpuPower = {{
    {"A10", 30, 150, &kXeon8369B, kPwr},
    {"A100", 50, 400, &kXeon8369B, kPwr},
    {"AMD_Instinct_MI300X_OAM", 160, 750, nullptr, kMi300XDraw},
    {"AMD_Instinct_MI300X_VF", 160, 750, nullptr, kMi300XDraw},
    {"G2", 30, 150, &kXeon8369B, kTakenForA10},
    {"G3", 50, 400, &kXeon8369B, kTakenForA100},
    {"NVIDIA-A10", 30, 150, nullptr, kPwr},
    {"NVIDIA-A100-80GB-PCIe", 50, 300, nullptr,
     "nvidia-smi: 43 to 65 W of 300 W, in nine public repositories"},
    {"NVIDIA-A100-SXM4-40GB", 50, 400, nullptr, kPwr},
    {"NVIDIA-A100-SXM4-80GB", 50, 400, nullptr, kPwr},
    {"NVIDIA-A10G", 10, 300, nullptr, "nvidia-smi: 8 to 15 W of 300 W, in three listings"},
    {"NVIDIA-A30", 35, 165, nullptr, "nvidia-smi: 32 to 43 W of 165 W, in three listings"},
    {"NVIDIA-A40", 20, 300, nullptr, "nvidia-smi: 21 W of 300 W, in one listing"},
    {"NVIDIA-B200", 140, 1000, nullptr, "nvidia-smi: 136 to 145 W of 1000 W, in four listings"},
    {"NVIDIA-B300-SXM6-AC", 155, 1100, nullptr,
     "nvidia-smi: 135 and 181 W of 1100 W, in two listings"},
    {"NVIDIA-GB200", 165, 1200, nullptr, "nvidia-smi: 162 to 181 W of 1200 W, in five listings"},
    {"NVIDIA-GB300", 230, 1400, nullptr, "nvidia-smi: 234 W of 1400 W, in one listing"},
    {"NVIDIA-H100-80GB-HBM3", 70, 700, nullptr,
     "nvidia-smi: 74 W of 700 W, Zymrael/vortex; 68 to 75 W in nine other public repositories"},
    {"NVIDIA-H100-NVL", 60, 400, nullptr, "nvidia-smi: 60 to 63 W of 400 W, in two listings"},
    {"NVIDIA-H100-PCIe", 50, 350, nullptr, "nvidia-smi: 46 to 54 W of 350 W, in two listings"},
    {"NVIDIA-H20", 72, 500, nullptr, "nvidia-smi: 72 to 74 W of 500 W, in three listings"},
    {"NVIDIA-H200", 75, 700, nullptr,
     "nvidia-smi: 73 to 78 W of 700 W, in five listings; 120 to 127 W in two others"},
    {"NVIDIA-H200-NVL", 70, 600, nullptr, "nvidia-smi: 69 to 73 W of 600 W, in two listings"},
    {"NVIDIA-L4", 16, 72, nullptr, "nvidia-smi: 16 W of 72 W, speaches-ai/speaches#438"},
    {"NVIDIA-L40", 35, 300, nullptr, "nvidia-smi: 35 W of 300 W, in one listing"},
    {"NVIDIA-L40S", 35, 350, nullptr,
     "nvidia-smi: 20 to 35 W of 350 W, in nine public repositories"},
    {"NVIDIA-RTX-PRO-6000-Blackwell-Server-Edition", 30, 600, nullptr,
     "nvidia-smi: 28 to 35 W of 600 W, in five listings; 46 and 81 W in two others, in state P0"},
    {"P100", 25, 250, &kXeonE5, kPwr},
    {"T4", 10, 70, &kXeon8163, kPwr},
    {"Tesla-P100-PCIE-16GB", 25, 250, nullptr, kPwr},
    {"Tesla-T4", 10, 70, nullptr, kPwr},
    {"Tesla-V100-SXM2-16GB", 30, 300, nullptr, kPwr},
    {"Tesla-V100-SXM2-32GB", 30, 300, nullptr, kPwr},
    {"V100M16", 30, 300, &kXeon6326, kPwr},
    {"V100M32", 30, 300, &kXeon6326, kPwr},
}};

int MostThatAGpuAdds() {
  int most = 0;
  for (const GpuPower& row : GpuPowerCatalogue()) {
    most = std::max(most, row.busy_watts - row.idle_watts);
  }
  return most;
}

constexpr std::int64_t kMilliPerCore = 2000;  // two vCPUs

const GpuPower* PowerOf(const NodeSpec& spec) {
  return spec.gpus.empty() || spec.gpus_are_parts ? nullptr : FindGpuPower(spec.gpu_model);
}

std::int64_t CeilOfRatio(std::int64_t amount, std::int64_t unit) {
  return (amount + unit - 1) / unit;
}

int CpuWatts(const CpuPower& cpu, std::int64_t all_milli, std::int64_t free_milli) {
  const std::int64_t cores = CeilOfRatio(all_milli, kMilliPerCore);
  const std::int64_t given = std::clamp<std::int64_t>(cores - free_milli / kMilliPerCore, 0, cores);
  const std::int64_t cpus = CeilOfRatio(cores, cpu.cores), busy = CeilOfRatio(given, cpu.cores);
  return static_cast<int>(cpu.busy_watts * busy + cpu.idle_watts * (cpus - busy));
}

// How many GPUs the choice takes that nobody uses.
int StartedGpus(const Node& node, const DeviceChoice& choice) {
  int started = 0;
  ForEachGpu(choice.gpus, [&](int gpu) {
    started += node.gpus()[static_cast<std::size_t>(gpu)].idle() ? 1 : 0;
  });
  return started;
}

int AddedCpuWatts(const GpuPower& power, const Node& node, const RequestShape& shape) {
  if (power.cpu == nullptr) return 0;
  const std::int64_t all = node.spec().cpu_milli, free = node.free_cpu_milli();
  return CpuWatts(*power.cpu, all, free - shape.cpu_milli) - CpuWatts(*power.cpu, all, free);
}

int CpuPartWatts(const GpuPower& power, const RequestShape& shape) {
  if (power.cpu == nullptr) return 0;
  const std::int64_t of_cpu = power.cpu->busy_watts - power.cpu->idle_watts;
  return static_cast<int>(of_cpu * shape.cpu_milli / (power.cpu->cores * kMilliPerCore));
}

}  // namespace

int UnknownWatts(const RequestShape& shape) {
  static const int of_gpu = MostThatAGpuAdds();
  return shape.wants_gpu() ? of_gpu * std::max(shape.gpu_count(), 1) : 0;
}

void Power::Score(const Node& node, const RequestShape& shape,
                  std::span<const DeviceChoice> choices, std::span<int> scores) const {
  const int unknown = UnknownWatts(shape);
  for (std::size_t i = 0; i < choices.size(); ++i) {
    scores[i] = -OwnAddedWatts(node, shape, choices[i]).value_or(unknown);
  }
}

std::optional<int> EstimatedWatts(const Node& node) {
  const GpuPower* const power = PowerOf(node.spec());
  if (power == nullptr) return std::nullopt;
  int watts = 0;
  for (const GpuFree& gpu : node.gpus())
    watts += gpu.idle() ? power->idle_watts : power->busy_watts;
  if (power->cpu == nullptr) return watts;
  return watts + CpuWatts(*power->cpu, node.spec().cpu_milli, node.free_cpu_milli());
}

std::optional<int> AddedWatts(const Node& node, const RequestShape& shape,
                              const DeviceChoice& choice) {
  const GpuPower* const power = PowerOf(node.spec());
  if (power == nullptr) return std::nullopt;
  return StartedGpus(node, choice) * (power->busy_watts - power->idle_watts) +
         AddedCpuWatts(*power, node, shape);
}

std::optional<int> OwnAddedWatts(const Node& node, const RequestShape& shape,
                                 const DeviceChoice& choice) {
  const GpuPower* const power = PowerOf(node.spec());
  if (power == nullptr) return std::nullopt;
  const int of_gpu = (power->busy_watts - power->idle_watts) * choice.milli / kMilliPerGpu;
  return StartedGpus(node, choice) * of_gpu +
         std::min(AddedCpuWatts(*power, node, shape), CpuPartWatts(*power, shape));
}

std::span<const GpuPower> GpuPowerCatalogue() { return kGpuPower; }

const GpuPower* FindGpuPower(std::string_view name) {
  const auto found = std::ranges::lower_bound(kGpuPower, name, {}, &GpuPower::name);
  return found != kGpuPower.end() && found->name == name ? &*found : nullptr;
}

}  // namespace berth
