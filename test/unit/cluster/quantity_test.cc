// SPDX-License-Identifier: Apache-2.0
#include "cluster/quantity.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <string_view>

namespace berth {
namespace {

constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();

struct Accepted {
  std::string_view description;
  std::string_view text;
  std::int64_t value;
  std::int64_t milli;
};

class AcceptedQuantity : public testing::TestWithParam<Accepted> {};

TEST_P(AcceptedQuantity, HasTheValueThatKubernetesGivesIt) {
  const Accepted& wanted = GetParam();
  const auto quantity = Quantity::Parse(wanted.text);
  ASSERT_TRUE(quantity.has_value()) << wanted.description << ": " << quantity.error().message;
  EXPECT_EQ(quantity->Value(), wanted.value) << wanted.description << ": " << wanted.text;
  EXPECT_EQ(quantity->MilliValue(), wanted.milli) << wanted.description << ": " << wanted.text;
}

INSTANTIATE_TEST_SUITE_P(
    Numbers, AcceptedQuantity,
    testing::Values(
        Accepted{"zero", "0", 0, 0}, Accepted{"negative zero", "-0", 0, 0},
        Accepted{"zero keeps no suffix", "0Ei", 0, 0},
        Accepted{"zero keeps no exponent", "0e1000", 0, 0}, Accepted{"one", "1", 1, 1000},
        Accepted{"plus sign", "+1", 1, 1000}, Accepted{"minus sign", "-1", -1, -1000},
        Accepted{"leading zeros", "00012", 12, 12'000}, Accepted{"trailing point", "5.", 5, 5000},
        Accepted{"leading point", ".5", 1, 500}, Accepted{"signed leading point", "-.5", -1, -500},
        Accepted{"trailing point with suffix", "5.Ki", 5120, 5'120'000},
        Accepted{"leading point with suffix", ".5Ki", 512, 512'000},
        Accepted{"trailing zeros", "1.500", 2, 1500},
        Accepted{"nine decimals", "123456789.987654321", 123'456'790, 123'456'789'988}));

INSTANTIATE_TEST_SUITE_P(
    DecimalSuffixes, AcceptedQuantity,
    testing::Values(Accepted{"nano", "1000000000n", 1, 1000},
                    Accepted{"micro", "1000000u", 1, 1000}, Accepted{"milli", "1500m", 2, 1500},
                    Accepted{"kilo", "2k", 2000, 2'000'000},
                    Accepted{"mega", "2M", 2'000'000, 2'000'000'000},
                    Accepted{"giga", "2G", 2'000'000'000, 2'000'000'000'000},
                    Accepted{"tera", "2T", 2'000'000'000'000, 2'000'000'000'000'000},
                    Accepted{"peta", "2P", 2'000'000'000'000'000, 2'000'000'000'000'000'000},
                    Accepted{"exa", "2E", 2'000'000'000'000'000'000, kMost},
                    Accepted{"fraction of a suffix", "1.5k", 1500, 1'500'000},
                    Accepted{"negative with suffix", "-3.01M", -3'010'000, -3'010'000'000}));

INSTANTIATE_TEST_SUITE_P(
    BinarySuffixes, AcceptedQuantity,
    testing::Values(Accepted{"kibi", "3Ki", 3072, 3'072'000},
                    Accepted{"mebi", "3Mi", std::int64_t{3} << 20, (std::int64_t{3} << 20) * 1000},
                    Accepted{"gibi", "3Gi", std::int64_t{3} << 30, (std::int64_t{3} << 30) * 1000},
                    Accepted{"tebi", "3Ti", std::int64_t{3} << 40, (std::int64_t{3} << 40) * 1000},
                    Accepted{"pebi", "3Pi", std::int64_t{3} << 50, (std::int64_t{3} << 50) * 1000},
                    Accepted{"exbi", "3Ei", std::int64_t{3} << 60, kMost},
                    Accepted{"fraction", "1.5Gi", 1'610'612'736, 1'610'612'736'000},
                    Accepted{"fraction that is not whole", "0.1Ki", 103, 102'400},
                    Accepted{"long fraction of a large suffix", "1.000000000000000000999Ei",
                             (std::int64_t{1} << 60) + 2, kMost},
                    Accepted{"exact long fraction", "0.50000000000000000000000000000Ei",
                             std::int64_t{1} << 59, kMost}));

INSTANTIATE_TEST_SUITE_P(
    Exponents, AcceptedQuantity,
    testing::Values(Accepted{"lower case", "1e3", 1000, 1'000'000},
                    Accepted{"upper case is an exponent with digits", "1E3", 1000, 1'000'000},
                    Accepted{"upper case is an exa without", "1E", 1'000'000'000'000'000'000,
                             kMost},
                    Accepted{"plus", "1e+3", 1000, 1'000'000},
                    Accepted{"minus", "1500E-3", 2, 1500}, Accepted{"zero", "7e0", 7, 7000},
                    Accepted{"negative zero", "7e-0", 7, 7000},
                    Accepted{"leading zeros", "7e0003", 7000, 7'000'000},
                    Accepted{"fraction", "1.5e3", 1500, 1'500'000},
                    Accepted{"fraction below one", ".5e1", 5, 5000},
                    Accepted{"trailing point", "5.e1", 50, 50'000}));

INSTANTIATE_TEST_SUITE_P(Rounding, AcceptedQuantity,
                         testing::Values(Accepted{"a milli is a unit when rounded up", "1m", 1, 1},
                                         Accepted{"a nano is a milli when rounded up", "1n", 1, 1},
                                         Accepted{"just above a milli", "1000001n", 1, 2},
                                         Accepted{"just above a unit", "1000000001n", 2, 1001},
                                         Accepted{"negative: away from zero", "-1n", -1, -1},
                                         Accepted{"negative, just above", "-1000001n", -1, -2},
                                         Accepted{"below a nano", "0.1n", 1, 1},
                                         Accepted{"far below a nano", "1e-1000", 1, 1},
                                         Accepted{"negative, below a nano", "-1e-30", -1, -1},
                                         Accepted{"below a nano beside a whole", "1.0000000001", 2,
                                                  1001}));

INSTANTIATE_TEST_SUITE_P(
    Caps, AcceptedQuantity,
    testing::Values(
        Accepted{"the largest", "9223372036854775807", kMost, kMost},
        Accepted{"one more", "9223372036854775808", kMost, kMost},
        Accepted{"a fraction more", "9223372036854775807.1", kMost, kMost},
        Accepted{"the smallest is symmetric", "-9223372036854775808", -kMost, -kMost},
        Accepted{"milli at its cap", "9223372036854775807m", 9'223'372'036'854'776, kMost},
        Accepted{"milli above its cap", "9223372036854776", 9'223'372'036'854'776, kMost},
        Accepted{"eight exbi is 2^63", "8Ei", kMost, kMost},
        Accepted{"seven exbi is below", "7Ei", std::int64_t{7} << 60, kMost},
        Accepted{"ten exa", "10E", kMost, kMost}, Accepted{"exponent", "1e100", kMost, kMost},
        Accepted{"exponent beyond an int", "-1e99999999999999999999", -kMost, -kMost},
        Accepted{"an exponent that makes it small again",
                 "10000000000000000000000000000000000000000e-40", 1, 1000}));

struct Refused {
  std::string_view description;
  std::string_view text;
};

class RefusedQuantity : public testing::TestWithParam<Refused> {};

TEST_P(RefusedQuantity, IsAnErrorThatQuotesTheText) {
  const auto quantity = Quantity::Parse(GetParam().text);
  ASSERT_FALSE(quantity.has_value()) << GetParam().description << " gave " << quantity->Value();
  EXPECT_EQ(quantity.error().code, Errc::kInvalidArgument);
  EXPECT_EQ(quantity.error().message,
            "want a quantity such as \"500m\", \"4\" or \"16Gi\", got \"" +
                std::string(GetParam().text) + "\"")
      << GetParam().description;
}

using namespace std::string_view_literals;
INSTANTIATE_TEST_SUITE_P(
    Texts, RefusedQuantity,
    testing::Values(Refused{"nothing", ""}, Refused{"point alone", "."}, Refused{"sign alone", "-"},
                    Refused{"plus alone", "+"}, Refused{"sign and point", "-."},
                    Refused{"suffix alone", "Ki"}, Refused{"exa alone", "E"},
                    Refused{"exponent alone", "e3"}, Refused{"point and suffix", ".m"},
                    Refused{"blank", " "}, Refused{"leading blank", " 1"},
                    Refused{"trailing blank", "1 "}, Refused{"blank before suffix", "1 Ki"},
                    Refused{"tab", "1\t"}, Refused{"line end", "1\n"},
                    Refused{"leading line end", "\n1"}, Refused{"two points", "1.1.M"},
                    Refused{"points in a row", "1.."}, Refused{"two signs", "--1"},
                    Refused{"mixed signs", "+-1"}, Refused{"inner sign", "1+1.0M"},
                    Refused{"trailing sign", "1-"}));
INSTANTIATE_TEST_SUITE_P(
    Suffixes, RefusedQuantity,
    testing::Values(
        Refused{"no such binary", "0.1mi"}, Refused{"no such decimal", "0.1am"},
        Refused{"i alone", "1i"}, Refused{"i after a fraction", ".5i"},
        Refused{"i after a negative", "-3.01i"}, Refused{"small k with i", "1ki"},
        Refused{"large K alone", "1K"}, Refused{"all capitals", "1KI"}, Refused{"bytes", "1KiB"},
        Refused{"suffix twice", "1kk"}, Refused{"suffix and exponent", "1ke3"},
        Refused{"exa and exponent", "1Ee3"}, Refused{"exponent and suffix", "1e3k"},
        Refused{"exponent and exbi", "1e3Ei"}, Refused{"exponent without digits", "1e"},
        Refused{"exponent with a sign only", "-3.01e-"},
        Refused{"exponent with two signs", "1e+-3"}, Refused{"exponent with a point", "1e3.5"},
        Refused{"exponent with a blank", "1e 3"}, Refused{"letters", "aoeu"},
        Refused{"hexadecimal", "0x10"}, Refused{"infinity", "inf"}, Refused{"not a number", "nan"},
        Refused{"thousands", "1,000"}, Refused{"underscore", "1_000"}, Refused{"percent", "10%"}));
INSTANTIATE_TEST_SUITE_P(
    Bytes, RefusedQuantity,
    testing::Values(Refused{"NUL alone", "\0"sv}, Refused{"NUL after", "1\0"sv},
                    Refused{"NUL before", "\0001"sv}, Refused{"NUL in a suffix", "1\0i"sv},
                    Refused{"NUL after a suffix", "1Ki\0"sv}, Refused{"NUL after e", "1e\0"sv},
                    Refused{"high bytes", "1\xc2\xb5"sv},
                    Refused{"full-width digit", "\xef\xbc\x91"sv}));

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
}  // namespace berth
