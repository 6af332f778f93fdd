// SPDX-License-Identifier: Apache-2.0
//
// The commands on what kubectl prints of a cluster, in the place of a running Berth.
#include <filesystem>
#include <regex>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "test/support/child_process.h"
#include "test/support/data_dir.h"
#include "test/support/running_berth.h"

namespace berth::test::cluster_file_cli_test {
namespace {

// As `kubectl get nodes,pods,services,deviceclasses,resourceclaims,resourceslices -A -o json`
// prints it: GPU 1 is a claim's, and what a slice says of it.
constexpr char kListed[] = R"({"kind":"List","apiVersion":"v1","items":[
  {"kind":"Node","apiVersion":"v1","metadata":{"name":"n1","labels":{"nvidia.com/gpu.product":"Tesla-T4"}},
   "status":{"allocatable":{"cpu":"8","memory":"32Gi","pods":"110","nvidia.com/gpu":"4"},
             "conditions":[{"type":"Ready","status":"True"}]}},
  {"kind":"Pod","apiVersion":"v1","metadata":{"name":"a","namespace":"team","uid":"1"},
   "spec":{"nodeName":"n1","containers":[{"name":"c","resources":{"limits":{"nvidia.com/gpu":"2"}}}]},
   "status":{"phase":"Running"}},
  {"kind":"Pod","apiVersion":"v1","metadata":{"name":"b","namespace":"team","uid":"2",
                                              "creationTimestamp":"2026-01-01T00:00:00Z"},
   "spec":{"containers":[{"name":"c","resources":{"limits":{"nvidia.com/gpu":"4"}}}]},
   "status":{"phase":"Pending","conditions":[{"type":"PodScheduled","status":"False","reason":"Unschedulable",
             "message":"0/1 nodes are available: 1 Insufficient nvidia.com/gpu."}]}},
  {"kind":"Pod","apiVersion":"v1","metadata":{"name":"web","namespace":"team","uid":"3"},
   "spec":{"containers":[{"name":"c"}]},"status":{"phase":"Pending"}},
  {"kind":"Service","apiVersion":"v1","metadata":{"name":"s","namespace":"team"}},
  {"kind":"ResourceClaim","apiVersion":"resource.k8s.io/v1","metadata":{"name":"c","namespace":"team","uid":"4"},
   "spec":{"devices":{"requests":[{"name":"gpu","exactly":{"deviceClassName":"gpu.nvidia.com"}}]}},
   "status":{"allocation":{"devices":{"results":[
      {"request":"gpu","driver":"gpu.nvidia.com","pool":"n1","device":"gpu-1"}]}}}}]})";

// Without the seconds that a pod has waited, which go on, and without the moves, which are looked
// for within a time.
std::string Still(const std::string& answer) {
  static const std::regex kWaited(R"((_seconds": )\d+|\b(\d+(d|h|m|s|min))+\b)");
  static const std::regex kRoom(R"(\n *"room": \{[^}]*\},|\nRoom: [^\n]*)");
  return std::regex_replace(std::regex_replace(answer, kWaited, "$1N"), kRoom, "");
}

class ClusterFiles : public testing::Test {
 protected:
  static Outcome Run(const std::vector<std::string>& arguments) {
    return RunProgram("berth", arguments);
  }
  const TemporaryFolder folder_;
  const std::string cluster_ = folder_.WriteText("c.json", kListed);
};

TEST_F(ClusterFiles, APodThatWaitsInTheFileIsExplained) {
  const Outcome waits = Run({"explain", "pod", "team/b", "--cluster", cluster_});
  EXPECT_EQ(waits.code, 0) << waits.err;
  EXPECT_NE(waits.out.find("0/1 nodes are available: 1 Insufficient nvidia.com/gpu."),
            std::string::npos)
      << waits.out;
  EXPECT_NE(waits.out.find("n1: 1 of 4 GPUs idle, needs 4"), std::string::npos) << waits.out;
  const Outcome runs = Run({"explain", "pod", "a", "-n", "team", "--cluster", cluster_});
  EXPECT_NE(runs.out.find("n1"), std::string::npos) << runs.out << runs.err;
  const Outcome unknown = Run({"explain", "pod", "team/none", "--cluster", cluster_});
  EXPECT_EQ(unknown.code, 1);
  EXPECT_EQ(
      unknown.err.substr(unknown.err.find("berth: /")),
      "berth: " + cluster_ + ": pod team/none is not known: it does not exist, or it has ended\n");
}

