"""Runs of one machine and one commit as one record, and which records cover the suite (bench/RECORD.md, "Records of several runs")."""
import pathlib

from form import Record

WORKLOADS = pathlib.Path(__file__).resolve().parent.parent.parent / "bench/workloads"
# What differs from run to run on the same machine.
OF_A_MOMENT = {"load_at_start", "noise"}


def suite():
    """The names of the workloads that the suite has now."""
    return {path.stem for path in WORKLOADS.glob("*.toml")}


def is_complete(run, names):
    """Whether a whole, finished run measured at least half of the suite's workloads."""
    measured = {workload["name"] for workload in run["workloads"] if "skipped" not in workload}
    return run["kind"] == "whole" and run["complete"] and 2 * len(measured & names) >= len(names)


def merged(records):
    """The records, newest first; those that may be one are one."""
    newest_first = sorted(records, key=lambda record: (record.run["began"], record.run["id"]), reverse=True)
    groups = []
    for record in newest_first:
        for group in groups:
            if all(_may_be_one(record.run, other.run) for other in group):
                group.append(record)
                break
        else:
            groups.append([record])
    return [_one(group) for group in groups]


def _may_be_one(left, right):
    for run in (left, right):
        if run["kind"] != "whole" or not run["complete"] or run["commit"] is None or run["commit"].endswith("+changes"):
            return False
    return left["commit"] == right["commit"] and _machine(left) == _machine(right) and _have_equal_stores(left, right)


def _machine(run):
    return {name: value for name, value in run["machine"].items() if name not in OF_A_MOMENT}


def _have_equal_stores(left, right):
    """Whether each store that both runs measured is the same version in both."""
    both = [(left["stores"][name], right["stores"][name]) for name in left["stores"].keys() & right["stores"].keys()]
    return all(one == other for one, other in both if "absent" not in one and "absent" not in other)


def _one(group):
    """One record of several, the newest first. Of a workload that several have, the newest counts, whole."""
    if len(group) == 1:
        return group[0]
    newest = group[0].run
    stores, source, notes = {}, {}, []
    for record in group:
        for name, store in record.run["stores"].items():
            if name not in stores or "absent" in stores[name] and "absent" not in store:
                stores[name] = store
        for workload in record.run["workloads"]:
            if workload["name"] not in source or "skipped" in source[workload["name"]][1] and "skipped" not in workload:
                source[workload["name"]] = (record, workload)
        notes += [note for note in record.run["notes"] if note not in notes]
    # The run with the most workloads says in which order they are shown.
    order = [workload["name"] for record in sorted(group, key=lambda record: -len(record.run["workloads"]))
             for workload in record.run["workloads"]]
    run = {**newest, "id": f"{newest['id']}.merged", "title": f"{newest['title']} ({len(group)} runs)", "stores": stores,
           "workloads": [source[name][1] for name in dict.fromkeys(order)],
           "notes": [f"Merged from the runs {', '.join(record.run['id'] for record in group)}.", *notes],
           "merged": [record.run["id"] for record in group]}
    return Record(run, *({key: found for record in group for key, found in getattr(record, part).items()
                          if source[key[0]][0] is record} for part in ("samples", "histograms")))
