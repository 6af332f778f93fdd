// SPDX-License-Identifier: Apache-2.0
//
// Arithmetic, comparison and conversion.
#include <limits>
#include <string>
#include <vector>

#include "base/text.h"
#include "cel/eval/library.h"
#include "cel/maps.h"

namespace berth::cel {
namespace {

constexpr std::int64_t kLeastInt = std::numeric_limits<std::int64_t>::min();

Value Overflow(Arena& arena) { return arena.Error("a number is too large"); }

Value IntegerArithmetic(Function function, std::int64_t a, std::int64_t b, Arena& arena) {
  std::int64_t result = 0;
  bool overflow = false;
  switch (function) {
    case Function::kAdd:
      overflow = __builtin_add_overflow(a, b, &result);
      break;
    case Function::kSubtract:
      overflow = __builtin_sub_overflow(a, b, &result);
      break;
    case Function::kMultiply:
      overflow = __builtin_mul_overflow(a, b, &result);
      break;
    default:
      if (b == 0) return arena.Error("division by zero");
      overflow = a == kLeastInt && b == -1;
      if (!overflow) result = function == Function::kDivide ? a / b : a % b;
  }
  return overflow ? Overflow(arena) : Value::Int(result);
}

Value AddLists(const Value& a, const Value& b, Arena& arena) {
  const auto& more = b.list->items;
  arena.Spend(more.size());
  if (a.list->grows) {
    arena.Grow(more.size() * sizeof(Value));
    // A list that is added to itself grows while it is read.
    const std::vector<Value> copy(more);
    a.list->items.insert(a.list->items.end(), copy.begin(), copy.end());
    return a;
  }
  if (a.list->items.empty()) return b;
  if (more.empty()) return a;
  arena.Spend(a.list->items.size());
  std::vector<Value> items(a.list->items);
  items.insert(items.end(), more.begin(), more.end());
  return Value::Of(arena.NewList(std::move(items)));
}

Value Arithmetic(Function function, const Value& a, const Value& b, Arena& arena) {
  if (a.kind != b.kind) return NoOverload(arena);
  if (a.is(Kind::kInt)) return IntegerArithmetic(function, a.integer, b.integer, arena);
  if (function != Function::kAdd) return NoOverload(arena);
  if (a.is(Kind::kList)) return AddLists(a, b, arena);
  if (!a.is(Kind::kString)) return NoOverload(arena);
  return Value::Text(arena.Keep(std::string(a.text()).append(b.text())));
}

Value Order(Function function, const Value& a, const Value& b, Arena& arena) {
  const int order = Compare(a, b);
  if (order == 2) return NoOverload(arena);
  switch (function) {
    case Function::kLess:
      return Value::Bool(order < 0);
    case Function::kLessEquals:
      return Value::Bool(order <= 0);
    case Function::kGreater:
      return Value::Bool(order > 0);
    default:
      return Value::Bool(order >= 0);
  }
}

Value Negate(const Value& value, Arena& arena) {
  if (!value.is(Kind::kInt)) return NoOverload(arena);
  return value.integer == kLeastInt ? Overflow(arena) : Value::Int(-value.integer);
}

// Kubernetes' own answer is no rule where lists hold such values beside others.
bool GivesUp(Equality same, const Value& value, Arena& arena) {
  if (same != Equality::kFails || value.is(Kind::kQuantity) || value.is(Kind::kVersion)) {
    return false;
  }
  arena.GiveUp("quantities or versions beside others in lists");
  return true;
}

Value In(const Value& value, const Value& in, Arena& arena) {
  if (in.is_map()) return Value::Bool(MapHas(in, value, arena));
  if (!in.is(Kind::kList)) return NoOverload(arena);
  for (const Value& item : in.list->items) {
    const Equality same = Equal(value, item, arena);
    if (same == Equality::kYes || GivesUp(same, value, arena)) return Value::Bool(true);
  }
  return Value::Bool(false);
}

Value Equals(bool want, const Value& a, const Value& b, Arena& arena) {
  const Equality same = Equal(a, b, arena);
  if (same != Equality::kFails) return Value::Bool((same == Equality::kYes) == want);
  GivesUp(same, a, arena);
  return want ? NoOverload(arena) : Value::Bool(true);
}

Value ToInt(const Value& value, Arena& arena) {
  if (value.is(Kind::kInt)) return value;
  if (!value.is(Kind::kString)) return NoOverload(arena);
  std::string_view text = value.text();
  if (text.starts_with('+') && !text.starts_with("+-")) text.remove_prefix(1);
  const auto number = ReadNumber<std::int64_t>(text);
  return number ? Value::Int(*number) : arena.Error("no such number", value.text());
}

Value ToText(const Value& value, Arena& arena) {
  if (value.is(Kind::kString)) return value;
  if (value.is(Kind::kBool)) return Value::Text(value.boolean ? "true" : "false");
  if (!value.is(Kind::kInt)) return NoOverload(arena);
  return Value::Text(arena.Keep(std::to_string(value.integer)));
}

}  // namespace

Value Plus(const Value& a, const Value& b, Arena& arena) {
  return Arithmetic(Function::kAdd, a, b, arena);
}

Value Convert(Function function, const Value& value, Arena& arena) {
  if (function == Function::kToInt) return ToInt(value, arena);
  return function == Function::kToString ? ToText(value, arena) : value;
}

Value Operate(const Node& call, Args args, Arena& arena) {
  switch (call.function) {
    case Function::kNot:
      return args[0].is(Kind::kBool) ? Value::Bool(!args[0].boolean) : NoOverload(arena);
    case Function::kEquals:
    case Function::kNotEquals:
      return Equals(call.function == Function::kEquals, args[0], args[1], arena);
    case Function::kLess:
    case Function::kLessEquals:
    case Function::kGreater:
    case Function::kGreaterEquals:
      return Order(call.function, args[0], args[1], arena);
    case Function::kAdd:
    case Function::kSubtract:
    case Function::kMultiply:
    case Function::kDivide:
    case Function::kModulo:
      return Arithmetic(call.function, args[0], args[1], arena);
    case Function::kNegate:
      return Negate(args[0], arena);
    case Function::kIn:
      return In(args[0], args[1], arena);
    default:
      return Convert(call.function, args[0], arena);
  }
}

}  // namespace berth::cel
