// SPDX-License-Identifier: Apache-2.0
#include "server/why/gangs_json.h"

#include <chrono>

#include "server/wire/json/strict_json.h"

namespace berth::wire {

std::string EncodeGangs(std::span<const GangView> gangs) {
  Json list = Json::array();
  for (const GangView& gang : gangs) {
    Json json = {{"gang", gang.id.text()},
                 {"state", gang.state},
                 {"minimum", gang.minimum},
                 {"total", nullptr},
                 {"placed", gang.placed},
                 {"waiting", gang.waiting},
                 {"planned", gang.planned},
                 {"held", gang.held},
                 {"age_seconds", std::chrono::duration<double>(gang.age).count()},
                 {"why", gang.why}};
    if (gang.total) json["total"] = *gang.total;
    list.push_back(std::move(json));
  }
  return list.dump(1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace berth::wire
