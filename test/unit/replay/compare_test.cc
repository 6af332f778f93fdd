// SPDX-License-Identifier: Apache-2.0
//
// Plans, parts and reports of a comparison, from a small generated one.
#include <gtest/gtest.h>

#include <array>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "bench/replay/compare/part.h"
#include "bench/replay/compare/plan.h"
#include "bench/replay/compare/report_folder.h"
#include "bench/replay/compare/runs.h"
#include "bench/replay/compare/summary.h"
#include "bench/replay/compare/tables.h"
#include "test/support/temp_file.h"

namespace berth::replay::compare_test {
namespace {

using Json = nlohmann::ordered_json;
using test::TempFile;

Trace SmallTrace(const std::string& name, std::uint64_t seed) {
  Trace trace{GenerateWorkload(seed, 200), static_cast<std::uint32_t>(seed)};
  trace.workload.name = name;
  trace.workload.nodes.resize(12);
  return trace;
}

Plan SmallPlan() {
  Plan plan;
  plan.policies = Policies({"best-fit", "fragmentation-gradient", "random"}, {}).value();
  plan.traces = {SmallTrace("one", 1), SmallTrace("two", 2)};
  plan.first_seed = 5;
  plan.seeds = 2;
  plan.departures.on = true;
  plan.departures.load = 1.0;
  plan.departures.mean_lifetime_s = 300;
  plan.departures.hours = 0.25;
  return plan;
}

const MadeWith kMadeWith = {"1.2.3", "berth-replay compare --seeds 2"};

std::string PartOf(const Plan& plan, const Shard& shard) {
  return PartText({PlanJson(plan), RunPlan(plan, shard, 2, {}).value(), kMadeWith}, shard);
}

std::string ErrorOfJoining(const std::vector<std::string>& paths) {
  const auto runs = JoinParts(paths);
  return runs ? "joined" : runs.error().message;
}

TEST(Plan, NumbersPoliciesFastestThenSeedsThenTraces) {
  const Plan plan = SmallPlan();
  EXPECT_EQ(plan.runs(), 12U);
  const RunKey key = plan.Key(10);
  EXPECT_EQ(key.trace, 1U);
  EXPECT_EQ(key.seed, 6U);
  EXPECT_EQ(key.policy, 1U);
}

TEST(Plan, HasTheTextOfItsConfigurations) {
  Plan plan = SmallPlan();
  plan.policies.push_back(
      {"tuned.yaml", plan.policies.front().profile, {}, {}, "profile: best-fit"});
  const Json json = PlanJson(plan);
  EXPECT_EQ(json["policies"].back(), "tuned.yaml");
  EXPECT_EQ(json["configurations"].dump(), R"({"tuned.yaml":"profile: best-fit"})");
}

TEST(ParseShard, TakesOneToN) {
  EXPECT_EQ(ParseShard("2/3").value(), (Shard{2, 3}));
  EXPECT_EQ(ParseShard("1/1").value(), (Shard{1, 1}));
  for (const char* text : {"5/4", "0/4", "4", "1/", "/2", "1/0", "a/b", "1/2/3", "-1/2", ""}) {
    EXPECT_FALSE(ParseShard(text).has_value()) << text;
  }
}

TEST(ParseShard, GivesEveryRunToOnePart) {
  for (std::size_t number = 0; number < 20; ++number) {
    int owners = 0;
    for (std::size_t index = 1; index <= 3; ++index) owners += Shard{index, 3}.Has(number) ? 1 : 0;
    EXPECT_EQ(owners, 1);
  }
}

TEST(JoinParts, MakesTheSameReportAsTheWholeByteForByte) {
  const Plan plan = SmallPlan();
  const Runs whole{PlanJson(plan), RunPlan(plan, {1, 1}, 1, {}).value(), kMadeWith};
  const TempFile first(PartOf(plan, {1, 3})), second(PartOf(plan, {2, 3})),
      third(PartOf(plan, {3, 3}));
  const auto joined = JoinParts({third.path(), first.path(), second.path()});
  ASSERT_TRUE(joined.has_value()) << joined.error().message;
  const Json want = Summarize(whole).value(), got = Summarize(*joined).value();
  EXPECT_EQ(got.dump(), want.dump());
  EXPECT_EQ(SummaryText(got), SummaryText(want));
  EXPECT_EQ(RunsCsv(got), RunsCsv(want));
  EXPECT_EQ(ReportPage(got), ReportPage(want));
}

TEST(JoinParts, NamesWhatIsMissingTwiceOrForeign) {
  Plan plan = SmallPlan();
  plan.departures.on = false;
  const TempFile first(PartOf(plan, {1, 2})), again(PartOf(plan, {1, 2})),
      second(PartOf(plan, {2, 2})), other_count(PartOf(plan, {2, 3}));
  plan.first_seed = 6;
  const TempFile other_plan(PartOf(plan, {2, 2}));
  EXPECT_EQ(ErrorOfJoining({first.path()}), "part 2/2 is missing");
  EXPECT_EQ(ErrorOfJoining({first.path(), again.path(), second.path()}),
            again.path() + ": part 1/2 is there twice, also as " + first.path());
  EXPECT_EQ(ErrorOfJoining({first.path(), other_count.path()}),
            other_count.path() + ": does not belong to " + first.path() +
                ": want one of 2 parts, got part 2/3");
  EXPECT_EQ(ErrorOfJoining({first.path(), other_plan.path()}),
            other_plan.path() + ": does not belong to " + first.path() +
                ": plan.first_seed: want 5, got 6");
  Json newer = Json::parse(PartOf(SmallPlan(), {1, 2}));
  newer["made_with"]["version"] = "1.3.0";
  const TempFile of_newer(newer.dump()), of_older(PartOf(SmallPlan(), {2, 2}));
  EXPECT_EQ(ErrorOfJoining({of_older.path(), of_newer.path()}),
            of_newer.path() + ": does not belong to " + of_older.path() +
                ": version: want 1.2.3, got 1.3.0");
}

TEST(JoinParts, RefusesWhatIsNoPart) {
  for (const std::string text : {"", "{", "[]", "{\"format\": 3}", "nodes,tasks\n"}) {
    const TempFile file(text);
    EXPECT_TRUE(ErrorOfJoining({file.path()})
                    .starts_with(file.path() + ": want a part of `berth-replay compare`, got: "))
        << ErrorOfJoining({file.path()});
  }
  Plan plan = SmallPlan();
  plan.departures.on = false;
  Json part = Json::parse(PartOf(plan, {1, 1}));
  part["version"] = 3;
  const TempFile newer(part.dump());
  EXPECT_TRUE(ErrorOfJoining({newer.path()}).starts_with(newer.path() + ": want format"));
  part["version"] = 2;
  part["runs"].erase(0);
  const TempFile fewer(part.dump());
  EXPECT_EQ(ErrorOfJoining({fewer.path()}), fewer.path() + ": want 12 runs in all parts, got 11");
  part["runs"][0]["number"] = 99;
  const TempFile foreign(part.dump());
  EXPECT_EQ(ErrorOfJoining({foreign.path()}),
            foreign.path() + ": run 99 does not belong to part 1/1");
  part["runs"][0] = 7;
  const TempFile garbled(part.dump());
  EXPECT_TRUE(ErrorOfJoining({garbled.path()})
                  .starts_with(garbled.path() + ": want parts of `berth-replay compare`, got: "));
}

TEST(MeanOf, TakesTheMeanOfEveryNumber) {
  const std::vector<Json> values = {Json::parse(R"({"a": 1, "b": [1, null, null], "c": "x"})"),
                                    Json::parse(R"({"a": 2, "b": [3, 5, null], "c": "x"})")};
  EXPECT_EQ(MeanOf(values), Json::parse(R"({"a": 1.5, "b": [2.0, 5.0, null], "c": null})"));
}

TEST(MeanOf, IsTrueWhereOneIsTrue) {
  const std::vector<Json> values = {Json::parse(R"({"a": false, "b": false})"),
                                    Json::parse(R"({"a": true, "b": false})")};
  EXPECT_EQ(MeanOf(values), Json::parse(R"({"a": true, "b": false})"));
}

// A plan of two policies, one trace and two seeds, with these figures at 100 and 130 %.
Runs Headlines(const std::vector<std::array<double, 2>>& figures) {
  Runs runs{Json::parse(R"({"policies": ["fragmentation-gradient", "best-fit"], "seeds": 2,
                            "traces": [{"name": "t"}], "first_seed": 1, "departures": null})"),
            {}};
  for (std::size_t i = 0; i < figures.size(); ++i) {
    runs.records.push_back({{"number", i},
                            {"trace", "t"},
                            {"policy", runs.plan["policies"][i % 2]},
                            {"seed", 1 + i / 2},
                            {"gpus_total", 200},
                            {"arrivals",
                             {{"allocated_at_100", figures[i][0]},
                              {"allocated_at_130", figures[i][1]},
                              {"watts_at_50", 1500},
                              {"watts_at_100", 2000 + i},
                              {"placed", 1},
                              {"refused", 0}}}});
  }
  return runs;
}

TEST(Summarize, SaysWhatIsWonOfTheIdleGpusOfTheBaseline) {
  // Baseline at 130: mean of 89 and 91; the other policy: mean of 91 and 93.
  const Json summary = Summarize(Headlines({{80, 89}, {80, 91}, {80, 91}, {70, 93}})).value();
  EXPECT_EQ(summary["baseline"], "fragmentation-gradient");
  ASSERT_EQ(summary["results"].size(), 2U);
  const Json& other = summary["results"][1];
  EXPECT_EQ(other["policy"], "best-fit");
  EXPECT_EQ(other["mean"]["arrivals"]["allocated_at_130"], 92.0);
  EXPECT_EQ(other["won_at_130_pct"], 20.0);
  EXPECT_EQ(other["won_at_100_pct"], -25.0);
  EXPECT_EQ(other["deviation"]["allocated_at_130"], 1.4142);
  EXPECT_EQ(summary["results"][0]["won_at_130_pct"], 0.0);
}

TEST(SummaryText, AlignsOneLinePerPolicy) {
  const std::string text =
      SummaryText(Summarize(Headlines({{80, 89}, {80, 91}, {80, 91}, {70, 93}})).value());
  EXPECT_NE(text.find("t      best-fit                   75.00     92.00       1.41         16"),
            std::string::npos)
      << text;
}

TEST(SummaryText, EndsWithModelsThatNoNodeHasAndWhatItWasMadeWith) {
  Runs runs = Headlines({{80, 89}, {80, 91}, {80, 91}, {70, 93}});
  runs.made_with = kMadeWith;
  runs.plan["traces"][0]["missing_models"] =
      Json::parse(R"([{"model": "T5", "tasks": 3, "stuck": 2}])");
  const Json summary = Summarize(runs).value();
  EXPECT_TRUE(SummaryText(summary).ends_with(
      "\nt: no node has the GPU model \"T5\" of 3 tasks; 2 of them fit nowhere\n"
      "\nberth-replay 1.2.3: berth-replay compare --seeds 2\n"))
      << SummaryText(summary);
  EXPECT_NE(ReportPage(summary).find("\"command\":\"berth-replay compare --seeds 2\""),
            std::string::npos);
  EXPECT_NE(ReportPage(summary).find("\"missing_models\":[{\"model\":\"T5\""), std::string::npos);
}

TEST(RunsCsv, HasOneLinePerRun) {
  EXPECT_EQ(RunsCsv(Summarize(Headlines({{80, 89}, {80, 91}, {80, 91}, {70, 93}})).value()),
            "trace,policy,seed,allocated_at_100,allocated_at_130,watts_at_50,watts_at_100,placed,"
            "refused\n"
            "t,fragmentation-gradient,1,80.0,89.0,1500,2000,1,0\n"
            "t,best-fit,1,80.0,91.0,1500,2001,1,0\n"
            "t,fragmentation-gradient,2,80.0,91.0,1500,2002,1,0\n"
            "t,best-fit,2,70.0,93.0,1500,2003,1,0\n");
}

TEST(ReportPage, NeedsNothingFromElsewhere) {
  Runs runs = Headlines({{80, 89}, {80, 91}, {80, 91}, {70, 93}});
  for (Json& record : runs.records) record["trace"] = "</script><b>";
  const std::string page = ReportPage(Summarize(runs).value());
  for (const char* text : {"http://", "https://", "//cdn", "src=", "@import", "url(", "<link"}) {
    EXPECT_EQ(page.find(text), std::string::npos) << text;
  }
  EXPECT_EQ(page.find("/*SUMMARY*/"), std::string::npos);
  EXPECT_EQ(page.find("</script>"), page.rfind("</script>")) << "a name cannot end the script";
  EXPECT_NE(page.find("\"policy\":\"best-fit\""), std::string::npos);
}

}  // namespace
}  // namespace berth::replay::compare_test
