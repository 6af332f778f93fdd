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

// Whether the types alone say that both sides of an operator are of that kind.
bool Takes(const Node& call, TypeKind kind) {
  return call.overload != nullptr && call.overload->parameters[0]->kind == kind;
}

std::uint64_t RegexCost(std::span<const Value> args) {
  const auto pattern = static_cast<std::uint64_t>(std::ceil(Characters(args[1]) * 0.25));
  return Tenth(1 + Characters(args[0])) * pattern;
}

// A list that is made of so many items, or with so many comparisons.
std::uint64_t NewListCost(double items) {
  return static_cast<std::uint64_t>(items) + 1 + kListCost;
}

std::uint64_t SortCost(const Value& keys) {
  if (!keys.is(Kind::kList)) return 1;
  const auto& items = keys.list->items;
  const double factor = !items.empty() && items[0].is(Kind::kString) ? 2.1 : 2.0;
  return NewListCost(static_cast<double>(items.size() * items.size()) * factor);
}

std::uint64_t FlattenCost(std::span<const Value> args) {
  double depth = 1;
  if (args.size() == 2 && args[1].is(Kind::kInt)) depth = static_cast<double>(args[1].integer);
  return NewListCost(Characters(args[0]) * (depth < 0 ? 1 : depth));
}

std::uint64_t SetsCost(std::span<const Value> args, std::uint64_t factor) {
  return 1 + SizeOf(args[0]) * SizeOf(args[1]) * factor;
}

std::uint64_t EqualityCost(std::span<const Value> args) {
  return Tenth(std::min(Characters(args[0]), Characters(args[1])));
}

}  // namespace

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

std::uint64_t CallCost(const Node& call, std::span<const Value> args, const Value& result,
                       Arena& arena) {
  switch (call.function) {
    case Function::kIsSorted:
    case Function::kSum:
    case Function::kMax:
    case Function::kMin:
    case Function::kIndexOf:
    case Function::kLastIndexOf:
    case Function::kIncludes:
      return Traversal(args[0], arena);
    case Function::kLowerAscii:
    case Function::kUpperAscii:
    case Function::kSubstring:
    case Function::kTrim:
    case Function::kQuantity:
    case Function::kIsQuantity:
    case Function::kSemver:
    case Function::kIsSemver:
      return Tenth(Characters(args[0]));
    case Function::kReplace:
    case Function::kSplit:
      return Tenth(Characters(args[0]) * 2);
    case Function::kJoin:
      return Tenth(Characters(result) * 2);
    case Function::kFind:
    case Function::kFindAll:
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
      return Takes(call, TypeKind::kString) ? EqualityCost(args) : 1;
    case Function::kAdd:
      if (!Takes(call, TypeKind::kString)) return 1;
      return Tenth(Characters(args[0]) + Characters(args[1]));
    case Function::kIn:
      if (call.overload == nullptr || call.overload->parameters[1]->kind != TypeKind::kList) {
        return 1;
      }
      return SizeOf(args[1]);
    case Function::kStartsWith:
    case Function::kEndsWith:
      return Tenth(Characters(args[1]));
    case Function::kContains:
      return Tenth(Characters(args[0])) * Tenth(Characters(args[1]));
    case Function::kSlice:
    case Function::kRange:
    case Function::kReverse:
      return NewListCost(Characters(result));
    case Function::kFlatten:
      return call.overload == nullptr ? 1 : FlattenCost(args);
    case Function::kDistinct:
      return SortCost(args[0]);
    case Function::kSort:
      return call.overload == nullptr ? 1 : SortCost(args[0]);
    case Function::kSortByKeys:
      return call.overload == nullptr ? 1 : SortCost(args[1]);
    case Function::kSetsContains:
    case Function::kSetsIntersects:
      return SetsCost(args, 1);
    case Function::kSetsEquivalent:
      return SetsCost(args, 2);
    default:
      return 1;
  }
}

}  // namespace berth::cel
