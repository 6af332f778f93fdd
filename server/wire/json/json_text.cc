// SPDX-License-Identifier: Apache-2.0
#include "server/wire/json/json_text.h"

#include <algorithm>
#include <bitset>
#include <chrono>
#include <cstdint>
#include <cstring>

#include "base/text.h"
#include "server/wire/json/strict_json.h"

namespace berth::wire {
namespace {

// How many bytes at the start are written as they are.
std::size_t PlainLength(std::string_view text) {
  const auto is_plain = [](char c) { return c >= 0x20 && c < 0x7f && c != '"' && c != '\\'; };
  return static_cast<std::size_t>(std::ranges::find_if_not(text, is_plain) - text.begin());
}

constexpr bool IsDigit(char c) { return c >= '0' && c <= '9'; }
constexpr bool IsHex(char c) {
  return IsDigit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}
constexpr bool IsSpace(char c) { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; }

// How many of the eight bytes from `at` are plain characters of a string: not a quote, a backslash
// or a control character. Exact: the first byte that is none decides.
std::size_t PlainBytes(const char* at) {
  constexpr std::uint64_t kOnes = 0x0101010101010101, kHigh = 0x8080808080808080;
  const auto zero_bytes = [](std::uint64_t word) { return (word - kOnes) & ~word & kHigh; };
  std::uint64_t word = 0;
  std::memcpy(&word, at, sizeof word);
  // Borrows reach only bytes behind a match, so that the lowest match is true.
  const std::uint64_t stops = zero_bytes(word ^ (kOnes * '"')) | zero_bytes(word ^ (kOnes * '\\')) |
                              ((word - kOnes * 0x20) & ~word & kHigh);
  return stops == 0 ? 8 : static_cast<std::size_t>(__builtin_ctzll(stops)) / 8;
}

class Checker {
 public:
  explicit Checker(std::string_view text)
      : begin_(text.data()), at_(begin_), end_(at_ + text.size()) {}

  Status Check() {
    const char* const wanted = Value();
    if (wanted != nullptr) {
      return Invalid("JSON: byte " + std::to_string(at_ - begin_) + ": want " + wanted);
    }
    return {};
  }

 private:
  // Each: nullptr, or what was wanted at at_.

  const char* Value() {
    for (bool begins = true;;) {  // whether a value begins here, or one has ended
      SkipSpace();
      if (++tokens_ > kMostJsonTokens) return "fewer values in one text";
      if (begins) {
        if (at_ == end_) return "a value";
        if (*at_ == '{' || *at_ == '[') {
          if (const char* wanted = Open(begins)) return wanted;
          continue;
        }
        if (const char* wanted = Scalar()) return wanted;
        begins = false;
        continue;
      }
      if (depth_ == 0) return at_ == end_ ? nullptr : "one JSON value and nothing after it";
      if (const char* wanted = Next(begins)) return wanted;
    }
  }

  const char* Open(bool& begins) {
    if (depth_ == kMostJsonLevels) return "fewer levels";
    const bool is_object = *at_++ == '{';
    is_object_[static_cast<std::size_t>(depth_++)] = is_object;
    SkipSpace();
    if (at_ != end_ && *at_ == (is_object ? '}' : ']')) {
      ++at_;
      --depth_;
      begins = false;
      return nullptr;
    }
    return is_object ? Key() : nullptr;
  }

  // Behind a value inside of an object or a list.
  const char* Next(bool& begins) {
    const bool is_object = is_object_[static_cast<std::size_t>(depth_ - 1)];
    if (at_ != end_ && *at_ == ',') {
      ++at_;
      begins = true;
      SkipSpace();
      return is_object ? Key() : nullptr;
    }
    if (at_ == end_ || *at_ != (is_object ? '}' : ']')) return is_object ? ", or }" : ", or ]";
    ++at_;
    --depth_;
    return nullptr;
  }

  const char* Key() {
    tokens_ += 2;
    if (at_ == end_ || *at_ != '"') return "a key";
    if (const char* wanted = String()) return wanted;
    SkipSpace();
    if (at_ == end_ || *at_ != ':') return "a colon";
    ++at_;
    return nullptr;
  }

  const char* Scalar() {
    switch (*at_) {
      case '"':
        return String();
      case 't':
        return Word("true");
      case 'f':
        return Word("false");
      case 'n':
        return Word("null");
      default:
        return Number();
    }
  }

  const char* Word(std::string_view word) {
    if (!std::string_view(at_, static_cast<std::size_t>(end_ - at_)).starts_with(word)) {
      return "a value";
    }
    at_ += word.size();
    return nullptr;
  }

  const char* String() {
    for (++at_;;) {
      while (end_ - at_ >= 8) {
        const std::size_t plain = PlainBytes(at_);
        at_ += plain;
        if (plain < 8) break;
      }
      if (at_ == end_) return "the end of a string";
      const char c = *at_;
      if (c == '"') {
        ++at_;
        return nullptr;
      }
      if (static_cast<unsigned char>(c) < 0x20) return "no control character in a string";
      if (c == '\\') {
        if (const char* wanted = Escape()) return wanted;
      } else {
        ++at_;
      }
    }
  }

