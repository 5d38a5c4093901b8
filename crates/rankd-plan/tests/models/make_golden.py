"""Makes the golden models of this folder anew, or checks a million scores, with the libraries of PyPI.

    python3 -m venv peers && peers/bin/pip install lightgbm xgboost-cpu catboost scikit-learn pandas numpy
    peers/bin/python crates/rankd-plan/tests/models/make_golden.py golden
    peers/bin/python crates/rankd-plan/tests/models/make_golden.py check [ROWS] [NAME…]
    peers/bin/python crates/rankd-plan/tests/models/make_golden.py logf

`golden` writes for each configuration the model as its library saves it, and NAME.rows: rows, and what the library makes of them. `check` does
the same with larger models and many rows in a temporary folder, and has `cargo run --release --example check_model` compare every bit.

A .rows file, little-endian: u32 rows, features, raw outputs, response outputs, rows with contributions; for each feature u32 kind (0 number,
1 text, 2 int, 3 bool), and for texts u32 count and each as u32 length and UTF-8; then f64: the values, row by row (texts by position, null as
NaN), the raw scores, the responses, and the contributions of the first rows, output by output, the expected value last.
"""

import json
import os
import struct
import subprocess
import sys
import tempfile
import warnings

import catboost as cb
import lightgbm as lgb
import numpy as np
import pandas as pd
import xgboost as xgb

warnings.filterwarnings("ignore")
HERE = os.path.dirname(os.path.abspath(__file__))
WORDS = ["ant", "bee", "cat", "dog", "elk", "fox", "gnu", "hen", "ibis", "jay"]


class Data:
    """Random training data: some values missing, some exactly zero, some of few kinds."""

    def __init__(self, big, seed):
        self.random = r = np.random.default_rng(seed)
        rows = 4000 if big else 600
        self.X = X = r.normal(size=(rows, 8))
        X[:, 1] = np.round(X[:, 1] * 4) / 4
        X[:, 2] = np.exp(X[:, 2] * 3)
        X[r.random((rows, 8)) < 0.1] = np.nan
        X[r.random((rows, 8)) < 0.05] = 0.0
        X[:, 3] = np.nan_to_num(X[:, 3])
        self.score = np.nan_to_num(X[:, 0]) + np.nan_to_num(X[:, 1]) * 0.7 + np.log1p(np.nan_to_num(X[:, 2])) * 0.3 + np.sin(3 * X[:, 3]) + r.normal(size=rows) * 0.2
        self.kinds = r.integers(0, 10, rows)
        self.codes = r.integers(0, 40, rows)

    def frame(self):
        """The data with categorical columns, and what they add to the score."""
        frame = pd.DataFrame(self.X, columns=[f"f{at}" for at in range(8)])
        frame["word"] = pd.Categorical([WORDS[kind] for kind in self.kinds], categories=WORDS)
        frame["number"] = pd.Categorical((self.codes % 7) * 10 - 20)
        frame["flag"] = pd.Categorical(self.codes % 3 == 0)
        frame.loc[self.random.random(len(frame)) < 0.1, "word"] = np.nan
        return frame, self.score + np.sin(self.kinds * 2.0) + (self.codes % 7 == 3)

    def coded(self):
        X = np.column_stack([self.X, self.kinds.astype(float), self.codes.astype(float)])
        X[self.random.random(len(X)) < 0.05, 9] = np.nan
        return X, self.score + np.sin(self.kinds * 2.0) + np.cos(self.codes * 1.0)


def test_rows(random, X, thresholds, rows, single, codes=()):
    """Rows of all sorts: on every threshold and on both sides of it, missing, zeros of both signs, almost zero, large."""
    features = X.shape[1]
    out = X[random.integers(0, len(X), rows)].copy()
    special = [np.nan, 0.0, -0.0, 1e-36, -1e-36, float(np.float32(1e-35)), np.nextafter(float(np.float32(1e-35)), 1), 5e-324, 1e-46, -3e38, 3e38]
    if not single:
        special += [1e300, -1e300, 2.2e-308]
    for feature in range(features):
        pool = list(special)
        for t in thresholds.get(feature, []):
            pool += [t, np.nextafter(t, np.inf), np.nextafter(t, -np.inf)]
            if single:
                t = np.float32(t)
                pool += [float(t), float(np.nextafter(t, np.float32(np.inf))), float(np.nextafter(t, np.float32(-np.inf)))]
        if feature in codes:
            pool = [np.nan, -1.0, -0.5, 0.5, 41.0, 1e6, 16777216.0, 3e9] + [float(code) for code in range(45)]
        pool = np.array(pool)
        # Each of the pool once, as far as there are rows, and random ones.
        chosen = random.random(rows) < 0.5
        out[chosen, feature] = random.choice(pool, chosen.sum())
        at = random.permutation(rows)[: len(pool)]
        out[at, feature] = pool[: len(at)]
    return out


