"""Runs the test functions of some files and prints one JSON list of records; what the fake language uses."""

import importlib.util
import json
import sys
import traceback


def run(path):
    spec = importlib.util.spec_from_file_location(path.replace("/", "_").removesuffix(".py"), path)
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except BaseException as exc:
        return [record(path, "error", f"{type(exc).__name__}: {exc}")]
    found = []
    for name, function in list(vars(module).items()):
        if name.startswith("test") and callable(function):
            try:
                function()
                found.append(record(f"{path}::{name}", "passed"))
            except Exception as exc:
                line = traceback.extract_tb(exc.__traceback__)[1].lineno
                found.append(record(f"{path}::{name}", "failed", f"{type(exc).__name__}: {exc}".rstrip(": "), line))
    return found


def record(test_id, status, message="", line=0):
    return {"key": test_id, "id": test_id, "status": status, "message": message, "line": line}


sys.path.insert(0, ".")
print(json.dumps([one for path in sys.argv[1:] for one in run(path)]))
