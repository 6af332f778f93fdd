// SPDX-License-Identifier: Apache-2.0
#include "server/telemetry/log.h"

#include <chrono>
#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "server/service/serve_parts.h"
#include "server/telemetry/metrics.h"
#include "test/support/metrics_lines.h"

namespace berth::test::log_test {
namespace {

using Json = nlohmann::json;

// What was written to stderr meanwhile; every line must be one JSON object.
template <class Write>
std::vector<Json> LinesOf(LogLevel least, Write write) {
  testing::internal::CaptureStderr();
  {
    Log log(least);
    write(log);
  }
  std::istringstream text(testing::internal::GetCapturedStderr());
  std::vector<Json> lines;
  for (std::string line; std::getline(text, line);) {
    lines.push_back(Json::parse(line, nullptr, false));
    EXPECT_TRUE(lines.back().is_object()) << line;
  }
  return lines;
}

TEST(Log, ALineIsOneJsonObjectWithTimeLevelEventAndFields) {
  const auto lines = LinesOf(LogLevel::kInfo, [](Log& log) {
    log.Write(LogLevel::kInfo, "pod_bound", {{"node", "n1"}, {"gpus", 2}});
  });
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_EQ(lines[0].size(), 5u);
  EXPECT_EQ(lines[0]["level"], "info");
  EXPECT_EQ(lines[0]["event"], "pod_bound");
  EXPECT_EQ(lines[0]["node"], "n1");
  EXPECT_EQ(lines[0]["gpus"], 2);
  const std::string time = lines[0]["time"];  // 2026-03-01T12:00:00.123Z
  ASSERT_EQ(time.size(), 24u);
  EXPECT_EQ(time[10], 'T');
  EXPECT_EQ(time[19], '.');
  EXPECT_EQ(time[23], 'Z');
}

TEST(Log, HostileTextStaysInsideItsField) {
  const std::string hostile = std::string("\"}\n{\"event\":\"forged\"") + '\0' + "\xff%v%l{}";
  const auto lines = LinesOf(LogLevel::kDebug, [&hostile](Log& log) {
    log.Write(LogLevel::kError, "bind_failed", {{"error", hostile}, {hostile, "x"}});
  });
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_EQ(lines[0]["event"], "bind_failed");
  EXPECT_EQ(lines[0].size(), 5u);
  const std::string error = lines[0]["error"];
  EXPECT_TRUE(error.starts_with("\"}\n{\"event\":\"forged\""));
}

TEST(Log, ATextIsCutAfter4KiBAtTheEndOfACharacter) {
  std::string text;
  for (int i = 0; i < 1'000'000; ++i) text += "\u00e4";
  const auto lines = LinesOf(LogLevel::kDebug, [&text](Log& log) {
    log.Write(LogLevel::kInfo, "e", {{"text", text}, {"fits", text.substr(0, 4096)}});
  });
  const std::string cut = lines.at(0)["text"];
  EXPECT_LE(cut.size(), 4096u);
  EXPECT_GE(cut.size(), 4090u);
  EXPECT_TRUE(cut.ends_with("\u00e4..."));
  EXPECT_EQ(lines.at(0)["fits"], text.substr(0, 4096));
}

TEST(Log, NumbersAreNumbers) {
  const auto lines = LinesOf(LogLevel::kDebug, [](Log& log) {
    log.Write(LogLevel::kInfo, "e",
              {{"low", std::numeric_limits<std::int64_t>::min()}, {"size", std::size_t{7}}});
  });
  EXPECT_EQ(lines.at(0)["low"], std::numeric_limits<std::int64_t>::min());
  EXPECT_EQ(lines.at(0)["size"], 7);
}

TEST(Log, OnlyWhatIsImportantEnoughIsWritten) {
  const LogLevel all[] = {LogLevel::kDebug, LogLevel::kInfo, LogLevel::kWarn, LogLevel::kError};
  for (const LogLevel least : all) {
    std::size_t enabled = 0;
    const auto lines = LinesOf(least, [&](Log& log) {
      for (const LogLevel level : all) {
        log.Write(level, "e", {});
        if (log.Enabled(level)) ++enabled;
      }
    });
    EXPECT_EQ(lines.size(), 4 - static_cast<std::size_t>(least));
    EXPECT_EQ(lines.size(), enabled);
  }
}

TEST(Log, TheLevelCanChangeWhileThreadsWrite) {
  const auto lines = LinesOf(LogLevel::kError, [](Log& log) {
    std::thread writer([&log] {
      for (int i = 0; i < 200; ++i) log.Write(LogLevel::kDebug, "busy", {});
    });
    for (int i = 0; i < 50; ++i) {
      log.SetLevel(LevelNamed(i % 2 == 0 ? "debug" : "error"));
    }
    writer.join();
    log.Write(LogLevel::kWarn, "hidden", {});
    log.SetLevel(LevelNamed("warn"));
    log.Write(LogLevel::kWarn, "shown", {});
  });
  ASSERT_FALSE(lines.empty());
  EXPECT_EQ(lines.back()["event"], "shown");
  for (const Json& line : lines) EXPECT_NE(line["event"], "hidden");
}

TEST(Log, LinesOfManyThreadsDoNotMix) {
  const auto lines = LinesOf(LogLevel::kInfo, [](Log& log) {
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([&log, t] {
        for (int i = 0; i < 50; ++i) log.Write(LogLevel::kInfo, "e", {{"thread", t}, {"i", i}});
      });
    }
    for (std::thread& thread : threads) thread.join();
  });
  EXPECT_EQ(lines.size(), 200u);
}

TEST(DecisionRecorder, BindsAreLoggedWithTheirDevicesAndFailuresWithTheirCode) {
  Metrics metrics;
  const PodId pod{"u1", "ns", "p"};
  const Placement placement{"n1", 0, 0, {{0, 1000, 0}, {3, 250, 0}}};
  const Error error{Errc::kConflict, "somebody was faster"};
  const auto lines = LinesOf(LogLevel::kInfo, [&](Log& log) {
    DecisionRecorder recorder(log, metrics);
    recorder.Record({.verb = Verb::kBind, .pod = &pod, .placement = &placement});
    recorder.Record({.verb = Verb::kBind, .pod = &pod, .error = &error});
    recorder.Record({.verb = Verb::kFilter, .pod = &pod, .candidates = 2});
  });
  ASSERT_EQ(lines.size(), 2u);  // filter is for debugging
  EXPECT_EQ(lines[0]["event"], "pod_bound");
  EXPECT_EQ(lines[0]["grants"], "0:1000,3:250");
  EXPECT_EQ(lines[0]["node"], "n1");
  EXPECT_EQ(lines[1]["event"], "bind_failed");
  EXPECT_EQ(lines[1]["code"], "conflict");
  EXPECT_EQ(lines[1]["error"], "somebody was faster");
  EXPECT_EQ(lines[1]["pod_uid"], "u1");
}

TEST(DecisionRecorder, OtherDecisionsAreLoggedForDebuggingAndCounted) {
  Metrics metrics;
  const PodId pod{"u1", "ns", "p"};
  const auto lines = LinesOf(LogLevel::kDebug, [&](Log& log) {
    DecisionRecorder(log, metrics)
        .Record({.verb = Verb::kFilter,
                 .pod = &pod,
                 .candidates = 3,
                 .fitting = 1,
                 .first_reason = Reason::kGpusBusy});
  });
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_EQ(lines[0]["verb"], "filter");
  EXPECT_EQ(lines[0]["candidates"], 3);
  EXPECT_EQ(lines[0]["fitting"], 1);
  EXPECT_EQ(lines[0]["first_reason"], "gpus_busy");
  MetricsText text;
  metrics.AddTo(text);
  ExpectLines(text.Take(), {"berth_refusals_total{reason=\"gpus_busy\"} 1"});
}

TEST(AdviceLog, LogsANodesRecommendedPartitionOnlyWhenItChanges) {
  const auto lines = LinesOf(LogLevel::kInfo, [](Log& log) {
    const auto advice = [](const std::string& config, int fits) {
      return std::vector<NodeAdvice>{{"n1", "A100-40GB", 2, {config, fits, 0, std::nullopt}}};
    };
    AdviceLog advised(log);
    EXPECT_TRUE(advised.IsDue(Instant()));
    advised.Write(advice("all-balanced", 3), Instant());
    EXPECT_FALSE(advised.IsDue(Instant() + std::chrono::seconds(29)));
    EXPECT_TRUE(advised.IsDue(Instant() + std::chrono::seconds(30)));
    advised.Write(advice("all-balanced", 4), Instant());
    advised.Write(advice("all-3g.20gb", 4), Instant());
    advised.Write({}, Instant());
    advised.Write(advice("all-3g.20gb", 4), Instant());
  });
  ASSERT_EQ(lines.size(), 3u);
  for (const Json& line : lines) EXPECT_EQ(line["event"], "repartition_advice");
  EXPECT_NE(lines[0]["text"].get<std::string>().find("all-balanced"), std::string::npos);
}

}  // namespace
}  // namespace berth::test::log_test
