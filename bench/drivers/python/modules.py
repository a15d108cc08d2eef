#!/usr/bin/env python3
"""The procedure `modules` on the stores of Python; bench/drivers/README.md describes the protocol and the procedure."""
import sys

sys.dont_write_bytecode = True
import procedure  # noqa: E402
import stores  # noqa: E402
import work  # noqa: E402
from values import Values  # noqa: E402

procedure.run(stores.ALL, lambda store, request, folder: work.figures(store.open(request, folder), Values(request), request))
