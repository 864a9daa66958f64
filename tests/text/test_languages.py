"""What people call a language becomes the model's own token, or an error that helps."""

import pytest

from cadec_cli.errors import CadecError
from cadec_cli.text.languages import iso_code, language_misfit, own_token

M2M100 = ["__en__", "__no__", "__ru__", "__zh__", "__pt__", "__tl__", "__he__", "__uk__", "__ur__"]
NLLB = [
    *("arb_Arab", "acm_Arab", "arz_Arab", "eng_Latn", "fra_Latn", "kas_Arab", "kas_Deva", "lvs_Latn"),
    *("nob_Latn", "nno_Latn", "pes_Arab", "por_Latn", "rus_Cyrl", "swh_Latn", "ukr_Cyrl", "zho_Hans"),
    *("zho_Hant", "zsm_Latn", "deu_Latn", "ron_Latn"),
]
MBART = ["en_XX", "ru_RU", "zh_CN", "pt_XX", "de_DE", "cs_CZ"]
OPUS = [
    ">>rus<<",
    ">>ukr<<",
    ">>srp_Cyrl<<",
    ">>srp_Latn<<",
    ">>cmn_Hans<<",
    ">>cmn_Hant<<",
    ">>pt_BR<<",
    ">>pt_PT<<",
]
MADLAD = ["<2en>", "<2ru>", "<2ru_Latn>", "<2pt>", "<2zh>", "<2zh_Latn>", "<2nb>", "<2fil>"]


@pytest.mark.parametrize(
    ("wanted", "tokens", "token"),
    [
        ("ru", M2M100, "__ru__"),
        ("rus", M2M100, "__ru__"),
        ("RU", M2M100, "__ru__"),
        ("rus_Cyrl", M2M100, "__ru__"),
        ("nb", M2M100, "__no__"),
        ("iw", M2M100, "__he__"),
        ("fil", M2M100, "__tl__"),
        ("pt-BR", M2M100, "__pt__"),
        ("zh-Hans", M2M100, "__zh__"),
        ("ru", NLLB, "rus_Cyrl"),
        ("rus_Cyrl", NLLB, "rus_Cyrl"),
        ("ger", NLLB, "deu_Latn"),
        ("mo", NLLB, "ron_Latn"),
        ("ar", NLLB, "arb_Arab"),
        ("arz", NLLB, "arz_Arab"),
        ("fa", NLLB, "pes_Arab"),
        ("lv", NLLB, "lvs_Latn"),
        ("ms", NLLB, "zsm_Latn"),
        ("no", NLLB, "nob_Latn"),
        ("nn", NLLB, "nno_Latn"),
        ("zh-CN", NLLB, "zho_Hans"),
        ("zh-TW", NLLB, "zho_Hant"),
        ("zh-Hant", NLLB, "zho_Hant"),
        ("pt-BR", NLLB, "por_Latn"),
        ("ru", MBART, "ru_RU"),
        ("ru_RU", MBART, "ru_RU"),
        ("zh", MBART, "zh_CN"),
        ("zh-Hans", MBART, "zh_CN"),
        ("en-GB", MBART, "en_XX"),
        ("ru", OPUS, ">>rus<<"),
        ("rus", OPUS, ">>rus<<"),
        (">>rus<<", OPUS, ">>rus<<"),
        ("sr-Latn", OPUS, ">>srp_Latn<<"),
        ("pt-BR", OPUS, ">>pt_BR<<"),
        ("zh-CN", OPUS, ">>cmn_Hans<<"),
        ("ru", MADLAD, "<2ru>"),
        ("ru-Latn", MADLAD, "<2ru_Latn>"),
        ("zh", MADLAD, "<2zh>"),
        ("no", MADLAD, "<2nb>"),
        ("tl", MADLAD, "<2fil>"),
    ],
)
def test_a_language_becomes_the_models_own_token(wanted: str, tokens: list[str], token: str) -> None:
    assert own_token(wanted, tokens) == token


