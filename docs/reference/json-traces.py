"""Prints a table for `lasthop trace convert` from a trace of Rattan (JSON or TOML), AlphaRTC, or `irtt client -o`.

    python3 json-traces.py FILE [uplink|downlink] > table.csv
"""
import json, re, sys, tomllib

UNITS = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1, "m": 60, "min": 60, "h": 3600,
         "bps": 1, "kbps": 1e3, "mbps": 1e6, "gbps": 1e9}

def number(value):
    """Seconds, bits per second or a share: "1s 500ms", {"secs": 1, "nanos": 0}, {"gbps": 1, "bps": 0}, [0.1]."""
    if isinstance(value, dict):
        scale = {"secs": 1, "nanos": 1e-9, "gbps": 1e9, "bps": 1}
        return sum(scale[key] * part for key, part in value.items())
    if isinstance(value, list):
        return value[0] if value else 0
    return sum(float(n) * UNITS[unit.lower()] for n, unit in re.findall(r"([\d.]+)\s*([A-Za-z]+)", value))

def steps(model):
    """The pairs of duration and value of a model of netem-trace."""
    [(name, inner)] = model.items()
    if name.startswith("Static"):
        [value] = [inner[key] for key in ("bw", "delay", "loss") if key in inner]
        return [(number(inner["duration"]), number(value))]
    if name == "TraceBwConfig":
        return [(number(long), number(value)) for long, values in inner["pattern"] for value in values]
    return [step for part in inner["pattern"] for step in steps(part)] * (inner.get("count") or 1)

def table(head, rows, end):
    print("time (s)", *head, sep=",")
    at = 0
    for long, *values in rows:
        print(round(at, 9), *values, sep=",")
        at += long
    if end:
        print(round(at, 9), *["again"] + [""] * (len(head) - 1), sep=",")

text = open(sys.argv[1]).read()
data = json.loads(text) if text.lstrip().startswith("{") else tomllib.loads(text)
ways = sys.argv[2:] or ["downlink", "uplink"]
patterns = [data[way]["trace_pattern"] for way in ways if data.get(way, {}).get("trace_pattern")]
if "round_trips" in data:
    trips = [trip for trip in data["round_trips"] if "rtt" in trip["delay"]]
    sent = [trip["timestamps"]["client"]["send"]["wall"] for trip in trips]
    print("time (s),delay (ns)")
    for at, trip in zip(sent, trips):
        print((at - sent[0]) / 1e9, trip["delay"]["rtt"] // 2, sep=",")
elif patterns:
    rows = [(step["duration"] / 1e3, step["capacity"] * 1000, step.get("rtt", 0) / 2, step.get("loss", 0))
            for step in patterns[0]]
    table(["rate (bit)", "delay (ms)", "loss"], rows, True)
else:
    kind = next(head for word, head in [("Bw", "rate (bit)"), ("Delay", "delay (s)"), ("Loss", "loss")]
                if word in next(iter(data)))
    [(name, inner)] = data.items()
    table([kind], steps(data), name.startswith("Repeated") and not inner.get("count"))
