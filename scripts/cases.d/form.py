"""Parses cases (bindings/cases/README.md) into steps."""
import dataclasses
import pathlib
import re

SIZE = 4 << 20
SPECIAL = re.compile(rb"[^A-Za-z0-9_./-]")


class Mistake(Exception):
    """A case in another form than the README says."""


@dataclasses.dataclass
class Step:
    """A question to an actor and the expected answer (None: not waited for); or `kill`, `died`, `answered` or
    `start`.
    """

    line: int
    actor: str
    words: list[bytes]
    answer: list[bytes] | None
    does: str = "ask"
    # Whether to repeat the question until the answer comes.
    is_repeated: bool = False


@dataclasses.dataclass
class Block:
    """Steps that run together, or repeatedly."""

    steps: list
    times: int = 1
    together: bool = False
    # The answers of steps that run together, in any order.
    answers: list | None = None


@dataclasses.dataclass
class Case:
    file: pathlib.Path
    name: str
    size: int
    # Whether each actor has a volume and an agent of its own.
    is_fleet: bool
    block: Block

    def actors(self) -> list[str]:
        """The actors that exist from the beginning, in order."""
        started, found = set(), []
        for step in steps_of(self.block):
            if step.does == "start":
                started.add(step.actor)
            elif step.actor not in found and step.actor not in started:
                found.append(step.actor)
        return found


def steps_of(block: Block):
    for step in block.steps:
        yield from steps_of(step) if isinstance(step, Block) else [step]


def decoded(word: str) -> bytes:
    """The bytes of a word: `%20`, `%`, `@x*100`."""
    if word == "%":
        return b""
    if match := re.fullmatch(r"@(.+)\*(\d+)", word):
        return decoded(match[1]) * int(match[2])
    return re.sub(rb"%([0-9a-fA-F]{2})", lambda match: bytes([int(match[1], 16)]), word.encode())


def encoded(word: bytes) -> bytes:
    """The form that an actor reads."""
    return SPECIAL.sub(lambda match: b"%%%02x" % match[0][0], word) if word else b"%"


def step_of(text: str, line: int) -> Step:
    question, *arrow = text.split(" -> ", 1)
    answer = arrow[0] if arrow else ""
    actor, *words = question.split()
    if actor in ("kill", "died", "start"):
        if len(words) != 1 or arrow:
            raise Mistake(f"line {line}: `{actor}` wants the name of an actor, and nothing else")
        return Step(line, words[0], [], None, actor)
    if actor == "answered":
        if len(words) != 1 or not arrow:
            raise Mistake(f"line {line}: `answered` wants the name of an actor, and an answer")
        return Step(line, words[0], [], [decoded(word) for word in answer.split()], actor)
    is_repeated = actor == "until"
    if is_repeated:
        actor, *words = words or [""]
    if not words or arrow and not answer.strip() or is_repeated and not arrow:
        raise Mistake(f"line {line}: a step is `ACTOR QUESTION... -> ANSWER...`, or without an answer")
    answers = [decoded(word) for word in answer.split()] if arrow else None
    return Step(line, actor, [decoded(word) for word in words], answers, is_repeated=is_repeated)


def read(file: pathlib.Path) -> list[Case]:
    cases, open_blocks = [], []
    for line, text in enumerate(file.read_text().splitlines(), 1):
        text = text.split("#")[0].strip()
        if not text:
            continue
        if match := re.fullmatch(r"case (.+?)(?: \(size=(\d+)\))?( \(fleet\))?", text):
            if len(open_blocks) > 1:
                raise Mistake(f"{file}:{line}: a block has no end")
            open_blocks = [Block([])]
            cases.append(Case(file, match[1], int(match[2] or SIZE), match[3] is not None, open_blocks[0]))
        elif not open_blocks:
            raise Mistake(f"{file}:{line}: a step outside of a case")
        elif match := re.fullmatch(r"end(?: (.+))?", text):
            if len(open_blocks) < 2:
                raise Mistake(f"{file}:{line}: nothing is to end here")
            block = open_blocks.pop()
            if match[1]:
                block.answers = sorted([encoded(decoded(word)) for word in answer.split()] for answer in match[1].split(";"))
        elif text == "together" or (match := re.fullmatch(r"repeat (\d+)", text)):
            block = Block([], together=True) if text == "together" else Block([], times=int(match[1]))
            open_blocks[-1].steps.append(block)
            open_blocks.append(block)
        else:
            try:
                open_blocks[-1].steps.append(step_of(text, line))
            except Mistake as mistake:
                raise Mistake(f"{file}: {mistake}") from None
    if len(open_blocks) > 1:
        raise Mistake(f"{file}: a block has no end")
    return cases
