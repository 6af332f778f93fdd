// SPDX-License-Identifier: Apache-2.0
//
// Pods that name more than any pod needs. What every node would be compared with is bounded, and a
// pod beyond the bound is refused with the number; the rest of a pod may be as large as it likes.
#include <filesystem>
#include <memory>
#include <regex>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "cluster/values/held_bytes.h"
#include "server/wire/pod/pod_object.h"
#include "test/support/agent_world.h"
#include "test/support/build_paths.h"
#include "test/support/read_text.h"
#include "test/support/wire_fixture.h"

namespace berth::test::hostile_pods_test {
namespace {

class HostilePods : public testing::Test {
 protected:
  // Why the pod goes to no node; "" where it goes to n1.
  std::string RefusalOf(const Json& pod) {
    const Json answer = service_.Ask("filter", ArgsWithNames(pod, Json::array({"n1"})));
    const Json& refused = answer["FailedAndUnresolvableNodes"];
    return refused.contains("n1") ? refused["n1"].get<std::string>() : "";
  }

  TestService service_{{MachineWith("n1", 2)}};
};

Json OfModels(int count) {
  Json pod = PodWithGpus("u", 1);
  std::string models = "A100";
  for (int i = 1; i < count; ++i) models += "|M" + std::to_string(i);
  pod["metadata"]["annotations"] = {{"berth.dev/gpu-model", models}};
  return pod;
}

TEST_F(HostilePods, NameAtMost64Models) {
  EXPECT_EQ(RefusalOf(OfModels(64)), "");
  EXPECT_EQ(RefusalOf(OfModels(65)),
            "annotation berth.dev/gpu-model: want at most 64 GPU models, got 65");
  EXPECT_EQ(RefusalOf(OfModels(1'000)),
            "annotation berth.dev/gpu-model: want at most 64 GPU models, got 1000");
  EXPECT_EQ(RefusalOf(OfModels(40'000)),
            "annotation berth.dev/gpu-model: want at most 8192 bytes, got 268891");
}

TEST_F(HostilePods, HaveAtMost500ConditionsOnNodes) {
  const auto with = [](int terms, int expressions, int tolerations, int labels) {
    Json pod = PodWithGpus("u", 1);
    for (int i = 0; i < tolerations; ++i) {
      pod["spec"]["tolerations"].push_back(
          {{"key", "t" + std::to_string(i)}, {"operator", "Exists"}});
    }
    for (int i = 0; i < labels; ++i) pod["spec"]["nodeSelector"]["l" + std::to_string(i)] = "x";
    Json term = {{"matchExpressions", Json::array()}};
    for (int i = 0; i < expressions; ++i) {
      term["matchExpressions"].push_back({{"key", "k"}, {"operator", "DoesNotExist"}});
    }
    Json& required =
        pod["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"];
    for (int i = 0; i < terms; ++i) required["nodeSelectorTerms"].push_back(term);
    return pod;
  };
  const std::string wanted =
      "node selector, node affinity and tolerations: want at most 500 conditions, got ";
  EXPECT_EQ(RefusalOf(with(10, 40, 90, 0)), "");
  EXPECT_EQ(RefusalOf(with(10, 40, 90, 1)), wanted + "501");
  EXPECT_EQ(RefusalOf(with(1'000, 10, 0, 0)), wanted + "11000");
  EXPECT_EQ(RefusalOf(with(0, 0, 30'000, 0)), wanted + "30000");
  EXPECT_EQ(RefusalOf(with(501, 0, 0, 0)), wanted + "501") << "an empty alternative counts too";
}

TEST_F(HostilePods, MayListAsManyValuesAsTheyLike) {
  Json pod = PodWithGpus("u", 1);
  Json values = Json::array();
  for (int i = 20'000; i > 0; --i) values.push_back("n" + std::to_string(i));
  const auto with = [&](const char* op) {
    pod["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
       ["nodeSelectorTerms"] = {
           {{"matchFields", {{{"key", "metadata.name"}, {"operator", op}, {"values", values}}}}}};
    return pod;
  };
  EXPECT_EQ(RefusalOf(with("In")), "");
  EXPECT_NE(RefusalOf(with("NotIn")), "");
}

TEST_F(HostilePods, ALimitCountsOnlyWhereThereIsNoRequestOfTheSameName) {
  Json pod = PodWithGpus("u", 0);
  Json& resources = pod["spec"]["containers"][0]["resources"];
  for (int i = 0; i < 1'000; ++i) {
    resources["requests"]["a/" + std::to_string(i)] = "1";
    resources["limits"]["b/" + std::to_string(i)] = "1";
  }
  resources["requests"]["berth.dev/gpu-milli"] = "200";
  resources["limits"]["berth.dev/gpu-milli"] = "2000";
  EXPECT_EQ(RefusalOf(pod), "");
  resources["limits"]["nvidia.com/gpu"] = "1";
  resources["requests"].erase("nvidia.com/gpu");
  EXPECT_NE(RefusalOf(pod), "") << "whole GPUs and a share";
}

TEST_F(HostilePods, AskForMoreMigProfilesThanThereAreDevices) {
  Json pod = PodWithGpus("u", 0);
  Json& requests = pod["spec"]["containers"][0]["resources"]["requests"];
  for (int i = 0; i < 700; ++i) {
    requests["nvidia.com/mig-" + std::to_string(1 + i % 7) + "g." + std::to_string(5 + i / 7) +
             "gb"] = "1";
  }
  EXPECT_EQ(RefusalOf(pod), "pod asks for more MIG devices than any node has");
}

Json Annotated(const std::string& key, const std::string& value) {
  Json pod = PodWithGpus("u", 1);
  pod["metadata"]["annotations"][key] = value;
  return pod;
}

std::string ManyWords(int count, const std::string& separator = ",", const std::string& of = "w") {
  std::string words;
  for (int i = 0; i < count; ++i) words += (i > 0 ? separator : "") + of + std::to_string(i);
  return words;
}

TEST_F(HostilePods, NameAtMost64WordsInAList) {
  for (const char* key : {"nvidia.com/use-gputype", "nvidia.com/nouse-gputype",
                          "nvidia.com/use-gpuuuid", "nvidia.com/nouse-gpuuuid"}) {
    const std::string wanted = "annotation " + std::string(key) + ": want at most 64 entries, got ";
    EXPECT_EQ(RefusalOf(Annotated(key, ManyWords(64))).find("want at most"), std::string::npos)
        << key;
    EXPECT_EQ(RefusalOf(Annotated(key, ManyWords(65))), wanted + "65");
  }
  EXPECT_EQ(RefusalOf(Annotated("berth.dev/prefer", ManyWords(65))),
            "annotation berth.dev/prefer: want at most 64 traits, got 65");
  Json volcano = PodAsking("u", {{"volcano.sh/vgpu-number", "1"}});
  volcano["metadata"]["annotations"]["volcano.sh/vgpu-nouse-gpuuuid"] = ManyWords(65);
  EXPECT_EQ(RefusalOf(volcano),
            "annotation volcano.sh/vgpu-nouse-gpuuuid: want at most 64 entries, got 65");
}

TEST_F(HostilePods, HaveAnnotationsOfAtMost8KiB) {
  EXPECT_EQ(RefusalOf(Annotated("nvidia.com/use-gputype", "A100" + std::string(8188, ','))), "");
  EXPECT_EQ(RefusalOf(Annotated("nvidia.com/use-gputype", "A100" + std::string(8189, ','))),
            "annotation nvidia.com/use-gputype: want at most 8192 bytes, got 8193");
  Json none = Annotated("nvidia.com/use-gputype", std::string(8193, ','));
  for (const char* list : {"limits", "requests"}) {
    none["spec"]["containers"][0]["resources"][list].erase("nvidia.com/gpu");
  }
  EXPECT_EQ(RefusalOf(none), "") << "without GPUs it is kube-scheduler's";
}

TEST_F(HostilePods, AskForGpusInAtMost500Containers) {
  const auto with = [](int count) {
    Json pod = PodWithGpus("u", 1);
    for (int i = 1; i < count; ++i) {
      pod["spec"]["initContainers"].push_back(
          {{"name", "c" + std::to_string(i)},
           {"resources", {{"requests", {{"nvidia.com/gpu", "1"}}}}}});
    }
    return pod;
  };
  EXPECT_EQ(RefusalOf(with(500)), "");
  EXPECT_EQ(RefusalOf(with(501)), "pod asks for GPUs in 501 containers: want at most 500");
}

// --- nothing of them is kept

// Every annotation of pods that Berth reads, as its sources name them.
std::set<std::string> KeysOfPods(const wire::Dialects& dialects) {
  static const std::regex literal("\"([A-Za-z0-9][A-Za-z0-9_./-]{2,80})\"");
  std::set<std::string> keys;
  for (const char* room : {"server/wire", "server/dialects"}) {
    const auto root = std::filesystem::path(SourceDir()) / room;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(root)) {
      if (!entry.is_regular_file()) continue;
      const std::string text = ReadText(entry.path());
      for (auto at = std::sregex_iterator(text.begin(), text.end(), literal);
           at != std::sregex_iterator(); ++at) {
        if (dialects.ReadsPod(at->str(1))) keys.insert(at->str(1));
      }
    }
  }
  return keys;
}

TEST(HostileAnnotations, OfMigDevicesHaveUuidsOfAtMost64Characters) {
  const wire::PodRules rules(AllDialects(), DefaultConfig().resources);
  const auto read = [&rules](const std::string& key, const Json& value, const char* resource) {
    Json pod = PodAsking("u", {{resource, "1"}});
    pod["metadata"]["annotations"][key] = value.dump();
    pod["spec"]["nodeName"] = "n1";
    auto observed = wire::DecodeObservedPod(Padded(pod.dump()), rules);
    EXPECT_TRUE(observed);
    EXPECT_LE(HeldBytes(observed->placement), 1024U) << key;
    return observed->problem;
  };
  const std::string uuid(200'000, 'u');
  const Json hami = {
      {"gpuUUID", uuid}, {"profile", "1g.10gb"}, {"placement", {{"start", 0}, {"size", 1}}}};
  EXPECT_NE(read("hami.io/vgpu-mig-allocations", Json::array({hami}), "nvidia.com/gpu")
                .find("[0].gpuUUID: want at most 64 characters, got 200000"),
            std::string::npos);
  const Json one = {{"uuid", uuid}, {"profile", "1g.5gb"}};
  const auto berth = [](const Json& devices) {
    return Json{{"version", 1}, {"node", "n1"}, {"containers", {{"main", {{"mig", devices}}}}}};
  };
  EXPECT_NE(read("berth.dev/devices", berth(Json::array({one})), "nvidia.com/mig-1g.5gb")
                .find("mig[0].uuid: want at most 64 characters, got 200000"),
            std::string::npos);
  const Json many(65, {{"profile", "1g.5gb"}});
  EXPECT_NE(read("berth.dev/devices", berth(many), "nvidia.com/mig-1g.5gb")
                .find("mig[64]: want at most 64 devices"),
            std::string::npos);
}

TEST(HostileAnnotations, OfAnyKeyLeaveASmallRequest) {
  constexpr std::size_t kLarge = 250'000, kMostKept = 16'384;
  const wire::PodRules rules(AllDialects(), DefaultConfig().resources);
  const std::set<std::string> keys = KeysOfPods(rules.dialects());
  for (const char* known : {"nvidia.com/use-gputype", "volcano.sh/vgpu-use-gpuuuid",
                            "berth.dev/near", "berth.dev/prefer", "berth.dev/devices",
                            "hami.io/vgpu-devices-allocated", "scheduling.k8s.io/group-name",
                            "gang.scheduling.koordinator.sh/groups", "pod-group-name"}) {
    EXPECT_TRUE(keys.contains(known)) << known;
  }
  // The pods, with "@" for the key.
  std::vector<std::string> pods;
  for (const std::string& value :
       {ManyWords(45'000), ManyWords(45'000, "|"), ManyWords(32'000, "=a,", "k"),
        Json(std::vector<std::string>(32'000, "GPU-a")).dump(), std::string(kLarge, 'x')}) {
    ASSERT_GE(value.size(), kLarge);
    for (const char* resource : {"nvidia.com/gpu", "volcano.sh/vgpu-number"}) {
      Json pod = PodAsking("u", {{resource, "1"}});
      pod["metadata"]["annotations"] = {{"@", value}, {"hami.io/gpu-scheduler-policy", "spread"}};
      for (const char* node : {"", "n1"}) {
        pod["spec"]["nodeName"] = node;
        pods.push_back(pod.dump());
      }
    }
  }
  for (const std::string& key : keys) {
    for (std::size_t i = 0; i < pods.size(); ++i) {
      std::string text = pods[i];
      text.replace(text.find('@'), 1, key);
      const auto read = wire::DecodeObservedPod(PaddedText(std::move(text)), rules);
      ASSERT_TRUE(read) << key;
      EXPECT_LE(HeldBytes(read->pod) + HeldBytes(read->placement), kMostKept)
          << key << ", pod " << i;
      EXPECT_LE(read->problem.size(), 2048U) << key << ", pod " << i;
      EXPECT_TRUE(read->pod.shape.wants_gpu()) << key << ": nothing is lost";
    }
  }
}

TEST(HostileAnnotations, OfALabelSetThatSpreadsAreKeptShort) {
  Json pod = Annotated("berth.dev/spread", "node");
  for (int i = 0; i < 20'000; ++i) pod["metadata"]["labels"]["l" + std::to_string(i)] = "x";
  const wire::PodRules rules(AllDialects(), DefaultConfig().resources);
  const auto one = wire::DecodeObservedPod(Padded(pod.dump()), rules);
  EXPECT_LE(HeldBytes(one->pod), 8192U);
  pod["metadata"]["labels"]["l19999"] = "y";
  const auto other = wire::DecodeObservedPod(Padded(pod.dump()), rules);
  EXPECT_NE(one->pod.shape.workload, other->pod.shape.workload);
}

TEST_F(HostilePods, AskForAtMost64MigDevices) {
  const auto with = [](int count) {
    Json pod = PodWithGpus("u", 0);
    pod["spec"]["containers"][0]["resources"]["requests"] = {
        {"nvidia.com/mig-1g.5gb", std::to_string(count)}};
    return pod;
  };
  constexpr char kTooMany[] = "pod asks for more MIG devices than any node has";
  EXPECT_NE(RefusalOf(with(64)), kTooMany);
  EXPECT_EQ(RefusalOf(with(65)), kTooMany);
}

TEST_F(HostilePods, AskForAtMost32OtherResources) {
  Json pod = PodWithGpus("u", 1);
  Json& asks = pod["spec"]["containers"][0]["resources"]["limits"];
  for (int i = 0; i < 100; ++i)
    asks["example.com/device-" + std::to_string(i)] = "9000000000000000";
  asks["example.com/" + std::string(1000, 'n')] = "1";
  const auto read = wire::DecodeObservedPod(PaddedText(pod.dump()), service_.rules());
  ASSERT_TRUE(read) << read.error().message;
  const PodRequest& request = read->pod;
  ASSERT_NE(request.others, nullptr);
  EXPECT_EQ(request.others->size(), 32u);
  for (const OtherResource& other : *request.others) {
    EXPECT_LE(other.amount, kMostOtherAmount);
    EXPECT_LE(other.name.size(), kMostOtherNameBytes);
  }
}

TEST_F(HostilePods, HaveNamesOfAtMost253BytesAndUidsOf507) {
  const auto status = [&](const char* field, std::size_t bytes) {
    Json pod = PodWithGpus("u", 1);
    pod["metadata"][field] = std::string(bytes, 'n');
    const std::string names = ArgsWithNames(pod, Json::array({"n1"}));
    const int by_name = service_.StatusOf("filter", names);
    EXPECT_EQ(service_.StatusOf("prioritize", names), by_name);
    const Json victims = {{"Pod", pod}, {"NodeNameToMetaVictims", Json::object()}};
    EXPECT_EQ(service_.StatusOf("preempt", victims.dump()), by_name);
    return by_name;
  };
  for (const char* field : {"name", "namespace"}) {
    EXPECT_EQ(status(field, 253), 200) << field;
    EXPECT_EQ(status(field, 254), 400) << field;
  }
  EXPECT_EQ(status("uid", 507), 200);
  EXPECT_EQ(status("uid", 508), 400);
  EXPECT_EQ(status("uid", 5'000'000), 400);
  const auto victim = [&](std::size_t bytes) {
    const Json args = {
        {"Pod", PodWithGpus("u", 1)},
        {"NodeNameToMetaVictims", {{"n1", {{"Pods", {{{"UID", std::string(bytes, 'v')}}}}}}}}};
    return service_.StatusOf("preempt", args.dump());
  };
  EXPECT_EQ(victim(507), 200);
  EXPECT_EQ(victim(508), 400);
}

// What is kept of them has a bound; they are read all the same.
TEST_F(HostilePods, AreKeptInAtMost2MiB) {
  const auto with = [](std::size_t values) {
    Json pod = PodWithGpus("u", 1);
    pod["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
       ["nodeSelectorTerms"] = {{{"matchExpressions",
                                  {{{"key", "k"},
                                    {"operator", "NotIn"},
                                    {"values", std::vector<std::string>(values, "v")}}}}}};
    return pod;
  };
  EXPECT_EQ(RefusalOf(with(30'000)), "");
  EXPECT_TRUE(
      RefusalOf(with(70'000)).starts_with("conditions and annotations: want at most 2048 KiB"));
}

// A pod may name its node itself: nobody asks whether it fits, and it may ask for anything.
TEST(HostilePodsOnANode, MakeNoSumThatOverflows) {
  AgentWorld world(NodeWith({{"nvidia.com/gpu", "2"}, {"ephemeral-storage", "900Gi"}}, {}));
  const Json most = {{"cpu", "9223372036854775807"},
                     {"memory", "9223372036854775807"},
                     {"ephemeral-storage", "9223372036854775807"}};
  Node node = world.node();
  for (int i = 0; i < 1'000; ++i) {
    PodRecord record{
        world.Decode(PodAsking("p" + std::to_string(i), most)), {}, PodState::kBound, {}};
    record.placement = PlacementFor(node, record.pod.shape, {});
    node.Put(std::make_shared<const PodRecord>(std::move(record)));
    ASSERT_LT(node.free_cpu_milli(), 0) << i;
    ASSERT_LT(node.free_memory_bytes(), 0) << i;
    ASSERT_LT(node.free_ephemeral_bytes(), 0) << i;
  }
}

TEST_F(HostilePods, ARequestNamesAtMost200000Nodes) {
  const auto status = [&](std::string_view list, int names, const char* name) {
    std::string body = R"({"Pod":{"metadata":{"uid":"u"}},)";
    body += list;
    for (int i = 0; i < names; ++i) body.append(i == 0 ? "" : ",").append(name);
    body += list.ends_with("[") && list.find("items") == list.npos ? "]}" : "]}}";
    return service_.StatusOf("filter", body);
  };
  constexpr char kByName[] = R"("Nodes":null,"NodeNames":[)", kInAnyOrder[] = R"("NodeNames":[)",
                 kWhole[] = R"("Nodes":{"items":[)";
  for (const char* list : {kByName, kInAnyOrder}) {
    EXPECT_EQ(status(list, 200'000, R"("x")"), 200);
    EXPECT_EQ(status(list, 200'001, R"("x")"), 400);
  }
  EXPECT_EQ(status(kWhole, 200'000, "{}"), 200);
  EXPECT_EQ(status(kWhole, 200'001, "{}"), 400);
}

TEST_F(HostilePods, ANodeThatIsNamedTwiceForPreemptionIsSearchedOnce) {
  const std::string body =
      R"({"Pod":{"metadata":{"uid":"u"}},"NodeNameToMetaVictims":{"n1":{"Pods":[]},"n1":{"Pods":[]}}})";
  const http::HttpResponse answer = service_.Call("POST", "/extender/preempt", body);
  EXPECT_EQ(answer.body, R"({"NodeNameToMetaVictims":{"n1":{"Pods":[],"NumPDBViolations":0}}})");
}

}  // namespace
}  // namespace berth::test::hostile_pods_test
