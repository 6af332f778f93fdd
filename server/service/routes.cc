// SPDX-License-Identifier: Apache-2.0
#include "server/service/routes.h"

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "base/text.h"
#include "base/version.h"
#include "cluster/state/waiting_pods.h"
#include "server/kube/kube_cluster.h"
#include "server/pages/live_view.h"
#include "server/pages/metrics_parts.h"
#include "server/pages/plan_page.h"
#include "server/ui/page_files.h"
#include "server/why/explain_json.h"
#include "server/why/explain_pages.h"
#include "server/why/waiting_whys.h"
#include "server/wire/file/cluster_file.h"
#include "server/wire/json/json_text.h"

namespace berth {
namespace {

using http::HttpRequest;
using http::HttpResponse;

constexpr const char* kJson = "application/json";

HttpResponse Answer(std::string content_type, std::string body) {
  HttpResponse response;
  response.content_type = std::move(content_type);
  response.body = std::move(body);
  return response;
}

// While not ready a verb is answered 503 without a body: an empty 200 would mean "no node fits".
// The connection ends with it: behind a Service a client reaches the leader with its next one only.
template <Verb verb, HttpResponse (Verbs::*answer)(HttpRequest&)>
HttpResponse AnswerVerb(const RouteParts& parts, HttpRequest& request) {
  if (parts.live.readiness.reason() == nullptr) return (parts.verbs.*answer)(request);
  parts.metrics.CountUnavailable(verb);
  HttpResponse response;
  response.status = 503;
  response.ends_connection = true;
  return response;
}

HttpResponse Healthz(const RouteParts&, HttpRequest&) { return Answer("text/plain", "ok\n"); }

HttpResponse Readyz(const RouteParts& parts, HttpRequest&) {
  const Readiness& readiness = parts.live.readiness;
  const char* const fine = readiness.is_standby() ? kube::kStandby : "ok";
  const char* reason = readiness.is_standby() ? nullptr : readiness.reason();
  if (reason == nullptr) reason = readiness.unreachable();
  if (readiness.draining()) reason = "draining";
  HttpResponse response = Answer("text/plain", std::string(reason ? reason : fine) + "\n");
  response.status = reason == nullptr ? 200 : 503;
  return response;
}

HttpResponse Version(const RouteParts&, HttpRequest&) {
  return Answer(kJson, wire::ObjectOf("version", BerthVersion()));
}

HttpResponse Help(const RouteParts&, HttpRequest&);

// Only the leader watches the cluster, so only it can advise.
std::vector<NodeAdvice> AdviceOf(const Live& live) {
  if (live.readiness.reason() != nullptr) return {};
  WaitingPods::Pods listed = live.waiting.Current();
  const auto snapshot = live.state.Current();  // after the list (waiting_pods.h)
  return AdviseNodes(*snapshot, StillWaiting(std::move(listed), *snapshot));
}

std::string MetricsOf(const RouteParts& parts) {
  const Live& live = parts.live;
  // A process without the lease no longer watches the cluster: only the leader shows the gauges.
  const bool ready = live.readiness.reason() == nullptr;
  auto waiting = ready ? live.waiting.Everybody() : std::vector<WaitingPod>();
  auto for_mig = ready ? live.waiting.Current() : WaitingPods::Pods();
  // After the lists (waiting_pods.h), and the one of all gauges.
  const auto snapshot = ready ? live.state.Current() : std::make_shared<const Snapshot>();
  waiting = StillWaiting(std::move(waiting), *snapshot);
  MetricsText text;
  parts.metrics.AddTo(text);
  AddClusterMetrics(*snapshot, text);
  if (live.mix != nullptr && live.waste != nullptr) {
    AddWasteMetrics(live.waste->Of(snapshot, live.mix->Current()), text);
  }
  AddTopologyMetrics(live.domains.levels(), *live.domains.Of(snapshot), text);
  const auto offers = ready && live.mig_offers != nullptr
                          ? live.mig_offers->Current()
                          : std::make_shared<const MigOffers::ByNode>();
  AddMigMetrics(ReportMig(*snapshot, *offers),
                AdviseNodes(*snapshot, StillWaiting(std::move(for_mig), *snapshot)), text);
  AddWaitingMetrics(waiting, std::chrono::system_clock::now(), text);
  AddUsageMetrics(*snapshot, waiting, parts.many_metrics, text);
  AddGivenMetrics(*snapshot, parts.many_metrics, text);
  const Reservations kept = ready ? live.extender.Now().reservations : Reservations();
  text.Gauge("berth_earmarked_gpus", "GPUs that are free and kept for pods and gangs that wait")
      .Sample(kept.earmarks().gpus());
  AddGangMetrics(
      ready ? live.gangs.Views(std::chrono::steady_clock::now()) : std::vector<GangView>(), text);
  text.Gauge("berth_ready", "1 while Berth answers kube-scheduler's calls").Sample(ready ? 1 : 0);
  if (parts.more_metrics) parts.more_metrics(text);
  AddProcessMetrics(text);
  return text.Take();
}

// The snapshot says what is on its nodes; what it does not have are pods on nodes that are not
// known, and what was learned.
std::string VersionOf(const ClusterState::Contents& contents,
                      const std::optional<LearnedMix::Memory>& learned,
                      const std::vector<DeviceClass>& classes) {
  const NodeNameTable& names = contents.snapshot->names();
  std::size_t strays = 0;
  for (const PodRecord& record : contents.pods) {
    const std::string& node = record.placement.node;
    if (names.Find(node) == kNoNode) strays += std::hash<std::string>()(record.pod.id.uid + node);
  }
  return std::to_string(reinterpret_cast<std::uintptr_t>(contents.snapshot.get())) + " " +
         std::to_string(contents.pods.size()) + " " + std::to_string(strays) + " " +
         std::to_string(learned ? learned->pods : 0) + " " + Join(classes, " ", [](const auto& of) {
           return of.name + "=" + of.extended_resource + "@" + of.created;
         });
}

// One text for all who ask, written anew whenever somebody does.
Page Fresh(const char* content_type, std::function<std::string()> write) {
  return {content_type, [write = std::move(write)] { return PageDraft{{}, {}, write}; }};
}

Page MetricsPage(const RouteParts& parts) {
  return Fresh("text/plain; version=0.0.4; charset=utf-8", [parts] { return MetricsOf(parts); });
}

Page RepartitionPage(const RouteParts& parts) {
  return Fresh(kJson, [&live = parts.live] { return wire::EncodeRepartition(AdviceOf(live)); });
}

Page GangsPage(const RouteParts& parts) {
  return Fresh(kJson, [&gangs = parts.live.gangs] {
    return wire::EncodeGangs(gangs.Views(std::chrono::steady_clock::now()));
  });
}

Page SnapshotPage(const RouteParts& parts) {
  return {kJson, [&live = parts.live] {
            auto contents = std::make_shared<const ClusterState::Contents>(live.state.Everything());
            std::optional<LearnedMix::Memory> learned;
            if (live.mix != nullptr) learned = live.mix->Remember();
            std::vector<DeviceClass> classes;
            if (live.pod_rules.classes() != nullptr) classes = live.pod_rules.classes()->All();
            return PageDraft{VersionOf(*contents, learned, classes), contents->snapshot,
                             [contents, learned, classes] {
                               return wire::EncodeCluster(*contents, learned, classes);
                             }};
          }};
}

// Of PageFiles; they never change while the program runs.
template <std::size_t number>
Page FilePage(const RouteParts&) {
  const PageFile file = PageFiles()[number];
  const auto text = std::make_shared<const std::string>(file.text);
  const auto draft = [text] {
    return PageDraft{std::string(BerthVersion()), text, [text] { return *text; }};
  };
  return {file.content_type, draft, std::string(kPagePolicy)};
}

http::HttpHandler PageHandler(const RouteParts& parts, Page page) {
  if (parts.pages != nullptr) return parts.pages->Handler(std::move(page));
  return [page = std::move(page)](HttpRequest&) { return WritePage(page); };
}

http::HttpHandler OwnHandler(PageWriter* writer, OwnAnswer answer) {
  if (writer != nullptr) return writer->Handler(std::move(answer));
  return [answer = std::move(answer)](HttpRequest& request) {
    OwnRequest own{std::string(request.path), std::string(request.query), std::move(request.body)};
    return answer(own);
  };
}

// Where an answer is made. At once, on the I/O thread of the request:
template <HttpResponse (*answer)(const RouteParts&, HttpRequest&)>
http::HttpHandler AtOnce(const RouteParts& parts) {
  return [parts](HttpRequest& request) { return answer(parts, request); };
}

// By `pages`, one text for all who ask:
template <Page (*page)(const RouteParts&)>
http::HttpHandler Shared(const RouteParts& parts) {
  return PageHandler(parts, page(parts));
}

http::HttpHandler SharedLive(const RouteParts& parts) {
  const LivePages live = MakeLivePages(parts.live, std::string(BerthVersion()), parts.cluster_name);
  return [whole = PageHandler(parts, live.whole), brief = PageHandler(parts, live.brief),
          has_set = live.has_set](HttpRequest& request) {
    return has_set(request.query) ? brief(request) : whole(request);
  };
}

// By `pages`, another text for each request:
template <HttpResponse (*page)(const Live&, const std::string& path, const std::string& query)>
http::HttpHandler Explained(const RouteParts& parts) {
  return OwnHandler(parts.pages, [&live = parts.live](const OwnRequest& request) {
    return page(live, request.path, request.query);
  });
}

// By `plans`:
http::HttpHandler Planned(const RouteParts& parts) {
  return OwnHandler(parts.plans,
                    [&live = parts.live](OwnRequest& request) { return PlanPage(live, request); });
}

enum class Group { kVerbs, kHealth, kDebug };
using enum Group;

struct Row {
  Group group;
  std::string_view method;
  std::string_view path;  // words in capitals are any names
  std::string_view help;
  http::HttpHandler (*handler)(const RouteParts& parts);
};

// docs/commands.md has them, too.
constexpr Row kRows[] = {
    {kVerbs, "POST", "/extender/filter", "kube-scheduler asks which nodes can take a pod",
     AtOnce<AnswerVerb<Verb::kFilter, &Verbs::Filter>>},
    {kVerbs, "POST", "/extender/prioritize", "kube-scheduler asks how good each node is, 0 to 10",
     AtOnce<AnswerVerb<Verb::kPrioritize, &Verbs::Prioritize>>},
    {kVerbs, "POST", "/extender/preempt", "kube-scheduler asks which pods to evict",
     AtOnce<AnswerVerb<Verb::kPreempt, &Verbs::Preempt>>},
    {kVerbs, "POST", "/extender/bind", "kube-scheduler asks to bind a pod to a node",
     AtOnce<AnswerVerb<Verb::kBind, &Verbs::Bind>>},
    {kHealth, "GET", "/healthz", "200 while the process is alive", AtOnce<Healthz>},
    {kHealth, "GET", "/readyz",
     "200 while Berth can decide or is a standby, else 503 with the reason", AtOnce<Readyz>},
    {kHealth, "GET", "/metrics", "metrics in Prometheus' text format", Shared<MetricsPage>},
    {kHealth, "GET", "/version", "the version, as JSON", AtOnce<Version>},
    {kDebug, "GET", "/debug", "this list", AtOnce<Help>},
    {kDebug, "GET", "/debug/snapshot", "the whole state, a line per node and pod",
     Shared<SnapshotPage>},
    {kDebug, "GET", "/debug/pods/NAMESPACE/NAME", "why this pod is on its node, or why it waits",
     Explained<ExplainPodPage>},
    {kDebug, "GET", "/debug/pods", "the pods on nodes with the text behind ? in their names",
     Explained<FindPodsPage>},
    {kDebug, "GET", "/debug/nodes/NAME", "one node: its GPUs and the pods on them",
     Explained<ExplainNodePage>},
    {kDebug, "GET", "/debug/gangs/NAMESPACE/NAME", "one gang: its pods, and why it waits",
     Explained<ExplainGangPage>},
    {kDebug, "GET", "/debug/gangs", "all gangs: their state, and why one waits", Shared<GangsPage>},
    {kDebug, "GET", "/debug/namespaces/NAME", "the nodes on which pods of this namespace hold GPUs",
     Explained<NamespacePage>},
    {kDebug, "GET", "/debug/classes/NAME", "the same of the pods of this workload class",
     Explained<ClassPage>},
    {kDebug, "GET", "/debug/top", "GPUs of each model, and the waiting GPU pods",
     Explained<TopPage>},
    {kDebug, "GET", "/debug/waiting", "the pods and gangs that wait for GPUs, and why each does",
     Explained<WaitingPage>},
    {kDebug, "GET", "/debug/nodes", "the GPU nodes that are not fine, and why",
     Explained<NodesPage>},
    {kDebug, "GET", "/debug/repartition",
     "idle nodes that could run waiting pods after repartitioning", Shared<RepartitionPage>},
    {kDebug, "POST", "/plan", "where new pods would be placed, and what new nodes would take",
     Planned},
    {kDebug, "GET", "/debug/live", "what the live page shows, as JSON", SharedLive},
    {kDebug, "GET", "/", "the live page: every GPU, and every waiting pod", Shared<FilePage<0>>},
    {kDebug, "GET", "/page.css", "the style of the live page", Shared<FilePage<1>>},
    {kDebug, "GET", "/page.js", "the script of the live page", Shared<FilePage<2>>},
};

HttpResponse Help(const RouteParts&, HttpRequest&) {
  std::string text;
  for (const Row& row : kRows) {
    text.append(row.method).append(" ").append(row.path).append(": ").append(row.help) += '\n';
  }
  return Answer("text/plain; charset=utf-8", std::move(text));
}

void AddRoutes(http::Router& router, const RouteParts& parts, Group group) {
  for (const Row& row : kRows) {
    if (row.group != group) continue;
    const std::size_t name = row.path.find("/NAME");
    if (name == std::string_view::npos) {
      router.Add(row.method, row.path, row.handler(parts));
    } else {
      router.AddUnder(row.method, row.path.substr(0, name), row.handler(parts));
    }
  }
}

}  // namespace

void AddServiceRoutes(http::Router& router, const RouteParts& parts) {
  AddRoutes(router, parts, kVerbs);
  AddRoutes(router, parts, kHealth);
}

void AddHealthRoutes(http::Router& router, const RouteParts& parts) {
  AddRoutes(router, parts, kHealth);
}

void AddDebugRoutes(http::Router& router, const RouteParts& parts) {
  AddRoutes(router, parts, kDebug);
}

}  // namespace berth
