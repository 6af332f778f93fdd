// SPDX-License-Identifier: Apache-2.0
#include "cel/eval/library.h"

namespace berth::cel {

Value Call(const Node& call, Args args, Arena& arena) {
  const Function function = call.function;
  if (function == Function::kIndexOf || function == Function::kLastIndexOf) {
    return args[0].is(Kind::kList) ? CallList(call, args, arena) : CallText(call, args, arena);
  }
  if (function < Function::kSize) return Operate(call, args, arena);
  if (function < Function::kIsSorted) return CallText(call, args, arena);
  if (function < Function::kOptionalOf) return CallList(call, args, arena);
  if (function < Function::kQuantity) return CallOptional(function, args, arena);
  return CallQuantity(function, args, arena);
}

}  // namespace berth::cel
