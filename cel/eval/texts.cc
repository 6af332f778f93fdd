// SPDX-License-Identifier: Apache-2.0
//
// What the functions of texts, lists and optionals do. Source: github.com/google/cel-go,
// ext/strings.go (version 2), cel/library.go; k8s.io/dynamic-resource-allocation/cel.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <re2/re2.h>

#include "cel/eval/library.h"
#include "cel/maps.h"
#include "cel/value.h"

namespace berth::cel {
namespace {

bool IsTrue(Equality same) { return same == Equality::kYes; }

bool AllTexts(Args args) {
  return std::ranges::all_of(args, [](const Value& v) { return v.is(Kind::kString); });
}

Value OutOfRange(Arena& arena) { return arena.Error("an index is out of range"); }

Value NewText(std::u32string_view runes, Arena& arena) {
  arena.Spend(runes.size());
  return Value::Text(arena.Keep(Utf8(runes)));
}

Value TextList(const std::vector<std::string_view>& parts, Arena& arena) {
  std::vector<Value> items;
  items.reserve(parts.size());
  for (const std::string_view part : parts) items.push_back(Value::Text(part));
  arena.Spend(parts.size());
  return Value::Of(arena.NewList(std::move(items)));
}

Value Substring(Args args, Arena& arena) {
  const std::u32string runes = Runes(args[0].text());
  const std::int64_t size = std::ssize(runes);
  const std::int64_t from = args[1].integer;
  const std::int64_t to = args.size() > 2 ? args[2].integer : size;
  if (from < 0 || from > to || to > size) return OutOfRange(arena);
  return NewText(std::u32string_view(runes).substr(static_cast<std::size_t>(from),
                                                   static_cast<std::size_t>(to - from)),
                 arena);
}

// The size of the character that the text begins with.
std::size_t FirstSize(std::string_view text) {
  std::size_t size = 1;
  while (size < text.size() && (static_cast<unsigned char>(text[size]) & 0xC0U) == 0x80U) ++size;
  return std::min(size, text.size());
}

Value Split(Args args, Arena& arena) {
  std::string_view rest = args[0].text();
  const std::string_view by = args[1].text();
  const std::int64_t limit = args.size() > 2 ? args[2].integer : -1;
  arena.Spend(rest.size());
  std::vector<std::string_view> parts;
  const auto take = [&](std::size_t size) {
    parts.push_back(rest.substr(0, size));
    rest.remove_prefix(std::min(size + by.size(), rest.size()));
  };
  while (limit < 0 || std::ssize(parts) + 1 < limit) {
    const std::size_t at = by.empty() ? FirstSize(rest) : rest.find(by);
    if (at == std::string_view::npos || (by.empty() && rest.empty())) break;
    take(at);
  }
  if (limit != 0 && !(by.empty() && rest.empty())) parts.push_back(rest);
  return TextList(parts, arena);
}

Value InCase(bool upper, std::string_view text, Arena& arena) {
  std::string result(text);
  for (char& c : result) {
    if (upper ? c >= 'a' && c <= 'z' : c >= 'A' && c <= 'Z') c = static_cast<char>(c ^ 0x20);
  }
  return Value::Text(arena.Keep(std::move(result)));
}

Value Size(const Value& value, Arena& arena) {
  if (!value.is(Kind::kString) && !value.is(Kind::kList) && !value.is_map()) {
    return NoOverload(arena);
  }
  return Value::Int(static_cast<std::int64_t>(SizeOf(value)));
}

}  // namespace

Value CallText(const Node& call, Args args, Arena& arena) {
  const Function function = call.function;
  if (function == Function::kSize) return Size(args[0], arena);
  if (function == Function::kSubstring) {
    const bool ints =
        std::ranges::all_of(args.subspan(1), [](const Value& v) { return v.is(Kind::kInt); });
    return args[0].is(Kind::kString) && ints ? Substring(args, arena) : NoOverload(arena);
  }
  if (function == Function::kSplit) {
    const bool limit = args.size() < 3 || args[2].is(Kind::kInt);
    return AllTexts(args.first(2)) && limit ? Split(args, arena) : NoOverload(arena);
  }
  if (!AllTexts(args)) return NoOverload(arena);
  const std::string_view text = args[0].text();
  if (function == Function::kMatches) {
    arena.Spend(text.size());
    return Value::Bool(
        re2::RE2::PartialMatch(re2::StringPiece(text.data(), text.size()), *call.pattern));
  }
  arena.Spend(text.size() / 16);
  switch (function) {
    case Function::kContains:
      arena.Spend(text.size());
      return Value::Bool(text.find(args[1].text()) != std::string_view::npos);
    case Function::kStartsWith:
      return Value::Bool(text.starts_with(args[1].text()));
    case Function::kEndsWith:
      return Value::Bool(text.ends_with(args[1].text()));
    default:
      return InCase(function == Function::kUpperAscii, text, arena);
  }
}

Value Includes(const Value& target, const Value& value, Arena& arena) {
  if (!target.is(Kind::kList)) return Value::Bool(IsTrue(Equal(target, value, arena)));
  return Value::Bool(std::ranges::any_of(
      target.list->items, [&](const Value& item) { return IsTrue(Equal(item, value, arena)); }));
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
                        (value.is(Kind::kString) && value.size == 0) ||
                        (value.is(Kind::kList) && value.list->items.empty()) ||
                        (value.is_map() && !value.is(Kind::kAttributes) &&
                         !value.is(Kind::kCapacities) && MapSize(value) == 0);
      return Value::Optional(zero ? nullptr : &arena.Keep(value));
    }
    default:
      break;
  }
  if (!value.is(Kind::kOptional)) return NoOverload(arena);
  if (function == Function::kHasValue) return Value::Bool(value.content != nullptr);
  return value.content != nullptr ? *value.content : arena.Error("an optional has no value");
}

}  // namespace berth::cel
