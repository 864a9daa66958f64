"""Language codes that people write, and the tokens that models have for languages.

People write `ru`, `rus`, `pt-BR` or `zh-Hans`; models have `__ru__`, `rus_Cyrl`, `ru_RU`, `>>rus<<`, `<2ru>`.
Both are parsed into a language, with an optional script and region.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from cadec_cli.errors import CadecError
from cadec_cli.validation import quote_value

# ISO 639-1 and 639-3, two letters and three.
_TWO_AND_THREE = """
aa aar  ab abk  ae ave  af afr  ak aka  am amh  an arg  ar ara  as asm  av ava  ay aym  az aze  ba bak
be bel  bg bul  bi bis  bm bam  bn ben  bo bod  br bre  bs bos  ca cat  ce che  ch cha  co cos  cr cre
cs ces  cu chu  cv chv  cy cym  da dan  de deu  dv div  dz dzo  ee ewe  el ell  en eng  eo epo  es spa
et est  eu eus  fa fas  ff ful  fi fin  fj fij  fo fao  fr fra  fy fry  ga gle  gd gla  gl glg  gn grn
gu guj  gv glv  ha hau  he heb  hi hin  ho hmo  hr hrv  ht hat  hu hun  hy hye  hz her  ia ina  id ind
ie ile  ig ibo  ii iii  ik ipk  io ido  is isl  it ita  iu iku  ja jpn  jv jav  ka kat  kg kon  ki kik
kj kua  kk kaz  kl kal  km khm  kn kan  ko kor  kr kau  ks kas  ku kur  kv kom  kw cor  ky kir  la lat
lb ltz  lg lug  li lim  ln lin  lo lao  lt lit  lu lub  lv lav  mg mlg  mh mah  mi mri  mk mkd  ml mal
mn mon  mr mar  ms msa  mt mlt  my mya  na nau  nb nob  nd nde  ne nep  ng ndo  nl nld  nn nno  no nor
nr nbl  nv nav  ny nya  oc oci  oj oji  om orm  or ori  os oss  pa pan  pi pli  pl pol  ps pus  pt por
qu que  rm roh  rn run  ro ron  ru rus  rw kin  sa san  sc srd  sd snd  se sme  sg sag  sh hbs  si sin
sk slk  sl slv  sm smo  sn sna  so som  sq sqi  sr srp  ss ssw  st sot  su sun  sv swe  sw swa  ta tam
te tel  tg tgk  th tha  ti tir  tk tuk  tl tgl  tn tsn  to ton  tr tur  ts tso  tt tat  tw twi  ty tah
ug uig  uk ukr  ur urd  uz uzb  ve ven  vi vie  vo vol  wa wln  wo wol  xh xho  yi yid  yo yor  za zha
zh zho  zu zul
"""

# Other codes of the same languages: the member that a group's name stands for (as in NLLB and OPUS),
# bibliographic codes, and obsolete codes.
_OTHERS = """
arb ar  pes fa  swh sw  zsm ms  lvs lv  ekk et  azj az  uzn uz  khk mn  plt mg  npi ne  ory or  pbt ps  als sq
ydd yi  kmr ku  gaz om  quy qu  ayr ay  fuv ff  knc kr  cmn zh  fil tl
ger de  fre fr  dut nl  gre el  chi zh  cze cs  per fa  rum ro  slo sk  alb sq  arm hy  baq eu  bur my  geo ka
ice is  mac mk  mao mi  may ms  tib bo  wel cy
iw he  in id  ji yi  jw jv  mo ro
"""

# If a model has only one of the two, it is used for both.
_INSTEAD = {"no": "nb", "nb": "no"}

_SCRIPTS_OF_REGIONS = {
    ("zh", "CN"): "Hans",
    ("zh", "SG"): "Hans",
    ("zh", "TW"): "Hant",
    ("zh", "HK"): "Hant",
    ("zh", "MO"): "Hant",
}

# The form of language tokens in each family of models. A multilingual model has several tokens.
LANGUAGE_TOKENS: Mapping[str, re.Pattern[str]] = {
    "marian": re.compile(r">>[\w-]+<<"),
    "m2m100": re.compile(r"__[a-z]{2,4}__"),
    "nllb": re.compile(r"[a-z]{3}_[A-Z][a-z]{3}"),
    "mbart50": re.compile(r"[a-z]{2}_[A-Z]{2}"),
    "madlad": re.compile(r"<2[\w-]+>"),
}

_DECORATED = re.compile(r"__(?P<m2m100>.+)__|>>(?P<opus>.+)<<|<2(?P<madlad>.+)>")
# What all tokens have in common, decoration aside: groups of letters and digits. Checked because file names
# are made of codes, and a code in a bundle is untrusted input.
_PLAIN = re.compile(r"[^\W_]+(?:[-_][^\W_]+)*")
_MAX_LENGTH = 64
_NO_REGION = "XX"  # of mBART's codes
_SHOWN = 12


def _table() -> dict[str, str]:
    codes = _TWO_AND_THREE.split()
    table = dict(zip(codes[1::2], codes[::2], strict=True))
    others = _OTHERS.split()
    return {**table, **dict(zip(others[::2], others[1::2], strict=True))}


_SHORT = _table()
_LANGUAGES = frozenset(_SHORT.values())


@dataclass(frozen=True)
class _Code:
    language: str  # two letters where there are any
    script: str = ""
    region: str = ""


def own_token(wanted: str, tokens: Sequence[str]) -> str:
    """The token that a model has for a language; a CadecError if none matches, or several do."""
    exact = [token for token in tokens if wanted in (token, _bare(token))]
    if exact:
        return exact[0]
    code = _code(wanted)
    fitting = _fitting(code, tokens)
    if not fitting and code.language in _INSTEAD:
        fitting = _fitting(_Code(_INSTEAD[code.language], code.script, code.region), tokens)
    if len(fitting) == 1:
        return fitting[0]
    if fitting:
        raise CadecError(
            f"the model has several kinds of {wanted!r}: {' '.join(fitting)}", "choose one of them"
        )
    raise CadecError(f"the model has no language {wanted!r}", _nearest(wanted, code, tokens))


def iso_code(token: str) -> str:
    """The shortest code for the language of a model's token or of a code that a person wrote."""
    return _code(token).language


