// SPDX-License-Identifier: Apache-2.0
#include "server/extender/ports/embedded_cluster.h"

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace berth::embedded_cluster_test {
namespace {

PodRequest Pod(const std::string& name, const std::string& uid) {
  PodRequest pod;
  pod.id = {uid, "ns", name};
  return pod;
}

std::shared_ptr<const PodRecord> On(const std::string& node, const PodRequest& pod) {
  return std::make_shared<const PodRecord>(PodRecord{pod, {node, 0, 0, {}}});
}

TEST(EmbeddedCluster, BindsAPodOnceAndConfirmsItAfterwards) {
  EmbeddedCluster cluster;
  EXPECT_TRUE(cluster.Assign(On("n1", Pod("p", "u"))));
  EXPECT_TRUE(cluster.Assign(On("n1", Pod("p", "u"))));
}

TEST(EmbeddedCluster, RefusesToMoveAPod) {
  EmbeddedCluster cluster;
  ASSERT_TRUE(cluster.Assign(On("n1", Pod("p", "u"))));
  const Status moved = cluster.Assign(On("n2", Pod("p", "u")));
  ASSERT_FALSE(moved);
  EXPECT_EQ(moved.error().code, Errc::kConflict);
  EXPECT_EQ(moved.error().message, "pod ns/p is already assigned to node n1");
}

TEST(EmbeddedCluster, RefusesAnotherPodOfTheSameName) {
  EmbeddedCluster cluster;
  ASSERT_TRUE(cluster.Assign(On("n1", Pod("p", "u"))));
  const Status other = cluster.Assign(On("n1", Pod("p", "v")));
  ASSERT_FALSE(other);
  EXPECT_EQ(other.error().code, Errc::kConflict);
  EXPECT_EQ(other.error().message, "pod ns/p has the UID u, not v");
}

TEST(EmbeddedCluster, NamespacesKeepNamesApart) {
  EmbeddedCluster cluster;
  PodRequest elsewhere = Pod("p", "v");
  elsewhere.id.namespace_name = "other";
  EXPECT_TRUE(cluster.Assign(On("n1", Pod("p", "u"))));
  EXPECT_TRUE(cluster.Assign(On("n2", elsewhere)));
}

TEST(EmbeddedCluster, OfManyBindsToDifferentNodesOneWins) {
  EmbeddedCluster cluster;
  std::atomic<int> won{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&cluster, &won, node = "n" + std::to_string(i)] {
      if (cluster.Assign(On(node, Pod("p", "u")))) ++won;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(won, 1);
}

}  // namespace
}  // namespace berth::embedded_cluster_test
