"""Answers of the command match the schemas of its JSON."""

import json
import subprocess

import pytest
from jsonschema import Draft202012Validator


def ask(command, *words):
    return json.loads(subprocess.run([command, *words], check=False, capture_output=True).stdout)


@pytest.mark.parametrize(
    "output, words",
    [
        ("run", ["quickstart", "--seeds", "3", "--vary", "agent=snoop,split"]),
        ("advise", ["--rate", "1mbit", "--loss", "1%", "--seeds", "2", "--quick"]),
        ("battery", ["nb-iot", "--seeds", "1"]),
        ("list", ["systems"]),
        ("doctor", []),
    ],
)
def test_an_answer_fits_the_schema_of_its_command(command, output, words):
    schema = ask(command, "generate", "schema", "--answer", output)
    Draft202012Validator.check_schema(schema)
    validator = Draft202012Validator(schema)
    answer = ask(command, output, *words, "--json")
    assert [error.message for error in validator.iter_errors(answer)] == []
    assert not validator.is_valid(answer | {"format": "another"})
    assert not validator.is_valid(answer | {"surprise": 1})
