// SPDX-License-Identifier: Apache-2.0
//
// The data of the live page (/debug/live): one text for all viewers, written again only after a
// change.
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
// version: of the program. cluster: its name; empty: none.
LivePages MakeLivePages(const Live& live, std::string version, std::string cluster);

}  // namespace berth
