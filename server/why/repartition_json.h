// SPDX-License-Identifier: Apache-2.0
//
// What /debug/repartition answers:
//
//   [{"node": "n1", "product": "A100-40GB", "gpus": 8, "config": "all-balanced", "fits": 12,
//     "fits_now": 0, "fits_cut_at_will": 14}]
//
// `config` is a value of the label nvidia.com/mig.config; `fits_cut_at_will` is null where it is
// not known (scoring/mig/repartition_advice.h).
#pragma once

#include <span>
#include <string>

#include "scoring/mig/repartition_report.h"

namespace berth::wire {

std::string EncodeRepartition(std::span<const NodeAdvice> advices);

}  // namespace berth::wire