@pytest.mark.parametrize(
    ("wanted", "tokens", "listed"),
    [
        ("zh", NLLB, ["zho_Hans", "zho_Hant"]),
        ("ks", NLLB, ["kas_Arab", "kas_Deva"]),
        ("sr", OPUS, [">>srp_Cyrl<<", ">>srp_Latn<<"]),
        ("pt", OPUS, [">>pt_BR<<", ">>pt_PT<<"]),
    ],
)
def test_several_that_could_be_meant_are_listed(wanted: str, tokens: list[str], listed: list[str]) -> None:
    with pytest.raises(CadecError) as caught:
        own_token(wanted, tokens)
    assert all(token in caught.value.message for token in listed)
    assert len(caught.value.message.split(": ")[1].split()) == len(listed)


@pytest.mark.parametrize(
    ("wanted", "tokens", "near"),
    [
        ("uk_Latn", NLLB, "ukr_Cyrl"),  # another script of the language
        ("zh-TW", MBART, "zh_CN"),
        ("rsu", NLLB, "rus_Cyrl"),  # misspelt
        ("russ", NLLB, "rus_Cyrl"),
        ("fr", MBART, "en_XX"),  # few enough to list them all
    ],
)
def test_a_language_that_is_not_there_is_an_error_with_near_ones(
    wanted: str, tokens: list[str], near: str
) -> None:
    with pytest.raises(CadecError, match="has no language") as caught:
        own_token(wanted, tokens)
    assert near in caught.value.hint


def test_an_odd_language_shows_how_codes_are_written() -> None:
    with pytest.raises(CadecError) as caught:
        own_token("qqqqqq", NLLB)
    assert "arb_Arab" in caught.value.hint


@pytest.mark.parametrize(
    ("token", "short"),
    [
        ("__ru__", "ru"),
        ("rus_Cyrl", "ru"),
        ("ru_RU", "ru"),
        (">>rus<<", "ru"),
        ("<2ru>", "ru"),
        ("zho_Hans", "zh"),
        ("pt-BR", "pt"),
        ("arb_Arab", "ar"),
        ("ast_Latn", "ast"),
        ("ceb", "ceb"),
        ("EN", "en"),
    ],
)
def test_a_token_has_a_short_code(token: str, short: str) -> None:
    assert iso_code(token) == short


def test_every_code_of_the_big_models_finds_itself() -> None:
    from transformers.models.m2m_100.tokenization_m2m_100 import FAIRSEQ_LANGUAGE_CODES as M2M100_CODES
    from transformers.models.mbart50.tokenization_mbart50 import FAIRSEQ_LANGUAGE_CODES as MBART_CODES
    from transformers.models.nllb.tokenization_nllb import FAIRSEQ_LANGUAGE_CODES as NLLB_CODES

    for tokens in ([f"__{code}__" for code in M2M100_CODES["m2m100"]], MBART_CODES, NLLB_CODES):
        for token in tokens:
            assert own_token(token, tokens) == token
        # All but a few of the short codes mean one token: the others are written in two scripts.
        ambiguous = {iso_code(token) for token in tokens if not _finds(token, tokens)}
        assert ambiguous <= {"zh", "ks", "kr", "ace", "bjn", "taq"}


def _finds(token: str, tokens: list[str]) -> bool:
    try:
        return own_token(iso_code(token), tokens) == token
    except CadecError:
        return False


def test_what_may_be_a_language_is_no_path() -> None:
    made_up = ["en", "eo", "xx", "sah", "pt-BR", "zh-Hans-CN", "en_xx_simple", "es-419", "русский"]
    for code in (*M2M100, *NLLB, *MBART, *OPUS, *MADLAD, *made_up):
        assert language_misfit(code) is None
    paths = ["/", "..", ".", "a/b", "../ru", "ru/..", "a\\b", "C:", "<2../x>", ">>/<<", "__..__", "ru\0"]
    for text in (*paths, "", "-", "_", "ru-", "a b", "ru\n", "\x1b[2J", "\u202eru", "a" * 65, None, ["ru"]):
        assert language_misfit(text) is not None
