"""The notebooks run, and the examples in docstrings and in the manual are right."""

import doctest
import importlib
import pathlib
import re
import runpy

import lasthop as lh
import matplotlib
import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
NOTEBOOKS = sorted((ROOT / "python" / "notebooks").glob("*.py"))
matplotlib.use("Agg")


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
@pytest.mark.filterwarnings("ignore")
def test_notebook(path):
    runpy.run_path(str(path), run_name="__main__")


@pytest.mark.parametrize("name", ["lasthop", "lasthop.scenario", "lasthop.control", "lasthop.gym", "lasthop.sweeps"])
def test_docstrings(name):
    tested = doctest.testmod(importlib.import_module(name))
    assert tested.attempted > 0 and tested.failed == 0


def test_the_manual(tmp_path, monkeypatch):
    text = (ROOT / "docs" / "how-to" / "python.md").read_text()
    examples = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    assert len(examples) > 4
    monkeypatch.chdir(tmp_path)
    place: dict[str, object] = {}
    for example in examples:
        exec(compile(example, "docs/how-to/python.md", "exec"), place)


def test_figures_and_pages_are_drawn():
    s = lh.Scenario.example("west97-lan").set("transfer.bytes", "50kB")
    t = lh.run(s, seeds=2)
    assert "image/png" in t._repr_html_() and "agent" in t._repr_html_()
    one = lh.record(s.cell(agent="snoop"), seed=1)
    assert "image/png" in one._repr_html_()
    assert "axis" in s._repr_html_()
    ax = one.plot_sequence()
    assert ax.get_ylabel() == "sequence (KiB)" and ax.get_legend() is not None
    with pytest.raises(lh.ScenarioError, match="no flow 3"):
        one.plot_sequence(flow=3)
