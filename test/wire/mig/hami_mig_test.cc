// SPDX-License-Identifier: Apache-2.0
//
// MIG devices that HAMi cuts and gives out, from its annotations to what is free on the node.
#include "server/dialects/hami/hami_dialect.h"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "cluster/node/node.h"
#include "scoring/mig/mig_tables.h"
#include "server/wire/node/mig_json.h"
#include "server/wire/node/node_json.h"
#include "server/wire/pod/given_json.h"
#include "server/wire/pod/pod_object.h"
#include "test/support/builders.h"
#include "test/support/dialects.h"
#include "test/support/mig_nodes.h"
#include "test/support/wire_fixture.h"
#include "topology/mig/mig_product.h"

namespace berth::wire::hami_mig_test {
namespace {

using dialects::ParseHamiMigAllocations;
using test::Json;

const NodeRules& Rules() {
  static const NodeRules rules(DefaultConfig(), test::AllDialects());
  return rules;
}

Json Profile(const std::string& name, int size, const std::vector<int>& starts) {
  const std::map<int, int> memory = {{1, 9984}, {2, 20096}, {4, 40448}, {8, 81152}};
  Json profile = {{"name", name}, {"memoryMB", memory.at(size)}, {"core", 14}, {"sliceCount", 1}};
  for (const int start : starts) {
    profile["placements"].push_back({{"start", start}, {"size", size}});
  }
  return profile;
}

// As HAMi's plugin writes it: numbers that are 0 are left out.
Json CutGpu(const std::string& uuid, int index) {
  Json gpu = {{"id", uuid},
              {"count", 7},
              {"devmem", 81559},
              {"type", "NVIDIA-NVIDIA H100 80GB HBM3"},
              {"mode", "mig"},
              {"health", true},
              {"migProfiles",
               {Profile("1g.10gb", 1, {0, 1, 2, 3, 4, 5, 6}), Profile("3g.40gb", 4, {0, 4}),
                Profile("7g.80gb", 8, {0})}}};
  if (index > 0) gpu["index"] = index;
  return gpu;
}

Json NodeObject(const Json& registered, int gpus) {
  return {{"metadata",
           {{"name", "n1"},
            {"labels", {{"nvidia.com/gpu.product", "NVIDIA-H100-80GB-HBM3"}}},
            {"annotations", {{"hami.io/node-nvidia-register", registered.dump()}}}}},
          {"status",
           {{"allocatable",
             {{"cpu", "96"}, {"memory", "900Gi"}, {"nvidia.com/gpu", std::to_string(gpus)}}}}}};
}

DecodedNode Decode(const Json& node) {
  auto decoded = DecodeNode(test::Padded(node.dump()), Rules());
  EXPECT_TRUE(decoded) << decoded.error().message;
  return decoded ? *std::move(decoded) : DecodedNode{};
}

const Json kTwoGpus = {CutGpu("GPU-b", 1), CutGpu("GPU-a", 0)};

TEST(HamiMig, GpusInModeMigAreCutByHamiAndAreNoWholeGpus) {
  const DecodedNode decoded = Decode(NodeObject(kTwoGpus, 14));
  EXPECT_EQ(decoded.problem, "");
  EXPECT_TRUE(decoded.spec.gpus.empty());
  ASSERT_TRUE(decoded.spec.mig.known());
  const MigSpec& mig = *decoded.spec.mig;
  EXPECT_TRUE(mig.dynamic);
  EXPECT_TRUE(mig.foreign);
  EXPECT_EQ(mig.allocator, MigAllocator::kHighOrLow);
  EXPECT_EQ(mig.knowledge, MigKnowledge::kExact);
  MigSet made = 0;
  for (const char* const profile : {"1g.10gb", "3g.40gb", "7g.80gb"}) {
    made |= mig.product->PlacementsOf(*mig.product->RowOf(test::ProfileOf(profile)));
  }
  EXPECT_EQ(mig.gpus, (std::vector<MigGpu>{{0, "GPU-a", 0, made}, {1, "GPU-b", 0, made}}));
  EXPECT_EQ(*mig.product, *FindMigProduct("H100-80GB"));
}

// The catalogue has 9851 MiB, of 9.62 GiB in print.
TEST(HamiMig, TheCataloguesMemoryIsThatOfTheRegisterButForRounding) {
  const auto is_catalogued = [](int memory_mib) {
    Json gpu = CutGpu("GPU-a", 0);
    gpu["type"] = "NVIDIA-NVIDIA A100-SXM4-80GB";
    gpu["migProfiles"] = Json::array({Profile("1g.10gb", 1, {0, 1, 2, 3, 4, 5, 6})});
    gpu["migProfiles"][0]["memoryMB"] = memory_mib;
    Json node = NodeObject(Json::array({gpu}), 7);
    node["metadata"]["labels"]["nvidia.com/gpu.product"] = "NVIDIA-A100-SXM4-80GB";
    return *Decode(node).spec.mig->product == *FindMigProduct("A100-80GB");
  };
  EXPECT_TRUE(is_catalogued(9856));
  EXPECT_TRUE(is_catalogued(9846));
  EXPECT_FALSE(is_catalogued(9984));
}

TEST(HamiMig, GpusOfOtherModesAreHamisToGive) {
  Json registered = kTwoGpus;
  registered.push_back({{"id", "GPU-c"}, {"index", 2}, {"count", 1}, {"mode", "hami-core"}});
  registered.push_back({{"id", "GPU-d"}, {"index", 3}, {"count", 1}});
  const NodeSpec spec = Decode(NodeObject(registered, 16)).spec;
  EXPECT_EQ(spec.gpus.size(), 2U);
  EXPECT_EQ(spec.places, (GpuPlaces{0, true}));
  EXPECT_EQ(spec.mig->gpus.size(), 2U);
  // The form of before, and registers without such GPUs, say nothing of MIG.
  Json node = NodeObject(Json::array({registered[2]}), 1);
  EXPECT_FALSE(Decode(node).spec.mig.known());
  node["metadata"]["annotations"]["hami.io/node-nvidia-register"] =
      "GPU-c,10,81920,100,NVIDIA-NVIDIA A100-SXM4-80GB,0,true,0,mig:";
  EXPECT_FALSE(Decode(node).spec.mig.known());
  EXPECT_EQ(Decode(node).problem, "");
}

TEST(HamiMig, ReadsProfilesOfAnUnknownProductFromTheRegister) {
  Json gpu = CutGpu("GPU-a", 0);
  gpu["type"] = "NVIDIA-NVIDIA X999";
  Json node = NodeObject(Json::array({gpu}), 7);
  node["metadata"]["labels"] = Json::object();
  const NodeSpec spec = Decode(node).spec;
  ASSERT_TRUE(spec.mig.known());
  const MigProduct& product = *spec.mig->product;
  EXPECT_EQ(product.name(), "NVIDIA-X999");
  EXPECT_EQ(product.memory_units(), 8);
  EXPECT_EQ(product.rows().size(), 3U);
  EXPECT_TRUE(product.PlacementAt(*product.RowOf(test::ProfileOf("3g.40gb")), 4));
  EXPECT_FALSE(product.PlacementAt(*product.RowOf(test::ProfileOf("3g.40gb")), 2));
  // One that the catalogue has otherwise replaces its row.
  gpu["type"] = "NVIDIA-NVIDIA H100 80GB HBM3";
  gpu["migProfiles"][0] = Profile("1g.10gb", 1, {0, 1});
  const NodeSpec other = Decode(NodeObject(Json::array({gpu}), 7)).spec;
  const MigProduct& changed = *other.mig->product;
  EXPECT_EQ(changed.name(), "H100-80GB");
  EXPECT_FALSE(changed.PlacementAt(*changed.RowOf(test::ProfileOf("1g.10gb")), 2));
  EXPECT_TRUE(changed.PlacementAt(*changed.RowOf(test::ProfileOf("2g.20gb")), 4));
}

TEST(HamiMig, OurOwnAnnotationGoesBeforeTheRegister) {
  Json node = NodeObject(kTwoGpus, 14);
  node["metadata"]["annotations"]["berth.dev/mig"] =
      R"({"partitioning":"dynamic","gpus":[{"index":0,"uuid":"GPU-a"}]})";
  const NodeSpec spec = Decode(node).spec;
  EXPECT_FALSE(spec.mig->foreign);
  EXPECT_EQ(spec.mig->gpus.size(), 1U);
  EXPECT_TRUE(spec.gpus.empty());  // what HAMi announces are no GPUs all the same
}

TEST(HamiMig, ARegisterThatCannotBeReadIsNamedAndTheNodeStays) {
  const auto problem = [](const Json& registered) {
    const DecodedNode decoded = Decode(NodeObject(registered, 4));
    EXPECT_FALSE(decoded.spec.mig.known());
    EXPECT_EQ(decoded.spec.places, (GpuPlaces{4, true}));
    return decoded.problem;
  };
  const auto changed = [](const char* key, const Json& value) {
    Json gpu = CutGpu("GPU-a", 0);
    gpu[key] = value;
    return Json::array({CutGpu("GPU-b", 1), gpu});
  };
  const std::string key = "annotation hami.io/node-nvidia-register: ";
  EXPECT_EQ(problem(Json::array({7})), key + "[0]: want an object");
  EXPECT_EQ(problem(changed("id", "")), key + "[1].id: want a UUID, got none");
  EXPECT_EQ(problem(changed("index", -1)), key + "[1].index: want 0..1000000, got -1");
  EXPECT_EQ(problem(changed("type", "T4")),
            key +
                "[1].type: want \"NVIDIA-NVIDIA H100 80GB HBM3\" as all GPUs that are cut, got "
                "\"T4\"");
  EXPECT_EQ(problem(changed("index", 1)),
            key + ".mig.gpus[1].index: want each GPU once and in ascending order, got 1");
  Json gpu = CutGpu("GPU-a", 0);
  gpu["migProfiles"][1]["placements"][1]["size"] = 3;
  EXPECT_EQ(problem(Json::array({gpu})),
            key + "[0].migProfiles[1].placements[1].size: want 4 as before, got 3");
  gpu["migProfiles"][1] = Profile("huge", 1, {0});
  EXPECT_TRUE(problem(Json::array({gpu})).starts_with(key + "[0].migProfiles[1].name: want a MIG"));
  gpu.erase("migProfiles");
  EXPECT_EQ(problem(Json::array({gpu})), key + "[0].migProfiles: want one or more, got none");
}

// A pod as HAMi's scheduler has placed it.
Json HamiPod(const Json& allocations) {
  Json pod = test::PodWithGpus("u", 2);
  pod["kind"] = "Pod";
  pod["metadata"]["annotations"]["hami.io/vgpu-mig-allocations"] = allocations.dump();
  pod["metadata"]["annotations"]["hami.io/vgpu-node"] = "n1";
  pod["spec"]["nodeName"] = "n1";
  pod["status"]["phase"] = "Running";
  return pod;
}

Json Allocation(const std::string& uuid, const std::string& profile, int start, int size) {
  return {{"containerIndex", 0},
          {"deviceIndex", start},
          {"gpuUUID", uuid},
          {"profile", profile},
          {"placement", {{"start", start}, {"size", size}}},
          {"migUUID", "MIG-1"},
          {"gpuInstanceID", 7},
          {"computeInstanceID", 0}};
}

ObservedPod Observe(const Json& pod) {
  static const PodRules rules(test::AllDialects(), DefaultConfig().resources);
  auto observed = DecodeObservedPod(test::Padded(pod.dump()), rules);
  EXPECT_TRUE(observed) << observed.error().message;
  return observed ? *std::move(observed) : ObservedPod();
}

PodRecords RecordsOf(const ObservedPod& observed) {
  return {std::make_shared<const PodRecord>(
      PodRecord{observed.pod, observed.placement, PodState::kBound, {}})};
}

TEST(HamiMig, WhatHamiGaveToAPodIsTakenOnItsNode) {
  const ObservedPod observed = Observe(
      HamiPod({Allocation("GPU-b", "3g.40gb", 4, 4), Allocation("GPU-b", "1g.10gb", 0, 1)}));
  EXPECT_EQ(observed.problem, "");
  EXPECT_EQ(observed.pod.refusal, "");
  const auto spec = std::make_shared<const NodeSpec>(Decode(NodeObject(kTwoGpus, 14)).spec);
  const Node node(spec, RecordsOf(observed));
  EXPECT_EQ(MigSetName(*spec->mig->product, node.mig().taken()[0]), "nothing");
  EXPECT_EQ(MigSetName(*spec->mig->product, node.mig().taken()[1]), "1g.10gb at 0, 3g.40gb at 4");
  EXPECT_EQ(node.unattributed(), 0);
  EXPECT_TRUE(node.tenants().empty());
}

TEST(HamiMig, BerthGivesNoneOfTheseDevices) {
  const Node node(std::make_shared<const NodeSpec>(Decode(NodeObject(kTwoGpus, 14)).spec));
  const MigSlices by_need = test::MigWith(1);
  const MigSlices by_name = {{{test::ProfileOf("1g.10gb"), false, 0, 0, 1}}};
  EXPECT_EQ(CheckMig(node, by_need), Reason::kMigForeign);
  EXPECT_EQ(CheckMig(node, by_name), Reason::kMigForeign);
  EXPECT_FALSE(PlanMig(*node.spec().mig, node.mig(), by_name));
}

const NodeRules& GivingRules() {
  static const NodeRules rules = [] {
    Config config = DefaultConfig();
    config.hami.give_devices = true;
    return NodeRules(config, dialects::AllDialects(config));
  }();
  return rules;
}

NodeSpec DecodeGiven(const Json& node) {
  auto decoded = DecodeNode(test::Padded(node.dump()), GivingRules());
  EXPECT_TRUE(decoded) << decoded.error().message;
  EXPECT_EQ(decoded->problem, "");
  return decoded->spec;
}

TEST(HamiMig, WithTheOptionBerthGivesThem) {
  const NodeSpec spec = DecodeGiven(NodeObject(kTwoGpus, 14));
  EXPECT_FALSE(spec.mig->foreign);
  EXPECT_EQ(spec.mig->agent, "hami");
  EXPECT_EQ(spec.mig->allocator, MigAllocator::kBerth);
  const Node node(std::make_shared<const NodeSpec>(spec));
  const auto check = [&node](int slices) { return CheckMig(node, test::MigWith(slices)); };
  EXPECT_EQ(check(1), Reason::kFits);
  EXPECT_EQ(check(3), Reason::kFits);
  EXPECT_EQ(CheckMig(node, {{{test::ProfileOf("1g.10gb"), false, 0, 0, 1}}}),
            Reason::kMigByNeedOnly);
  const auto plan = PlanMig(*spec.mig, node.mig(), test::MigWith(2));
  ASSERT_TRUE(plan);
  EXPECT_EQ(MigProfileName(plan->grants[0].profile), "3g.40gb") << "2g is not in the register";
}

// By its number of slices alone, the plugin would make 1g.10gb.
TEST(HamiMig, AProfileThatThePluginCannotMakeIsNotGiven) {
  Json gpu = CutGpu("GPU-a", 0);
  gpu["migProfiles"].push_back(Profile("1g.20gb", 2, {0, 2, 4, 6}));
  const NodeSpec spec = DecodeGiven(NodeObject(Json::array({gpu}), 7));
  const auto plan = PlanMig(*spec.mig, MigUse(*spec.mig), test::MigWith(0, 12'000));
  ASSERT_TRUE(plan);
  EXPECT_EQ(MigProfileName(plan->grants[0].profile), "3g.40gb");
}

TEST(HamiMig, NothingIsGivenOfAGpuThatIsNotHealthyOrKeptOut) {
  const auto closed = [](const Json& node) {
    const NodeSpec spec = DecodeGiven(node);
    std::vector<int> gpus;
    for (const MigGpu& gpu : spec.mig->gpus) {
      if (gpu.offered == 0) gpus.push_back(gpu.index);
    }
    return gpus;
  };
  EXPECT_EQ(closed(NodeObject(kTwoGpus, 14)), std::vector<int>());
  Json sick = kTwoGpus;
  sick[0].erase("health");
  EXPECT_EQ(closed(NodeObject(sick, 14)), std::vector<int>{1});
  Json cordoned = NodeObject(kTwoGpus, 14);
  cordoned["metadata"]["annotations"]["hami.io/device-cordon"] = "GPU-x, GPU-a";
  EXPECT_EQ(closed(cordoned), std::vector<int>{0});
}

TEST(HamiMig, WhatBerthGivesThereIsWrittenAndReadAgainToo) {
  Json registered = kTwoGpus;
  registered[0].erase("health");
  const MigSpec spec = *DecodeGiven(NodeObject(registered, 14)).mig;
  MigLibrary library;
  const auto again = ReadMig(MigJson(spec), "", "", library);
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(*again, spec);
}

// In the cluster file.
TEST(HamiMig, WhatWasReadIsWrittenAndReadAgain) {
  const MigSpec spec = *Decode(NodeObject(kTwoGpus, 14)).spec.mig;
  MigLibrary library;
  const auto again = ReadMig(MigJson(spec), "", "", library);
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(*again, spec);
  const auto grants = ParseHamiMigAllocations(
      Json::array({Allocation("GPU-b", "3g.40gb", 4, 4), Allocation("GPU-a", "1g.10gb", 0, 1)})
          .dump());
  ASSERT_TRUE(grants) << grants.error().message;
  std::vector<MigGrant> read;
  for (const MigGrant& grant : *grants) {
    const Status status = ReadMigGrant(MigGrantJson(grant), "mig", read);
    EXPECT_TRUE(status) << status.error().message;
  }
  EXPECT_EQ(read, *grants);
}

TEST(HamiMig, OurOwnRecordOfAPodGoesBeforeThatOfHami) {
  Json pod = HamiPod({Allocation("GPU-b", "3g.40gb", 4, 4)});
  pod["metadata"]["annotations"]["berth.dev/devices"] =
      R"({"version":1,"node":"n1","containers":{"main":{"gpus":[)"
      R"({"index":1,"milli":1000,"memory_mib":1},{"index":5,"milli":1000,"memory_mib":1}]}}})";
  EXPECT_TRUE(Observe(pod).placement.mig.empty());
  EXPECT_EQ(Observe(pod).placement.grants.size(), 2U);
}

// kube-scheduler may ask about one that HAMi has prepared.
TEST(HamiMig, ARecordOnAPodThatWaitsIsNoReasonToRefuseIt) {
  Json pod = HamiPod({Allocation("GPU-b", "3g.40gb", 4, 4)});
  pod["spec"].erase("nodeName");
  EXPECT_EQ(Observe(pod).pod.refusal, "");
  EXPECT_EQ(Observe(pod).pod.shape.gpus, GpuAsk(WholeGpus{2}));
}

TEST(HamiMig, ARecordThatCannotBeReadIsNamedAndThePodStillCounts) {
  const auto problem = [](const Json& allocations) {
    const ObservedPod observed = Observe(HamiPod(allocations));
    EXPECT_TRUE(observed.placement.mig.empty());
    EXPECT_EQ(observed.pod.shape.gpus, GpuAsk(WholeGpus{2}));
    return observed.problem;
  };
  const auto changed = [](const char* key, const Json& value) {
    Json allocation = Allocation("GPU-b", "3g.40gb", 4, 4);
    allocation[key] = value;
    return Json::array({allocation});
  };
  const std::string key = "pod ns/pod-u: annotation hami.io/vgpu-mig-allocations: ";
  EXPECT_EQ(problem(Json::object()), key + "want a JSON list");
  EXPECT_EQ(problem(changed("gpuUUID", nullptr)), key + "[0].gpuUUID: want a UUID, got none");
  EXPECT_EQ(problem(changed("placement", nullptr)),
            key + "[0].placement: want start and size, got none");
  EXPECT_EQ(problem(changed("placement", {{"start", 99}, {"size", 1}})),
            key + "[0].placement.start: want 0..15, got 99");
  EXPECT_TRUE(problem(changed("profile", "big")).starts_with(key + "[0].profile: want a MIG"));
  EXPECT_EQ(problem(Json(65, Allocation("GPU-b", "3g.40gb", 4, 4))),
            key + "want at most 64 devices, got 65");
}

// The tables of a product are made with the node, unless nobody will ask for them.
TEST(NodeMigTables, AreThereBeforeTheFirstDecision) {
  const auto tables_of = [](const char* product, bool foreign) {
    Json mig = Json::parse(R"({"partitioning": "dynamic", "gpus": [{"index": 0}],
        "profiles": [{"profile": "1g.5gb", "size": 1, "starts": [0, 1, 3]}]})");
    mig["product"] = product;
    mig["foreign"] = foreign;
    Json node = NodeObject(Json::array(), 0);
    node["metadata"]["annotations"] = {{"berth.dev/mig", mig.dump()}};
    const NodeSpec spec = Decode(node).spec;
    EXPECT_TRUE(spec.mig.known());
    return spec.mig.known() && HasMigTables(spec.mig->product);
  };
  EXPECT_TRUE(tables_of("A100-40GB", false));
  EXPECT_FALSE(tables_of("A100-80GB", true));
}

}  // namespace
}  // namespace berth::wire::hami_mig_test
