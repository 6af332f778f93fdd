// SPDX-License-Identifier: Apache-2.0
//
// NVIDIA's score of a pair of GPUs, which HAMi publishes: SYS 10, NODE 20, PHB 30, PXB 40, PIX 50,
// PSB 60, plus 100 for each NVLink, at most 18; 0 if the link is unknown. (go-gpuallocator at
// 876e7b7, besteffort_policy.go.)
#pragma once

#include <cstdint>
#include <optional>

#include "topology/links/link_matrix.h"

namespace berth {

int NvidiaPairScore(const Link& link);
// The link with that score; nullopt if no link has it.
std::optional<Link> LinkOfNvidiaScore(std::int64_t score);

}  // namespace berth
