// SPDX-License-Identifier: Apache-2.0
//
// One replay from options to result: policy, workload, and whether the engine or a server decides.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "bench/replay/arrivals.h"
#include "bench/replay/latency.h"
#include "bench/replay/policy.h"
#include "bench/replay/replay.h"
#include "bench/replay/server_process.h"
#include "bench/replay/time/simulation.h"
#include "bench/replay/time/stream.h"
#include "bench/replay/url_placer.h"
#include "bench/replay/workload.h"
#include "cluster/state/snapshot.h"

namespace berth::replay {

enum class Through { kEngine, kHttp, kUrl };

struct SessionOptions {
  ReplayPolicy policy;
  std::uint64_t seed = 42;
  Through through = Through::kEngine;
  std::string berth_binary;  // for kHttp
  // The server's nodesToScore. Nothing: all nodes in this process, the default for kHttp.
  std::optional<std::size_t> nodes_to_score = {};
  PodStarts* starts = nullptr;                     // gets those of the pods, where there is one
  std::shared_ptr<const Snapshot>* end = nullptr;  // gets the cluster at the end; kEngine only
  // kHttp: gets the server before the first question; nothing: it ends with the session.
  std::function<void(ServerProcess)> on_server = {};
  UrlOptions extender = {};  // for kUrl: it decides, and the policy is not asked
};

struct SessionResult {
  ReplayResult replay;
  double seconds = 0;                                // all decisions
  LatencySummary filter_us, prioritize_us, bind_us;  // not kEngine
};

// The request mix is the oracle of the workload. Error: a profile that cannot be built, a server
// that does not start.
Result<SessionResult> RunSession(const Workload& workload, const Arrivals& arrivals,
                                 const SessionOptions& options, const Progress& progress);

// The same with departures: the stream instead of the order of arrivals; through the engine.
// nodes_to_score: as the server's; 0: all. end: gets the cluster at the horizon. rule: moves pods;
// nullptr: nobody does.
Result<SimulationResult> RunTimedSession(const Workload& workload, const Arrivals& arrivals,
                                         const Stream& stream, const ReplayPolicy& policy,
                                         std::uint64_t seed, const Progress& progress,
                                         std::size_t nodes_to_score = 0,
                                         PodStarts* starts = nullptr,
                                         std::shared_ptr<const Snapshot>* end = nullptr,
                                         RoomRule* rule = nullptr);

}  // namespace berth::replay
