// Names of the registry: Key, P, EP and M; and U, the user. An unknown one is reported, and what comes back is accepted everywhere, so that the rest of
// the plan is looked at.
import { config } from "rankd:config";
import { BROKEN, Expression, node, report } from "rankd:expressions";
import { Endpoint, Model } from "rankd:handles";
import { current } from "rankd:problems";

const { create, freeze, keys, setPrototypeOf } = Object;
const { Proxy } = globalThis;
const json = JSON.stringify;

// A frozen object that asks `missing` for every name that it does not have.
export const guarded = (target, missing) =>
  freeze(setPrototypeOf(target, new Proxy(freeze(create(null)), { get: (_, name) => (typeof name === "symbol" ? undefined : missing(name)) })));
export const unknown = (what, name, known, prefix) =>
  report("D013", current.at, `there is no ${what} ${prefix}${name}`, { wrong: name, known });
function entries(list, op, what, prefix) {
  const table = create(null);
  for (const { name, type } of list) {
    const field = op === "key_ref" ? "key" : "param";
    table[name] = new Expression(node("value", type, op, [field, json(name)], -1, 1, 1, name));
  }
  const known = keys(table);
  return guarded(table, (name) => unknown(what, name, known, prefix));
}

export const Key = entries(config.keys, "key_ref", "key", "Key.");
export const P = entries(config.params, "param_ref", "parameter", "P.");
// What only a request knows of its user.
export const U = guarded(Object.assign(create(null), { id: new Expression(node("value", config.idType, "user_id", [], -1, 1, 1, "id")) }), (name) =>
  unknown("value of the user", name, ["id"], "U."));
const kinds = create(null);
for (const { name, kind } of config.endpoints) (kinds[kind] ??= create(null))[name] = new Endpoint(name);
const ANYTHING = guarded(create(null), () => BROKEN);
for (const kind of keys(kinds)) {
  const known = keys(kinds[kind]);
  guarded(kinds[kind], (name) => unknown("endpoint", name, known, `EP.${kind}.`));
}
const kindNames = keys(kinds);
export const EP = guarded(kinds, (name) => (unknown("kind of endpoint", name, kindNames, "EP."), ANYTHING));
const models = create(null);
for (const name of config.models) models[name] = new Model(name);
const modelNames = keys(models);
export const M = guarded(models, (name) => unknown("model", name, modelNames, "M."));
