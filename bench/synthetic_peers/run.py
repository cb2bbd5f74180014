"""One synthesizer of one peer, run in the peer's own environment: `run.py NAME train.npz EPSILON
DELTA out.npy`.

train.npz has `names`, `sizes`, `table` (codes), and `ordered`, the names of numeric columns.
Synthetic codes go to out.npy; CPU seconds (children included) and peak memory are printed as JSON.
`run.py judge made.npy test.npy` prints the AUC of gradient boosting trained on made rows and tested
on true ones; the last column is the label.
"""

import json
import os
import resource
import sys
import tempfile
from pathlib import Path

import numpy as np


def mbi_mst(names, sizes, table, ordered, epsilon, delta):
    """MST [McKenna et al. 2021] on mbi's inference: a third each on columns, on choosing a tree, on
    its pairs.
    """
    import jax
    import mbi

    jax.config.update("jax_enable_x64", True)
    rng, rho = np.random.default_rng(), _rho(epsilon, delta)
    domain = mbi.Domain(names, sizes)
    data = mbi.Dataset({name: table[:, i] for i, name in enumerate(names)}, domain)

    def measured(on, cliques, share):
        sigma = np.sqrt(len(cliques) / (2 * share))
        counts = {clique: on.project(clique).datavector() for clique in cliques}
        return [
            mbi.LinearMeasurement(c + rng.normal(0, sigma, len(c)), k, sigma)
            for k, c in counts.items()
        ], sigma

    ones, sigma = measured(data, [(name,) for name in names], rho / 3)
    merged = {}
    for each in ones:  # cells under 3 sigma become one
        large = np.asarray(each.noisy_measurement) >= 3 * sigma
        if not large.all():
            merged[each.clique[0]] = np.where(large, np.cumsum(large) - 1, large.sum())
    small = data.compress(merged)
    ones = [each.compress(merged, domain) for each in ones]
    model = mbi.estimation.MirrorDescent().estimate(small.domain, ones, iters=1000)
    pairs = [(a, b) for i, a in enumerate(names) for b in names[i + 1 :]]
    score = {
        p: np.abs(small.project(p).datavector() - model.project(p).datavector()).sum()
        for p in pairs
    }
    tree_of, tree, each_epsilon = (
        {name: name for name in names},
        [],
        np.sqrt(8 * rho / 3 / (len(names) - 1)),
    )
    for _ in range(len(names) - 1):
        able = [p for p in pairs if tree_of[p[0]] != tree_of[p[1]]]
        a, b = able[int(np.argmax([each_epsilon / 2 * score[p] + rng.gumbel() for p in able]))]
        tree.append((a, b))
        old = tree_of[b]
        tree_of = {name: tree_of[a] if root == old else root for name, root in tree_of.items()}
    twos, _ = measured(small, tree, rho / 3)
    model = mbi.estimation.MirrorDescent().estimate(small.domain, [*ones, *twos], iters=2000)
    made = model.synthetic_data().decompress(merged).to_dict()
    return np.column_stack([made[name] for name in names])


AIM_MEGABYTES = 80  # most of the junction tree's tables, as the authors use it for comparisons
AIM_STEPS = 1000  # of estimation, after every round and at the end
AIM_CELLS = 10_000  # most of a pair: larger ones are left out of the workload, as the authors do


def mbi_aim(names, sizes, table, ordered, epsilon, delta):
    """AIM [McKenna et al. 2022, algorithm 4 and 5] on mbi's inference; the workload is all pairs.

    mbi 2 has no mechanisms of its own. These are the steps of the authors' script: 16 rounds a
    column at most, a tenth of each chooses, half of sigma after a round that taught nothing, a
    model that may grow with the part of rho that has been spent.
    """
    import jax
    import mbi

    jax.config.update("jax_enable_x64", True)
    rng, rho = np.random.default_rng(), _rho(epsilon, delta)
    domain = mbi.Domain(names, sizes)
    data = mbi.Dataset({name: table[:, i] for i, name in enumerate(names)}, domain)
    pairs = [(a, b) for i, a in enumerate(names) for b in names[i + 1 :]]
    pairs = [pair for pair in pairs if domain.size(pair) <= AIM_CELLS]
    ones = [(name,) for name in names]
    # How much each candidate has in common with the pairs of the workload.
    weights = {c: sum(len(set(c) & set(pair)) for pair in pairs) for c in [*ones, *pairs]}
    answers = {c: np.asarray(data.project(c).datavector(), dtype=float) for c in weights}
    rounds = 16 * len(names)
    sigma, choosing = np.sqrt(rounds / (2 * 0.9 * rho)), np.sqrt(8 * 0.1 * rho / rounds)
    measured, cliques = [], []

    def measure(clique):
        noisy = answers[clique] + rng.normal(0, sigma, len(answers[clique]))
        measured.append(mbi.LinearMeasurement(noisy, clique, sigma))
        cliques.append(clique)

    def estimate(start):
        solver = mbi.estimation.MirrorDescent()
        return solver.estimate(domain, measured, iters=AIM_STEPS, warm_start=start, tol=1e-8)

    for clique in ones:
        measure(clique)
    used, last = len(ones) * 0.5 / sigma**2, False
    model = estimate(None)
    while not last:
        if rho - used < 2 * (0.5 / sigma**2 + choosing**2 / 8):
            left, last = rho - used, True
            sigma, choosing = np.sqrt(1 / (2 * 0.9 * left)), np.sqrt(8 * 0.1 * left)
        used += 0.5 / sigma**2 + choosing**2 / 8
        limit = AIM_MEGABYTES * used / rho
        size = mbi.junction_tree.hypothetical_model_size
        able = [c for c in weights if c in cliques or size(domain, [*cliques, c]) <= limit]
        score = {}
        for clique in able:
            expected = np.asarray(model.project(clique).datavector())
            bias = np.sqrt(2 / np.pi) * sigma * len(expected)
            score[clique] = weights[clique] * (np.abs(answers[clique] - expected).sum() - bias)
        most = max(weights[clique] for clique in able)
        noisy = [choosing / 2 / most * score[clique] + rng.gumbel() for clique in able]
        chosen = able[int(np.argmax(noisy))]
        before = np.asarray(model.project(chosen).datavector())
        measure(chosen)
        model = estimate(model)
        moved = np.abs(np.asarray(model.project(chosen).datavector()) - before).sum()
        if moved <= sigma * np.sqrt(2 / np.pi) * len(before):
            sigma, choosing = sigma / 2, choosing * 2
    made = model.synthetic_data().to_dict()
    return np.column_stack([made[name] for name in names])


