"""Actors, and cases played by them."""
import pathlib
import subprocess
import tempfile

from form import Block, Case, Step, encoded

ANY = [b"*"]


class Failed(Exception):
    """An answer that wasn't the one that had to come."""


class Skipped(Exception):
    """A question that a binding has no way for."""


class Actor:
    """A process of one language, with a volume open."""

    def __init__(self, language: str, command: list[str]):
        self.language = language
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def ask(self, words: list[bytes]) -> None:
        try:
            self.process.stdin.write(b"\t".join(encoded(word) for word in words) + b"\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            self.fail("has ended")

    def answer(self) -> list[bytes]:
        line = self.process.stdout.readline()
        if not line.endswith(b"\n"):
            self.fail("has ended without an answer")
        return line.rstrip(b"\n").split(b"\t")

    def fail(self, what: str) -> None:
        self.process.kill()
        raise Failed(f"the actor of {self.language} {what}: {self.process.stderr.read().decode(errors='replace').strip()}")

    def kill(self) -> None:
        self.process.kill()
        self.end()

    def end(self) -> None:
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()
        self.process.stderr.close()


class Play:
    """A case, played by actors of these languages, one after the other."""

    def __init__(self, case: Case, languages: list[str], commands: dict[str, list[str]]):
        self.case, self.languages, self.commands = case, languages, commands
        self.actors: dict[str, Actor] = {}
        self.started = 0

    def run(self) -> None:
        with tempfile.TemporaryDirectory(prefix="eyewall-cases-") as folder:
            self.volume = pathlib.Path(folder, "volume")
            try:
                for name in self.case.actors():
                    self.start(name)
                self.block(self.case.block)
            finally:
                for actor in self.actors.values():
                    actor.kill()

    def start(self, name: str) -> None:
        language = self.languages[self.started % len(self.languages)]
        self.started += 1
        actor = self.actors[name] = Actor(language, self.commands[language])
        actor.ask([b"open", str(self.volume).encode(), b"%d" % self.case.size])
        if (answer := actor.answer()) != [b"ok"]:
            actor.fail(f"can't open the volume ({shown(answer)})")

    def block(self, block: Block) -> None:
        for _ in range(block.times):
            if block.together:
                self.together(block.steps)
                continue
            for step in block.steps:
                if isinstance(step, Block):
                    self.block(step)
                else:
                    self.step(step)

    def step(self, step: Step) -> None:
        if step.does == "start":
            self.start(step.actor)
        elif step.does == "kill":
            self.actors.pop(step.actor).kill()
        else:
            self.ask(step)
            if step.answer is not None:
                self.compare(step, self.answer(step))

    def together(self, steps: list[Step]) -> None:
        for step in steps:
            self.ask(step)
        for step, answer in [(step, self.answer(step)) for step in steps]:
            self.compare(step, answer)

    def ask(self, step: Step) -> None:
        self.actors[step.actor].ask(step.words)

    def answer(self, step: Step) -> list[bytes]:
        answer = self.actors[step.actor].answer()
        if answer == [b"cannot"]:
            raise Skipped(f"{self.actors[step.actor].language} has no way to {step.words[0].decode()}")
        return answer

    def compare(self, step: Step, answer: list[bytes]) -> None:
        wanted = [word if word == b"*" else encoded(word) for word in step.answer]
        same = len(wanted) == len(answer) and all(want in (b"*", got) for want, got in zip(wanted, answer))
        if wanted != ANY and not same:
            language = self.actors[step.actor].language
            raise Failed(f"line {step.line}: {language} answers {shown(answer)}, not {shown(wanted)}")
        if wanted == ANY and answer[0] == b"error":
            raise Failed(f"line {step.line}: {self.actors[step.actor].language} answers {shown(answer)}")


def shown(words: list[bytes]) -> str:
    text = b" ".join(words).decode(errors="replace")
    return f"`{text[:80]}...` ({len(text)} characters)" if len(text) > 100 else f"`{text}`"
