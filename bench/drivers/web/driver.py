"""The protocol with `eyewall-bench` (bench/drivers/README.md): a request is one JSON object on standard input, an answer is one object a line
on standard output."""
import itertools

import contenders
import procedures
import protocol
from programs import Programs
from staging import ITS_FAULT, Stage


def listed(programs):
    """All stores that this program can measure, as lines of an answer. Builds nothing."""
    for name, contender in contenders.ALL.items():
        is_known = contender.kind != "ours" or contender.crates or programs.eyewall_is_named()
        told = contender.as_store(programs) if is_known else {"kind": contender.kind, "version": None}
        yield {"store": name, "absent": told["absent"]} if "absent" in told else {"store": name, **told}


def measure(request, programs, tell):
    """Does the work of a request. `tell` gets the lines of the answer."""
    known, procedure = procedures.ALL[request["procedure"]]
    present = []
    for store in request["stores"]:
        reason = known[store].missing(programs)
        if reason:
            tell({"store": store, "absent": reason})
        else:
            present.append(store)
    if not present:
        return
    for case in cases(request):
        try:
            with Stage({**request, "stores": present}, case, known, programs, tell) as stage:
                procedure(stage)
        except ITS_FAULT as error:
            tell({"note": f"{request['workload']} {', '.join(map(str, case.values()))}: {error}"})


def cases(request):
    """All combinations of values for the parameters that the request's case leaves open."""
    left = {name: values for name, values in request.get("parameters", {}).items() if name not in request["case"]}
    for values in itertools.product(*left.values()):
        yield {**request["case"], **dict(zip(left, values))}


def checked(request):
    """The request, if it is valid. Refuses any other."""
    wanted = {"workload": str, "procedure": str, "case": dict, "settings": dict, "stores": list, "repetitions": list, "scratch": dict}
    for name, kind in wanted.items():
        if not isinstance(request.get(name), kind):
            protocol.refuse(f"the request's {name} is {request.get(name)!r}, and has to be a {kind.__name__}")
    if request["procedure"] not in procedures.ALL:
        protocol.refuse(f"no procedure {request['procedure']}; there are {', '.join(procedures.ALL)}")
    known, _ = procedures.ALL[request["procedure"]]
    for store in request["stores"]:
        if store not in known:
            protocol.refuse(f"no store {store} for {request['procedure']}; there are {', '.join(known)}")
    return request


def run():
    """Reads the request and answers it."""
    request = protocol.request("list", "measure")
    programs = Programs()
    if request["do"] == "list":
        for line in listed(programs):
            protocol.answer(line)
    else:
        measure(checked(request), programs, protocol.answer)
