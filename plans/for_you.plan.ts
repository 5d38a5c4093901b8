// The feed: media from four sources, each once and without what was seen, scored by quality, likes and freshness, in an order in which neither an account nor a
// topic comes too often, with promoted media at fixed places, filled up to twenty, in pages. A source that fails or is too slow is left out, and the answer says
// so; under load, fewer recommendations are looked at.
import { definePlan, type Rows } from "@ranking-dsl/runtime";
import { blend, freshness, likeRate, withMediaFields } from "./fragments/scoring.ts";

const endpoint = EP.redis.redis_default;
const quality = coalesce(Key.quality, 0.3);
const inCountry = Key.country != null && Key.country == coalesce(P.boost_country, Key.viewer_country);

export default definePlan({
  name: "for_you",
  build: (ctx) => {
    const viewer = ctx.viewer({ endpoint, fallback: "none" });
    const mediaOf = (accounts: Rows, fanout: number, trace: string) =>
      accounts.media({ endpoint, fanout, fallback: "none", trace });
    const trending = (fanout: number) =>
      ctx.expand({ endpoint, key: "trending", from: "zset", order: "desc", fanout, fallback: "none", trace: "trending" });
    // What is known of media, and their scores; media that may not be shown are dropped.
    const scored = (rows: Rows) =>
      withMediaFields(rows)
        .filter({ pred: P.allow_nsfw || !Key.nsfw })
        .vm({ outKey: Key.score, expr: blend([[0.5, quality], [0.3, min(likeRate * 10, 1)], [0.2, freshness]]) })
        .filter({ pred: Key.score >= coalesce(P.score_min, 0) })
        .join({ rhs: viewer, keys: { country: Key.viewer_country } })
        .vm({ outKey: Key.final_score, expr: inCountry ? Key.score * 1.25 : Key.score });

    const followed = viewer.follow({ endpoint, fanout: 50, fallback: "none" });
    const friends = followed.take({ count: 5 }).follow({ endpoint, fanout: 5, fallback: "none" });
    const recommended = viewer.recommendation({ endpoint, fanout: dial(30, { min: 10 }), fallback: "none" });
    const sources = [
      mediaOf(followed, 10, "followed"),
      mediaOf(friends, 2, "friends"),
      mediaOf(recommended, 5, "recommended"),
      trending(20),
    ];
    const promoted = ctx.expand({ endpoint, key: "promoted", from: "list", fanout: 2, fallback: "none", trace: "promoted" });

    const candidates = ctx
      .merge({ inputs: sources, how: "round_robin", sourceKey: Key.source })
      .dedup()
      .exclude({ endpoint, key: "seen:{user_id}", from: "set", fallback: "input", failOpen: "what was seen is better than nothing" });
    return scored(candidates)
      .sort({ key: Key.final_score, order: "desc" })
      .diversify({ rules: [{ by: Key.parent_id, gap: 2 }, { by: Key.topic, max: 3, window: 8 }], counts: P.cursor })
      .slots({ fills: [{ rows: scored(promoted).vm({ outKey: Key.source, expr: "promoted" }), at: [4, 12] }] })
      .ensure({ count: 20, from: [trending(100)], then: scored })
      .page({ size: 20, cursor: P.cursor });
  },
});
