"""Train the digits as a program of TonY's does: paths come as arguments, the cluster in TF_CONFIG."""

import argparse
import os
import sys


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data_path", required=True)
    parser.add_argument("--output_path", required=True)
    options, others = parser.parse_known_args()
    os.environ.update(DTF_INPUT_PATH=options.data_path, DTF_OUTPUT_PATH=options.output_path)
    sys.argv[1:] = others
    sys.path.append(os.getcwd())
    import multi_worker

    multi_worker.main()


if __name__ == "__main__":
    main()
