// SPDX-License-Identifier: Apache-2.0
#include "cel/value.h"

#include <algorithm>

#include "cel/maps.h"

namespace berth::cel {
namespace {

template <class T>
Value Made(Kind kind, T Value::*member, T content) {
  Value value;
  value.kind = kind;
  value.*member = content;
  return value;
}

template <class T>
T& KeepIn(std::vector<std::unique_ptr<T>>& all, T one) {
  return *all.emplace_back(std::make_unique<T>(std::move(one)));
}

constexpr char32_t kReplacement = 0xFFFD;

// How many bytes the character has that begins so; 0 = none begins so.
std::size_t SizeOfRune(unsigned char first) {
  if (first < 0x80) return 1;
  if (first >= 0xC2 && first < 0xE0) return 2;
  if (first >= 0xE0 && first < 0xF0) return 3;
  return first >= 0xF0 && first < 0xF5 ? 4 : 0;
}

int Order(auto a, auto b) { return (a > b) - (a < b); }

Equality Said(bool equal) { return equal ? Equality::kYes : Equality::kNo; }

Equality EqualLists(const Value& a, const Value& b, Arena& arena) {
  if (!b.is(Kind::kList) || a.list->items.size() != b.list->items.size()) return Equality::kNo;
  for (std::size_t i = 0; i < a.list->items.size(); ++i) {
    const Equality same = Equal(a.list->items[i], b.list->items[i], arena);
    if (same != Equality::kYes) return same;
  }
  return Equality::kYes;
}

Equality EqualMaps(const Value& a, const Value& b, Arena& arena) {
  if (!b.is_map() || MapSize(a) != MapSize(b)) return Equality::kNo;
  for (std::size_t i = 0; i < MapSize(a); ++i) {
    const MapEntry entry = MapEntryAt(a, i, arena);
    const Found other = FindInMap(b, entry.key, arena);
    if (!other.found) return Equality::kNo;
    const Equality same = Equal(entry.value, other.value, arena);
    if (same != Equality::kYes) return same;
  }
  return Equality::kYes;
}

}  // namespace

Value Value::Bool(bool b) { return Made(Kind::kBool, &Value::boolean, b); }
Value Value::Int(std::int64_t i) { return Made(Kind::kInt, &Value::integer, i); }
Value Value::Text(std::string_view text) {
  Value value = Made(Kind::kString, &Value::data, text.data());
  value.size = text.size();
  return value;
}
Value Value::Of(const Amount& amount) { return Made(Kind::kQuantity, &Value::amount, &amount); }
Value Value::Of(const Version& version) { return Made(Kind::kVersion, &Value::version, &version); }
Value Value::Of(ListValue& list) { return Made(Kind::kList, &Value::list, &list); }
Value Value::Of(const Device& device) { return Made(Kind::kDevice, &Value::device, &device); }
Value Value::Of(const AttributeDomain& domain) {
  return Made(Kind::kAttributeDomain, &Value::attributes, &domain);
}
Value Value::Of(const CapacityDomain& domain) {
  return Made(Kind::kCapacityDomain, &Value::capacities, &domain);
}
Value Value::Optional(const Value* content) {
  return Made(Kind::kOptional, &Value::content, content);
}

std::string_view Arena::Keep(std::string text) {
  bytes_ += 64 + text.size();
  return KeepIn(texts_, std::move(text));
}

const Amount& Arena::Keep(const Amount& amount) {
  bytes_ += sizeof(Amount) + 32;
  return KeepIn(amounts_, amount);
}

const Version& Arena::Keep(Version version) {
  bytes_ += 512;
  return KeepIn(versions_, std::move(version));
}

const Value& Arena::Keep(const Value& value) {
  bytes_ += sizeof(Value) + 32;
  return KeepIn(values_, value);
}

ListValue& Arena::NewList(std::vector<Value> items) {
  bytes_ += 64 + items.size() * sizeof(Value);
  return KeepIn(lists_, ListValue{std::move(items), false});
}

Value Arena::Error(std::string_view what, std::string_view detail) {
  Value value;
  value.kind = Kind::kError;
  bytes_ += 64;
  value.error = &KeepIn(errors_, ErrorText{what, detail});
  return value;
}

std::size_t CharactersIn(std::string_view text) {
  return static_cast<std::size_t>(std::ranges::count_if(
      text, [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; }));
}

std::size_t SizeOf(const Value& value) {
  switch (value.kind) {
    case Kind::kString:
      return CharactersIn(value.text());
    case Kind::kList:
      return value.list->items.size();
    case Kind::kOptional:
      return value.content == nullptr ? 1 : SizeOf(*value.content);
    default:
      return value.is_map() ? MapSize(value) : 1;
  }
}

Equality Equal(const Value& a, const Value& b, Arena& arena) {
  arena.Spend(1);
  if (arena.steps() > kMostSteps) return Equality::kNo;  // and there is no result
  if (a.is(Kind::kNull) || b.is(Kind::kNull)) return Said(a.kind == b.kind);
  switch (a.kind) {
    case Kind::kBool:
      return Said(b.is(Kind::kBool) && a.boolean == b.boolean);
    case Kind::kInt:
      return Said(b.is(Kind::kInt) && a.integer == b.integer);
    case Kind::kString:
      if (b.is(Kind::kString)) arena.Spend(std::min(a.size, b.size) / 16);
      return Said(b.is(Kind::kString) && a.text() == b.text());
    case Kind::kQuantity:
      if (!b.is(Kind::kQuantity)) return Equality::kFails;
      if (!a.amount->exact() || !b.amount->exact()) arena.GiveUp("quantities above 2^63");
      return Said(*a.amount == *b.amount);
    case Kind::kVersion:
      if (!b.is(Kind::kVersion)) return Equality::kFails;
      return Said(*a.version == *b.version);
    case Kind::kOptional:
      if (!b.is(Kind::kOptional)) return Equality::kNo;
      if (a.content == nullptr || b.content == nullptr) return Said(a.content == b.content);
      return Equal(*a.content, *b.content, arena);
    case Kind::kList:
      return EqualLists(a, b, arena);
    default:
      return EqualMaps(a, b, arena);
  }
}

int Compare(const Value& a, const Value& b) {
  if (a.kind != b.kind) return 2;
  if (a.is(Kind::kInt)) return Order(a.integer, b.integer);
  if (a.is(Kind::kString)) return Order(a.text(), b.text());
  if (a.is(Kind::kBool)) return Order(a.boolean, b.boolean);
  return 2;
}

std::u32string Runes(std::string_view text) {
  std::u32string runes;
  runes.reserve(text.size());
  while (!text.empty()) {
    const auto first = static_cast<unsigned char>(text[0]);
    const std::size_t size = SizeOfRune(first);
    char32_t rune = size <= 1 ? first : first & (0xFFU >> (size + 1));
    bool good = size > 0 && size <= text.size();
    for (std::size_t i = 1; good && i < size; ++i) {
      const auto byte = static_cast<unsigned char>(text[i]);
      good = (byte & 0xC0U) == 0x80U;
      rune = rune << 6U | (byte & 0x3FU);
    }
    good = good && (size < 3 || rune >= 0x800) && (size < 4 || rune >= 0x10000) &&
           rune <= 0x10FFFF && (rune < 0xD800 || rune > 0xDFFF);
    runes += good ? rune : kReplacement;
    text.remove_prefix(good ? size : 1);
  }
  return runes;
}

std::string Utf8(std::u32string_view runes) {
  std::string text;
  const auto byte = [&text](std::uint32_t bits) { text += static_cast<char>(bits); };
  for (const char32_t rune : runes) {
    if (rune < 0x80) {
      byte(rune);
      continue;
    }
    if (rune < 0x800) {
      byte(0xC0U | rune >> 6U);
    } else if (rune < 0x10000) {
      byte(0xE0U | rune >> 12U);
      byte(0x80U | (rune >> 6U & 0x3FU));
    } else {
      byte(0xF0U | rune >> 18U);
      byte(0x80U | (rune >> 12U & 0x3FU));
      byte(0x80U | (rune >> 6U & 0x3FU));
    }
    byte(0x80U | (rune & 0x3FU));
  }
  return text;
}

}  // namespace berth::cel
