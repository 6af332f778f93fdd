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

}  // namespace berth
