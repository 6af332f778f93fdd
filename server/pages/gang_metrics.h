// SPDX-License-Identifier: Apache-2.0
//
// The metrics of gangs: berth_gangs{state}, berth_gang_oldest_seconds{state}, berth_gangs_partial,
// berth_binds_held.
#pragma once

#include <span>
#include <string>

#include "server/extender/gang_table.h"

namespace berth {

std::string GangMetricsText(std::span<const GangView> gangs);

}  // namespace berth
