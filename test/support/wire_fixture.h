// SPDX-License-Identifier: Apache-2.0
//
// What the tests of the verbs share: a service without sockets around a few nodes, adapters that do
// as the tests ask, and the pods and bodies that clients send.
#pragma once

#include <algorithm>
#include <atomic>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "base/padded_text.h"
#include "bench/replay/time/sim_clock.h"
#include "config/config.h"
#include "config/load.h"
#include "scoring/registry.h"
#include "server/extender/extender.h"
#include "server/extender/ports/embedded_cluster.h"
#include "server/http/http_server.h"
#include "server/service/routes.h"
#include "server/service/verbs.h"
#include "server/telemetry/metrics.h"
#include "server/wire/extender/extender_v1.h"
#include "server/wire/json/strict_json.h"
#include "server/wire/node/node_json.h"
#include "test/support/dialects.h"

namespace berth::test {

using Json = wire::Json;

inline PaddedText Padded(std::string_view text) { return PaddedText(text); }

// The node as the service reads it; a failure where it cannot.
inline wire::DecodedNode ReadNode(const Json& node, const Config& config = DefaultConfig()) {
  auto decoded =
      wire::DecodeNode(Padded(node.dump()), wire::NodeRules(config, dialects::AllDialects(config)));
  EXPECT_TRUE(decoded) << decoded.error().message;
  return decoded ? *std::move(decoded) : wire::DecodedNode();
}

inline NodeSpec MachineWith(std::string name, int gpus, std::string model = "A100") {
  NodeSpec spec;
  spec.name = std::move(name);
  spec.gpu_model = std::move(model);
  spec.cpu_milli = 64'000;
  spec.memory_bytes = std::int64_t{256} << 30;
  spec.gpus.assign(static_cast<std::size_t>(gpus), GpuSpec{"", 80'000, true});
  return spec;
}

// The JSON of a pod with one container that asks for these resources.
inline Json PodAsking(const std::string& uid, const Json& requests) {
  Json pod;
  pod["metadata"] = {{"name", "pod-" + uid}, {"namespace", "ns"}, {"uid", uid}};
  pod["spec"]["containers"] =
      Json::array({{{"name", "main"}, {"resources", {{"requests", requests}}}}});
  return pod;
}

inline Json PodWithGpus(const std::string& uid, int gpus) {
  Json pod = PodAsking(uid, {{"cpu", "1"}, {"nvidia.com/gpu", std::to_string(gpus)}});
  pod["spec"]["containers"][0]["resources"]["limits"]["nvidia.com/gpu"] = std::to_string(gpus);
  return pod;
}

// ExtenderArgs as kube-scheduler writes it, by names.
inline std::string ArgsWithNames(const Json& pod, const Json& names) {
  return Json{{"Pod", pod}, {"Nodes", nullptr}, {"NodeNames", names}}.dump();
}

inline std::string BindingArgs(const std::string& uid, const std::string& node) {
  return Json{{"PodName", "pod-" + uid}, {"PodNamespace", "ns"}, {"PodUID", uid}, {"Node", node}}
      .dump();
}

// Does what on_bind says; without it every bind succeeds. Counts its calls. Knows of no pod but
// those in `truths`.
class ScriptedBinder final : public PodBinder {
 public:
  using Script = std::function<Status(const PodRequest&, const Placement&)>;

  explicit ScriptedBinder(Script script = {}) : script_(std::move(script)) {}

  Status Bind(const BindOrder& order) override {
    ++calls_;
    return script_ ? script_(order.pod, order.placement) : Status();
  }
  Result<PodTruth> Find(const PodId& id) override {
    if (unreachable) return Fail(Errc::kUnavailable, "the API server is gone");
    const auto truth = truths.find(id.uid);
    Result<PodTruth> answer = Fail(Errc::kNotFound, "pod is gone");
    if (truth != truths.end()) answer = truth->second;
    if (on_answer) on_answer();
    return answer;
  }

  // Set before threads start.
  std::map<std::string, PodTruth> truths;  // by UID
  bool unreachable = false;                // for Find
  std::function<void()> on_answer;         // while the answer of Find is on its way
  [[nodiscard]] int calls() const { return calls_; }

 private:
  const Script script_;
  std::atomic<int> calls_{0};
};

class SilentSink final : public DecisionSink {
 public:
  void Record(const Decision&) override {}
};

inline std::shared_ptr<Engine> EngineOf(const std::string& profile) {
  return std::make_shared<Engine>(*BuildProfile(*FindBuiltinProfile(profile), TypicalMix()));
}

// The whole service but for sockets, its clock and its log. Any thread may post.
class TestService {
 public:
  explicit TestService(const std::vector<NodeSpec>& nodes, PodBinder* binder = nullptr,
                       const std::string& profile = "best-fit", bool behind_scheduler = false,
                       const Config& config = DefaultConfig())
      : rules_(AllDialects(), config.resources, {}, nullptr, nullptr,
               wire::WorkloadClasses(config)),
        extender_({.state = state_,
                   .binder = binder == nullptr ? embedded_ : *binder,
                   .sink = sink_,
                   .clock = clock_,
                   .behind_scheduler = behind_scheduler},
                  {EngineOf(profile), std::chrono::seconds(30)}),
        verbs_(extender_, rules_, metrics_) {
    std::vector<ClusterEvent> events;
    for (const NodeSpec& node : nodes) events.emplace_back(NodeUpserted{node});
    EXPECT_TRUE(state_.Apply(events));
    const RouteParts parts{verbs_, live_, metrics_};
    AddServiceRoutes(router_, parts);
    AddDebugRoutes(router_, parts);
  }

  http::HttpResponse Call(std::string_view method, std::string_view path,
                          std::string_view body = "") const {
    const std::size_t mark = std::min(path.find('?'), path.size());
    const std::string_view query = path.substr(std::min(mark + 1, path.size()));
    http::HttpRequest request{method, path.substr(0, mark), query, Padded(body)};
    return router_(request);
  }

  // The answer to a verb, also where it comes later.
  http::HttpResponse Answer(std::string_view verb, std::string_view body) const {
    http::HttpResponse response = Call("POST", "/extender/" + std::string(verb), body);
    if (!response.later) return response;
    const auto answered = std::make_shared<std::promise<http::HttpResponse>>();
    std::future<http::HttpResponse> answer = answered->get_future();
    std::exchange(response.later, nullptr)(http::Reply(
        [answered](http::HttpResponse later) { answered->set_value(std::move(later)); }));
    return answer.get();
  }

  // The answer to a verb, which must be 200 with JSON.
  Json Ask(std::string_view verb, std::string_view body) const {
    const http::HttpResponse response = Answer(verb, body);
    EXPECT_EQ(response.status, 200) << verb << ": " << response.body;
    EXPECT_EQ(response.content_type, "application/json");
    Json answer = Json::parse(response.body, nullptr, false);
    EXPECT_FALSE(answer.is_discarded()) << response.body;
    return answer;
  }
  [[nodiscard]] int StatusOf(std::string_view verb, std::string_view body) const {
    return Answer(verb, body).status;
  }

  // Of these nodes the one with the highest score; of equal ones the first.
  [[nodiscard]] std::string BestOf(const Json& pod, const Json& nodes) const {
    std::string best;
    int highest = -1;
    for (const Json& score : Ask("prioritize", ArgsWithNames(pod, nodes))) {
      if (score["Score"] <= highest) continue;
      highest = score["Score"];
      best = score["Host"];
    }
    return best;
  }

  // Filters the pod on that node, then binds it there; returns the error text, "" for success.
  std::string Place(const Json& pod, const std::string& node) {
    const Json passed = Ask("filter", ArgsWithNames(pod, Json::array({node})));
    EXPECT_EQ(passed["NodeNames"], Json::array({node})) << passed;
    return Ask("bind", BindingArgs(pod["metadata"]["uid"], node))["Error"];
  }

  [[nodiscard]] std::int64_t FreeGpuMilli(std::string_view node) const {
    const auto snapshot = state_.Current();
    return snapshot->node(snapshot->names().Find(node)).free_gpu_milli();
  }

  ClusterState& state() { return state_; }
  Extender& extender() { return extender_; }
  Verbs& verbs() { return verbs_; }
  Metrics& metrics() { return metrics_; }
  Readiness& readiness() { return readiness_; }
  SimClock& clock() { return clock_; }
  WaitingPods& waiting() { return waiting_; }
  GangTable& gangs() { return gangs_; }
  [[nodiscard]] const Live& live() const { return live_; }
  [[nodiscard]] const wire::PodRules& rules() const { return rules_; }

 private:
  const wire::PodRules rules_;
  const wire::NodeRules node_rules_{DefaultConfig(), AllDialects()};
  SimClock clock_;
  ClusterState state_;
  Metrics metrics_;
  SilentSink sink_;
  EmbeddedCluster embedded_;
  Extender extender_;
  Verbs verbs_;
  Readiness readiness_{nullptr};
  WaitingPods waiting_;
  NodeDomains domains_{{}};
  GangTable gangs_{{state_, waiting_, domains_}};
  const Live live_{extender_, state_, waiting_, gangs_, domains_, rules_, node_rules_, readiness_};
  http::Router router_;
};

}  // namespace berth::test
