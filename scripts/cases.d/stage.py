"""Starts actors and plays cases with them."""
import pathlib
import signal
import subprocess
import tempfile
import threading
import time

import fleet
from form import Block, Case, Step, encoded

ANY = [b"*"]
# An actor that hasn't answered after this time counts as hanging.
PATIENCE_SECONDS = 120


class Failed(Exception):
    """An unexpected answer."""


class Skipped(Exception):
    """A question that a binding doesn't support."""

    def __init__(self, language: str, question: str):
        super().__init__(f"{language} has no way to {question}")
        self.language = language


class Actor:
    """An actor: a process of one language, with an open volume."""

    def __init__(self, language: str, command: list[str]):
        self.language = language
        self.words = tempfile.TemporaryFile()
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.words)

    def ask(self, words: list[bytes]) -> None:
        try:
            self.process.stdin.write(b"\t".join(encoded(word) for word in words) + b"\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            self.fail("has ended")

    def answer(self) -> list[bytes]:
        patience = threading.Timer(PATIENCE_SECONDS, self.process.kill)
        patience.start()
        line = self.process.stdout.readline()
        patience.cancel()
        if not line.endswith(b"\n"):
            self.fail("has ended, or was killed for its silence, without an answer")
        return line.rstrip(b"\n").split(b"\t")

    def fail(self, what: str) -> None:
        self.process.kill()
        self.words.seek(0)
        raise Failed(f"the actor of {self.language} {what}: {self.words.read().decode(errors='replace').strip()}")

    def kill(self) -> None:
        self.process.kill()
        self.end()

    def died(self) -> None:
        try:
            status = self.process.wait(PATIENCE_SECONDS)
        except subprocess.TimeoutExpired:
            self.fail("has not ended itself")
        if status != -signal.SIGKILL:
            self.fail(f"has ended by {status}, not by SIGKILL")
        self.end()

    def end(self) -> None:
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()
        self.words.close()


class Play:
    """Plays a case with actors of these languages in turn."""

    def __init__(self, case: Case, languages: list[str], commands: dict[str, list[str]]):
        self.case, self.languages, self.commands = case, languages, commands
        self.actors: dict[str, Actor] = {}
        self.started = 0
        self.fleet: fleet.Fleet | None = None

    def run(self) -> None:
        with tempfile.TemporaryDirectory(prefix="eyewall-cases-") as folder:
            self.folder = pathlib.Path(folder)
            try:
                if self.case.is_fleet:
                    self.fleet = fleet.Fleet(self.folder)
                for name in self.case.actors():
                    self.start(name)
                self.block(self.case.block)
            except fleet.Failed as failure:
                raise Failed(str(failure)) from None
            finally:
                for actor in self.actors.values():
                    actor.kill()
                if self.fleet:
                    self.fleet.end()

    def start(self, name: str) -> None:
        language = self.languages[self.started % len(self.languages)]
        self.started += 1
        actor = self.actors[name] = Actor(language, self.commands[language])
        volume = self.folder / (name if self.fleet else "volume")
        actor.ask([b"open", str(volume).encode(), b"%d" % self.case.size, *([b"fleet=yes"] if self.fleet else [])])
        if (answer := actor.answer()) != [b"ok"]:
            actor.fail(f"can't open the volume ({shown(answer)})")
        if self.fleet:
            self.fleet.join(volume)

    def block(self, block: Block) -> None:
        for _ in range(block.times):
            if block.together:
                self.together(block)
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
        elif step.does == "died":
            self.actors.pop(step.actor).died()
        elif step.does == "answered":
            self.compare(step, self.answer(step))
        elif step.is_repeated:
            self.until(step)
        else:
            self.ask(step)
            if step.answer is not None:
                self.compare(step, self.answer(step))

    def until(self, step: Step) -> None:
        end = time.monotonic() + PATIENCE_SECONDS
        while True:
            self.ask(step)
            answer = self.answer(step)
            try:
                return self.compare(step, answer)
            except Failed:
                if time.monotonic() > end:
                    raise

    def together(self, block: Block) -> None:
        for step in block.steps:
            self.ask(step)
        answers = [self.answer(step) for step in block.steps]
        for step, answer in zip(block.steps, answers):
            self.compare(step, answer)
        if block.answers is not None and sorted(answers) != block.answers:
            raise Failed(f"line {block.steps[0].line}: together they answer {', '.join(shown(answer) for answer in answers)}")

    def ask(self, step: Step) -> None:
        self.actors[step.actor].ask(step.words)

    def answer(self, step: Step) -> list[bytes]:
        answer = self.actors[step.actor].answer()
        if answer == [b"cannot"]:
            raise Skipped(self.actors[step.actor].language, step.words[0].decode())
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
