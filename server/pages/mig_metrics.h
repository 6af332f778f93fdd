// SPDX-License-Identifier: Apache-2.0
//
// The metrics of MIG devices: berth_mig_gpus{product,partitioning},
// berth_mig_memory_units{product,state}, berth_mig_devices{product,profile,state},
// berth_mig_troubled_nodes{trouble}, berth_mig_repartition_pods{product,config}.
#pragma once

#include <span>
#include <string>

#include "scoring/mig/mig_report.h"
#include "scoring/mig/repartition_report.h"

namespace berth {

std::string MigMetricsText(const MigReport& report, std::span<const NodeAdvice> advices = {});

}  // namespace berth
