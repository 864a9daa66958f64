"""A pretrained language model that is fitted to a translation model: one file beside its weights.

It holds the tokens that the softmax is over (`converters.language.fit`) and, where the network
supports it, all weights as they are computed with: int8 for CPUs that add products of 8 bits exactly. Then
loading neither reads float weights nor rounds nor tests them. The table of input embeddings stays in the
model's own file, of which only the rows in use are read.
"""

from __future__ import annotations

import contextlib
import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor, nn

from cadec_cli.errors import CadecError
from cadec_cli.fs.read import read_errors
from cadec_cli.models.fitted_output import FittedOutput
from cadec_cli.models.gated_decoder import DecoderShape, GatedNetwork, empty_decoder
from cadec_cli.models.huggingface import (
    HalfEmbedding,
    Network,
    check_finite,
    empty_network,
    load_config,
    new_model,
    single_logits,
    transformers_library,
)
from cadec_cli.models.int8.gated import fuse
from cadec_cli.models.int8.linear import (
    LevelInt8Linear,
    LevelWeights,
    RMSNorm,
    SharedProduct,
    SiblingLinear,
    WideOutput,
    adds_exactly,
    int8_available,
)
from cadec_cli.models.pretrained_settings import FITTED, check_room, weight_bytes

FORMAT = "1"
_AGAIN = "build the bundle again with `cadec convert`"
_TOKENS, _OUTPUT, _OUTPUT_BIAS = "fitted.tokens", "fitted.output", "fitted.output_bias"
_PARTS = ("integers", "scales", "factors")
_DESCRIBED = "cadec"  # the name of the file's description, in JSON
_GROUPS = "groups"  # linears with the same input, which are one product
_INPUT_TABLE, _OUTPUT_TABLE = "input_table", "output_table"
_DECODER = "decoder"  # the shape of a network that runs without transformers


def write_tokens(path: Path, tokens: Sequence[int]) -> None:
    """Write a file that has the tokens only."""
    _save(path, {_TOKENS: torch.tensor(tokens, dtype=torch.int32)}, {"weights": "none"})


def write_int8(
    path: Path, network: Network, rows: Sequence[Sequence[int]], decoder: DecoderShape | None = None
) -> None:
    """Write the tokens and int8 weights of a fitted float network, whose files are in the same directory.

    `rows` are texts in its tokens, from which the sizes of the inputs of its linears are learnt. With
    `decoder`, the network will be loaded as one of ours.
    """
    assert network.fitted is not None
    model = network.model
    largest, siblings = _watch_inputs(network, rows)
    tensors = {_TOKENS: network.fitted.tokens.to(torch.int32)}
    names = {id(part): name for name, part in model.named_modules()}
    stored: set[str] = set()
    linears = dict(_named_linears(network))
    groups = [group for group in siblings if len({linears[name].bias is None for name in group}) == 1]
    groups += [[name] for name in linears if not any(name in group for group in groups)]
    for group in groups:
        weights = torch.cat([linears[name].weight.detach() for name in group])
        _add(tensors, group[0], LevelWeights.of(weights, largest[group[0]]))
        stored.update(f"{name}.weight" for name in group)
    output, table = model.get_output_embeddings(), model.get_input_embeddings()
    predicting = output.weight.detach()
    _add(tensors, _OUTPUT, LevelWeights.of(predicting[network.fitted.tokens], largest[names[id(output)]]))
    bias = getattr(output, "bias", None)
    if bias is not None:
        tensors[_OUTPUT_BIAS] = bias.detach().clone()
    places = {
        _INPUT_TABLE: _place(path.parent, table.weight.detach()),
        _OUTPUT_TABLE: _place(path.parent, predicting),
    }
    tables = {id(table.weight), *map(id, output.parameters())}
    for name, weight in model.named_parameters():
        if name not in stored and id(weight) not in tables:
            tensors[name] = weight.detach().clone()
    runs = {"transformers": _version()} if decoder is None else {_DECODER: json.dumps(decoder.to_dict())}
    _save(path, tensors, {"weights": "int8", _GROUPS: json.dumps(groups), **runs, **places})


