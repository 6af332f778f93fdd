// SPDX-License-Identifier: Apache-2.0
#include "cel/syntax/parser.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <utility>

#include "cel/value.h"

namespace berth::cel {
namespace {

constexpr auto kNone = std::string_view::npos;

bool IsDigitOf(char c) { return c >= '0' && c <= '9'; }
bool IsHexDigit(char c) { return IsDigitOf(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'); }
bool StartsName(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }

std::size_t CountWhile(std::string_view text, bool (*holds)(char)) {
  return static_cast<std::size_t>(std::ranges::find_if_not(text, holds) - text.begin());
}

// How many digits of an exponent are at the beginning of the text, with its "e" and sign.
std::size_t ExponentSize(std::string_view text) {
  if (text.empty() || (text[0] != 'e' && text[0] != 'E')) return 0;
  const std::size_t sign = text.size() > 1 && (text[1] == '+' || text[1] == '-') ? 1 : 0;
  const std::size_t digits = CountWhile(text.substr(1 + sign), IsDigitOf);
  return digits == 0 ? 0 : 1 + sign + digits;
}

// The text begins with a digit, or with a point and a digit.
Token NumberToken(std::string_view text) {
  std::size_t size = text.starts_with("0x") ? 2 + CountWhile(text.substr(2), IsHexDigit) : 0;
  bool is_int = true;
  if (size <= 2) {
    const std::size_t whole = size = CountWhile(text, IsDigitOf);
    if (size + 1 < text.size() && text[size] == '.' && IsDigitOf(text[size + 1])) {
      size += 1 + CountWhile(text.substr(size + 1), IsDigitOf);
    }
    size += ExponentSize(text.substr(size));
    is_int = size == whole;
  }
  const bool is_uint = is_int && size < text.size() && (text[size] == 'u' || text[size] == 'U');
  if (is_uint) ++size;
  const TokenKind kind = is_int && !is_uint ? TokenKind::kInt : TokenKind::kOtherNumber;
  return {kind, text.substr(0, size), {}};
}

// Reads `count` digits to the base; nullopt where there are fewer.
std::optional<std::uint32_t> Digits(std::string_view text, std::size_t count, std::uint32_t base) {
  if (text.size() < count) return std::nullopt;
  std::uint32_t value = 0;
  for (const char c : text.substr(0, count)) {
    if (!IsHexDigit(c)) return std::nullopt;
    const auto digit = static_cast<std::uint32_t>(IsDigitOf(c) ? c - '0' : (c | 0x20) - 'a' + 10);
    if (digit >= base) return std::nullopt;
    value = value * base + digit;
  }
  return value;
}

// The escape that the text begins with, behind its backslash: appended to out. Its size, or 0.
std::size_t Unescape(std::string_view text, std::string& out) {
  constexpr std::string_view kLetters = "abfnrtv\"'\\?`";
  constexpr std::string_view kMeanings = "\a\b\f\n\r\t\v\"'\\?`";
  if (text.empty()) return 0;
  if (const std::size_t at = kLetters.find(text[0]); at != kNone) {
    out += kMeanings[at];
    return 1;
  }
  std::size_t size = 0;
  std::optional<std::uint32_t> rune;
  if (text[0] >= '0' && text[0] <= '3') {
    size = 3;
    rune = Digits(text, 3, 8);
  } else if (text[0] == 'x' || text[0] == 'X') {
    size = 3;
    rune = Digits(text.substr(1), 2, 16);
  } else if (text[0] == 'u' || text[0] == 'U') {
    size = text[0] == 'u' ? 5 : 9;
    rune = Digits(text.substr(1), size - 1, 16);
  }
  if (!rune || *rune > 0x10FFFF || (*rune >= 0xD800 && *rune < 0xE000)) return 0;
  const char32_t one = *rune;
  out += Utf8({&one, 1});
  return size;
}

// Line ends are "\n", as Kubernetes makes them.
void AppendPlain(std::string_view text, std::string& out) {
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool windows = text[i] == '\r' && i + 1 < text.size() && text[i + 1] == '\n';
    if (!windows) out += text[i] == '\r' ? '\n' : text[i];
  }
}

struct Literal {
  std::size_t size = 0;  // 0 = there is no end to it
  std::string content;
};

// The text begins with `quote`, of one or three marks.
Literal Quoted(std::string_view text, std::string_view quote, bool raw) {
  Literal literal;
  std::size_t at = quote.size();
  while (at < text.size()) {
    const std::string_view rest = text.substr(at);
    if (rest.starts_with(quote)) {
      literal.size = at + quote.size();
      return literal;
    }
    if (quote.size() == 1 && (rest[0] == '\n' || rest[0] == '\r')) return {};
    if (rest[0] == '\\' && !raw) {
      const std::size_t size = Unescape(rest.substr(1), literal.content);
      if (size == 0) return {};
      at += 1 + size;
      continue;
    }
    const std::size_t plain = rest[0] == '\r' && rest.size() > 1 && rest[1] == '\n' ? 2 : 1;
    AppendPlain(rest.substr(0, plain), literal.content);
    at += plain;
  }
  return {};
}

// The text begins with a mark of either kind.
Literal String(std::string_view text, bool raw) {
  const std::string_view three = text.substr(0, 3);
  if (three == "\"\"\"" || three == "'''") {
    if (Literal literal = Quoted(text, three, raw); literal.size > 0) return literal;
  }
  return Quoted(text, text.substr(0, 1), raw);
}

std::size_t SymbolSize(std::string_view text) {
  constexpr std::array<std::string_view, 6> kTwoChars = {"==", "!=", "<=", ">=", "&&", "||"};
  if (std::ranges::find(kTwoChars, text.substr(0, 2)) != kTwoChars.end()) return 2;
  return std::string_view("<>[]{}().,-!?:+*/%").find(text[0]) == kNone ? 0 : 1;
}

// Past blanks and comments.
std::size_t SkipBlanks(std::string_view text, std::size_t at) {
  while (at < text.size()) {
    if (std::string_view(" \t\r\n\f").find(text[at]) != kNone) {
      ++at;
    } else if (text.substr(at).starts_with("//")) {
      at = std::min(text.find('\n', at), text.size());
    } else {
      break;
    }
  }
  return at;
}

bool IsQuote(char c) { return c == '"' || c == '\''; }

// The token that the rest begins with; its size goes into `size`.
Expected<Token> Next(std::string_view rest, std::size_t& size) {
  const char c = rest[0];
  const char second = rest.size() > 1 ? rest[1] : '\0';
  const char third = rest.size() > 2 ? rest[2] : '\0';
  if ((c == 'b' || c == 'B') &&
      (IsQuote(second) || ((second == 'r' || second == 'R') && IsQuote(third)))) {
    return Fail(FailureKind::kUnsupported, "bytes");
  }
  const bool raw = (c == 'r' || c == 'R') && IsQuote(second);
  if (raw || IsQuote(c)) {
    Literal literal = String(rest.substr(raw ? 1 : 0), raw);
    if (literal.size == 0) {
      return Fail(FailureKind::kRefused, "a string is wrong or has no end");
    }
    size = literal.size + (raw ? 1 : 0);
    return Token{TokenKind::kString, rest.substr(0, size), std::move(literal.content)};
  }
  if (IsDigitOf(c) || (c == '.' && IsDigitOf(second))) {
    Token number = NumberToken(rest);
    size = number.text.size();
    return number;
  }
  if (StartsName(c)) {
    constexpr std::array<std::string_view, 4> kWords = {"in", "true", "false", "null"};
    size = CountWhile(rest, [](char n) { return StartsName(n) || IsDigitOf(n); });
    const std::string_view name = rest.substr(0, size);
    const bool word = std::ranges::find(kWords, name) != kWords.end();
    return Token{word ? TokenKind::kSymbol : TokenKind::kName, name, {}};
  }
  size = SymbolSize(rest);
  if (size == 0) {
    return Fail(FailureKind::kRefused, "\"" + std::string(rest.substr(0, 1)) + "\" has no meaning");
  }
  return Token{TokenKind::kSymbol, rest.substr(0, size), {}};
}

}  // namespace

Expected<std::vector<Token>> Tokens(std::string_view expression) {
  std::vector<Token> tokens;
  for (std::size_t at = SkipBlanks(expression, 0); at < expression.size();
       at = SkipBlanks(expression, at)) {
    std::size_t size = 0;
    BERTH_TRY(Token token, Next(expression.substr(at), size));
    tokens.push_back(std::move(token));
    at += size;
  }
  tokens.emplace_back();
  return tokens;
}

}  // namespace berth::cel
