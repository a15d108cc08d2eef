"""The snippets of the README run."""

from __future__ import annotations

import importlib.util
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

README = pathlib.Path(__file__).resolve().parent.parent / "README.md"


class Readme(unittest.TestCase):
    def test_snippets_run(self) -> None:
        snippets = re.findall(r"^```python\n(.*?)^```$", README.read_text(), re.DOTALL | re.MULTILINE)
        self.assertGreater(len(snippets), 5)
        for snippet in snippets:
            with self.subTest(snippet=snippet), tempfile.TemporaryDirectory(prefix="eyewall-readme-") as folder:
                modules = re.findall(r"^(?:from|import) (\w+)", snippet, re.MULTILINE)
                missing = [module for module in modules if importlib.util.find_spec(module) is None]
                if missing:
                    self.skipTest(f"{missing[0]} isn't installed")
                code = re.sub(r"/dev/shm/|/var/cache/eyewall/", f"{folder}/", snippet)
                done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=folder)
                self.assertEqual((done.returncode, done.stderr), (0, ""))


if __name__ == "__main__":
    unittest.main()
