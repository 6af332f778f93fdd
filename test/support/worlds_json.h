// SPDX-License-Identifier: Apache-2.0
//
// A world (worlds.h) as `kubectl get nodes,pods,poddisruptionbudgets -A -o json` shows it, devices
// by Berth's annotation where they are known: for `--cluster` files, watches and requests.
#pragma once

#include <nlohmann/json.hpp>

#include "test/support/worlds.h"

namespace berth::test {

nlohmann::json NodeJson(const NodeSpec& node);
// on: where it runs; nullptr: it waits.
nlohmann::json PodJson(const PodRequest& pod, const World::RunningPod* on = nullptr,
                       const NodeSpec* node = nullptr);
nlohmann::json BudgetJson(const PodDisruptionBudget& budget);
nlohmann::json KubernetesList(const World& world);

}  // namespace berth::test
