// SPDX-License-Identifier: Apache-2.0
#include "server/wire/pod/devices_annotation.h"

#include <gtest/gtest.h>

#include "test/support/builders.h"
#include "test/support/random_world.h"

namespace berth::wire::devices_annotation_test {
namespace {

using test::ANode;
using test::APod;

std::string ErrorOf(const std::string& text, const PodRequest& pod) {
  const auto grants = DecodeDevices(text, pod, "n1");
  return grants ? "none" : grants.error().message;
}

TEST(DevicesAnnotation, IsWrittenAsItsInterfaceSays) {
  NodeSpec node = ANode("n1").Gpus(4, 81'920).Spec();
  node.gpus[3].uuid = "GPU-\"3";
  const APod pod = APod("p").Whole(2).Container("main", WholeGpus{1}).Container("b", WholeGpus{1});
  const Placement placement{"n1", 0, 0, {{2, 1000, 81'920}, {3, 1000, 81'920}}};
  EXPECT_EQ(EncodeDevices(pod.Request(), placement, node),
            R"({"version":1,"node":"n1","containers":{)"
            R"("main":{"gpus":[{"index":2,"milli":1000,"memory_mib":81920}]},)"
            R"("b":{"gpus":[{"index":3,"uuid":"GPU-\"3","milli":1000,"memory_mib":81920}]}}})");
  EXPECT_EQ(EncodeDevices(APod("p").Request(), {"n1", 0, 0, {}}, node),
            R"({"version":1,"node":"n1","containers":{}})");
}

TEST(DevicesAnnotation, SaysOnWhichGpusReplicasAre) {
  NodeSpec node = ANode("n1").Places(8).Spec();
  node.places.gpus = 2;
  node.places.uuids = {"GPU-0", "GPU-1"};
  const PodRequest pod = APod("p")
                             .Whole(2)
                             .InitContainer("first", WholeGpus{1})
                             .Container("main", WholeGpus{1})
                             .Container("b", WholeGpus{1})
                             .Request();
  Placement placement{"n1", 0, 0, {}};
  placement.places = 2;
  for (const std::vector<int>& on : {std::vector{0, 1}, {1, 1}, {0, 0}}) {
    placement.places_on = on;
    const auto read = DecodeDevices(EncodeDevices(pod, placement, node), pod, "n1");
    ASSERT_TRUE(read) << read.error().message;
    EXPECT_EQ(*read, DevicesOf(placement));
  }
  placement.places_on = {0, 1};
  EXPECT_EQ(EncodeDevices(pod, placement, node),
            R"({"version":1,"node":"n1","containers":{)"
            R"("first":{"places":[{"index":0,"uuid":"GPU-0"}]},)"
            R"("main":{"places":[{"index":0,"uuid":"GPU-0"}]},)"
            R"("b":{"places":[{"index":1,"uuid":"GPU-1"}]}}})");
  const auto error = [&pod](const std::string& main) {
    return ErrorOf(R"({"version":1,"node":"n1","containers":{"main":{"places":)" + main + "}}}",
                   pod);
  };
  EXPECT_EQ(error(R"([{"index":1}])"), "containers.first: want a replica of GPU 1, got no replica");
  EXPECT_EQ(error(R"([{"uuid":"GPU-1"}])"),
            "containers.main.places[0].index: want the index of a GPU, got none");
  EXPECT_NE(error(R"([{"index":64}])"), "none");
  std::string many;
  for (int i = 0; i < 1000; ++i) many += (i == 0 ? "" : ",") + std::string(R"({"index":1})");
  EXPECT_NE(error("[" + many + "]"), "none") << "a pod has as many as it asks for";
}

