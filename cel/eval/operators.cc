// SPDX-License-Identifier: Apache-2.0
//
// Arithmetic, comparison and conversion.
#include <charconv>
#include <cmath>
#include <limits>
#include <string>
#include <type_traits>

#include "base/text.h"
#include "cel/eval/library.h"
#include "cel/maps.h"

namespace berth::cel {
namespace {

constexpr std::int64_t kLeastInt = std::numeric_limits<std::int64_t>::min();

Value Overflow(Arena& arena) { return arena.Error("a number is too large"); }

// int64 or uint64.
template <class Integer>
Value IntegerArithmetic(Function function, Integer a, Integer b, Arena& arena) {
  constexpr bool kIsSigned = std::is_signed_v<Integer>;
  Integer result = 0;
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
      if constexpr (kIsSigned) {
        if (a == kLeastInt && b == -1) return Overflow(arena);
      }
      result = function == Function::kDivide ? a / b : a % b;
  }
  if (overflow) return Overflow(arena);
  if constexpr (kIsSigned) {
    return Value::Int(result);
  } else {
    return Value::Uint(result);
  }
}

Value DoubleArithmetic(Function function, double a, double b, Arena& arena) {
  switch (function) {
    case Function::kAdd:
      return Value::Double(a + b);
    case Function::kSubtract:
      return Value::Double(a - b);
    case Function::kMultiply:
      return Value::Double(a * b);
    case Function::kDivide:
      return Value::Double(a / b);
    default:
      return NoOverload(arena);
  }
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
  switch (a.kind) {
    case Kind::kInt:
      return IntegerArithmetic(function, a.integer, b.integer, arena);
    case Kind::kUint:
      return IntegerArithmetic(function, a.natural, b.natural, arena);
    case Kind::kDouble:
      return DoubleArithmetic(function, a.real, b.real, arena);
    case Kind::kString:
      if (function != Function::kAdd) break;
      return Value::Text(arena.Keep(std::string(a.text()).append(b.text())));
    case Kind::kList:
      if (function == Function::kAdd) return AddLists(a, b, arena);
      break;
    default:
      break;
  }
  return NoOverload(arena);
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
  if (value.is(Kind::kDouble)) return Value::Double(-value.real);
  if (!value.is(Kind::kInt)) return NoOverload(arena);
  return value.integer == kLeastInt ? Overflow(arena) : Value::Int(-value.integer);
}

// Kubernetes looks numbers up in a set that has each of them as a double too, equal or not.
bool IsInSet(const Value& value, const Value& item, Arena& arena) {
  const auto as_double = [](const Value& number) {
    return number.is(Kind::kInt) ? static_cast<double>(number.integer)
                                 : static_cast<double>(number.natural);
  };
  if (value.is(Kind::kDouble) && (item.is(Kind::kInt) || item.is(Kind::kUint))) {
    return as_double(item) == value.real;
  }
  if (item.is(Kind::kDouble) && (value.is(Kind::kInt) || value.is(Kind::kUint))) {
    const bool whole = std::floor(item.real) == item.real;
    if (value.is(Kind::kUint)) {
      return whole && item.real >= 0 && item.real < 0x1p64 &&
             static_cast<std::uint64_t>(item.real) == value.natural;
    }
    return whole && item.real > -0x1p63 && item.real < 0x1p63 &&
           static_cast<std::int64_t>(item.real) == value.integer;
  }
  return Equal(value, item, arena) == Equality::kYes;
}

// Kubernetes' own answer is no rule where lists hold such values beside others.
bool GivesUp(Equality same, const Value& value, Arena& arena) {
  if (same != Equality::kFails || value.is(Kind::kQuantity) || value.is(Kind::kVersion)) {
    return false;
  }
  arena.GiveUp("quantities or versions beside others in lists");
  return true;
}

Value In(const Node& call, const Value& value, const Value& in, Arena& arena) {
  if (in.is_map()) {
    if (value.is(Kind::kVersion) && in.is(Kind::kMap)) arena.GiveUp("a version as a key");
    return Value::Bool(MapHas(in, value, arena));
  }
  if (!in.is(Kind::kList)) return NoOverload(arena);
  for (const Value& item : in.list->items) {
    if (call.in_set) {
      if (IsInSet(value, item, arena)) return Value::Bool(true);
      continue;
    }
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

Value ConvertError(const Value& value, Arena& arena) {
  return arena.Error("no such number or bool",
                     value.is(Kind::kString) ? value.text() : std::string_view{});
}

Value ToInt(const Value& value, Arena& arena) {
  switch (value.kind) {
    case Kind::kInt:
      return value;
    case Kind::kUint:
      if (value.natural > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
        return Overflow(arena);
      }
      return Value::Int(static_cast<std::int64_t>(value.natural));
    case Kind::kDouble:
      if (!(value.real > -0x1p63 && value.real < 0x1p63)) return Overflow(arena);
      return Value::Int(static_cast<std::int64_t>(value.real));
    case Kind::kString: {
      std::string_view text = value.text();
      if (text.starts_with('+') && !text.starts_with("+-")) text.remove_prefix(1);
      const auto number = ReadNumber<std::int64_t>(text);
      return number ? Value::Int(*number) : ConvertError(value, arena);
    }
    default:
      return NoOverload(arena);
  }
}

Value ToUint(const Value& value, Arena& arena) {
  switch (value.kind) {
    case Kind::kUint:
      return value;
    case Kind::kInt:
      if (value.integer < 0) return Overflow(arena);
      return Value::Uint(static_cast<std::uint64_t>(value.integer));
    case Kind::kDouble:
      if (!(value.real >= 0 && value.real < 0x1p64)) return Overflow(arena);
      return Value::Uint(static_cast<std::uint64_t>(value.real));
    case Kind::kString: {
      const auto number = ReadNumber<std::uint64_t>(value.text());
      return number ? Value::Uint(*number) : ConvertError(value, arena);
    }
    default:
      return NoOverload(arena);
  }
}

// Only the plain decimal forms: Go has others (hexadecimal, with underscores, infinities).
Value TextToDouble(const Value& value, Arena& arena) {
  std::string_view text = value.text();
  const bool plain = text.find_first_not_of("0123456789+-.eE") == std::string_view::npos;
  if (!plain || text.empty()) {
    if (!text.empty()) arena.GiveUp("such a text as a double");
    return ConvertError(value, arena);
  }
  if (text.starts_with('+') && !text.starts_with("+-")) text.remove_prefix(1);
  double number = 0;
  const char* const end = text.data() + text.size();
  const auto [last, error] = std::from_chars(text.data(), end, number);
  if (error == std::errc::result_out_of_range) arena.GiveUp("such a text as a double");
  if (error != std::errc() || last != end) return ConvertError(value, arena);
  return Value::Double(number);
}

Value ToDouble(const Value& value, Arena& arena) {
  switch (value.kind) {
    case Kind::kDouble:
      return value;
    case Kind::kInt:
      return Value::Double(static_cast<double>(value.integer));
    case Kind::kUint:
      return Value::Double(static_cast<double>(value.natural));
    case Kind::kString:
      return TextToDouble(value, arena);
    default:
      return NoOverload(arena);
  }
}

Value ToBool(const Value& value, Arena& arena) {
  if (value.is(Kind::kBool)) return value;
  if (!value.is(Kind::kString)) return NoOverload(arena);
  const std::string_view text = value.text();
  for (const std::string_view yes : {"1", "t", "T", "true", "TRUE", "True"}) {
    if (text == yes) return Value::Bool(true);
  }
  for (const std::string_view no : {"0", "f", "F", "false", "FALSE", "False"}) {
    if (text == no) return Value::Bool(false);
  }
  return ConvertError(value, arena);
}

Value ToText(const Value& value, Arena& arena) {
  switch (value.kind) {
    case Kind::kString:
      return value;
    case Kind::kBool:
      return Value::Text(value.boolean ? "true" : "false");
    case Kind::kInt:
      return Value::Text(arena.Keep(std::to_string(value.integer)));
    case Kind::kUint:
      return Value::Text(arena.Keep(std::to_string(value.natural)));
    case Kind::kDouble:
      arena.GiveUp("a double as a text");
      return Value::Null();
    default:
      return NoOverload(arena);
  }
}

}  // namespace

Value Plus(const Value& a, const Value& b, Arena& arena) {
  return Arithmetic(Function::kAdd, a, b, arena);
}

Value Convert(Function function, const Value& value, Arena& arena) {
  switch (function) {
    case Function::kToBool:
      return ToBool(value, arena);
    case Function::kToDouble:
      return ToDouble(value, arena);
    case Function::kToInt:
      return ToInt(value, arena);
    case Function::kToUint:
      return ToUint(value, arena);
    case Function::kToString:
      return ToText(value, arena);
    case Function::kType:
      return Value::Type(TypeName(value));
    default:
      return value;
  }
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
      return In(call, args[0], args[1], arena);
    default:
      return Convert(call.function, args[0], arena);
  }
}

}  // namespace berth::cel