TEST_F(ClusterFiles, APodOnANodeThatIsNotInTheFileIsNamedWithIt) {
  const std::string cluster = folder_.WriteText(
      "lost.json", std::regex_replace(kListed, std::regex("nodeName\":\"n1"), "nodeName\":\"gone"));
  const Outcome top = Run({"top", "--cluster", cluster});
  const std::string note = "pod team/a: on node gone, which the file does not have";
  EXPECT_NE(top.err.find(note), std::string::npos) << top.err;
  EXPECT_EQ(top.err.find(note), top.err.rfind(note)) << "said twice: " << top.err;
  const Outcome pod = Run({"explain", "pod", "team/a", "--cluster", cluster});
  EXPECT_EQ(pod.code, 1);
  EXPECT_NE(pod.err.find("pod team/a is on node gone, which is not known here"), std::string::npos)
      << pod.err;
}

TEST_F(ClusterFiles, DevicesThatClaimsAloneGetStandBelowTheTable) {
  std::string listed(kListed);
  listed.insert(listed.size() - 2, R"(,{"kind":"Node","apiVersion":"v1","metadata":{"name":"n2"},
   "status":{"allocatable":{"cpu":"8","pods":"110"}}},
  {"kind":"ResourceSlice","apiVersion":"resource.k8s.io/v1","metadata":{"name":"n2-gaudi"},
   "spec":{"driver":"gaudi.intel.com","nodeName":"n2",
           "pool":{"name":"n2","generation":1,"resourceSliceCount":1},
           "devices":[{"name":"accel0","attributes":{"model":{"string":"Gaudi2"}}},
                      {"name":"accel1","attributes":{"model":{"string":"Gaudi2"}}},
                      {"name":"accel2","attributes":{"model":{"string":"Gaudi3"}}}]}})");
  const Outcome top = Run({"top", "--cluster", folder_.WriteText("gaudi.json", listed)});
  for (const char* line : {"\n  2 Gaudi2 of gaudi.intel.com, by ResourceClaims alone\n",
                           "\n  1 Gaudi3 of gaudi.intel.com, by ResourceClaims alone\n"}) {
    EXPECT_NE(top.out.find(line), std::string::npos) << top.out << top.err;
  }
}

TEST_F(ClusterFiles, APodThatIsBeingDeletedIsToldSo) {
  std::string listed(kListed);
  listed.insert(listed.size() - 2, R"(,{"kind":"Pod","apiVersion":"v1","metadata":{"name":"gone",
    "namespace":"team","uid":"5","deletionTimestamp":"2026-01-01T00:00:00Z","finalizers":["a/b"]},
   "spec":{"containers":[{"name":"c","resources":{"limits":{"nvidia.com/gpu":"4"}}}]},
   "status":{"phase":"Pending"}})");
  const std::string cluster = folder_.WriteText("gone.json", listed);
  const Outcome told = Run({"explain", "pod", "team/gone", "--cluster", cluster});
  EXPECT_TRUE(
      told.out.starts_with("team/gone: is being deleted; it stays until its finalizers "
                           "are removed\n"))
      << told.out << told.err;
  const Outcome waits = Run({"explain", "waiting", "--cluster", cluster});
  EXPECT_EQ(waits.out.find("gone"), std::string::npos) << "it needs no node: " << waits.out;
}

