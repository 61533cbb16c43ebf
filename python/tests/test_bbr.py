"""BBR in Python against the built-in one: the interface of controls is sufficient for BBR."""

import lasthop as lh
import pytest
from lasthop.bbr import Bbr

#: Differences in the last digits may change the time of a probe; a larger difference would mean a missing measurement.
NEAR = 0.02
#: The built-in one paces from the handshake on, this one from the first ACK on: over a shallow queue the first losses differ.
FIRST_ACK = 0.1


def link(rate, delay, queue, loss=""):
    errors = f'errors = {{ model = "packet-loss", p = "{loss}" }}' if loss else ""
    return lh.Scenario(f"""
        transfer = {{ from = "server", to = "phone", bytes = "5MB" }}
        [host.server]
        [host.phone]
        [[path]]
        link = {{ rate = "1gbit", delay = "1ms" }}
        [[path]]
        radio = {{ rate = "{rate}", delay = "{delay}", queue = "{queue}" }}
        {errors}
    """)


LAN = lh.Scenario.example("west97-lan").cell(agent="none")
LINKS = {
    "no errors": (LAN.set("errors", "none"), 2),
    "errors": (LAN.set("errors.mean", "64KiB"), 20),
    "many errors": (LAN.set("errors.mean", "16KiB"), 20),
    "deep queue": (link("10mbit", "20ms", "400p"), 2),
    "shallow queue": (link("50mbit", "40ms", "50p"), 2),
    "slow and long": (link("2mbit", "100ms", "20p"), 2),
    "random losses": (link("10mbit", "20ms", "100p", loss="1%"), 10),
    "satellite": (lh.Scenario.example("satellite"), 2),
    "a link that varies": (lh.Scenario.example("lte-trace").set("horizon", "120s"), 1),
}


@pytest.mark.parametrize("name", LINKS)
@pytest.mark.filterwarnings("ignore::lasthop.ScenarioWarning")
def test_throughput_is_that_of_the_built_in_bbr(name):
    scenario, seeds = LINKS[name]
    s = scenario.set("tcp", "bbr")
    s = s.cell({axis: labels[0] for axis, labels in s.axes.items()})
    ours, built_in = (lh.run(x, seeds=seeds).summary()[0]["mean"] for x in (s.with_control(Bbr), s))
    print(f"{ours * 8e-6:.3f} and {built_in * 8e-6:.3f} Mbit/s: {ours / built_in - 1:+.3%}")
    assert ours == pytest.approx(built_in, rel=FIRST_ACK if name == "shallow queue" else NEAR)
    assert built_in > 1000
