// The feed: media of whom the viewer follows and of whom they may like, each once, scored by quality, likes and freshness, and in an order
// in which neither an account nor a topic comes too often. A source that fails or is too slow is left out, and the answer says so; under
// load, fewer recommendations are looked at.
import { definePlan } from "@ranking-dsl/runtime";
import { blend, freshness, likeRate, withMediaFields } from "./fragments/scoring.ts";

const quality = coalesce(Key.quality, 0.3);

export default definePlan({
  name: "for_you",
  build: (ctx) => {
    const viewer = ctx.viewer({ endpoint: EP.redis.redis_default });
    const followed = viewer
      .follow({ endpoint: EP.redis.redis_default, fanout: 50 })
      .media({ endpoint: EP.redis.redis_default, fanout: 10, fallback: "none", trace: "media of whom the viewer follows" });
    const recommended = viewer
      .recommendation({ endpoint: EP.redis.redis_default, fanout: dial(30, { min: 10 }), fallback: "none" })
      .media({ endpoint: EP.redis.redis_default, fanout: 5, fallback: "none", trace: "media of whom the viewer may like" });

    const inCountry = Key.country != null && Key.country == P.boost_country;
    return withMediaFields(ctx.merge({ inputs: [followed, recommended], how: "round_robin" }).dedup())
      .filter({ pred: P.allow_nsfw || !Key.nsfw })
      .vm({ outKey: Key.score, expr: blend([[0.5, quality], [0.3, min(likeRate * 10, 1)], [0.2, freshness]]) })
      .vm({ outKey: Key.final_score, expr: inCountry ? Key.score * 1.25 : Key.score })
      .filter({ pred: Key.final_score >= coalesce(P.score_min, 0) })
      .sort({ key: Key.final_score, order: "desc" })
      .diversify({ rules: [{ by: Key.parent_id, gap: 2 }, { by: Key.topic, max: 3, window: 8 }], size: 20 })
      .take({ count: 20 });
  },
});
