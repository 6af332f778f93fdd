// SPDX-License-Identifier: Apache-2.0
//
// Reads a BerthConfiguration. Omitted settings keep their defaults. Unknown keys, wrong types and
// values out of range are errors with line and path.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "config/config.h"
#include "scoring/engine/engine.h"
#include "scoring/waste/request_mix.h"

namespace berth {

class YamlReader;

// Reads mappings of the file that are no settings of the service.
using ReadBeside = std::function<void(YamlReader&)>;

// `origin` names the text in errors. Error: kInvalidArgument "ORIGIN:LINE: server.threads: want an
// integer from 1 to 64, got \"many\"".
Result<Config> LoadConfig(const std::string& text, std::string_view origin,
                          const ReadBeside& beside = {});

// All findings about a text, each in the form of LoadConfig's errors.
struct ConfigFindings {
  // At most kMostFindings; LoadConfig's error is the first. Malformed settings come before
  // contradictory ones, each by line. Empty: the text is a valid configuration.
  std::vector<std::string> problems;
  // NotesOn (config.h). Empty if there are problems.
  std::vector<std::string> notes;
};
inline constexpr std::size_t kMostFindings = 100;

ConfigFindings CheckConfig(const std::string& text, std::string_view origin);

// A configuration as a cluster stores it: the text inside the manifest of a ConfigMap.

struct ConfigText {
  std::string text;    // for LoadConfig and CheckConfig
  std::string origin;  // names the file, and the key of a ConfigMap, in errors
};

// The value of the manifest's only key in `data`; of several keys, `berth.yaml`. Line numbers count
// in the manifest if the value is a block (`|`), else in the value, with the origin "ORIGIN
// data.KEY". A text of another kind than ConfigMap is returned unchanged. Error: kInvalidArgument
// "ORIGIN:LINE: data: want ..., got ...".
Result<ConfigText> ConfigInside(std::string text, std::string_view origin);

// Which settings may change while the service runs: those that Reloaded copies. All others need a
// restart; so does a new setting until Reloaded copies it.

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