def language_misfit(value: object) -> str | None:
    """Return why a value can't be a language code or a language token; None if it can."""
    if isinstance(value, str) and len(value) <= _MAX_LENGTH and _PLAIN.fullmatch(_bare(value)):
        return None
    return f"{quote_value(value)} is not a language code"


def check_language(value: object) -> None:
    """Raise a CadecError if a value can't be a language code or a language token."""
    if problem := language_misfit(value):
        raise CadecError(problem, "a code is letters and digits, such as ru, pt-BR or zho_Hans")


def code_of(token: str, tokens: Sequence[str]) -> str:
    """The shortest code for which `own_token` returns this token: `ru`, but `zho_Hans` and `pt_BR`."""
    code = iso_code(token)
    try:
        return code if own_token(code, tokens) == token else _bare(token)
    except CadecError:
        return _bare(token)


def is_language(code: str) -> bool:
    """Tell whether this is a code of a language with a two-letter code, rather than of a group or unknown."""
    return _code(code).language in _LANGUAGES


def _fitting(wanted: _Code, tokens: Sequence[str]) -> list[str]:
    codes = {token: _code(token) for token in tokens if _code(token).language == wanted.language}
    for part in ("script", "region"):
        asked = getattr(wanted, part)
        # Tokens with the wanted script or region, or else those without any. If none is wanted, the plain
        # token if there is one.
        same = {token: code for token, code in codes.items() if getattr(code, part) == asked}
        silent = {token: code for token, code in codes.items() if not getattr(code, part)}
        codes = same or silent or ({} if asked else codes)
    return list(codes)


def _nearest(wanted: str, code: _Code, tokens: Sequence[str]) -> str:
    if len(tokens) <= _SHOWN:
        return f"it has {' '.join(tokens)}"
    related = [token for token in tokens if _code(token).language == code.language]
    spelled = {name: token for token in tokens for name in (re.split("[-_]", _bare(token))[0], _bare(token))}
    close = [spelled[name] for name in difflib.get_close_matches(wanted, spelled, n=_SHOWN, cutoff=0.5)]
    near = list(dict.fromkeys([*related, *close]))[:_SHOWN]
    if not near:
        return f"it has {len(tokens)} others, written like {' '.join(tokens[:3])}"
    return f"the nearest of its {len(tokens)} languages: {' '.join(near)}"


def _bare(token: str) -> str:
    found = _DECORATED.fullmatch(token)
    return next(filter(None, found.groups())) if found else token


def _code(text: str) -> _Code:
    language, *rest = re.split(r"[-_]", _bare(text.strip()))
    short = language.lower()
    short = _SHORT.get(short, short)
    script = next((part.title() for part in rest if len(part) == 4 and part.isalpha()), "")
    region = next((part.upper() for part in rest if len(part) == 2 or part.isdigit()), "")
    region = "" if region == _NO_REGION else region
    script = script or _SCRIPTS_OF_REGIONS.get((short, region), "")
    # Such a region stands for a script: the same Chinese is zho_Hans in one model and zh_CN in another.
    region = "" if (short, region) in _SCRIPTS_OF_REGIONS else region
    return _Code(short, script, region)