// Two GPUs, one of them held by a claim, and claims that have no GPU yet.
constexpr char kClaims[] = R"({"kind":"List","apiVersion":"v1","items":[
  {"kind":"Node","apiVersion":"v1","metadata":{"name":"n0"},
   "status":{"allocatable":{"cpu":"8","memory":"32Gi","pods":"110"},
             "conditions":[{"type":"Ready","status":"True"}]}},
  {"kind":"Node","apiVersion":"v1","metadata":{"name":"n1"},
   "status":{"allocatable":{"cpu":"8","memory":"32Gi","pods":"110"},
             "conditions":[{"type":"Ready","status":"True"}]}},
  {"kind":"DeviceClass","apiVersion":"resource.k8s.io/v1","metadata":{"name":"gpu.nvidia.com"},
   "spec":{"selectors":[{"cel":{"expression":
      "device.driver == 'gpu.nvidia.com' && device.attributes['gpu.nvidia.com'].type == 'gpu'"}}]}},
  {"kind":"ResourceSlice","apiVersion":"resource.k8s.io/v1","metadata":{"name":"n1-gpu"},
   "spec":{"driver":"gpu.nvidia.com","nodeName":"n1",
           "pool":{"name":"n1","generation":1,"resourceSliceCount":1},
           "devices":[{"name":"gpu-0","attributes":{"uuid":{"string":"GPU-0"},"type":{"string":"gpu"},
                                                    "productName":{"string":"Tesla T4"}}},
                      {"name":"gpu-1","attributes":{"uuid":{"string":"GPU-1"},"type":{"string":"gpu"},
                                                    "productName":{"string":"Tesla T4"}}}]}},
  {"kind":"ResourceClaim","apiVersion":"resource.k8s.io/v1","metadata":{"name":"held","namespace":"ml","uid":"1"},
   "spec":{"devices":{"requests":[{"name":"g","exactly":{"deviceClassName":"gpu.nvidia.com"}}]}},
   "status":{"allocation":{"devices":{"results":[
      {"request":"g","driver":"gpu.nvidia.com","pool":"n1","device":"gpu-1"}]}}}},
  {"kind":"ResourceClaim","apiVersion":"resource.k8s.io/v1","metadata":{"name":"one","namespace":"ml","uid":"2","resourceVersion":"2"},
   "spec":{"devices":{"requests":[{"name":"g","exactly":{"deviceClassName":"gpu.nvidia.com"}}]}}},
  {"kind":"ResourceClaim","apiVersion":"resource.k8s.io/v1","metadata":{"name":"two","namespace":"ml","uid":"3","resourceVersion":"3"},
   "spec":{"devices":{"requests":[{"name":"g","exactly":{"deviceClassName":"gpu.nvidia.com","count":2}}]}}}]})";

// A pod "with-NAME" that asks for the claim NAME.
std::string PodOfClaim(const std::string& claim) {
  return R"({"kind":"Pod","apiVersion":"v1","metadata":{"name":"with-)" + claim +
         R"(","namespace":"ml","uid":"p-)" + claim + R"("},"spec":{
      "resourceClaims":[{"name":"g","resourceClaimName":")" +
         claim + R"("}],"containers":[{"name":"c","resources":{"claims":[{"name":"g"}]}}]},
      "status":{"phase":"Pending"}})";
}

TEST_F(ClusterFiles, APodThatGetsGpusByClaimsIsJudgedByTheDevicesOfTheFile) {
  std::string listed(kClaims);
  for (const char* claim : {"one", "two", "none"}) {
    listed.insert(listed.size() - 2, "," + PodOfClaim(claim));
  }
  const std::string cluster = folder_.WriteText("claims.json", listed);
  const auto explain = [&](const std::string& name) {
    return Run({"explain", "pod", name, "-n", "ml", "--cluster", cluster}).out;
  };
  const std::string fits = "ml/with-one: fits 1 of 2 nodes now; it asks for 1 GPU by claim\n";
  EXPECT_TRUE(explain("with-one").starts_with(fits)) << explain("with-one");
  EXPECT_TRUE(
      explain("with-two")
          .starts_with("ml/with-two: fits none of 2 nodes; it asks for 2 GPUs by claim, and "
                       "no node has that free\n"))
      << explain("with-two");
  EXPECT_TRUE(explain("with-none")
                  .starts_with("ml/with-none: asks for devices by ResourceClaim alone: "
                               "kube-scheduler alone chooses its "
                               "node; one of its ResourceClaims was not found\n"))
      << explain("with-none");
  const Running berth(folder_, listed);
  RawClient client = berth.Connect();
  EXPECT_TRUE(Get(client, "/debug/pods/ml/with-one?text").starts_with(fits));
  // The same is said before they exist.
  const std::string before = folder_.WriteText("before.json", kClaims);
  const std::string pods =
      folder_.WriteText("pods.json", R"({"kind":"List","items":[)" + PodOfClaim("one") + "," +
                                         PodOfClaim("two") + "]}");
  const Outcome plan = Run({"plan", "-f", pods, "--cluster", before});
  EXPECT_EQ(plan.out,
            "Pod ml/with-one: fits on n1\n"
            "Pod ml/with-two: does not fit: fits none of 2 nodes; it asks for 2 GPUs by claim, and "
            "no node has that free\n"
            "1 of 2 pods fit; idle GPUs: 1 before, 0 after\n")
      << plan.err;
  // Whether two pods of one claim have its device together is kube-scheduler's to say.
  std::string other = PodOfClaim("one");
  other.replace(other.find("with-one"), 8, "also-one");
  const std::string shared = folder_.WriteText(
      "shared.json", R"({"kind":"List","items":[)" + PodOfClaim("one") + "," + other + "]}");
  EXPECT_TRUE(Run({"plan", "-f", shared, "--cluster", before})
                  .out.starts_with("Pod ml/with-one: fits on n1; not judged: ResourceClaim one\n"
                                   "Pod ml/also-one: fits on n1; not judged: ResourceClaim one\n"
                                   "0 of 2 pods fit, 2 more"));
}

