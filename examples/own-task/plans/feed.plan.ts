import { definePlan } from "@ranking-dsl/runtime";

// What is recommended to the viewer and was not seen yet, best first.
export default definePlan({
  name: "feed",
  build: (ctx) =>
    ctx
      .viewer({ endpoint: EP.redis.main })
      .recommendation({ endpoint: EP.redis.main, fanout: 100 })
      .unseen({ endpoint: EP.redis.main })
      .hydrate({ endpoint: EP.redis.main, prefix: "item", keys: [Key.quality] })
      .vm({ outKey: Key.score, expr: coalesce(Key.quality, 0.5) })
      .sort({ key: Key.score, order: "desc" })
      .take({ count: 3 }),
});
