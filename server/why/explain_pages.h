// SPDX-License-Identifier: Apache-2.0
//
// The pages that explain: /debug/pods/NS/NAME, /debug/nodes/NAME, /debug/gangs/NS/NAME and
// /debug/top, as JSON, or as text where the query is "text". They are of the moment of the request:
// each is made of one snapshot and one policy (Extender::Moment), so that no pod is in it twice.
//
// Any thread may ask; what they do takes milliseconds per thousand nodes, so the PageWriter's is
// the one that should.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "cluster/state/cluster_state.h"
#include "cluster/state/waiting_pods.h"
#include "server/extender/extender.h"
#include "server/extender/gang_table.h"
#include "server/http/http_message.h"
#include "server/why/explain_json.h"
#include "server/why/live_json.h"

namespace berth {

// Who leads instead, by its identity; "" = nobody is known. Empty function: nobody is asked.
using LeaderName = std::function<std::string()>;

// 503 "not ready: another process leads (leader: IDENTITY)".
http::HttpResponse NotReadyAnswer(std::string_view why, const LeaderName& leader);

// References: they outlive the pages.
struct ExplainParts {
  const Extender& extender;
  const ClusterState& state;
  const WaitingPods* waiting = nullptr;  // nullptr: those that were asked about are known
  const GangTable* gangs = nullptr;      // nullptr: no gang starts whole
  // Why there is nothing to explain at present; nullptr when there is.
  std::function<const char*()> not_ready;
  LeaderName leader = {};
};

// What ExplainPodPage tells of a pod that was listed as waiting.
wire::PodReport ReportOn(const ExplainParts& parts, const WaitingPod& waiting);

// 404 with the reason where nothing of that name is known; 503 while not ready.
http::HttpResponse ExplainPodPage(const ExplainParts& parts, const std::string& path,
                                  const std::string& query);
http::HttpResponse ExplainNodePage(const ExplainParts& parts, const std::string& path,
                                   const std::string& query);
http::HttpResponse ExplainGangPage(const ExplainParts& parts, const std::string& path,
                                   const std::string& query);
http::HttpResponse TopPage(const ExplainParts& parts, const std::string& path,
                           const std::string& query);

// Why a pod waits at that moment, in short: what decides and on how many nodes, and the nearest
// miss.
wire::WaitingWhy WhyWaiting(const ExplainParts& parts, const Extender::Moment& now,
                            const WaitingPod& waiting);

}  // namespace berth
