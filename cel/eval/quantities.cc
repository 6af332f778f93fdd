// SPDX-License-Identifier: Apache-2.0
//
// What the functions of quantities and versions do. Source: k8s.io/apiserver/pkg/cel/library,
// quantity.go and semverlib.go.
#include <optional>
#include <string_view>

#include "cel/eval/library.h"

namespace berth::cel {
namespace {

Value NewAmount(const Amount& amount, bool is_sum, Arena& arena) {
  Value value = Value::Of(arena.Keep(amount));
  value.is_sum = is_sum;
  return value;
}

// Quantity holds no number beyond 2^63 - 1; Kubernetes holds decimal ones.
bool Holds(const Amount& amount, Arena& arena) {
  if (!amount.exact()) arena.GiveUp("quantities above 2^63");
  return amount.exact();
}

Value ParseAmount(Function function, const Value& text, Arena& arena) {
  if (!text.is(Kind::kString)) return NoOverload(arena);
  const Result<Amount> amount = Amount::Parse(text.text());
  if (function == Function::kIsQuantity) return Value::Bool(amount.has_value());
  if (!amount) return arena.Error("no quantity", text.text());
  Holds(*amount, arena);
  return NewAmount(*amount, false, arena);
}

Value ParseVersion(Function function, Args args, Arena& arena) {
  if (!args[0].is(Kind::kString) || (args.size() > 1 && !args[1].is(Kind::kBool))) {
    return NoOverload(arena);
  }
  const std::string_view text = args[0].text();
  Result<Version> version =
      args.size() > 1 && args[1].boolean ? Version::ParseLoosely(text) : Version::Parse(text);
  if (function == Function::kIsSemver) return Value::Bool(version.has_value());
  if (!version) return arena.Error("no version", text);
  return Value::Of(arena.Keep(*std::move(version)));
}

Value Ordered(Function function, std::strong_ordering order) {
  switch (function) {
    case Function::kIsGreaterThan:
      return Value::Bool(order > 0);
    case Function::kIsLessThan:
      return Value::Bool(order < 0);
    default:
      return Value::Int((order > 0) - (order < 0));
  }
}

Value CompareParts(Function function, const Value& a, const Value& b, Arena& arena) {
  if (a.kind != b.kind) return NoOverload(arena);
  if (a.is(Kind::kVersion)) return Ordered(function, *a.version <=> *b.version);
  if (!a.is(Kind::kQuantity)) return NoOverload(arena);
  Holds(*a.amount, arena);
  Holds(*b.amount, arena);
  return Ordered(function, *a.amount <=> *b.amount);
}

Value Sum(Function function, const Value& a, const Value& b, Arena& arena) {
  const bool of_int = b.is(Kind::kInt);
  if (!a.is(Kind::kQuantity) || (!of_int && !b.is(Kind::kQuantity))) return NoOverload(arena);
  const Amount other = of_int ? Amount::Of(b.integer) : *b.amount;
  const std::optional<Amount> sum =
      function == Function::kAddQuantity ? a.amount->Plus(other) : a.amount->Minus(other);
  if (!sum) arena.GiveUp("quantities above 2^63");
  return NewAmount(sum.value_or(Amount()), true, arena);
}

Value OfAmount(Function function, const Amount& amount, Arena& arena) {
  Holds(amount, arena);
  switch (function) {
    case Function::kSign:
      return Value::Int(amount.sign());
    case Function::kAsDouble:
      return Value::Double(amount.AsDouble());
    case Function::kIsInteger:
      return Value::Bool(amount.AsInteger().has_value());
    default: {
      const std::optional<std::int64_t> integer = amount.AsInteger();
      return integer ? Value::Int(*integer) : arena.Error("a quantity is no integer");
    }
  }
}

}  // namespace

Value CallQuantity(Function function, Args args, Arena& arena) {
  const auto part = [](std::uint64_t number) {
    return Value::Int(static_cast<std::int64_t>(number));
  };
  switch (function) {
    case Function::kQuantity:
    case Function::kIsQuantity:
      return ParseAmount(function, args[0], arena);
    case Function::kSemver:
    case Function::kIsSemver:
      return ParseVersion(function, args, arena);
    case Function::kIsGreaterThan:
    case Function::kIsLessThan:
    case Function::kCompareTo:
      return CompareParts(function, args[0], args[1], arena);
    case Function::kAddQuantity:
    case Function::kSubQuantity:
      return Sum(function, args[0], args[1], arena);
    case Function::kMajor:
      return args[0].is(Kind::kVersion) ? part(args[0].version->major()) : NoOverload(arena);
    case Function::kMinor:
      return args[0].is(Kind::kVersion) ? part(args[0].version->minor()) : NoOverload(arena);
    case Function::kPatch:
      return args[0].is(Kind::kVersion) ? part(args[0].version->patch()) : NoOverload(arena);
    default:
      return args[0].is(Kind::kQuantity) ? OfAmount(function, *args[0].amount, arena)
                                         : NoOverload(arena);
  }
}

}  // namespace berth::cel
