// SPDX-License-Identifier: Apache-2.0
#include "server/service/routes.h"

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "cluster/state/still_waiting.h"
#include "server/kube/kube_cluster.h"
#include "server/pages/gang_metrics.h"
#include "server/pages/http_metrics.h"
#include "server/pages/live_view.h"
#include "server/pages/mig_metrics.h"
#include "server/pages/plan_page.h"
#include "server/pages/process_metrics.h"
#include "server/pages/topology_metrics.h"
#include "server/pages/usage_metrics.h"
#include "server/pages/waste_metrics.h"
#include "server/telemetry/metrics_text.h"
#include "server/ui/page_files.h"
#include "server/why/explain_json.h"
#include "server/why/explain_pages.h"
#include "server/why/waiting_classes.h"
#include "server/wire/file/cluster_file.h"
#include "server/wire/json/json_text.h"

namespace berth {
namespace {

using http::HttpRequest;
using http::HttpResponse;

HttpResponse Answer(std::string content_type, std::string body) {
  HttpResponse response;
  response.content_type = std::move(content_type);
  response.body = std::move(body);
  return response;
}

// While not ready a verb is answered 503 without a body: an empty 200 would mean "no node fits".
// The connection ends with it: behind a Service a client reaches the leader with its next one only.
http::HttpHandler WhenReady(const RouteParts& parts, Verb verb, http::HttpHandler handler) {
  return [&readiness = parts.live.readiness, &metrics = parts.metrics, verb,
          handler = std::move(handler)](HttpRequest& request) {
    if (readiness.reason() == nullptr) return handler(request);
    metrics.CountUnavailable(verb);
    HttpResponse response;
    response.status = 503;
    response.ends_connection = true;
    return response;
  };
}

// Only the leader watches the cluster, so only it can advise.
std::vector<NodeAdvice> AdviceOf(const Live& live) {
  if (live.readiness.reason() != nullptr) return {};
  WaitingPods::Pods listed = live.waiting.Current();
  const auto snapshot = live.state.Current();  // after the list (still_waiting.h)
  return AdviseNodes(*snapshot, StillWaiting(std::move(listed), *snapshot));
}

http::HttpHandler PageHandler(const RouteParts& parts, Page page) {
  if (parts.pages != nullptr) return parts.pages->Handler(std::move(page));
  return [page = std::move(page)](HttpRequest&) { return WritePage(page); };
}

void AddPage(http::Router& router, const RouteParts& parts, std::string_view path, Page page) {
  router.Add("GET", path, PageHandler(parts, std::move(page)));
}

std::string MetricsOf(const RouteParts& parts) {
  const Live& live = parts.live;
  // A process without the lease no longer watches the cluster: only the leader shows the gauges.
  const bool ready = live.readiness.reason() == nullptr;
  auto waiting = ready ? live.waiting.Everybody() : std::vector<WaitingPod>();
  const auto snapshot = ready ? live.state.Current() : std::make_shared<const Snapshot>();
  waiting = StillWaiting(std::move(waiting), *snapshot);
  std::string text = parts.metrics.Text(*snapshot);
  if (live.mix != nullptr && live.waste != nullptr) {
    text += WasteMetricsText(live.waste->Of(snapshot, live.mix->Current()));
  }
  text += TopologyMetricsText(live.domains.levels(), *live.domains.Of(snapshot));
  const auto offers = ready && live.mig_offers != nullptr
                          ? live.mig_offers->Current()
                          : std::make_shared<const MigOffers::ByNode>();
  text += MigMetricsText(ReportMig(*snapshot, *offers), AdviceOf(live));
  text += WaitingMetricsText(waiting, std::chrono::system_clock::now());
  text += UsageMetricsText(*snapshot, waiting, parts.many_metrics);
  text += GangMetricsText(ready ? live.gangs.Views(std::chrono::steady_clock::now())
                                : std::vector<GangView>());
  text += MetricsText()
              .Family("berth_ready", "gauge", "1 while Berth answers kube-scheduler's calls")
              .Sample(ready ? 1 : 0)
              .Take();
  if (parts.http_stats) text += HttpMetricsText(parts.http_stats());
  if (parts.more_metrics) text += parts.more_metrics();
  text += ProcessMetricsText();
  return text;
}

// writer: nullptr: the I/O thread of the request writes the answer.
http::HttpHandler OwnHandler(PageWriter* writer, OwnAnswer answer) {
  if (writer != nullptr) return writer->Handler(std::move(answer));
  return [answer = std::move(answer)](HttpRequest& request) {
    OwnRequest own{std::string(request.path), std::string(request.query), std::move(request.body)};
    return answer(own);
  };
}

void AddExplainRoutes(http::Router& router, const RouteParts& parts) {
  const auto handler = [&](auto page) {
    return OwnHandler(parts.pages, [&live = parts.live, page](const OwnRequest& request) {
      return page(live, request.path, request.query);
    });
  };
  router.AddUnder("GET", "/debug/pods", handler(ExplainPodPage));
  router.AddUnder("GET", "/debug/nodes", handler(ExplainNodePage));
  router.AddUnder("GET", "/debug/gangs", handler(ExplainGangPage));
  router.Add("GET", "/debug/top", handler(TopPage));
}

// The live page: its files, which never change while the program runs, and what they show.
void AddLivePage(http::Router& router, const RouteParts& parts) {
  for (const PageFile& file : PageFiles()) {
    const auto text = std::make_shared<const std::string>(file.text);
    AddPage(router, parts, file.path,
            {file.content_type,
             [text] {
               return PageDraft{BERTH_VERSION, text, [text] { return *text; }};
             },
             std::string(kPagePolicy)});
  }
  const LivePages live = MakeLivePages(parts.live, BERTH_VERSION);
  router.Add("GET", "/debug/live",
             [whole = PageHandler(parts, live.whole), brief = PageHandler(parts, live.brief),
              has_set = live.has_set](HttpRequest& request) {
               return has_set(request.query) ? brief(request) : whole(request);
             });
}

// The snapshot says what is on its nodes; what it does not have are pods on nodes that are not
// known, and what was learned.
std::string VersionOf(const ClusterState::Contents& contents,
                      const std::optional<LearnedMix::Memory>& learned) {
  const NodeNameTable& names = contents.snapshot->names();
  std::size_t strays = 0;
  for (const PodRecord& record : contents.pods) {
    const std::string& node = record.placement.node;
    if (names.Find(node) == kNoNode) strays += std::hash<std::string>()(record.pod.id.uid + node);
  }
  return std::to_string(reinterpret_cast<std::uintptr_t>(contents.snapshot.get())) + " " +
         std::to_string(contents.pods.size()) + " " + std::to_string(strays) + " " +
         std::to_string(learned ? learned->pods : 0);
}

PageDraft DraftSnapshot(const Live& live) {
  auto contents = std::make_shared<const ClusterState::Contents>(live.state.Everything());
  std::optional<LearnedMix::Memory> learned;
  if (live.mix != nullptr) learned = live.mix->Remember();
  return {VersionOf(*contents, learned), contents->snapshot,
          [contents, learned] { return wire::EncodeCluster(*contents, learned); }};
}

}  // namespace

void AddServiceRoutes(http::Router& router, const RouteParts& parts) {
  const auto add_verb = [&](Verb verb, HttpResponse (Verbs::*answer)(HttpRequest&)) {
    const http::HttpHandler handler = [&verbs = parts.verbs, answer](HttpRequest& request) {
      return (verbs.*answer)(request);
    };
    router.Add("POST", "/extender/" + std::string(NameOf(verb)), WhenReady(parts, verb, handler));
  };
  add_verb(Verb::kFilter, &Verbs::Filter);
  add_verb(Verb::kPrioritize, &Verbs::Prioritize);
  add_verb(Verb::kPreempt, &Verbs::Preempt);
  add_verb(Verb::kBind, &Verbs::Bind);
  AddHealthRoutes(router, parts);
}

void AddHealthRoutes(http::Router& router, const RouteParts& parts) {
  router.Add("GET", "/healthz", [](HttpRequest&) { return Answer("text/plain", "ok\n"); });
  router.Add("GET", "/readyz", [&readiness = parts.live.readiness](HttpRequest&) {
    const char* const fine = readiness.is_standby() ? kube::kStandby : "ok";
    const char* reason = readiness.is_standby() ? nullptr : readiness.reason();
    if (reason == nullptr) reason = readiness.unreachable();
    if (readiness.draining()) reason = "draining";
    HttpResponse response = Answer("text/plain", std::string(reason ? reason : fine) + "\n");
    response.status = reason == nullptr ? 200 : 503;
    return response;
  });
  AddPage(router, parts, "/metrics",
          {"text/plain; version=0.0.4; charset=utf-8", [parts] {
             return PageDraft{{}, {}, [parts] { return MetricsOf(parts); }};
           }});
  router.Add("GET", "/version", [](HttpRequest&) {
    return Answer("application/json", wire::ObjectOf("version", BERTH_VERSION));
  });
}

void AddDebugRoutes(http::Router& router, const RouteParts& parts) {
  const auto add = [&](std::string_view path, std::function<std::string(const Live&)> text) {
    AddPage(router, parts, path, {"application/json", [&live = parts.live, text = std::move(text)] {
                                    return PageDraft{{}, {}, [&live, text] { return text(live); }};
                                  }});
  };
  AddPage(router, parts, "/debug/snapshot",
          {"application/json", [&live = parts.live] { return DraftSnapshot(live); }});
  add("/debug/repartition",
      [](const Live& live) { return wire::EncodeRepartition(AdviceOf(live)); });
  add("/debug/gangs", [](const Live& live) {
    return wire::EncodeGangs(live.gangs.Views(std::chrono::steady_clock::now()));
  });
  AddExplainRoutes(router, parts);
  router.Add("POST", "/plan", OwnHandler(parts.plans, [&live = parts.live](OwnRequest& request) {
               return PlanPage(live, request);
             }));
  AddLivePage(router, parts);
}

}  // namespace berth
