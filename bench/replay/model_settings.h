// SPDX-License-Identifier: Apache-2.0
//
// ModelSettings: the numbers of the scorer expected-waste and of the learned mix, which a service
// has fixed. In a configuration for berth-replay they are the mappings `expectedWaste` and
// `learning`; bench/lab/README.md has their table.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "config/config.h"
#include "scoring/waste/request_mix.h"

namespace berth::replay {

struct ModelSettings {
  WasteParameters waste = {};
  LearningParameters learning = {};
  friend bool operator==(const ModelSettings&, const ModelSettings&) = default;
};

struct ReplayConfig {
  Config config = DefaultConfig();
  ModelSettings model = {};
};

// Error: as LoadConfig.
Result<ReplayConfig> LoadReplayConfig(const std::string& text, std::string_view origin);
// Error: kNotFound when the file cannot be read; else as LoadConfig.
Result<ReplayConfig> LoadReplayConfigFile(const std::string& path);

// As YAML that LoadReplayConfig reads back to an equal one. Numbers of the model that are as in a
// service are left out, so that a service takes it where all are.
std::string PrintReplayConfig(const ReplayConfig& config);

// The rows of the table: | Setting | Form | Default | Meaning |.
std::string ModelSettingsTable();

}  // namespace berth::replay
