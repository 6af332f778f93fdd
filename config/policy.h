// SPDX-License-Identifier: Apache-2.0
//
// Builds the engine of a configuration.
#pragma once

#include <memory>

#include "base/result.h"
#include "config/config.h"
#include "scoring/engine/engine.h"
#include "scoring/waste/learned_mix.h"

namespace berth {

// An engine with the chosen profile and those of the workload classes. Its request mix is that of
// the configuration, else the learned one, else (nullptr) a typical one. snapshot: the nodes of the
// cluster. Requires: Validate(config).
std::shared_ptr<Engine> EngineFor(const Config& config, std::shared_ptr<const LearnedMix> mix,
                                  const Snapshot& snapshot, Background background = {});

}  // namespace berth