def lgb_thresholds(booster):
    found = {}
    def walk(node):
        stack = [node]
        while stack:
            node = stack.pop()
            if "split_feature" in node:
                if node["decision_type"] == "<=":
                    found.setdefault(node["split_feature"], set()).add(node["threshold"])
                stack += [node["left_child"], node["right_child"]]
    for tree in booster.dump_model()["tree_info"]:
        walk(tree["tree_structure"])
    return {feature: sorted(values) for feature, values in found.items()}


def xgb_thresholds(booster):
    model = json.loads(booster.save_raw("json"))["learner"]["gradient_booster"]
    found = {}
    for tree in model.get("gbtree", model)["model"]["trees"]:
        for left, feature, threshold, kind in zip(tree["left_children"], tree["split_indices"], tree["split_conditions"], tree["split_type"]):
            if left >= 0 and kind == 0:
                found.setdefault(feature, set()).add(threshold)
    return {feature: sorted(values) for feature, values in found.items()}


def cb_thresholds(path):
    model = json.load(open(path))
    return {f["flat_feature_index"]: f["borders"] or [] for f in model["features_info"].get("float_features", [])}


def write_rows(path, kinds, values, raw, response, contributions):
    raw, response = np.asarray(raw, dtype=np.float64), np.asarray(response, dtype=np.float64)
    raw, response = raw.reshape(len(values), -1), response.reshape(len(values), -1)
    contributions = np.asarray(contributions, dtype=np.float64)
    with open(path, "wb") as out:
        out.write(struct.pack("<5I", len(values), values.shape[1], raw.shape[1], response.shape[1], len(contributions)))
        for kind in kinds:
            number, texts = kind if isinstance(kind, tuple) else (kind, [])
            out.write(struct.pack("<I", number))
            if number == 1:
                out.write(struct.pack("<I", len(texts)))
                for text in texts:
                    data = text.encode()
                    out.write(struct.pack("<I", len(data)) + data)
        for block in (values, raw, response, contributions):
            out.write(np.ascontiguousarray(block, dtype="<f8").tobytes())


