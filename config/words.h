// SPDX-License-Identifier: Apache-2.0
//
// The names of enumerators in the configuration, in the order of the enumerators.
#pragma once

#include <array>
#include <string_view>

namespace berth {

inline constexpr std::array<std::string_view, 4> kMeaningWords = {"whole-gpus", "share-compute",
                                                                  "share-memory", "ignored"};
inline constexpr std::array<std::string_view, 4> kDeviceRuleWords = {"first", "tightest",
                                                                     "best-score", "random"};
inline constexpr std::array<std::string_view, 3> kTieRuleWords = {"equal", "first", "fullest"};
inline constexpr std::array<std::string_view, 2> kUnenforcedWords = {"allow", "refuse"};
inline constexpr std::array<std::string_view, 3> kMakeRoomWords = {"off", "advise", "act"};
inline constexpr std::array<std::string_view, 3> kNodeGuardWords = {"off", "score", "refuse"};
inline constexpr std::array<std::string_view, 3> kSpreadWords = {"none", "card", "node"};
inline constexpr std::array<std::string_view, 2> kMemoryUnitWords = {"GiB", "MiB"};
inline constexpr std::array<std::string_view, 4> kLogLevelWords = {"debug", "info", "warn",
                                                                   "error"};
// Conventions by which pods name their group (docs/gangs.md).
inline constexpr std::array<std::string_view, 8> kGangConventionWords = {
    "berth", "coscheduling", "kubernetes", "volcano", "koordinator", "labels", "kueue", "kai"};

// Controllers whose pods can be gangs without an annotation (docs/with-controllers.md).
inline constexpr std::array<std::string_view, 3> kGangControllerWords = {"jobset", "lws", "job"};

template <class Words, class Enum>
constexpr std::string_view WordOf(const Words& words, Enum value) {
  return words[static_cast<std::size_t>(value)];
}

}  // namespace berth
