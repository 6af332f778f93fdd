// SPDX-License-Identifier: Apache-2.0
//
// What the live page shows (/debug/live): one text for all who look, written again only when
// something in it has changed.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "cluster/state/cluster_state.h"
#include "cluster/state/node_domains.h"
#include "cluster/state/waiting_pods.h"
#include "server/extender/extender.h"
#include "server/extender/gang_table.h"
#include "server/pages/page_writer.h"
#include "server/why/live_json.h"

namespace berth {

// References and pointers: they outlive the page.
struct LiveParts {
  const ClusterState& state;
  std::string berth = {};                // the version of the program
  const Extender* extender = nullptr;    // nullptr: nothing explains pods
  const WaitingPods* waiting = nullptr;  // nullptr: none wait
  const GangTable* gangs = nullptr;      // nullptr: no gang starts whole
  NodeDomains* domains = nullptr;        // nullptr: no levels
  // The last binds, newest first; empty: they are not kept.
  std::function<std::vector<wire::BoundRow>()> bound = {};
  // Why there is nothing to show at present; nullptr when there is. A process that does not lead
  // does not watch the cluster.
  std::function<const char*()> not_ready = {};
};

struct LivePages {
  Page whole;
  Page brief;  // without the set of nodes (live_json.h)
  // Whether a request with that query has the set of nodes that `brief` will be about, as far as is
  // known: "set=TAG".
  std::function<bool(std::string_view query)> has_set;
};
LivePages MakeLivePages(LiveParts parts);

}  // namespace berth
