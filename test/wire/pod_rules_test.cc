// SPDX-License-Identifier: Apache-2.0
//
// What a pod asks for, from the asks of its parts.
#include "server/wire/pod/pod_rules.h"

#include <gtest/gtest.h>

#include "test/support/dialects.h"
#include "test/support/wire_fixture.h"

namespace berth::wire::pod_rules_test {
namespace {

using test::Json;

const PodRules& Rules() {
  static const PodRules rules(test::AllDialects(), DefaultConfig().resources);
  return rules;
}

// The request of that pod, as filter would read it.
PodRequest Read(const Json& pod) {
  PaddedText text = test::Padded(Json{{"Pod", pod}, {"NodeNames", Json::array()}}.dump());
  auto args = DecodeExtenderArgs(text, Rules(), NodeNameTable(std::vector<std::string>()));
  EXPECT_TRUE(args && args->pod) << pod;
  return *args->pod;
}

Json Container(const std::string& name, const Json& requests, bool sidecar = false) {
  Json container = {{"name", name}, {"resources", {{"requests", requests}}}};
  if (sidecar) container["restartPolicy"] = "Always";
  return container;
}

Json Spec(const Json& init, const Json& containers) {
  return {{"metadata", {{"name", "p"}, {"namespace", "ns"}, {"uid", "u"}}},
          {"spec", {{"initContainers", init}, {"containers", containers}}}};
}

Json Annotated(const std::string& key, const std::string& value) {
  Json pod = test::PodWithGpus("u", 1);
  pod["metadata"]["annotations"] = {{"example.com/other", "x"}, {key, value}};
  return pod;
}

// A pod's shape that asks for so many whole GPUs.
RequestShape Whole(std::int64_t cpu_milli, int gpus) {
  RequestShape shape{cpu_milli, std::int64_t{1} << 30, WholeGpus{gpus}, {}};
  shape.gpu_resource = "nvidia.com/gpu";
  return shape;
}

TEST(PodRules, ContainersAddUp) {
  const PodRequest pod =
      Read(Spec(Json::array(), {Container("a", {{"cpu", "1"}, {"memory", "1Gi"}}),
                                Container("b", {{"cpu", "250m"}, {"nvidia.com/gpu", "2"}}),
                                Container("c", {{"nvidia.com/gpu", "1"}})}));
  RequestShape want = Whole(1250, 3);
  want.gpu_steps = {{2}, {1}};
  EXPECT_EQ(pod.shape, want);
  EXPECT_EQ(pod.id, (PodId{"u", "ns", "p"}));
}

TEST(PodRules, AnInitContainerCountsOnlyAsFarAsItNeedsMore) {
  const Json mains = Json::array({Container("a", {{"cpu", "2"}, {"memory", "1Gi"}})});
  const PodRequest less =
      Read(Spec(Json::array({Container("i", {{"cpu", "1"}, {"memory", "2Gi"}})}), mains));
  EXPECT_EQ(less.shape.cpu_milli, 2000);
  EXPECT_EQ(less.shape.memory_bytes, std::int64_t{2} << 30);
  const PodRequest two =
      Read(Spec({Container("i", {{"cpu", "3"}}), Container("j", {{"cpu", "4"}})}, mains));
  EXPECT_EQ(two.shape.cpu_milli, 4000);  // they run one after the other
}

TEST(PodRules, SidecarsAddToContainersAndToLaterInitContainers) {
  const Json mains = Json::array({Container("m", {{"cpu", "1"}})});
  EXPECT_EQ(Read(Spec(Json::array({Container("s", {{"cpu", "2"}}, true)}), mains)).shape.cpu_milli,
            3000);
  // An init container before the sidecar does not run beside it, one after it does.
  EXPECT_EQ(
      Read(Spec({Container("i", {{"cpu", "4"}}), Container("s", {{"cpu", "2"}}, true)}, mains))
          .shape.cpu_milli,
      4000);
  EXPECT_EQ(
      Read(Spec({Container("s", {{"cpu", "2"}}, true), Container("i", {{"cpu", "4"}})}, mains))
          .shape.cpu_milli,
      6000);
}

TEST(PodRules, RestartPolicyMakesOnlyInitContainersSidecars) {
  Json pod = Spec(Json::array({Container("i", {{"cpu", "1"}})}),
                  Json::array({Container("m", {{"cpu", "1"}}, true)}));
  pod["spec"]["initContainers"][0]["restartPolicy"] = "OnFailure";
  EXPECT_EQ(Read(pod).shape.cpu_milli, 1000);
}

TEST(PodRules, InitContainersCountWhereverTheTextHasThem) {
  Json pod;
  pod["spec"]["containers"] = Json::array({Container("m", {{"nvidia.com/gpu", "1"}})});
  pod["spec"]["initContainers"] = {Container("s", {{"nvidia.com/gpu", "2"}}, true),
                                   Container("i", {{"nvidia.com/gpu", "1"}})};
  const PodRequest read = Read(pod);
  EXPECT_EQ(read.shape.gpu_count(), 3);
  ASSERT_EQ(read.containers.size(), 3u);
  EXPECT_EQ(read.containers[0].name, "s");
  EXPECT_FALSE(read.containers[0].ends_first);
  EXPECT_EQ(read.containers[1].name, "i");
  EXPECT_TRUE(read.containers[1].ends_first);
  EXPECT_EQ(read.containers[2].name, "m");
  EXPECT_EQ(read.containers[2].gpus, GpuAsk(WholeGpus{1}));
}

TEST(PodRules, WholeGpusAreKnownByContainerForAtMost16) {
  const auto steps = [](const Json& init, const Json& mains) {
    return Read(Spec(init, mains)).shape.gpu_steps;
  };
  const Json one = {{"nvidia.com/gpu", "1"}}, two = {{"nvidia.com/gpu", "2"}};
  EXPECT_EQ(steps({Container("i", two), Container("s", one, true)},
                  {Container("m", two), Container("cpu", {{"cpu", "1"}})}),
            (std::vector<GpuStep>{{2, true}, {1, false}, {2, false}}));
  EXPECT_TRUE(steps(Json::array(), Json::array({Container("m", two)})).empty());
  Json mains = Json::array();
  for (int i = 0; i < 16; ++i) mains.push_back(Container("m" + std::to_string(i), one));
  EXPECT_EQ(steps(Json::array(), mains).size(), 16U);
  mains.push_back(Container("one-more", one));
  EXPECT_TRUE(steps(Json::array(), mains).empty());
}

TEST(PodRules, PodOverheadAddsAndPodResourcesReplaceTheSum) {
  Json pod = Spec(Json::array(), Json::array({Container("m", {{"cpu", "1"}, {"memory", "4Gi"}})}));
  pod["spec"]["overhead"] = {{"cpu", "100m"}, {"memory", "1Mi"}};
  EXPECT_EQ(Read(pod).shape.cpu_milli, 1100);
  pod["spec"]["resources"] = {{"requests", {{"cpu", "3"}, {"nvidia.com/gpu", "8"}}}};
  EXPECT_EQ(Read(pod).shape.cpu_milli, 3100);
  EXPECT_EQ(Read(pod).shape.memory_bytes, (std::int64_t{4} << 30) + (1 << 20));
  EXPECT_FALSE(Read(pod).shape.wants_gpu());  // GPUs are asked for by containers
  pod["spec"]["resources"]["requests"]["memory"] = "2Gi";
  EXPECT_EQ(Read(pod).shape.memory_bytes, (std::int64_t{2} << 30) + (1 << 20));
}

TEST(PodRules, EphemeralStorageAddsUpAsCpuDoes) {
  const auto gib = [](std::int64_t amount) { return amount << 30; };
  const Json disk = {{"ephemeral-storage", "10Gi"}}, more = {{"ephemeral-storage", "25Gi"}};
  Json pod = Spec(Json::array(), {Container("a", disk), Container("b", disk)});
  EXPECT_EQ(Read(pod).shape.ephemeral_bytes, gib(20));
  pod["spec"]["initContainers"] = {Container("s", disk, true), Container("i", more)};
  EXPECT_EQ(Read(pod).shape.ephemeral_bytes, gib(35)) << "the init container beside the sidecar";
  pod["spec"]["overhead"] = {{"ephemeral-storage", "1Gi"}};
  EXPECT_EQ(Read(pod).shape.ephemeral_bytes, gib(36));
  pod["spec"]["containers"][0]["resources"] = {{"limits", {{"ephemeral-storage", "30Gi"}}}};
  EXPECT_EQ(Read(pod).shape.ephemeral_bytes, gib(51)) << "a limit stands in for a request";
  // The pod as a whole has none (KEP-2837): cpu, memory and hugepages alone.
  pod["spec"]["resources"] = {{"requests", {{"cpu", "1"}}}};
  EXPECT_EQ(Read(pod).shape.ephemeral_bytes, gib(51));
}

TEST(PodRules, ALimitStandsInForARequestThatIsNotThere) {
  Json pod = Spec(Json::array(), Json::array({Container("m", {{"memory", "1Gi"}})}));
  pod["spec"]["containers"][0]["resources"]["limits"] = {
      {"cpu", "2"}, {"memory", "8Gi"}, {"nvidia.com/gpu", "1"}};
  EXPECT_EQ(Read(pod).shape, Whole(2000, 1));
}

TEST(PodRules, ARequestOfZeroIsARequest) {
  Json pod = Spec(Json::array(), Json::array({Container("m", {{"cpu", "0"}, {"memory", "0"}})}));
  pod["spec"]["containers"][0]["resources"]["limits"] = {{"cpu", "2"}, {"memory", "8Gi"}};
  EXPECT_EQ(Read(pod).shape, (RequestShape{}));
}

TEST(PodRules, SharesOfContainersArePartsOfOneGpu) {
  const PodRequest pod = Read(
      Spec(Json::array(),
           {Container("a", {{"berth.dev/gpu-milli", "300"}, {"berth.dev/gpu-memory-mib", "1"}}),
            Container("b", {{"berth.dev/gpu-milli", "200"}}), Container("c", {{"cpu", "1"}})}));
  EXPECT_EQ(pod.shape.gpus, GpuAsk(GpuShare{500, 1}));
  ASSERT_EQ(pod.containers.size(), 2u);
  EXPECT_EQ(pod.containers[1].gpus, GpuAsk(GpuShare{200, 0}));
}

TEST(PodRules, AShareMayBeMemoryAlone) {
  const PodRequest pod = Read(
      Spec(Json::array(), Json::array({Container("a", {{"berth.dev/gpu-memory-mib", "4096"}})})));
  EXPECT_EQ(pod.refusal, "");
  EXPECT_EQ(pod.shape.gpus, GpuAsk(GpuShare{0, 4096}));
}

TEST(PodRules, WhatNoNodeCanGiveIsRefused) {
  struct Case {
    const char* description;
    Json requests;
    std::string refusal;
  };
  const std::string both = "pod asks for whole GPUs and for a GPU share: want one of the two";
  const Case cases[] = {
      {"whole and share", {{"nvidia.com/gpu", "1"}, {"berth.dev/gpu-milli", "1"}}, both},
      {"whole and memory", {{"nvidia.com/gpu", "1"}, {"berth.dev/gpu-memory-mib", "1"}}, both},
      {"65,537 GPUs", {{"nvidia.com/gpu", "65537"}}, "pod asks for more GPUs than any node has"},
      {"too large a share",
       {{"berth.dev/gpu-milli", "1001"}},
       "pod asks for a GPU share larger than one GPU"}};
  for (const Case& c : cases) {
    EXPECT_EQ(Read(Spec(Json::array(), Json::array({Container("m", c.requests)}))).refusal,
              c.refusal)
        << c.description;
  }
  for (const char* fits : {"64", "1"}) {
    EXPECT_EQ(Read(Spec(Json::array(), Json::array({Container("m", {{"nvidia.com/gpu", fits}})})))
                  .refusal,
              "");
  }
  EXPECT_EQ(
      Read(Spec(Json::array(), Json::array({Container("m", {{"berth.dev/gpu-milli", "1000"}})})))
          .refusal,
      "");
}

TEST(PodRules, TheFirstProblemNamesItsPlace) {
  Json pod = Spec(Json::array({Container("i", {{"cpu", "1"}})}),
                  {Container("a", {{"cpu", "1"}}), Container("b", {{"memory", "much"}})});
  pod["spec"]["overhead"] = {{"cpu", "-1"}};
  pod["spec"]["resources"] = {{"requests", {{"cpu", "?"}}}};
  EXPECT_TRUE(Read(pod).refusal.starts_with("containers[1].resources.requests.memory: want a"))
      << Read(pod).refusal;
  pod["spec"]["containers"][1]["resources"] = {{"limits", {{"nvidia.com/gpu", "one"}}}};
  EXPECT_TRUE(Read(pod).refusal.starts_with("containers[1].resources.limits.nvidia.com/gpu: want"));
  pod["spec"]["containers"][1]["resources"] = nullptr;
  EXPECT_EQ(Read(pod).refusal, "overhead.cpu: want 0 or more, got \"-1\"");
  pod["spec"].erase("overhead");
  EXPECT_TRUE(Read(pod).refusal.starts_with("resources.requests.cpu: want a quantity"));
  pod["spec"].erase("resources");
  EXPECT_EQ(Read(pod).refusal, "");
}

TEST(PodRules, AnAnnotationThatIsNotKnownRefusesThePodAndIsNamed) {
  EXPECT_EQ(Read(Annotated("berth.dev/gangs", "g")).refusal,
            "annotation berth.dev/gangs: not known to this version of berth, did you mean "
            "berth.dev/gang?");
  EXPECT_EQ(Read(Annotated("berth.dev/GPU-model", "A100")).refusal,
            "annotation berth.dev/GPU-model: not known to this version of berth, did you mean "
            "berth.dev/gpu-model?");
  EXPECT_EQ(Read(Annotated("berth.dev/unheard-of", "x")).refusal,
            "annotation berth.dev/unheard-of: not known to this version of berth");
}

// What a tenant writes is shown to others, in terminals too.
TEST(PodRules, AnAnnotationMovesNoCursorAndBeginsNoLine) {
  EXPECT_EQ(
      Read(Annotated("berth.dev/link", "x\x1b[2J\nall is well")).refusal.find_first_of("\x1b\n"),
      std::string::npos);
  const PodRequest pod = Read(Annotated("berth.dev/gpu-model", "H\x1b[2J\nfine"));
  EXPECT_EQ(pod.shape.models, (std::vector<std::string>{"H [2J fine"}));
}

TEST(PodRules, EveryAnnotationThatIsSuggestedIsKnown) {
  for (const char* name : {"gpu-model",
                           "link",
                           "numa",
                           "pattern",
                           "min-bandwidth-gbps",
                           "isolation",
                           "min-gpu-memory-gib",
                           "mig-min-slices",
                           "mig-min-memory-gib",
                           "spread",
                           "spread-by",
                           "near",
                           "far",
                           "min-driver",
                           "min-cuda",
                           "min-compute-capability",
                           "workload-class",
                           "prefer",
                           "required-domain",
                           "preferred-domain",
                           "gang",
                           "gang-by",
                           "gang-size",
                           "gang-min",
                           "checkpointed-at",
                           "keep",
                           "expected-duration"}) {
    const std::string key = std::string("berth.dev/") + name;
    const std::string typed = Read(Annotated(key + "x", "1")).refusal;
    EXPECT_TRUE(typed.ends_with("did you mean " + key + "?")) << typed;
    EXPECT_EQ(Read(Annotated(key, "1")).refusal.find("not known"), std::string::npos) << key;
  }
}

TEST(PodRules, OwnAnnotationsAndThoseOfOthersAreAccepted) {
  for (const char* key : {"berth.dev/devices", "berth.dev/decision", "berth.device/x", "x"}) {
    EXPECT_EQ(Read(Annotated(key, "{}")).refusal, "") << key;
  }
}

TEST(PodRules, APodMaySayThatItIsNotToBeMoved) {
  EXPECT_FALSE(Read(Annotated("x", "true")).keep);
  EXPECT_TRUE(Read(Annotated("berth.dev/keep", "true")).keep);
  EXPECT_FALSE(Read(Annotated("berth.dev/keep", "false")).keep);
  EXPECT_EQ(Read(Annotated("berth.dev/keep", "false")).refusal, "");
  EXPECT_EQ(Read(Annotated("berth.dev/keep", "yes")).refusal,
            "annotation berth.dev/keep: want one of true, false, got \"yes\"");
}

TEST(PodRules, TheGpuModelsOfAPodAreAListSortedAndEachOnce) {
  struct Case {
    const char* text;
    std::vector<std::string> models;
  };
  const Case cases[] = {{"A100", {"A100"}},
                        {"T4|A100", {"A100", "T4"}},
                        {" T4 | A100 |T4|", {"A100", "T4"}},
                        {"NVIDIA A100 80GB", {"NVIDIA A100 80GB"}}};
  for (const Case& c : cases) {
    const PodRequest pod = Read(Annotated("berth.dev/gpu-model", c.text));
    EXPECT_EQ(pod.refusal, "") << c.text;
    EXPECT_EQ(pod.shape.models, c.models) << c.text;
  }
  for (const char* none : {"", "|", " | "}) {
    EXPECT_EQ(Read(Annotated("berth.dev/gpu-model", none)).refusal,
              "annotation berth.dev/gpu-model: want GPU models joined by |");
  }
}

TEST(PodRules, WhatAPodAsksOfItsLinksIsReadFromItsAnnotations) {
  Json pod = test::PodWithGpus("u", 4);
  EXPECT_EQ(Read(pod).shape.links, LinkAsk());
  pod["metadata"]["annotations"] = {{"berth.dev/link", "required"},
                                    {"berth.dev/numa", "preferred"},
                                    {"berth.dev/pattern", "all-to-all"},
                                    {"berth.dev/min-bandwidth-gbps", "100"}};
  EXPECT_EQ(Read(pod).refusal, "");
  EXPECT_EQ(Read(pod).shape.links,
            (LinkAsk{LinkWish::kRequired, NumaWish::kPreferred, LinkPattern::kAllToAll, 100'000}));
  pod["metadata"]["annotations"] = {{"berth.dev/link", "preferred"}};
  EXPECT_EQ(Read(pod).shape, Read(test::PodWithGpus("u", 4)).shape) << "as if nothing were said";
  pod["metadata"]["annotations"] = {{"berth.dev/link", "none"}, {"berth.dev/pattern", "grid"}};
  EXPECT_EQ(Read(pod).shape.links.link, LinkWish::kNone);
  EXPECT_EQ(Read(pod).shape.links.pattern, LinkPattern::kGrid);
}

TEST(PodRules, OneGpuHasNoLinksToAskOf) {
  const RequestShape plain = Read(test::PodWithGpus("u", 1)).shape;
  EXPECT_EQ(Read(Annotated("berth.dev/link", "required")).shape, plain);
  Json share = test::PodAsking("u", {{"berth.dev/gpu-milli", "300"}});
  share["metadata"]["annotations"] = {{"berth.dev/numa", "required"}};
  EXPECT_EQ(Read(share).shape.links, LinkAsk());
}

TEST(PodRules, AnAskOfLinksThatCannotBeReadRefusesThePod) {
  const std::pair<std::pair<const char*, const char*>, const char*> cases[] = {
      {{"berth.dev/link", "must"}, "want one of required, preferred, none, got \"must\""},
      {{"berth.dev/link", ""}, "want one of required, preferred, none, got \"\""},
      {{"berth.dev/numa", "none"}, "want one of required, preferred, got \"none\""},
      {{"berth.dev/pattern", "Ring"}, "want one of ring, all-to-all, pairs, grid, got \"Ring\""},
      {{"berth.dev/min-bandwidth-gbps", "-1"}, "want an integer from 0 to 100000, got \"-1\""},
      {{"berth.dev/min-bandwidth-gbps", "50GB"}, "want an integer from 0 to 100000, got \"50GB\""}};
  for (const auto& [annotation, wanted] : cases) {
    const auto& [key, value] = annotation;
    EXPECT_EQ(Read(Annotated(key, value)).refusal,
              "annotation " + std::string(key) + ": " + wanted);
  }
}

TEST(PodRules, UnitsOfConfiguredResourcesAreTakenIntoAccount) {
  const PodRules rules(test::AllDialects(),
                       {{"ex/percent", ResourceMeaning::kShareCompute, "percent"},
                        {"ex/gib", ResourceMeaning::kShareMemory, "GiB"},
                        {"ex/bytes", ResourceMeaning::kShareMemory, "bytes"},
                        {"ex/gpu", ResourceMeaning::kWholeGpus, "gpu"},
                        {"ex/gpu-too", ResourceMeaning::kWholeGpus, "gpu"}});
  ResourceAsk ask;
  ASSERT_TRUE(rules.Add("ex/percent", "25", ask));
  ASSERT_TRUE(rules.Add("ex/gib", "2", ask));
  ASSERT_TRUE(rules.Add("ex/bytes", "1", ask));
  ASSERT_TRUE(rules.Add("ex/gpu", "1", ask));
  ASSERT_TRUE(rules.Add("ex/gpu-too", "2", ask));
  ASSERT_TRUE(rules.Add("ex/other", "not even a number", ask));  // means nothing here
  EXPECT_FALSE(rules.Add("nvidia.com/gpu", "not even a number", ask)) << "known without a word";
  EXPECT_EQ(ask.share_milli, 250);
  EXPECT_EQ(ask.share_bytes, (std::int64_t{2} << 30) + 1);
  EXPECT_EQ(ask.gpus, 3);
}

TEST(PodRules, ShareMemoryIsRoundedUpToMebibytes) {
  const PodRules rules(test::AllDialects(), {{"ex/bytes", ResourceMeaning::kShareMemory, "bytes"}});
  PodParts parts;
  parts.containers.emplace_back();
  ASSERT_TRUE(rules.Add("ex/bytes", "1048577", parts.containers[0].ask));
  EXPECT_EQ(rules.ToRequest(parts).shape.gpus, GpuAsk(GpuShare{0, 2}));
}

}  // namespace
}  // namespace berth::wire::pod_rules_test
