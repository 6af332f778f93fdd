// SPDX-License-Identifier: Apache-2.0
#include "topology/gpu_model.h"

#include <algorithm>
#include <array>

#include "topology/mig/mig_catalog.h"

namespace berth {
namespace {

// hkust-adsl/kubernetes-scheduler-simulator at 5b6b304, pkg/type/open-gpu-share/utils/const.go:
// bytes as reported by the devices of the openb cluster, in MiB.
constexpr std::string_view kOpenb = "openb simulator, MapGpuTypeMemoryMiB";

// Of AMD's, the sizes that its labels round to (amd.com/gpu.vram); of Huawei's, what its virtual
// NPUs are cut of; of AWS's, what its documents say of a chip.
constexpr std::string_view kAmdSize = "AMD Instinct data sheets; rocm.docs.amd.com, GPU hardware";
constexpr std::string_view kAscendSize =
    "vGPU chart at 00160eb, device-configmap.yaml, memoryCapacity";
constexpr std::string_view kNeuronSize = "awsdocs-neuron.readthedocs-hosted.com, Neuron hardware";

constexpr std::array<GpuModel, 31> kGpuModels = {{
    {"1080", 11178, kOpenb},
    {"2080", 11019, kOpenb},
    {"3090", 24268, kOpenb},
    {"310P", 21527, kAscendSize},
    {"310P3", 21527, kAscendSize},
    {"910A", 32768, kAscendSize},
    {"910B2", 65536, kAscendSize},
    {"910B3", 65536, kAscendSize},
    {"910B4", 32768, kAscendSize},
    {"910B4-1", 65536, kAscendSize},
    {"910C", 65536, kAscendSize},
    {"A10", 22731, kOpenb},
    {"A100", 81251, kOpenb},
    {"M40", 11448, kOpenb},
    {"MI210", 65536, kAmdSize},
    {"MI300A", 131072, kAmdSize},
    {"MI300X", 196608, kAmdSize},
    {"MI308X", 196608, kAmdSize},
    {"MI325", 262144, kAmdSize},
    {"MI325X", 262144, kAmdSize},
    {"MI350X", 294912, kAmdSize},
    {"MI355X", 294912, kAmdSize},
    {"P100", 16280, kOpenb},
    {"P4", 7611, kOpenb},
    {"T4", 15109, kOpenb},
    {"V100M16", 16160, kOpenb},
    {"V100M32", 32510, kOpenb},
    {"inferentia", 8192, kNeuronSize},
    {"inferentia2", 32768, kNeuronSize},
    {"trainium", 32768, kNeuronSize},
    {"trainium2", 98304, kNeuronSize},
}};

// "MI300X" of AMD_Instinct_MI300X_OAM, "910B3" of Ascend910B3; "" of another vendor's.
std::string_view BareProduct(std::string_view name) {
  constexpr std::string_view kAmdBefore = "AMD_Instinct_", kAscendBefore = "Ascend";
  if (name.starts_with(kAscendBefore)) return name.substr(kAscendBefore.size());
  if (!name.starts_with(kAmdBefore)) return {};
  name.remove_prefix(kAmdBefore.size());
  return name.substr(0, name.find('_'));
}

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

}  // namespace

std::span<const GpuModel> GpuModelCatalogue() { return kGpuModels; }

const GpuModel* FindGpuModel(std::string_view name) {
  const auto row = std::ranges::lower_bound(kGpuModels, name, {}, &GpuModel::name);
  return row != kGpuModels.end() && row->name == name ? &*row : nullptr;
}

std::int64_t CataloguedMemoryMib(std::string_view name) {
  if (const GpuModel* model = FindGpuModel(name)) return model->memory_mib;
  if (const GpuModel* model = FindGpuModel(BareProduct(name))) return model->memory_mib;
  if (BareGpuProductLabel(name) != name) return 0;  // of a part, or of a GPU with several users
  const MigProduct* const product = MigProductOfLabel(name);
  if (product == nullptr) return 0;
  std::int64_t memory_mib = 0;
  for (const MigRow& row : product->rows()) {
    if (row.memory_units == product->memory_units()) {
      memory_mib = std::max<std::int64_t>(memory_mib, row.memory_mib);
    }
  }
  return memory_mib;
}

std::span<const GpuPower> GpuPowerCatalogue() { return kGpuPower; }

const GpuPower* FindGpuPower(std::string_view name) {
  const auto found = std::ranges::lower_bound(kGpuPower, name, {}, &GpuPower::name);
  return found != kGpuPower.end() && found->name == name ? &*found : nullptr;
}

}  // namespace berth
