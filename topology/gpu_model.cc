// SPDX-License-Identifier: Apache-2.0
#include "topology/gpu_model.h"

#include <algorithm>
#include <array>

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

}  // namespace berth
