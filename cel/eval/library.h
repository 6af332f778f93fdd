// SPDX-License-Identifier: Apache-2.0
//
// What the functions do with values, whatever their types turn out to be: arguments that a function
// does not take give an error, as in Kubernetes. No argument is an error.
#pragma once

#include <cstdint>
#include <span>

#include "cel/failure.h"
#include "cel/syntax/node.h"
#include "cel/value.h"

namespace berth::cel {

// What the names in an expression mean: variables and functions. Source:
// github.com/google/cel-go (checker, common/stdlib, ext), k8s.io/apiserver/pkg/cel/library and
// k8s.io/dynamic-resource-allocation/cel of Kubernetes 1.37.
//
// Types are not checked: the API server refuses a claim or class whose selector has types that do
// not agree. What would be refused gives any verdict here.

// Fills in the variables and functions of the tree. Returns how many slots its variables have.
// Error: kUnsupported for a name, a number of arguments or a field of `device` that Berth does not
// know.
Expected<int> ResolveNames(Node& root);

// Whether it converts one value into another kind, so that Kubernetes evaluates it when it compiles
// an expression in which the value is a constant.
inline bool IsConversion(Function function) {
  return function >= Function::kToDyn && function <= Function::kToString;
}

using Args = std::span<const Value>;

inline Value NoOverload(Arena& arena) {
  return arena.Error("a function does not take such values");
}

// The operators and conversions.
Value Operate(const Node& call, Args args, Arena& arena);
Value Plus(const Value& a, const Value& b, Arena& arena);
Value Convert(Function function, const Value& value, Arena& arena);

Value CallText(const Node& call, Args args, Arena& arena);
// Whether the list has the value, or is it.
Value Includes(const Value& target, const Value& value, Arena& arena);
Value CallOptional(Function function, Args args, Arena& arena);
Value CallQuantity(Function function, Args args, Arena& arena);

// Any of them but the operators that do not evaluate all of their arguments.
Value Call(const Node& call, Args args, Arena& arena);

// What a call costs, in the units in which Kubernetes bounds expressions; up to a tenth per
// character more where Kubernetes does not know beforehand that an operator is one of texts.
// Source: github.com/google/cel-go, interpreter/runtimecost.go;
// k8s.io/apiserver/pkg/cel/library/cost.go.

inline constexpr std::uint64_t kListCost = 10;  // of making one

std::uint64_t CallCost(const Node& call, std::span<const Value> args, Arena& arena);

}  // namespace berth::cel
