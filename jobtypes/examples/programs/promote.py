"""Put a model into use: promote.py MODEL ACCURACY CURRENT, where CURRENT is a JSON file that tells which one is.

A model below --least is a failure. One that is worse than the model in use leaves that in its place.
"""

import argparse
import json
import os
from pathlib import Path


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", help="its folder")
    parser.add_argument("accuracy", type=float)
    parser.add_argument("current", type=Path)
    parser.add_argument("--least", type=float, default=0.9, help="an accuracy below which no model is taken")
    options = parser.parse_args()
    if options.accuracy < options.least:
        raise SystemExit(f"{options.model} has an accuracy of {options.accuracy}, less than {options.least}")
    try:
        current = json.loads(options.current.read_text())
    except FileNotFoundError:
        current = {"model": None, "accuracy": 0.0}
    if options.accuracy < current["accuracy"]:
        print(f"{current['model']} stays: {current['accuracy']} is better than {options.accuracy}")
        return
    chosen = {"model": options.model, "accuracy": options.accuracy}
    part = options.current.with_suffix(".part")
    part.write_text(json.dumps(chosen))
    os.replace(part, options.current)
    print(f"{options.model} is in use, with {options.accuracy} after {current['accuracy']}")


if __name__ == "__main__":
    main()
