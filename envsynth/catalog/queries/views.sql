-- name: task
-- one row a task: id, source, tier, instruction, strength, numbers of tests, interpreter, commits, sizes, cost

-- name: lead
-- one row a lead, admitted or not: status, reason, source, ref, title, detail, cost

-- name: verdict
-- one row a verdict: lead, validator, status, reason, findings, evidence, cost

-- name: strength
-- one row a task: attacks tried and worked, controls, mutants killed, rewrites rejected

-- name: survivor
-- wrong variants of a reference that its tests do not notice: task, path, line, description

-- name: test_run
-- one row a run of the tests: state, repeat, numbers, output_tail, cost

-- name: test_status
-- one row a test a run: test, id, status, message, line

-- name: flicker
-- tests that gave different statuses in identical runs: source, test, statuses

-- name: funnel
-- leads by source, status and reason

-- name: cost_per_task
-- seconds and bytes by source, altogether and a task

-- name: build
-- one row a build: when, status, configuration, cost

-- name: source_run
-- one row a source of a build: revision, number of leads

-- name: near_duplicate
-- pairs of tasks of nearly the same change: task, other (the later id), similarity, why

-- name: trait
-- what tasks may share, one row each: id, trait (world, company, mechanism, skin, repository), value

-- name: mechanism
-- one row a mechanism task: family, kin, skin, level, presentation, mechanism (equal in all presentations), utilities

-- name: reference_score
-- one row a mechanism task and reference policy: its utility between the default's (0) and the reference's (1)

-- name: attempt
-- one row an attempt of a policy: task, policy, model, hinted, k, ending, failure, outcome, calls, tokens, cost, grade, trace

-- name: solve_rate
-- one row a task, policy, model and hint: n finished attempts, c successes, pass_at_1, mean outcome, calls, tokens, cost

-- name: regret
-- one row a task and model: pass rate with the hint, without it, and the difference

-- name: failure
-- one row a failed attempt: kind (format, budget, tool_misuse, misread_state, no_recovery), ending, outcome

-- name: instrument
-- one row a task and instrument that judged its panel beside the checks: confusion matrix, used, agreement, why unused
