// SPDX-License-Identifier: Apache-2.0
//
// What the functions of lists and maps do. Source: github.com/google/cel-go, ext/{lists,sets}.go;
// k8s.io/apiserver/pkg/cel/library/lists.go.
#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include "cel/eval/library.h"
#include "cel/maps.h"

namespace berth::cel {
namespace {

using Items = std::vector<Value>;

Value NewList(Items items, Arena& arena) {
  arena.Spend(items.size());
  return Value::Of(arena.NewList(std::move(items)));
}

bool IsTrue(Equality same) { return same == Equality::kYes; }

bool Has(const Items& items, const Value& value, Arena& arena) {
  return std::ranges::any_of(items,
                             [&](const Value& item) { return IsTrue(Equal(value, item, arena)); });
}

bool HasAll(const Items& items, const Items& others, Arena& arena) {
  return std::ranges::all_of(others, [&](const Value& other) { return Has(items, other, arena); });
}

bool HasAny(const Items& items, const Items& others, Arena& arena) {
  return std::ranges::any_of(items, [&](const Value& item) { return Has(others, item, arena); });
}

// Whether a function takes lists of such items: Kubernetes looks at the first one.
bool TakesItems(const Items& items, bool numbers_only) {
  return items.empty() || items[0].is_number() ||
         (!numbers_only && (items[0].is(Kind::kBool) || items[0].is(Kind::kString)));
}

// Whether the one overload that the types allow takes such items.
bool FitsOverload(const Node& call, const Items& items) {
  if (call.overload == nullptr || items.empty()) return true;
  switch (call.overload->parameters[0]->parameters[0]->kind) {
    case TypeKind::kInt:
      return items[0].is(Kind::kInt);
    case TypeKind::kUint:
      return items[0].is(Kind::kUint);
    case TypeKind::kDouble:
      return items[0].is(Kind::kDouble);
    case TypeKind::kBool:
      return items[0].is(Kind::kBool);
    default:
      return items[0].is(Kind::kString);
  }
}

Value IsSorted(const Items& items, Arena& arena) {
  for (std::size_t i = 1; i < items.size(); ++i) {
    // What cannot be compared is no reason against it there, unless it is of no kind to compare.
    const Kind kind = items[i].kind;
    if (!items[i].is_number() && kind != Kind::kBool && kind != Kind::kString) {
      return NoOverload(arena);
    }
    if (Compare(items[i - 1], items[i]) == 1) return Value::Bool(false);
  }
  return Value::Bool(true);
}

// The least (sign = -1) or the greatest.
Value Extreme(const Items& items, int sign, Arena& arena) {
  if (items.empty()) return arena.Error("an empty list has no least and no greatest item");
  Value best = items[0];
  for (const Value& item : items) {
    if (!item.is_number() && !item.is(Kind::kBool) && !item.is(Kind::kString)) {
      return NoOverload(arena);
    }
    if (Compare(item, best) == sign) best = item;
  }
  return best;
}

Value Sum(const Items& items, const Node& call, Arena& arena) {
  static const Overload* const kInts = &FindFunction("sum")->overloads[0];
  Value sum = Value::Int(0);
  const Overload* const overload = call.overload;
  const TypeKind kind = overload == nullptr ? kInts->result->kind : overload->result->kind;
  if (!items.empty()) {
    if (items[0].is(Kind::kUint)) sum = Value::Uint(0);
    if (items[0].is(Kind::kDouble)) sum = Value::Double(0);
  } else {
    if (kind == TypeKind::kUint) sum = Value::Uint(0);
    if (kind == TypeKind::kDouble) sum = Value::Double(0);
  }
  for (const Value& item : items) {
    sum = Plus(sum, item, arena);
    if (sum.is(Kind::kError)) return sum;
  }
  return sum;
}

Value IndexIn(bool last, const Items& items, const Value& value, Arena& arena) {
  const std::int64_t size = std::ssize(items);
  for (std::int64_t i = 0; i < size; ++i) {
    const std::int64_t at = last ? size - 1 - i : i;
    if (IsTrue(Equal(items[static_cast<std::size_t>(at)], value, arena))) return Value::Int(at);
  }
  return Value::Int(-1);
}

Value Includes(const Value& target, const Value& value, Arena& arena) {
  if (!target.is(Kind::kList)) return Value::Bool(IsTrue(Equal(target, value, arena)));
  return Value::Bool(std::ranges::any_of(
      target.list->items, [&](const Value& item) { return IsTrue(Equal(item, value, arena)); }));
}

Value Slice(const Items& items, const Value& from, const Value& to, Arena& arena) {
  if (!from.is(Kind::kInt) || !to.is(Kind::kInt)) return NoOverload(arena);
  if (from.integer < 0 || from.integer > to.integer || to.integer > std::ssize(items)) {
    return arena.Error("an index is out of range");
  }
  return NewList(Items(items.begin() + from.integer, items.begin() + to.integer), arena);
}

void FlattenInto(Items& all, const Items& items, std::int64_t depth, Arena& arena) {
  for (const Value& item : items) {
    arena.Spend(1);
    if (arena.steps() > kMostSteps || arena.bytes() + all.size() * sizeof(Value) > kMostBytes) {
      arena.GiveUp("so long a list");
      return;
    }
    if (item.is(Kind::kList) && depth > 0) {
      FlattenInto(all, item.list->items, depth - 1, arena);
    } else {
      all.push_back(item);
    }
  }
}

Value Flatten(Args args, Arena& arena) {
  if (args.size() > 1 && !args[1].is(Kind::kInt)) return NoOverload(arena);
  const std::int64_t depth = args.size() > 1 ? args[1].integer : 1;
  if (depth < 0) return arena.Error("a list is flattened by no negative number of levels");
  Items all;
  FlattenInto(all, args[0].list->items, depth, arena);
  return NewList(std::move(all), arena);
}

// The items in the order of their keys. Kubernetes' order of equal keys is that of before for up to
// 12 items only.
Value SortBy(const Items& items, const Items& keys, bool stable, Arena& arena) {
  if (items.size() != keys.size()) return arena.Error("not as many keys as items");
  if (items.empty()) return NewList({}, arena);
  const bool comparable = TakesItems(keys, false);
  for (const Value& key : keys) {
    if (!comparable || key.kind != keys[0].kind) return NoOverload(arena);
    if (Compare(key, key) == 2) arena.GiveUp("a number that is none in a list to be sorted");
  }
  arena.Spend(items.size() * 20);
  std::vector<std::size_t> order(items.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  bool ties = false;
  std::ranges::stable_sort(order, [&keys, &ties](std::size_t a, std::size_t b) {
    const int compared = Compare(keys[a], keys[b]);
    ties = ties || compared == 0;
    return compared == -1;
  });
  if (ties && stable && items.size() > 12) arena.GiveUp("sortBy() of many items with equal keys");
  Items sorted;
  for (const std::size_t at : order) sorted.push_back(items[at]);
  return NewList(std::move(sorted), arena);
}

Value Range(const Value& count, Arena& arena) {
  constexpr std::int64_t kMost = 1'000'000;
  if (!count.is(Kind::kInt)) return NoOverload(arena);
  if (count.integer < 0 || count.integer > kMost) return arena.Error("no such range");
  if (arena.bytes() + static_cast<std::size_t>(count.integer) * sizeof(Value) > kMostBytes) {
    arena.GiveUp("so long a list");
    return count;
  }
  Items items;
  for (std::int64_t i = 0; i < count.integer; ++i) items.push_back(Value::Int(i));
  return NewList(std::move(items), arena);
}

Value Distinct(const Items& items, Arena& arena) {
  Items unique;
  for (const Value& item : items) {
    if (arena.steps() > kMostSteps) break;
    const bool seen = std::ranges::any_of(
        unique, [&](const Value& other) { return IsTrue(Equal(item, other, arena)); });
    if (!seen) unique.push_back(item);
  }
  return NewList(std::move(unique), arena);
}

Value End(const Items& items, bool last, Arena& arena) {
  if (items.empty()) return Value::Optional(nullptr);
  return Value::Optional(&arena.Keep(last ? items.back() : items.front()));
}

// One entry more. A map that no fold builds is copied.
Value Insert(const Value& map, const Value& key, const Value& value, Arena& arena) {
  if (!key.is(Kind::kString) && !key.is(Kind::kInt) && !key.is(Kind::kUint) &&
      !key.is(Kind::kBool)) {
    arena.GiveUp("such a key of a map");
    return map;
  }
  if (FindInMap(map, key, arena).found) return arena.Error("a key is twice in a map");
  if (map.is(Kind::kMap) && map.map->grows) {
    arena.Grow(2 * sizeof(Value));
    map.map->entries.emplace_back(key, value);
    return map;
  }
  MapValue& copy = arena.NewMap();
  for (std::size_t i = 0; i < MapSize(map); ++i) {
    const MapEntry entry = MapEntryAt(map, i, arena);
    copy.entries.emplace_back(entry.key, entry.value);
  }
  copy.entries.emplace_back(key, value);
  arena.Grow(copy.entries.size() * 2 * sizeof(Value));
  arena.Spend(copy.entries.size());
  return Value::Of(copy);
}

Value MapInsert(Args args, Arena& arena) {
  if (!args[0].is_map()) return NoOverload(arena);
  if (args.size() == 3) return Insert(args[0], args[1], args[2], arena);
  if (!args[1].is_map()) return NoOverload(arena);
  Value map = args[0];
  for (std::size_t i = 0; i < MapSize(args[1]) && !map.is(Kind::kError); ++i) {
    const MapEntry entry = MapEntryAt(args[1], i, arena);
    map = Insert(map, entry.key, entry.value, arena);
  }
  return map;
}

Value CallSets(Function function, Args args, Arena& arena) {
  if (!args[1].is(Kind::kList)) return NoOverload(arena);
  const Items& a = args[0].list->items;
  const Items& b = args[1].list->items;
  switch (function) {
    case Function::kSetsContains:
      return Value::Bool(HasAll(a, b, arena));
    case Function::kSetsEquivalent:
      return Value::Bool(HasAll(a, b, arena) && HasAll(b, a, arena));
    default:
      return Value::Bool(HasAny(a, b, arena));
  }
}

}  // namespace

Value CallList(const Node& call, Args args, Arena& arena) {
  const Function function = call.function;
  if (function == Function::kIncludes) return Includes(args[0], args[1], arena);
  if (function == Function::kRange) return Range(args[0], arena);
  if (function == Function::kMapInsert) return MapInsert(args, arena);
  if (!args[0].is(Kind::kList)) return NoOverload(arena);
  const Items& items = args[0].list->items;
  if (function <= Function::kMax && function >= Function::kIsSorted && !FitsOverload(call, items)) {
    return NoOverload(arena);
  }
  switch (function) {
    case Function::kIndexOf:
    case Function::kLastIndexOf:
      if (args.size() != 2) return NoOverload(arena);
      return IndexIn(function == Function::kLastIndexOf, items, args[1], arena);
    case Function::kIsSorted:
      return TakesItems(items, false) ? IsSorted(items, arena) : NoOverload(arena);
    case Function::kSum:
      return TakesItems(items, true) ? Sum(items, call, arena) : NoOverload(arena);
    case Function::kMin:
    case Function::kMax:
      if (!TakesItems(items, false)) return NoOverload(arena);
      return Extreme(items, function == Function::kMin ? -1 : 1, arena);
    case Function::kSlice:
      return Slice(items, args[1], args[2], arena);
    case Function::kFlatten:
      return Flatten(args, arena);
    case Function::kSort:
      return SortBy(items, items, false, arena);
    case Function::kSortByKeys:
      if (!args[1].is(Kind::kList)) return NoOverload(arena);
      return SortBy(items, args[1].list->items, true, arena);
    case Function::kReverse:
      return NewList(Items(items.rbegin(), items.rend()), arena);
    case Function::kDistinct:
      return Distinct(items, arena);
    case Function::kFirst:
    case Function::kLast:
      return End(items, function == Function::kLast, arena);
    default:
      return CallSets(function, args, arena);
  }
}

Value CallOptional(Function function, Args args, Arena& arena) {
  if (function == Function::kOptionalNone) return Value::Optional(nullptr);
  const Value& value = args[0];
  switch (function) {
    case Function::kOptionalOf:
      return Value::Optional(&arena.Keep(value));
    case Function::kOptionalOfNonZero: {
      const bool zero = value.is(Kind::kNull) || value.is_false() ||
                        (value.is(Kind::kInt) && value.integer == 0) ||
                        (value.is(Kind::kUint) && value.natural == 0) ||
                        (value.is(Kind::kDouble) && value.real == 0) ||
                        (value.is(Kind::kString) && value.size == 0) ||
                        (value.is(Kind::kList) && value.list->items.empty()) ||
                        (value.is_map() && !value.is(Kind::kAttributes) &&
                         !value.is(Kind::kCapacities) && MapSize(value) == 0);
      return Value::Optional(zero ? nullptr : &arena.Keep(value));
    }
    case Function::kOptionalUnwrap: {
      if (!value.is(Kind::kList)) return NoOverload(arena);
      Items items;
      for (const Value& item : value.list->items) {
        if (!item.is(Kind::kOptional)) return NoOverload(arena);
        if (item.content != nullptr) items.push_back(*item.content);
      }
      return NewList(std::move(items), arena);
    }
    default:
      break;
  }
  if (!value.is(Kind::kOptional)) return NoOverload(arena);
  if (function == Function::kHasValue) return Value::Bool(value.content != nullptr);
  return value.content != nullptr ? *value.content : arena.Error("an optional has no value");
}

}  // namespace berth::cel
