// SPDX-License-Identifier: Apache-2.0
#include "bench/replay/engine_session.h"

#include <utility>

#include "base/text.h"
#include "bench/replay/oracle_mix.h"

namespace berth::replay {
namespace {

Status CheckClasses(const WishesByClass& classes, const std::vector<TraceTask>& tasks) {
  if (classes.empty()) return {};
  for (const TraceTask& task : tasks) {
    if (task.workload_class.empty() || classes.contains(task.workload_class)) continue;
    return Invalid("task " + task.name + ": column class: want one of " +
                   Join(classes, ", ", &WishesByClass::value_type::first) + ", got \"" +
                   task.workload_class + "\"");
  }
  return {};
}

Result<std::shared_ptr<Engine>> LearningEngine(const ReplayPolicy& policy,
                                               const std::shared_ptr<LearnedMix>& mix) {
  Engine::Learning learning{policy.profile, policy.waste, mix};
  learning.others = policy.others;
  BERTH_TRY(std::shared_ptr<Engine> engine, Engine::Create(std::move(learning)));
  return engine;
}

}  // namespace

Result<std::unique_ptr<EngineSession>> EngineSession::Learning(const ReplayPolicy& policy,
                                                               const std::vector<NodeSpec>& nodes,
                                                               std::uint64_t seed) {
  auto mix = std::make_shared<LearnedMix>(policy.learning);
  BERTH_TRY(std::shared_ptr<Engine> engine, LearningEngine(policy, mix));
  return std::unique_ptr<EngineSession>(
      new EngineSession(std::move(engine), std::move(mix), nodes, seed, EnginePlacer::Serving()));
}

Result<std::unique_ptr<EngineSession>> EngineSession::Create(const ReplayPolicy& policy,
                                                             const Workload& workload,
                                                             const Arrivals& arrivals,
                                                             std::uint64_t seed,
                                                             std::size_t nodes_to_score) {
  BERTH_TRY_STATUS(CheckClasses(policy.classes, workload.tasks));
  std::shared_ptr<LearnedMix> mix;
  std::shared_ptr<Engine> engine;
  if (Learns(policy.profile) || !policy.others.empty()) {
    mix = std::make_shared<LearnedMix>(policy.learning);
    BERTH_TRY(engine, LearningEngine(policy, mix));
  } else {
    BERTH_TRY(Profile profile, BuildProfile(policy.profile, OracleMix(workload.tasks)));
    engine = std::make_shared<Engine>(std::move(profile));
  }
  return std::unique_ptr<EngineSession>(
      new EngineSession(std::move(engine), std::move(mix), OrderedCluster(workload, arrivals), seed,
                        {nodes_to_score, {}, policy.classes, policy.scheduler, policy.earmarks}));
}

bool Learns(const ProfileSpec& spec) { return MixUseOf(spec) == MixUse::kDraws; }

}  // namespace berth::replay