def dpmm_model(kind):
    def run(names, sizes, table, ordered, epsilon, delta):
        import pandas as pd
        from dpmm import pipelines

        frame = pd.DataFrame(table, columns=names)
        pipeline = getattr(pipelines, kind)(
            epsilon=epsilon, delta=delta, max_model_size=1 if kind == "AIMPipeline" else None, disable_processing=True,
            n_jobs=1,
        )  # fmt: skip
        pipeline.fit(frame, domain=dict(zip(names, sizes, strict=True)))
        return pipeline.generate(n_records=len(table))[names].to_numpy()

    return run


def data_synthesizer(mode, parents=0):
    def run(names, sizes, table, ordered, epsilon, delta):
        """As its documentation shows, with a fresh seed, and half of ε where it would spend all of
        it twice.
        """
        import pandas as pd
        from DataSynthesizer.DataDescriber import DataDescriber
        from DataSynthesizer.DataGenerator import DataGenerator

        seed = int.from_bytes(os.urandom(4), "little")
        with tempfile.TemporaryDirectory() as folder:
            source, described = Path(folder) / "d.csv", Path(folder) / "d.json"
            pd.DataFrame(table, columns=names).to_csv(source, index=False)
            kinds = {name: name not in ordered for name in names}
            describer = DataDescriber(category_threshold=0)
            options = {"attribute_to_is_categorical": kinds, "seed": seed}
            if mode == "correlated":
                describer.describe_dataset_in_correlated_attribute_mode(
                    str(source), k=parents, epsilon=epsilon / 2, **options
                )
            else:
                describer.describe_dataset_in_independent_attribute_mode(
                    str(source), epsilon=epsilon, **options
                )
            describer.save_dataset_description_to_file(str(described))
            generator = DataGenerator()
            name = "generate_dataset_in_" + (
                "correlated_attribute_mode" if mode == "correlated" else "independent_mode"
            )
            getattr(generator, name)(len(table), str(described), seed=seed)
            made = generator.synthetic_dataset[names].to_numpy().astype(np.int64)
        return np.clip(made, 0, np.array(sizes) - 1)

    return run


RUNS = {
    "MST, mbi": mbi_mst,
    "AIM, mbi": mbi_aim,
    "MST, dpmm": dpmm_model("MSTPipeline"),
    "AIM, dpmm": dpmm_model("AIMPipeline"),
    "PrivBayes, dpmm": dpmm_model("PrivBayesPipeline"),
    "independent, DataSynthesizer": data_synthesizer("independent"),
    "correlated k = 1, DataSynthesizer": data_synthesizer("correlated", 1),
    "correlated k = 2, DataSynthesizer": data_synthesizer("correlated", 2),
}


def _rho(epsilon, delta):
    """zCDP from (ε, δ) by the simple bound ε = ρ + 2 sqrt(ρ ln 1/δ), refined by bisection of
    CKS's.
    """
    low, high = 0.0, epsilon + 1
    for _ in range(200):
        rho = (low + high) / 2
        alpha = np.linspace(1.01, 2000, 200_000)
        log_delta = (
            (alpha - 1) * (alpha * rho - epsilon) + alpha * np.log1p(-1 / alpha) - np.log(alpha - 1)
        )
        low, high = (rho, high) if log_delta.min() <= np.log(delta) else (low, rho)
    return low


def judge(made, test):
    from sklearn.ensemble import GradientBoostingClassifier
    from sklearn.metrics import roc_auc_score

    made, test = np.load(made), np.load(test)
    if len(np.unique(made[:, -1])) < 2:
        return 0.5
    model = GradientBoostingClassifier().fit(made[:, :-1], made[:, -1])
    return float(roc_auc_score(test[:, -1], model.predict_proba(test[:, :-1])[:, 1]))


def main():
    if sys.argv[1] == "judge":
        print(json.dumps({"auc": judge(*sys.argv[2:])}))
        return
    name, source, epsilon, delta, out = sys.argv[1:]
    given = np.load(source)
    names, sizes = given["names"].tolist(), given["sizes"].tolist()
    made = RUNS[name](
        names, sizes, given["table"], set(given["ordered"].tolist()), float(epsilon), float(delta)
    )
    np.save(out, np.asarray(made, dtype=np.int64))
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    seconds = sum(each.ru_utime + each.ru_stime for each in used)
    print(
        json.dumps({"seconds": seconds, "megabytes": max(each.ru_maxrss for each in used) / 1024})
    )


if __name__ == "__main__":
    main()