def read_tokens(directory: Path, vocabulary: int) -> Tensor:
    """The tokens that the softmax is over; invalid ones are a CadecError."""
    with _opened(directory / FITTED) as file:
        tokens: Tensor = file.get_tensor(_TOKENS).long()
    if (
        tokens.dim() != 1
        or not len(tokens)
        or int(tokens[0]) < 0
        or int(tokens[-1]) >= vocabulary
        or bool((tokens[1:] <= tokens[:-1]).any())
    ):
        raise CadecError(f"{directory / FITTED} is damaged: its tokens are not rising ids", _AGAIN)
    return tokens


def load_int8(directory: Path) -> Network | None:
    """Load the network from its int8 weights.

    None if there are none, if this CPU would compute other sums, or if the network needs transformers and was
    tested with another version of it.
    """
    with _opened(directory / FITTED) as file:
        described = _described(file, directory)
        if described.get("weights") != "int8" or not (int8_available() and adds_exactly()):
            return None
        if _DECODER not in described and described.get("transformers") != _version():
            return None
        return _Loading(directory, file, described).network()


def needs_transformers(directory: Path) -> bool:
    """Tell whether loading a language model with int8 weights needs the transformers library."""
    if not (directory / FITTED).is_file():
        return True
    try:
        with _opened(directory / FITTED) as file:
            return _DECODER not in _described(file, directory)
    except CadecError:
        return True  # loading says what is wrong