// A text with a list of MIG devices, if an empty one, is read by another function than one with
// GPUs alone. Whatever somebody writes, they take and refuse the same in the same words.
TEST(DevicesAnnotation, IsTheSameWhicheverFunctionReadsIt) {
  const std::string text =
      R"({"version":1,"node":"n1","containers":{"main":{"gpus":[{"index":2,"milli":1000,)"
      R"("memory_mib":81920},{"index":3,"uuid":"GPU-3","milli":1000,"memory_mib":81920}]}}})";
  const PodRequest pod = APod("p").Whole(2).Container("main", WholeGpus{2}).Request();
  const auto said = [&pod](const std::string& changed) {
    const auto read = DecodeDevices(changed, pod, "n1");
    return read ? "GPUs " + std::to_string(read->grants.size()) : read.error().message;
  };
  const auto by_both = [&](const std::string& changed) {
    const std::size_t gpus = changed.find(R"("gpus":)");
    if (gpus == std::string::npos) return;
    std::string with_mig = changed;
    with_mig.insert(gpus, R"("mig":[],)");
    EXPECT_EQ(said(changed), said(with_mig)) << changed;
  };
  EXPECT_EQ(said(text), "GPUs 2");
  by_both(text + " ");
  by_both(text + "{}");
  std::vector<std::string> others = {"",    "null", "-1",      "1.0", "1e2", "18446744073709551615",
                                     "\"",  "{}",   "\\u0000", "[",   ",",   " ",
                                     "\xff"};
  for (std::size_t at = 0; at < text.size(); ++at) {
    for (const std::size_t length : {std::size_t{0}, std::size_t{1}, std::size_t{4}}) {
      for (const std::string& other : others) {
        std::string changed = text;
        by_both(changed.replace(at, length, other));
      }
    }
  }
  for (const std::string twice :
       {R"("version":1)", R"("node":"n1")", R"("index":2)", R"("milli":0)", R"("gpus":[])",
        R"("containers":{})", R"("uuid":null)"}) {
    const std::string key = twice.substr(0, twice.find(':'));
    for (std::size_t at = text.find(key); at != std::string::npos; at = text.find(key, at + 1)) {
      std::string before = text, after = text;
      by_both(before.insert(at, twice + ","));
      by_both(after.insert(text.find_first_of(",}", at), "," + twice));
    }
  }
}

TEST(VisibleDevices, AreTheUuidOfTheGpuOfAShareWhereItIsKnown) {
  NodeSpec node = ANode("n1").Gpus(4).Spec();
  node.gpus[3].uuid = "GPU-3";
  const auto of = [&](const APod& pod, int gpu) {
    return VisibleDevices(pod.Request(), pod.On("n1", {gpu}), node);
  };
  EXPECT_EQ(of(APod("p").Share(300), 3), "GPU-3");
  EXPECT_EQ(of(APod("p").Share(300), 2), "") << "not known";
  node.gpus[1].uuid = "GPU-1";
  const APod two = APod("p").Shares(2, 300);
  EXPECT_EQ(VisibleDevices(two.Request(), two.On("n1", {1, 3}), node), "GPU-1,GPU-3");
  EXPECT_EQ(VisibleDevices(two.Request(), two.On("n1", {2, 3}), node), "") << "one is not known";
  EXPECT_EQ(of(APod("p").Whole(1), 3), "") << "the kubelet picks";
  EXPECT_EQ(VisibleDevices(APod("p").Request(), {"n1", 0, 0, {}}, node), "");
}

// What pods may ask of their containers, init containers and sidecars among them.
PodRequest RandomPod(test::RandomWorld& world) {
  APod pod("p");
  const int containers = world.Between(1, 4);
  const bool whole = world.Chance(40), by_memory = world.Chance(40), both = world.Chance(20);
  int running = 0, peak = 0, running_mib = 0, peak_mib = 0;
  for (int i = 0; i < containers; ++i) {
    const bool ends_first = i + 1 < containers && world.Chance(40);
    const int amount = world.Between(1, whole ? 2 : 200);
    const int mib = by_memory || both ? world.Between(1, 2000) : 0;
    const int milli = by_memory && !both ? 0 : amount;
    const auto add = [&](const GpuAsk& ask) {
      const std::string name = "c" + std::to_string(i);
      ends_first ? pod.InitContainer(name, ask) : pod.Container(name, ask);
    };
    whole ? add(WholeGpus{amount}) : add(GpuShare{milli, mib});
    peak = std::max(peak, running + (whole ? amount : milli));
    peak_mib = std::max(peak_mib, running_mib + mib);
    if (!ends_first) {
      running += whole ? amount : milli;
      running_mib += mib;
    }
  }
  return whole ? pod.Whole(peak).Request() : pod.Share(peak, peak_mib).Request();
}

