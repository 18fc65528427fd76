"""Write the 1,797 handwritten digits of digits.csv.gz as one .npz, with a fixed split into training and test.

python prepare.py TARGET, where TARGET is a path or a URL that fsspec opens. Runs before the job, on a machine with
NumPy and fsspec.
"""

import argparse
from pathlib import Path

import fsspec
import numpy as np

TESTED = 360


def load():
    """Return the four arrays by name: images (n, 64) of float32 in 0 to 1, labels (n,) of int64 in 0 to 9."""
    digits = np.loadtxt(Path(__file__).with_name("digits.csv.gz"), np.uint8, delimiter=",")
    np.random.default_rng(0).shuffle(digits)
    images, labels = (digits[:, :64] / 16).astype(np.float32), digits[:, 64].astype(np.int64)
    return {
        "train_images": images[TESTED:],
        "train_labels": labels[TESTED:],
        "test_images": images[:TESTED],
        "test_labels": labels[:TESTED],
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("target", help="a path, or a URL such as webhdfs://user@namenode:9870/path")
    target = parser.parse_args().target
    arrays = load()
    with fsspec.open(target, "wb") as file:
        np.savez(file, **arrays)
    print(f"{len(arrays['train_labels'])} digits for training and {TESTED} for test in {target}")


if __name__ == "__main__":
    main()
