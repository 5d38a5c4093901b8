// Movies for a user: what was recommended to them, by rating, how many people voted, and age.
import { definePlan } from "@ranking-dsl/runtime";

// A rating that few people gave counts less: it is drawn towards the average of 6.5.
const rating = (coalesce(Key.rating, 6.5) * Key.votes + 6.5 * 1000) / (Key.votes + 1000);
const isWanted = Key.genre == P.genre;

export default definePlan({
  name: "top_movies",
  build: (ctx) =>
    ctx.viewer({ endpoint: EP.redis.store })
      .recommendation({ endpoint: EP.redis.store, fanout: 100 })
      .hydrate({
        endpoint: EP.redis.store,
        prefix: "movie",
        keys: [Key.title, Key.genre, Key.year, Key.rating, Key.votes],
      })
      .filter({ pred: Key.year >= P.year_min })
      .vm({ outKey: Key.score, expr: isWanted ? rating * 1.2 : rating })
      .sort({ key: Key.score, order: "desc" })
      .take({ count: 10 }),
});
