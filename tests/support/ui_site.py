"""Values of the records that the pages of ytf ui show."""

import time

NOW = time.time()
EVIL = '<script>alert("x")</script>'
