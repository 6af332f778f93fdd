// SPDX-License-Identifier: Apache-2.0
#include "scoring/mig/mig_tables.h"

#include <gtest/gtest.h>

#include <memory>
#include <thread>
#include <vector>

#include "topology/mig/mig_product.h"

namespace berth::mig_tables_test {
namespace {

using Product = std::shared_ptr<const MigProduct>;

// An A100-40GB that is nobody else's.
Product AProduct() { return std::make_shared<const MigProduct>(*FindMigProduct("A100-40GB")); }

TEST(MigTables, AreThereOnceSomebodyHasAskedForThem) {
  const Product product = AProduct(), other = AProduct();
  EXPECT_FALSE(HasMigTables(product));
  const auto tables = MigTablesOf(product);
  ASSERT_NE(tables, nullptr);
  EXPECT_TRUE(HasMigTables(product));
  EXPECT_FALSE(HasMigTables(other));
  EXPECT_EQ(MigTablesOf(product), tables);
}

TEST(MigTables, AreTheSameForAllWhoAskAtOnce) {
  const Product product = AProduct();
  std::vector<std::shared_ptr<const MigTables>> found(4);
  {
    std::vector<std::jthread> threads;
    for (auto& tables : found) {
      threads.emplace_back([&tables, &product] { tables = MigTablesOf(product); });
    }
  }
  for (const auto& tables : found) {
    ASSERT_NE(tables, nullptr);
    EXPECT_EQ(tables, found.front());
  }
}

TEST(MigTables, TellTheWholeGpuAsTheGreatestLoss) {
  const Product product = AProduct();
  const auto tables = MigTablesOf(product);
  const auto loss = [&](const char* profile, int start) {
    const int row = *product->RowOf(ParseMigProfile(profile).value());
    return tables->LossGpus(0, *product->PlacementAt(row, start));
  };
  EXPECT_LT(loss("7g.40gb", 0), 1);  // half of it is back some time
  EXPECT_LT(loss("4g.20gb", 0), loss("7g.40gb", 0));
  EXPECT_LT(loss("3g.20gb", 4), loss("3g.20gb", 0));
  EXPECT_LT(loss("1g.5gb", 6), loss("1g.5gb", 0));
}

}  // namespace
}  // namespace berth::mig_tables_test
