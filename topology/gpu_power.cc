// SPDX-License-Identifier: Apache-2.0
#include "topology/gpu_power.h"

#include <algorithm>
#include <array>

namespace berth {
namespace {

// The model of Lettich et al., "Power- and Fragmentation-aware Online Scheduling for GPU
// Datacenters", CCGrid 2025 (arXiv 2412.17484): Fr4nz83/PWR-plugin-kubernetes,
// pkg/type/open-gpu-share/utils/const.go, in which busy is the thermal design power. Which CPU is
// beside which GPU: data/2 - Add CPU models to YAML nodes.ipynb there.
constexpr std::string_view kPwr = "PWR, const.go, MapGpuTypeEnergyConsumption";
constexpr std::string_view kPwrCpu = "PWR, const.go, MapCpuTypeEnergyConsumption";

// The trace does not say what G2 and G3 are, and a stored version of const.go has 25 and 250 W for
// both, marked as fake. The notebook above gives both the CPU of the machines with A10 and A100, so
// here G2, eight in a machine with 96 cores, counts as an A10 and G3 as an A100.
constexpr std::string_view kTakenForA10 = "undisclosed; taken for an A10 (PWR)";
constexpr std::string_view kTakenForA100 = "undisclosed; taken for an A100 (PWR)";

// The draw of GPUs that nobody used, and their power limit, in listings of nvidia-smi.
constexpr std::string_view kH100 =
    "nvidia-smi: 74 W of 700 W, Zymrael/vortex; 68 to 75 W in nine other public repositories";
constexpr std::string_view kA100Pcie =
    "nvidia-smi: 43 to 65 W of 300 W, in nine public repositories";
constexpr std::string_view kL40S = "nvidia-smi: 20 to 35 W of 350 W, in nine public repositories";
constexpr std::string_view kL4 = "nvidia-smi: 16 W of 72 W, speaches-ai/speaches#438";

constexpr CpuPower kXeonE5 = {"Xeon E5-2682 v4", 15, 120, 16, kPwrCpu};
constexpr CpuPower kXeon8163 = {"Xeon 8163", 20, 165, 24, kPwrCpu};
constexpr CpuPower kXeon6326 = {"Xeon 6326", 20, 185, 16, kPwrCpu};
constexpr CpuPower kXeon8369B = {"Xeon 8369B", 20, 270, 32, kPwrCpu};

// The names of the openb trace, of which the CPUs are known, and those that real nodes publish.
constexpr std::array<GpuPower, 19> kGpuPower = {{
    {"A10", 30, 150, &kXeon8369B, kPwr},
    {"A100", 50, 400, &kXeon8369B, kPwr},
    {"G2", 30, 150, &kXeon8369B, kTakenForA10},
    {"G3", 50, 400, &kXeon8369B, kTakenForA100},
    {"NVIDIA-A10", 30, 150, nullptr, kPwr},
    {"NVIDIA-A100-80GB-PCIe", 50, 300, nullptr, kA100Pcie},
    {"NVIDIA-A100-SXM4-40GB", 50, 400, nullptr, kPwr},
    {"NVIDIA-A100-SXM4-80GB", 50, 400, nullptr, kPwr},
    {"NVIDIA-H100-80GB-HBM3", 70, 700, nullptr, kH100},
    {"NVIDIA-L4", 16, 72, nullptr, kL4},
    {"NVIDIA-L40S", 35, 350, nullptr, kL40S},
    {"P100", 25, 250, &kXeonE5, kPwr},
    {"T4", 10, 70, &kXeon8163, kPwr},
    {"Tesla-P100-PCIE-16GB", 25, 250, nullptr, kPwr},
    {"Tesla-T4", 10, 70, nullptr, kPwr},
    {"Tesla-V100-SXM2-16GB", 30, 300, nullptr, kPwr},
    {"Tesla-V100-SXM2-32GB", 30, 300, nullptr, kPwr},
    {"V100M16", 30, 300, &kXeon6326, kPwr},
    {"V100M32", 30, 300, &kXeon6326, kPwr},
}};

}  // namespace

std::span<const GpuPower> GpuPowerCatalogue() { return kGpuPower; }

const GpuPower* FindGpuPower(std::string_view name) {
  const auto found = std::ranges::lower_bound(kGpuPower, name, {}, &GpuPower::name);
  return found != kGpuPower.end() && found->name == name ? &*found : nullptr;
}

}  // namespace berth
