"""`cadec models`: from a name to a bundle that is used by its name; the hub is real, but on loopback."""

import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from cadec_cli.bundle.catalogue import (
    bundle_name,
    check_pull,
    find_models,
    language_models,
    translation_models,
)
from cadec_cli.errors import CadecError
from cadec_cli.main import exit_code
from tests.helpers import run_in_process
from tests.helpers.loopback_hub import Hub, serving
from tests.helpers.pretrained_lms import write_lm
from tests.helpers.pretrained_models import tiny_marian

NAME = "opus-mt-en-eo+qwen3-0.6b"
NMT, LM = "Helsinki-NLP/opus-mt-en-eo", "Qwen/Qwen3-0.6B-Base"


@pytest.fixture(scope="module")
def repositories(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("hub")
    for repository in (NMT, LM):
        (root / repository).mkdir(parents=True)
    tiny_marian(root / NMT)
    write_lm(root / LM, "qwen3")
    return root


@pytest.fixture
def hub(repositories: Path) -> Iterator[Hub]:
    with serving(repositories) as served:
        yield served


def cadec(
    hub: Hub | None, home: Path, *arguments: str, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run cadec as a user would whose data, caches and hub are all in one directory.

    In a process of its own: where the hub is and whether we are offline is read when its library is imported.
    """
    variables = {
        **os.environ,
        "HF_HOME": str(home / "hf"),
        "HF_ENDPOINT": hub.endpoint if hub is not None else "http://127.0.0.1:9",
        "HF_HUB_DISABLE_XET": "1",
        **user_directories(home),
        **environment,
    }
    command = [sys.executable, "-m", "cadec_cli", *arguments]
    return subprocess.run(command, capture_output=True, text=True, env=variables, timeout=300)


def user_directories(home: Path) -> dict[str, str]:
    return {"CADEC_DATA": str(home / "data"), "CADEC_CACHE": str(home / "cache")}


def without_network(home: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run cadec where nothing can be reached."""

    def refused(*_: object) -> None:
        raise AssertionError(f"{arguments} want the network")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(socket.socket, "connect", refused)
        return run_in_process.cadec(*arguments, **user_directories(home))


@pytest.mark.slow
def test_pulled_by_name_used_by_name_removed_by_name(hub: Hub, tmp_path: Path) -> None:
    done = cadec(hub, tmp_path, "models", "pull", NAME)
    assert done.returncode == 0, done.stderr
    assert f"{NAME} is ready" in done.stderr
    assert "verified" in done.stderr
    text = tmp_path / "in.txt"
    text.write_text("you see the lamp.\nthe lamp is red.\n", "utf-8")
    # From here on the hub is gone: what was pulled needs it no more.
    translated = without_network(
        tmp_path, "translate", str(text), "--lines", "--bundle", NAME, "--nbest", "3", "-q"
    )
    assert translated.returncode == 0, translated.stderr
    assert translated.stdout.count("\n") == 2
    group = {
        "source": "you see it.",
        "context": ["a."],
        "candidates": ["tu vides lo.", "vos videz lo."],
        "truth": 0,
    }
    (tmp_path / "set.jsonl").write_text(json.dumps(group), "utf-8")
    scored = without_network(
        tmp_path, "eval-contrastive", str(tmp_path / "set.jsonl"), "--bundle", NAME, "--json"
    )
    assert scored.returncode == 0, scored.stderr
    assert len(scored.stdout.splitlines()) > 3
    typed = subprocess.run(
        [sys.executable, "-m", "cadec_cli", "repl", "--bundle", NAME, "-q"],
        input="the lamp is red.\n",
        capture_output=True,
        text=True,
        env={**os.environ, "CADEC_DATA": str(tmp_path / "data"), "XDG_STATE_HOME": str(tmp_path / "state")},
        timeout=300,
    )
    assert typed.returncode == 0, typed.stderr
    assert typed.stdout.strip()
    listed = without_network(tmp_path, "models", "list", "--json")
    assert NAME in [json.loads(line)["name"] for line in listed.stdout.splitlines()]
    shown = without_network(tmp_path, "models", "info", NAME, "--json")
    assert json.loads(shown.stdout)["name"] == NAME
    assert "is there already" in cadec(hub, tmp_path, "models", "pull", NAME).stderr
    assert without_network(tmp_path, "models", "remove", NAME).returncode == 0
    assert "no bundle" in without_network(tmp_path, "models", "remove", NAME).stderr


@pytest.mark.slow
def test_a_broken_transfer_goes_on_and_a_damaged_one_is_refused(hub: Hub, tmp_path: Path) -> None:
    weights = "model.safetensors"
    hub.wrong.add(weights)
    damaged = cadec(hub, tmp_path, "models", "pull", "opus-mt-en-eo")
    assert damaged.returncode == 1
    assert f"{weights} came damaged from the hub" in damaged.stderr
    assert not list((tmp_path / "data").rglob("*")) or not (tmp_path / "data/bundles/opus-mt-en-eo").exists()
    hub.wrong.clear()
    hub.break_after[weights] = 5000
    done = cadec(hub, tmp_path, "models", "pull", "opus-mt-en-eo")
    if done.returncode:  # broken off for good: the same command goes on
        assert "Traceback" not in done.stderr
        done = cadec(hub, tmp_path, "models", "pull", "opus-mt-en-eo")
    assert done.returncode == 0, done.stderr
    assert not hub.break_after


@pytest.mark.slow
def test_what_is_not_on_the_hub_and_a_hub_that_is_not_there_are_one_error_each(
    hub: Hub, tmp_path: Path
) -> None:
    gone = cadec(hub, tmp_path, "models", "pull", "opus-mt-en-xx")
    assert gone.returncode == 1
    assert "Helsinki-NLP/opus-mt-en-xx was found neither" in gone.stderr
    hub.missing.add("source.spm")
    incomplete = cadec(hub, tmp_path, "models", "pull", "opus-mt-en-eo")
    assert incomplete.returncode == 1
    assert "can't be fetched" in incomplete.stderr
    offline = cadec(hub, tmp_path, "models", "pull", "opus-mt-en-ru", HF_HUB_OFFLINE="1")
    assert offline.returncode == 1
    assert "can't be fetched from the Hugging Face hub" in offline.stderr
    assert not (tmp_path / "data" / "bundles").exists() or not any((tmp_path / "data" / "bundles").iterdir())
    hub.missing.clear()
    assert cadec(hub, tmp_path, "models", "pull", "opus-mt-en-eo", "--name", "first").returncode == 0
    # Offline, what was fetched before can still be pulled, and is named where something else is asked for.
    offline = cadec(None, tmp_path, "models", "pull", "opus-mt-en-ru", HF_HUB_OFFLINE="1")
    assert offline.returncode == 1
    assert f"already downloaded and usable offline: {NMT}" in " ".join(offline.stderr.split())
    listed = cadec(None, tmp_path, "models", "list", "--json", HF_HUB_OFFLINE="1")
    records = [json.loads(line) for line in listed.stdout.splitlines()]
    assert [one["name"] for one in records if one["kind"] == "bundle"] == ["first"]
    again = cadec(None, tmp_path, "models", "pull", "opus-mt-en-eo", "--for-beam", HF_HUB_OFFLINE="1")
    assert again.returncode == 0, again.stderr
    assert (tmp_path / "data/bundles/opus-mt-en-eo/nmt/network/config.json").is_file()
    for done in (gone, incomplete, offline):
        assert "Traceback" not in done.stderr


def test_names_of_the_catalogue_mean_what_they_say() -> None:
    both = find_models("opus-mt-en-ru+gemma-3-270m")
    assert both.translation is translation_models()["opus-mt-en-ru"]
    assert both.language is language_models()["gemma-3-270m"]
    assert find_models("gpt2").translation is None
    unlisted = find_models("opus-mt-sv-fi").translation
    assert unlisted is not None
    assert (unlisted.repository, unlisted.sources, unlisted.targets) == (
        "Helsinki-NLP/opus-mt-sv-fi",
        ("sv",),
        ("fi",),
    )
    for name, message in (
        ("nothing", "no nothing in the catalogue"),
        ("a+b+c", "not the name of one or two models"),
        ("opus-mt-en-ru+", "not the name of one or two models"),
        ("gpt2+gemma-3-270m", "one translation model and one language model"),
        ("opus-mt-en-fr+rugpt3small", "rugpt3small reads ru, opus-mt-en-fr writes fr"),
    ):
        with pytest.raises(CadecError, match=message.replace("+", r"\+")):
            find_models(name)


def test_languages_are_asked_for_where_they_are_a_choice() -> None:
    many = find_models("nllb-600m+qwen3-0.6b")
    with pytest.raises(CadecError, match="serves many languages"):
        check_pull(many, None, "ru")
    check_pull(many, "en", "ru")
    assert bundle_name(many, "en", "ru") == "nllb-600m+qwen3-0.6b-en-ru"
    with pytest.raises(CadecError, match="does not know 'de'"):
        check_pull(find_models("opus-mt-en-ru"), None, "de")
    with pytest.raises(CadecError, match="its language is not known"):
        check_pull(find_models("gpt2"), None, None)


def test_a_bundle_can_be_added_and_is_then_used_by_its_name(
    made_up_bundle: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("CADEC_DATA", str(tmp_path / "data"))
    monkeypatch.chdir(tmp_path)
    assert exit_code(["models", "add", str(made_up_bundle), "--name", "mine"]) == 0
    assert exit_code(["models", "add", str(made_up_bundle), "--name", "mine"]) == 1
    assert "is there already" in capsys.readouterr().err
    assert exit_code(["models", "add", str(made_up_bundle), "--name", "../out"]) == 1
    assert "can't be a bundle's name" in capsys.readouterr().err
    assert exit_code(["info", "mine", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["directory"] == str(tmp_path / "data" / "bundles" / "mine")
    (tmp_path / "mine").mkdir()  # what is here comes first
    assert exit_code(["info", "mine"]) == 1
    (tmp_path / "mine").rmdir()
    assert exit_code(["models", "list"]) == 0
    shown = capsys.readouterr().out
    assert "mine" in shown
    assert "opus-mt-en-ru" in shown
    monkeypatch.setenv("CADEC_BUNDLE", "mine")
    assert exit_code(["info"]) == 0
    assert exit_code(["models", "remove", "mine"]) == 0
    assert not (tmp_path / "data" / "bundles" / "mine").exists()
    assert exit_code(["models", "info", "nllb-600m"]) == 0
    assert "CC-BY-NC" in capsys.readouterr().out
