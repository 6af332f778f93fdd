// SPDX-License-Identifier: Apache-2.0
#include "server/telemetry/metrics.h"

#include <cstdint>
#include <string>

#include <gtest/gtest.h>

namespace berth::test::metrics_text_test {
namespace {

TEST(MetricsText, WritesFamiliesInTheOrderInWhichTheyBegin) {
  MetricsText text;
  text.Gauge("berth_b", "What b is").Sample(1, {{"z", "1"}, {"a", "2"}}).Sample(-0.5);
  text.Counter("berth_a_total", "How many a");
  text.Gauge("berth_c", "What c is").Sample(std::uint64_t{1} << 53);
  EXPECT_EQ(text.Take(),
            "# HELP berth_b What b is\n# TYPE berth_b gauge\n"
            "berth_b{z=\"1\",a=\"2\"} 1\nberth_b -0.5\n"
            "# HELP berth_a_total How many a\n# TYPE berth_a_total counter\n"
            "# HELP berth_c What c is\n# TYPE berth_c gauge\nberth_c 9007199254740992\n");
}

TEST(MetricsText, AFamilyThatIsWrittenInPartsIsDescribedOnce) {
  for (const int samples : {1023, 1024, 1025, 5000}) {
    MetricsText text;
    text.Gauge("berth_gpu", "A GPU");
    std::string want = "# HELP berth_gpu A GPU\n# TYPE berth_gpu gauge\n";
    for (int i = 0; i < samples; ++i) {
      text.Sample(i, {{"gpu", std::to_string(i)}});
      want += "berth_gpu{gpu=\"" + std::to_string(i) + "\"} " + std::to_string(i) + "\n";
    }
    text.Gauge("berth_ready", "Ready").Sample(1);
    want += "# HELP berth_ready Ready\n# TYPE berth_ready gauge\nberth_ready 1\n";
    EXPECT_EQ(text.Take(), want) << samples;
  }
}

TEST(MetricsText, AnEmptyScrapeIsEmpty) {
  MetricsText text;
  EXPECT_EQ(text.Take(), "");
}

TEST(MetricsText, ALabelMayBeAnyTextAndAddsNoLine) {
  MetricsText text;
  text.Gauge("berth_a", "a").Sample(1, {{"model", "x\"} 9\nberth_ready 1\n\\"}});
  EXPECT_EQ(text.Take(),
            "# HELP berth_a a\n# TYPE berth_a gauge\n"
            "berth_a{model=\"x\\\"} 9\\nberth_ready 1\\n\\\\\"} 1\n");
}

TEST(MetricsText, AHashThatIsNotKnownYetHasNoSeries) {
  Metrics metrics;
  const auto text = [&metrics] {
    MetricsText written;
    metrics.AddTo(written);
    return written.Take();
  };
  EXPECT_EQ(text().find("\nberth_config_info{"), std::string::npos);
  metrics.ShowConfig("aaaaaaaaaaaa", false);
  metrics.ShowConfig("aaaaaaaaaaaa", false);
  EXPECT_NE(text().find("\nberth_config_info{hash=\"aaaaaaaaaaaa\"} 1\n"), std::string::npos);
}

}  // namespace
}  // namespace berth::test::metrics_text_test
