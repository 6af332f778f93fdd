// SPDX-License-Identifier: Apache-2.0
//
// The links of a machine when only its GPU product and its number of GPUs are known.
//
// Only boards on which every two GPUs have the same links, so that the GPU numbering does not
// matter, or those of consecutive groups have: a V100 cube mesh comes in four numberings, and PCIe
// cards with any bridges or none. A product is named as the vendor's labels do (gpu_vendor.h), with
// or without "NVIDIA-", "AMD_Instinct_" or "Ascend" before it. What AMD and Huawei add to a name is
// another package or bin of the same: MI300X_OAM, MI300X_VF, 910B4-1.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "topology/links/link_matrix.h"
#include "topology/links/wiring.h"

namespace berth {

struct ProductLinks {
  std::string_view product;  // without the vendor
  int gpus;                  // of the machine
  int links;                 // between every two of them, or of a group
  bool guess;                // no machine's own output was seen, or other machines differ
  std::string_view source;   // where the row was read, or what it is guessed from
  LinkType fabric = LinkType::kNvlink;
  int group = 0;  // so many that follow each other are linked, and no others; 0 = all
};
std::span<const ProductLinks> ProductLinksCatalogue();

// The NUMA groups are unknown. nullopt for a product that the catalogue does not have.
std::optional<LinkMatrix> LinksOfProduct(std::string_view product, int gpus);

// SpeedsFor(matrix), with the NVLink speed of that product if it differs from NVLink 2 to 4: P100
// 20 GB/s, the bridges of A40, RTX A6000 and 3090 14 GB/s (as `nvidia-smi nvlink -s` lists them),
// Blackwell 50 GB/s. An empty or unknown product changes nothing.
LinkSpeeds SpeedsFor(const LinkMatrix& matrix, std::string_view product);

// The link with NVIDIA's score of a pair of GPUs, which HAMi publishes: SYS 10, NODE 20, PHB 30,
// PXB 40, PIX 50, PSB 60, plus 100 for each NVLink, at most 18; 0 if the link is unknown; nullopt
// if no link has it. (go-gpuallocator at 876e7b7, besteffort_policy.go.)
std::optional<Link> LinkOfNvidiaScore(std::int64_t score);

}  // namespace berth
