// SPDX-License-Identifier: Apache-2.0
#include "server/wire/pod/pod_parts.h"

#include <string>

#include <gtest/gtest.h>

#include "server/wire/pod/pod_object.h"
#include "test/support/dialects.h"
#include "test/support/wire_fixture.h"

namespace berth::wire::pod_move_test {
namespace {

using test::Json;

PodRequest Decode(const Json& pod) {
  static const PodRules rules(test::AllDialects(), DefaultConfig().resources);
  const auto observed = DecodeObservedPod(test::Padded(pod.dump()), rules);
  EXPECT_TRUE(observed) << observed.error().message;
  return observed ? observed->pod : PodRequest();
}

Json OfController(const std::string& kind) {
  Json pod = test::PodWithGpus("u", 1);
  pod["metadata"]["ownerReferences"] = Json::array({{{"apiVersion", "apps/v1"},
                                                     {"kind", kind},
                                                     {"name", "w"},
                                                     {"uid", "c"},
                                                     {"controller", true}}});
  return pod;
}

Mobility With(const std::string& key, const std::string& value) {
  Json pod = OfController("ReplicaSet");
  pod["metadata"]["annotations"][key] = value;
  return Decode(pod).mobility;
}

TEST(PodMove, AControllerMakesAPodAnew) {
  EXPECT_EQ(Decode(OfController("ReplicaSet")).mobility, Mobility::kMoves);
  EXPECT_EQ(Decode(test::PodWithGpus("u", 1)).mobility, Mobility::kNoController);
  EXPECT_EQ(Decode(OfController("DaemonSet")).mobility, Mobility::kComesBack);
  EXPECT_EQ(Decode(OfController("Node")).mobility, Mobility::kComesBack);
}

TEST(PodMove, ItsControllerIsKnownByItsUid) {
  EXPECT_EQ(Decode(OfController("ReplicaSet")).controller, "c");
  Json pod = OfController("ReplicaSet");
  pod["metadata"]["ownerReferences"][0]["uid"] = std::string(kMostControllerBytes, 'u');
  EXPECT_EQ(Decode(pod).controller.size(), kMostControllerBytes);
  pod["metadata"]["ownerReferences"][0]["uid"] = std::string(kMostControllerBytes + 1, 'u');
  EXPECT_EQ(Decode(pod).controller, "") << "no API server writes such a UID";
  EXPECT_EQ(Decode(pod).mobility, Mobility::kMoves);
}

TEST(PodMove, TheWordsOfAutoscalersCount) {
  EXPECT_EQ(With("karpenter.sh/do-not-disrupt", "true"), Mobility::kDoNotDisrupt);
  EXPECT_EQ(With("karpenter.sh/do-not-disrupt", "false"), Mobility::kMoves);
  EXPECT_EQ(With("cluster-autoscaler.kubernetes.io/safe-to-evict", "false"),
            Mobility::kNotSafeToEvict);
  EXPECT_EQ(With("cluster-autoscaler.kubernetes.io/safe-to-evict", "nonsense"), Mobility::kMoves);
}

TEST(PodMove, ADirectoryOfTheNodeHoldsAPodUnlessItIsSafeToEvict) {
  Json pod = OfController("Job");
  pod["spec"]["volumes"] = Json::array({{{"name", "d"}, {"hostPath", {{"path", "/data"}}}}});
  EXPECT_EQ(Decode(pod).mobility, Mobility::kHostPath);
  pod["metadata"]["annotations"]["cluster-autoscaler.kubernetes.io/safe-to-evict"] = "true";
  EXPECT_EQ(Decode(pod).mobility, Mobility::kMoves);
}

TEST(PodMove, NumbersStayInTheirRange) {
  Json pod = OfController("Job");
  EXPECT_EQ(Decode(pod).deletion_cost, 0);
  EXPECT_EQ(Decode(pod).grace_seconds, 30);
  Json& cost = pod["metadata"]["annotations"]["controller.kubernetes.io/pod-deletion-cost"];
  cost = "-7";
  pod["spec"]["terminationGracePeriodSeconds"] = 90;
  EXPECT_EQ(Decode(pod).deletion_cost, -7);
  EXPECT_EQ(Decode(pod).grace_seconds, 90);
  for (const char* const wrong : {"99999999999", "7x", "", " 7"}) {
    cost = wrong;
    EXPECT_EQ(Decode(pod).deletion_cost, 0) << wrong;
  }
  pod["spec"]["terminationGracePeriodSeconds"] = std::int64_t{1} << 40;
  EXPECT_EQ(Decode(pod).grace_seconds, kMostGraceSeconds);
  pod["spec"]["terminationGracePeriodSeconds"] = -1;
  EXPECT_EQ(Decode(pod).grace_seconds, 0);
}

// What a tenant may write in an annotation that Berth reads for others must not refuse the pod.
TEST(PodMove, AnEndlessWordRefusesNoPod) {
  Json pod = OfController("Job");
  pod["metadata"]["annotations"]["karpenter.sh/do-not-disrupt"] = std::string(100'000, 'x');
  const PodRequest request = Decode(pod);
  EXPECT_EQ(request.refusal, "");
  EXPECT_EQ(request.mobility, Mobility::kMoves);
}

}  // namespace
}  // namespace berth::wire::pod_move_test
