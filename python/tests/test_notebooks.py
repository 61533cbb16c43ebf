"""The notebooks run, and the examples in docstrings and in the manual are correct."""

import doctest
import importlib
import pathlib
import re
import time

import lasthop as lh
import matplotlib
import nbformat
import pytest
from matplotlib import pyplot
from nbclient import NotebookClient

ROOT = pathlib.Path(__file__).resolve().parents[2]
NOTEBOOKS = sorted((ROOT / "python" / "notebooks").glob("*.ipynb"))
matplotlib.use("Agg")


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
@pytest.mark.filterwarnings("ignore")
def test_notebook(path, tmp_path):
    notebook = nbformat.read(path, 4)
    nbformat.validate(notebook)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert not any(cell.outputs or cell.execution_count for cell in code), "clear the outputs before a commit"
    start = time.monotonic()
    resources = {"metadata": {"path": str(tmp_path)}}
    NotebookClient(notebook, timeout=600, kernel_name="python3", resources=resources).execute()
    pictures = sum("image/png" in output.get("data", {}) for cell in code for output in cell.outputs)
    print(f"{path.stem}: {time.monotonic() - start:.1f} s, {pictures} pictures")
    drawn = sum("plot" in cell.source and cell.source.rstrip().endswith(";") for cell in code)
    assert pictures >= drawn


def test_each_reader_has_a_notebook():
    assert {"student", "researcher", "machine-learning"} <= {path.stem for path in NOTEBOOKS}


@pytest.mark.parametrize("name", ["lasthop", "lasthop.scenario", "lasthop.control", "lasthop.bbr", "lasthop.gym", "lasthop.sweeps"])
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


def test_the_style_is_that_of_the_command():
    """Colours of `crates/report/src/plot/style.rs`, in both style files and in `COLOURS`."""
    from lasthop import plot

    text = (ROOT / "crates" / "report" / "src" / "plot" / "style.rs").read_text()
    theirs = {name: (light, dark) for name, light, dark in re.findall(r'\("(\w+)", "(#\w+)", "(#\w+)"\)', text)}
    assert plot.COLOURS.items() <= theirs.items() and len(plot.COLOURS) > 10
    series = re.findall(r'"(\w+)"', re.search(r"SERIES: .*= \[(.*?)\]", text)[1])
    for dark, style in enumerate(["lasthop.figure", "lasthop.figure_dark"]):
        with pyplot.style.context(style):
            cycle = pyplot.rcParams["axes.prop_cycle"].by_key()["color"]
            assert cycle == [theirs[name][dark] for name in series]
            assert pyplot.rcParams["axes.facecolor"] == theirs["paper"][dark]
            assert pyplot.rcParams["text.color"] == theirs["ink"][dark]


def test_many_cells_are_a_heat_map_or_the_ends_of_their_order():
    base = lh.Scenario.example("quickstart").set("transfer.bytes", "10kB").set("agent", "none")
    rates = [f"{n}mbit" for n in range(1, 46)]
    t = lh.run(base.vary("path.3.radio.rate", rates).vary("host.server.tcp", ["reno", "tahoe"]), seeds=1)
    ax = t.plot()
    assert ax.images[0].get_array().shape == (2, 45)
    assert ax.get_title(loc="left") == "throughput (Mbit/s), 90 cells"
    assert ax.figure.get_size_inches()[1] < 6
    assert "of 90" in t._repr_html_() and t._repr_html_().count("<tr>") == 21
    line = lh.run(base.vary("path.3.radio.rate", rates), seeds=1).plot()
    assert len(line.patches) == 30 and "of 45 cells" in line.get_title(loc="left")
    pyplot.close("all")


def test_a_dark_style_gives_dark_figures_and_other_axes_stay():
    t = lh.run(lh.Scenario.example("west97-lan").set("transfer.bytes", "50kB"), seeds=2)
    before = dict(pyplot.rcParams)
    assert t.plot().get_facecolor()[:3] == (1.0, 1.0, 1.0)
    with pyplot.style.context("lasthop.figure_dark"):
        assert sum(t.plot().get_facecolor()[:3]) < 0.5
    assert dict(pyplot.rcParams) == before
    own = pyplot.figure().subplots()
    assert t.plot(ax=own) is own
    pyplot.close("all")
