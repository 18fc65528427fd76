"""The command lines of both programs, as a test starts them: without a wrapper, by this interpreter."""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SUBMIT = [sys.executable, "-c", "from tf_yarn_ops.cli import submit_main; submit_main()"]
YTF = [sys.executable, "-c", "from tf_yarn_ops.cli import main; main()"]
