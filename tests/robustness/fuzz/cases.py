"""Inputs for a target: valid files, one of which was damaged."""

from hypothesis import strategies as st

from tests.robustness.fuzz.mutations import damaged_bytes, damaged_json, has_json
from tests.robustness.fuzz.target import Files, Target

_ANY = st.one_of(
    st.binary(max_size=200), st.text(max_size=100).map(lambda drawn: drawn.encode("utf-8", "surrogatepass"))
)


class Case:
    """Files, and which of them is not as it was."""

    # Not a dataclass: hypothesis would show all of its files.
    def __init__(self, files: Files, damaged: str) -> None:
        self.files, self.damaged = files, damaged

    def __repr__(self) -> str:
        content = self.files[self.damaged]
        more = f" … {len(content):,} bytes" if len(content) > 2000 else ""
        return f"{self.damaged}: {content[:2000]!r}{more}"


def cases(target: Target, seeds: Files) -> st.SearchStrategy[Case]:
    """Every kind of damage to every file of a target."""
    files = [_of_file(target, seeds, name) for name in target.damaged or tuple(seeds)]
    return st.sampled_from(files).flatmap(lambda of_file: of_file)


def _of_file(target: Target, seeds: Files, name: str) -> st.SearchStrategy[Case]:
    data = seeds[name]
    # Of JSON, hardly any bytes can be changed without it being none, which is found out at once.
    as_json = has_json(data)
    ways = [_ANY, *[damaged_bytes(data)] * 3, *([damaged_json(data)] * 12 if as_json else [])]
    if (packing := target.packed.get(name)) is not None:
        inside = packing.take(data)
        within = [damaged_bytes(inside), *([damaged_json(inside)] * 3 if has_json(inside) else [])]
        ways += [way.map(lambda part: packing.put(data, part)) for way in within]
    if target.written is not None:
        ways = [target.written] if target.only_written else [*ways, *[target.written] * 3]

    def case(drawn: tuple[bytes, bool]) -> Case:
        content, seal = drawn
        files = {**seeds, name: content}
        if seal and target.resealed is not None:
            target.resealed(files, name)
        return Case(files, name)

    # Mostly sealed: a wrong checksum is found at once, and nothing behind it is tried.
    sealed = st.sampled_from([True] * 7 + [False]) if target.resealed is not None else st.just(False)
    return st.tuples(st.sampled_from(ways).flatmap(lambda way: way), sealed).map(case)
