// SPDX-License-Identifier: Apache-2.0
//
// The pages that explain: /debug/pods/NS/NAME, /debug/nodes/NAME, /debug/gangs/NS/NAME,
// /debug/namespaces/NAME, /debug/classes/NAME, /debug/top, /debug/waiting and /debug/nodes, as
// JSON, or as text where the query is "text". They are of the moment of the request: each is made
// of one snapshot and one policy (Extender::Moment), so that no pod is in it twice.
//
// Any thread may ask; what they do takes milliseconds per thousand nodes, so the PageWriter's is
// the one that should.
#pragma once

#include <string>

#include "cluster/state/waiting_pods.h"
#include "server/extender/extender.h"
#include "server/http/http_message.h"
#include "server/why/explain_json.h"
#include "server/why/live.h"

namespace berth {

// What ExplainPodPage tells at that moment of a pod that was listed as waiting before.
wire::PodReport ReportOn(const Live& live, const Extender::Moment& now, const WaitingPod& waiting);

// 404 with the reason where nothing of that name is known; 503 while not ready.
http::HttpResponse ExplainPodPage(const Live& live, const std::string& path,
                                  const std::string& query);
http::HttpResponse ExplainNodePage(const Live& live, const std::string& path,
                                   const std::string& query);
http::HttpResponse ExplainGangPage(const Live& live, const std::string& path,
                                   const std::string& query);
// Those on nodes whose "namespace/name" has the query, as JSON alone.
http::HttpResponse FindPodsPage(const Live& live, const std::string& path,
                                const std::string& query);
// Of a namespace or class that holds nothing too: which ones there are is not known.
http::HttpResponse NamespacePage(const Live& live, const std::string& path,
                                 const std::string& query);
http::HttpResponse ClassPage(const Live& live, const std::string& path, const std::string& query);
http::HttpResponse TopPage(const Live& live, const std::string& path, const std::string& query);
// Lists, a line each of what is said of a pod or gang that waits / of a node that is not fine.
http::HttpResponse WaitingPage(const Live& live, const std::string& path, const std::string& query);
http::HttpResponse NodesPage(const Live& live, const std::string& path, const std::string& query);

}  // namespace berth
