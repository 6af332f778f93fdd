// SPDX-License-Identifier: Apache-2.0
//
// The command line of berth-replay: the same input gives the same bytes, the engine and a server
// over HTTP the same result, and errors name the place.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "test/support/child_process.h"
#include "test/support/test_certificates.h"

namespace berth::test::replay_cli_test {
namespace {

// Takes the power out of a result. Only the engine knows it: a server does not say which GPUs.
void ExpectPower(nlohmann::json& result, const std::string& through) {
  if (through == "engine") {
    const nlohmann::json& watts = result.at("estimated_watts");
    EXPECT_EQ(watts.size(), 131U);
    // Of the percents that arrived.
    EXPECT_TRUE(std::any_of(watts.begin(), watts.end(), [](const auto& at) {
      return at.is_number() && at > 0;
    })) << watts;
    EXPECT_EQ(result.at("gpus_without_watts"), 0);
  } else {
    EXPECT_TRUE(result.at("estimated_watts").is_null());
    EXPECT_TRUE(result.at("gpus_without_watts").is_null());
  }
  result.erase("estimated_watts");
  result.erase("gpus_without_watts");
}

class BerthReplay : public testing::Test {
 protected:
  void SetUp() override {
    nodes_ = folder_.WriteText("nodes.csv", "");
    tasks_ = folder_.WriteText("tasks.csv", "");
    ChildProcess generate("berth-replay",
                          {"generate", "--nodes", nodes_, "--tasks", tasks_, "--seed", "7"});
    ASSERT_EQ(generate.Wait(), 0) << generate.err();
  }

