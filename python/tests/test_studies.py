"""Studies answer as the commands do."""

import json
import subprocess

import lasthop as lh
import pytest


def test_explain_answers_as_the_command_does(command):
    words = ["W-F10", "--sets", "40", "--seeds", "1", "--again", "0", "--json"]
    told = json.loads(subprocess.run([command, "explain", *words], check=True, capture_output=True).stdout)
    steps = []
    ours = lh.explain("W-F10", sets=40, seeds=1, again=0, progress=lambda done, of: steps.append((done, of)))
    # The command says besides which version and which command it was.
    assert {"lasthop", "command", *ours} == set(told)
    assert ours == {key: told[key] for key in ours}
    assert steps[-1] == (41, 41)
    assert lh.explain("W-F10", sets=40, seeds=1, again=0, sample=2) != ours


def test_what_is_left_open(command):
    told = subprocess.run([command, "explain", "W-F10", "--open", "--json"], check=True, capture_output=True).stdout
    assert lh.left_open("W-F10") == json.loads(told)


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: lh.explain("W-T999"), "no claim `W-T999`"),
        (lambda: lh.explain(), "no claims"),
        (lambda: lh.explain("W-F10", sets=0), "sets is 0"),
        (lambda: lh.explain("W-F10", "D-F1"), "another testbed"),
        (lambda: lh.explain("W-F10", sets=10, seeds=1, again=0, fit=["W-T999"]), "names no condition"),
    ],
)
def test_a_wrong_question(call, message):
    with pytest.raises(lh.ScenarioError, match=message):
        call()
