"""The timeline that ch09_hopper writes, event by event, in the short form that pictures are drawn from.

A lane is what one warpgroup of one block does under one schedule. Its events follow each other without a gap, so that
an event is its phase (a number in PHASES), its tile and the clock at which it ends; the first begins at `begin`.
"""

# Name in the results, letter in a picture (small for waits), colour, whether it waits.
PHASES = [("waits for keys", "k", "grey", True), ("waits for its turn", "t", "purple", True),
          ("products", "P", "orange", False), ("softmax", "S", "blue", False),
          ("waits for the sum", "v", "orange", True), ("rescales, rounds", "R", "green", False),
          ("finishes", "F", "gold", False), ("between tiles", "b", "faint", True)]
NUMBER = {name: i for i, (name, *_) in enumerate(PHASES)}
CYCLES = "cycles"  # the clock of a GPU; any other gives an order and no durations


def compact(document):
    """{"clock", "problem", "lanes"} of a program's results.

    Raises KeyError if the results hold no timeline, ValueError if it has a gap or a phase that is none of PHASES."""
    lanes = {}
    for event in document["timeline"]:
        key = (event["schedule"], event["block"], event["warpgroup"])
        if event["phase"] not in NUMBER:
            raise ValueError(f"timeline: no phase is called \"{event['phase']}\"")
        lane = lanes.setdefault(key, {"schedule": key[0], "block": key[1], "warpgroup": key[2], "begin": event["begin"],
                                      "events": []})
        last = lane["events"][-1][2] if lane["events"] else lane["begin"]
        if event["begin"] != last or event["end"] < last:
            raise ValueError(f"timeline: {key} has an event from {event['begin']} to {event['end']} after {last}")
        lane["events"].append([NUMBER[event["phase"]], event["tile"], event["end"]])
    return {"clock": document["timeline_clock"], "problem": document["timeline_problem"], "lanes": list(lanes.values())}


def is_order(source):
    """Whether the clock says in what order things happen, and nothing about how long they take."""
    return source["clock"] != CYCLES


def schedules(source):
    """{schedule: [(lane, [(phase, tile, begin, end)])]} with begin and end on the axis of pictures: cycles, or, where the
    clock gives an order only, the number of changes before, counted in all lanes of the schedule."""
    found = {}
    for lane in source["lanes"]:
        found.setdefault(lane["schedule"], []).append(lane)
    for name, lanes in found.items():
        clocks = sorted({clock for lane in lanes for clock in [lane["begin"], *(event[2] for event in lane["events"])]})
        place = {clock: i for i, clock in enumerate(clocks)} if is_order(source) else {clock: clock for clock in clocks}
        found[name] = []
        for lane in lanes:
            begins = [lane["begin"], *(event[2] for event in lane["events"])]
            found[name].append((lane, [(phase, tile, place[begin], place[end])
                                       for begin, (phase, tile, end) in zip(begins, lane["events"])]))
    return found


def shares(source):
    """{schedule: [share of all warpgroups' clocks, for each of PHASES]}"""
    found = {}
    for lane in source["lanes"]:
        sums = found.setdefault(lane["schedule"], [0] * len(PHASES))
        begin = lane["begin"]
        for phase, _, end in lane["events"]:
            sums[phase] += end - begin
            begin = end
    return {name: [s / (sum(sums) or 1) for s in sums] for name, sums in found.items()}
