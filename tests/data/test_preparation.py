import gzip
import lzma
import os
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
import zstandard

from cadec_cli.data.cleaning import CleaningOptions
from cadec_cli.data.preparation import PreparationOptions, Row, prepare, rows, tokenised_lines
from cadec_cli.data.shards import Shard, SideInfo, writing_shard
from cadec_cli.errors import CadecError
from cadec_cli.parallel import Task, in_order
from cadec_cli.parallel.processes import local_pool
from cadec_cli.text.pipeline import TextPipeline
from tests.helpers.shard_parts import document_bounds

NO_CLEANING = CleaningOptions()
ONE_PROCESS = PreparationOptions(processes=1)
UNSPLIT = replace(ONE_PROCESS, split=False)
APART = replace(ONE_PROCESS, documents=False)


def prepared(
    output: Path,
    texts: Iterable[Row | None],
    pipelines: list[Path],
    cleaning: CleaningOptions = NO_CLEANING,
    options: PreparationOptions = ONE_PROCESS,
) -> Shard:
    loaded = [TextPipeline.load(path) for path in pipelines]
    sides = [SideInfo(one.language, one.checksum, len(one)) for one in loaded]
    with writing_shard(output, sides) as writer:
        for _ in prepare(
            texts, [partial(TextPipeline.load, path) for path in pipelines], cleaning, options, writer
        ):
            pass
    return Shard(output)


def held_out(
    output: Path, texts: Iterable[Row | None], pipeline: Path, every: int, documents: bool = True
) -> tuple[Shard, Shard]:
    one = TextPipeline.load(pipeline)
    side = SideInfo(one.language, one.checksum, len(one))
    options = PreparationOptions(dev_every=every, documents=documents, processes=1)
    with writing_shard(output / "train", [side]) as writer, writing_shard(output / "dev", [side]) as dev:
        for _ in prepare(texts, [partial(TextPipeline.load, pipeline)], NO_CLEANING, options, writer, dev):
            pass
    return Shard(output / "train"), Shard(output / "dev")


def documents(shard: Shard, pipeline: TextPipeline, side: int = 0) -> list[list[str]]:
    """Decode a shard."""
    return [
        [pipeline.decode(shard.sides[side].sentence(i).tolist()) for i in range(start, end)]
        for start, end in document_bounds(shard)
    ]


def lines_of(*texts: str) -> Iterator[Row | None]:
    return ((text,) if text else None for text in texts)


def test_documents_come_back(tmp_path: Path, english: TextPipeline, english_directory: Path) -> None:
    texts = lines_of("The captain sees it. He knows!", "Tom took it.", "", "", "Nobody wants it?")
    shard = prepared(tmp_path / "s", texts, [english_directory])
    assert documents(shard, english) == [
        ["The captain sees it.", "He knows!", "Tom took it."],
        ["Nobody wants it?"],
    ]
    assert shard.sides[0].info == SideInfo("en", english.checksum, len(english))


def test_lines_need_not_be_split_nor_belong_together(
    tmp_path: Path, english: TextPipeline, english_directory: Path
) -> None:
    texts = ["The captain sees it. He knows!", "Tom took it."]
    whole = prepared(
        tmp_path / "whole", lines_of(*texts), [english_directory], options=replace(ONE_PROCESS, split=False)
    )
    assert documents(whole, english) == [texts]
    apart = prepared(
        tmp_path / "apart",
        lines_of(*texts),
        [english_directory],
        options=replace(ONE_PROCESS, documents=False),
    )
    assert documents(apart, english) == [["The captain sees it.", "He knows!"], ["Tom took it."]]


def test_pairs_stay_pairs(
    tmp_path: Path,
    english: TextPipeline,
    russian: TextPipeline,
    english_directory: Path,
    russian_directory: Path,
) -> None:
    pairs = [("Tom took it. Why?", "Том взял его. Зачем?"), ("Nobody.", "Никто."), None, ("It!", "Его!")]
    shard = prepared(tmp_path / "s", pairs, [english_directory, russian_directory])
    assert documents(shard, english, 0) == [["Tom took it. Why?", "Nobody."], ["It!"]]
    assert documents(shard, russian, 1) == [["Том взял его. Зачем?", "Никто."], ["Его!"]]