  // The result of a short replay without its timings.
  [[nodiscard]] nlohmann::json Run(const std::string& policy, const std::string& through,
                                   const std::vector<std::string>& more = {}) const {
    std::vector<std::string> arguments = {"run",      "--nodes",   nodes_,   "--tasks", tasks_,
                                          "--policy", policy,      "--seed", "3",       "--inflate",
                                          inflate_,   "--through", through,  "--json",  "-"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    ChildProcess process("berth-replay", arguments);
    EXPECT_EQ(process.Wait(), 0) << process.err();
    EXPECT_EQ(process.err(), "") << "progress belongs on a terminal only";
    auto result = nlohmann::json::parse(process.out());
    EXPECT_EQ(result.erase("decision_us"), 1U);
    ExpectPower(result, through);
    const std::string command = result.at("made_with").at("command");
    EXPECT_TRUE(command.starts_with("berth-replay run --nodes " + nodes_)) << command;
    EXPECT_EQ(command.find("--json"), std::string::npos) << command;
    result.erase("made_with");
    return result;
  }

  void ExpectFailure(std::vector<std::string> arguments, int code, const std::string& message) {
    ChildProcess process("berth-replay", arguments);
    EXPECT_EQ(process.Wait(), code);
    EXPECT_EQ(process.out(), "");
    EXPECT_NE(process.err().find(message), std::string::npos) << process.err();
  }

  const TemporaryFolder folder_;
  std::string nodes_, tasks_, inflate_ = "0.05";
};

TEST_F(BerthReplay, GivesTheSameResultForTheSameInput) {
  const nlohmann::json first = Run("fragmentation-gradient", "engine");
  EXPECT_EQ(first.dump(), Run("fragmentation-gradient", "engine").dump());
  EXPECT_EQ(first["policy"], "fragmentation-gradient");
  EXPECT_EQ(first["seed"], 3);
  EXPECT_EQ(first["nodes"], 1213);
  EXPECT_EQ(first["gpus_total"], 6212);
  EXPECT_EQ(first["allocated_pct"].size(), 131U);
  EXPECT_TRUE(first["allocated_pct"][130].is_null()) << "only 5 % arrived";
  EXPECT_GT(first["placed"], 100);
  EXPECT_EQ(first["refused"], 0);
}

TEST_F(BerthReplay, GetsTheSameFromAServerAsFromTheEngine) {
  // The protocol has eleven levels; the best nodes are told apart all the same.
  for (const char* policy : {"first-fit", "link-quality"}) {
    EXPECT_EQ(Run(policy, "engine").dump(), Run(policy, "http").dump()) << policy;
  }
}

// The policy that learns: on 24 nodes, pods by the thousand, so that many epochs begin.
class BerthReplayLearning : public BerthReplay {
 protected:
  void SetUp() override {
    std::string nodes = "sn,cpu_milli,memory_mib,gpu,model\n";
    for (int i = 0; i < 24; ++i) nodes += "n" + std::to_string(i) + ",96000,524288,8,T4\n";
    nodes_ = folder_.WriteText("openb_node_list_gpu_node.csv", nodes);
    tasks_ = folder_.WriteText("openb_pod_list_default.csv",
                               "name,cpu_milli,memory_mib,num_gpu,gpu_milli\n"
                               "a,500,1024,1,60\nb,900,1024,1,90\nc,2000,1024,1,320\n"
                               "d,8000,4096,2,1000\ne,600,1024,1,70\nf,700,512,1,80\n"
                               "g,400,512,0,0\n");
    inflate_ = "1.3";
  }
  [[nodiscard]] std::vector<std::string> Demo(const std::string& report) const {
    const std::string folder = tasks_.substr(0, tasks_.rfind('/'));
    return {"demo", "--trace", folder, "--seed", "5", "--report", folder + "/" + report};
  }
  // Without the one line that has times, and without the folder's name.
  static std::string Steady(std::string out, const std::string& report) {
    const std::size_t times = out.find("Over HTTP: ");
    EXPECT_NE(times, std::string::npos) << out;
    out.erase(times, out.find('\n', times) - times);
    for (std::size_t at = 0; (at = out.find(report)) != std::string::npos;) {
      out.erase(at, report.size());
    }
    return out;
  }
};

TEST_F(BerthReplayLearning, GetsTheSameFromAServerAsFromTheEngine) {
  const nlohmann::json served = Run("expected-waste", "http");
  EXPECT_GT(served["placed"], 500);
  EXPECT_EQ(Run("expected-waste", "engine", {"--nodes-to-score", "100"}).dump(), served.dump());
}

// Side by side with itself, so that the machine is busy.
TEST_F(BerthReplayLearning, TheDemoPrintsTheSameForTheSameSeed) {
  ChildProcess one("berth-replay", Demo("report-a")), two("berth-replay", Demo("report-b"));
  EXPECT_EQ(one.Wait(), 0) << one.err();
  EXPECT_EQ(two.Wait(), 0) << two.err();
  const std::string text = Steady(one.out(), "report-a");
  EXPECT_EQ(text, Steady(two.out(), "report-b"));
  for (const char* part : {"seed 5", "kube-scheduler", "most-allocated", "fragmentation-gradient",
                           "Of 192 GPUs ", "/report.html", "Go on:"}) {
    EXPECT_NE(text.find(part), std::string::npos) << text;
  }
  EXPECT_EQ(text.find("Of 192 GPUs 192 "), std::string::npos) << text;
  EXPECT_EQ(text.find("Over HTTP "), std::string::npos) << "another result than the engine's";
  EXPECT_EQ(text.find("live page fills"), std::string::npos) << "belongs on a terminal only";
}

TEST_F(BerthReplay, RefusesThroughHttpWhatAServiceCannotDo) {
  for (const char* policy : {"kube-scheduler", "best-fit", "fragmentation-gradient"}) {
    ExpectFailure(
        {"run", "--nodes", nodes_, "--tasks", tasks_, "--policy", policy, "--through", "http"}, 1,
        std::string("through: want engine with ") + policy);
  }
}

// Small tasks and ones of whole machines: which nodes the small ones took decides how many of the
// others find one.
class BerthReplayShortlist : public BerthReplay {
 protected:
  void SetUp() override {
    std::string nodes = "sn,cpu_milli,memory_mib,gpu,model\n";
    for (int i = 0; i < 150; ++i) nodes += "n" + std::to_string(i) + ",64000,262144,8,T4\n";
    nodes_ = folder_.WriteText("nodes.csv", nodes);
    tasks_ = folder_.WriteText("tasks.csv",
                               "name,cpu_milli,memory_mib,num_gpu,gpu_milli\n"
                               "a,1000,1024,1,1000\nb,1000,1024,8,1000\n");
    inflate_ = "1.3";
  }
};

TEST_F(BerthReplayShortlist, HonoursNodesToScore) {
  // A scheduler that is given no scores draws one of the nodes that go on.
  const std::vector<std::string> few = {"--nodes-to-score", "5"}, all = {"--nodes-to-score", "0"};
  const nlohmann::json of_few = Run("random", "engine", few), of_all = Run("random", "engine", all);
  EXPECT_EQ(of_few.dump(), Run("random", "http", few).dump());
  EXPECT_EQ(of_all.dump(), Run("random", "http", all).dump());
  EXPECT_EQ(of_all.dump(), Run("random", "engine").dump()) << "the published protocol";
  EXPECT_EQ(Run("random", "http").dump(),
            Run("random", "engine", {"--nodes-to-score", "100"}).dump())
      << "the server's default";
  EXPECT_GT(of_few["allocated_pct"][130], of_all["allocated_pct"][130]);
}

TEST_F(BerthReplay, NamesTheFileTheLineAndTheColumn) {
  const std::string wrong = folder_.WriteText("wrong.csv", "name,cpu\na,1\n");
  ExpectFailure({"run", "--nodes", nodes_, "--tasks", wrong, "--policy", "best-fit"}, 1,
                wrong + ":1: want the columns name,cpu_milli,memory_mib,num_gpu,gpu_milli, got");
  const std::string negative =
      folder_.WriteText("negative.csv", "sn,cpu_milli,memory_mib,gpu,model\nn1,8000,1024,-1,T4\n");
  ExpectFailure({"run", "--nodes", negative, "--tasks", tasks_, "--policy", "best-fit"}, 1,
                negative + ":2: column gpu: want an integer from 0 to 64, got \"-1\"");
}

TEST_F(BerthReplay, NamesThePoliciesThereAre) {
  ExpectFailure({"run", "--nodes", nodes_, "--tasks", tasks_, "--policy", "best"}, 1,
                "policy: want one of best-fit dot-product expected-waste first-fit");
}

TEST_F(BerthReplay, EndsWithTwoWhereItIsNotUsedAsItsHelpSays) {
  ExpectFailure({"run", "--policy", "best-fit"}, 2, "--nodes is required");
  ExpectFailure({"run", "--nodes", nodes_, "--tasks", tasks_}, 2, "--config");
  ExpectFailure({"run", "--nodes", nodes_, "--tasks", tasks_, "--policy", "best-fit", "--bogus"}, 2,
                "--bogus");
  ExpectFailure({"run", "--nodes", nodes_, "--tasks", tasks_, "--policy", "best-fit",
                 "--nodes-to-score", "-1"},
                2, "--nodes-to-score");
}

// NaN is neither below nor above a bound: a command that takes it never ends.
TEST_F(BerthReplay, RefusesWhatIsNoNumberWithinItsBounds) {
  const std::vector<std::string> run = {"run",    "--nodes",  nodes_,     "--tasks",
                                        tasks_,   "--policy", "best-fit", "--with-departures",
                                        "--load", "1"};
  const std::vector<std::string> time = {"time", "--nodes", nodes_, "--tasks", tasks_};
  const auto with = [](std::vector<std::string> words, const std::vector<std::string>& more) {
    words.insert(words.end(), more.begin(), more.end());
    return words;
  };
  for (const std::string value : {"nan", "-nan", "inf", "-inf", "0", "1e99"}) {
    const auto refused = [&](const std::vector<std::string>& words, const std::string& option,
                             const std::string& range) {
      ExpectFailure(with(words, {option, value}), 2,
                    option + ": want a number from " + range + ", got \"" + value + "\"");
    };
    refused(std::vector(run.begin(), run.end() - 2), "--load", "0.01 to 10");
    refused(run, "--mean-lifetime", "1 to 10000000");
    refused(run, "--hours", "0.01 to 10000");
    refused(run, "--inflate", "0.01 to 100");
    refused(time, "--loads", "0.01 to 10");
    for (const char* command : {"gang", "mig", "topology"}) {
      refused({command}, "--load", "0.01 to 10");
    }
    refused({"gang"}, "--hours", "0.01 to 10000");
    refused({"gang"}, "--mean-lifetime", "1 to 10000000");
  }
}

TEST_F(BerthReplay, RefusesASeedThatIsNoNumberOf64Bits) {
  for (const std::string seed : {"-1", "99999999999999999999999", "1.5", "nan"}) {
    for (const char* command : {"run", "generate", "demo", "gang", "time"}) {
      ExpectFailure({command, "--seed=" + seed}, 2, "");
    }
    ExpectFailure({"generate", "--seed=" + seed}, 2,
                  "--seed: want an integer from 0 to 18446744073709551615, got \"" + seed + '"');
    ExpectFailure({"mig", "--first-seed=" + seed}, 2, "--first-seed: want an integer from 0 to ");
  }
}

// A cluster and tasks so small that every command is done in a moment.
class BerthReplayCompare : public BerthReplay {
 protected:
  void SetUp() override {
    nodes_ = folder_.WriteText("nodes.csv",
                               "sn,cpu_milli,memory_mib,gpu,model\n"
                               "n1,64000,262144,8,T4\nn2,32000,262144,4,T4\n");
    tasks_ = folder_.WriteText("tasks.csv",
                               "name,cpu_milli,memory_mib,num_gpu,gpu_milli,creation_time,"
                               "deletion_time\n"
                               "a,4000,1024,1,500,0,4000\nb,8000,1024,1,1000,10,500\n"
                               "c,8000,1024,2,1000,20,900\nd,8000,1024,8,1000,30,9000\n"
                               "e,4000,1024,0,0,40,90\n");
  }

