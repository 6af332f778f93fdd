// SPDX-License-Identifier: Apache-2.0
#include "config/policy.h"

#include <utility>

#include "base/check.h"

namespace berth {

std::shared_ptr<Engine> EngineFor(const Config& config, std::shared_ptr<const LearnedMix> mix,
                                  const Snapshot& snapshot, Background background) {
  Engine::Learning learning{ChosenProfile(config), config.expected_waste, std::move(mix)};
  learning.background = std::move(background);
  learning.others = ClassProfiles(config);
  if (!config.request_mix.empty() || learning.mix == nullptr) {
    learning.mix = nullptr;
    learning.fixed = std::make_shared<const RequestMix>(MixOf(config));
  }
  auto engine = Engine::Create(std::move(learning), snapshot);
  BERTH_CHECK(engine.has_value());  // the configuration was validated
  return *std::move(engine);
}

}  // namespace berth
