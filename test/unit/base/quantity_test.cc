// SPDX-License-Identifier: Apache-2.0
#include "base/quantity.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <string_view>
#include <vector>

namespace berth::quantity_test {
namespace {

constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();

struct Accepted {
  std::string_view description;
  std::string_view text;
  std::int64_t value;
  std::int64_t milli;
};

void ExpectAccepted(const std::vector<Accepted>& cases) {
  for (const Accepted& c : cases) {
    const auto quantity = Quantity::Parse(c.text);
    ASSERT_TRUE(quantity.has_value()) << c.description << ": " << quantity.error().message;
    EXPECT_EQ(quantity->Value(), c.value) << c.description << ": " << c.text;
    EXPECT_EQ(quantity->MilliValue(), c.milli) << c.description << ": " << c.text;
  }
}

TEST(Quantity, ReadsSignsAndPointsWhereverTheyMayStand) {
  ExpectAccepted({{"zero", "0", 0, 0},
                  {"negative zero", "-0", 0, 0},
                  {"zero keeps no suffix", "0Ei", 0, 0},
                  {"zero keeps no exponent", "0e1000", 0, 0},
                  {"one", "1", 1, 1000},
                  {"plus sign", "+1", 1, 1000},
                  {"minus sign", "-1", -1, -1000},
                  {"leading zeros", "00012", 12, 12'000},
                  {"trailing point", "5.", 5, 5000},
                  {"leading point", ".5", 1, 500},
                  {"signed leading point", "-.5", -1, -500},
                  {"trailing point with suffix", "5.Ki", 5120, 5'120'000},
                  {"leading point with suffix", ".5Ki", 512, 512'000},
                  {"trailing zeros", "1.500", 2, 1500},
                  {"nine decimals", "123456789.987654321", 123'456'790, 123'456'789'988}});
}

TEST(Quantity, KnowsTheDecimalSuffixes) {
  ExpectAccepted({{"nano", "1000000000n", 1, 1000},
                  {"micro", "1000000u", 1, 1000},
                  {"milli", "1500m", 2, 1500},
                  {"kilo", "2k", 2000, 2'000'000},
                  {"mega", "2M", 2'000'000, 2'000'000'000},
                  {"giga", "2G", 2'000'000'000, 2'000'000'000'000},
                  {"tera", "2T", 2'000'000'000'000, 2'000'000'000'000'000},
                  {"peta", "2P", 2'000'000'000'000'000, 2'000'000'000'000'000'000},
                  {"exa", "2E", 2'000'000'000'000'000'000, kMost},
                  {"fraction of a suffix", "1.5k", 1500, 1'500'000},
                  {"negative with suffix", "-3.01M", -3'010'000, -3'010'000'000}});
}

TEST(Quantity, KnowsTheBinarySuffixes) {
  ExpectAccepted(
      {{"kibi", "3Ki", 3072, 3'072'000},
       {"mebi", "3Mi", std::int64_t{3} << 20, (std::int64_t{3} << 20) * 1000},
       {"gibi", "3Gi", std::int64_t{3} << 30, (std::int64_t{3} << 30) * 1000},
       {"tebi", "3Ti", std::int64_t{3} << 40, (std::int64_t{3} << 40) * 1000},
       {"pebi", "3Pi", std::int64_t{3} << 50, (std::int64_t{3} << 50) * 1000},
       {"exbi", "3Ei", std::int64_t{3} << 60, kMost},
       {"fraction", "1.5Gi", 1'610'612'736, 1'610'612'736'000},
       {"fraction that is not whole", "0.1Ki", 103, 102'400},
       {"long fraction of a large suffix", "1.000000000000000000999Ei", (std::int64_t{1} << 60) + 2,
        kMost},
       {"exact long fraction", "0.50000000000000000000000000000Ei", std::int64_t{1} << 59, kMost}});
}

TEST(Quantity, TellsExponentsFromExas) {
  ExpectAccepted({{"lower case", "1e3", 1000, 1'000'000},
                  {"upper case is an exponent with digits", "1E3", 1000, 1'000'000},
                  {"upper case is an exa without", "1E", 1'000'000'000'000'000'000, kMost},
                  {"plus", "1e+3", 1000, 1'000'000},
                  {"minus", "1500E-3", 2, 1500},
                  {"zero", "7e0", 7, 7000},
                  {"negative zero", "7e-0", 7, 7000},
                  {"leading zeros", "7e0003", 7000, 7'000'000},
                  {"fraction", "1.5e3", 1500, 1'500'000},
                  {"fraction below one", ".5e1", 5, 5000},
                  {"trailing point", "5.e1", 50, 50'000}});
}

TEST(Quantity, RoundsAwayFromZero) {
  ExpectAccepted({{"a milli is a unit when rounded up", "1m", 1, 1},
                  {"a nano is a milli when rounded up", "1n", 1, 1},
                  {"just above a milli", "1000001n", 1, 2},
                  {"just above a unit", "1000000001n", 2, 1001},
                  {"negative: away from zero", "-1n", -1, -1},
                  {"negative, just above", "-1000001n", -1, -2},
                  {"below a nano", "0.1n", 1, 1},
                  {"far below a nano", "1e-1000", 1, 1},
                  {"negative, below a nano", "-1e-30", -1, -1},
                  {"below a nano beside a whole", "1.0000000001", 2, 1001}});
}

TEST(Quantity, CapsWhatIsBeyond64Bits) {
  ExpectAccepted({{"the largest", "9223372036854775807", kMost, kMost},
                  {"one more", "9223372036854775808", kMost, kMost},
                  {"a fraction more", "9223372036854775807.1", kMost, kMost},
                  {"the smallest is symmetric", "-9223372036854775808", -kMost, -kMost},
                  {"milli at its cap", "9223372036854775807m", 9'223'372'036'854'776, kMost},
                  {"milli above its cap", "9223372036854776", 9'223'372'036'854'776, kMost},
                  {"eight exbi is 2^63", "8Ei", kMost, kMost},
                  {"seven exbi is below", "7Ei", std::int64_t{7} << 60, kMost},
                  {"ten exa", "10E", kMost, kMost},
                  {"exponent", "1e100", kMost, kMost},
                  {"exponent beyond an int", "-1e99999999999999999999", -kMost, -kMost},
                  {"an exponent that makes it small again",
                   "10000000000000000000000000000000000000000e-40", 1, 1000}});
}

struct Refused {
  std::string_view description;
  std::string_view text;
};

void ExpectRefused(const std::vector<Refused>& cases) {
  for (const Refused& c : cases) {
    const auto quantity = Quantity::Parse(c.text);
    ASSERT_FALSE(quantity.has_value()) << c.description << " gave " << quantity->Value();
    EXPECT_EQ(quantity.error().code, Errc::kInvalidArgument) << c.description;
    EXPECT_EQ(
        quantity.error().message,
        "want a quantity such as \"500m\", \"4\" or \"16Gi\", got \"" + std::string(c.text) + "\"")
        << c.description;
  }
}

using namespace std::string_view_literals;
TEST(Quantity, RefusesWhatIsNoNumber) {
  ExpectRefused({{"nothing", ""},
                 {"point alone", "."},
                 {"sign alone", "-"},
                 {"plus alone", "+"},
                 {"sign and point", "-."},
                 {"suffix alone", "Ki"},
                 {"exa alone", "E"},
                 {"exponent alone", "e3"},
                 {"point and suffix", ".m"},
                 {"blank", " "},
                 {"leading blank", " 1"},
                 {"trailing blank", "1 "},
                 {"blank before suffix", "1 Ki"},
                 {"tab", "1\t"},
                 {"line end", "1\n"},
                 {"leading line end", "\n1"},
                 {"two points", "1.1.M"},
                 {"points in a row", "1.."},
                 {"two signs", "--1"},
                 {"mixed signs", "+-1"},
                 {"inner sign", "1+1.0M"},
                 {"trailing sign", "1-"}});
}
TEST(Quantity, RefusesSuffixesThatThereAreNot) {
  ExpectRefused({{"no such binary", "0.1mi"},
                 {"no such decimal", "0.1am"},
                 {"i alone", "1i"},
                 {"i after a fraction", ".5i"},
                 {"i after a negative", "-3.01i"},
                 {"small k with i", "1ki"},
                 {"large K alone", "1K"},
                 {"all capitals", "1KI"},
                 {"bytes", "1KiB"},
                 {"suffix twice", "1kk"},
                 {"suffix and exponent", "1ke3"},
                 {"exa and exponent", "1Ee3"},
                 {"exponent and suffix", "1e3k"},
                 {"exponent and exbi", "1e3Ei"},
                 {"exponent without digits", "1e"},
                 {"exponent with a sign only", "-3.01e-"},
                 {"exponent with two signs", "1e+-3"},
                 {"exponent with a point", "1e3.5"},
                 {"exponent with a blank", "1e 3"},
                 {"letters", "aoeu"},
                 {"hexadecimal", "0x10"},
                 {"infinity", "inf"},
                 {"not a number", "nan"},
                 {"thousands", "1,000"},
                 {"underscore", "1_000"},
                 {"percent", "10%"}});
}
TEST(Quantity, RefusesBytesThatAreNotText) {
  ExpectRefused({{"NUL alone", "\0"sv},
                 {"NUL after", "1\0"sv},
                 {"NUL before", "\0001"sv},
                 {"NUL in a suffix", "1\0i"sv},
                 {"NUL after a suffix", "1Ki\0"sv},
                 {"NUL after e", "1e\0"sv},
                 {"high bytes", "1\xc2\xb5"sv},
                 {"full-width digit", "\xef\xbc\x91"sv}});
}

TEST(Quantity, TakesTenThousandDigits) {
  const std::string nines(10'000, '9'), zeros(10'000, '0');
  EXPECT_EQ(Quantity::Parse(nines)->Value(), kMost);
  EXPECT_EQ(Quantity::Parse("-" + nines)->Value(), -kMost);
  EXPECT_EQ(Quantity::Parse("0." + nines)->Value(), 1);
  EXPECT_EQ(Quantity::Parse("0." + nines)->MilliValue(), 1000);
  EXPECT_EQ(Quantity::Parse(zeros + "7")->Value(), 7);
  EXPECT_EQ(Quantity::Parse("7." + zeros)->MilliValue(), 7000);
  EXPECT_EQ(Quantity::Parse("7." + zeros + "1")->MilliValue(), 7001);
  EXPECT_EQ(Quantity::Parse("0." + zeros + "1Ei")->MilliValue(), 1);
  EXPECT_EQ(Quantity::Parse("1" + zeros + "e-9999")->Value(), 10);
  EXPECT_EQ(Quantity::Parse("0." + zeros + "1e10001")->Value(), 1);
  EXPECT_EQ(Quantity::Parse("1e" + nines)->Value(), kMost);
  EXPECT_EQ(Quantity::Parse("1e-" + nines)->MilliValue(), 1);
  EXPECT_EQ(Quantity::Parse("1e" + zeros + "3")->Value(), 1000);
  EXPECT_FALSE(Quantity::Parse(nines + "x").has_value());
  EXPECT_FALSE(Quantity::Parse("1e" + nines + "x").has_value());
}

TEST(Quantity, ComparesByValueWhateverTheSpelling) {
  const auto of = [](std::string_view text) { return Quantity::Parse(text).value(); };
  EXPECT_EQ(of("1"), of("1000m"));
  EXPECT_EQ(of("1Ki"), of("1024"));
  EXPECT_EQ(of("1e3"), of("1k"));
  EXPECT_EQ(of("0.1n"), of("1n")) << "rounded up to a nano";
  EXPECT_EQ(of("1.1n"), of("2n"));
  EXPECT_EQ(of("-1.1n"), of("-2n"));
  EXPECT_LT(of("1G"), of("1Gi"));
  EXPECT_LT(of("-1"), of("0"));
  EXPECT_LT(of("1"), of("1.000000001"));
}

TEST(Quantity, IsZeroByDefault) { EXPECT_EQ(Quantity(), Quantity::Parse("0").value()); }

}  // namespace
}  // namespace berth::quantity_test
