"""What the explorer loads: a list of records, and a file for each with its series. Scripts, since a page that was opened from a
file may load those and nothing else."""
import json

from judged import PERCENTILES, percentile
from merged import is_complete, suite

# Neighbouring buckets are drawn as one up to this width: less than a pixel.
WIDTH = 1.005


def thinned(buckets):
    """Buckets that are hardly wider than those given, the last one's bound kept."""
    wide = []
    for bound, count in buckets:
        if wide and len(wide) > 1 and bound <= wide[-2][0] * WIDTH:
            wide[-1] = [bound, wide[-1][1] + count]
        else:
            wide.append([bound, count])
    return wide


def merged(repetitions):
    """One distribution of all repetitions."""
    counts = {}
    for buckets in repetitions:
        for bound, count in buckets:
            counts[bound] = counts.get(bound, 0) + count
    return [[bound, counts[bound]] for bound in sorted(counts)]


def bundle(record):
    """A record as the page takes it."""
    series, histograms = [], []
    for (workload, measure, case, store), repetitions in record.samples.items():
        values = [[repetition, *sample] if sample[1] is not None else [repetition, sample[0]]
                  for repetition, found in sorted(repetitions.items()) for sample in found]
        series.append({"workload": workload, "measure": measure, "case": dict(case), "store": store, "values": values})
    for (workload, measure, case, store), repetitions in record.histograms.items():
        ordered = [buckets for _, buckets in sorted(repetitions.items())]
        histograms.append({
            "workload": workload, "measure": measure, "case": dict(case), "store": store,
            "buckets": thinned(merged(ordered)),
            "percentiles": [[percentile(buckets, percent) for buckets in ordered] for percent in PERCENTILES],
        })
    return {"run": record.run, "series": series, "histograms": histograms}


def write(out, records):
    """Writes all files anew, records as they are given, and takes away those of records that are no more."""
    out.mkdir(parents=True, exist_ok=True)
    for old in out.glob("*.js"):
        old.unlink()
    told, names = [], suite()
    for record in records:
        run = record.run
        told.append({"id": run["id"], "title": run["title"], "began": run["began"], "kind": run["kind"],
                     "machine": run["machine"]["name"], "isComplete": is_complete(run, names), "merged": run.get("merged", [])})
        script = f"eyewallRecords.loaded({_script(bundle(record))});\n"
        (out / f"{run['id']}.js").write_text(script, encoding="utf-8")
    (out / "index.js").write_text(f"eyewallRecords.listed({_script(told)});\n", encoding="utf-8")


def _script(value):
    """JSON that is also JavaScript, on a line for each record, and that ends no script element."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))  # tidy: word, the library's
    return text.replace("</", "<\\/").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")
