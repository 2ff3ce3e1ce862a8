#!/usr/bin/env python3
"""Compares the expectations beside this script with Python's Jinja2, set up as the Hugging Face reference sets it up.

With --write, replaces what differs. The clock stands at noon on 26 July 2024, as in the tests.
"""
import copy
import datetime
import json
import pathlib
import sys

from jinja2 import nodes
from jinja2.exceptions import TemplateError
from jinja2.ext import Extension
from jinja2.sandbox import ImmutableSandboxedEnvironment

HERE = pathlib.Path(__file__).parent
NOW = datetime.datetime(2024, 7, 26, 12)


class Generation(Extension):
    tags = {"generation"}

    def parse(self, parser):
        line = next(parser.stream).lineno
        body = parser.parse_statements(["name:endgeneration"], drop_needle=True)
        return nodes.CallBlock(self.call_method("_pass"), [], [], body).set_lineno(line)

    def _pass(self, caller):
        return caller()


def raise_exception(message):
    raise TemplateError(message)


def tojson(value, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


def environment():
    env = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols", Generation]
    )
    env.filters["tojson"] = tojson
    env.globals.update(raise_exception=raise_exception, strftime_now=NOW.strftime)
    return env


def outcome(env, source, variables):
    try:
        return {"expected": env.from_string(source).render(**copy.deepcopy(variables))}
    except Exception:
        return {"fails": True}


def refresh(case, env, source, variables):
    """Whether the case already says what the reference does; makes it say so."""
    before = {key: case.pop(key) for key in ("expected", "fails") if key in case}
    case.update(outcome(env, source, variables))
    return all(case.get(key) == value for key, value in before.items()) and len(before) > 0


def lines(items, indent):
    return ",\n".join(" " * indent + json.dumps(item, ensure_ascii=False) for item in items)


def write_constructs(path, data):
    sections = ",\n".join(
        f'    {{"name": "{section["name"]}", "cases": [\n{lines(section["cases"], 6)}\n    ]}}'
        for section in data["sections"]
    )
    variables = json.dumps(data["variables"], ensure_ascii=False)
    path.write_text(f'{{\n  "variables": {variables},\n  "sections": [\n{sections}\n  ]\n}}\n')


def write_renderings(path, data):
    conversations = ",\n".join(
        f"    {json.dumps(name)}: {json.dumps(variables, ensure_ascii=False)}"
        for name, variables in data["conversations"].items()
    )
    renderings = lines(data["renderings"], 4)
    path.write_text(f'{{\n  "conversations": {{\n{conversations}\n  }},\n  "renderings": [\n{renderings}\n  ]\n}}\n')


def main():
    env = environment()
    stale = []
    constructs = json.loads((HERE / "constructs.json").read_text())
    for section in constructs["sections"]:
        for case in section["cases"]:
            if not refresh(case, env, case["template"], constructs["variables"]):
                stale.append(case["template"])
    renderings = json.loads((HERE / "renderings.json").read_text())
    for case in renderings["renderings"]:
        variables = renderings["conversations"][case["conversation"]]
        if not refresh(case, env, (HERE / case["template"]).read_text(), variables):
            stale.append(f'{case["template"]} over {case["conversation"]}')
    print("\n".join(f"differs: {name}" for name in stale) or "all expectations hold")
    if "--write" in sys.argv:
        write_constructs(HERE / "constructs.json", constructs)
        write_renderings(HERE / "renderings.json", renderings)
    return 1 if stale and "--write" not in sys.argv else 0


if __name__ == "__main__":
    sys.exit(main())
