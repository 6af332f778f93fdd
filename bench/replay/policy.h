// SPDX-License-Identifier: Apache-2.0
//
// ReplayPolicy: what decides in a replay - a built-in profile, the profile of a BerthConfiguration
// with its parameters, such as `tune` writes, or kube-scheduler alone:
//
//   kube-scheduler  its default scores (bench/rules/kube_choice.h)
//   most-allocated  the same with the strategy MostAllocated
//
// With "+earmarks" behind its name a policy keeps what becomes free for the pods that have waited
// longest (scoring/earmarks/earmark_line.h), where pods wait at all: with departures.
//
// What pods say of how long they run follows, for those that look at it: "+words" what is true
// (berth.dev/expected-duration), "+words/10" and "+words*10" a tenth and ten times of it,
// "+deadlines" what is true, as a promise (activeDeadlineSeconds). With "+learned" they say
// nothing, and it is learned from those that end (scoring/earmarks/pod_ends.h). With "+in-turn" no
// pod with GPUs passes the first one that waits.
//
// Berth's filters stand for the plugins that say what fits. Of a node's GPUs a share gets the one
// with the least room that takes it.
#pragma once

#include <functional>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "bench/replay/time/run_words.h"
#include "bench/rules/kube_choice.h"
#include "cluster/values/node_constraints.h"
#include "config/config.h"
#include "scoring/earmarks/earmark_line.h"
#include "scoring/profile.h"
#include "scoring/waste/request_mix.h"

namespace berth::replay {

// By the name of the workload class.
using WishesByClass = std::map<std::string, NodeWishes, std::less<>>;
WishesByClass WishesOf(const Config& config);

struct ReplayPolicy {
  std::string name;  // in reports: of the profile, or of the file without its folder
  ProfileSpec profile;
  WasteParameters waste = {};            // of the scorer expected-waste
  LearningParameters learning = {};      // of the mix, where the profile learns it
  std::string configuration = {};        // the text of the file; empty: built in
  WishesByClass classes = {};            // what its workload classes want of nodes
  std::vector<ProfileSpec> others = {};  // the profiles that they name
  // Chooses among the nodes that fit; nothing: the profile does.
  std::optional<KubeStrategy> scheduler = {};
  std::optional<EarmarkLimits> earmarks = {};  // empty: nothing is kept for pods that wait
  bool in_turn = false;                        // nobody with GPUs passes the first that waits
  RunWords words = {};                         // what pods say of how long they run
  bool learns_run_times = false;               // from those that end
};

// The built-in profile. Error: kInvalidArgument naming those there are.
Result<ProfileSpec> ProfileNamed(const std::string& name);
// The same with default parameters, or kube-scheduler alone.
Result<ReplayPolicy> PolicyNamed(const std::string& name);

// `profile`, `expectedWaste`, `learning` and `workloadClasses` of a configuration; what else it
// says is about a server, and about the mix, which a replay has from its tasks. Error: that of
// LoadConfig; for a name that is a built-in profile's.
Result<ReplayPolicy> PolicyOfFile(const std::string& path);

// Those of the names, then those of the files. Error: none at all; one twice.
Result<std::vector<ReplayPolicy>> Policies(const std::vector<std::string>& names,
                                           const std::vector<std::string>& files);

// {name: the text of its configuration}, of those that have one.
nlohmann::ordered_json ConfigurationsJson(const std::vector<ReplayPolicy>& policies);

}  // namespace berth::replay