  [[nodiscard]] std::string Folder(const std::string& name) const {
    return tasks_.substr(0, tasks_.size() - std::string("tasks.csv").size()) + name;
  }
  [[nodiscard]] static std::string TextOf(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  [[nodiscard]] std::vector<std::string> Compare(const std::string& report,
                                                 const std::vector<std::string>& more = {}) const {
    std::vector<std::string> arguments = {"compare",
                                          "--policies",
                                          "best-fit,fragmentation-gradient,spreading",
                                          "--traces",
                                          tasks_,
                                          "--nodes",
                                          nodes_,
                                          "--seeds",
                                          "3",
                                          "--with-departures",
                                          "--load",
                                          "1.2",
                                          "--hours",
                                          "0.5",
                                          "--mean-lifetime",
                                          "300",
                                          "--report",
                                          Folder(report)};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return arguments;
  }
  static std::string OutOf(const std::vector<std::string>& arguments) {
    ChildProcess process("berth-replay", arguments);
    EXPECT_EQ(process.Wait(), 0) << process.err();
    EXPECT_EQ(process.err(), "") << "progress belongs on a terminal only";
    return process.out();
  }
};

TEST_F(BerthReplayCompare, MergesPartsIntoTheSameReportByteForByte) {
  const std::string text = OutOf(Compare("whole", {"--threads", "1"}));
  EXPECT_NE(text.find("spreading"), std::string::npos);
  for (const char* shard : {"1/2", "2/2"}) OutOf(Compare("parts", {"--shard", shard}));
  EXPECT_EQ(OutOf({"merge", Folder("parts/part-2-of-2.json"), Folder("parts/part-1-of-2.json"),
                   "--report", Folder("merged")}),
            text);
  for (const std::string name : {"report.txt", "report.csv", "report.json", "report.html"}) {
    const std::string whole = TextOf(Folder("whole/" + name));
    EXPECT_GT(whole.size(), 100U) << name;
    EXPECT_EQ(TextOf(Folder("merged/" + name)), whole) << name;
  }
}

TEST_F(BerthReplayCompare, RunsPoliciesSideBySideWithDepartures) {
  const std::vector<std::string> run = {
      "run",  "--nodes",           nodes_,     "--tasks",
      tasks_, "--with-departures", "--policy", "best-fit,first-fit"};
  const std::string text = OutOf(run);
  EXPECT_EQ(OutOf(run), text);
  for (const char* part :
       {"best-fit", "first-fit", "GPU-hours", "wait p50 / p99", "2.5 h, 5 pods"}) {
    EXPECT_NE(text.find(part), std::string::npos) << text;
  }
  std::vector<std::string> json = run;
  json.insert(json.end(), {"--json", "-"});
  const auto result = nlohmann::json::parse(OutOf(json));
  EXPECT_EQ(result["policies"].size(), 2U);
  EXPECT_EQ(result["policies"][0]["policy"], "best-fit");
  EXPECT_EQ(result["policies"][0]["arrivals"], 5);
}

TEST_F(BerthReplayCompare, TimeSaysOfEachPolicyWhatRunSays) {
  const std::vector<std::string> trace = {"--nodes", nodes_, "--tasks", tasks_, "--json", "-"};
  std::vector<std::string> time = {"time", "--policy", "first-fit", "--rules",
                                   "none,in-turn,earmarks+words*10"};
  std::vector<std::string> run = {"run", "--with-departures", "--policy",
                                  "first-fit,first-fit+in-turn,first-fit+earmarks+words*10"};
  time.insert(time.end(), trace.begin(), trace.end());
  run.insert(run.end(), trace.begin(), trace.end());
  auto report = nlohmann::json::parse(OutOf(time));
  EXPECT_EQ(report["missing_models"], nlohmann::json::array());
  for (auto& row : report["results"]) {
    EXPECT_TRUE(row["load"].is_null()) << "the times of the trace";
    row.erase("load");
    EXPECT_EQ(row["seed"], 42);
    row.erase("seed");
  }
  EXPECT_EQ(report["results"], nlohmann::json::parse(OutOf(run))["policies"]);
}

TEST_F(BerthReplayCompare, TimePrintsAReportForEachLoadTheSameEachTime) {
  const std::vector<std::string> time = {
      "time", "--nodes", nodes_, "--tasks",         tasks_, "--loads", "0.9,1.2", "--hours",
      "0.5",  "--seeds", "2",    "--mean-lifetime", "300"};
  const std::string text = OutOf(time);
  EXPECT_EQ(OutOf(time), text);
  for (const char* part :
       {"tasks, load 0.9, seed 42 to 43, means of the seeds", "tasks, load 1.2, ",
        "expected-waste+in-turn ", "expected-waste+earmarks+words/10 ", "wait p50 / p99",
        "against expected-waste "}) {
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
  }
  std::vector<std::string> json = time;
  json.insert(json.end(), {"--json", "-"});
  EXPECT_EQ(nlohmann::json::parse(OutOf(json))["results"].size(), 7U * 2 * 2);
  ExpectFailure({"time", "--nodes", nodes_, "--tasks", tasks_, "--rules", "kept"}, 1,
                "got \"expected-waste+kept\" (behind a name: +earmarks ");
  ExpectFailure({"time", "--nodes", nodes_, "--tasks", tasks_, "--hours", "1"}, 2,
                "--hours requires --loads");
}

TEST_F(BerthReplayCompare, RunsAConfigurationBesideBuiltInProfiles) {
  const std::string same = folder_.WriteText(
      "same.yaml",
      "apiVersion: berth.dev/v1alpha1\nkind: BerthConfiguration\nprofile: link-quality\n"
      "profiles: [{name: link-quality, scorers: [{name: link-quality}]}]\n");
  const std::vector<std::string> run = {"run",      "--nodes",      nodes_,     "--tasks",
                                        tasks_,     "--json",       "-",        "--with-departures",
                                        "--policy", "link-quality", "--config", same};
  const auto json = nlohmann::json::parse(OutOf(run));
  ASSERT_EQ(json["policies"].size(), 2U);
  auto built_in = json["policies"][0], own = json["policies"][1];
  EXPECT_EQ(own["policy"], "same.yaml");
  own["policy"] = "link-quality";
  EXPECT_EQ(own, built_in);
  EXPECT_EQ(json["configurations"]["same.yaml"], TextOf(same));
  const auto through = [&](const char* how) {
    auto result = nlohmann::json::parse(OutOf({"run", "--nodes", nodes_, "--tasks", tasks_,
                                               "--config", same, "--through", how, "--json", "-"}));
    result.erase("decision_us");
    ExpectPower(result, how);
    result.erase("made_with");
    return result;
  };
  EXPECT_EQ(through("engine"), through("http"));
  OutOf(Compare("configured", {"--config", same}));
  EXPECT_NE(TextOf(Folder("configured/report.csv")).find("tasks,same.yaml,42,"), std::string::npos);
}

TEST_F(BerthReplayCompare, RunsOnAClusterWithItsPods) {
  const std::string cluster = folder_.WriteText("cluster.json", R"({"version":1,"nodes":[
    {"name":"n1","gpu_model":"T4","cpu_milli":96000,"memory_bytes":400000000000,"gpus":4}],"pods":[
    {"uid":"1","namespace":"x","name":"p","node":"n1","ask":{"gpus":3},
     "grants":[{"gpu":0,"milli":1000},{"gpu":1,"milli":1000},{"gpu":2,"milli":1000}]}]})");
  const auto json = nlohmann::json::parse(
      OutOf({"run", "--nodes", cluster, "--tasks", tasks_, "--policy", "best-fit", "--json", "-"}));
  EXPECT_EQ(json["pods_at_start"], 1);
  EXPECT_EQ(json["gpus_total"], 1);
  OutOf({"compare", "--policies", "best-fit", "--traces", tasks_, "--nodes", cluster, "--seeds",
         "1", "--report", Folder("on_a_cluster")});
}

TEST_F(BerthReplayCompare, ImportsAPublicTrace) {
  const std::string jobs = folder_.WriteText(
      "cluster_log.csv",
      "job_id,user,vc,gpu_num,cpu_num,node_num,state,submit_time,start_time,end_time,duration,"
      "queue\n7,u,v,8,16,2,COMPLETED,2020-06-09 18:41:01,2020-06-09 18:41:01,2020-06-09 "
      "18:42:01,60,0\n");
  const std::string out = folder_.WriteText("imported.csv", "");
  EXPECT_EQ(OutOf({"import", "--from", "helios", jobs, "--tasks", out}),
            "jobs: 1, tasks: 2, nodes: 0\n");
  EXPECT_EQ(TextOf(out),
            "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,creation_time,deletion_time\n"
            "7-0,8000,0,4,1000,,0,60\n"
            "7-1,8000,0,4,1000,,0,60\n");
}

TEST_F(BerthReplayCompare, OverwritesNoFileThatItReadsOrWrites) {
  ExpectFailure({"import", "--from", "helios", tasks_, "--tasks", Folder("./tasks.csv")}, 1,
                "--tasks: want a file of its own, got that of JOBS");
  const std::vector<std::string> run = {"run",  "--nodes",  nodes_,     "--tasks",
                                        tasks_, "--policy", "best-fit", "--json"};
  const auto with = [&run](std::initializer_list<std::string> more) {
    std::vector<std::string> words = run;
    words.insert(words.end(), more);
    return words;
  };
  ExpectFailure(with({nodes_}), 1, "--json: want a file of its own, got that of --nodes");
  ExpectFailure(with({Folder("a"), "--pods", Folder("a")}), 1,
                "--pods: want a file of its own, got that of --json");
  OutOf(with({"/dev/null", "--pods", "/dev/null"}));
}

TEST_F(BerthReplayCompare, WritesARowForEveryPod) {
  const std::string pods = folder_.WriteText("pods.csv", "");
  const std::vector<std::string> run = {"run",      "--nodes", nodes_,   "--tasks", tasks_,
                                        "--pods",   pods,      "--json", "-",       "--policy",
                                        "best-fit", "--seed",  "4"};
  const auto json = nlohmann::json::parse(OutOf(run));
  EXPECT_EQ(json["made_with"]["command"].get<std::string>().find("--pods"), std::string::npos);
  const std::string text = TextOf(pods);
  EXPECT_EQ(std::ranges::count(text, '\n'),
            1 + json["placed"].get<int>() + json["refused"].get<int>());
  std::vector<std::string> timed = run;
  timed.insert(timed.end(), {"--with-departures", "--config",
                             folder_.WriteText("own.yaml",
                                               "apiVersion: berth.dev/v1alpha1\n"
                                               "kind: BerthConfiguration\nprofile: best-fit\n")});
  OutOf(timed);
  const std::string rows = TextOf(pods);
  EXPECT_EQ(std::ranges::count(rows, '\n'), 1 + 5 + 5);
  for (const char* policy : {"\nbest-fit,", "\nown.yaml,"}) {
    EXPECT_NE(rows.find(policy + std::string("c-2,c,2,1000,n")), std::string::npos) << rows;
  }
}

TEST_F(BerthReplayCompare, WarnsOfModelsThatNoNodeHas) {
  const std::string tasks = folder_.WriteText(
      "models.csv",
      "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec\n"
      "a,4000,1024,1,500,T4\nb,8000,1024,1,1000,A10|T4\nc,8000,1024,1,1000,A10\n");
  ChildProcess run("berth-replay", {"run", "--nodes", nodes_, "--tasks", tasks, "--policy",
                                    "best-fit", "--json", "-"});
  EXPECT_EQ(run.Wait(), 0);
  EXPECT_EQ(
      run.err(),
      "berth-replay: warning: models: no node has the GPU model \"A10\" of 2 tasks; 1 of them "
      "fit nowhere\n");
  EXPECT_EQ(nlohmann::json::parse(run.out())["missing_models"].dump(),
            R"([{"model":"A10","stuck":1,"tasks":2}])");
}

TEST_F(BerthReplayCompare, SaysWhatIsWrongAndWhere) {
  const std::string untimed = folder_.WriteText(
      "untimed.csv", "name,cpu_milli,memory_mib,num_gpu,gpu_milli\na,1,1,1,1000\n");
  ExpectFailure(
      {"run", "--nodes", nodes_, "--tasks", untimed, "--policy", "best-fit", "--with-departures"},
      1, untimed + ":1: want the columns creation_time and deletion_time, got no");
  const std::string backwards =
      folder_.WriteText("backwards.csv",
                        "name,cpu_milli,memory_mib,num_gpu,gpu_milli,creation_time,deletion_"
                        "time\na,1,1,1,1000,9,8\n");
  ExpectFailure({"compare", "--traces", backwards, "--nodes", nodes_, "--policies", "best-fit",
                 "--with-departures", "--report", Folder("r")},
                1, backwards + ":2: column deletion_time: want at least creation_time (9), got 8");
  ExpectFailure(Compare("r", {"--shard", "5/4"}), 2, "want I/N with 1 <= I <= N");
  ExpectFailure({"compare", "--traces", "nowhere", "--nodes", nodes_, "--policies", "best-fit",
                 "--data", Folder(""), "--report", Folder("r")},
                1, "traces: want a file, a folder, \"generated\" or the name of a trace in ");
  ExpectFailure({"compare", "--traces", tasks_, "--nodes", nodes_, "--policies", "best", "--report",
                 Folder("r")},
                1, "policy: want one of best-fit");
  ExpectFailure({"merge", nodes_, "--report", Folder("r")}, 1,
                nodes_ + ": want a part of `berth-replay compare`, got: ");
  ExpectFailure(
      {"run", "--nodes", nodes_, "--tasks", tasks_, "--policy", "best-fit", "--load", "1"}, 2,
      "--load requires --with-departures");
}

TEST_F(BerthReplay, TopologyReplayIsRepeatableAndNamesABadMatrix) {
  const std::string matrix = folder_.WriteText(
      "machine.json", R"({"gpus":4,"nvlinks":[[0,4,0,0],[4,0,0,0],[0,0,0,4],[0,0,4,0]]})");
  const auto run = [&matrix] {
    ChildProcess process("berth-replay",
                         {"topology", "--matrix", matrix, "--mix", "1:1,2:1", "--jobs", "200",
                          "--seeds", "1", "--policies", "first-fit,berth", "--json", "-"});
    EXPECT_EQ(process.Wait(), 0) << process.err();
    auto rows = nlohmann::json::parse(process.out());
    for (auto& row : rows["results"]) EXPECT_EQ(row.erase("decision_us"), 1U);
    return rows;
  };
  const nlohmann::json report = run();
  EXPECT_EQ(report, run());
  EXPECT_EQ(report["seeds"], 1);
  EXPECT_TRUE(report["made_with"].contains("version"));
  const nlohmann::json& rows = report["results"];
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(rows[0]["policy"], "first-fit");
  EXPECT_EQ(rows[1]["policy"], "berth");
  EXPECT_LT(rows[0]["mean_ring_ratio"], rows[1]["mean_ring_ratio"]);
  const std::string wrong = folder_.WriteText("wrong.json", R"({"gpus":0})");
  ExpectFailure({"topology", "--matrix", wrong}, 1, "wrong.json: gpus: want 1..64, got 0");
  ExpectFailure({"topology", "--matrix", matrix, "--policies", "best"}, 1, "--policies: want one");
}

TEST(BerthReplayGang, TheSameSeedGivesTheSameBytesAndTheSameArrivalsToEachRule) {
  const std::vector<std::string> arguments = {"gang",        "--hours", "1",      "--seeds", "1",
                                              "--workloads", "racks",   "--json", "-"};
  ChildProcess first("berth-replay", arguments), second("berth-replay", arguments);
  ASSERT_EQ(first.Wait(), 0) << first.err();
  ASSERT_EQ(second.Wait(), 0);
  EXPECT_EQ(first.out(), second.out());
  const auto json = nlohmann::json::parse(first.out());
  ASSERT_EQ(json["results"].size(), 4U);
  const auto& berth = json["results"][0];
  EXPECT_EQ(berth["rule"], "berth");
  EXPECT_GT(berth["sizes"]["gangs"]["placed"], 0);
  EXPECT_EQ(berth["cross_domain_pairs"], 0) << "a rack is required";
  for (const auto& row : json["results"]) {
    EXPECT_EQ(row["sizes"]["gangs"]["arrived"], berth["sizes"]["gangs"]["arrived"]);
  }
}

TEST_F(BerthReplay, GangNamesTheWorkloadsAndRulesThereAre) {
  ExpectFailure({"gang", "--workloads", "none"}, 1,
                "workloads: want some of published racks roles shares, got \"none\"");
  ExpectFailure({"gang", "--hours", "0.1", "--rules", "best"}, 1, "rules: want some of berth");
  ExpectFailure({"gang", "--load", "0"}, 2, "--load");
}

}  // namespace
}  // namespace berth::test::replay_cli_test
