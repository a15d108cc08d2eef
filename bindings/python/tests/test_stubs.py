"""The stubs, which editors read, have the same docstrings as the Rust module, which `help` and pydoc read."""

from __future__ import annotations

import ast
import inspect
import pathlib
import unittest

import eyewall
from eyewall import _eyewall

STUBS = pathlib.Path(eyewall.__file__).parent / "_eyewall.pyi"


class Stubs(unittest.TestCase):
    def test_stubs_and_module_have_the_same_documentation(self) -> None:
        said = 0
        for found in ast.parse(STUBS.read_text()).body:
            for method in found.body if isinstance(found, ast.ClassDef) else []:
                if not isinstance(method, ast.FunctionDef) or not isinstance(found, ast.ClassDef):
                    continue
                of_module = getattr(getattr(_eyewall, found.name), method.name)
                words = ast.get_docstring(method)
                if words is not None:
                    said += 1
                    with self.subTest(f"{found.name}.{method.name}"):
                        self.assertEqual(words.replace("`", ""), (inspect.getdoc(of_module) or "").replace("`", ""))
        self.assertGreater(said, 20)


if __name__ == "__main__":
    unittest.main()