def test_what_is_left_out_splits_its_document(
    tmp_path: Path, english: TextPipeline, english_directory: Path
) -> None:
    cleaning = CleaningOptions(max_words=3, drop_duplicates=True)
    texts = lines_of("Tom took it.", "Tom took it again and again.", "The ship!", "Tom took it.", "Nobody!")
    shard = prepared(tmp_path / "s", texts, [english_directory], cleaning)
    assert documents(shard, english) == [["Tom took it."], ["The ship!"], ["Nobody!"]]


def test_a_text_that_normalises_to_nothing_is_left_out(
    tmp_path: Path, english: TextPipeline, english_directory: Path
) -> None:
    shard = prepared(
        tmp_path / "s",
        lines_of("Tom.", "\u200b", "Nobody."),
        [english_directory],
        options=replace(ONE_PROCESS, split=False),
    )
    assert documents(shard, english) == [["Tom."], ["Nobody."]]


def test_one_process_and_two_write_the_same_bytes(tmp_path: Path, english_directory: Path) -> None:
    texts = [f"Tom sees {number}. Who wants it?" if number % 7 else "" for number in range(2000)]
    cleaning = CleaningOptions(max_characters=14, drop_duplicates=True)
    for processes in (1, 2):
        options = PreparationOptions(processes=processes)
        prepared(tmp_path / str(processes), lines_of(*texts), [english_directory], cleaning, options)
    one, two = ({path.name: path.read_bytes() for path in (tmp_path / n).iterdir()} for n in ("1", "2"))
    assert one == two
    assert len(one["0-en.tokens.bin"]) > 2000


@pytest.mark.parametrize("blanks", [1, 2, 3])
@pytest.mark.parametrize("every", [2, 3, 10])
def test_what_is_held_out_is_disjoint_and_complete(
    tmp_path: Path, english: TextPipeline, english_directory: Path, every: int, blanks: int
) -> None:
    texts = [text for number in range(10) for text in (f"Tom {number}.", f"So {number}.", *[""] * blanks)]
    train, dev = held_out(tmp_path, lines_of(*texts), english_directory, every)
    everything = [[f"Tom {number}.", f"So {number}."] for number in range(10)]
    assert documents(dev, english) == everything[every - 1 :: every]
    assert documents(train, english) == [one for n, one in enumerate(everything, 1) if n % every]


def test_single_lines_can_be_held_out(tmp_path: Path, english: TextPipeline, english_directory: Path) -> None:
    texts = lines_of(*(f"Tom {number}." for number in range(9)))
    train, dev = held_out(tmp_path, texts, english_directory, 3, documents=False)
    assert documents(dev, english) == [[f"Tom {number}."] for number in (2, 5, 8)]
    assert len(train) == 6


def test_compressed_files_read_like_plain_ones(tmp_path: Path) -> None:
    content = "\ufeffОдин\r\n\r\nДва\nтри без конца".encode()
    packed = {
        "a.txt": content,
        "a.txt.gz": gzip.compress(content),
        "a.txt.xz": lzma.compress(content),
        "a.txt.zst": zstandard.compress(content[:9]) + zstandard.compress(content[9:]),
    }
    for name, data in packed.items():
        (tmp_path / name).write_bytes(data)
        assert list(rows([tmp_path / name], languages=1)) == [
            ("Один",),
            None,
            ("Два",),
            ("три без конца",),
            None,
        ]


@pytest.mark.parametrize("suffix", [".gz", ".xz", ".zst"])
@pytest.mark.parametrize("left", [0.3, 0.7, 0.99])
def test_a_truncated_file_is_an_error(tmp_path: Path, suffix: str, left: float) -> None:
    packers: dict[str, Callable[[bytes], bytes]] = {
        ".gz": gzip.compress,
        ".xz": lzma.compress,
        ".zst": zstandard.compress,
    }
    data = packers[suffix](os.urandom(10_000).hex("\n").encode())
    path = tmp_path / f"a.txt{suffix}"
    path.write_bytes(data[: int(len(data) * left)])
    with pytest.raises(CadecError, match=r"a\.txt"):
        list(rows([path], languages=1))


