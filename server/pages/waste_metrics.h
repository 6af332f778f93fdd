// SPDX-License-Identifier: Apache-2.0
//
// The metrics of a WasteReport: berth_expected_waste_gpus{model},
// berth_fragmentation_gpus{model,cause}.
#pragma once

#include <map>
#include <string>

#include "scoring/waste/waste_report.h"

namespace berth {

std::string WasteMetricsText(const std::map<std::string, Waste>& by_model);

}  // namespace berth
