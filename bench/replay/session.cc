// SPDX-License-Identifier: Apache-2.0
#include "bench/replay/session.h"

#include <algorithm>
#include <chrono>

#include "bench/replay/engine_session.h"
#include "bench/replay/http_placer.h"
#include "bench/replay/oracle_mix.h"
#include "config/config.h"
#include "scoring/registry.h"

namespace berth::replay {
namespace {

// Error: what a service cannot be told.
Status CheckServed(const Workload& workload, const ReplayPolicy& policy) {
  const auto want = [](const std::string& with) {
    return Invalid("through: want engine with " + with + ", got http");
  };
  if (workload.start != nullptr) return want("a cluster that has pods");
  if (policy.scheduler) return want(policy.name);
  if (policy.waste != WasteParameters() || policy.learning != LearningParameters()) {
    return want("expectedWaste or learning, which a service has fixed");
  }
  if (MixUseOf(policy.profile) != MixUse::kNone && !Learns(policy.profile)) {
    return want(policy.name + ", which is given the mix of the tasks");
  }
  for (const ScorerSpec& scorer : policy.profile.scorers) {
    if (IsServed(scorer.name)) continue;
    return want(policy.name + " (a service has no scorer " + scorer.name + ")");
  }
  const bool has_classes =
      !policy.classes.empty() && std::ranges::any_of(workload.tasks, [](const TraceTask& t) {
        return !t.workload_class.empty();
      });
  return has_classes ? want("workload classes") : Status();
}

Result<SessionResult> Measure(const Workload& workload, const Arrivals& arrivals, Placer& placer,
                              PodStarts* starts, const Progress& progress) {
  SessionResult result;
  const auto start = std::chrono::steady_clock::now();
  BERTH_TRY(result.replay,
            RunReplay(workload.nodes, workload.tasks, arrivals, placer, progress, starts));
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return result;
}

Result<SessionResult> RunThroughHttp(const Workload& workload, const Arrivals& arrivals,
                                     const SessionOptions& options, const Profile& profile,
                                     const Progress& progress) {
  BERTH_TRY_STATUS(CheckServed(workload, options.policy));
  Config config = DefaultConfig();
  config.profiles = {options.policy.profile};
  config.profile = options.policy.profile.name;
  if (options.nodes_to_score) config.nodes_to_score = static_cast<int>(*options.nodes_to_score);
  const std::vector<NodeSpec> nodes = OrderedNodes(workload.nodes, arrivals);
  BERTH_TRY(ServerProcess server, ServerProcess::Start(options.berth_binary, config, nodes));
  BERTH_TRY(http::HttpClient client, http::HttpClient::Connect(server.address()));
  if (options.on_server) options.on_server(std::move(server));
  HttpPlacer placer(std::move(client), nodes, TieBreaker(profile, options.seed));
  BERTH_TRY(SessionResult result, Measure(workload, arrivals, placer, options.starts, progress));
  result.filter_us = Summarize(placer.latencies_us(HttpPlacer::kFilter));
  result.prioritize_us = Summarize(placer.latencies_us(HttpPlacer::kPrioritize));
  result.bind_us = Summarize(placer.latencies_us(HttpPlacer::kBind));
  return result;
}

Result<SessionResult> RunThroughUrl(const Workload& workload, const Arrivals& arrivals,
                                    const SessionOptions& options, const Progress& progress) {
  if (workload.start != nullptr) {
    return Invalid("through: want engine with a cluster that has pods, got a URL");
  }
  std::vector<NodeSpec> nodes;  // by their own names: the extender may know them
  for (const TraceNode& node : workload.nodes) nodes.push_back(ToNodeSpec(node, node.name));
  BERTH_TRY(const ReplayPolicy first_fit, PolicyNamed("first-fit"));
  BERTH_TRY(const auto books, EngineSession::Learning(first_fit, nodes, options.seed));
  BERTH_TRY(UrlPlacer placer, UrlPlacer::Create(options.extender, nodes, books->placer()));
  BERTH_TRY(SessionResult result, Measure(workload, arrivals, placer, options.starts, progress));
  result.filter_us = Summarize(placer.latencies_us("filter"));
  result.prioritize_us = Summarize(placer.latencies_us("prioritize"));
  result.bind_us = Summarize(placer.latencies_us("bind"));
  if (options.end != nullptr) *options.end = books->placer().Cluster();
  return result;
}

}  // namespace

Result<SessionResult> RunSession(const Workload& workload, const Arrivals& arrivals,
                                 const SessionOptions& options, const Progress& progress) {
  if (options.through == Through::kUrl) {
    return RunThroughUrl(workload, arrivals, options, progress);
  }
  if (options.through == Through::kHttp) {
    const RequestMix mix = OracleMix(workload.tasks);
    BERTH_TRY(const Profile profile,
              BuildProfile(options.policy.profile, mix, options.policy.waste));
    return RunThroughHttp(workload, arrivals, options, profile, progress);
  }
  BERTH_TRY(const auto session,
            EngineSession::Create(options.policy, workload, arrivals, options.seed,
                                  options.nodes_to_score.value_or(0)));
  auto result = Measure(workload, arrivals, session->placer(), options.starts, progress);
  if (options.end != nullptr) *options.end = session->placer().state().Current();
  return result;
}

Result<SimulationResult> RunTimedSession(const Workload& workload, const Arrivals& arrivals,
                                         const Stream& stream, const ReplayPolicy& policy,
                                         std::uint64_t seed, const Progress& progress,
                                         std::size_t nodes_to_score, PodStarts* starts,
                                         std::shared_ptr<const Snapshot>* end, RoomRule* rule) {
  BERTH_TRY(const auto session,
            EngineSession::Create(policy, workload, arrivals, seed, nodes_to_score));
  auto result = Simulate(workload, stream, session->placer(), progress, starts, rule,
                         {policy.in_turn, policy.words, policy.learns_run_times});
  if (end != nullptr) *end = session->placer().state().Current();
  return result;
}

}  // namespace berth::replay
