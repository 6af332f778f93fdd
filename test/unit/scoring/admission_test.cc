// SPDX-License-Identifier: Apache-2.0
#include "scoring/admission.h"

#include <gtest/gtest.h>

#include "test/support/builders.h"

namespace berth::test::admission_test {
namespace {

const NodeConstraints kInZoneA = {{{"zone", LabelOperator::kIn, {"a"}}}, {}, {}};

TEST(Admits, EveryPodWhereNothingIsAsked) {
  EXPECT_EQ(Admits(ANode("n").Spec(), APod("p").Request()), Reason::kFits);
}

TEST(Admits, OnlyPodsThatTolerateEveryTaint) {
  const NodeSpec node =
      ANode("n").Tainted("gpu").Tainted("spot", "", TaintEffect::kNoExecute).Spec();
  const Toleration gpu{"gpu", TolerationOperator::kExists, "", {}};
  const Toleration spot{"spot", TolerationOperator::kExists, "", {}};
  EXPECT_EQ(Admits(node, APod("p").Request()), Reason::kTaintNotTolerated);
  EXPECT_EQ(Admits(node, APod("p").Constrained({{}, {}, {gpu}}).Request()),
            Reason::kTaintNotTolerated);
  EXPECT_EQ(Admits(node, APod("p").Constrained({{}, {}, {gpu, spot}}).Request()), Reason::kFits);
}

TEST(Admits, OnlyPodsThatSelectTheNode) {
  const PodRequest pod = APod("p").Constrained(kInZoneA).Request();
  EXPECT_EQ(Admits(ANode("n").Labelled({{"zone", "a"}}).Spec(), pod), Reason::kFits);
  EXPECT_EQ(Admits(ANode("n").Labelled({{"zone", "b"}}).Spec(), pod), Reason::kNodeNotSelected);
}

TEST(AdmissionMatters, OnlyWhereATaintOrASelectorIs) {
  const auto plain = SnapshotOf({ANode("a"), ANode("b")});
  const auto tainted = SnapshotOf({ANode("a"), ANode("b").Tainted("gpu")});
  EXPECT_FALSE(AdmissionMatters(*plain, APod("p").Request()));
  EXPECT_TRUE(AdmissionMatters(*plain, APod("p").Constrained(kInZoneA).Request()));
  EXPECT_TRUE(AdmissionMatters(*tainted, APod("p").Request()));
  const Snapshot clean = tainted->With(1, std::make_shared<const Node>(ANode("b").Build()));
  EXPECT_FALSE(AdmissionMatters(clean, APod("p").Request()));
}

}  // namespace
}  // namespace berth::test::admission_test
