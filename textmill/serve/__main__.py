"""`python -m textmill.serve --store ROOT NAME ...`: a server as a process; see `server.start_server`."""

from __future__ import annotations

import argparse
import json
import logging
import sys
from pathlib import Path

from textmill.core.config import parse_config
from textmill.core.errors import TextmillError
from textmill.serve.config import ServeConfig
from textmill.serve.server import serve

_STDIN = 0


def main() -> int:
    """Run a server from the command line and return its exit code."""
    parser = argparse.ArgumentParser(prog="python -m textmill.serve")
    parser.add_argument("--store", type=Path, required=True, help="folder of all stores")
    parser.add_argument("--config", default="{}", help="the [serve] table as JSON")
    parser.add_argument("--ready-file", type=Path, help="written when the models answer")
    parser.add_argument(
        "--until-stdin-closes", action="store_true", help="also end when standard input closes"
    )
    parser.add_argument("names", nargs="+", help="models to serve")
    args = parser.parse_args()
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    logging.getLogger("textmill.serve").setLevel(logging.INFO)  # which version went live, and when
    try:
        config = parse_config(ServeConfig, json.loads(args.config), "--config")
        serve(
            args.store,
            args.names,
            config,
            ready_file=args.ready_file,
            until_closed=_STDIN if args.until_stdin_closes else None,
        )
    except TextmillError as err:
        sys.stderr.write(f"{err}\n")
        return err.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
