// SPDX-License-Identifier: Apache-2.0
#include "server/extender/embedded_cluster.h"

#include <atomic>
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

Placement On(const std::string& node) { return {node, 0, 0, {}}; }

TEST(EmbeddedCluster, BindsAPodOnceAndConfirmsItAfterwards) {
  EmbeddedCluster cluster;
  EXPECT_TRUE(cluster.Assign(Pod("p", "u"), On("n1")));
  EXPECT_TRUE(cluster.Assign(Pod("p", "u"), On("n1")));
}

TEST(EmbeddedCluster, RefusesToMoveAPod) {
  EmbeddedCluster cluster;
  ASSERT_TRUE(cluster.Assign(Pod("p", "u"), On("n1")));
  const Status moved = cluster.Assign(Pod("p", "u"), On("n2"));
  ASSERT_FALSE(moved);
  EXPECT_EQ(moved.error().code, Errc::kConflict);
  EXPECT_EQ(moved.error().message, "pod ns/p is already assigned to node n1");
}

TEST(EmbeddedCluster, RefusesAnotherPodOfTheSameName) {
  EmbeddedCluster cluster;
  ASSERT_TRUE(cluster.Assign(Pod("p", "u"), On("n1")));
  const Status other = cluster.Assign(Pod("p", "v"), On("n1"));
  ASSERT_FALSE(other);
  EXPECT_EQ(other.error().code, Errc::kConflict);
  EXPECT_EQ(other.error().message, "pod ns/p has the UID u, not v");
}

TEST(EmbeddedCluster, NamespacesKeepNamesApart) {
  EmbeddedCluster cluster;
  PodRequest elsewhere = Pod("p", "v");
  elsewhere.id.namespace_name = "other";
  EXPECT_TRUE(cluster.Assign(Pod("p", "u"), On("n1")));
  EXPECT_TRUE(cluster.Assign(elsewhere, On("n2")));
}

TEST(EmbeddedCluster, OfManyBindsToDifferentNodesOneWins) {
  EmbeddedCluster cluster;
  std::atomic<int> won{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&cluster, &won, node = "n" + std::to_string(i)] {
      if (cluster.Assign(Pod("p", "u"), On(node))) ++won;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(won, 1);
}

}  // namespace
}  // namespace berth::embedded_cluster_test
