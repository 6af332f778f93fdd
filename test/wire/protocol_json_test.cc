// SPDX-License-Identifier: Apache-2.0
//
// What a well-behaved extender answers: JSON at its edges, by the numbers under which the
// protocol's notes list them.
#include <string>

#include <gtest/gtest.h>

#include "scoring/reason.h"
#include "test/support/wire_fixture.h"

namespace berth::test::protocol_json_test {
namespace {

std::vector<NodeSpec> OneMachine() { return {MachineWith("n1", 4)}; }

bool FitsOnN1(const TestService& service, const Json& pod) {
  return service.Ask("filter", ArgsWithNames(pod, {"n1"}))["NodeNames"] == Json({"n1"});
}

// What a container with that quantity of the resource asks for.
RequestShape ShapeAsking(const TestService& service, const std::string& resource,
                         const Json& quantity) {
  PaddedText text = Padded(ArgsWithNames(PodAsking("1", {{resource, quantity}}), Json::array()));
  const auto args =
      wire::DecodeExtenderArgs(text, service.rules(), NodeNameTable(std::vector<std::string>()));
  EXPECT_TRUE(args && args->pod) << quantity;
  EXPECT_EQ(args->pod->refusal, "") << quantity;
  return args->pod->shape;
}

TEST(ExtenderProtocol, Case68_KeysInAnyCaseMeanTheSame) {
  const TestService service(OneMachine());
  const char* const bodies[] = {
      R"({"Pod":{"metadata":{"uid":"1"},"spec":{"containers":[{"resources":)"
      R"({"requests":{"nvidia.com/gpu":"5"}}}]}},"NodeNames":["n1"]})",
      R"({"pod":{"Metadata":{"UID":"1"},"SPEC":{"Containers":[{"Resources":)"
      R"({"REQUESTS":{"nvidia.com/gpu":"5"}}}]}},"nodenames":["n1"]})",
      R"({"POD":{"METADATA":{"Uid":"1"},"Spec":{"CONTAINERS":[{"RESOURCES":)"
      R"({"Requests":{"nvidia.com/gpu":"5"}}}]}},"nodeNames":["n1"]})",
      R"({"\u0050od":{"metadata":{"\u0075id":"1"},"spec":{"containers":[{"resources":)"
      R"({"requests":{"nvidia.com\u002fgpu":"5"}}}]}},"NodeNam\u0065s":["\u006e1"]})"};
  for (const char* body : bodies) {
    EXPECT_EQ(service.Ask("filter", body)["FailedAndUnresolvableNodes"],
              Json({{"n1", TextOf(Reason::kTooFewGpus)}}))
        << body;
  }
}

TEST(ExtenderProtocol, Case68_NamesOfResourcesAreNotKeysAndKeepTheirCase) {
  const TestService service(OneMachine());
  EXPECT_TRUE(FitsOnN1(service, PodAsking("1", {{"NVIDIA.com/GPU", "5"}})));
}

TEST(ExtenderProtocol, Case69_UnknownFieldsAnywhereAreIgnored) {
  const TestService service(OneMachine());
  const Json novelty = {{"a", {1, 2.5, nullptr, {{"Pod", 7}}}}, {"NodeNames", "x"}, {"b", "\n"}};
  Json pod = PodWithGpus("1", 4);
  pod["novelty"] = pod["metadata"]["novelty"] = pod["spec"]["novelty"] = novelty;
  pod["spec"]["containers"][0]["novelty"] = novelty;
  pod["spec"]["containers"][0]["resources"]["claims"] = novelty;
  const Json body = {{"Novelty", novelty}, {"Pod", pod}, {"NodeNames", {"n1"}}, {"Z", novelty}};
  EXPECT_EQ(service.Ask("filter", body.dump())["NodeNames"], Json({"n1"}));
}

TEST(ExtenderProtocol, Case69_NullIsAsGoodAsAbsentAnywhereInAPod) {
  const TestService service(OneMachine());
  for (const char* pod :
       {R"({})", R"({"metadata":null,"spec":null,"status":null})",
        R"({"metadata":{"name":null,"uid":null,"annotations":null},"spec":{"containers":null}})",
        R"({"spec":{"containers":[{"name":null,"resources":null}],"initContainers":null}})",
        R"({"spec":{"containers":[{"resources":{"requests":null,"limits":null}}]}})",
        R"({"spec":{"containers":[{"resources":{"requests":{"cpu":null}}}],"overhead":null}})"}) {
    EXPECT_TRUE(FitsOnN1(service, Json::parse(pod))) << pod;
  }
}

TEST(ExtenderProtocol, Case70_SixHundredLevelsOfNestingAreNoDanger) {
  const TestService service(OneMachine());
  for (const std::size_t levels : {600u, 100'000u}) {
    std::string nested = std::string(levels, '[') + std::string(levels, ']');
    const std::string body = R"({"Pod":{"metadata":{"uid":"1"},"spec":{"deep":)" + nested +
                             R"(}},"Nodes":null,"NodeNames":["n1"]})";
    const int status = service.StatusOf("filter", body);
    EXPECT_TRUE(status == 200 || (levels > 512 && status == 400)) << levels << " " << status;
    EXPECT_EQ(service.StatusOf("filter", nested), 400);
    nested.resize(levels);
    EXPECT_EQ(service.StatusOf("filter", R"({"Pod":)" + nested), 400);
  }
}

TEST(ExtenderProtocol, Case70_AStringOfOneMegabyteInThePodIsTaken) {
  const TestService service(OneMachine());
  Json pod = PodWithGpus("1", 1);
  pod["metadata"]["annotations"]["example.com/blob"] = std::string(1 << 20, 'x');
  pod["metadata"]["labels"]["q"] = std::string(1 << 20, '"');
  EXPECT_TRUE(FitsOnN1(service, pod));
}

TEST(ExtenderProtocol, Case70_HugeIntegersInFieldsThatDoNotMatterAreIgnored) {
  const TestService service(OneMachine());
  std::string body = ArgsWithNames(PodWithGpus("1", 1), {"n1"});
  const std::string number(400, '9');
  body.replace(
      body.find("\"spec\":{"), 8,
      "\"spec\":{\"activeDeadlineSeconds\":" + number + ",\"x\":-" + number + "e" + number + ",");
  EXPECT_EQ(service.Ask("filter", body)["NodeNames"], Json({"n1"}));
}

TEST(ExtenderProtocol, Case70_AnAskBeyondAllBoundsIsRefusedNotWrappedAround) {
  const TestService service(OneMachine());
  for (const char* quantity : {"9223372036854775807", "99999999999999999999999999", "9E", "1e30"}) {
    for (const char* resource :
         {"nvidia.com/gpu", "cpu", "memory", "berth.dev/gpu-milli", "berth.dev/gpu-memory-mib"}) {
      Json pod = PodAsking("1", {{resource, quantity}});
      Json second = pod["spec"]["containers"][0];
      pod["spec"]["containers"].push_back(second);
      pod["spec"]["overhead"] = {{resource, quantity}};
      EXPECT_FALSE(FitsOnN1(service, pod)) << resource << " " << quantity;
    }
  }
}

TEST(ExtenderProtocol, Case71_QuantitiesAreReadInEveryForm) {
  const TestService service(OneMachine());
  struct Form {
    const char* description;
    Json quantity;
    std::int64_t milli;
  };
  const Form forms[] = {{"plain", "1", 1000},
                        {"milli", "500m", 500},
                        {"decimal", "1.5", 1500},
                        {"no digit before the point", ".5", 500},
                        {"kilo", "1k", 1'000'000},
                        {"binary kilo", "1Ki", 1'024'000},
                        {"exponent", "1e3", 1'000'000},
                        {"upper exponent", "1E3", 1'000'000},
                        {"negative exponent", "1500e-3", 1500},
                        {"plus", "+2", 2000},
                        {"nano is rounded up", "1n", 1},
                        {"micro is rounded up", "1500u", 2},
                        {"zero", "0", 0},
                        {"a bare number", 2, 2000},
                        {"a bare fraction", 0.25, 250}};
  for (const Form& form : forms) {
    EXPECT_EQ(ShapeAsking(service, "cpu", form.quantity).cpu_milli, form.milli) << form.description;
  }
  EXPECT_EQ(ShapeAsking(service, "memory", "1Gi").memory_bytes, std::int64_t{1} << 30);
  EXPECT_EQ(ShapeAsking(service, "nvidia.com/gpu", "4").gpu_count(), 4);
  EXPECT_EQ(ShapeAsking(service, "nvidia.com/gpu", "4e0").gpu_count(), 4);
  EXPECT_FALSE(ShapeAsking(service, "nvidia.com/gpu", "0").wants_gpu());
}

TEST(ExtenderProtocol, Case71_WhatIsNoQuantityRefusesThePodAndNamesThePlace) {
  const TestService service(OneMachine());
  for (const char* quantity : {"", "x", "1 Gi", "1gi", "--1", "1.2.3", "0x10", "1e", "Ki", "NaN"}) {
    const Json answer =
        service.Ask("filter", ArgsWithNames(PodAsking("1", {{"cpu", quantity}}), {"n1"}));
    const std::string why = answer["FailedAndUnresolvableNodes"]["n1"];
    EXPECT_TRUE(why.starts_with("containers[0].resources.requests.cpu: want a quantity")) << why;
    EXPECT_EQ(answer["Error"], "");
  }
  const Json negative =
      service.Ask("filter", ArgsWithNames(PodAsking("1", {{"cpu", "-1"}}), {"n1"}));
  EXPECT_EQ(negative["FailedAndUnresolvableNodes"]["n1"],
            "containers[0].resources.requests.cpu: want 0 or more, got \"-1\"");
}

}  // namespace
}  // namespace berth::test::protocol_json_test
