"""One protocol of one peer, run in the peer's own environment: `run.py PEER PROTOCOL values.npy
out.npy`.

Prints the seconds that client and server took; the estimated frequencies go to out.npy. Each peer
is used as its own documentation shows: a client call for each respondent, then the server.
"""

import math
import sys
import time

import numpy as np

D, EPSILON = 1000, 1.0


def pure_ldp(protocol, values):
    from pure_ldp.frequency_oracles.direct_encoding import DEClient, DEServer
    from pure_ldp.frequency_oracles.hadamard_response import (
        HadamardResponseClient,
        HadamardResponseServer,
    )
    from pure_ldp.frequency_oracles.local_hashing import (
        FastLHClient,
        FastLHServer,
        LHClient,
        LHServer,
    )
    from pure_ldp.frequency_oracles.unary_encoding import UEClient, UEServer

    same = lambda value: value  # noqa: E731  (their parameter: a map from values to indices)
    if protocol == "kary":
        client, server = (
            DEClient(EPSILON, D, index_mapper=same),
            DEServer(EPSILON, D, index_mapper=same),
        )
    elif protocol in ("optimized_unary", "symmetric_unary"):
        best = protocol == "optimized_unary"
        client = UEClient(EPSILON, D, use_oue=best, index_mapper=same)
        server = UEServer(EPSILON, D, use_oue=best, index_mapper=same)
    elif protocol == "local_hashing":
        client = LHClient(EPSILON, D, use_olh=True, index_mapper=same)
        server = LHServer(EPSILON, D, use_olh=True, index_mapper=same)
    elif protocol == "fast_local_hashing":
        client = FastLHClient(EPSILON, D, 1000, use_olh=True, index_mapper=same)
        server = FastLHServer(EPSILON, D, 1000, use_olh=True, index_mapper=same)
    else:
        server = HadamardResponseServer(EPSILON, D, index_mapper=same)
        client = HadamardResponseClient(EPSILON, D, server.get_hash_funcs(), index_mapper=same)
    for value in values:
        server.aggregate(client.privatise(value))
    return np.array(server.estimate_all(range(D), suppress_warnings=True)) / len(values)


def multi_freq_ldpy(protocol, values):
    from multi_freq_ldpy.pure_frequency_oracles.GRR import GRR_Aggregator_MI, GRR_Client
    from multi_freq_ldpy.pure_frequency_oracles.LH import LH_Aggregator_MI, LH_Client
    from multi_freq_ldpy.pure_frequency_oracles.SS import SS_Aggregator_MI, SS_Client
    from multi_freq_ldpy.pure_frequency_oracles.UE import UE_Aggregator_MI, UE_Client

    if protocol == "kary":
        return GRR_Aggregator_MI([GRR_Client(value, D, EPSILON) for value in values], D, EPSILON)
    if protocol == "local_hashing":
        return LH_Aggregator_MI(
            [LH_Client(value, D, EPSILON, True) for value in values], D, EPSILON, True
        )
    if protocol == "subset_selection":
        return SS_Aggregator_MI([SS_Client(value, D, EPSILON) for value in values], D, EPSILON)
    best = protocol == "optimized_unary"
    return UE_Aggregator_MI([UE_Client(value, D, EPSILON, best) for value in values], EPSILON, best)


def main():
    peer, protocol, source, target = sys.argv[1:]
    values = np.load(source).tolist()
    call = pure_ldp if peer == "pure-ldp" else multi_freq_ldpy
    call(protocol, values[:20])  # what is compiled at the first call is not timed
    started = time.process_time()
    estimates = call(protocol, values)
    print(time.process_time() - started)
    assert len(estimates) == D
    assert not math.isnan(float(np.sum(estimates)))
    np.save(target, np.asarray(estimates, dtype=float))


main()
