// SPDX-License-Identifier: Apache-2.0
//
// What the live page shows (/debug/live): one text for all who look, written again only when
// something in it has changed.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "server/pages/page_writer.h"
#include "server/why/live.h"

namespace berth {

struct LivePages {
  Page whole;
  Page brief;  // without the set of nodes (live_json.h)
  // Whether the client of that query ("set=TAG") already has the set of nodes of `brief`.
  std::function<bool(std::string_view query)> has_set;
};
// version: of the program.
LivePages MakeLivePages(const Live& live, std::string version);

}  // namespace berth
