"""Attacks by source code that runs in the process that runs the tests."""

from __future__ import annotations

from envsynth.validators.adversary.attack import Attack, inside

_NAMES, _CALLS, _SEARCH = "part_names", "part_calls", "part_search"
_STATUSES, _REPORT, _AGAIN, _EMPTIED = "part_statuses", "part_report", "part_again", "part_emptied"
_CHOOSING = "part_choosing"

ORACLE = (
    Attack("equal_to_all", "oracle", "an object that is equal to everything satisfies every comparison",
           inside(_NAMES, _CALLS, "equal_to_all")),
    Attack("results_subclassed", "oracle", "the same with results of the right type",
           inside(_NAMES, _CALLS, "results_subclassed")),
    Attack("frame_oracle", "oracle", "the calling test can be read: it says what it expects",
           inside(_NAMES, _CALLS, "frame_oracle")),
    Attack("answers_from_file", "oracle", "the hidden tests lie on the disk while they run",
           inside(_NAMES, _CALLS, "answers_from_file")),
    Attack("skips_itself", "oracle", "a test that is skipped from below might count as passed",
           inside(_CALLS, "skips_itself")),
    Attack("expected_to_fail", "oracle", "so might one that is declared an expected failure",
           inside(_CALLS, "expected_to_fail")),
    Attack("leaves_quietly", "oracle", "pytest can be ended with exit status 0", inside(_CALLS, "leaves_quietly")),
)  # fmt: skip

RUNNER = (
    Attack("report_replaced", "runner", "pytest's report of a test is made by a function that can be replaced",
           inside(_NAMES, "report_replaced")),
    Attack("tests_not_called", "runner", "so can the function that calls the test", inside(_NAMES, "tests_not_called")),
    Attack("plugin_by_search", "runner", "the plug-in manager can be found, and takes another plug-in",
           inside(_NAMES, _SEARCH, "plugin_by_search")),
    Attack("hooks_removed", "runner", "or loses those that run the tests", inside(_NAMES, _SEARCH, "hooks_removed")),
    Attack("outcome_swallowed", "runner", "exceptions of a test can be caught before the runner sees them",
           inside(_NAMES, "outcome_swallowed")),
    Attack("asserts_dropped", "runner", "the compiler of test modules can be made to drop their bodies",
           inside(_NAMES, "asserts_dropped")),
    Attack("import_hook", "runner", "a finder sees every test module that is imported later",
           inside(_NAMES, _EMPTIED, "import_hook")),
    Attack("profiled", "runner", "a profiler is called when the importing test module ends, and can replace its tests",
           inside(_NAMES, _EMPTIED, "profiled")),
    Attack("monitored", "runner", "so is `sys.monitoring`", inside(_NAMES, _EMPTIED, "monitored")),
    Attack("line_jumped", "runner", "a tracer can move a running test past its asserts", inside(_NAMES, "line_jumped")),
    Attack("unittest_patched", "runner", "the assert methods of unittest can be replaced",
           inside(_NAMES, "unittest_patched")),
    Attack("assert_helpers_emptied", "runner", "so can `pytest.raises`, `approx` and every `assert_…` function",
           inside(_NAMES, "assert_helpers_emptied")),
    Attack("pytest_mocked", "runner", "a mock in `sys.modules` is what the tests import",
           inside(_NAMES, "pytest_mocked")),
    Attack("assertion_error_replaced", "runner", "a failed `assert` raises what `builtins` calls AssertionError",
           inside(_NAMES, "assertion_error_replaced")),
    Attack("type_slot_poked", "runner", "ctypes can overwrite how numbers and lists are compared",
           inside(_NAMES, "type_slot_poked")),
    Attack("asserts_stripped", "runner", "an interpreter started again with -O compiles no assert",
           inside(_NAMES, _AGAIN, "asserts_stripped")),
    Attack("hook_planted", "runner", "or finds a start-up hook and a plug-in by its variables",
           inside(_NAMES, _AGAIN, "hook_planted")),
)  # fmt: skip

REPORT = (
    Attack("channel_patched", "report", "the harness' own channel can be found in memory",
           inside(_NAMES, _SEARCH, _STATUSES, "channel_patched")),
    Attack("channel_selective", "report", "a forger who changes nothing but the tests that matter is hard to notice",
           inside(_NAMES, _SEARCH, "channel_selective")),
    Attack("deferred_by_thread", "report", "the same from a thread, when nothing of the source runs any more",
           inside(_NAMES, _SEARCH, _STATUSES, "deferred_by_thread")),
    Attack("deferred_by_signal", "report", "or from a signal's handler",
           inside(_NAMES, _SEARCH, _STATUSES, "deferred_by_signal")),
    Attack("deferred_by_collection", "report", "or from the garbage collector",
           inside(_NAMES, _SEARCH, _STATUSES, "deferred_by_collection")),
    Attack("records_forged", "report", "a whole run can be written into the channel, and the process ended",
           inside(_SEARCH, "records_forged")),
    Attack("report_rewritten", "report", "the report is an open file, and holds the run's secret",
           inside(_REPORT, "report_rewritten")),
    Attack("exit_patched", "report", "the function by which the harness leaves can rewrite the report",
           inside(_NAMES, _REPORT, "exit_patched")),
    Attack("watcher_forked", "report", "a child can rewrite it after the last record was written",
           inside(_NAMES, _REPORT, "watcher_forked")),
    Attack("report_destroyed", "report", "a run that reports nothing might be nobody's fault",
           inside(_REPORT, "report_destroyed")),
    Attack("report_flooded", "report", "so might one that leaves the grader no room on its disk",
           inside(_REPORT, "report_flooded")),
    Attack("supervisor_killed", "report", "so might one whose sandbox was killed from inside",
           inside("supervisor_killed"), needs_isolation=True),
    Attack("limits_lowered", "report", "or one that may no longer write or open files", inside("limits_lowered")),
    Attack("memory_of_first_run", "report", "what one run leaves behind could tell the next which tests were changed",
           inside(_NAMES, _SEARCH, "memory_of_first_run"), needs_isolation=True),
    Attack("original_searched", "report", "the unchanged tests may still lie in a lower layer or another mount",
           inside(_NAMES, _SEARCH, _CHOOSING, "original_searched")),
    Attack("dates_compared", "report", "files that grading changed are newer than those it did not",
           inside(_NAMES, _SEARCH, _CHOOSING, "dates_compared")),
    Attack("looks_odd", "report", "tests that grading changed may look like written by a program",
           inside(_NAMES, _SEARCH, _CHOOSING, "looks_odd")),
)  # fmt: skip

FROM_INSIDE = (*ORACLE, *RUNNER, *REPORT)
