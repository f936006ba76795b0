"""Documents filled in for one world: SQL without braces, and shown texts with the industry's words and the settings."""

from __future__ import annotations

from envsynth.generators.business.blueprint import Goal, Rule, Service
from envsynth.generators.business.words import Speaker
from envsynth.models import Guard, Table, Tool


def filled_service(service: Service, speaker: Speaker) -> Service:
    """A service whose SQL has no braces, and whose shown texts are filled in."""
    say, sql = speaker.say, speaker.sql
    return service.model_copy(
        update={
            "title": say(service.title),
            "tables": tuple(_filled_table(table, speaker) for table in service.tables),
            "rows": {
                name: rows.model_copy(
                    update={
                        "columns": {
                            column: recipe.model_copy(update={"sql": sql(recipe.sql)}) if recipe.sql else recipe
                            for column, recipe in rows.columns.items()
                        }
                    }
                )
                for name, rows in service.rows.items()
            },
            "derive": tuple(map(sql, service.derive)),
            "traps": tuple(map(sql, service.traps)),
            "tools": tuple(_filled_tool(tool, speaker) for tool in service.tools),
            "invariants": tuple(
                found.model_copy(update={"sql": sql(found.sql)}) for found in service.invariants
            ),
            "page": say(service.page),
            "goals": tuple(_filled_goal(goal, speaker) for goal in service.goals),
        }
    )  # fmt: skip


def _filled_table(table: Table, speaker: Speaker) -> Table:
    columns = tuple(column.model_copy(update={"doc": speaker.say(column.doc)}) for column in table.columns)
    return table.model_copy(update={"doc": speaker.say(table.doc), "columns": columns})


def _filled_tool(tool: Tool, speaker: Speaker) -> Tool:
    say, sql = speaker.say, speaker.sql
    update: dict[str, object] = {
        "doc": say(tool.doc),
        "parameters": tuple(one.model_copy(update={"doc": say(one.doc)}) for one in tool.parameters),
        "guards": tuple(_filled_guard(guard, speaker) for guard in tool.guards),
        "effects": tuple(map(sql, tool.effects)),
        "result": sql(tool.result),
    }
    if tool.each:
        fields = tuple(one.model_copy(update={"doc": say(one.doc)}) for one in tool.each.fields)
        update["each"] = tool.each.model_copy(update={"fields": fields})
    return tool.model_copy(update=update)


def _filled_guard(guard: Guard, speaker: Speaker) -> Guard:
    return Guard(sql=speaker.sql(guard.sql), error=speaker.say(guard.error))


def _filled_goal(goal: Goal, speaker: Speaker) -> Goal:
    wrong = {name: {k: speaker.sql(v) for k, v in changes.items()} for name, changes in goal.wrong.items()}
    # `computed` stays as written: which settings an agent must have read is told by its braces.
    update = {"pick": speaker.sql(goal.pick), "near": speaker.sql(goal.near), "wrong": wrong}
    return goal.model_copy(update=update)


def filled_rule(rule: Rule, speaker: Speaker) -> Rule:
    """A rule whose SQL has no braces, and whose statement is filled in."""
    enforced = rule.enforced and (rule.enforced[0], _filled_guard(rule.enforced[1], speaker))
    update = {
        "states": speaker.say(rule.states), "sql": speaker.sql(rule.sql), "enforced": enforced,
        "traps": tuple(map(speaker.sql, rule.traps)),
        "goals": tuple(_filled_goal(goal, speaker) for goal in rule.goals),
    }  # fmt: skip
    return rule.model_copy(update=update)