class _Loading:
    """A file that is open, and what is taken from it."""

    def __init__(self, directory: Path, file: Any, described: Mapping[str, str]) -> None:
        self.directory, self._file, self._described = directory, file, described
        self._names = set(file.keys())

    def network(self) -> Network:
        """The network, whose every weight must be in the file."""
        network = self._own_network() if _DECODER in self._described else self._network_of_transformers()
        model = network.model
        tokens = read_tokens(self.directory, network.vocabulary)
        output, embedding = model.get_output_embeddings(), model.get_input_embeddings()
        if not isinstance(embedding, nn.Embedding):
            raise self._damaged("its network has no table of embeddings")
        input_table = self._table(_INPUT_TABLE, embedding.weight)
        output_table = self._table(_OUTPUT_TABLE, output.weight)
        bias = self._tensor(_OUTPUT_BIAS, (len(output.weight),)) if output.bias is not None else None
        network.fitted = FittedOutput(
            tokens,
            WideOutput(
                *self._weights(_OUTPUT, (len(tokens), output.weight.size(1))),
                None if bias is None else bias[tokens],
            ),
            single_logits(lambda: output_table, lambda: bias),
            network.finish,
        )
        self._put_linears(network)
        output.weight = nn.Parameter(torch.empty(0), requires_grad=False)
        output.bias = None
        model.set_input_embeddings(HalfEmbedding(embedding, input_table))
        for name, weight in list(model.named_parameters()):
            if weight.numel():
                parent, _, own = name.rpartition(".")
                stored = nn.Parameter(self._tensor(name, weight.shape), requires_grad=False)
                setattr(model.get_submodule(parent), own, stored)
        check_finite(model, str(self.directory))
        _put_norms(model)
        network.attend_in_parts(True)
        fuse(model)
        return network

    def _own_network(self) -> Network:
        try:
            shape = DecoderShape.from_dict(json.loads(self._described[_DECODER]))
        except ValueError as error:
            raise self._damaged(str(error)) from None
        model = empty_decoder(shape)
        self._check_room(model)
        return GatedNetwork(model.eval().requires_grad_(False))

    def _network_of_transformers(self) -> Network:
        from transformers.initialization import no_init_weights

        config = load_config(self.directory)
        self._check_room(empty_network(config))
        with no_init_weights():
            model = new_model(config)  # its memory is not touched, and is given back
        return Network(model.eval().requires_grad_(False))

    def _check_room(self, outline: Any) -> None:
        check_room(outline, 2 * weight_bytes(self.directory.glob("*.safetensors")), str(self.directory))

    def _put_linears(self, network: Network) -> None:
        linears = dict(_named_linears(network))
        groups = self._groups()
        if sorted(name for group in groups for name in group) != sorted(linears):
            raise self._damaged("it has other linears than its network")
        for group in groups:
            outputs = [len(linears[name].weight) for name in group]
            shape = (sum(outputs), linears[group[0]].weight.size(1))
            biases = [
                self._tensor(f"{name}.bias", own.shape)
                for name in group
                if (own := linears[name].bias) is not None
            ]
            made = self._linear(group[0], shape, torch.cat(biases) if biases else None)
            if len(group) == 1:
                network.model.set_submodule(group[0], made)
                continue
            shared, start = SharedProduct(made), 0
            for name, count in zip(group, outputs, strict=True):
                network.model.set_submodule(name, SiblingLinear(shared, slice(start, start + count)))
                start += count

    def _groups(self) -> list[list[str]]:
        try:
            groups = json.loads(self._described[_GROUPS])
        except (KeyError, ValueError):
            groups = None
        if not isinstance(groups, list) or not all(
            isinstance(group, list) and group and all(isinstance(name, str) for name in group)
            for group in groups
        ):
            raise self._damaged("it does not say which linears have the same input")
        return groups

    def _linear(self, name: str, shape: Sequence[int], bias: Tensor | None) -> LevelInt8Linear:
        return LevelInt8Linear(*self._weights(name, shape), bias)

    def _weights(self, name: str, shape: Sequence[int]) -> tuple[Tensor, Tensor, Tensor]:
        sizes = (shape, shape[:1], shape[1:])
        integers, scales, factors = (
            self._tensor(f"{name}.{part}", size) for part, size in zip(_PARTS, sizes, strict=True)
        )
        if integers.dtype != torch.int8 or not (scales.isfinite().all() and factors.isfinite().all()):
            raise self._damaged(f"{name} is not of the right kind")
        return integers, scales, factors

    def _tensor(self, name: str, shape: Sequence[int]) -> Tensor:
        if name not in self._names:
            raise self._damaged(f"it lacks {name}")
        found: Tensor = self._file.get_tensor(name)
        if tuple(found.shape) != tuple(shape):
            raise self._damaged(f"{name} has another shape")
        return found.clone()  # not part of the file's memory, which may be unmapped

    def _table(self, name: str, weight: Tensor) -> Tensor:
        """A table in the model's own file. It is mapped into memory, and read where it is used."""
        try:
            file, tensor = json.loads(self._described[name])
            with _opened(self.directory / Path(str(file)).name) as opened:
                table: Tensor = opened.get_tensor(tensor)
        except (KeyError, ValueError, TypeError):
            raise self._damaged(f"it does not say where its {name.replace('_', ' ')} is") from None
        if table.shape != weight.shape or not table.dtype.is_floating_point:
            raise self._damaged(f"its {name.replace('_', ' ')} has another shape")
        return table

    def _damaged(self, why: str) -> CadecError:
        return CadecError(f"{self.directory / FITTED} is damaged: {why}", _AGAIN)


def _put_norms(model: Any) -> None:
    """Replace norms by the root of the mean of the squares, of any class, by one that takes a single pass."""
    for name, part in list(model.named_modules()):
        gain = getattr(part, "weight", None)
        if not type(part).__name__.endswith("RMSNorm") or gain is None or gain.dim() != 1:
            continue
        epsilon = getattr(part, "variance_epsilon", getattr(part, "eps", None))
        probe = torch.linspace(-3, 5, 4 * len(gain)).view(4, -1)
        for factor in (gain, 1 + gain):  # Llama; Gemma
            made = RMSNorm(factor.detach().clone(), epsilon) if isinstance(epsilon, float) else None
            if made is not None and torch.allclose(made(probe), part(probe), rtol=1e-5, atol=1e-6):
                model.set_submodule(name, made)
                break


