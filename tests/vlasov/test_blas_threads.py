"""No bit of what is asked depends on how many threads BLAS has: processes with one and with two of them."""

import os
import subprocess
import sys

import numpy as np
from threadpoolctl import threadpool_info

import vlasov as vl
from vlasov.postprocess.mean_field import replica

_LIPSCHITZ = """
import numpy as np, vlasov as vl
x = np.random.default_rng(0).normal(size=(700, 24)) / 5
found = vl.lipschitz(vl.Softmax(A=np.eye(24)), x)
print(found.value.hex(), found.error.hex(), found.right.sum().hex(), found.left.sum().hex())
"""


def _told(threads):
    env = {**os.environ, "OPENBLAS_NUM_THREADS": str(threads), "NUMBA_NUM_THREADS": "1"}
    run = subprocess.run([sys.executable, "-c", _LIPSCHITZ], env=env, capture_output=True, text=True, check=True)
    return run.stdout


def test_the_same_bits_of_a_lipschitz_constant():
    one, two = _told(1), _told(2)
    assert one == two
    assert one.count("0x1.") == 4


def test_the_limit_of_a_study_is_solved_with_one_thread(monkeypatch):
    threads, real = [], replica.choose

    def limit(*given, **options):
        threads.extend(each["num_threads"] for each in threadpool_info() if each["user_api"] == "blas")
        return real(*given, **options)

    monkeypatch.setattr(replica, "choose", limit)
    problem = vl.Problem(vl.Softmax(A=np.eye(1)), vl.Gaussian([0.0], [[0.5]]), 0.3)
    vl.mean_field_study(problem, n=[4], replicas=1, p=2)
    assert set(threads) == {1}
