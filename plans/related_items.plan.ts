// More from makers that resemble those the viewer likes: popular media with a title and a topic.
import { definePlan } from "@ranking-dsl/runtime";
import { likeRate, withMediaFields } from "./fragments/scoring.ts";

// Popularity grows with the logarithm of views: the first thousand count as much as the next million.
const popularity = log1p(coalesce(Key.views, 0)) / log1p(1_000_000);

export default definePlan({
  name: "related_items",
  build: (ctx) => {
    const others = ctx
      .viewer({ endpoint: EP.redis.redis_default })
      .recommendation({ endpoint: EP.redis.redis_default, fanout: 20 })
      .media({ endpoint: EP.redis.redis_default, fanout: 10 });
    return withMediaFields(others)
      .filter({ pred: Key.title != null && Key.topic != null })
      .vm({ outKey: Key.score, expr: clamp(0.7 * popularity + 3 * likeRate, 0, 1) })
      .sort({ key: Key.score, order: "desc" })
      .take({ count: 12 });
  },
});
