// SPDX-License-Identifier: Apache-2.0
//
// What /debug/gangs answers:
//
//   [{"gang": "berth:ml/train", "state": "waiting", "minimum": 4, "total": 4, "placed": 0,
//     "waiting": 4, "planned": 0, "held": 0, "age_seconds": 12.5,
//     "why": "3 of 4 members fit in zone a"}]
//
// `gang` is the convention and the name of the group; `total` is null where nobody says it.
#pragma once

#include <span>
#include <string>

#include "server/extender/gang_table.h"

namespace berth::wire {

std::string EncodeGangs(std::span<const GangView> gangs);

}  // namespace berth::wire
