"""Write the 1,797 handwritten digits that scikit-learn ships as one .npz, with a fixed split into training and test.

python prepare.py TARGET, where TARGET is a path or an hdfs:// or s3:// URL. Runs before the job, on a machine with
scikit-learn.
"""

import argparse
import os
from io import BytesIO

import numpy as np
import storage
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("target", help="a path, hdfs://host:port/path or s3://bucket/key")
    parser.add_argument("--webhdfs", help="the NameNode's HTTP address, such as http://namenode:9870")
    options = parser.parse_args()
    if options.webhdfs:
        os.environ["WEBHDFS_URL"] = options.webhdfs

    images, labels = load_digits(return_X_y=True)
    images, labels = (images / 16).astype(np.float32), labels.astype(np.int64)
    split = train_test_split(images, labels, test_size=360, random_state=0, stratify=labels)
    content = BytesIO()
    np.savez(content, train_images=split[0], train_labels=split[2], test_images=split[1], test_labels=split[3])
    storage.write_bytes(options.target, content.getvalue())
    print(f"{len(split[0])} digits for training and {len(split[1])} for test in {options.target}")


if __name__ == "__main__":
    main()