// A Job whose pods have a claim of their own each, and the template of these beside it.
TEST_F(ClusterFiles, ClaimsThatATemplateWouldMakeAreJudgedBesideEachOther) {
  const std::string before = folder_.WriteText("before.json", kClaims);
  const auto plan = [&](int gpus, int pods, const std::string& name, const std::string& more = "") {
    const std::string manifest = R"({"kind":"List","items":[
      {"kind":"Job","apiVersion":"batch/v1","metadata":{"name":"j","namespace":"ml"},"spec":{"parallelism":)" +
                                 std::to_string(pods) + R"(,"completions":)" +
                                 std::to_string(pods) + R"(,"template":{"spec":{
        "resourceClaims":[{"name":"g","resourceClaimTemplateName":"t"}],
        "containers":[{"name":"c","resources":{"claims":[{"name":"g"}]}}]}}}},
      {"kind":"ResourceClaimTemplate","apiVersion":"resource.k8s.io/v1","metadata":{"name":")" +
                                 name +
                                 R"(","namespace":"ml"},"spec":{"spec":{"devices":{"requests":[
        {"name":"r","exactly":{"deviceClassName":"gpu.nvidia.com","count":)" +
                                 std::to_string(gpus) + more + R"(}}]}}}}]})";
    return Run({"plan", "-f", folder_.WriteText("job.json", manifest), "--cluster", before}).out;
  };
  EXPECT_EQ(plan(1, 1, "t"),
            "Job ml/j: fits on n1\n1 of 1 pod fit; idle GPUs: 1 before, 0 after\n");
  EXPECT_EQ(plan(1, 2, "t"),
            "Job ml/j: 1 of 2 pods fit: 1 on n1\n"
            "  1 does not: beside the other pods of this plan its claims get no devices\n"
            "1 of 2 pods fit; idle GPUs: 1 before, 0 after\n");
  EXPECT_TRUE(plan(1, 2, "t", R"(,"selectors":[{"cel":{"expression":"true"}}])")
                  .starts_with("Job ml/j: 2 of 2 pods fit: 2 on n1; not judged: ResourceClaim g"))
      << "which GPUs suit is not counted";
  EXPECT_EQ(plan(2, 1, "t"),
            "Job ml/j: does not fit: fits none of 2 nodes; it asks for 2 GPUs by claim, and no "
            "node has that free\n0 of 1 pod fit; idle GPUs: 1 before, 1 after\n");
  EXPECT_NE(plan(1, 1, "other").find("; not judged: ResourceClaim g\n"), std::string::npos)
      << plan(1, 1, "other");
}

// Nothing is moved for claims, and no plan says that their pod fits.
TEST_F(ClusterFiles, NoMovesHelpAPodWhoseClaimsFindNoDevice) {
  const std::string before = folder_.WriteText("before.json", kClaims);
  const auto moves = [&](const char* claim) {
    const std::string pod = folder_.WriteText("pod.json", PodOfClaim(claim));
    return Run({"plan", "--make-room", "-f", pod, "--cluster", before}).out;
  };
  EXPECT_TRUE(moves("one").starts_with("ml/with-one fits without a move\n")) << moves("one");
  EXPECT_TRUE(moves("two").starts_with(
      "No moves help ml/with-two: fits none of 2 nodes; it asks for 2 GPUs by claim"))
      << moves("two");
}

// A file does not say which schedulers ask Berth.
TEST_F(ClusterFiles, ThePodOfAnotherSchedulerSaysWhose) {
  std::string listed(kClaims), pod = PodOfClaim("one");
  pod.replace(pod.find("\"resourceClaims\""), 0, R"("schedulerName":"volcano",)");
  listed.insert(listed.size() - 2, "," + pod + "," + PodOfClaim("two"));
  const std::string cluster = folder_.WriteText("claims.json", listed);
  const auto explain = [&](const std::string& name) {
    return Run({"explain", "pod", name, "-n", "ml", "--cluster", cluster}).out;
  };
  EXPECT_NE(explain("with-one").find("\nScheduler: volcano\n"), std::string::npos);
  EXPECT_EQ(explain("with-two").find("Scheduler: "), std::string::npos);
}

TEST_F(ClusterFiles, ANameWithoutANamespaceIsInTheDefaultOne) {
  const Outcome told = Run({"explain", "pod", "nope", "--cluster", cluster_});
  EXPECT_EQ(told.code, 1);
  EXPECT_NE(told.err.find("pod default/nope is not known"), std::string::npos) << told.err;
}

TEST_F(ClusterFiles, TopCountsThePodsThatWaitAndWhatClaimsHold) {
  const Outcome top = Run({"top", "--cluster", cluster_, "--json"});
  EXPECT_EQ(top.code, 0) << top.err;
  const Json json = Json::parse(top.out);
  EXPECT_EQ(json["models"][0]["idle"], 1) << top.out;
  EXPECT_EQ(json["waiting"].size(), 1U) << top.out;
}

std::string MemberOf(const std::string& gang, int number, int gpus) {
  const std::string name = gang + "-" + std::to_string(number);
  return R"({"kind":"Pod","apiVersion":"v1","metadata":{"name":")" + name +
         R"(","namespace":"team","uid":")" + name + R"(","annotations":{"berth.dev/gang":")" +
         gang +
         R"(","berth.dev/gang-size":"2"}},"spec":{"containers":[{"name":"c","resources":{"limits":)" +
         R"({"nvidia.com/gpu":")" + std::to_string(gpus) +
         R"("}}}]},"status":{"phase":"Pending"}})";
}

