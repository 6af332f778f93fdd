// SPDX-License-Identifier: Apache-2.0
//
// What the functions of texts do. Source: github.com/google/cel-go, ext/strings.go (version 2).
#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

#include <re2/re2.h>

#include "cel/eval/library.h"
#include "cel/value.h"

namespace berth::cel {
namespace {

bool AllTexts(Args args) {
  return std::ranges::all_of(args, [](const Value& v) { return v.is(Kind::kString); });
}

// Texts, and then an integer where there are more than `texts` arguments.
bool TextsAndInt(Args args, std::size_t texts) {
  return AllTexts(args.first(std::min(texts, args.size()))) &&
         (args.size() <= texts || args[texts].is(Kind::kInt));
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

Value CharAt(Args args, Arena& arena) {
  const std::u32string runes = Runes(args[0].text());
  const std::int64_t at = args[1].integer;
  if (at < 0 || at > std::ssize(runes)) return OutOfRange(arena);
  return NewText(std::u32string_view(runes).substr(static_cast<std::size_t>(at), 1), arena);
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

// Whether `part` is in `runes` at that place.
bool IsAt(const std::u32string& runes, const std::u32string& part, std::int64_t at) {
  return std::u32string_view(runes).substr(static_cast<std::size_t>(at)).starts_with(part);
}

Value IndexOf(bool last, Args args, Arena& arena) {
  const std::u32string runes = Runes(args[0].text());
  const std::u32string part = Runes(args[1].text());
  const std::int64_t size = std::ssize(runes);
  arena.Spend(runes.size() * (part.size() + 1));
  if (last && args.size() == 2) {
    if (part.empty()) return Value::Int(size);
    if (args[0].size < args[1].size) return Value::Int(-1);
  }
  const std::int64_t from = args.size() > 2 ? args[2].integer : (last ? size - 1 : 0);
  if (from < 0) return OutOfRange(arena);
  if (part.empty()) return Value::Int(std::min(from, size));
  if (from >= size) return Value::Int(-1);
  const std::int64_t last_place = size - std::ssize(part);
  if (last) {
    for (std::int64_t at = std::min(from, last_place); at >= 0; --at) {
      if (IsAt(runes, part, at)) return Value::Int(at);
    }
  } else {
    for (std::int64_t at = from; at <= last_place; ++at) {
      if (IsAt(runes, part, at)) return Value::Int(at);
    }
  }
  return Value::Int(-1);
}

Value InCase(bool upper, std::string_view text, Arena& arena) {
  std::string result(text);
  for (char& c : result) {
    if (upper ? c >= 'a' && c <= 'z' : c >= 'A' && c <= 'Z') c = static_cast<char>(c ^ 0x20);
  }
  return Value::Text(arena.Keep(std::move(result)));
}

bool IsSpace(char32_t c) {
  return (c >= 9 && c <= 13) || c == ' ' || c == 0x85 || c == 0xA0 || c == 0x1680 ||
         (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F ||
         c == 0x3000;
}

Value Trim(std::string_view text, Arena& arena) {
  const std::u32string runes = Runes(text);
  std::u32string_view rest = runes;
  while (!rest.empty() && IsSpace(rest.front())) rest.remove_prefix(1);
  while (!rest.empty() && IsSpace(rest.back())) rest.remove_suffix(1);
  return NewText(rest, arena);
}

// The size of the character that the text begins with.
std::size_t FirstSize(std::string_view text) {
  std::size_t size = 1;
  while (size < text.size() && (static_cast<unsigned char>(text[size]) & 0xC0U) == 0x80U) ++size;
  return std::min(size, text.size());
}

// The places at which `part` is found one behind the other; an empty one before each character and
// at the end. At most `most`.
std::vector<std::size_t> Places(std::string_view text, std::string_view part, std::int64_t most) {
  std::vector<std::size_t> places;
  std::size_t at = 0;
  while (std::ssize(places) < most) {
    at = part.empty() ? at : text.find(part, at);
    if (at == std::string_view::npos) break;
    places.push_back(at);
    if (part.empty() && at == text.size()) break;
    at += part.empty() ? FirstSize(text.substr(at)) : part.size();
  }
  return places;
}

constexpr std::int64_t kAll = std::int64_t{1} << 40;

Value Replace(Args args, Arena& arena) {
  const std::string_view text = args[0].text(), old = args[1].text(), by = args[2].text();
  const std::int64_t most = args.size() > 3 && args[3].integer >= 0 ? args[3].integer : kAll;
  arena.Spend(text.size());
  const std::vector<std::size_t> places = Places(text, old, std::min(most, kAll));
  if (arena.bytes() + places.size() * by.size() > kMostBytes) {
    arena.GiveUp("so long a text");
    return args[0];
  }
  std::string result;
  std::size_t from = 0;
  for (const std::size_t at : places) {
    result.append(text.substr(from, at - from)).append(by);
    from = at + old.size();
  }
  result.append(text.substr(from));
  return Value::Text(arena.Keep(std::move(result)));
}

Value Split(Args args, Arena& arena) {
  const std::string_view text = args[0].text(), by = args[1].text();
  std::int64_t most = args.size() > 2 && args[2].integer >= 0 ? args[2].integer : kAll;
  arena.Spend(text.size());
  std::vector<std::string_view> parts;
  if (most == 0) return TextList(parts, arena);
  most = std::min(most, kAll);
  if (by.empty()) {
    std::string_view rest = text;
    for (; !rest.empty() && std::ssize(parts) + 1 < most; rest.remove_prefix(parts.back().size())) {
      parts.push_back(rest.substr(0, FirstSize(rest)));
    }
    if (!rest.empty()) parts.push_back(rest);
    return TextList(parts, arena);
  }
  std::size_t from = 0;
  for (const std::size_t at : Places(text, by, most - 1)) {
    parts.push_back(text.substr(from, at - from));
    from = at + by.size();
  }
  parts.push_back(text.substr(from));
  return TextList(parts, arena);
}

Value Join(Args args, Arena& arena) {
  if (!args[0].is(Kind::kList) || (args.size() > 1 && !args[1].is(Kind::kString))) {
    return NoOverload(arena);
  }
  const std::string_view between = args.size() > 1 ? args[1].text() : std::string_view{};
  std::string result;
  for (const Value& item : args[0].list->items) {
    if (!item.is(Kind::kString)) return arena.Error("join() takes texts");
    if (&item != args[0].list->items.data()) result.append(between);
    result.append(item.text());
    if (arena.bytes() + result.size() > kMostBytes) {
      arena.GiveUp("so long a text");
      break;
    }
  }
  arena.Spend(result.size() / 16 + args[0].list->items.size());
  return Value::Text(arena.Keep(std::move(result)));
}

// As Go's FindAllString: an empty match right behind the last one does not count.
Value FindAll(const re2::RE2& pattern, std::string_view text, std::int64_t most, Arena& arena) {
  std::vector<std::string_view> found;
  const re2::StringPiece whole(text.data(), text.size());
  std::size_t at = 0;
  const char* last_end = nullptr;
  while (std::ssize(found) < most && at <= text.size()) {
    arena.Spend(text.size() - at + 1);
    re2::StringPiece match;
    if (arena.steps() > kMostSteps ||
        !pattern.Match(whole, at, text.size(), re2::RE2::UNANCHORED, &match, 1)) {
      break;
    }
    const char* const end = match.data() + match.size();
    const auto end_at = static_cast<std::size_t>(end - text.data());
    const bool empty_here = end_at == at;
    const bool counts = !empty_here || match.data() != last_end;
    if (empty_here) {
      at = at < text.size() ? at + FirstSize(text.substr(at)) : text.size() + 1;
    } else {
      at = end_at;
    }
    last_end = end;
    if (counts) found.emplace_back(match.data(), match.size());
  }
  return TextList(found, arena);
}

Value Regex(const Node& call, Args args, Arena& arena) {
  if (!TextsAndInt(args, 2)) return NoOverload(arena);
  const std::string_view text = args[0].text();
  const re2::RE2& pattern = *call.pattern;
  if (call.function == Function::kFindAll) {
    const std::int64_t most = args.size() > 2 && args[2].integer >= 0 ? args[2].integer : kAll;
    return FindAll(pattern, text, most, arena);
  }
  arena.Spend(text.size());
  re2::StringPiece match;
  const bool found = pattern.Match(re2::StringPiece(text.data(), text.size()), 0, text.size(),
                                   re2::RE2::UNANCHORED, &match, 1);
  if (call.function == Function::kMatches) return Value::Bool(found);
  return Value::Text(found ? std::string_view(match.data(), match.size()) : std::string_view{});
}

Value Size(const Value& value, Arena& arena) {
  if (!value.is(Kind::kString) && !value.is(Kind::kList) && !value.is_map()) {
    return NoOverload(arena);
  }
  return Value::Int(static_cast<std::int64_t>(SizeOf(value)));
}

Value CallWithInts(Function function, Args args, Arena& arena) {
  const bool ints =
      std::ranges::all_of(args.subspan(1), [](const Value& v) { return v.is(Kind::kInt); });
  if (!args[0].is(Kind::kString) || !ints) return NoOverload(arena);
  return function == Function::kCharAt ? CharAt(args, arena) : Substring(args, arena);
}

}  // namespace

Value CallText(const Node& call, Args args, Arena& arena) {
  const Function function = call.function;
  const std::size_t texts = function == Function::kReplace ? 3 : 2;
  switch (function) {
    case Function::kSize:
      return Size(args[0], arena);
    case Function::kJoin:
      return Join(args, arena);
    case Function::kCharAt:
    case Function::kSubstring:
      return CallWithInts(function, args, arena);
    case Function::kMatches:
    case Function::kFind:
    case Function::kFindAll:
      return Regex(call, args, arena);
    default:
      break;
  }
  if (!TextsAndInt(args, texts)) return NoOverload(arena);
  const std::string_view text = args[0].text();
  arena.Spend(text.size() / 16);
  switch (function) {
    case Function::kContains:
      arena.Spend(text.size());
      return Value::Bool(text.find(args[1].text()) != std::string_view::npos);
    case Function::kStartsWith:
      return Value::Bool(text.starts_with(args[1].text()));
    case Function::kEndsWith:
      return Value::Bool(text.ends_with(args[1].text()));
    case Function::kIndexOf:
    case Function::kLastIndexOf:
      return IndexOf(function == Function::kLastIndexOf, args, arena);
    case Function::kLowerAscii:
    case Function::kUpperAscii:
      return InCase(function == Function::kUpperAscii, text, arena);
    case Function::kReplace:
      return Replace(args, arena);
    case Function::kSplit:
      return Split(args, arena);
    default:
      return Trim(text, arena);
  }
}

}  // namespace berth::cel
