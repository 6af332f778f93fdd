// SPDX-License-Identifier: Apache-2.0
//
// The GPU products that can be cut into MIG devices, compiled in. Facts from what NVIDIA prints
// (MIG User Guide, nvidia-smi mig -lgip and -lgipp, go-nvml, gpu-operator, mig-parted); every row
// says where it was read and how sure it is. Key by product and profile, never by profile alone:
// 1g.24gb is a quarter, a half or two eighths of a GPU.
#pragma once

#include <span>
#include <string_view>

#include "topology/mig/mig_product.h"

namespace berth {

// Sorted by memory grid and age, as in the source. Lives as long as the process.
std::span<const MigProduct> MigCatalogue();

// By the product's own name ("A100-40GB"); nullptr where there is none.
const MigProduct* FindMigProduct(std::string_view name);

// By the label nvidia.com/gpu.product as GPU Feature Discovery writes it, with or without "NVIDIA-"
// before it, also with
// -MIG-<profile>, -MIG-INVALID or -SHARED behind it; boards of a known product that end in
// something else ("-SXM4-40GB-custom") count as that product. nullptr where none is known.
const MigProduct* MigProductOfLabel(std::string_view label);

// The label without -MIG-... and -SHARED: the card.
std::string_view BareGpuProductLabel(std::string_view label);

}  // namespace berth