TEST_F(ClusterFiles, TopCountsWhatAWaitingGangCouldHaveAsIdle) {
  const std::string more = "," + MemberOf("g", 0, 2) + "," + MemberOf("g", 1, 2);
  std::string listed(kListed);
  listed.insert(listed.size() - 2, more);
  listed.replace(listed.find(R"("nvidia.com/gpu":"4")"), 20, R"("nvidia.com/gpu":"8")");
  const std::string file = folder_.WriteText("g.json", listed);
  EXPECT_NE(Run({"explain", "gang", "team/g", "--cluster", file}).out.find("planned  n1"),
            std::string::npos);
  const Json top = Json::parse(Run({"top", "--cluster", file, "--json"}).out);
  EXPECT_EQ(top["models"][0]["idle"], 5) << top;
  EXPECT_EQ(top["models"][0]["allocated_milli"], 3000) << top;
}

TEST_F(ClusterFiles, APlanLeavesEveryAnswerAsItWas) {
  Running berth(folder_, kListed);
  const auto ask = [&berth](std::vector<std::string> words) {
    words.insert(words.end(), {"--server", "http://127.0.0.1:" + std::to_string(berth.port())});
    return Run(words);
  };
  const auto answers = [&] {
    RawClient client = berth.Connect();
    EXPECT_TRUE(client.Send("GET /debug/snapshot HTTP/1.1\r\nHost: x\r\n\r\n"));
    std::string all = client.Read().body;
    for (const auto& words : {std::vector<std::string>{"explain", "waiting"},
                              {"explain", "nodes"},
                              {"explain", "pod", "team/b"},
                              {"explain", "node", "n1"},
                              {"top"},
                              {"plan", "--grow", "2"}}) {
      all += ask(words).out;
    }
    return all;
  };
  const std::string before = answers();
  const std::string pods = folder_.WriteText(
      "new.json", R"({"kind":"List","apiVersion":"v1","items":[)" + MemberOf("new", 0, 1) + "," +
                      MemberOf("new", 1, 1) + "," + MemberOf("b", 0, 4) + "]}");
  EXPECT_EQ(ask({"plan", "-f", pods}).code, 0);
  EXPECT_EQ(ask({"plan", "-f", pods, "--add-nodes", "2", "--like", "n1"}).code, 0);
  EXPECT_EQ(ask({"plan", "--make-room", "-f", pods}).code, 0);
  EXPECT_EQ(answers(), before);
}

