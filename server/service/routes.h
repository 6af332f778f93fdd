// SPDX-License-Identifier: Apache-2.0
//
// Routes: path -> what answers it.
#pragma once

#include <atomic>
#include <functional>
#include <vector>

#include "cluster/claims/mig_offers.h"
#include "cluster/state/cluster_state.h"
#include "cluster/state/node_domains.h"
#include "cluster/state/waiting_pods.h"
#include "scoring/waste/learned_mix.h"
#include "scoring/waste/waste_report.h"
#include "server/extender/gang_table.h"
#include "server/http/http_server.h"
#include "server/http/router.h"
#include "server/pages/page_writer.h"
#include "server/service/verbs.h"
#include "server/telemetry/metrics.h"
#include "server/why/explain_pages.h"
#include "server/why/live_json.h"
#include "server/wire/node/node_json.h"

namespace berth {

// Why the service cannot decide at present; nullptr when it can. The texts are constants.
class Readiness {
 public:
  explicit Readiness(const char* reason) : reason_(reason) {}
  void Set(const char* reason) { reason_.store(reason); }
  [[nodiscard]] const char* reason() const { return reason_.load(); }

  // Nothing is wrong with a standby (kube::kStandby): verbs are answered 503, and /readyz 200.
  [[nodiscard]] bool is_standby() const;

  // Why nobody is led here all the same: /readyz answers 503; nullptr: nothing stands in the way.
  void SetUnreachable(const char* why) { unreachable_.store(why); }
  [[nodiscard]] const char* unreachable() const { return unreachable_.load(); }

  // From now on /readyz answers 503, for good; verbs are still answered.
  void BeginDrain() { draining_.store(true); }
  [[nodiscard]] bool draining() const { return draining_.load(); }

 private:
  std::atomic<const char*> reason_;
  std::atomic<const char*> unreachable_{nullptr};
  std::atomic<bool> draining_{false};
};

// The server's numbers, once there is a server.
using HttpStatsSource = std::function<http::HttpServerStats()>;

// References: they outlive the routers made from them.
struct RouteParts {
  Verbs& verbs;
  const ClusterState& state;
  Metrics& metrics;
  const Readiness& readiness;
  LeaderName leader = {};                          // while this process does not
  HttpStatsSource http_stats = {};                 // empty: /metrics leaves them out
  std::function<std::string()> more_metrics = {};  // in Prometheus' text format
  const LearnedMix* mix = nullptr;        // what the pods that arrive ask for; nullptr: not learned
  WasteReport* waste = nullptr;           // of that mix
  NodeDomains* domains = nullptr;         // nullptr: /metrics leaves them out
  const MigOffers* mig_offers = nullptr;  // nullptr: nothing is offered
  const WaitingPods* waiting = nullptr;   // nullptr: none wait
  const GangTable* gangs = nullptr;       // nullptr: no gang starts whole
  // Writes /metrics and the pages under /debug; nullptr: the I/O thread of the request does.
  PageWriter* pages = nullptr;
  const Extender* extender = nullptr;  // nullptr: nothing explains pods
  // How the pods and nodes of a plan are read; nullptr: there are no plans.
  const wire::PodRules* pod_rules = nullptr;
  const wire::NodeRules* node_rules = nullptr;
  MetricsConfig many_metrics = {};
  PageWriter* plans = nullptr;  // makes them; nullptr: the I/O thread of the request does
  // The last pods that got a node, newest first; empty: nobody keeps them.
  std::function<std::vector<wire::BoundRow>()> bound = {};
};

// POST /extender/{filter,prioritize,preempt,bind} (503 while not ready), and the health routes.
void AddServiceRoutes(http::Router& router, const RouteParts& parts);

// GET /healthz /readyz /metrics /version.
void AddHealthRoutes(http::Router& router, const RouteParts& parts);

// GET /debug/snapshot, /debug/repartition, /debug/gangs, /debug/live, those of explain_pages.h, the
// files of the live page (GET / and others), and POST /plan.
void AddDebugRoutes(http::Router& router, const RouteParts& parts);

}  // namespace berth
