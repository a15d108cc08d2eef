"""A Redis server and the agents of volumes: the machines of a case with `(fleet)`, all on this one."""
import os
import pathlib
import select
import shutil
import subprocess
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
PATIENCE_SECONDS = 60


class Failed(Exception):
    """A program that did not start."""


def redis_program() -> str | None:
    """The server: the one that `EYEWALL_REDIS` names, or Redis. Debian's package of tools has Redis under another name."""
    return os.environ.get("EYEWALL_REDIS") or shutil.which("redis-check-rdb") or shutil.which("redis-server")


def eyewall_program() -> pathlib.Path:
    target = pathlib.Path(os.environ.get("CARGO_TARGET_DIR") or ROOT / "target")
    return pathlib.Path(os.environ.get("EYEWALL") or target / "debug/eyewall")


def missing() -> str | None:
    """Why there can be no fleet here."""
    if redis_program() is None:
        return "there is no redis-server; make packages ARGS=fleet installs it"
    if not eyewall_program().exists():
        return f"there is no {eyewall_program()}; cargo build -p eyewall-cli builds it, or EYEWALL names one"
    return None


class Fleet:
    """Its folder has the server's socket, and is the place for volumes."""

    def __init__(self, folder: pathlib.Path):
        self.socket = folder / "redis.sock"
        self.running: list[subprocess.Popen] = []
        self.words = tempfile.TemporaryFile()
        words = ["redis-server", "--port", "0", "--unixsocket", str(self.socket), "--save", ""]
        self.running.append(subprocess.Popen(words, executable=redis_program(), cwd=folder, stdout=subprocess.DEVNULL, stderr=self.words))
        end = time.monotonic() + PATIENCE_SECONDS
        while not self.socket.exists():
            if self.running[0].poll() is not None or time.monotonic() > end:
                self.fail("redis-server has not started")
            time.sleep(0.005)

    def join(self, volume: pathlib.Path) -> None:
        """Starts the agent of a volume that exists, and waits until the volume belongs to the fleet."""
        words = [eyewall_program(), "fleet", "agent", "--cache", volume, "--redis", f"redis+unix://{self.socket}",
                 "--max-blind", "2m", "--second-level-size", "8M"]
        agent = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=self.words)
        self.running.append(agent)
        has_said, _, _ = select.select([agent.stdout], [], [], PATIENCE_SECONDS)
        said = agent.stdout.readline().decode() if has_said else "nothing"
        if "belongs to the fleet" not in said:
            self.fail(f"the agent says {said.strip()}")

    def fail(self, what: str) -> None:
        self.words.seek(0)
        raise Failed(f"{what}: {self.words.read().decode(errors='replace').strip()}")

    def end(self) -> None:
        for process in reversed(self.running):
            process.kill()
            process.wait()
            if process.stdout:
                process.stdout.close()
        self.words.close()
