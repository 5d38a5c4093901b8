// Takes out what must not be shown: by title, by topic, by country, and adult media unless they are asked for.
import { definePlan } from "@ranking-dsl/runtime";
import { withMediaFields } from "./fragments/scoring.ts";

const SPAM = /\b(free money|click here|casino)\b/i;
const BLOCKED_TOPICS = ["gambling", "weapons"];

const isBlockedByCaller = P.blocked_titles != null && regex(Key.title, P.blocked_titles, "i");
const isSpam = regex(Key.title, SPAM);

export default definePlan({
  name: "policy_filter",
  build: (ctx) => {
    const media = ctx
      .viewer({ endpoint: EP.redis.redis_default })
      .follow({ endpoint: EP.redis.redis_default })
      .media({ endpoint: EP.redis.redis_default });
    return withMediaFields(media)
      .filter({ pred: !isSpam && !isBlockedByCaller, trace: "titles" })
      .filter({ pred: !Pred.in(Key.topic, BLOCKED_TOPICS), trace: "topics" })
      .filter({ pred: P.allow_nsfw || !Key.nsfw, trace: "adults only" })
      .sort({ key: Key.age_hours })
      .take({ count: 50 });
  },
});
