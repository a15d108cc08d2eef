"""The site whose pages are loaded: classes, templates and the small framework of the folder `site`. The same seed gives the same site."""
import pathlib
import shutil

from values import Stream

HERE = pathlib.Path(__file__).resolve().parent
# The number of the stream of random numbers, next to those of the module comparison.
SITE = 5
WORDS = ("amber birch cedar delta ember fjord grove haven inlet jetty knoll larch marsh north ocean pines quarry ridge "
         "slope tidal upland vale willow yarrow zephyr").split()
# The numbers that site/page.php expects.
CLASSES, TEMPLATES = 400, 200
PARTS_OF_AN_AREA = 40
METHODS_MIN, METHODS_MORE = 6, 7
INCLUDED = 6


def write(folder, seed):
    """Writes the site below a folder, which doesn't exist yet."""
    stream = Stream(seed, SITE)
    shutil.copytree(HERE / "site", folder)
    for number in range(CLASSES):
        path = folder / f"classes/Area{number // PARTS_OF_AN_AREA:02d}/Part{number:03d}.php"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(_class(number, stream))
    (folder / "templates").mkdir()
    for number in range(TEMPLATES):
        (folder / f"templates/page{number:03d}.html").write_text(_template(number, stream))
    return folder


def _class(number, stream):
    area = number // PARTS_OF_AN_AREA
    methods = "\n".join(_method(index, stream) for index in range(METHODS_MIN + stream.below(METHODS_MORE)))
    # Every fourth class extends the one before it, which is of the same area.
    parent = f" extends \\Site\\Area{area:02d}\\Part{number - 1:03d}" if number % 4 == 3 else ""
    return (f"<?php\ndeclare(strict_types=1);\n\nnamespace Site\\Area{area:02d};\n\nclass Part{number:03d}{parent}\n{{\n"
            f"{_first()}\n{methods}}}\n")


def _first():
    return ("    public function first(int $given): int\n    {\n        return strlen(__CLASS__) + $given;\n    }\n")


def _method(index, stream):
    word = WORDS[stream.below(len(WORDS))]
    lines = "".join(f"        $found['{WORDS[stream.below(len(WORDS))]}'] = ($given * {stream.below(1000)} + {line}) % {1 + stream.below(997)};\n"
                    for line in range(3 + stream.below(5)))
    return (f"    /** What {word} comes to. */\n    public function {word}{index}(int $given): array\n    {{\n        $found = [];\n"
            f"{lines}        return $found;\n    }}\n")


def _template(number, stream):
    def paragraph():
        return "<p>" + " ".join(WORDS[stream.below(len(WORDS))] for _ in range(40)) + "</p>\n"

    # The first half includes templates of the second half, so that no template includes itself.
    half = TEMPLATES // 2
    included = "" if number >= half else "".join(
        f"{{% include page{half + stream.below(TEMPLATES - half):03d} %}}\n" for _ in range(INCLUDED))
    listed = "<ul>{% each lines %}<li>{{ each }}</li>{% end %}</ul>\n" if number < half else ""
    return f"<section id=\"page{number:03d}\">\n<h1>{{{{ title }}}}: {{{{ sum }}}}</h1>\n{paragraph()}{listed}{included}{paragraph()}</section>\n"
