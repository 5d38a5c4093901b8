// Movies for a user, by rating, how many people voted, and what the user likes.
import { definePlan } from "@ranking-dsl/runtime";

// A rating that few people gave counts less: it is drawn towards the average of 6.5.
const rating = (coalesce(Key.rating, 6.5) * Key.votes + 6.5 * 1000) / (Key.votes + 1000);
// What the request asks for, or else what the user likes best.
const isLiked = Key.genre == coalesce(P.genre, Key.favorite_genre);

export default definePlan({
  name: "top_movies",
  build: (ctx) => {
    const user = ctx.viewer({ endpoint: EP.redis.users });
    return ctx.scan({ endpoint: EP.table.movies })
      .filter({ pred: Key.year >= P.year_min })
      .join({ rhs: user, keys: { favorite_genre: Key.favorite_genre } })
      .vm({ outKey: Key.score, expr: isLiked ? rating * 1.2 : rating })
      .sort({ key: Key.score, order: "desc" })
      .take({ count: 10 });
  },
});