def test_aligned_files_of_different_lengths_are_an_error(tmp_path: Path) -> None:
    one, other = tmp_path / "a.en", tmp_path / "a.ru"
    one.write_text("a\nb\nc\n")
    other.write_text("а\nб\n")
    for inputs in ([one, other], [other, one]):
        with pytest.raises(CadecError, match=r"a\.ru ends at line 2"):
            list(rows(inputs, languages=2))


def test_aligned_files_and_columns_give_the_same_rows(tmp_path: Path) -> None:
    (tmp_path / "a.en").write_text("a\n\nb\n")
    (tmp_path / "a.ru").write_text("а\n\nб\n")
    (tmp_path / "a.tsv").write_text("1\ta\tа\n\n2\tb\tб\n")
    aligned = list(rows([tmp_path / "a.en", tmp_path / "a.ru"], languages=2))
    assert aligned == [("a", "а"), None, ("b", "б"), None]
    assert list(rows([tmp_path / "a.tsv"], languages=2, columns=(2, 3))) == aligned
    assert [row and row[::-1] for row in rows([tmp_path / "a.tsv"], languages=2, columns=(3, 2))] == aligned


@pytest.mark.parametrize(
    ("languages", "columns", "files"), [(2, (), 1), (2, (), 3), (2, (1,), 1), (1, (1, 2), 1), (1, (4,), 1)]
)
def test_inputs_that_do_not_fit_are_an_error(
    tmp_path: Path, languages: int, columns: tuple[int, ...], files: int
) -> None:
    path = tmp_path / "a.tsv"
    path.write_text("a\tb\tc\n")
    with pytest.raises(CadecError):
        list(rows([path] * files, languages=languages, columns=columns))


def test_tokenised_lines_are_the_same_with_more_processes(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("\n".join(f"It's {number}, isn't it?\n" for number in range(600)))
    one, two = (list(tokenised_lines([path], "en", processes=number)) for number in (1, 2))
    assert one == two
    assert one[0] == "It 's 0 , isn 't it ?"
    assert len(one) == 600


def _start_loading(directory: Path) -> Callable[[int], int]:
    TextPipeline.load(directory)
    return abs


def test_a_dead_worker_is_an_error_and_no_endless_wait() -> None:
    with pytest.raises(CadecError, match="worker") as caught:
        list(in_order(local_pool(2, "processes").run(Task(os._exit, (3,)), [1, 2])))
    assert "fewer processes" in caught.value.hint


def test_an_error_in_a_worker_arrives_whole(tmp_path: Path) -> None:
    with pytest.raises(CadecError, match="not a text pipeline") as caught:
        list(local_pool(2, "processes").run(Task(_start_loading, (tmp_path,)), [1]))
    assert "cadec train tokenizer" in caught.value.hint


_PEAK = """
import sys
from functools import partial
from pathlib import Path
from cadec_cli.data.cleaning import CleaningOptions
from cadec_cli.data.preparation import rows
from cadec_cli.data.preparation import PreparationOptions, prepare
from cadec_cli.data.shards import SideInfo, writing_shard
from cadec_cli.text.pipeline import TextPipeline
pipeline, text, output = map(Path, sys.argv[1:])
options = PreparationOptions(split=False, processes=1)
with writing_shard(output, [SideInfo("en", "", 400)]) as writer:
    load = partial(TextPipeline.load, pipeline)
    for _ in prepare(rows([text], languages=1), [load], CleaningOptions(), options, writer):
        pass
status = Path("/proc/self/status").read_text()
print(writer.sentences, next(line.split()[1] for line in status.splitlines() if line.startswith("VmHWM")))
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="reads the peak memory from /proc")
def test_memory_does_not_grow_with_the_corpus(tmp_path: Path, english_directory: Path) -> None:
    peaks = []
    for count in (4_000, 40_000):
        text = tmp_path / f"{count}.txt"
        text.write_text("".join(f"so {number}\n" for number in range(count)))
        done = subprocess.run(
            [sys.executable, "-c", _PEAK, str(english_directory), str(text), str(tmp_path / f"{count}")],
            capture_output=True,
            text=True,
            check=True,
        )
        sentences, peak = map(int, done.stdout.split())
        assert sentences == count
        peaks.append(peak)
    assert peaks[1] - peaks[0] < 2_000  # KiB; a list of the rows alone takes twice that
