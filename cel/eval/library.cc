// SPDX-License-Identifier: Apache-2.0
#include "cel/eval/library.h"

#include <algorithm>
#include <cmath>

#include "cel/maps.h"

namespace berth::cel {
namespace {

// Of going through texts of that many characters.
std::uint64_t Tenth(double characters) {
  return static_cast<std::uint64_t>(std::ceil(characters * 0.1));
}

double Characters(const Value& value) { return static_cast<double>(SizeOf(value)); }

// Of going through all that the value consists of.
std::uint64_t Traversal(const Value& value, Arena& arena) {
  arena.Spend(1);
  if (arena.steps() > kMostSteps) return 0;
  std::uint64_t cost = 0;
  if (value.is(Kind::kString)) {
    return static_cast<std::uint64_t>(static_cast<double>(value.size) * 0.1);
  }
  if (value.is(Kind::kList)) {
    for (const Value& item : value.list->items) cost += Traversal(item, arena);
    return cost;
  }
  if (!value.is_map()) return 1;
  for (std::size_t i = 0; i < MapSize(value); ++i) {
    const MapEntry entry = MapEntryAt(value, i, arena);
    cost += Traversal(entry.key, arena) + Traversal(entry.value, arena);
  }
  return cost;
}

bool AreTexts(std::span<const Value> args) {
  return args[0].is(Kind::kString) && args[1].is(Kind::kString);
}

std::uint64_t RegexCost(std::span<const Value> args) {
  const auto pattern = static_cast<std::uint64_t>(std::ceil(Characters(args[1]) * 0.25));
  return Tenth(1 + Characters(args[0])) * pattern;
}

std::uint64_t EqualityCost(std::span<const Value> args) {
  return Tenth(std::min(Characters(args[0]), Characters(args[1])));
}

}  // namespace

Value Call(const Node& call, Args args, Arena& arena) {
  const Function function = call.function;
  if (function < Function::kSize) return Operate(call, args, arena);
  if (function < Function::kIncludes) return CallText(call, args, arena);
  if (function == Function::kIncludes) return Includes(args[0], args[1], arena);
  if (function < Function::kQuantity) return CallOptional(function, args, arena);
  return CallQuantity(function, args, arena);
}

std::uint64_t CallCost(const Node& call, std::span<const Value> args, Arena& arena) {
  switch (call.function) {
    case Function::kIncludes:
      return Traversal(args[0], arena);
    case Function::kLowerAscii:
    case Function::kUpperAscii:
    case Function::kSubstring:
    case Function::kQuantity:
    case Function::kIsQuantity:
    case Function::kSemver:
    case Function::kIsSemver:
      return Tenth(Characters(args[0]));
    case Function::kSplit:
      return Tenth(Characters(args[0]) * 2);
    case Function::kMatches:
      return RegexCost(args);
    case Function::kEquals:
      if (args[0].is(Kind::kQuantity) || args[0].is(Kind::kVersion)) return 1;
      return EqualityCost(args);
    case Function::kNotEquals:
      return EqualityCost(args);
    case Function::kLess:
    case Function::kLessEquals:
    case Function::kGreater:
    case Function::kGreaterEquals:
      return AreTexts(args) ? EqualityCost(args) : 1;
    case Function::kAdd:
      if (!AreTexts(args)) return 1;
      return Tenth(Characters(args[0]) + Characters(args[1]));
    case Function::kIn:
      // What an attribute is Kubernetes does not know beforehand.
      return call.children[1]->is_path() || !args[1].is(Kind::kList) ? 1 : SizeOf(args[1]);
    case Function::kStartsWith:
    case Function::kEndsWith:
      return Tenth(Characters(args[1]));
    case Function::kContains:
      return Tenth(Characters(args[0])) * Tenth(Characters(args[1]));
    default:
      return 1;
  }
}

}  // namespace berth::cel