TEST_F(ClusterFiles, RunningPodsAreFoundByAPartOfTheirNames) {
  std::string listed(kListed), more;
  for (int i = 0; i < 25; ++i) {
    more +=
        R"(,{"kind":"Pod","apiVersion":"v1","metadata":{"name":"job-)" + std::to_string(i) +
        R"(","namespace":"other","uid":"j)" + std::to_string(i) +
        R"("},"spec":{"nodeName":"n1","containers":[{"name":"c"}]},"status":{"phase":"Running"}})";
  }
  listed.insert(listed.size() - 2, more);
  const Running berth(folder_, listed);
  RawClient client = berth.Connect();
  const Json one = Json::parse(Get(client, "/debug/pods?eam/a"));
  EXPECT_EQ(one["pods"], Json::parse(R"([{"pod":"team/a","node":"n1"}])"));
  EXPECT_EQ(one["more"], 0);
  EXPECT_EQ(Json::parse(Get(client, "/debug/pods?team/b"))["pods"].size(), 0U) << "it waits";
  const Json many = Json::parse(Get(client, "/debug/pods?job-"));
  EXPECT_EQ(many["pods"].size(), 20U);
  EXPECT_EQ(many["more"], 5);
  client.Send(Request("GET", "/debug/pods"));
  EXPECT_EQ(client.Read().status, 400);
}

TEST_F(ClusterFiles, WhatIsNotReadIsANoteOnStderr) {
  const Outcome node = Run({"explain", "node", "n1", "--cluster", cluster_, "--json"});
  EXPECT_EQ(node.code, 0);
  EXPECT_TRUE(Json::accept(node.out)) << node.out;
  EXPECT_NE(node.err.find("note: " + cluster_ + ": not read: 1 Service\n"), std::string::npos)
      << node.err;
}

TEST_F(ClusterFiles, TheServerHasWhatTheCommandsHave) {
  Running berth(folder_, kListed);
  const std::vector<std::string> server = {"--server",
                                           "http://127.0.0.1:" + std::to_string(berth.port())};
  for (std::vector<std::string> asked : {std::vector<std::string>{"explain", "pod", "team/b"},
                                         {"explain", "pod", "team/web"},
                                         {"explain", "node", "n1"},
                                         {"explain", "waiting"},
                                         {"explain", "nodes", "--json"},
                                         {"top", "--json"},
                                         {"plan", "--grow", "2"}}) {
    std::vector<std::string> of_file = asked, of_server = asked;
    of_file.insert(of_file.end(), {"--cluster", cluster_});
    of_server.insert(of_server.end(), server.begin(), server.end());
    EXPECT_EQ(Still(Run(of_file).out), Still(Run(of_server).out)) << asked[0] << " " << asked[1];
  }
  RawClient client = berth.Connect();
  ASSERT_TRUE(client.Send("GET /debug/live HTTP/1.1\r\nHost: x\r\n\r\n"));
  const RawResponse page = client.Read();
  const Json live = Json::parse(page.body);
  EXPECT_EQ(live["waiting"].size(), 1U) << page.body;
}