  const char* Escape() {
    if (end_ - at_ >= 2 && std::strchr("\"\\/bfnrt", at_[1]) != nullptr && at_[1] != '\0') {
      at_ += 2;
      return nullptr;
    }
    if (end_ - at_ >= 6 && at_[1] == 'u' && std::all_of(at_ + 2, at_ + 6, IsHex)) {
      at_ += 6;
      return nullptr;
    }
    return "an escape";
  }

  const char* Number() {
    if (at_ != end_ && *at_ == '-') ++at_;
    if (at_ != end_ && *at_ == '0') {
      ++at_;
    } else if (!Digits()) {
      return "a value";
    }
    if (at_ != end_ && *at_ == '.') {
      ++at_;
      if (!Digits()) return "a digit";
    }
    if (at_ != end_ && (*at_ == 'e' || *at_ == 'E')) {
      ++at_;
      if (at_ != end_ && (*at_ == '+' || *at_ == '-')) ++at_;
      if (!Digits()) return "a digit";
    }
    return nullptr;
  }

  bool Digits() {
    const char* const from = at_;
    while (at_ != end_ && IsDigit(*at_)) ++at_;
    return at_ != from;
  }

  void SkipSpace() {
    while (at_ != end_ && IsSpace(*at_)) ++at_;
  }

  const char* const begin_;
  const char* at_;
  const char* const end_;
  int depth_ = 0;
  std::size_t tokens_ = 0;
  std::bitset<kMostJsonLevels> is_object_;  // of each open level
};

using std::chrono::minutes;
using std::chrono::seconds;

constexpr int kFirstYear = 1970, kLastYear = 2199;

// Whether the text begins with a digit for each 0 of the form, and else with the form's characters.
bool HasForm(std::string_view text, std::string_view form) {
  if (text.size() < form.size()) return false;
  for (std::size_t i = 0; i < form.size(); ++i) {
    if (form[i] == '0' ? !IsDigit(text[i]) : form[i] != text[i]) return false;
  }
  return true;
}

// The number that the text has at a place, as so many digits.
int NumberAt(std::string_view text, std::size_t at, std::size_t digits) {
  return static_cast<int>(*ParseInt(text.substr(at, digits), 0, 9999));
}

// "Z", "+08:00": how far the clock that was read is ahead of UTC.
std::optional<minutes> OffsetOf(std::string_view text) {
  if (text == "Z") return minutes(0);
  if (text.size() != 6 || (!HasForm(text, "+00:00") && !HasForm(text, "-00:00"))) {
    return std::nullopt;
  }
  const int hour = NumberAt(text, 1, 2), minute = NumberAt(text, 4, 2);
  if (hour > 23 || minute > 59) return std::nullopt;
  const minutes offset = std::chrono::hours(hour) + minutes(minute);
  return text[0] == '-' ? -offset : offset;
}

}  // namespace

void AppendString(std::string& out, std::string_view text) {
  const std::size_t plain = PlainLength(text);  // nearly always all of it
  out.append("\"").append(text.substr(0, plain));
  if (plain < text.size()) {
    const std::string escaped = JsonText(text.substr(plain));
    for (const char c : std::string_view(escaped).substr(1, escaped.size() - 2)) {
      if (c == 0x7f) {
        out += "\\u007f";
      } else {
        out += c;
      }
    }
  }
  out += '"';
}

std::string ObjectOf(std::string_view key, std::string_view text) {
  std::string out = "{";
  AppendString(out, key);
  out += ':';
  AppendString(out, text);
  out += '}';
  return out;
}

Status CheckJson(std::string_view text) { return Checker(text).Check(); }

std::optional<WallTime> ParseTime(std::string_view text) {
  constexpr std::string_view kForm = "0000-00-00T00:00:00";
  if (!HasForm(text, kForm)) return std::nullopt;
  const int year = NumberAt(text, 0, 4), hour = NumberAt(text, 11, 2),
            minute = NumberAt(text, 14, 2), second = NumberAt(text, 17, 2);
  if (year < kFirstYear || year > kLastYear) return std::nullopt;
  if (hour > 23 || minute > 59 || second > 60) return std::nullopt;
  const std::chrono::year_month_day date{
      std::chrono::year(year), std::chrono::month(static_cast<unsigned>(NumberAt(text, 5, 2))),
      std::chrono::day(static_cast<unsigned>(NumberAt(text, 8, 2)))};
  std::string_view zone = text.substr(kForm.size());
  if (zone.starts_with('.')) {
    const std::size_t end = zone.find_first_not_of("0123456789", 1);
    zone = end == std::string_view::npos ? "" : zone.substr(end);
  }
  const auto offset = OffsetOf(zone);
  if (!offset || !date.ok()) return std::nullopt;
  return std::chrono::sys_days(date) + std::chrono::hours(hour) + minutes(minute) +
         seconds(second) - *offset;
}

}  // namespace berth::wire
