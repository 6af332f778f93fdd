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

constexpr std::array<GpuModel, 11> kCatalogue = {{
    {"1080", 11178, kOpenb},
    {"2080", 11019, kOpenb},
    {"3090", 24268, kOpenb},
    {"A10", 22731, kOpenb},
    {"A100", 81251, kOpenb},
    {"M40", 11448, kOpenb},
    {"P100", 16280, kOpenb},
    {"P4", 7611, kOpenb},
    {"T4", 15109, kOpenb},
    {"V100M16", 16160, kOpenb},
    {"V100M32", 32510, kOpenb},
}};

}  // namespace

std::span<const GpuModel> GpuModelCatalogue() { return kCatalogue; }

const GpuModel* FindGpuModel(std::string_view name) {
  const auto row = std::ranges::lower_bound(kCatalogue, name, {}, &GpuModel::name);
  return row != kCatalogue.end() && row->name == name ? &*row : nullptr;
}

std::int64_t CataloguedMemoryMib(std::string_view name) {
  if (const GpuModel* model = FindGpuModel(name)) return model->memory_mib;
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
