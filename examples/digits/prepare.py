"""Write the 1,797 handwritten digits that scikit-learn ships as one .npz, with a fixed split into training and test.

python prepare.py TARGET, where TARGET is a path or a URL that fsspec opens. Runs before the job, on a machine with
scikit-learn and fsspec.
"""

import argparse

import fsspec
import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("target", help="a path, or a URL such as webhdfs://user@namenode:9870/path")
    target = parser.parse_args().target
    images, labels = load_digits(return_X_y=True)
    images, labels = (images / 16).astype(np.float32), labels.astype(np.int64)
    split = train_test_split(images, labels, test_size=360, random_state=0, stratify=labels)
    with fsspec.open(target, "wb") as file:
        np.savez(file, train_images=split[0], train_labels=split[2], test_images=split[1], test_labels=split[3])
    print(f"{len(split[0])} digits for training and {len(split[1])} for test in {target}")


if __name__ == "__main__":
    main()
