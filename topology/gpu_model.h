// SPDX-License-Identifier: Apache-2.0
//
// GpuModel: what the product catalogue knows of a GPU model.
//
// A model is named as the node publishes it (the value of its model label, "NVIDIA-A100-SXM4-80GB";
// in the openb trace "V100M32"; of AMD and Huawei without "AMD_Instinct_" and "Ascend"). The
// catalogue only fills gaps: values that a node publishes itself take precedence.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace berth {

struct GpuModel {
  std::string_view name;
  std::int64_t memory_mib;  // of one GPU, as its driver reports it
  std::string_view source;  // where the row was read
};

// All rows, sorted by name.
std::span<const GpuModel> GpuModelCatalogue();

// The row of that name (exact match), or nullptr.
const GpuModel* FindGpuModel(std::string_view name);

// Memory of one GPU of that model: the value of its row, also of "AMD_Instinct_MI300X_OAM" and
// "Ascend910B3", else the memory of a MIG device that takes
// the whole GPU (mig_catalog.h), which is a little less. 0 if neither is known.
std::int64_t CataloguedMemoryMib(std::string_view name);

}  // namespace berth
