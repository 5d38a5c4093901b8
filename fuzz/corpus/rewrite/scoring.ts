// Pieces that several plans share: ordinary functions over keys and parameters.
import type { Rows } from "@ranking-dsl/runtime";

/** What ranking looks at in a medium. */
const MEDIA_KEYS = [Key.title, Key.topic, Key.country, Key.quality, Key.likes, Key.views, Key.age_hours, Key.nsfw];

/** Reads the fields of media. */
export function withMediaFields(rows: Rows): Rows {
  return rows.hydrate({ endpoint: EP.redis.redis_default, prefix: "media", keys: MEDIA_KEYS });
}

/** Halves every `P.half_life_hours`: 1 for what is new, 0.5 after one half-life. */
export const freshness = 0.5 ** (coalesce(Key.age_hours, 0) / P.half_life_hours);

/** Likes for each view, pulled towards a twentieth while there are few views. */
export const likeRate = (coalesce(Key.likes, 0) + 5) / (coalesce(Key.views, 0) + 100);

/** A weighted sum of values between 0 and 1. */
export function blend(parts: readonly (readonly [weight: number, value: number])[]): number {
  let sum = 0;
  for (const [weight, value] of parts) sum += weight * value;
  return sum;
}