TEST(DevicesAnnotation, GivesBackTheGrantsOfEveryPod) {
  for (std::uint64_t seed = 1; seed <= 2000; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    test::RandomWorld world(seed);
    const PodRequest pod = RandomPod(world);
    const ANode node = ANode("n1").Gpus(8, world.Between(9000, 90'000)).GpuMemory(3, 9001);
    Placement placement{"n1", 0, 0, {}};
    for (int gpu = 0; gpu < 8 && std::ssize(placement.grants) < pod.shape.gpu_count(); ++gpu) {
      const std::int64_t memory = node.Spec().gpus[static_cast<std::size_t>(gpu)].memory_mib;
      DeviceGrant grant{gpu, 1000, memory};
      if (const auto* share = std::get_if<GpuShare>(&pod.shape.gpus)) {
        grant.milli = share->milli > 0 ? share->milli : world.Between(1, 1000);
        grant.memory_mib = share->memory_mib > 0 ? share->memory_mib : memory * share->milli / 1000;
      }
      placement.grants.push_back(grant);
    }
    const std::string text = EncodeDevices(pod, placement, node.Spec());
    const auto grants = DecodeDevices(text, pod, "n1");
    ASSERT_TRUE(grants) << grants.error().message << "\n" << text;
    ASSERT_EQ(grants->grants, placement.grants) << text;
  }
}

TEST(DevicesAnnotation, ErrorsNameThePath) {
  const PodRequest pod = APod("p").Whole(1).Container("main", WholeGpus{1}).Request();
  const auto text = [](const std::string& containers) {
    return R"({"version":1,"node":"n1","containers":)" + containers + "}";
  };
  struct Case {
    std::string text, message;
  };
  for (const Case& c : std::vector<Case>{
           {"x", "want JSON, got something else"},
           {"[]", "want an object, got array"},
           {R"({"node":"n1"})", "version: want 1, got none"},
           {R"({"version":2,"node":"n1"})", "version: want 1..1, got 2"},
           {R"({"version":1,"node":"n2"})", "node: want \"n1\", got \"n2\""},
           {R"({"version":1,"nod":"n1"})", "nod: unknown key"},
           {text("[]"), "containers: want an object, got array"},
           {text(R"({"main":7})"), "containers.main: want an object"},
           {text(R"({"main":{"nics":[]}})"), "containers.main.nics: unknown key"},
           {text(R"({"main":{"mig":[{"profile":"1g"}]}})"),
            "containers.main.mig[0].profile: want a MIG profile such as 1g.5gb, 1g.10gb+me or "
            "1c.2g.10gb, got \"1g\""},
           {text(R"({"main":{"mig":[{"profile":"1g.5gb","start":1}]}})"),
            "containers.main.mig[0].gpu: want the index of a GPU beside the start, got none"},
           {text(R"({"main":{"gpus":[{"milli":1}]}})"),
            "containers.main.gpus[0].index: want the index of a GPU, got none"},
           {text(R"({"main":{"gpus":[{"index":"0"}]}})"),
            "containers.main.gpus[0].index: want an integer, got string"},
           {text(R"({"main":{"gpus":[{"index":64}]}})"),
            "containers.main.gpus[0].index: want 0..63, got 64"},
           {text(R"({"main":{"gpus":[{"index":1},{"index":1}]}})"),
            "containers.main.gpus[1].index: GPU 1 is there twice"},
           {text(R"({"main":{"gpus":[{"index":1,"milli":1000},{"index":2,"milli":1000}]}})"),
            "containers.main: want GPU 1: 1000 milli, 0 MiB, got GPU 1: 1000 milli, 0 MiB, GPU 2: "
            "1000 milli, 0 MiB"},
           {text(R"({"other":{"gpus":[{"index":1,"milli":1000}]}})"),
            "containers.main: want GPU 1: 1000 milli, 0 MiB, got no GPU"},
           {text("{}"), "containers: want 1 GPUs, got 0"},
       }) {
    EXPECT_EQ(ErrorOf(c.text, pod), c.message) << c.text;
  }
}

}  // namespace
}  // namespace berth::wire::devices_annotation_test
