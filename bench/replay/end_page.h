// SPDX-License-Identifier: Apache-2.0
//
// EndPage: the live page of a cluster as a replay leaves it, one file that needs no server.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "bench/replay/arrivals.h"
#include "bench/replay/pod_table.h"
#include "bench/replay/time/stream.h"
#include "bench/replay/trace.h"
#include "cluster/state/snapshot.h"
#include "server/why/live_json.h"

namespace berth::replay {

// The pods that got no place, in the order of arrival. Requires: one start per arrival.
std::vector<wire::WaitingRow> PodsLeft(const std::vector<TraceTask>& tasks,
                                       const Arrivals& arrivals, const PodStarts& starts);
// With departures: those that wait at the horizon.
std::vector<wire::WaitingRow> PodsLeft(const std::vector<TraceTask>& tasks, const Stream& stream,
                                       const PodStarts& starts);

// One document with all files of server/ui/page inside, which shows the given state and sends no
// requests. live: an answer of /debug/live.
std::string PageWith(std::string_view live);

// title: what was replayed, how. version: of berth-replay.
std::string EndPage(const std::string& title, const std::string& version, const Snapshot& end,
                    std::vector<wire::WaitingRow> left);

}  // namespace berth::replay
