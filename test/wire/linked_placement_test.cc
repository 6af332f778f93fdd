// SPDX-License-Identifier: Apache-2.0
//
// Filter, prioritize and bind over nodes with irregular links: the annotation of the bound pod has
// the GPUs that should have been chosen.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "scoring/reason.h"
#include "test/support/annotating_binder.h"
#include "test/support/wire_fixture.h"
#include "test/support/wirings.h"

namespace berth::test::linked_placement_test {
namespace {

NodeSpec Machine(const std::string& name, const LinkMatrix& matrix) {
  NodeSpec spec = MachineWith(name, matrix.gpu_count());
  spec.links = LinksOf(matrix);
  for (std::size_t gpu = 0; gpu < spec.gpus.size(); ++gpu) {
    spec.gpus[gpu].uuid = "GPU-" + std::to_string(gpu);
  }
  return spec;
}

class LinkedPlacement : public testing::Test {
 protected:
  // The indices of the pod's GPUs, after the three verbs; the node is the one with the highest
  // priority.
  std::vector<int> Place(TestService& service, const Json& pod, const Json& nodes,
                         std::string* where = nullptr) {
    const std::string args = ArgsWithNames(pod, nodes);
    const Json passed = service.Ask("filter", args)["NodeNames"];
    EXPECT_FALSE(passed.empty());
    const std::string best = service.BestOf(pod, passed);
    const std::string uid = pod["metadata"]["uid"];
    EXPECT_EQ(service.Ask("bind", BindingArgs(uid, best))["Error"], "");
    if (where != nullptr) *where = best;
    std::vector<int> gpus;
    const Json devices = Json::parse(binder_.devices[uid]);
    for (const Json& gpu : devices["containers"]["main"]["gpus"]) {
      gpus.push_back(gpu["index"]);
      EXPECT_EQ(gpu["uuid"], "GPU-" + std::to_string(gpus.back()));
    }
    return gpus;
  }

  static Json Annotated(Json pod, const std::string& key, const std::string& value) {
    pod["metadata"]["annotations"][key] = value;
    return pod;
  }

  AnnotatingBinder binder_;
};

TEST_F(LinkedPlacement, FillsAMachineWithBridgesPairByPair) {
  TestService service({Machine("n1", BridgedCards())}, &binder_);
  const Json n1 = Json::array({"n1"});
  const std::vector<int> single = Place(service, PodWithGpus("one", 1), n1);
  ASSERT_EQ(single.size(), 1u);
  EXPECT_TRUE(single[0] == 4 || single[0] == 5) << single[0] << " has a bridge";
  std::vector<std::vector<int>> pairs;
  for (const char* uid : {"a", "b", "c"}) pairs.push_back(Place(service, PodWithGpus(uid, 2), n1));
  std::ranges::sort(pairs);
  EXPECT_EQ(pairs, (std::vector<std::vector<int>>{{0, 1}, {2, 3}, {6, 7}}));
}

TEST_F(LinkedPlacement, KeepsTheCubeMeshWhole) {
  TestService service({Machine("n1", Dgx1V())}, &binder_, "expected-waste");
  const Json n1 = Json::array({"n1"});
  const std::vector<int> quad = Place(service, PodWithGpus("quad", 4), n1);
  EXPECT_TRUE(quad == (std::vector<int>{0, 1, 2, 3}) || quad == (std::vector<int>{4, 5, 6, 7}));
  const std::vector<int> pair = Place(service, PodWithGpus("pair", 2), n1);
  ASSERT_EQ(pair.size(), 2u);
  EXPECT_EQ(LinksOf(Dgx1V()).Between(pair[0], pair[1]), 50'000) << "two NVLinks";
}

// A service of prefill and decode workers, as its manifests say it.
TEST_F(LinkedPlacement, PutsPodsNearAndFarAsTheySay) {
  TestService service({Machine("n1", SwitchedPairs()), Machine("n2", CardsWithOneNic())}, &binder_,
                      "expected-waste");
  const Json both = Json::array({"n1", "n2"});
  const auto worker = [](const std::string& uid, const char* role, const char* key) {
    Json pod = Annotated(PodWithGpus(uid, 1), key, "role=prefill");
    pod["metadata"]["labels"]["role"] = role;
    return pod;
  };
  std::set<std::pair<std::string, int>> roots;
  for (int i = 0; i < 4; ++i) {
    std::string node;
    const auto gpus =
        Place(service, worker("p" + std::to_string(i), "prefill", "berth.dev/far"), both, &node);
    ASSERT_EQ(gpus.size(), 1u);
    EXPECT_TRUE(roots.emplace(node, gpus.front() / 2).second) << node << " GPU " << gpus.front();
  }
  std::string node;
  const auto decode = Place(service, worker("d", "decode", "berth.dev/near"), both, &node);
  ASSERT_EQ(decode.size(), 1u);
  const bool on_fabric = node == "n1";  // where every GPU has a link to every other one
  EXPECT_TRUE(std::ranges::any_of(roots,
                                  [&](const auto& root) {
                                    return root.first == node &&
                                           (on_fabric || root.second == decode.front() / 2);
                                  }))
      << node << " GPU " << decode.front();
}

TEST_F(LinkedPlacement, GivesLinkedGpusOrSaysWhyNot) {
  TestService service({Machine("n1", BridgedCards()), MachineWith("n2", 8)}, &binder_);
  const Json both = Json::array({"n1", "n2"});
  const auto linked = [](const char* uid, int gpus) {
    return Annotated(PodWithGpus(uid, gpus), "berth.dev/link", "required");
  };
  for (const char* uid : {"a", "b", "c"}) {
    std::string node;
    const std::vector<int> gpus = Place(service, linked(uid, 2), both, &node);
    EXPECT_EQ(node, "n1");
    EXPECT_EQ(gpus[0] + 1, gpus[1]);
    EXPECT_NE(gpus[0], 4);
  }
  const Json refused = service.Ask("filter", ArgsWithNames(linked("d", 2), both));
  EXPECT_EQ(refused["NodeNames"], Json::array());
  // All pods have the same priority: no eviction helps.
  EXPECT_EQ(refused["FailedAndUnresolvableNodes"]["n1"], TextOf(Reason::kLinkedBusy));
  EXPECT_EQ(refused["FailedAndUnresolvableNodes"]["n2"], TextOf(Reason::kLinksUnknown));
  const Json never = service.Ask("filter", ArgsWithNames(linked("e", 3), both));
  EXPECT_EQ(never["FailedAndUnresolvableNodes"]["n1"], TextOf(Reason::kNeverLinked));
}

TEST_F(LinkedPlacement, PutsWhatThePodAsksOfNumaAndBandwidthBeforeTheRest) {
  TestService service({Machine("n1", BridgedCards())}, &binder_);
  const Json n1 = Json::array({"n1"});
  const auto fast = [](const char* uid, const char* gigabytes) {
    return Annotated(PodWithGpus(uid, 2), "berth.dev/min-bandwidth-gbps", gigabytes);
  };
  const std::vector<int> pair = Place(service, fast("fast", "300"), n1);
  EXPECT_EQ(LinksOf(BridgedCards()).Between(pair[0], pair[1]), 300'000);
  EXPECT_EQ(service.Ask("filter", ArgsWithNames(fast("faster", "301"), n1))["NodeNames"],
            Json::array());
  const std::vector<int> socket =
      Place(service, Annotated(PodWithGpus("four", 4), "berth.dev/numa", "required"), n1);
  EXPECT_EQ(socket[0] / 4, socket[3] / 4);
}

}  // namespace
}  // namespace berth::test::linked_placement_test
