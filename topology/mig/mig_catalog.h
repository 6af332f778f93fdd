// SPDX-License-Identifier: Apache-2.0
//
// The GPU products that support MIG, compiled in. The facts come from NVIDIA's publications (MIG
// User Guide, nvidia-smi mig -lgip and -lgipp, go-nvml, gpu-operator, mig-parted); every row names
// its source. The key is product and profile, never the profile alone: 1g.24gb
// is a quarter, a half or two eighths of a GPU.
#pragma once

#include <span>
#include <string_view>

#include "topology/mig/mig_product.h"

namespace berth {

// Sorted by memory grid and age, as in the source. Lives as long as the process.
std::span<const MigProduct> MigCatalogue();

// By the product's own name ("A100-40GB"); nullptr where there is none.
const MigProduct* FindMigProduct(std::string_view name);

// By the label nvidia.com/gpu.product as GPU Feature Discovery writes it: with or without "NVIDIA-"
// in front, also with -MIG-<profile>, -MIG-INVALID or -SHARED at the end. A board of a known
// product with another ending ("-SXM4-40GB-custom") counts as that product. nullptr if the product
// is unknown.
const MigProduct* MigProductOfLabel(std::string_view label);

// The label without -MIG-... and -SHARED: the card.
std::string_view BareGpuProductLabel(std::string_view label);

}  // namespace berth
