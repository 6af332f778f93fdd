// SPDX-License-Identifier: Apache-2.0
#include "cel/program.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace berth::test::program_test {
namespace {

using cel::Amount;
using cel::Device;
using cel::FailureKind;
using cel::Program;
using cel::Version;

Device Gpu() {
  Device device("gpu.nvidia.com");
  device.SetAttribute("type", std::string("gpu"));
  device.SetAttribute("productName", std::string("NVIDIA H100 80GB HBM3"));
  device.SetAttribute("index", std::int64_t{3});
  device.SetAttribute("healthy", true);
  device.SetAttribute("driverVersion", *Version::Parse("580.65.6"));
  device.SetAttribute("modes", std::vector<std::string>{"compute", "graphics"});
  device.SetAttribute("resource.kubernetes.io/pcieRoot", std::string("pci0000:00"));
  device.SetCapacity("memory", *Amount::Parse("81559Mi"));
  return device;
}

// "true", "false", "failed", "refused" or "unsupported".
std::string Verdict(std::string_view expression, const Device& device = Gpu()) {
  const auto name = [](FailureKind kind) {
    return kind == FailureKind::kFailed    ? "failed"
           : kind == FailureKind::kRefused ? "refused"
                                           : "unsupported";
  };
  const auto program = Program::Compile(expression);
  if (!program) return name(program.error().kind);
  const auto matches = program->Matches(device);
  if (!matches) return name(matches.error().kind);
  return *matches ? "true" : "false";
}

using Cases = std::vector<std::pair<std::string_view, std::string_view>>;

void ExpectVerdicts(const Cases& cases) {
  for (const auto& [expression, verdict] : cases) {
    EXPECT_EQ(Verdict(expression), verdict) << expression;
  }
}

TEST(Program, SelectsDevicesByTheirAttributes) {
  ExpectVerdicts({
      {"device.driver == 'gpu.nvidia.com'", "true"},
      {"device.attributes['gpu.nvidia.com'].type == 'gpu'", "true"},
      {"device.attributes[\"gpu.nvidia.com\"].productName.contains('H100')", "true"},
      {"device.attributes['gpu.nvidia.com'].productName.matches('^NVIDIA .*80GB')", "true"},
      {"device.attributes['gpu.nvidia.com'].index in [0, 1]", "false"},
      {"device.attributes['gpu.nvidia.com'].healthy", "true"},
      {"device.attributes['gpu.nvidia.com'].driverVersion.isGreaterThan(semver('570.0.0'))",
       "true"},
      {"device.attributes['gpu.nvidia.com'].driverVersion.compareTo(semver('v581', true)) >= 0",
       "false"},
      {"device.capacity['gpu.nvidia.com'].memory.compareTo(quantity('40Gi')) >= 0", "true"},
      {"device.capacity['gpu.nvidia.com'].memory == quantity('81559Mi')", "true"},
      {"'graphics' in device.attributes['gpu.nvidia.com'].modes", "true"},
      {"device.attributes['gpu.nvidia.com'].modes.includes('video')", "false"},
      {"device.attributes['gpu.nvidia.com'].modes.exists(m, m.startsWith('comp'))", "true"},
      {"device.allowMultipleAllocations", "false"},
  });
}

TEST(Program, FailsWhereAnAttributeIsMissing) {
  ExpectVerdicts({
      {"device.attributes['gpu.nvidia.com'].absent == 1", "failed"},
      {"device.attributes['other.example'].absent == 1", "failed"},
      {"has(device.attributes['other.example'].absent)", "false"},
      {"has(device.attributes['gpu.nvidia.com'].type)", "true"},
      {"'other.example' in device.attributes", "false"},
      {"device.attributes['other.example'].size() == 0", "true"},
      {"device.attributes['gpu.nvidia.com'].?absent.orValue('x') == 'x'", "true"},
      {"device.attributes['gpu.nvidia.com'].?absent.hasValue()", "false"},
      {"false && device.attributes['a.example'].b == 1", "false"},
      {"device.attributes['a.example'].b == 1 || true", "true"},
      {"device.attributes['gpu.nvidia.com'].index", "failed"},
      {"device.attributes['gpu.nvidia.com'].index > 'a'", "failed"},
  });
}

TEST(Program, RefusesWhatKubernetesRefuses) {
  ExpectVerdicts({
      {"", "refused"},
      {"device.driver == 'x' &&", "refused"},
      {"device.driver = 'x'", "refused"},
      {"device.driver == 'x", "refused"},
      {"int('x') == 1", "refused"},
      {"has(device)", "refused"},
      {"[1][null] == 1", "refused"},
  });
}

TEST(Program, LeavesItToTheApiServerToCheckTypes) {
  ExpectVerdicts({
      {"1", "failed"},
      {"device.driver == 1", "false"},
      {"device.driver.size() > 'a'", "failed"},
      {"[1, 'a'] == []", "false"},
      {"device.driver.major() == 1", "failed"},
  });
}

TEST(Program, SaysWhatItDoesNotKnow) {
  ExpectVerdicts({
      {"ip('10.0.0.1').family() == 4", "unsupported"},
      {"duration('1s') > duration('2s')", "unsupported"},
      {"b'x' == b'x'", "unsupported"},
      {"nodes.size() == 0", "unsupported"},
      {"device.driver.matches(device.driver)", "unsupported"},
      {"[3, 1, 2].sortBy(x, -x) == [3, 2, 1]", "unsupported"},
      {"{'a': 1}.transformMap(k, v, v + 1) == {'a': 2}", "unsupported"},
      {"sets.contains([1, 2], [1])", "unsupported"},
      {"device.driver.indexOf('.') == 3", "unsupported"},
      {"[1, 2].sum() == 3", "unsupported"},
      {"device.drivers == 'x'", "unsupported"},
      {"has(device.drivers)", "unsupported"},
      {"device.?drivers.hasValue()", "unsupported"},
      {"device.driver.startsWith('a', 'b')", "unsupported"},
      {"device.driver.substring(1, 2, 3, 4, 5) == ''", "unsupported"},
      {"quantity('1').add(1) == quantity('2')", "unsupported"},
      {"{'a': 1}.size() == 1", "unsupported"},
      {"1u == 1u", "unsupported"},
      {"1.5 > 1", "unsupported"},
      {"0x1Fu == 31", "unsupported"},
      {"type(1) == int", "unsupported"},
      {"double(1) == 1", "unsupported"},
  });
}

TEST(Program, KnowsTheMacros) {
  ExpectVerdicts({
      {"[1, 2, 3].all(x, x > 0) && ![1, 2].exists(x, x > 2)", "true"},
      {"[1, 2, 2].exists_one(x, x == 2)", "false"},
      {"[1, 2, 3].map(x, x * 2) == [2, 4, 6]", "true"},
      {"[1, 2, 3].map(x, x > 1, x * 2) == [4, 6]", "true"},
      {"[1, 2, 3].filter(x, x % 2 == 1) == [1, 3]", "true"},
      {"device.attributes.all(k, v, k < 's' && v.size() > 0)", "true"},
      {"['x', 'y'].transformList(i, v, v + string(i)) == ['x0', 'y1']", "true"},
      {"cel.bind(d, device.attributes['gpu.nvidia.com'], d.healthy && d.index == 3)", "true"},
      {"device.attributes['gpu.nvidia.com'].?index.optMap(i, i + 1).orValue(0) == 4", "true"},
  });
}

TEST(Program, TellsItsCost) {
  const auto program = Program::Compile("device.attributes['gpu.nvidia.com'].type == 'gpu'");
  ASSERT_TRUE(program.has_value());
  Program::Effort effort;
  ASSERT_TRUE(program->Matches(Gpu(), &effort).value_or(false));
  EXPECT_EQ(effort.cost, 5U);  // device, three parts of the path, and a comparison of 3 characters
}

TEST(Program, TellsWhetherItLooksAtWhatIsTheDevicesOwn) {
  Device device = Gpu();
  device.SetAttribute("uuid", std::string("GPU-1"));
  const auto looks = [&device](const std::string& expression) {
    const auto program = Program::Compile(expression);
    if (!program) ADD_FAILURE() << expression;
    Program::Effort effort;
    (void)program->Matches(device, &effort);
    return effort.sees_identity;
  };
  const std::string own = "device.attributes['gpu.nvidia.com']";
  EXPECT_FALSE(looks(own + ".type == 'gpu'"));
  EXPECT_FALSE(looks("size(" + own + ") > 2 && device.driver != 'uuid'"));
  EXPECT_FALSE(looks(own + ".type == 'mig' && " + own + ".uuid == 'GPU-1'")) << "it got not so far";
  EXPECT_TRUE(looks(own + ".uuid == 'GPU-1'"));
  EXPECT_TRUE(looks(own + "['uu' + 'id'] == 'GPU-1'"));
  EXPECT_TRUE(looks("has(" + own + ".uuid)"));
  EXPECT_TRUE(looks("'uuid' in " + own));
  EXPECT_TRUE(looks(own + ".exists(id, id == 'uuid')"));
  EXPECT_TRUE(looks(own + " == " + own));
  EXPECT_TRUE(looks("device.attributes.exists(d, device.attributes[d].exists(id, id == 'x'))"));
}

TEST(Program, EndsWhatCostsTooMuch) {
  std::string expression = "true";
  for (const char* const x : {"a", "b", "c", "d"}) {
    expression = std::string("l.all(") + x + ", " + expression + ")";
  }
  std::string list = "[";
  for (int i = 0; i < 100; ++i) list += (i > 0 ? ", " : "") + std::to_string(i);
  EXPECT_EQ(Verdict("cel.bind(l, " + list + "], " + expression + ")"), "failed");
}

TEST(Program, IsBoundedInMemoryAndTime) {
  // Lists that double are cheap to Kubernetes, which does not copy them.
  std::string doubling = "a.size() > 0";
  for (int i = 0; i < 30; ++i) doubling = "cel.bind(a, a + a, " + doubling + ")";
  EXPECT_EQ(Verdict("cel.bind(a, [1], " + doubling + ")"), "unsupported");
  // The same list twice, again and again: as a tree it has 2^30 items.
  std::string tree = "a == a";
  for (int i = 0; i < 30; ++i) tree = "cel.bind(a, [dyn(a), dyn(a)], " + tree + ")";
  EXPECT_EQ(Verdict("cel.bind(a, [dyn(1)], " + tree + ")"), "unsupported");
  // optMap() copies what is before it.
  std::string copies = "optional.of(1)";
  for (int i = 0; i < 40; ++i) copies += ".optMap(x, x)";
  EXPECT_EQ(Verdict(copies + ".hasValue()"), "unsupported");
  EXPECT_EQ(Verdict(std::string(5000, '(')), "unsupported");
  EXPECT_EQ(Verdict(std::string(5000, '[')), "unsupported");
  EXPECT_EQ(Verdict(std::string(5000, '!') + "true"), "true");
  EXPECT_EQ(Verdict(std::string(20000, ' ') + "true"), "unsupported");
}

}  // namespace
}  // namespace berth::test::program_test