def _watch_inputs(
    network: Network, rows: Sequence[Sequence[int]]
) -> tuple[dict[str, Tensor], list[list[str]]]:
    """The largest absolute value of each input channel of the linears and the output, over some texts.

    Also the groups of linears that are called one after the other with the same tensor, each time.
    """
    found: dict[str, Tensor] = {}
    calls: list[list[str]] = []
    last: list[Tensor] = []  # kept, so that no other tensor gets its place

    def watch(name: str) -> Any:
        def hook(module: nn.Module, inputs: tuple[Tensor, ...]) -> None:
            (given,) = inputs
            largest = given.detach().reshape(-1, given.size(-1)).abs().amax(0)
            found[name] = torch.maximum(found[name], largest) if name in found else largest
            if last and last[0] is given:
                calls[-1].append(name)
            else:
                last[:] = [given]
                calls.append([name])

        return hook

    model = network.model
    output = model.get_output_embeddings()
    parts = {name: part for name, part in model.named_modules() if part is output}
    parts |= {name: model.get_submodule(name) for name, _ in _named_linears(network)}
    handles = [part.register_forward_pre_hook(watch(name)) for name, part in parts.items()]
    try:
        with torch.inference_mode():
            for row in rows:
                network.own_logits(torch.tensor([list(row)], device=network.device), None, len(row))
    finally:
        for handle in handles:
            handle.remove()
    for name, linear in _named_linears(network):
        found.setdefault(name, torch.zeros(linear.in_features))  # it was not called
    times = Counter(name for group in calls for name in group)
    groups = Counter(map(tuple, calls))
    same = [
        list(group)
        for group, count in groups.items()
        if len(group) > 1 and all(times[name] == count for name in group)
    ]
    return {name: largest.clone() for name, largest in found.items()}, same


def _named_linears(network: Network) -> Iterator[tuple[str, nn.Linear]]:
    """The linears but the output, each by its name in the model."""
    names = {id(part): name for name, part in network.model.named_modules()}
    for parent, own, linear in network.linears():
        yield f"{names[id(parent)]}.{own}".lstrip("."), linear


def _add(tensors: dict[str, Tensor], name: str, weights: LevelWeights) -> None:
    for part in _PARTS:
        tensors[f"{name}.{part}"] = getattr(weights, part).contiguous()


def _place(directory: Path, table: Tensor) -> str:
    """The file and the name of a table of weights, as JSON."""
    for path in sorted(directory.glob("*.safetensors")):
        if path.name == FITTED:
            continue
        with _opened(path) as file:
            names: list[str] = file.keys()
            for name in names:
                if tuple(file.get_slice(name).get_shape()) != tuple(table.shape):
                    continue
                if torch.equal(file.get_tensor(name).float(), table.float()):
                    return json.dumps([path.name, name])
    raise CadecError(f"a table of weights is in none of the files in {directory}")


def _save(path: Path, tensors: dict[str, Tensor], described: dict[str, str]) -> None:
    # In one value: several would be in any order, and the file another one each time.
    save_file(tensors, path, {_DESCRIBED: json.dumps({"format": FORMAT, **described})})
    path.chmod((path.parent / "tokenizer.json").stat().st_mode)  # created with access for its owner only


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[Any]:
    """A safetensors file, open; damage is a CadecError."""
    with read_errors(path):
        try:
            with safe_open(path, framework="pt") as file:
                yield file
        except SafetensorError as error:
            raise CadecError(f"{path} is damaged: {error}", _AGAIN) from None


def _described(file: Any, directory: Path) -> dict[str, str]:
    """What the file says of itself: texts by name."""
    try:
        found = json.loads((file.metadata() or {})[_DESCRIBED])
    except (KeyError, ValueError):
        found = None
    if not isinstance(found, dict) or found.get("format") != FORMAT:
        raise CadecError(f"{directory / FITTED} is not of format {FORMAT}", _AGAIN)
    return found


def _version() -> str:
    return str(transformers_library().__version__)
