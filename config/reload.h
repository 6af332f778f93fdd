// SPDX-License-Identifier: Apache-2.0
//
// Which settings may change while the service runs: those that Reloaded copies. All others need a
// restart; so does a new setting until Reloaded copies it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "config/config.h"
#include "scoring/engine/engine.h"
#include "scoring/waste/request_mix.h"

namespace berth {

// `now` with the settings of `wanted` that may change at run time: profile, profiles,
// reservationSeconds, nodesToScore, gangs without their controllers, gpuNodes.guard, earmarks,
// makeRoom, logLevel, and workloadClasses where the traits are the same.
Config Reloaded(const Config& now, const Config& wanted);

// The paths of the other settings that differ ("server.threads", "resources"), in the order of
// printing.
std::vector<std::string> NeedsRestart(const Config& now, const Config& wanted);

// Whether both make the same decisions: the same profiles.
bool SamePolicy(const Config& a, const Config& b);

// Builds the engine of a configuration.

// A mix for what knows no arrivals: shaped like the openb trace of 2023 (Weng et al., USENIX
// ATC'23). Of its tasks 13 % ask for no GPU, 38 % for a share (most often .81), 48 % for one GPU,
// 1 % for more.
RequestMix TypicalMix();

// An engine with the chosen profile and those of the workload classes. Its request mix is the
// learned one, else (nullptr) a typical one. snapshot: the nodes of the cluster. Requires:
// Validate(config).
std::shared_ptr<Engine> EngineFor(const Config& config, std::shared_ptr<const LearnedMix> mix,
                                  const Snapshot& snapshot, Background background = {});

}  // namespace berth
