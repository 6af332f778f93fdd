// SPDX-License-Identifier: Apache-2.0
//
// test/scenarios/explain.yaml: what Berth answers to those who ask why.
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "cluster/state/snapshot.h"
#include "config/load.h"
#include "server/extender/ports/embedded_cluster.h"
#include "server/settings/config_file.h"
#include "server/why/explain_pages.h"
#include "server/wire/file/cluster_file.h"
#include "server/wire/pod/pod_object.h"
#include "test/support/dialects.h"
#include "test/support/scenarios.h"
#include "test/support/wire_fixture.h"

namespace berth::test::explain_scenarios_test {
namespace {

// Berth behind a kube-scheduler, with its default configuration, without sockets.
class ScenarioWorld {
 public:
  explicit ScenarioWorld(Json cluster) {
    if (!cluster.contains("kind")) cluster["version"] = 1;
    const wire::NodeRules nodes(config_, AllDialects());
    auto file = wire::DecodeCluster(cluster.dump(), nodes, &rules_);
    EXPECT_TRUE(file) << (file ? "" : file.error().message);
    if (file) {
      EXPECT_TRUE(state_.Apply(file->events));
    }
    extender_.Use(PolicyOf(config_, EngineFor(config_, nullptr, *state_.Current())));
  }

  void Arrive(Json pod) {
    Json& metadata = pod["metadata"];
    metadata["namespace"] = metadata.value("namespace", "default");
    metadata["uid"] = metadata.value("uid", metadata["name"].get<std::string>());
    pod["spec"]["schedulerName"] = pod["spec"].value("schedulerName", "default-scheduler");
    const auto seen = wire::DecodeObservedPod(PaddedText(pod.dump()), rules_);
    ASSERT_TRUE(seen) << seen.error().message;
    waiting_.Put({.pod = std::make_shared<const PodRequest>(seen->pod),
                  .held_back = seen->held_back,
                  .unschedulable = true,
                  .scheduler_said = seen->scheduler_said,
                  .nominated = seen->nominated,
                  .replica_set = seen->life.replica_set});
  }
  // Their scheduler asks about all that it may, and finds no node.
  void AskAboutAll() {
    for (const WaitingPod& pod : waiting_.Everybody()) {
      const auto snapshot = state_.Current();
      std::vector<NodeIndex> nodes(snapshot->size());
      std::iota(nodes.begin(), nodes.end(), NodeIndex{0});
      if (!pod.gated()) (void)extender_.Filter(extender_.Now(), *pod.pod, nodes);
    }
    extender_.LookAtGangs();
  }

  // A pod that was there leaves.
  void Delete(const std::string& uid) { waiting_.Remove(uid); }

  std::string Answer(const std::string& ask) {
    const std::size_t space = ask.find(' ');
    const std::string what = ask.substr(0, space), name = ask.substr(space + 1);
    const auto page = what == "pod"    ? ExplainPodPage
                      : what == "gang" ? ExplainGangPage
                                       : ExplainNodePage;
    return page(live_, "/debug/" + what + "s/" + name, "text").body;
  }

 private:
  const Config config_ = DefaultConfig();
  const wire::PodRules rules_{AllDialects(), config_.resources};
  ClusterState state_;
  WaitingPods waiting_;
  PodGroups groups_;
  NodeDomains domains_{config_.topology_levels};
  GangTable gangs_{{state_, waiting_, domains_, &groups_}};
  EmbeddedCluster embedded_;
  SilentSink sink_;
  SystemClock clock_;
  Extender extender_{{.state = state_,
                      .binder = embedded_,
                      .sink = sink_,
                      .clock = clock_,
                      .domains = &domains_,
                      .behind_scheduler = true,
                      .gangs = &gangs_,
                      .waiting = &waiting_},
                     PolicyOf(config_, EngineFor(config_, nullptr, *state_.Current()))};
  const wire::NodeRules node_rules_{config_, AllDialects()};
  const Readiness readiness_{nullptr};
  const Live live_{extender_, state_,      waiting_,   gangs_, domains_,
                   rules_,    node_rules_, readiness_, true};
};

// The first line, or two where the first is kube-scheduler's.
std::string FirstOf(const std::string& answer) {
  const std::size_t end = answer.find('\n');
  if (!answer.starts_with("kube-scheduler said: ")) return answer.substr(0, end);
  return answer.substr(0, end) + " " + answer.substr(end + 1, answer.find('\n', end + 1) - end - 1);
}

// Berth's own first line.
std::string OwnLineOf(const std::string& answer) {
  const bool is_quoted = answer.starts_with("kube-scheduler said: ");
  const std::size_t begin = is_quoted ? answer.find('\n') + 1 : 0;
  return answer.substr(begin, answer.find('\n', begin) - begin);
}

TEST(ExplainScenarios, EveryAnswerIsTheOneThatSomebodyHasReadAndFoundTrue) {
  const std::vector<Json> scenarios = Scenarios("explain");
  EXPECT_GE(scenarios.size(), 30U);
  for (const Json& scenario : scenarios) {
    SCOPED_TRACE(scenario["situation"].get<std::string>());
    ScenarioWorld world(scenario["cluster"]);
    for (const Json& pod : scenario.value("waiting", Json::array())) world.Arrive(pod);
    world.AskAboutAll();
    for (const Json& uid : scenario.value("deleted", Json::array())) world.Delete(uid);
    for (const Json& pod : scenario.value("elsewhere", Json::array())) world.Arrive(pod);
    const std::string answer = world.Answer(scenario["ask"]);
    EXPECT_EQ(FirstOf(answer), scenario["answer"].get<std::string>());
    EXPECT_LE(OwnLineOf(answer).size(), kLongestLine) << OwnLineOf(answer);
    const std::string advice = scenario.value("advice", "");
    EXPECT_EQ(answer.find("\nAdvice: " + advice + "\n") == std::string::npos, advice.empty())
        << answer;
    EXPECT_EQ(answer.find("\nAdvice: ") == std::string::npos, advice.empty()) << answer;
  }
}

}  // namespace
}  // namespace berth::test::explain_scenarios_test