// Asks a server and the commands about all that waits in the file.
void ExpectTheSame(const std::string& file) {
  const Running berth(file, "/dev/null");
  const auto both = [&](std::vector<std::string> words) {
    std::vector<std::string> of_server = words;
    words.insert(words.end(), {"--cluster", file});
    of_server.insert(of_server.end(),
                     {"--server", "http://127.0.0.1:" + std::to_string(berth.port())});
    const std::string out = RunProgram("berth", words).out;
    EXPECT_EQ(Still(RunProgram("berth", of_server).out), Still(out)) << words[1] << " " << words[2];
    return out;
  };
  const Json list = Json::parse(both({"explain", "waiting", "--json"}));
  ASSERT_GT(list["waiting"].size(), 0U);
  for (const Json& unit : list["waiting"]) {
    const std::string kind = unit.contains("gang") ? "gang" : "pod";
    const std::string told = both({"explain", kind, unit[kind].get<std::string>(), "--json"});
    if (kind == "pod") continue;
    for (const Json& member : Json::parse(told)["members"]) {
      both({"explain", "pod", member["pod"].get<std::string>()});
    }
  }
}

TEST_F(ClusterFiles, TheServerAndTheCommandsLookAtGangsAlike) {
  std::string more;
  for (int gang = 0; gang < 7; ++gang) {  // more than one look plans
    for (int i = 0; i < 2; ++i) {
      more += "," + MemberOf("g" + std::to_string(gang), i, gang == 0 ? 1 : 3);
    }
  }
  std::string listed(kListed);
  listed.insert(listed.size() - 2, more);
  listed.replace(listed.find(R"("nvidia.com/gpu":"4")"), 20, R"("nvidia.com/gpu":"8")");
  const std::string file = folder_.WriteText("g.json", listed);
  ExpectTheSame(file);
  const std::string lacks = "needs room for 2 pods with 3 GPUs each, has room for 1";
  EXPECT_NE(Run({"explain", "pod", "team/g6-0", "--cluster", file}).out.find(lacks),
            std::string::npos);
  const Running berth(file, "/dev/null");
  RawClient client = berth.Connect();
  const Json gangs = Json::parse(Get(client, "/debug/gangs"));
  ASSERT_EQ(gangs.size(), 7U);
  for (const Json& gang : gangs) {
    const bool fits = gang["gang"] == "berth:team/g0";
    EXPECT_EQ(gang["state"], fits ? "planned" : "waiting") << gang;
    EXPECT_EQ(gang["why"].get<std::string>().find(lacks) == std::string::npos, fits) << gang;
  }
}

TEST_F(ClusterFiles, TheServerAndTheCommandsAnswerAlikeAboutPublishedClusters) {
  const std::filesystem::path clusters = DataDir() / "clusters";
  BERTH_NEEDS_DATA(clusters);
  for (const auto& file : std::filesystem::directory_iterator(clusters)) {
    if (file.path().extension() == ".json") ExpectTheSame(file.path());
  }
}

TEST_F(ClusterFiles, ListsAsDocumentsOfYamlAreReadWhole) {
  const Json items = Json::parse(kListed)["items"];
  const auto list_of = [&items](const std::string& kind) {
    Json list = {{"kind", kind == "" ? "List" : kind + "List"}, {"apiVersion", "v1"}};
    for (Json item : items) {
      if (kind == "" ? item["kind"] != "Node" && item["kind"] != "Pod" : item["kind"] == kind) {
        if (kind == "Node") item.erase("kind");
        list["items"].push_back(item);
      }
    }
    return list.dump();
  };
  const std::string file =
      folder_.WriteText("c.yaml", "--- " + list_of("Node") + "\n--- " + list_of("Pod") + "\n--- " +
                                      list_of("") + "\n");
  for (const char* what : {"waiting", "nodes"}) {
    const Outcome read = Run({"explain", what, "--cluster", file});
    EXPECT_EQ(read.code, 0) << read.err;
    EXPECT_EQ(Still(read.out), Still(Run({"explain", what, "--cluster", cluster_}).out));
  }
  const std::string slim = folder_.WriteText("s.json", Run({"snapshot", "--cluster", file}).out);
  EXPECT_EQ(Still(Run({"top", "--json", "--cluster", slim}).out),
            Still(Run({"top", "--json", "--cluster", cluster_}).out));
}

TEST_F(ClusterFiles, AServerAndAFileAreNotAskedAtOnce) {
  EXPECT_EQ(Run({"top", "--cluster", cluster_, "--server", "x:1"}).code, 2);
  EXPECT_EQ(Run({"top", "--cluster", cluster_, "--context", "x"}).code, 2);
  EXPECT_EQ(Run({"top", "--config", cluster_}).code, 2);
}

}  // namespace
}  // namespace berth::test::cluster_file_cli_test
