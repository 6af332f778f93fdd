// SPDX-License-Identifier: Apache-2.0
//
// The engine that a configuration asks for.
#pragma once

#include <memory>

#include "base/result.h"
#include "config/config.h"
#include "scoring/engine/engine.h"
#include "scoring/waste/learned_mix.h"

namespace berth {

// The chosen profile, and those of workload classes, under the mix of the configuration or, if it
// has none, under the learned one (nullptr: under a typical mix). snapshot: the nodes of the
// cluster. Requires: Validate(config).
std::shared_ptr<Engine> EngineFor(const Config& config, std::shared_ptr<const LearnedMix> mix,
                                  const Snapshot& snapshot, Background background = {});

}  // namespace berth
