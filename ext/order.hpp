// order.hpp: the order of jobs across scopes: priority, created_at, id, which is the part of the key behind the state.
#pragma once

#include <algorithm>
#include <string_view>

#include "rows.hpp"

namespace telha {

inline void keep_first(Rows* rows, size_t n) noexcept {
  constexpr size_t kPriorityAt = 33;
  std::sort(rows->items().begin(), rows->items().end(), [](const Row& left, const Row& right) {
    return std::string_view(left.key).substr(kPriorityAt) < std::string_view(right.key).substr(kPriorityAt);
  });
  if (rows->size() > n) rows->resize(n);
}

}  // namespace telha
