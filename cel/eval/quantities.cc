// SPDX-License-Identifier: Apache-2.0
//
// What the functions of quantities and versions do. Source: k8s.io/apiserver/pkg/cel/library,
// quantity.go and semverlib.go.
#include <string_view>

#include "cel/eval/library.h"

namespace berth::cel {
namespace {

// Quantity holds no number beyond 2^63 - 1; Kubernetes holds decimal ones.
void CheckExact(const Amount& amount, Arena& arena) {
  if (!amount.exact()) arena.GiveUp("quantities above 2^63");
}

Value ParseAmount(Function function, const Value& text, Arena& arena) {
  if (!text.is(Kind::kString)) return NoOverload(arena);
  const Result<Amount> amount = Amount::Parse(text.text());
  if (function == Function::kIsQuantity) return Value::Bool(amount.has_value());
  if (!amount) return arena.Error("no quantity", text.text());
  CheckExact(*amount, arena);
  return Value::Of(arena.Keep(*amount));
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
  if (function == Function::kIsGreaterThan) return Value::Bool(order > 0);
  if (function == Function::kIsLessThan) return Value::Bool(order < 0);
  return Value::Int((order > 0) - (order < 0));
}

Value CompareParts(Function function, const Value& a, const Value& b, Arena& arena) {
  if (a.kind != b.kind) return NoOverload(arena);
  if (a.is(Kind::kVersion)) return Ordered(function, *a.version <=> *b.version);
  if (!a.is(Kind::kQuantity)) return NoOverload(arena);
  CheckExact(*a.amount, arena);
  CheckExact(*b.amount, arena);
  return Ordered(function, *a.amount <=> *b.amount);
}

}  // namespace

Value CallQuantity(Function function, Args args, Arena& arena) {
  if (function <= Function::kIsQuantity) return ParseAmount(function, args[0], arena);
  if (function <= Function::kIsSemver) return ParseVersion(function, args, arena);
  if (function <= Function::kCompareTo) return CompareParts(function, args[0], args[1], arena);
  if (!args[0].is(Kind::kVersion)) return NoOverload(arena);
  const Version& version = *args[0].version;
  return Value::Int(static_cast<std::int64_t>(function == Function::kMajor   ? version.major()
                                              : function == Function::kMinor ? version.minor()
                                                                             : version.patch()));
}

}  // namespace berth::cel
