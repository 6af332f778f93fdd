// SPDX-License-Identifier: Apache-2.0
//
// The functions that Berth evaluates, by name and by the types of their arguments. Source:
// github.com/google/cel-go (common/stdlib, ext) and k8s.io/apiserver/pkg/cel/library, the versions
// that Kubernetes 1.37 puts together for stored expressions.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "cel/check/type.h"

namespace berth::cel {

enum class Function : std::uint8_t {
  kNone,
  // Operators.
  kAnd,
  kOr,
  kConditional,
  kNot,
  kNotStrictlyFalse,
  kEquals,
  kNotEquals,
  kLess,
  kLessEquals,
  kGreater,
  kGreaterEquals,
  kAdd,
  kSubtract,
  kMultiply,
  kDivide,
  kModulo,
  kNegate,
  kIn,
  kIndex,
  kOptionalIndex,
  kOptionalSelect,
  // Conversions.
  kToBool,
  kToDouble,
  kToDyn,
  kToInt,
  kToString,
  kToUint,
  kType,
  // Texts.
  kSize,
  kContains,
  kEndsWith,
  kStartsWith,
  kMatches,
  kLowerAscii,
  kUpperAscii,
  kSplit,
  kSubstring,
  // Lists.
  kIncludes,
  // Optionals.
  kOptionalOf,
  kOptionalOfNonZero,
  kOptionalNone,
  kOptionalUnwrap,
  kValue,
  kHasValue,
  kOrOptional,
  kOrValue,
  // Quantities and versions.
  kQuantity,
  kIsQuantity,
  kSign,
  kIsGreaterThan,
  kIsLessThan,
  kCompareTo,
  kAsDouble,
  kAsInteger,
  kIsInteger,
  kAddQuantity,
  kSubQuantity,
  kSemver,
  kIsSemver,
  kMajor,
  kMinor,
  kPatch,
};

struct Overload {
  bool member = false;
  std::vector<TypePtr> parameters;  // the target first
  TypePtr result;
  int variables = 0;  // its variables are 0, 1, ...
};

struct FunctionEntry {
  Function function;
  std::vector<Overload> overloads;
};

// nullptr where Berth knows no function of that name.
const FunctionEntry* FindFunction(std::string_view name);

// Whether it converts one value into another kind, so that Kubernetes evaluates it when it compiles
// an expression in which the value is a constant.
bool IsConversion(Function function);

}  // namespace berth::cel
