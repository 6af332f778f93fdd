// SPDX-License-Identifier: Apache-2.0
#include "server/wire/json/json_text.h"

#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>

#include <gtest/gtest.h>

#include "base/random.h"

namespace berth::wire::json_text_test {
namespace {

std::string Quoted(std::string_view text) {
  std::string out;
  AppendString(out, text);
  return out;
}

TEST(JsonText, PlainTextIsOnlyPutInQuotes) {
  EXPECT_EQ(Quoted(""), R"("")");
  EXPECT_EQ(Quoted("node-1.example/x <>&'"), R"("node-1.example/x <>&'")");
  EXPECT_EQ(Quoted("é€😀"), "\"é€😀\"");
}

TEST(JsonText, QuotesAndBackslashesAreEscaped) { EXPECT_EQ(Quoted(R"(a"b\c)"), R"("a\"b\\c")"); }

TEST(JsonText, ControlCharactersAreEscaped) {
  EXPECT_EQ(Quoted("\n\r\t"), R"("\n\r\t")");
  EXPECT_EQ(Quoted(std::string_view("\0\x01\x1f\x7f", 4)), R"("\u0000\u0001\u001f\u007f")");
}

TEST(JsonText, BytesThatAreNotUtf8BecomeTheReplacementCharacter) {
  struct Case {
    const char* description;
    std::string_view text;
    std::string_view out;
  };
  const Case cases[] = {
      {"a lone continuation", "a\x80z", "\"a\uFFFDz\""},
      {"an overlong slash", "\xc0\xaf", "\"\uFFFD\uFFFD\""},
      {"a sequence cut short by the end", "\xe2\x82", "\"\uFFFD\""},
      {"a sequence cut short by a letter", "\xe2\x82z", "\"\uFFFDz\""},
      {"an overlong sequence of three", "\xe0\x80\x80", "\"\uFFFD\uFFFD\uFFFD\""},
      {"a surrogate", "\xed\xa0\x80", "\"\uFFFD\uFFFD\uFFFD\""},
      {"above U+10FFFF", "\xf4\x90\x80\x80", "\"\uFFFD\uFFFD\uFFFD\uFFFD\""},
      {"an overlong sequence of four", "\xf0\x80\x80\x80", "\"\uFFFD\uFFFD\uFFFD\uFFFD\""},
      {"bytes that never occur", "\xfe\xff", "\"\uFFFD\uFFFD\""},
      {"the last code point", "\xf4\x8f\xbf\xbf", "\"\xf4\x8f\xbf\xbf\""},
      {"the first of three bytes", "\xe0\xa0\x80", "\"\xe0\xa0\x80\""}};
  for (const Case& c : cases) EXPECT_EQ(Quoted(c.text), c.out) << c.description;
}

TEST(JsonText, AnyBytesGiveAStringThatAParserReads) {
  Random random(7);
  for (int i = 0; i < 3000; ++i) {
    std::string bytes;
    for (std::uint64_t n = random.Below(12); n > 0; --n) {
      bytes += static_cast<char>(random.Below(random.Below(2) == 0 ? 256 : 64));
    }
    const auto parsed = nlohmann::json::parse(Quoted(bytes), nullptr, false);
    ASSERT_TRUE(parsed.is_string()) << Quoted(bytes);
  }
}

TEST(JsonText, ValidTextSurvivesARoundTrip) {
  for (const char* text : {"", "a\"b\\c/d", "\b\f\n\r\t\x1b\x7f", "ÄÖ€😀\u2028", "\\u0041"}) {
    EXPECT_EQ(nlohmann::json::parse(Quoted(text)), text);
  }
}

TEST(JsonText, NumbersAreWrittenInFull) {
  std::string out;
  AppendNumber(out, std::numeric_limits<std::int64_t>::min());
  out += ' ';
  AppendNumber(out, std::numeric_limits<std::uint64_t>::max());
  out += ' ';
  AppendNumber(out, 0);
  EXPECT_EQ(out, "-9223372036854775808 18446744073709551615 0");
}

TEST(JsonText, ObjectOfEscapesKeyAndText) {
  EXPECT_EQ(ObjectOf("er\"ror", "a\nb"), R"({"er\"ror":"a\nb"})");
}

}  // namespace
}  // namespace berth::wire::json_text_test
