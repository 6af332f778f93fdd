// SPDX-License-Identifier: Apache-2.0
//
// What the functions do with values, whatever their types turn out to be: arguments that a function
// does not take give an error, as in Kubernetes. No argument is an error.
#pragma once

#include <span>

#include "cel/check/functions.h"
#include "cel/syntax/node.h"
#include "cel/value.h"

namespace berth::cel {

using Args = std::span<const Value>;

inline Value NoOverload(Arena& arena) {
  return arena.Error("a function does not take such values");
}

// The operators, conversions and type().
Value Operate(const Node& call, Args args, Arena& arena);
Value Plus(const Value& a, const Value& b, Arena& arena);
Value Convert(Function function, const Value& value, Arena& arena);

Value CallText(const Node& call, Args args, Arena& arena);
Value CallList(const Node& call, Args args, Arena& arena);
Value CallOptional(Function function, Args args, Arena& arena);
Value CallQuantity(Function function, Args args, Arena& arena);

// Any of them but the operators that do not evaluate all of their arguments.
Value Call(const Node& call, Args args, Arena& arena);

}  // namespace berth::cel
