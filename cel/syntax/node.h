// SPDX-License-Identifier: Apache-2.0
//
// Node: an expression as a tree, macros expanded. ResolveNames fills in what the
// names mean.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "cel/value.h"

namespace re2 {
class RE2;
}

namespace berth::cel {

// Levels of an expression with its parentheses. Kubernetes counts 250 of each of its own kinds of
// levels; there is nothing within this that it would refuse.
inline constexpr int kDeepest = 80;
// Copies of nodes that macros make included.
inline constexpr int kMostNodes = 20'000;

// The functions that Berth evaluates. Their order tells the kinds apart (cel/eval/library.cc).
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
  kToDyn,
  kToInt,
  kToString,
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
  kValue,
  kHasValue,
  kOrOptional,
  kOrValue,
  // Quantities and versions.
  kQuantity,
  kIsQuantity,
  kSemver,
  kIsSemver,
  kIsGreaterThan,
  kIsLessThan,
  kCompareTo,
  kMajor,
  kMinor,
  kPatch,
};

enum class NodeKind : std::uint8_t {
  kConst,   // value
  kName,    // name
  kSelect,  // children[0].name; only whether it is there, with test_only
  kCall,    // name(children...); with member, children[0].name(...)
  kList,    // children; optional[i]: left out where it is none
  kFold,    // parts by FoldPart
};

// The accumulator begins as `init`; for each item of `range`, while `condition` holds, it becomes
// `step`; then the fold is `result`. `init` is evaluated when the accumulator is first read.
namespace fold {
enum Part : std::size_t { kRange, kInit, kCondition, kStep, kResult };
enum Variable : std::size_t { kItem, kSecondItem, kAccumulator };
}  // namespace fold

struct Node {
  NodeKind kind = NodeKind::kConst;
  bool member = false;
  bool test_only = false;
  int depth = 1;
  std::string name;
  Value value;
  std::vector<std::unique_ptr<Node>> children;
  std::vector<bool> optional;
  std::string variables[3];  // of a fold; "" = no second item

  // From ResolveNames, and in_set and pattern from folding (program.cc).
  int slot = -1;  // of a variable; -1 = the device
  int slots[3] = {-1, -1, -1};
  Function function{};
  bool in_set = false;  // `in` a constant list of texts, numbers and bools
  std::shared_ptr<const re2::RE2> pattern;

  // A name, or what leads on from a value: a.b, a[b], c ? a : b.
  [[nodiscard]] bool is_path() const {
    if (kind == NodeKind::kSelect) return !test_only;
    return kind == NodeKind::kName ||
           (kind == NodeKind::kCall &&
            (function == Function::kIndex || function == Function::kOptionalIndex ||
             function == Function::kOptionalSelect || function == Function::kConditional));
  }
};

using NodePtr = std::unique_ptr<Node>;

}  // namespace berth::cel
