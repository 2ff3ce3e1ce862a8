"""What the scripts share that check programs of others: every check is run and told of, whatever becomes of the others."""
import argparse
import sys

checks = []


def check(function):
    checks.append(function)
    return function


def options(text):
    parser = argparse.ArgumentParser(description=text.split("\n\n")[0])
    parser.add_argument("url", type=lambda url: url.rstrip("/"), help="http://127.0.0.1:8000")
    parser.add_argument("--key", default="none")
    parser.add_argument("--adapter", help="one that the cluster has")
    return parser


def run_checks(*given):
    """A check may return why it did not look at anything."""
    failed = 0
    for function in checks:
        name = function.__name__.replace("_", " ")
        try:
            note = function(*given)
            print(f"skipped {name}: {note}" if note else f"ok      {name}")
        except Exception as problem:  # noqa: BLE001: whatever goes wrong is told, and the rest is tried
            failed += 1
            print(f"FAILED  {name}: {type(problem).__name__}: {problem}")
    sys.exit(1 if failed else 0)
