// SPDX-License-Identifier: Apache-2.0
#include "bench/lab/waves/waves.h"

#include <memory>
#include <numeric>
#include <utility>

#include "bench/replay/engine_session.h"
#include "bench/rules/kube_choice.h"
#include "cluster/state/cluster_state.h"
#include "scoring/engine/engine.h"
#include "scoring/judgement.h"

namespace berth::replay {
namespace {

// A fleet, and how a pod is placed on it.
class SmallFleet {
 public:
  static Result<std::unique_ptr<SmallFleet>> Create(const Scenario& scenario,
                                                    const ProfileSpec& policy,
                                                    const WavesOptions& options) {
    std::unique_ptr<SmallFleet> fleet(new SmallFleet(options));
    std::vector<ClusterEvent> events;
    for (const NodeSpec& node : scenario.nodes) events.emplace_back(NodeUpserted{node});
    BERTH_TRY_STATUS(fleet->state_.Apply(events));
    Engine::Learning learning{policy, {}, nullptr, nullptr};
    if (Learns(policy)) {
      fleet->mix_ = std::make_shared<LearnedMix>(LearningParameters{});
      learning.mix = fleet->mix_;
    } else {
      learning.fixed = std::make_shared<const RequestMix>(MixOf(scenario));
    }
    BERTH_TRY(fleet->engine_, Engine::Create(std::move(learning), *fleet->state_.Current()));
    return fleet;
  }

  // Whether it found a place. Its UID is `name`.
  Result<bool> Place(const RequestShape& shape, const std::string& name) {
    const std::shared_ptr<const Snapshot> snapshot = state_.Current();
    if (mix_) {
      mix_->Observe(shape);
      engine_->Follow(snapshot);
    }
    const PodRequest pod{{name, "waves", name}, shape, {}, 0, ""};
    std::vector<NodeIndex> all(snapshot->size());
    std::iota(all.begin(), all.end(), NodeIndex{0});
    const Judgement judged = Judge(*engine_, snapshot, {.pod = pod, .candidates = all});
    if (judged.fitting.empty()) return false;
    const auto priorities = engine_->Prioritize(snapshot, shape, judged.fitting, judged.pull);
    const NodeIndex node = choice_.Choose(*snapshot, shape, judged.fitting, priorities);
    const auto placement = PlaceInGroup(*engine_, snapshot, pod, {}, node);
    if (!placement) return Fail(Errc::kInternal, "the node that was chosen has no place");
    BERTH_TRY_STATUS(state_.Reserve(pod, *placement, Instant::max()));
    BERTH_TRY_STATUS(state_.Confirm(name));
    return true;
  }

  Status Remove(const std::vector<std::string>& names) {
    std::vector<ClusterEvent> events;
    for (const std::string& name : names) events.emplace_back(PodGone{name});
    return state_.Apply(events);
  }

  [[nodiscard]] int WholeGpus() const {
    const std::shared_ptr<const Snapshot> snapshot = state_.Current();
    int whole = 0;
    for (NodeIndex i = 0; i < snapshot->size(); ++i) {
      if (snapshot->node(i).pods().empty()) whole += GpusOf(snapshot->node(i).spec());
    }
    return whole;
  }

 private:
  explicit SmallFleet(const WavesOptions& options)
      : choice_(options.extender_weight, options.seed) {}

  static RequestMix MixOf(const Scenario& scenario) {
    RequestMix mix;
    std::size_t pods = 0;
    for (const Wave& wave : scenario.waves) pods += wave.pods.size();
    for (const Wave& wave : scenario.waves) {
      for (const RequestShape& pod : wave.pods) {
        if (pod.mig() == nullptr) mix.push_back({pod, 1.0 / static_cast<double>(pods)});
      }
    }
    return mix;
  }

  ClusterState state_;
  KubeChoice choice_;
  std::shared_ptr<LearnedMix> mix_;
  std::shared_ptr<Engine> engine_;
};

void Add(const std::vector<WaveResult>& waves, WavesTotal& total) {
  for (const WaveResult& wave : waves) {
    ++total.waves;
    total.unplaced += wave.unplaced;
    total.whole_gpus += wave.whole_gpus;
    total.most_whole_gpus += wave.most_whole_gpus;
  }
}

}  // namespace

Result<std::vector<WaveResult>> RunWaves(const Scenario& scenario, const ProfileSpec& policy,
                                         const WavesOptions& options) {
  BERTH_TRY(const auto fleet, SmallFleet::Create(scenario, policy, options));
  std::vector<WaveResult> results;
  std::vector<RequestShape> there;
  std::vector<std::string> names;
  int number = 0;
  for (int round = 0; round < (scenario.stay ? 1 : options.rounds); ++round) {
    for (const Wave& wave : scenario.waves) {
      WaveResult result{wave.name, static_cast<int>(wave.pods.size()), 0, 0, 0};
      for (const RequestShape& pod : wave.pods) {
        std::string name = "pod-" + std::to_string(number++);
        BERTH_TRY(const bool placed, fleet->Place(pod, name));
        if (!placed) {
          ++result.unplaced;
          continue;
        }
        there.push_back(pod);
        names.push_back(std::move(name));
      }
      result.whole_gpus = fleet->WholeGpus();
      result.most_whole_gpus = MostWholeGpus(scenario.nodes, there);
      results.push_back(std::move(result));
      if (scenario.stay) continue;
      BERTH_TRY_STATUS(fleet->Remove(names));
      names.clear();
      there.clear();
    }
  }
  return results;
}

Result<std::vector<WavesTotal>> RunAllWaves(const std::vector<ProfileSpec>& policies, int seeds,
                                            WavesOptions options) {
  const std::vector<Scenario> first = DrawScenarios(options.seed);
  std::vector<WavesTotal> totals;  // [scenario][policy]
  for (const Scenario& scenario : first) {
    for (const ProfileSpec& policy : policies) totals.push_back({scenario.name, policy.name});
  }
  for (int seed = 0; seed < seeds; ++seed, ++options.seed) {
    const std::vector<Scenario> scenarios = DrawScenarios(options.seed);
    for (std::size_t s = 0; s < scenarios.size(); ++s) {
      for (std::size_t p = 0; p < policies.size(); ++p) {
        BERTH_TRY(const auto waves, RunWaves(scenarios[s], policies[p], options));
        Add(waves, totals[s * policies.size() + p]);
      }
    }
  }
  std::vector<WavesTotal> sums;
  for (std::size_t p = 0; p < policies.size(); ++p) {
    WavesTotal sum{"all", policies[p].name};
    for (std::size_t i = p; i < totals.size(); i += policies.size()) {
      sum.waves += totals[i].waves;
      sum.unplaced += totals[i].unplaced;
      sum.whole_gpus += totals[i].whole_gpus;
      sum.most_whole_gpus += totals[i].most_whole_gpus;
    }
    sums.push_back(std::move(sum));
  }
  totals.insert(totals.end(), sums.begin(), sums.end());
  return totals;
}

}  // namespace berth::replay
