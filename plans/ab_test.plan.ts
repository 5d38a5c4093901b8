// Two ways to score in one plan: the request's `variant` says which. Anything but "fresh" is the control arm.
import { definePlan } from "@ranking-dsl/runtime";
import { freshness, likeRate, withMediaFields } from "./fragments/scoring.ts";

const control = coalesce(Key.quality, 0.3) * coalesce(P.weight, 1);
const treatment = (control + likeRate) * freshness;

export default definePlan({
  name: "ab_test",
  build: (ctx) =>
    withMediaFields(
      ctx
        .viewer({ endpoint: EP.redis.redis_default })
        .follow({ endpoint: EP.redis.redis_default, fanout: 40 })
        .media({ endpoint: EP.redis.redis_default, fanout: 10 }),
    )
      .vm({ outKey: Key.score, expr: P.variant === "fresh" ? treatment : control })
      .sort({ key: Key.score, order: "desc" })
      .take({ count: 20, timeoutMs: 50, scheduling: { inline: true, costEstimateUs: 5 } }),
});