class Maker:
    def __init__(self, folder, big, rows, only):
        self.folder, self.big, self.rows, self.only = folder, big, rows, only
        self.made = []

    def wants(self, name):
        return not self.only or name in self.only

    def size(self, small, big):
        return big if self.big else small

    def path(self, name, extension):
        return os.path.join(self.folder, f"{name}.{extension}")

    def done(self, format, name, extension):
        self.made.append((format, self.path(name, extension), self.path(name, "rows")))

    # LightGBM

    def lightgbm(self, name, params, data="plain", rounds=None, group=False, seed=1):
        if not self.wants(name):
            return
        d = Data(self.big, seed)
        params = {"verbose": -1, "num_leaves": self.size(7, 63), "min_data_in_leaf": 3, "num_threads": 2, "seed": 1, "deterministic": True, **params}
        kinds, codes, frame = [0] * 8, (), None
        X, y = d.X, d.score
        if data == "frame":
            frame, y = d.frame()
            kinds = [0] * 8 + [(1, WORDS + ["unheard-of"]), 2, 3]
            X = frame
        elif data == "coded":
            X, y = d.coded()
            kinds, codes = [0] * 10, (8, 9)
            params["categorical_feature"] = [8, 9]
        elif data == "missing":
            y = y * 0.1 + 3 * np.isnan(X[:, 0]) - 2 * np.isnan(X[:, 2])
        objective = params.get("objective", "regression")
        if objective in ("binary", "cross_entropy", "cross_entropy_lambda"):
            y = (y > 0.5).astype(float)
        elif objective in ("multiclass", "multiclassova"):
            y = np.digitize(y, [-0.5, 1.0]).astype(float)
        elif objective in ("poisson", "tweedie", "gamma"):
            y = np.exp(y / 3)
        elif group:
            y = np.clip(np.digitize(y, [-1, 0.5, 2]), 0, 3)
        kwargs = {"group": [20] * (len(y) // 20)} if group else {}
        train = lgb.Dataset(X, y, free_raw_data=False, **kwargs)
        booster = lgb.train(params, train, rounds or self.size(6, 60))
        path = self.path(name, "txt")
        with open(path, "w") as out:
            text = booster.model_to_string()
            start, end = text.find("\nparameters:\n"), text.find("end of parameters\n")
            # Two hundred lines that do not matter here, but for one.
            text = text[: start + len("\nparameters:\n")] + "[boosting: gbdt]\n" + text[end:]
            out.write(text)
        booster = lgb.Booster(model_file=path)
        base = frame.iloc[:, :8].to_numpy() if frame is not None else X
        values = test_rows(d.random, base, lgb_thresholds(booster), self.rows, False, codes)
        asked = values
        if frame is not None:
            word = d.random.integers(0, 11, len(values)).astype(float)
            word[d.random.random(len(values)) < 0.1] = np.nan
            number = (d.random.integers(0, 8, len(values)) * 10 - 20).astype(float)
            number[d.random.random(len(values)) < 0.1] = np.nan
            flag = d.random.integers(0, 2, len(values)).astype(float)
            asked = pd.DataFrame(values, columns=[f"f{at}" for at in range(8)])
            asked["word"] = pd.Categorical([None if np.isnan(v) else (WORDS + ["unheard-of"])[int(v)] for v in word])
            asked["number"] = pd.Categorical([None if np.isnan(v) else int(v) for v in number])
            asked["flag"] = pd.Categorical(flag == 1)
            values = np.column_stack([values, word, number, flag])
        raw = booster.predict(asked, raw_score=True)
        response = booster.predict(asked)
        contributions = np.zeros((0, 0))
        if not params.get("linear_tree"):
            contributions = booster.predict(asked[:20], pred_contrib=True)
        write_rows(self.path(name, "rows"), kinds, values, raw, response, contributions)
        self.done("lightgbm", name, "txt")

    # XGBoost

    def xgboost(self, name, params, data="plain", rounds=None, group=False, seed=2, extension="json"):
        if not self.wants(name):
            return
        d = Data(self.big, seed)
        params = {"max_depth": self.size(3, 6), "nthread": 2, "seed": 1, "max_bin": self.size(32, 256), **params}
        kinds, codes, frame = [0] * 8, (), None
        X, y = d.X, d.score
        options = {}
        if data == "frame":
            frame, y = d.frame()
            frame = frame.drop(columns=["flag"])
            kinds = [0] * 8 + [(1, WORDS), 2]
            X, options = frame, {"enable_categorical": True}
        elif data == "coded":
            X, y = d.coded()
            kinds, codes = [0] * 10, (8, 9)
            options = {"enable_categorical": True, "feature_types": ["float"] * 8 + ["c"] * 2}
        objective = params.get("objective", "reg:squarederror")
        if objective.startswith("binary:") or objective == "reg:logistic":
            y = (y > 0.5).astype(float)
        elif objective.startswith("multi:"):
            y, params["num_class"] = np.digitize(y, [-0.5, 1.0]).astype(float), 3
        elif objective in ("count:poisson", "reg:gamma", "reg:tweedie", "survival:cox", "survival:aft"):
            y = np.exp(y / 3)
        elif group:
            y = np.clip(np.digitize(y, [-1, 0.5, 2]), 0, 3)
        train = xgb.DMatrix(X, y, **options)
        if objective == "survival:aft":
            train.set_float_info("label_lower_bound", y)
            train.set_float_info("label_upper_bound", y)
        if group:
            train.set_group([20] * (len(y) // 20))
        booster = xgb.train(params, train, rounds or self.size(5, 50))
        path = self.path(name, extension)
        booster.save_model(path)
        booster = xgb.Booster(model_file=path)
        base = frame.iloc[:, :8].to_numpy() if frame is not None else X
        values = test_rows(d.random, base, xgb_thresholds(booster), self.rows, True, codes)
        if data == "coded":
            # The library refuses what its trees would send left.
            for column in codes:
                low = (values[:, column] < 0) | (values[:, column] >= 16777216)
                values[low, column] = np.nan
        asked = values
        if frame is not None:
            word = d.random.integers(0, 10, len(values)).astype(float)
            word[d.random.random(len(values)) < 0.1] = np.nan
            number = (d.random.integers(0, 7, len(values)) * 10 - 20).astype(float)
            number[d.random.random(len(values)) < 0.1] = np.nan
            asked = pd.DataFrame(values, columns=[f"f{at}" for at in range(8)])
            asked["word"] = pd.Categorical([None if np.isnan(v) else WORDS[int(v)] for v in word])
            asked["number"] = pd.Categorical([None if np.isnan(v) else int(v) for v in number])
            values = np.column_stack([values, word, number])
        def matrix(rows):
            return xgb.DMatrix(rows, **options)
        raw = booster.predict(matrix(asked), output_margin=True)
        response = booster.predict(matrix(asked))
        contributions = booster.predict(matrix(asked[:20]), pred_contribs=True).reshape(min(20, len(values)), -1)
        write_rows(self.path(name, "rows"), kinds, values, raw, response, contributions)
        self.done("xgboost", name, extension)

    # CatBoost

    def catboost(self, name, params, seed=3, group=False, response=None):
        if not self.wants(name):
            return
        d = Data(self.big, seed)
        X, y = d.X.astype(np.float32), d.score
        loss = params.get("loss_function", "RMSE")
        if loss in ("Logloss", "CrossEntropy"):
            y = (y > 0.5).astype(int)
        elif loss in ("MultiClass", "MultiClassOneVsAll"):
            y = np.digitize(y, [-0.5, 1.0])
        elif loss in ("Poisson", "Tweedie:variance_power=1.5"):
            y = np.exp(y / 3)
        elif group:
            y = np.clip(np.digitize(y, [-1, 0.5, 2]), 0, 3)
        params = {"iterations": self.size(5, 60), "depth": self.size(3, 6), "thread_count": 2, "random_seed": 1, "logging_level": "Silent", "allow_writing_files": False, "border_count": self.size(16, 254), **params}
        pool = cb.Pool(X, y, group_id=np.arange(len(y)) // 20 if group else None)
        model = cb.CatBoost(params).fit(pool)
        path = self.path(name, "json")
        model.save_model(path, format="json")
        # Asked is the model that was saved. Its file has every bit of it, but CatBoost 1.2 rounds some of them when it reads one.
        values = test_rows(d.random, X.astype(np.float64), cb_thresholds(path), self.rows, True)
        # The library takes 32 bits; what rounds to a float must be that float here, too.
        asked = values.astype(np.float32)
        raw = model.predict(asked, prediction_type="RawFormulaVal")
        answer = model.predict(asked, prediction_type=response) if response else raw
        if response == "Probability" and loss in ("Logloss", "CrossEntropy"):
            answer = answer[:, 1]
        shap = model.get_feature_importance(data=cb.Pool(asked[:20]), type="ShapValues").reshape(min(20, len(values)), -1)
        parts = shap.reshape(len(shap), -1, 9).sum(axis=2)
        if np.abs(parts - np.asarray(raw).reshape(len(values), -1)[:20]).max() > 1e-6:
            # Of trees whose leaves are not equally deep, CatBoost 1.2 gives contributions that do not add up to the score.
            shap = np.zeros((0, 0))
        write_rows(self.path(name, "rows"), [0] * 8, values, raw, answer, shap)
        if not self.big:
            slim(path)
        self.done("catboost", name, "json")

    def all(self):
        """Every configuration."""
        l, x, c = self.lightgbm, self.xgboost, self.catboost
        l("lgb_regression", {"objective": "regression"})
        l("lgb_infinity", {"objective": "regression"}, data="missing")
        l("lgb_zero_missing", {"objective": "binary", "zero_as_missing": True})
        l("lgb_no_missing", {"objective": "huber", "use_missing": False})
        l("lgb_sqrt", {"objective": "regression", "reg_sqrt": True})
        l("lgb_multiclass", {"objective": "multiclass", "num_class": 3}, rounds=self.size(3, 30))
        l("lgb_ova", {"objective": "multiclassova", "num_class": 3, "sigmoid": 0.7}, rounds=self.size(3, 30))
        l("lgb_lambdarank", {"objective": "lambdarank"}, group=True)
        l("lgb_poisson", {"objective": "poisson"})
        l("lgb_tweedie", {"objective": "tweedie"})
        l("lgb_xentlambda", {"objective": "cross_entropy_lambda"})
        l("lgb_categories", {"objective": "regression", "max_cat_to_onehot": 2, "cat_smooth": 1, "min_data_per_group": 2}, data="frame")
        l("lgb_codes", {"objective": "binary", "max_cat_to_onehot": 2, "cat_smooth": 1, "min_data_per_group": 2}, data="coded")
        l("lgb_linear", {"objective": "regression", "linear_tree": True, "linear_lambda": 0.01})
        l("lgb_dart", {"boosting": "dart", "objective": "regression", "drop_rate": 0.5, "skip_drop": 0.2})
        l("lgb_rf", {"boosting": "rf", "objective": "binary", "bagging_freq": 1, "bagging_fraction": 0.6})
        l("lgb_stump", {"objective": "regression", "min_gain_to_split": 1e9}, rounds=2)
        x("xgb_regression", {"objective": "reg:squarederror"})
        x("xgb_logistic", {"objective": "binary:logistic", "base_score": 0.3}, extension="ubj")
        x("xgb_softprob", {"objective": "multi:softprob"}, rounds=self.size(2, 20))
        x("xgb_softmax", {"objective": "multi:softmax"}, rounds=self.size(2, 20), extension="ubj")
        x("xgb_poisson", {"objective": "count:poisson"})
        x("xgb_gamma", {"objective": "reg:gamma"}, extension="ubj")
        x("xgb_tweedie", {"objective": "reg:tweedie"})
        x("xgb_aft", {"objective": "survival:aft"})
        x("xgb_hinge", {"objective": "binary:hinge"})
        x("xgb_logitraw", {"objective": "binary:logitraw"})
        x("xgb_rank", {"objective": "rank:ndcg"}, group=True, extension="ubj")
        x("xgb_dart", {"booster": "dart", "objective": "reg:squarederror", "rate_drop": 0.5})
        x("xgb_forest", {"objective": "binary:logistic", "num_parallel_tree": 3, "subsample": 0.6, "colsample_bynode": 0.6}, rounds=self.size(2, 10))
        x("xgb_pruned", {"objective": "reg:squarederror", "tree_method": "exact", "gamma": 2.0})
        x("xgb_categories", {"objective": "reg:squarederror", "max_cat_to_onehot": 1}, data="frame")
        x("xgb_categories_ubj", {"objective": "reg:squarederror", "max_cat_to_onehot": 5}, data="frame", extension="ubj")
        x("xgb_codes", {"objective": "binary:logistic", "max_cat_to_onehot": 1}, data="coded")
        c("cb_rmse", {"loss_function": "RMSE"})
        c("cb_logloss", {"loss_function": "Logloss"}, response="Probability")
        c("cb_multiclass", {"loss_function": "MultiClass"}, response="Probability")
        c("cb_ova", {"loss_function": "MultiClassOneVsAll"}, response="Probability")
        c("cb_nan_max", {"loss_function": "RMSE", "nan_mode": "Max"})
        c("cb_poisson", {"loss_function": "Poisson"}, response="Exponent")
        c("cb_rank", {"loss_function": "YetiRank"}, group=True)
        c("cb_lossguide", {"loss_function": "RMSE", "grow_policy": "Lossguide", "max_leaves": self.size(6, 40), "depth": self.size(4, 8)})
        c("cb_depthwise_multi", {"loss_function": "MultiClass", "grow_policy": "Depthwise"}, response="Probability")
        c("cb_deep", {"loss_function": "RMSE", "depth": self.size(4, 10), "iterations": self.size(3, 20)})


def slim(path):
    """The model without the parameters of its training, which are most of a small file."""
    model = json.load(open(path))
    params = model["model_info"]["params"]
    model["model_info"] = {"class_params": model["model_info"].get("class_params"), "params": {"loss_function": params["loss_function"]}}
    if model["model_info"]["class_params"] is None:
        del model["model_info"]["class_params"]
    with open(path, "w") as out:
        json.dump(model, out, separators=(",", ":"))


def logf():
    """A digest of a million logarithms of this machine's C library, which XGBoost uses for its base scores."""
    import ctypes
    function = ctypes.CDLL("libm.so.6").logf
    function.restype, function.argtypes = ctypes.c_float, [ctypes.c_float]
    at = np.arange(1_000_000, dtype=np.uint32)
    with np.errstate(over="ignore"):
        bits = (at * np.uint32(2_139_095) ^ at) % np.uint32(0x7F800000)
    digest = 0xCBF29CE484222325
    for x in bits.view(np.float32):
        bits = struct.unpack("<I", struct.pack("<f", function(float(x))))[0]
        digest = ((digest ^ bits) * 0x100000001B3) % (1 << 64)
    print(f"{digest:#018x}")


def main():
    mode, args = sys.argv[1], sys.argv[2:]
    if mode == "logf":
        return logf()
    if mode == "golden":
        maker = Maker(HERE, False, 120, args)
        maker.all()
        for _, model, rows in maker.made:
            assert os.path.getsize(model) <= 50_000 and os.path.getsize(rows) <= 50_000, (model, os.path.getsize(model), os.path.getsize(rows))
        return
    rows, only = (int(args[0]), args[1:]) if args else (30_000, [])
    with tempfile.TemporaryDirectory() as folder:
        maker = Maker(folder, True, rows, only)
        maker.all()
        listing = os.path.join(folder, "list.txt")
        with open(listing, "w") as out:
            out.writelines(f"{format}\t{model}\t{rows}\n" for format, model, rows in maker.made)
        command = ["cargo", "run", "--release", "-q", "-p", "rankd-plan", "--example", "check_model", "--", listing]
        sys.exit(subprocess.run(command).returncode)


main()
