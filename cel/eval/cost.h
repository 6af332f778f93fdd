// SPDX-License-Identifier: Apache-2.0
//
// What a call costs, in the units in which Kubernetes bounds expressions. Source:
// github.com/google/cel-go, interpreter/runtimecost.go and ext/{lists,sets}.go;
// k8s.io/apiserver/pkg/cel/library/cost.go.
#pragma once

#include <cstdint>
#include <span>

#include "cel/syntax/node.h"
#include "cel/value.h"

namespace berth::cel {

inline constexpr std::uint64_t kListCost = 10;  // of making one
inline constexpr std::uint64_t kMapCost = 30;

std::uint64_t CallCost(const Node& call, std::span<const Value> args, const Value& result,
                       Arena& arena);

}  // namespace berth::cel
