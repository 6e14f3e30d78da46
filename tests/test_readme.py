"""The README's sessions run as they stand there."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from conftest import ROOT

README = (ROOT / "README.md").read_text("utf-8")


def block(language: str) -> str:
    """The first block of code in that language."""
    found = re.search(rf"```{language}\n(.*?)```", README, re.DOTALL)
    assert found
    return found[1]


@pytest.mark.timeout(300)  # a dozen commands, where other tests may run beside them
def test_the_command_line_session_and_the_python_session_run(tmp_path: Path) -> None:
    commands = [shlex.split(line[2:]) for line in block("console").splitlines() if line.startswith("$ ")]
    toyweb, *others = commands
    assert toyweb[:2] == ["thresher", "toyweb"] and toyweb[-1] == "&"
    serve = [*toyweb[1:-1], "--json"]
    serve[serve.index("8088")] = "0"
    server = subprocess.Popen(
        [sys.executable, "-m", "thresher.cli", *serve], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    try:
        assert server.stdout
        address = json.loads(server.stdout.readline())["connect_to"]
        for command in others:
            arguments = [argument.replace("127.0.0.1:8088", address) for argument in command[1:]]
            done = subprocess.run(
                [sys.executable, "-m", "thresher.cli", *arguments],
                cwd=tmp_path,
                check=False,
                capture_output=True,
                text=True,
            )
            assert done.returncode in (0, 3), (command, done.stderr)
        script = block("python").replace("127.0.0.1:8088", address)
        done = subprocess.run(
            [sys.executable, "-c", script], cwd=tmp_path, capture_output=True, check=False, text=True
        )
        assert done.returncode == 0, done.stderr
        assert re.search(r"^http\S+ [01]\.\d+ \d+$", done.stdout, re.MULTILINE)
    finally:
        server.terminate()
        server.communicate()


def test_the_two_commands_of_the_readme_are_targets_of_the_makefile() -> None:
    makefile = (ROOT / "Makefile").read_text()
    for target in re.findall(r"^make (\w+)", block(""), re.MULTILINE):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE)


def test_no_package_registry_is_named_and_every_dependency_has_an_exact_version() -> None:
    for name in ("pyproject.toml", "constraints.txt", "Makefile"):
        assert "://" not in (ROOT / name).read_text("utf-8"), name
    pinned = dict(line.lower().split("==") for line in (ROOT / "constraints.txt").read_text().split())
    import tomllib

    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    wanted = [*project["dependencies"], *extras["dev"]]
    for requirement in wanted:  # our own extras stand for what they bring
        if own := re.fullmatch(r"thresher\[(.*)\]", requirement):
            wanted += [one for name in own[1].split(",") for one in extras[name]]
    wanted = [requirement for requirement in wanted if not requirement.startswith("thresher[")]
    names = {re.split(r"[><=;\[ ]", requirement)[0].lower() for requirement in wanted}
    assert {name for name in names if name not in pinned and name.replace("-", "_") not in pinned} == set()
