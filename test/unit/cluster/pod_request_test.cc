// SPDX-License-Identifier: Apache-2.0
#include "cluster/values/pod_request.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "test/support/builders.h"

namespace berth::test::pod_request_test {
namespace {

TEST(RequestShape, KnowsWhatItAsksOfGpus) {
  struct Case {
    std::string description;
    RequestShape shape;
    bool wants_gpu, is_share;
    int gpu_count, milli_per_gpu;
  };
  for (const Case& c :
       {Case{"no GPU", APod("p").Cpu(4).Shape(), false, false, 0, 0},
        Case{"whole GPUs", APod("p").Whole(4).Shape(), true, false, 4, 1000},
        Case{"a share", APod("p").Share(300).Shape(), true, true, 1, 300},
        Case{"a share of both", APod("p").Share(300, 4000).Shape(), true, true, 1, 300},
        Case{"a share by memory", APod("p").ShareByMemory(4000).Shape(), true, true, 1, 0}}) {
    EXPECT_EQ(c.shape.wants_gpu(), c.wants_gpu) << c.description;
    EXPECT_EQ(c.shape.is_share(), c.is_share) << c.description;
    EXPECT_EQ(c.shape.gpu_count(), c.gpu_count) << c.description;
    EXPECT_EQ(c.shape.milli_per_gpu(), c.milli_per_gpu) << c.description;
  }
}

TEST(RequestShape, AdmitsAnyModelUnlessItNamesSome) {
  const RequestShape any = APod("p").Whole(1).Shape();
  const RequestShape some = APod("p").Whole(1).Models({"A100", "T4"}).Shape();
  EXPECT_TRUE(any.Admits("T4"));
  EXPECT_TRUE(any.Admits(""));
  EXPECT_TRUE(some.Admits("A100"));
  EXPECT_TRUE(some.Admits("T4"));
  EXPECT_FALSE(some.Admits("T"));
  EXPECT_FALSE(some.Admits("T40"));
  EXPECT_FALSE(some.Admits(""));
}

TEST(RequestShape, DiffersInEveryFieldAndHashesApart) {
  const std::vector<RequestShape> shapes = {APod("p").Shape(),
                                            APod("p").Cpu(1).Shape(),
                                            APod("p").MemoryGib(1).Shape(),
                                            APod("p").Whole(1).Shape(),
                                            APod("p").Whole(2).Shape(),
                                            APod("p").Share(1000).Shape(),
                                            APod("p").Share(300).Shape(),
                                            APod("p").Share(300, 4000).Shape(),
                                            APod("p").ShareByMemory(4000).Shape(),
                                            APod("p").Whole(1).Models({"T4"}).Shape(),
                                            APod("p").Whole(1).Models({"A100"}).Shape(),
                                            APod("p").Whole(1).Models({"A100", "T4"}).Shape()};
  std::set<std::size_t> hashes;
  for (std::size_t a = 0; a < shapes.size(); ++a) {
    for (std::size_t b = 0; b < shapes.size(); ++b) {
      EXPECT_EQ(shapes[a] == shapes[b], a == b) << a << " and " << b;
    }
    hashes.insert(HashValue(shapes[a]));
  }
  EXPECT_EQ(hashes.size(), shapes.size());
}

TEST(RequestShape, HashesEqualShapesAlike) {
  EXPECT_EQ(HashValue(APod("a").Share(300, 4000).Cpu(2).Models({"T4"}).Shape()),
            HashValue(APod("b").Share(300, 4000).Cpu(2).Models({"T4"}).Shape()));
}

}  // namespace
}  // namespace berth::test::pod_request_test
